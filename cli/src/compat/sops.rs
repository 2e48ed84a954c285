//! The command line of sops: its verbs, its flags before verbs and in place of verbs, its exit codes.
//!
//! In three steps: read what was typed ([`line`], by the tables in [`flags`]); put it into our own words
//! ([`call`]), and refuse what sops refuses ([`checks`]); run the command. What differs while a command runs is asked of
//! [`super::as_sops`] where it happens.

mod call;
mod checks;
mod exit;
mod flags;
mod help;
mod line;

use std::ffi::{OsStr, OsString};
use std::process::ExitCode;

use call::Call;
use line::Line;

use crate::error::CommandError;
use crate::output::Output;
use crate::process;

/// What `--version` says, so that scripts that look for a version find the one whose place we take.
const VERSION_ANSWER: &str =
    concat!("sops 3.13.3 (the command line of sops, spoken by lacre ", env!("CARGO_PKG_VERSION"), ")\n");

/// A verb of sops.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Verb {
    CompletionBash,
    CompletionZsh,
    Decrypt,
    Edit,
    Encrypt,
    ExecEnv,
    ExecFile,
    FileStatus,
    GroupsAdd,
    GroupsDelete,
    KeyService,
    Publish,
    Rotate,
    Set,
    Unset,
    UpdateKeys,
}

impl Verb {
    /// All of them.
    const ALL: [Self; 16] = [
        Self::CompletionBash,
        Self::CompletionZsh,
        Self::Decrypt,
        Self::Edit,
        Self::Encrypt,
        Self::ExecEnv,
        Self::ExecFile,
        Self::FileStatus,
        Self::GroupsAdd,
        Self::GroupsDelete,
        Self::KeyService,
        Self::Publish,
        Self::Rotate,
        Self::Set,
        Self::Unset,
        Self::UpdateKeys,
    ];

    /// The words that it is typed with, which are ours too.
    pub(super) fn words(self) -> &'static [&'static str] {
        match self {
            Self::CompletionBash => &["completion", "bash"],
            Self::CompletionZsh => &["completion", "zsh"],
            Self::Decrypt => &["decrypt"],
            Self::Edit => &["edit"],
            Self::Encrypt => &["encrypt"],
            Self::ExecEnv => &["exec-env"],
            Self::ExecFile => &["exec-file"],
            Self::FileStatus => &["filestatus"],
            Self::GroupsAdd => &["groups", "add"],
            Self::GroupsDelete => &["groups", "delete"],
            Self::KeyService => &["keyservice"],
            Self::Publish => &["publish"],
            Self::Rotate => &["rotate"],
            Self::Set => &["set"],
            Self::Unset => &["unset"],
            Self::UpdateKeys => &["updatekeys"],
        }
    }

    /// The verb that `words` begin with, and how many of them say so.
    fn at_start(words: &[OsString]) -> Option<(Self, usize)> {
        Self::ALL.into_iter().find_map(|verb| {
            let typed = words.iter().take(verb.words().len());
            typed.eq(verb.words().iter()).then_some((verb, verb.words().len()))
        })
    }
}

/// What a command line asks for.
enum Request {
    Calls(Vec<Call>),
    /// A text, and nothing else.
    Text(String),
}

/// Runs what `words` ask for.
pub(super) fn run(words: &[OsString]) -> ExitCode {
    process::harden();
    let output = Output::default();
    let result = match requested(words, output) {
        Ok(Request::Calls(calls)) => return run_all(&calls, output),
        Ok(Request::Text(text)) => output.text(&text),
        Err(error) => Err(error),
    };
    match result {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            output.error(&error);
            ExitCode::from(error.kind.exit_code())
        }
    }
}

/// Runs each call. With several of them none keeps the others from running, and a failure of any ends in 1.
fn run_all(calls: &[Call], output: Output) -> ExitCode {
    let codes: Vec<u8> = calls.iter().map(|call| run_one(call, output)).collect();
    match codes[..] {
        [code] => ExitCode::from(code),
        _ if codes.iter().all(|code| *code == 0) => ExitCode::SUCCESS,
        _ => ExitCode::FAILURE,
    }
}

fn run_one(call: &Call, output: Output) -> u8 {
    let result = call.check().and_then(|()| call.run());
    match result {
        Ok(()) => 0,
        Err(error) => {
            match exit::whole(error.kind) {
                Some(sentence) => output.told_by_sops(Some(sentence)),
                None => {
                    output.told_by_sops(exit::words(error.kind));
                    output.error(&error);
                }
            }
            exit::code(call.verb, error.kind)
        }
    }
}

fn requested(words: &[OsString], output: Output) -> Result<Request, CommandError> {
    let top = Line::read(words, flags::TOP).map_err(misuse)?;
    if top.is_on("help") {
        return Ok(Request::Text(help::top()));
    }
    if top.is_on("version") {
        return Ok(Request::Text(VERSION_ANSWER.to_owned()));
    }
    let first = top.operand(0).and_then(OsStr::to_str).unwrap_or_default();
    if matches!(first, "help" | "h") {
        return Ok(Request::Text(help::asked(&top.operands[1..])));
    }
    let Some((verb, used)) = Verb::at_start(&top.operands) else {
        return match first {
            "completion" | "groups" => help::of_several(first, top.operand(1)).map(Request::Text),
            _ => call::without_verb(&top, output).map(|call| Request::Calls(vec![call])),
        };
    };
    let line = Line::read_verb(&top.operands[used..], verb.flags()).map_err(misuse)?;
    if line.is_on("help") || line.operand(0).is_some_and(|word| word == "--help") {
        return Ok(Request::Text(help::of(verb)));
    }
    call::of_verb(verb, &line, &top, output).map(Request::Calls)
}

fn misuse(problem: String) -> CommandError {
    CommandError::general(format!("incorrect usage: {problem}"))
        .hint("see `sops --help`, or `sops VERB --help`")
}
