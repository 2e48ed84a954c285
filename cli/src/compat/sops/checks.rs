//! What sops checks before it opens any file, with its exit codes, and what it warns about.

use std::ffi::{OsStr, OsString};
use std::path::Path;

use lacre_crypto::TreePath;

use super::Verb;
use super::line::Line;
use crate::error::{CommandError, Kind};
use crate::output::Output;
use crate::recipients;

/// A kind of keys stands once in the order.
pub(super) fn check_order(order: &OsStr) -> Result<(), CommandError> {
    let order = order.to_string_lossy();
    let kinds: Vec<&str> = order.split(',').collect();
    match kinds.iter().enumerate().find(|(index, kind)| kinds[..*index].contains(kind)) {
        Some((_, kind)) => {
            Err(CommandError::new(Kind::DuplicateOrder, format!("--decryption-order names `{kind}` twice"))
                .hint("name each kind once, such as `age,pgp,kms`"))
        }
        None => Ok(()),
    }
}

/// How many operands a verb looks at.
pub(super) fn operands_used(verb: Verb) -> usize {
    match verb {
        Verb::Set => 3,
        Verb::ExecEnv | Verb::ExecFile | Verb::Unset => 2,
        Verb::CompletionBash | Verb::CompletionZsh | Verb::GroupsAdd | Verb::KeyService => 0,
        _ => 1,
    }
}

pub(super) fn check_operands(verb: Verb, line: &Line, output: Output) -> Result<(), CommandError> {
    let count = line.operands.len();
    let general = |problem: &str, hint: &str| Err(CommandError::general(problem).hint(hint));
    match verb {
        Verb::Edit | Verb::FileStatus | Verb::Publish | Verb::Rotate | Verb::UpdateKeys if count == 0 => {
            return Err(no_file("no file specified"));
        }
        Verb::ExecEnv | Verb::ExecFile if count != 2 => {
            return general(
                "exactly two operands are needed: the sealed file, and the command",
                "put the command in quotes",
            );
        }
        Verb::GroupsAdd if count != 0 => {
            return general("no operands are allowed", "name the file with --file");
        }
        Verb::GroupsDelete if count != 1 => {
            return general("exactly one operand is needed: the group's index", "groups are counted from 0");
        }
        Verb::Set if count != if line.is_on("value-stdin") { 2 } else { 3 } => {
            return Err(no_file("a file, a path and a value are needed, or --value-stdin and no value"));
        }
        Verb::Unset if count != 2 => return Err(no_file("a file and a path are needed")),
        Verb::Decrypt | Verb::Edit | Verb::Encrypt | Verb::Publish | Verb::Rotate => {
            warn_of_more_operands(line, 1, output);
        }
        _ => {}
    }
    Ok(())
}

pub(super) fn check_flags(verb: Verb, line: &Line, operands: &[OsString]) -> Result<(), CommandError> {
    let conflict =
        |problem: &str| Err(CommandError::new(Kind::ConflictingFlags, problem).hint("or name a file"));
    if matches!(verb, Verb::Decrypt | Verb::Encrypt) && operands.is_empty() {
        if line.is_on("in-place") {
            return conflict("cannot use --in-place when reading from stdin");
        }
        if verb == Verb::Encrypt && line.value("filename-override").is_none() {
            return conflict("must specify --filename-override when reading from stdin");
        }
    }
    if matches!(verb, Verb::Decrypt | Verb::Encrypt | Verb::Rotate) {
        both_places(line)?;
    }
    match verb {
        Verb::Set if line.is_on("value-file") && line.is_on("value-stdin") => {
            return Err(CommandError::general("cannot use both --value-file and --value-stdin")
                .hint("leave one of them out"));
        }
        Verb::Set | Verb::Unset => {
            check_path(operands.get(1).map(OsString::as_os_str), Kind::BadValue)?;
            let source = operands.get(2).map(Path::new).filter(|_| line.is_on("value-file"));
            if let Some(path) = source.filter(|path| !path.exists()) {
                return Err(CommandError::general(format!("{}: no such file", path.display()))
                    .hint("--value-file takes the name of a file that holds the value"));
            }
        }
        Verb::Decrypt => check_path(line.value("extract"), Kind::TreePath)?,
        Verb::Edit | Verb::Encrypt => check_context(line)?,
        Verb::Rotate if changes_keys(line) => {
            if let Some(path) = operands.first().map(Path::new).filter(|path| !path.exists()) {
                return Err(missing_file(path));
            }
        }
        _ => {}
    }
    Ok(())
}

/// sops reads the context although no key may need it.
fn check_context(line: &Line) -> Result<(), CommandError> {
    let context = line.value("encryption-context").unwrap_or_default().to_string_lossy();
    recipients::check_context(&context)
}

fn check_path(path: Option<&OsStr>, kind: Kind) -> Result<(), CommandError> {
    let Some(path) = path else { return Ok(()) };
    let path = path.to_string_lossy();
    TreePath::parse(&path).map(drop).map_err(|error| {
        CommandError::new(kind, format!("the path `{path}`: {error}"))
            .hint("a path looks like `[\"key\"][0]`")
    })
}

pub(super) fn both_places(line: &Line) -> Result<(), CommandError> {
    if line.is_on("in-place") && line.value("output").is_some() {
        return Err(CommandError::new(
            Kind::ConflictingFlags,
            "cannot operate on both --output and --in-place",
        )
        .hint("leave one of them out"));
    }
    Ok(())
}

pub(super) fn changes_keys(line: &Line) -> bool {
    let changes = |name: &str| name.starts_with("add-") || name.starts_with("rm-");
    line.flags().any(|(flag, value)| changes(flag.name()) && !value.is_empty())
}

/// What sops takes without a word where it counts for nothing is told here.
pub(super) fn warn_of_idle_flags(verb: Verb, top: &Line, output: Output) {
    let verb_words = verb.words().join(" ");
    for (flag, value) in top.flags() {
        let is_global = matches!(
            flag.name(),
            "check-for-updates"
                | "config"
                | "disable-version-check"
                | "indent"
                | "mac-only-encrypted"
                | "verbose"
        );
        let is_read = flag.name() == "ignore-mac" && matches!(verb, Verb::ExecEnv | Verb::ExecFile);
        if !is_global && !is_read && !value.is_empty() {
            output.warn(&format!(
                "--{} has no effect before `{verb_words}`, as in sops; put it after the verb",
                flag.name()
            ));
        }
    }
}

pub(super) fn warn_of_more_operands(line: &Line, used: usize, output: Output) {
    let ignored = line.operands.iter().skip(used);
    for word in ignored {
        let word = word.to_string_lossy();
        match word.starts_with('-') {
            true => output.warn(&format!(
                "`{word}` stands after the file and is ignored, as in sops; flags must stand before it"
            )),
            false => output.warn(&format!("`{word}` is ignored, as in sops, which takes one file")),
        }
    }
}

pub(super) fn no_file(problem: &str) -> CommandError {
    CommandError::new(Kind::NoFile, problem).hint("see `sops --help`")
}

pub(super) fn missing_file(path: &Path) -> CommandError {
    let problem = "cannot add or remove keys on non-existent file";
    CommandError::on(Kind::MissingFile, path.display(), problem).hint("make it with `sops edit` first")
}
