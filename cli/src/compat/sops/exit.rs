//! How sops ends: its exit codes where they depend on the verb, and its words where scripts look for them.

use super::Verb;
use crate::error::Kind;

/// The exit code of sops for a failure of `kind` in `verb`.
pub(super) fn code(verb: Verb, kind: Kind) -> u8 {
    match (kind, verb) {
        (
            Kind::NoFile | Kind::MissingFile | Kind::Read,
            Verb::FileStatus | Verb::UpdateKeys | Verb::Publish,
        ) => 1,
        (
            Kind::NoFile,
            Verb::ExecEnv
            | Verb::ExecFile
            | Verb::GroupsAdd
            | Verb::GroupsDelete
            | Verb::Rotate
            | Verb::Set
            | Verb::Unset,
        ) => 2,
        (Kind::Declined, Verb::UpdateKeys) => 0,
        (Kind::NoKey, Verb::GroupsAdd | Verb::GroupsDelete) => 1,
        // The path was understood and leads nowhere; sops has no code for that.
        (Kind::TreePath, _) => 1,
        // A sealed document that cannot be read; sops has a code only for one that is to be sealed.
        (Kind::Malformed, _) => 1,
        _ => kind.exit_code(),
    }
}

/// All that sops says about a failure of `kind`, where tests of others compare the whole of it.
pub(super) fn whole(kind: Kind) -> Option<&'static str> {
    match kind {
        Kind::NoRecipient => Some("Could not generate data key: [empty key group provided]"),
        _ => None,
    }
}

/// The sentence of sops that goes with a failure, for scripts that look for it.
pub(super) fn words(kind: Kind) -> Option<&'static str> {
    match kind {
        Kind::AlreadySealed => Some("The file you have provided contains a top-level entry called 'sops'"),
        Kind::NoKey => Some("Failed to get the data key required to decrypt the SOPS file."),
        Kind::Unchanged => Some("File has not changed, exiting."),
        _ => None,
    }
}
