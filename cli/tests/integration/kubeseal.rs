//! In the place of kubeseal: the same command lines, given to the real kubeseal 0.40 and to a link to `lacre` of that
//! name, in twin folders with the same files and keys; and both ways, what one seals the other opens.
//!
//! `kubeseal/rows.txt` holds a command line each, with `{keys}` for the folder of keys, and behind ` ## ` what else is to
//! be known about it, separated by ` | `:
//!
//! ```text
//! stdin FILE       what comes in
//! env NAME=value   set for both
//! says TEXT        both say this on standard error
//! ours CODE WHY    we end otherwise on purpose
//! output WHY       what comes out differs on purpose
//! files WHY        the files left differ on purpose
//! ```
//!
//! Compared are the exit code, standard output with sealed values taken out, and the files left.

mod both_ways;
mod cluster;

use std::collections::BTreeMap;
use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

use xtask::peers::sealed_secrets;
use xtask::process::{Finished, Tool};

use crate::sandbox::{self, Sandbox};

/// Both programs, the real one first.
fn both(sandbox: &Sandbox) -> [PathBuf; 2] {
    let link = sandbox.home().join("kubeseal");
    if !link.exists() {
        std::os::unix::fs::symlink(sandbox::lacre(), &link).unwrap();
    }
    [sealed_secrets::KUBESEAL.path().unwrap(), link]
}

/// The folder of keys and certificates.
fn keys() -> PathBuf {
    sandbox::key_file("ops").parent().unwrap().to_owned()
}

/// `text` with every sealed value replaced by one word.
fn without_values(text: &[u8]) -> String {
    let text = String::from_utf8_lossy(text);
    let is_inside = |character: char| character.is_ascii_alphanumeric() || "+/=".contains(character);
    let mut shown = String::new();
    for part in text.split_inclusive(|character| !is_inside(character)) {
        let value = part.trim_end_matches(|character| !is_inside(character));
        match value.len() > 300 && value.starts_with('A') {
            true => shown.push_str(&part.replace(value, "SEALED")),
            false => shown.push_str(part),
        }
    }
    shown
}

#[derive(Default)]
struct Row {
    words: Vec<String>,
    stdin: Option<String>,
    env: Vec<(String, String)>,
    says: Vec<String>,
    ours: Option<i32>,
    output_differs: bool,
    files_differ: bool,
}

impl Row {
    fn read(line: &str) -> Self {
        let (words, notes) = line.split_once(" ## ").unwrap_or((line, ""));
        let filled = words.replace("{keys}", &keys().display().to_string());
        let mut row = Self { words: shlex::split(&filled).unwrap(), ..Self::default() };
        for note in notes.split(" | ").filter(|note| !note.is_empty()) {
            let (name, value) = note.split_once(' ').unwrap();
            match name {
                "stdin" => row.stdin = Some(value.to_owned()),
                "env" => {
                    let (name, value) = value.split_once('=').unwrap();
                    let value = value.replace("{keys}", &keys().display().to_string());
                    row.env.push((name.to_owned(), value));
                }
                "says" => row.says.push(value.to_owned()),
                "ours" => {
                    let (code, why) = value.split_once(' ').unwrap();
                    assert!(!why.is_empty());
                    row.ours = Some(code.parse().unwrap());
                }
                "output" => row.output_differs = true,
                "files" => row.files_differ = true,
                _ => panic!("`{line}`: {name} is not understood"),
            }
        }
        row
    }

    /// What is wrong with it; nothing when both do the same.
    fn check(&self, programs: &[PathBuf; 2], files: &BTreeMap<String, Vec<u8>>) -> Option<String> {
        let [stock, ours] = [0, 1].map(|side| self.run(&programs[side], files));
        let expected = self.ours.or(stock.0.code);
        if ours.0.code != expected {
            let texts = [&stock, &ours].map(|ended| ended.0.stderr_text());
            return Some(format!(
                "{:?}, not {expected:?}\nstock: {}\nours: {}",
                ours.0.code, texts[0], texts[1]
            ));
        }
        if self.ours.is_some_and(|code| stock.0.code == Some(code)) {
            return Some("is said to end otherwise, and does not".to_owned());
        }
        for says in &self.says {
            for (side, ended) in [("stock", &stock), ("ours", &ours)] {
                if !ended.0.stderr_text().contains(says.as_str()) {
                    return Some(format!("{side} does not say `{says}` but {}", ended.0.stderr_text()));
                }
            }
        }
        let outputs = [&stock, &ours].map(|ended| without_values(&ended.0.stdout));
        if !self.output_differs && self.ours.is_none() && outputs[0] != outputs[1] {
            return Some(format!("stock:\n{}\nours:\n{}", outputs[0], outputs[1]));
        }
        if !self.files_differ && self.ours.is_none() && stock.1 != ours.1 {
            return Some(format!("files: stock {:?}\nours {:?}", stock.1, ours.1));
        }
        None
    }

    fn run(&self, program: &Path, files: &BTreeMap<String, Vec<u8>>) -> (Finished, BTreeMap<String, String>) {
        let folder = tempfile::tempdir().unwrap();
        files.iter().for_each(|(name, content)| fs::write(folder.path().join(name), content).unwrap());
        let mut tool = Tool::new(program).args(&self.words).dir(folder.path()).envs(self.env.iter().cloned());
        tool = tool.stdin(self.stdin.as_ref().map_or_else(Vec::new, |name| files[name].clone()));
        (tool.run().unwrap(), left(folder.path()))
    }
}

/// The files that are left, with their modes.
fn left(folder: &Path) -> BTreeMap<String, String> {
    let entries = fs::read_dir(folder).unwrap().map(|entry| entry.unwrap());
    let shown = entries.map(|entry| {
        let mode = entry.metadata().unwrap().permissions().mode() & 0o777;
        let content = without_values(&fs::read(entry.path()).unwrap());
        (entry.file_name().into_string().unwrap(), format!("{mode:o} {content}"))
    });
    shown.collect()
}

#[test]
fn the_same_command_lines_do_the_same() {
    let sandbox = Sandbox::new();
    let programs = both(&sandbox);
    let mut files = BTreeMap::new();
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/integration/kubeseal/files");
    for entry in fs::read_dir(&folder).unwrap() {
        let entry = entry.unwrap();
        files.insert(entry.file_name().into_string().unwrap(), fs::read(entry.path()).unwrap());
    }
    let certificate = keys().join("sealing.crt");
    for (name, form) in [("sealed.json", "json"), ("sealed.yaml", "yaml")] {
        let sealed = Tool::new(&programs[0]).args(["-o", form, "--cert"]).arg(&certificate);
        let sealed = sealed.stdin(files["golden.yaml"].clone()).run().unwrap().success().unwrap();
        files.insert(name.to_owned(), sealed);
    }
    let rows =
        include_str!("kubeseal/rows.txt").lines().filter(|line| !line.is_empty() && !line.starts_with('#'));
    let mut failures = Vec::new();
    let mut count = 0;
    for line in rows {
        count += 1;
        if let Some(problem) = Row::read(line).check(&programs, &files) {
            failures.push(format!("--- {line}\n{problem}"));
        }
    }
    assert!(count > 40, "only {count} rows");
    assert!(failures.is_empty(), "{} of {count} rows\n{}", failures.len(), failures.join("\n"));
}

/// Letter, name, type and default of each flag that a help text lists.
fn listed(help: &str) -> Vec<(String, String)> {
    let lines = help.lines().filter(|line| line.starts_with("  -") || line.starts_with("      --"));
    let flags = lines.map(|line| {
        let left = line.trim_start().split("   ").next().unwrap();
        let default = line.rfind("(default ").map_or("", |at| &line[at..]);
        (left.trim_end().to_owned(), default.to_owned())
    });
    flags.collect()
}

#[test]
fn the_same_flags_are_listed() {
    let sandbox = Sandbox::new();
    let [stock, ours] =
        both(&sandbox).map(|program| listed(&Tool::new(program).arg("--help").run().unwrap().stdout_text()));
    assert!(stock.len() > 40, "{stock:?}");
    assert_eq!(stock, ours);
}

#[test]
fn a_wrong_flag_leaves_nothing_in_the_output() {
    let sandbox = Sandbox::new();
    let done = Tool::new(&both(&sandbox)[1]).args(["--typo", "-o", "yaml"]).run().unwrap();
    assert_eq!((done.code, done.stdout_text().as_str()), (Some(2), ""));
    assert!(done.stderr_text().starts_with("error: unknown flag: --typo\n"), "{}", done.stderr_text());
}

#[test]
fn every_flag_is_a_variable_too() {
    let sandbox = Sandbox::new();
    let [stock, ours] = both(&sandbox).map(|program| {
        let tool = Tool::new(program)
            .env("SEALED_SECRETS_CERT", keys().join("sealing.crt"))
            .env("SEALED_SECRETS_RAW", "true")
            .env("SEALED_SECRETS_SCOPE", "cluster-wide")
            .env("SEALED_SECRETS_ALLOW_EMPTY_DATA", "");
        tool.stdin("x").run().unwrap()
    });
    assert_eq!((stock.code, ours.code), (Some(0), Some(0)), "{}", ours.stderr_text());
    assert_eq!(without_values(&stock.stdout), without_values(&ours.stdout));
}

#[test]
fn no_value_is_shown_in_what_is_said() {
    let sandbox = Sandbox::new();
    let head = "kind: Secret\nmetadata: {name: db, namespace: shop}\n";
    for (rest, code) in [
        ("stringData: {pin: 47114711}\n", 0),
        ("stringData: {pin: 047114711}\n", 1),
        ("stringData: {pin: [47114711]}\n", 1),
        ("stringData: {pin: \"47114711\\q\"}\n", 1),
        ("stringData: {pin: !!int \"47114711\"}\n", 1),
        ("data: {pin: 47114711}\n", 1),
        ("data: {pin: \"47114711*\"}\n", 1),
        ("x: &x {pin: 047114711}\nstringData: *x\n", 1),
        ("stringData: {pin: '47114711'}\nstringdata: {pin: '47114711'}\n", 1),
        ("stringData: {pin: 47114711\n", 1),
    ] {
        let tool = Tool::new(&both(&sandbox)[1]).arg("--cert").arg(keys().join("sealing.crt"));
        let done = tool.stdin(format!("{head}{rest}")).run().unwrap();
        assert_eq!(done.code, Some(code), "{rest}: {}", done.stderr_text());
        assert!(
            !(done.stderr_text() + &done.stdout_text()).contains("47114711"),
            "{rest}: {}",
            done.stderr_text()
        );
    }
}
