//! From what was typed for sops to a command line of ours.
//!
//! Formats are chosen by sops' rules here and handed on in words: by `--input-type` and `--output-type` if those are
//! words that sops knows, else by the name, where every ending that it does not know means binary.

use std::ffi::{OsStr, OsString};
use std::path::{Path, PathBuf};

use lacre_crypto::Format;

use super::Verb;
use super::checks::{
    both_places, changes_keys, check_flags, check_operands, check_order, missing_file, no_file,
    operands_used, warn_of_idle_flags, warn_of_more_operands,
};
use super::flags::{Becomes, Takes};
use super::line::Line;
use crate::commands;
use crate::config;
use crate::error::{CommandError, Kind};
use crate::files::{self, Privacy};
use crate::output::Output;

/// A command line of ours.
#[derive(Debug)]
pub(super) struct Call {
    pub(super) verb: Verb,
    pub(super) words: Vec<OsString>,
    /// The file whose creation rule must be there for sops, although the verb has no use for it.
    rule_for: Option<PathBuf>,
    config: Option<OsString>,
    /// What prints the changed file in another format, if that was asked for.
    conversion: Option<Conversion>,
}

/// A file that is to be in another format once a verb is done with it.
#[derive(Debug)]
struct Conversion {
    file: PathBuf,
    words: Vec<OsString>,
    /// Whether a file that the verb left as it was stays so.
    only_if_changed: bool,
}

impl Call {
    /// Checks what sops checks first.
    pub(super) fn check(&self) -> Result<(), CommandError> {
        config::demand_named(self.config.as_deref())?;
        match &self.rule_for {
            Some(file) => config::demand_match(file, self.config.as_deref()),
            None => Ok(()),
        }
    }

    /// Runs the command, and what is to follow.
    pub(super) fn run(&self) -> Result<(), CommandError> {
        let Some(conversion) = &self.conversion else { return commands::attempt(&self.words) };
        let before = std::fs::read(&conversion.file).ok();
        commands::attempt(&self.words)?;
        if conversion.only_if_changed && before == std::fs::read(&conversion.file).ok() {
            return Ok(());
        }
        // What cannot be printed in that format is left as it was found.
        commands::attempt(&conversion.words).inspect_err(|_| {
            if let Some(before) = &before {
                let _ = files::write(&conversion.file, before, Privacy::Shared);
            }
        })
    }
}

/// The calls that `verb` stands for, with flags before it in `top`.
pub(super) fn of_verb(
    verb: Verb,
    line: &Line,
    top: &Line,
    output: Output,
) -> Result<Vec<Call>, CommandError> {
    check_operands(verb, line, output)?;
    warn_of_idle_flags(verb, top, output);
    if verb == Verb::UpdateKeys {
        return line
            .operands
            .iter()
            .map(|file| build(verb, line, top, std::slice::from_ref(file), output))
            .collect();
    }
    let count = line.operands.len().min(operands_used(verb));
    Ok(vec![build(verb, line, top, &line.operands[..count], output)?])
}

/// The call that flags without a verb stand for.
pub(super) fn without_verb(top: &Line, output: Output) -> Result<Call, CommandError> {
    let Some(file) = top.operands.first() else {
        return Err(no_file("no file specified"));
    };
    warn_of_more_operands(top, 1, output);
    both_places(top)?;
    let verb = legacy_verb(top, output);
    let path = Path::new(file);
    if !path.exists() {
        if changes_keys(top) {
            return Err(missing_file(path));
        }
        if matches!(verb, Verb::Decrypt | Verb::Encrypt | Verb::Rotate) {
            return Err(CommandError::on(
                Kind::NoFile,
                path.display(),
                "cannot operate on non-existent file",
            ));
        }
    }
    let operands = match verb {
        Verb::Set => set_operands(file, top)?,
        _ => vec![file.clone()],
    };
    let name = top.value("filename-override").map_or_else(|| path.to_owned(), PathBuf::from);
    let mut call = build(verb, top, top, &operands, output)?;
    if verb != Verb::Decrypt {
        call.rule_for = Some(name);
    }
    Ok(call)
}

/// `--encrypt`, `--decrypt`, `--rotate` and `--set`, of which sops obeys the last in this order; else edit.
fn legacy_verb(top: &Line, output: Output) -> Verb {
    let asked = [
        (top.is_on("encrypt"), Verb::Encrypt),
        (top.is_on("decrypt"), Verb::Decrypt),
        (top.is_on("rotate"), Verb::Rotate),
        (top.value("set").is_some(), Verb::Set),
    ];
    let asked: Vec<Verb> = asked.into_iter().filter(|(on, _)| *on).map(|(_, verb)| verb).collect();
    if asked.len() > 1 {
        output
            .warn("more than one of --encrypt, --decrypt, --rotate, --set is given; the last of them counts");
    }
    asked.last().copied().unwrap_or(Verb::Edit)
}

/// File, path and value from the one text of `--set`: a path, a space, JSON.
fn set_operands(file: &OsStr, top: &Line) -> Result<Vec<OsString>, CommandError> {
    let text = top.value("set").unwrap_or_default().to_string_lossy().into_owned();
    let invalid = || {
        CommandError::new(Kind::BadValue, "the text of --set is not a path, a space and JSON")
            .hint("write it as `--set '[\"key\"][0] \"value\"'`, or use `sops set`")
    };
    let (path, value) = text.split_once("] ").ok_or_else(invalid)?;
    Ok(vec![file.to_owned(), format!("{path}]").into(), value.into()])
}

fn build(
    verb: Verb,
    line: &Line,
    top: &Line,
    operands: &[OsString],
    output: Output,
) -> Result<Call, CommandError> {
    check_flags(verb, line, operands)?;
    let mut words: Vec<OsString> = vec!["lacre".into()];
    words.extend(verb.words().iter().map(OsString::from));
    let config = line.value("config").or_else(|| top.value("config")).map(OsStr::to_owned);
    words.extend(config.as_deref().map(|config| joined("config", config)));
    add_flags(&mut words, verb, line, output)?;
    add_defaults(&mut words, verb, line, top);
    let formats = add_formats(&mut words, verb, line, operands);
    let indent = line.value("indent").or_else(|| top.value("indent"));
    words.extend(
        indent
            .filter(|_| matches!(verb, Verb::Decrypt | Verb::Encrypt | Verb::ExecFile | Verb::Rotate))
            .map(|n| joined("indent", n)),
    );
    add_services(&mut words, line)?;
    let conversion = conversion(&words, verb, line, operands, formats);
    words.push("--".into());
    words.extend(operands.iter().map(as_file_or_text));
    Ok(Call { verb, words, rule_for: None, config, conversion })
}

/// `-` is the name of a file for sops.
fn as_file_or_text(operand: &OsString) -> OsString {
    if operand == "-" { "./-".into() } else { operand.clone() }
}

/// The flags that we have by the same name. Of a flag that is given twice sops takes the last.
fn add_flags(words: &mut Vec<OsString>, verb: Verb, line: &Line, output: Output) -> Result<(), CommandError> {
    let own: Vec<_> =
        verb.flags().iter().flat_map(|table| table.iter()).map(super::flags::Flag::name).collect();
    let legacy = ["unencrypted-comment-regex", "encrypted-comment-regex"];
    for (index, (flag, value)) in line.flags().enumerate() {
        let name = flag.name();
        let repeated = line.flags().skip(index + 1).any(|(later, _)| later == flag);
        let has_it = own.contains(&name) || verb.seals() && legacy.contains(&name);
        match flag.becomes {
            Becomes::Refused(reason) if value != "false" => {
                return Err(CommandError::general(format!("--{name} cannot be used")).hint(reason));
            }
            Becomes::Same if name != "config" && has_it && !value.is_empty() => match flag.takes {
                Takes::Texts => words.push(joined(name, value)),
                _ if repeated => {
                    if flag.takes == Takes::Text {
                        output.warn(&format!(
                            "--{name} is given more than once; the last one counts, as in sops"
                        ));
                    }
                }
                Takes::Nothing if value == "true" => words.push(format!("--{name}").into()),
                Takes::Nothing => {}
                Takes::Number if value == "0" => {}
                _ => words.push(joined(name, value)),
            },
            _ => {}
        }
    }
    Ok(())
}

impl Verb {
    /// Whether it may make a new sealed file.
    fn seals(self) -> bool {
        matches!(self, Self::Edit | Self::Encrypt)
    }
}

/// What sops does without being asked, where we would want to be.
fn add_defaults(words: &mut Vec<OsString>, verb: Verb, line: &Line, top: &Line) {
    let is_on = |name: &str| line.is_on(name) || top.is_on(name);
    if verb.seals() && is_on("mac-only-encrypted") {
        words.push("--mac-only-encrypted".into());
    }
    if matches!(verb, Verb::ExecEnv | Verb::ExecFile) && top.is_on("ignore-mac") {
        words.push("--ignore-mac".into());
    }
    if verb == Verb::UpdateKeys {
        words.push("--keep-data-key".into());
    }
}

/// The format that a verb reads, and the one that it leaves.
fn add_formats(
    words: &mut Vec<OsString>,
    verb: Verb,
    line: &Line,
    operands: &[OsString],
) -> (Format, Format) {
    let file = match verb {
        Verb::GroupsAdd | Verb::GroupsDelete => line.value("file"),
        _ => operands.first().map(OsString::as_os_str),
    };
    let name = line.value("filename-override").or(file).unwrap_or_default().to_string_lossy().into_owned();
    let format = |flag: &str| {
        let typed = line.value(flag).and_then(OsStr::to_str).and_then(Format::from_word);
        typed.unwrap_or_else(|| Format::of_file(&name))
    };
    let (from, to) = (format("input-type"), format("output-type"));
    if verb.reads_a_document() {
        words.push(joined("input-type", from.word().as_ref()));
    }
    if verb.prints_a_document() {
        words.push(joined("output-type", to.word().as_ref()));
    }
    (from, to)
}

/// What has to follow a verb of ours that writes a document only in the format that it reads.
fn conversion(
    words: &[OsString],
    verb: Verb,
    line: &Line,
    operands: &[OsString],
    (from, to): (Format, Format),
) -> Option<Conversion> {
    let changes = matches!(verb, Verb::Edit | Verb::Set | Verb::Unset);
    let file = operands.first().filter(|_| changes && from != to)?;
    let shared =
        ["--config=", "--keyservice=", "--enable-local-keyservice=", "--decryption-order=", "--ignore-mac"];
    let is_shared = |word: &&OsString| shared.iter().any(|start| word.to_string_lossy().starts_with(start));
    let mut rotate: Vec<OsString> = ["lacre", "rotate", "--in-place"].map(OsString::from).into();
    rotate.extend(words.iter().filter(is_shared).cloned());
    rotate.push(joined("input-type", from.word().as_ref()));
    rotate.push(joined("output-type", to.word().as_ref()));
    rotate.extend([OsString::from("--"), as_file_or_text(file)]);
    Some(Conversion { file: file.into(), words: rotate, only_if_changed: line.is_on("idempotent") })
}

impl Verb {
    fn reads_a_document(self) -> bool {
        let others = [Self::Edit, Self::ExecEnv, Self::FileStatus, Self::Set, Self::Unset, Self::UpdateKeys];
        self.prints_a_document() || others.contains(&self)
    }

    /// In any format.
    fn prints_a_document(self) -> bool {
        matches!(self, Self::Decrypt | Self::Encrypt | Self::ExecFile | Self::Rotate)
    }
}

/// Whether keys are used in this process, and which kinds of them first.
fn add_services(words: &mut Vec<OsString>, line: &Line) -> Result<(), CommandError> {
    let name = "decryption-order";
    if let Some(order) = line.value(name) {
        check_order(order)?;
        words.push(joined(name, order));
    }
    let name = "enable-local-keyservice";
    if let Some(enabled) = line.value(name) {
        words.push(joined(name, enabled));
    }
    Ok(())
}

fn joined(name: &str, value: &OsStr) -> OsString {
    let mut word = OsString::from(format!("--{name}="));
    word.push(value);
    word
}
