//! Keeps what is in this process's memory there: no core dumps, no tracing by others of the same user, no panic message
//! that shows what it choked on.

use rustix::process::{DumpableBehavior, Resource, Rlimit, set_dumpable_behavior, setrlimit};

/// Makes the process non-dumpable and forbids core files. Call it before any secret is read.
///
/// # Errors
/// The kernel refused, which it does not do to a process that lessens its own rights.
pub fn harden() -> std::io::Result<()> {
    set_dumpable_behavior(DumpableBehavior::NotDumpable)?;
    setrlimit(Resource::Core, Rlimit { current: Some(0), maximum: Some(0) })?;
    Ok(())
}

/// Makes a panic log where it happened and nothing of what it says, which may be a value.
pub fn silence_panics() {
    std::panic::set_hook(Box::new(|panic| {
        let location = panic.location().map(ToString::to_string).unwrap_or_default();
        tracing::error!(location, "a bug: this part of the work ended unexpectedly");
    }));
}

#[cfg(test)]
mod tests {
    use rustix::process::{dumpable_behavior, getrlimit};

    use super::*;

    #[test]
    fn a_hardened_process_leaves_no_core_and_cannot_be_read() {
        harden().unwrap();
        assert_eq!(dumpable_behavior().unwrap(), DumpableBehavior::NotDumpable);
        assert_eq!(getrlimit(Resource::Core).maximum, Some(0));
    }
}
