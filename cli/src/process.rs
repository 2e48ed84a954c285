//! What this process does to itself before it touches a secret.

/// Keeps plaintext out of core dumps and away from debuggers of the same user.
///
/// Neither call can fail on a system that has it, and a system without it is no reason to refuse work; so nothing
/// is reported. Children start dumpable again, but inherit the limit on core files.
pub(crate) fn harden() {
    #[cfg(target_os = "linux")]
    let _ = rustix::process::set_dumpable_behavior(rustix::process::DumpableBehavior::NotDumpable);
    let none = rustix::process::Rlimit { current: Some(0), maximum: Some(0) };
    let _ = rustix::process::setrlimit(rustix::process::Resource::Core, none);
}
