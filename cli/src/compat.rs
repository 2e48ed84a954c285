//! Which command line is spoken: our own, or that of a tool whose place we take, as the name says that we were
//! called by. A link or copy of `lacre` that is named `sops` speaks like sops, one that is named `kubeseal` like kubeseal.
//!
//! What was typed there is put into our own words and run by the same commands. Where they have to behave
//! differently they ask [`spoken`].

#[cfg(feature = "kube")]
mod kubeseal;
mod sops;

use std::ffi::OsString;
use std::path::Path;
use std::process::ExitCode;
use std::sync::OnceLock;

use crate::commands;

/// A command line.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Spoken {
    /// That of kubeseal.
    #[cfg(feature = "kube")]
    Kubeseal,
    /// Our own.
    Lacre,
    /// That of sops.
    Sops,
}

/// Set once, before anything is read: like its arguments, the name of a process does not change.
static SPOKEN: OnceLock<Spoken> = OnceLock::new();

/// The command line that this process speaks.
pub(crate) fn spoken() -> Spoken {
    SPOKEN.get().copied().unwrap_or(Spoken::Lacre)
}

/// Whether this process stands in for sops.
pub(crate) fn as_sops() -> bool {
    spoken() == Spoken::Sops
}

/// Runs the command line `words`, the first of which is the name we were called by.
pub(crate) fn run(words: impl Iterator<Item = OsString>) -> ExitCode {
    let mut words = words.peekable();
    let spoken = words.peek().map_or(Spoken::Lacre, Spoken::by_name);
    match SPOKEN.get_or_init(|| spoken) {
        #[cfg(feature = "kube")]
        Spoken::Kubeseal => kubeseal::run(&words.skip(1).collect::<Vec<_>>()),
        Spoken::Lacre => commands::run(words),
        Spoken::Sops => sops::run(&words.skip(1).collect::<Vec<_>>()),
    }
}

impl Spoken {
    fn by_name(program: &OsString) -> Self {
        match Path::new(program).file_name() {
            #[cfg(feature = "kube")]
            Some(name) if name == "kubeseal" => Self::Kubeseal,
            Some(name) if name == "sops" => Self::Sops,
            _ => Self::Lacre,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_file_name_decides() {
        let spoken = |name: &str| Spoken::by_name(&name.into());
        assert_eq!((spoken("sops"), spoken("/usr/local/bin/sops")), (Spoken::Sops, Spoken::Sops));
        #[cfg(feature = "kube")]
        assert_eq!(spoken("./kubeseal"), Spoken::Kubeseal);
        for other in ["lacre", "kubeseal-0.40", "sops/lacre", "sops.exe", "sops-3.13", "", "/"] {
            assert_eq!(spoken(other), Spoken::Lacre, "{other}");
        }
    }
}
