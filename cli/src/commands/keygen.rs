//! `lacre keygen`: a new age identity, where sops and Lacre look for it.

use std::fs::DirBuilder;
use std::os::unix::fs::DirBuilderExt;
use std::path::{Path, PathBuf};

use clap::Args;
use lacre_crypto::Timestamp;
use lacre_crypto::recipient::age::{AgeIdentity, read_identities};
use serde_json::json;

use super::Context;
use crate::args::JsonArgs;
use crate::error::{CommandError, Kind};
use crate::files::{self, Privacy};
use crate::identities;

/// Make an age identity and print its recipient, the half that others seal for.
///
/// The private half goes to `sops/age/keys.txt` in your configuration folder, where Lacre and sops find it, and is
/// never printed. An existing file is not overwritten.
#[derive(Args, Debug)]
#[command(after_help = "Example:\n  lacre keygen\n  lacre keygen --pq --output ci.agekey")]
pub(crate) struct KeygenArgs {
    /// Make a post-quantum identity (ML-KEM-768 with X25519), which age 1.3, sops 3.13 and Lacre can use.
    #[arg(long, visible_alias = "post-quantum")]
    pq: bool,
    /// Write the identity to this file; `-` prints it.
    #[arg(long, short, value_name = "FILE")]
    output: Option<PathBuf>,
    #[command(flatten)]
    pub(super) script: JsonArgs,
}

pub(crate) fn run(args: &KeygenArgs, context: &Context) -> Result<(), CommandError> {
    if args.output.as_deref() == Some(Path::new("-")) {
        let text = args.kind().generate().to_file_text(Timestamp::now());
        return context.output.secret(text.expose_secret().as_bytes());
    }
    let path = match &args.output {
        Some(path) => path.clone(),
        None => default_file()?,
    };
    let recipient = make(&path, args.kind())?;
    context.output.note(&format!("identity written to {}; keep a copy in a safe place", path.display()));
    context.output.answer(&recipient, &json!({ "recipient": recipient, "file": path }))
}

impl KeygenArgs {
    fn kind(&self) -> KeyKind {
        if self.pq { KeyKind::PostQuantum } else { KeyKind::X25519 }
    }
}

/// The native kinds of age identities.
#[derive(Clone, Copy)]
pub(super) enum KeyKind {
    PostQuantum,
    X25519,
}

impl KeyKind {
    fn generate(self) -> AgeIdentity {
        match self {
            Self::PostQuantum => AgeIdentity::generate_post_quantum(),
            Self::X25519 => AgeIdentity::generate(),
        }
    }
}

/// Makes an identity at `path` and gives its recipient. Refuses to overwrite.
pub(super) fn make(path: &Path, kind: KeyKind) -> Result<String, CommandError> {
    if path.symlink_metadata().is_ok() {
        return Err(CommandError::on(
            Kind::Write,
            path.display(),
            "exists already; a lost identity cannot be made again",
        )
        .hint("write the new one elsewhere with `--output FILE`, and append it by hand if you want both"));
    }
    if let Some(folder) = path.parent() {
        let made = DirBuilder::new().recursive(true).mode(0o700).create(folder);
        made.map_err(|error| {
            CommandError::on(Kind::Write, folder.display(), files::plain_words(&error))
                .hint("name a file elsewhere with `--output FILE`")
        })?;
    }
    let identity = kind.generate();
    let text = identity.to_file_text(Timestamp::now());
    files::create(path, text.expose_secret().as_bytes(), Privacy::OwnerAlone)?;
    Ok(identity.recipient().to_string())
}

/// The recipient of the first identity in `path`.
pub(super) fn recipient_in(path: &Path) -> Result<String, CommandError> {
    let text = files::read(Some(path), None)?.content;
    let identities = read_identities(&text).map_err(|error| {
        CommandError::on(Kind::Read, path.display(), error)
            .hint("correct that file, or name recipients with `--age`")
    })?;
    let first = identities.first().map(|identity| identity.recipient().to_string());
    first.ok_or_else(|| {
        CommandError::on(Kind::Read, path.display(), "holds no identity")
            .hint("remove it and make one with `lacre keygen`, or name recipients with `--age`")
    })
}

/// Where the user's own identity lives.
pub(super) fn default_file() -> Result<PathBuf, CommandError> {
    identities::default_age_file().ok_or_else(|| {
        CommandError::new(Kind::Write, "no home folder is known").hint("name a file with `--output FILE`")
    })
}
