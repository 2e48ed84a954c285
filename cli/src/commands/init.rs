//! `lacre init`: a repository made ready, with rules for sealing and readable diffs.

use std::fs;
use std::path::{Path, PathBuf};

use clap::Args;
use lacre_crypto::Pattern;
use serde_json::json;

use super::{Context, keygen};
use crate::args::JsonArgs;
use crate::config::CONFIG_NAME;
use crate::error::{CommandError, Kind};
use crate::files::{self, Privacy};
use crate::{git, recipients};

/// What git is told to show for sealed files.
const DIFF_SETTINGS: [(&str, &str); 2] = [
    ("diff.lacre.textconv", "lacre textconv"),
    // git would keep plaintext in its notes otherwise, and push it.
    ("diff.lacre.cachetextconv", "false"),
];

/// File names whose diffs are shown opened; other files pass through unchanged.
const DIFF_PATTERNS: [&str; 3] = ["*.json", "*.yaml", "*.yml"];

/// Make the rules for sealing in this folder, and let git show readable diffs.
///
/// Writes `.sops.yaml` with one rule for your recipient, adds lines to `.gitattributes`, and sets `diff.lacre` in
/// the repository's git configuration. Nothing that is there already is overwritten.
#[derive(Args, Debug)]
#[command(after_help = "Example:\n  lacre init\n  lacre init --age age1…,age1… --path-regex '^secrets/'")]
pub(crate) struct InitArgs {
    /// The folder to make ready, instead of this one.
    #[arg(value_name = "DIR")]
    folder: Option<PathBuf>,
    /// Seal for these age recipients instead of your own identity, which is made if there is none.
    #[arg(long, short, value_name = "RECIPIENT,…", value_delimiter = ',')]
    age: Vec<String>,
    /// Apply the rule to files whose path matches, instead of all.
    #[arg(long, value_name = "PATTERN")]
    path_regex: Option<String>,
    #[command(flatten)]
    pub(super) script: JsonArgs,
}

pub(crate) fn run(args: &InitArgs, context: &Context) -> Result<(), CommandError> {
    let folder = args.folder.clone().unwrap_or_default();
    let config = folder.join(CONFIG_NAME);
    if config.symlink_metadata().is_ok() {
        return Err(CommandError::on(Kind::Write, config.display(), "exists already").hint(
            "add your rule or recipient to it by hand, then run `lacre updatekeys` on the sealed files",
        ));
    }
    if let Some(pattern) = &args.path_regex {
        Pattern::new("--path-regex", pattern).map_err(|error| {
            CommandError::general(error.to_string())
                .hint("patterns are those of Go's regexp package, without look-around")
        })?;
    }
    let recipients = recipients(args, context)?;
    files::create(&config, rules(args, &recipients).as_bytes(), Privacy::Shared)?;
    add_attributes(&folder.join(".gitattributes"))?;
    let diffs = git::is_work_tree(&folder)
        && DIFF_SETTINGS.iter().all(|(key, value)| git::configure(&folder, key, value));
    if !diffs {
        context.output.warn("this is no git repository yet; after `git init`, say `git config diff.lacre.textconv 'lacre textconv'`");
    }
    let line = format!(
        "made {}\nnext:\n  lacre edit secrets.yaml            a new sealed file\n  \
         lacre encrypt --in-place FILE      seal one that exists\n  \
         git add .sops.yaml .gitattributes  the rules belong into git, sealed files too",
        config.display(),
    );
    context.output.done(&line, &json!({ "config": config, "recipients": recipients, "diffs": diffs }))
}

/// The recipients that were named, else the user's own, whose identity is made if there is none.
fn recipients(args: &InitArgs, context: &Context) -> Result<Vec<String>, CommandError> {
    if !args.age.is_empty() {
        for word in &args.age {
            recipients::parse_age(word)?;
        }
        return Ok(args.age.clone());
    }
    let file = keygen::default_file()?;
    if file.exists() {
        return keygen::recipient_in(&file).map(|recipient| vec![recipient]);
    }
    let recipient = keygen::make(&file, keygen::KeyKind::X25519)?;
    context.output.note(&format!("identity written to {}; keep a copy in a safe place", file.display()));
    Ok(vec![recipient])
}

fn rules(args: &InitArgs, recipients: &[String]) -> String {
    let mut text =
        String::from("# Who can open what is sealed here. The first rule that matches a file counts.\n");
    text += "creation_rules:\n  - ";
    if let Some(pattern) = &args.path_regex {
        text += &format!("path_regex: '{}'\n    ", pattern.replace('\'', "''"));
    }
    text += "age:\n";
    for recipient in recipients {
        text += &format!("      - {}\n", recipient.trim());
    }
    text
}

/// Adds the lines that are missing, after whatever stands there.
fn add_attributes(path: &Path) -> Result<(), CommandError> {
    let old = match fs::read_to_string(path) {
        Ok(text) => text,
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => String::new(),
        Err(error) => {
            return Err(CommandError::on(Kind::Read, path.display(), files::plain_words(&error))
                .hint("make it a readable text"));
        }
    };
    let mut new = old.clone();
    for pattern in DIFF_PATTERNS {
        let line = format!("{pattern} diff=lacre");
        if old.lines().any(|present| present.trim() == line) {
            continue;
        }
        if !new.is_empty() && !new.ends_with('\n') {
            new.push('\n');
        }
        new += &line;
        new.push('\n');
    }
    if new == old { Ok(()) } else { files::write(path, new.as_bytes(), Privacy::Shared) }
}
