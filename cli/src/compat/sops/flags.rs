//! The flags of sops, verb by verb, and what each becomes in our own words.
//!
//! A test compares these tables with what the real sops says about itself.

use super::Verb;

/// A flag of sops.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Flag {
    /// Its name first, then another form of it, if any.
    pub(super) names: &'static [&'static str],
    pub(super) takes: Takes,
    pub(super) becomes: Becomes,
}

/// What follows a flag.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Takes {
    /// A whole number.
    Number,
    /// Nothing, or `=true` and `=false`.
    Nothing,
    /// One text; the last one counts.
    Text,
    /// One text each time; all count.
    Texts,
}

/// What a flag means here.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Becomes {
    /// Nothing that would have to be done: it is understood and has no use here.
    Nothing,
    /// Looked at where the verb is put into our words.
    Read,
    /// Nothing that we could do; this is why.
    Refused(&'static str),
    /// A flag of ours by the same name.
    Same,
}

impl Flag {
    /// The name that it is known by.
    pub(super) fn name(&self) -> &'static str {
        self.names.first().copied().unwrap_or_default()
    }
}

const fn flag(names: &'static [&'static str], takes: Takes, becomes: Becomes) -> Flag {
    Flag { names, takes, becomes }
}

const fn text(names: &'static [&'static str]) -> Flag {
    flag(names, Takes::Text, Becomes::Same)
}

const fn switch(names: &'static [&'static str]) -> Flag {
    flag(names, Takes::Nothing, Becomes::Same)
}

const LOST_EDITS: &str = "sops loses every edit that is made with it; \
    see the recipients in the file itself, and change them with `updatekeys`";

/// Understood before every verb, and after it too.
const GLOBAL: &[Flag] = &[
    text(&["config"]),
    flag(&["check-for-updates"], Takes::Nothing, Becomes::Nothing),
    flag(&["disable-version-check"], Takes::Nothing, Becomes::Nothing),
    flag(&["indent"], Takes::Number, Becomes::Read),
    flag(&["mac-only-encrypted"], Takes::Nothing, Becomes::Read),
    flag(&["verbose"], Takes::Nothing, Becomes::Nothing),
];

const HELP: &[Flag] = &[flag(&["help", "h"], Takes::Nothing, Becomes::Read)];

const VERSION: &[Flag] = &[flag(&["version", "v"], Takes::Nothing, Becomes::Read)];

/// Which key services are asked.
const SERVICES: &[Flag] = &[
    flag(&["enable-local-keyservice"], Takes::Nothing, Becomes::Read),
    flag(&["keyservice"], Takes::Texts, Becomes::Same),
];

const ORDER: &[Flag] = &[flag(&["decryption-order"], Takes::Text, Becomes::Read)];

const PLACE: &[Flag] = &[switch(&["in-place", "i"]), text(&["output"])];

const TYPES: &[Flag] = &[INPUT_TYPE, flag(&["output-type"], Takes::Text, Becomes::Read)];

const INPUT_TYPE: Flag = flag(&["input-type"], Takes::Text, Becomes::Read);

const NAME: &[Flag] = &[text(&["filename-override"])];

const IGNORE_MAC: &[Flag] = &[switch(&["ignore-mac"])];

/// For whom a new file is sealed.
const KEYS: &[Flag] = &[
    text(&["kms", "k"]),
    text(&["aws-profile"]),
    text(&["gcp-kms"]),
    text(&["hckms"]),
    text(&["azure-kv"]),
    text(&["hc-vault-transit"]),
    text(&["pgp", "p"]),
    text(&["age", "a"]),
    text(&["encryption-context"]),
    THRESHOLD,
];

const THRESHOLD: Flag = flag(&["shamir-secret-sharing-threshold"], Takes::Number, Becomes::Same);

/// A threshold that sops takes and never looks at.
const IDLE_THRESHOLD: &[Flag] =
    &[flag(&["shamir-secret-sharing-threshold"], Takes::Number, Becomes::Nothing)];

const SELECTORS: &[Flag] = &[
    text(&["unencrypted-suffix"]),
    text(&["encrypted-suffix"]),
    text(&["unencrypted-regex"]),
    text(&["encrypted-regex"]),
];

/// What sops lacks: our refusals name it as the way to insist.
const INSISTENCE: &[Flag] = &[switch(&["allow-plaintext"])];

const COMMENT_SELECTORS: &[Flag] =
    &[text(&["unencrypted-comment-regex"]), text(&["encrypted-comment-regex"])];

/// Who joins and who leaves on a rotation.
const CHANGES: &[Flag] = &[
    text(&["add-age"]),
    text(&["add-azure-kv"]),
    text(&["add-gcp-kms"]),
    text(&["add-hc-vault-transit"]),
    text(&["add-hckms"]),
    text(&["add-kms"]),
    text(&["add-pgp"]),
    text(&["rm-age"]),
    text(&["rm-azure-kv"]),
    text(&["rm-gcp-kms"]),
    text(&["rm-hc-vault-transit"]),
    text(&["rm-hckms"]),
    text(&["rm-kms"]),
    text(&["rm-pgp"]),
];

const MASTER_KEYS: &[Flag] =
    &[flag(&["show-master-keys", "s"], Takes::Nothing, Becomes::Refused(LOST_EDITS))];

const EXEC: &[Flag] = &[switch(&["background"]), text(&["user"])];

/// The flags before a verb, which stand for a verb themselves when there is none.
pub(super) const TOP: &[&[Flag]] = &[
    &[
        flag(&["decrypt", "d"], Takes::Nothing, Becomes::Read),
        flag(&["encrypt", "e"], Takes::Nothing, Becomes::Read),
        flag(&["rotate", "r"], Takes::Nothing, Becomes::Read),
        flag(&["set"], Takes::Text, Becomes::Read),
        text(&["extract"]),
    ],
    GLOBAL,
    HELP,
    VERSION,
    SERVICES,
    ORDER,
    PLACE,
    TYPES,
    NAME,
    IGNORE_MAC,
    KEYS,
    SELECTORS,
    COMMENT_SELECTORS,
    INSISTENCE,
    CHANGES,
    MASTER_KEYS,
];

impl Verb {
    /// What the verb understands, with its own flags first.
    pub(super) fn flags(self) -> &'static [&'static [Flag]] {
        match self {
            Self::CompletionBash | Self::CompletionZsh => &[GLOBAL, HELP],
            Self::Decrypt => &[EXTRACT, PLACE, TYPES, IGNORE_MAC, NAME, ORDER, SERVICES, GLOBAL, HELP],
            Self::Edit => {
                &[KEYS, TYPES, SELECTORS, INSISTENCE, MASTER_KEYS, IGNORE_MAC, ORDER, SERVICES, GLOBAL, HELP]
            }
            Self::Encrypt => &[PLACE, KEYS, TYPES, SELECTORS, INSISTENCE, NAME, SERVICES, GLOBAL, HELP],
            Self::ExecEnv => &[EXEC, ENVIRONMENT, ORDER, SERVICES, GLOBAL, HELP],
            Self::ExecFile => &[EXEC, FIFO, TYPES, ORDER, SERVICES, GLOBAL, HELP],
            Self::FileStatus => &[INPUT, GLOBAL, HELP],
            Self::GroupsAdd => &[GROUP_KEYS, GROUP_FILE, SERVICES, GLOBAL, HELP],
            Self::GroupsDelete => &[GROUP_FILE, SERVICES, GLOBAL, HELP],
            Self::KeyService => &[LISTENING, GLOBAL, HELP],
            Self::Publish => &[YES, PUBLISHING, ORDER, SERVICES, GLOBAL, HELP],
            Self::Rotate => &[PLACE, TYPES, CONTEXT, CHANGES, NAME, ORDER, SERVICES, GLOBAL, HELP],
            Self::Set => {
                &[TYPES, VALUE, IDEMPOTENT, IDLE_THRESHOLD, IGNORE_MAC, ORDER, SERVICES, GLOBAL, HELP]
            }
            Self::Unset => &[TYPES, IDEMPOTENT, IDLE_THRESHOLD, IGNORE_MAC, ORDER, SERVICES, GLOBAL, HELP],
            Self::UpdateKeys => &[YES, INPUT, SERVICES, GLOBAL, HELP],
        }
    }
}

const EXTRACT: &[Flag] = &[text(&["extract"])];

const ENVIRONMENT: &[Flag] = &[switch(&["pristine"]), switch(&["same-process"])];

const FIFO: &[Flag] = &[switch(&["no-fifo"]), text(&["filename"])];

const INPUT: &[Flag] = &[INPUT_TYPE];

const LISTENING: &[Flag] = &[text(&["network", "net"]), text(&["address", "addr"]), switch(&["prompt"])];

const YES: &[Flag] = &[switch(&["yes", "y"])];

const PUBLISHING: &[Flag] = &[switch(&["omit-extensions"]), switch(&["recursive"])];

const CONTEXT: &[Flag] = &[text(&["encryption-context"])];

const VALUE: &[Flag] = &[switch(&["value-file"]), switch(&["value-stdin"])];

const IDEMPOTENT: &[Flag] = &[switch(&["idempotent"])];

/// The keys of a new group, of which each kind can be given several times.
const GROUP_KEYS: &[Flag] = &[
    flag(&["pgp"], Takes::Texts, Becomes::Same),
    flag(&["kms"], Takes::Texts, Becomes::Same),
    text(&["aws-profile"]),
    flag(&["gcp-kms"], Takes::Texts, Becomes::Same),
    flag(&["hckms"], Takes::Texts, Becomes::Same),
    flag(&["azure-kv"], Takes::Texts, Becomes::Same),
    flag(&["hc-vault-transit"], Takes::Texts, Becomes::Same),
    flag(&["age"], Takes::Texts, Becomes::Same),
    text(&["encryption-context"]),
];

const GROUP_FILE: &[Flag] = &[text(&["file", "f"]), switch(&["in-place", "i"]), THRESHOLD];

/// The flag called `name` in `tables`.
pub(super) fn find(tables: &[&'static [Flag]], name: &str) -> Option<&'static Flag> {
    tables.iter().flat_map(|table| table.iter()).find(|flag| flag.names.contains(&name))
}
