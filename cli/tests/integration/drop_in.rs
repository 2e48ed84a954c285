//! In the place of sops: the same command lines, given to the real sops 3.13 and to a link to `lacre` named `sops`,
//! in twin folders with the same files and keys.
//!
//! The tables in `drop_in/` hold a command line each, with `{ops}` and `{stranger}` for recipients, and behind ` ## `
//! what else is to be known about it, separated by ` | `:
//!
//! ```text
//! stdin FILE       what comes in
//! env NAME=value   set for both
//! says TEXT        both say this on standard error
//! ours CODE WHY    we end otherwise on purpose
//! output WHY       what comes out differs on purpose
//! content WHY      the files left differ on purpose
//! ```
//!
//! Compared are the exit code, standard output, and the files left: names, content, and whether they were written. What
//! is sealed must open with the other tool to the same text; so the documents here are written as sops would print
//! them. After a command that fails on both sides, standard output is not looked at, since sops prints its help there.

mod tools;

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};

use crate::sandbox::{self, Sandbox};
use tools::{Ended, Twins};

/// How many rows run at a time.
const WORKERS: usize = 4;

/// Files to begin with, and command lines that run on them.
struct Scene {
    name: &'static str,
    config: Option<&'static str>,
    rows: &'static str,
}

const SCENES: &[Scene] = &[
    Scene { name: "opening", config: None, rows: include_str!("drop_in/opening.txt") },
    Scene { name: "changing", config: None, rows: include_str!("drop_in/changing.txt") },
    Scene { name: "sealing", config: None, rows: include_str!("drop_in/sealing.txt") },
    Scene { name: "usage", config: None, rows: include_str!("drop_in/usage.txt") },
    Scene {
        name: "rule for all",
        config: Some("creation_rules:\n  - age: {ops}\n"),
        rows: include_str!("drop_in/rule-for-all.txt"),
    },
    Scene {
        name: "no rule matches",
        config: Some("creation_rules:\n  - path_regex: other\\.yaml$\n    age: {ops}\n"),
        rows: include_str!("drop_in/no-rule-matches.txt"),
    },
    Scene {
        name: "rule for a stranger",
        config: Some("creation_rules:\n  - age: {stranger}\n"),
        rows: include_str!("drop_in/rule-for-a-stranger.txt"),
    },
    Scene {
        name: "rule with a selector",
        config: Some("creation_rules:\n  - encrypted_regex: ^pass\n    age: {ops}\n"),
        rows: include_str!("drop_in/rule-with-a-selector.txt"),
    },
    Scene {
        name: "rule without keys",
        config: Some("creation_rules:\n  - path_regex: yaml$\n"),
        rows: include_str!("drop_in/rule-without-keys.txt"),
    },
    Scene {
        name: "broken configuration",
        config: Some("creation_rules: [\n"),
        rows: include_str!("drop_in/broken-configuration.txt"),
    },
    Scene {
        name: "empty configuration",
        config: Some(""),
        rows: include_str!("drop_in/empty-configuration.txt"),
    },
    Scene {
        name: "groups",
        config: Some(
            "creation_rules:\n  - shamir_threshold: 1\n    key_groups:\n      - age:\n          - {ops}\n      - age:\n          - {stranger}\n",
        ),
        rows: include_str!("drop_in/groups.txt"),
    },
];

#[test]
fn the_same_command_line_ends_the_same_way() {
    let twins = Twins::new();
    let originals = originals(&twins);
    let mut rows = Vec::new();
    for scene in SCENES {
        let mut files = originals.clone();
        if let Some(config) = scene.config {
            files.insert(".sops.yaml".to_owned(), tools::filled(config).into_bytes());
        }
        let files = Arc::new(files);
        let written = scene.rows.lines().filter(|row| !row.trim().is_empty() && !row.starts_with('#'));
        rows.extend(written.map(|row| (scene.name, row, Arc::clone(&files))));
    }
    assert!(rows.len() > 300, "only {} command lines were found", rows.len());
    let (next, failures) = (AtomicUsize::new(0), Mutex::new(Vec::new()));
    std::thread::scope(|scope| {
        for _ in 0..WORKERS {
            scope.spawn(|| {
                while let Some((scene, row, files)) = rows.get(next.fetch_add(1, Ordering::Relaxed)) {
                    if let Err(reason) = Row::parse(row).and_then(|row| row.run(&twins, files)) {
                        failures.lock().unwrap().push(format!("--- {scene}: {row}\n{reason}"));
                    }
                }
            });
        }
    });
    let failures = failures.into_inner().unwrap();
    assert!(failures.is_empty(), "{} of {} differ\n{}", failures.len(), rows.len(), failures.join("\n"));
}

/// Documents in all formats, sealed and not, made by the real sops.
fn originals(twins: &Twins) -> BTreeMap<String, Vec<u8>> {
    let plain = [
        (
            "plain.yaml",
            "user: admin\npassword: correct horse\nport: 5432\ndb:\n    host: h\n    list:\n        - 1\n        - s\n",
        ),
        (
            "plain.json",
            "{\n\t\"user\": \"admin\",\n\t\"port\": 5432,\n\t\"db\": {\n\t\t\"host\": \"h\"\n\t}\n}\n",
        ),
        ("plain.env", "USER=admin\nPASSWORD=correct horse\n"),
        ("plain.ini", "[db]\nuser     = admin\npassword = secret\n"),
        ("plain.txt", "just text\n"),
    ];
    let mut files: BTreeMap<String, Vec<u8>> = BTreeMap::new();
    for (name, text) in plain {
        files.insert(name.to_owned(), text.into());
        let sealed = twins.seal_with_sops(name, text, &sandbox::recipient("ops"));
        files.insert(name.replace("plain", "sealed"), sealed);
    }
    let yaml = plain[0].1;
    files.insert(
        "foreign.yaml".to_owned(),
        twins.seal_with_sops("x.yaml", yaml, &sandbox::recipient("stranger")),
    );
    let both = format!("{},{}", sandbox::recipient("ops"), sandbox::recipient("stranger"));
    files.insert("both.yaml".to_owned(), twins.seal_with_sops("x.yaml", yaml, &both));
    let sealed = String::from_utf8(files["sealed.yaml"].clone()).unwrap();
    let without = |start: &str| {
        sealed.lines().filter(|line| !line.starts_with(start)).collect::<Vec<_>>().join("\n") + "\n"
    };
    files.insert("line-gone.yaml".to_owned(), without("port:").into_bytes());
    files.insert("no-mac.yaml".to_owned(), without("    mac:").into_bytes());
    files.insert("value-plain.yaml".to_owned(), format!("user: plain\n{}", without("user:")).into_bytes());
    for (name, text) in [
        ("empty.yaml", ""),
        ("empty.json", ""),
        ("empty.env", ""),
        ("empty.ini", ""),
        ("empty.txt", ""),
        ("list.yaml", "- a\n"),
        ("broken.yaml", "a: [\n"),
        ("answer-no.txt", "n\n"),
        ("answer-yes.txt", "y\n"),
        ("value.json", "\"from a file\""),
        ("dir/plain.yaml", "a: b\n"),
        ("append.sh", "#!/bin/sh\necho 'more: text' >> \"$1\"\n"),
        ("append-env.sh", "#!/bin/sh\necho 'MORE=text' >> \"$1\"\n"),
        ("leave.sh", "#!/bin/sh\nexit 0\n"),
        ("fail.sh", "#!/bin/sh\nexit 3\n"),
    ] {
        files.insert(name.to_owned(), text.into());
    }
    files
}

/// A command line and what is to be known about it.
#[derive(Default)]
struct Row {
    words: Vec<String>,
    stdin: Option<String>,
    env: Vec<(String, String)>,
    says: Vec<String>,
    ours: Option<i32>,
    other_output: bool,
    other_content: bool,
}

impl Row {
    fn parse(text: &str) -> Result<Self, String> {
        let text = tools::filled(text);
        let (words, notes) = text.split_once(" ## ").unwrap_or((&text, ""));
        let words = shlex::split(words).ok_or("an open quote")?;
        let mut row =
            Self { words: words.into_iter().filter(|word| word != "NOTHING").collect(), ..Self::default() };
        for note in notes.split(" | ").filter(|note| !note.is_empty()) {
            let (kind, rest) = note.split_once(' ').ok_or_else(|| format!("`{note}` is not understood"))?;
            match (kind, rest.split_once('=')) {
                ("stdin", _) => row.stdin = Some(rest.to_owned()),
                ("env", Some((name, value))) => row.env.push((name.to_owned(), value.to_owned())),
                ("output", _) => row.other_output = true,
                ("content", _) => row.other_content = true,
                ("says", _) => row.says.push(rest.to_owned()),
                ("ours", _) => {
                    let (code, why) = rest.split_once(' ').ok_or("no reason")?;
                    row.ours = Some(code.parse().map_err(|_| format!("`{why}`: no code"))?);
                }
                _ => return Err(format!("`{note}` is not understood")),
            }
        }
        Ok(row)
    }

    fn run(&self, twins: &Twins, files: &BTreeMap<String, Vec<u8>>) -> Result<(), String> {
        let stdin = self.stdin.as_ref().map(|name| files[name].clone());
        let [stock, ours] = twins.run(&self.words, &self.env, stdin.as_deref(), files);
        let told = || format!("stock: {}\nours: {}", stock.errors(), ours.errors());
        let wanted = self.ours.unwrap_or(stock.code);
        if ours.code != wanted {
            return Err(format!("{} here and {} there\n{}", ours.code, stock.code, told()));
        }
        if self.ours == Some(stock.code) {
            return Err("noted as another code, and it is the same".to_owned());
        }
        for words in &self.says {
            for side in [&stock, &ours] {
                if !side.errors().contains(words) {
                    return Err(format!("`{words}` is not said\n{}", told()));
                }
            }
        }
        if self.ours.is_some() {
            return Ok(());
        }
        if stock.code == 0 && !self.other_output {
            twins.compare("standard output", &stock.output, &ours.output)?;
        }
        if self.other_content { Ok(()) } else { compare_files(twins, files, &stock, &ours) }
    }
}

fn compare_files(
    twins: &Twins,
    before: &BTreeMap<String, Vec<u8>>,
    stock: &Ended,
    ours: &Ended,
) -> Result<(), String> {
    let names = |side: &Ended| side.files.keys().cloned().collect::<Vec<_>>();
    if names(stock) != names(ours) {
        return Err(format!("files: {:?} here, {:?} there", names(ours), names(stock)));
    }
    let written = |side: &Ended, name: &String| side.files.get(name) != before.get(name);
    if let Some(name) = before.keys().find(|name| written(stock, name) != written(ours, name)) {
        let by = if written(stock, name) { "sops" } else { "us" };
        return Err(format!("{name} is written by {by} alone"));
    }
    stock.files.iter().try_for_each(|(name, content)| twins.compare(name, content, &ours.files[name]))
}

/// Every flag that sops prints in its help is one that we know.
#[test]
fn every_flag_of_sops_is_known() {
    let twins = Twins::new();
    let verbs = "|decrypt|edit|encrypt|exec-env|exec-file|filestatus|groups add|groups delete|keyservice|publish|rotate|set|unset|updatekeys";
    let mut count = 0;
    for verb in verbs.split('|') {
        let words: Vec<String> = verb.split_whitespace().chain(["--help"]).map(str::to_owned).collect();
        let [stock, ours] = twins.run(&words, &[], None, &BTreeMap::new());
        let (theirs, known) = (flags(&stock.output), flags(&ours.output));
        assert!(!theirs.is_empty(), "sops {verb} --help was not understood");
        count += theirs.len();
        let unknown: Vec<_> = theirs.iter().filter(|flag| !known.contains(flag)).collect();
        assert!(unknown.is_empty(), "sops {verb}: {unknown:?} are not in\n{known:?}");
    }
    assert!(count > 200, "only {count} flags were found");
}

/// The flags in a help text: words with dashes that lines begin with.
fn flags(help: &[u8]) -> Vec<String> {
    let help = String::from_utf8_lossy(help).into_owned();
    let words = help.lines().filter(|line| line.trim_start().starts_with('-')).flat_map(|line| {
        line.split_whitespace()
            .map(|word| word.trim_end_matches(','))
            .take_while(|word| word.starts_with('-') || *word == "value")
            .filter(|word| word.starts_with('-'))
            .map(str::to_owned)
            .collect::<Vec<_>>()
    });
    words.collect()
}

/// What other people's tools do with sops, in their own way.
#[test]
fn tools_that_call_sops_go_on_working() {
    let sandbox = Sandbox::new();
    let bin = sandbox.home().join("bin");
    fs::create_dir(&bin).unwrap();
    std::os::unix::fs::symlink(sandbox::lacre(), bin.join("sops")).unwrap();
    sandbox.write(".sops.yaml", &format!("creation_rules:\n  - age: {}\n", sandbox::recipient("ops")));
    for (name, text) in [
        ("values.yaml", "db:\n  password: correct horse\n"),
        ("app.env", "TOKEN=t0ken\nMODE=dev\n"),
        ("key.txt", "binary text\n"),
    ] {
        sandbox.write(name, text);
    }
    let script = include_str!("drop_in/tools.sh");
    let mut command = sandbox.command("bash");
    let path = format!("{}:{}", bin.display(), std::env::var("PATH").unwrap());
    let done = command.env("PATH", path).args(["-euc", script]).output().unwrap();
    let (told, errors) = (String::from_utf8_lossy(&done.stdout), String::from_utf8_lossy(&done.stderr));
    assert!(done.status.success(), "{told}\n{errors}");
    assert!(told.ends_with("all of them\n"), "{told}\n{errors}");
}

#[test]
fn notes_that_are_not_understood_fail() {
    for row in ["decrypt a ## what", "decrypt a ## env NAME", "decrypt a ## ours 1", "decrypt 'a"] {
        assert!(Row::parse(row).is_err(), "{row}");
    }
    assert!(
        Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/integration/drop_in").read_dir().unwrap().count()
            > 10
    );
}
