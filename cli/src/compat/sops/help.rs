//! What `sops --help` says here.

use std::ffi::{OsStr, OsString};

use super::Verb;
use super::flags::{self, Flag, Takes};
use crate::error::{CommandError, Kind};

/// Help for the whole.
pub(super) fn top() -> String {
    let verbs: Vec<String> =
        Verb::ALL.iter().map(|verb| format!("   {}\n", verb.words().join(" "))).collect();
    format!(
        "NAME:\n   sops - the command line of sops 3.13.3, spoken by lacre\n\n\
         USAGE:\n   sops VERB [options] FILE\n   sops [options] FILE\n\n\
         VERBS:\n{}\n\
         GLOBAL OPTIONS:\n{}\n\
         Without a verb, --encrypt, --decrypt, --rotate or --set say what to do; without these the file is edited.\n\
         Options go before the file there. `lacre --help` explains each verb and flag.\n",
        verbs.concat(),
        options(flags::TOP),
    )
}

/// Help for one verb.
pub(super) fn of(verb: Verb) -> String {
    let words = verb.words().join(" ");
    format!(
        "NAME:\n   sops {words}\n\nUSAGE:\n   sops {words} [options] {}\n\nOPTIONS:\n{}\n\
         `lacre {words} --help` explains each.\n",
        operands(verb),
        options(verb.flags()),
    )
}

/// Help for the verb that `words` name; for the whole if they name none.
pub(super) fn asked(words: &[OsString]) -> String {
    Verb::at_start(words).map_or_else(top, |(verb, _)| of(verb))
}

/// Help for a word that several verbs begin with; `next` is what follows it.
pub(super) fn of_several(word: &str, next: Option<&OsStr>) -> Result<String, CommandError> {
    match next.and_then(OsStr::to_str) {
        None | Some("help" | "h" | "--help" | "-h" | "-help") => {
            let verbs = Verb::ALL.iter().filter(|verb| verb.words().first() == Some(&word));
            Ok(verbs.map(|verb| of(*verb)).collect::<Vec<_>>().join("\n"))
        }
        Some(other) => Err(CommandError::new(Kind::Write, format!("no help topic for '{other}'"))
            .hint(format!("see `sops {word} --help`"))),
    }
}

fn operands(verb: Verb) -> &'static str {
    match verb {
        Verb::CompletionBash | Verb::CompletionZsh | Verb::GroupsAdd | Verb::KeyService => "",
        Verb::Decrypt | Verb::Encrypt => "[FILE]",
        Verb::Edit | Verb::FileStatus | Verb::Publish | Verb::Rotate => "FILE",
        Verb::ExecEnv | Verb::ExecFile => "FILE COMMAND",
        Verb::GroupsDelete => "INDEX",
        Verb::Set => "FILE PATH [VALUE]",
        Verb::Unset => "FILE PATH",
        Verb::UpdateKeys => "FILE…",
    }
}

fn options(tables: &[&'static [Flag]]) -> String {
    let line = |flag: &Flag| {
        let value = if flag.takes == Takes::Nothing { "" } else { " value" };
        let form = |name: &&str| match name.len() {
            1 => format!("-{name}{value}"),
            _ => format!("--{name}{value}"),
        };
        format!("   {}\n", flag.names.iter().map(form).collect::<Vec<_>>().join(", "))
    };
    tables.iter().flat_map(|table| table.iter()).map(line).collect()
}
