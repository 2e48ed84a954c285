//! Runs the case files in `tests/cases`: one folder per command, one file per promise.
//!
//! A case begins with comments and `name: value` lines, then sections that begin with `=== `:
//!
//! ```text
//! # What is promised.
//! setup: encrypt --in-place a.yaml        a command that must succeed first; any number
//! args: decrypt a.yaml                    the command, split as a shell would
//! env: NAME=value                         any number; `env: -NAME` takes one away
//! as: sops                                under that name; `lacre` if absent
//! exit: 128                               0 if absent
//! === file a.yaml                         files before
//! === stdin
//! === stdout                              what must come out; nothing if absent
//! === stderr
//! === after a.yaml                        files that must differ from before, or be new
//! === absent a.yaml                       files that must be gone
//! ```
//!
//! A file that is named in no `after` or `absent` must be untouched, its time of change included, and no other may
//! appear. In all texts `{ops}`, `{ci}`, `{stranger}` stand for recipients, `{keys}` for the folder of their
//! identities, `{work}` and `{home}` for folders. In expectations `{*}` matches any text within a line, and a line
//! `{...}` any number of lines. A command that fails must say what to do next. What the runner does not understand
//! fails the case.

use std::collections::BTreeMap;
use std::fs;
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::time::SystemTime;

use crate::sandbox::{self, Sandbox};

/// Failures after which there is nothing to do, and why not.
const WITHOUT_NEXT_STEP: [(&str, &str); 5] = [
    ("edit/unchanged.case", "the exit code says that nothing was to be done"),
    ("encrypt/bad-arn.case", "the message itself shows what is right"),
    ("exec-env/exit-status.case", "the failure is the command's own"),
    ("exec-env/killed.case", "the failure is the command's own"),
    ("exec-file/exit-status.case", "the failure is the command's own"),
];

#[test]
fn every_case_holds() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/cases");
    let mut failures = Vec::new();
    let mut count = 0;
    for folder in sorted(&root) {
        for path in sorted(&folder) {
            let name = path.strip_prefix(&root).unwrap().display().to_string();
            count += 1;
            if let Err(reason) =
                fs::read_to_string(&path).map_err(|error| error.to_string()).and_then(|t| run(&name, &t))
            {
                failures.push(format!("--- {name}: {reason}"));
            }
        }
    }
    assert!(count > 50, "only {count} cases were found");
    assert!(failures.is_empty(), "{} of {count} cases fail\n{}", failures.len(), failures.join("\n"));
}

#[derive(Default)]
struct Case {
    setup: Vec<Vec<String>>,
    args: Vec<String>,
    program: Option<String>,
    env: Vec<String>,
    exit: i32,
    stdin: Option<String>,
    stdout: String,
    stderr: String,
    before: BTreeMap<String, String>,
    after: BTreeMap<String, String>,
    absent: Vec<String>,
}

type Snapshot = BTreeMap<String, (String, SystemTime)>;

fn run(name: &str, text: &str) -> Result<(), String> {
    let sandbox = Sandbox::new();
    let case = parse(&filled(text, &sandbox))?;
    case.before.iter().for_each(|(name, content)| sandbox.write(name, content));
    for words in &case.setup {
        let done =
            sandbox.command(sandbox::lacre()).args(words).output().map_err(|error| error.to_string())?;
        if !done.status.success() {
            return Err(format!("setup {words:?}: {}", String::from_utf8_lossy(&done.stderr)));
        }
    }
    let before = snapshot(&sandbox.work());
    let mut command = sandbox.command(sandbox::lacre());
    if let Some(name) = &case.program {
        command.arg0(name);
    }
    command.args(&case.args);
    for setting in &case.env {
        match (setting.strip_prefix('-'), setting.split_once('=')) {
            (Some(name), _) => command.env_remove(name),
            (None, Some((name, value))) => command.env(name, value),
            (None, None) => return Err(format!("env: {setting}: neither NAME=value nor -NAME")),
        };
    }
    let done = match &case.stdin {
        Some(input) => sandbox::with_input(command, input.as_bytes()),
        None => command.output().map_err(|error| error.to_string())?,
    };
    let (stdout, stderr) = (String::from_utf8_lossy(&done.stdout), String::from_utf8_lossy(&done.stderr));
    if done.status.code() != Some(case.exit) {
        return Err(format!("{}, not {}\nstdout: {stdout}\nstderr: {stderr}", done.status, case.exit));
    }
    if case.exit != 0
        && !tells_what_to_do(&stderr)
        && !WITHOUT_NEXT_STEP.iter().any(|(known, _)| *known == name)
    {
        return Err(format!("fails without a next step\nstderr: {stderr}"));
    }
    expect("stdout", &case.stdout, &stdout)?;
    // A question to a person ends without a line break.
    let ended = if stderr.is_empty() || stderr.ends_with('\n') { "" } else { "\n" };
    expect("stderr", &case.stderr, &format!("{stderr}{ended}"))?;
    compare_files(&case, &before, &snapshot(&sandbox.work()))
}

/// A hint to a person or a script, or the usage that the parser of the command line shows.
fn tells_what_to_do(stderr: &str) -> bool {
    let is_step = |line: &str| {
        line.starts_with("hint: ") || line.contains("\"hints\":[\"") || line.starts_with("Usage: ")
    };
    stderr.lines().any(is_step) || stderr.contains("--help")
}

fn compare_files(case: &Case, before: &Snapshot, after: &Snapshot) -> Result<(), String> {
    for (name, expected) in &case.after {
        let Some((content, _)) = after.get(name) else { return Err(format!("{name} is not there")) };
        if before.get(name).is_some_and(|(old, _)| old == content) {
            return Err(format!("{name} is unchanged"));
        }
        expect(name, expected, content)?;
    }
    if let Some(name) = case.absent.iter().find(|name| after.contains_key(*name)) {
        return Err(format!("{name} is still there"));
    }
    for name in before.keys().chain(after.keys()).filter(|name| !case.after.contains_key(*name)) {
        if before.get(name) != after.get(name) && !case.absent.contains(name) {
            return Err(format!("{name} was touched"));
        }
    }
    Ok(())
}

fn parse(text: &str) -> Result<Case, String> {
    let mut case = Case::default();
    let (head, sections) = match text.find("\n=== ") {
        Some(end) => text.split_at(end + 1),
        None => (text, ""),
    };
    for line in head.lines().filter(|line| !line.is_empty() && !line.starts_with('#')) {
        let (name, value) = line.split_once(": ").ok_or_else(|| format!("`{line}` is not understood"))?;
        let words = || shlex::split(value).ok_or_else(|| format!("`{line}` has an open quote"));
        match name {
            "setup" => case.setup.push(words()?),
            "args" => case.args = words()?,
            "env" => case.env.push(value.to_owned()),
            "as" => case.program = Some(value.to_owned()),
            "exit" => case.exit = value.parse().map_err(|_| format!("`{line}` is no number"))?,
            _ => return Err(format!("`{line}` is not understood")),
        }
    }
    for section in format!("\n{}", sections.strip_suffix('\n').unwrap_or(sections)).split("\n=== ").skip(1) {
        let (title, content) = match section.split_once('\n') {
            Some((title, content)) => (title, format!("{content}\n")),
            None => (section, String::new()),
        };
        match title.split_once(' ').unwrap_or((title, "")) {
            ("file", name) => drop(case.before.insert(name.to_owned(), content)),
            ("after", name) => drop(case.after.insert(name.to_owned(), content)),
            ("absent", name) => case.absent.push(name.to_owned()),
            ("stdin", "") => case.stdin = Some(content),
            ("stdout", "") => case.stdout = content,
            ("stderr", "") => case.stderr = content,
            _ => return Err(format!("section `{title}` is not understood")),
        }
    }
    if case.args.is_empty() { Err("no `args:` line".to_owned()) } else { Ok(case) }
}

fn filled(text: &str, sandbox: &Sandbox) -> String {
    let mut text = text.to_owned();
    for role in ["ops", "ci", "stranger"] {
        text = text.replace(&format!("{{{role}}}"), &sandbox::recipient(role));
    }
    let keys = sandbox::key_file("ops").parent().unwrap().display().to_string();
    text.replace("{keys}", &keys)
        .replace("{work}", &sandbox.work().display().to_string())
        .replace("{home}", &sandbox.home().display().to_string())
}

fn expect(what: &str, pattern: &str, found: &str) -> Result<(), String> {
    let lines = |text: &str| text.split_inclusive('\n').map(str::to_owned).collect::<Vec<_>>();
    match matches_lines(&lines(pattern), &lines(found)) {
        true => Ok(()),
        false => Err(format!("{what} differs\nexpected:\n{pattern}\nfound:\n{found}")),
    }
}

fn matches_lines(patterns: &[String], found: &[String]) -> bool {
    match patterns {
        [] => found.is_empty(),
        [any, rest @ ..] if any.trim_end() == "{...}" => {
            (0..=found.len()).any(|skipped| matches_lines(rest, &found[skipped..]))
        }
        [pattern, rest @ ..] => {
            found.first().is_some_and(|line| matches_line(pattern, line)) && matches_lines(rest, &found[1..])
        }
    }
}

fn matches_line(pattern: &str, line: &str) -> bool {
    match pattern.split_once("{*}") {
        None => pattern == line,
        Some((start, rest)) => line.strip_prefix(start).is_some_and(|line| {
            (0..=line.len()).filter(|at| line.is_char_boundary(*at)).any(|at| matches_line(rest, &line[at..]))
        }),
    }
}

fn snapshot(folder: &Path) -> Snapshot {
    let mut found = Snapshot::new();
    let mut pending = vec![folder.to_owned()];
    while let Some(next) = pending.pop() {
        for path in sorted(&next) {
            if path.is_dir() {
                pending.push(path);
                continue;
            }
            let name = path.strip_prefix(folder).unwrap().display().to_string();
            let changed = path.metadata().unwrap().modified().unwrap();
            found.insert(name, (fs::read_to_string(&path).unwrap_or_default(), changed));
        }
    }
    found
}

fn sorted(folder: &Path) -> Vec<std::path::PathBuf> {
    let mut paths: Vec<_> = fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path()).collect();
    paths.sort();
    paths
}

#[test]
fn what_the_runner_does_not_understand_fails() {
    for text in
        ["args: keygen\nfoo: bar\n", "args: x\n=== what\n", "exit: 1\n", "args: x\nexit: one\n", "hello\n"]
    {
        assert!(parse(text).is_err(), "{text}");
    }
    assert!(expect("x", "a{*}c\n{...}\nz\n", "abbc\n1\n2\nz\n").is_ok());
    assert!(expect("x", "a{*}c\n", "abbd\n").is_err() && expect("x", "", "a\n").is_err());
}
