//! `lacre kube unseal`: the Secrets that SealedSecrets stand for, opened with private keys at hand and no cluster.

use std::path::PathBuf;

use clap::Args;
use lacre_crypto::SecretText;
use lacre_crypto::object::sealed_secret::{KIND, MissingKey};

use super::sealed_files::OwnKeyArgs;
use crate::commands::Context;
use crate::error::{CommandError, Kind};
use crate::files::{self, Privacy};
use crate::sealed_secrets::print::Form;
use crate::sealed_secrets::{manifest, unsealed};

/// Open SealedSecrets with private keys, and print the Secrets.
///
/// For whoever holds a backup of the controller's keys: recovery, migration, a look at what is deployed. Templates are
/// rendered as the controller does it. No cluster is asked.
#[derive(Args, Debug)]
#[command(after_help = "Example:\n  lacre kube unseal --key keys.yaml sealed.yaml\n  \
    lacre kube unseal --key keys.yaml -o /dev/shm/db.yaml < sealed.yaml")]
pub(crate) struct UnsealArgs {
    /// The manifest; standard input if absent or `-`.
    #[arg(value_name = "FILE")]
    file: Option<PathBuf>,
    /// Write to this file, readable by its owner alone, instead of standard output.
    #[arg(long, short, value_name = "FILE")]
    output: Option<PathBuf>,
    /// Print `yaml` or `json`.
    #[arg(long, value_name = "FORMAT", default_value = "yaml")]
    format: String,
    /// Let a template that names a missing key print `<no value>` instead of failing.
    #[arg(long)]
    allow_missing_keys: bool,
    #[command(flatten)]
    keys: OwnKeyArgs,
}

pub(crate) fn run(args: &UnsealArgs, context: &Context) -> Result<(), CommandError> {
    let form = Form::from_word(&args.format)?;
    let keys = args.keys.read(context)?;
    if keys.is_empty() {
        return Err(CommandError::new(Kind::NoKey, "no private key is named")
            .hint("name a backup of the controller's keys with `--key FILE`"));
    }
    let input = files::read(args.file.as_deref(), None)?;
    let name = input.name.display().to_string();
    let mut sealed = manifest::read(&name, &input.content, Some(context.output))?;
    sealed.retain(|manifest| manifest.kind() == Some(KIND));
    if sealed.is_empty() {
        return Err(CommandError::on(Kind::General, name, "holds no SealedSecret")
            .hint("name the file that holds some"));
    }
    let missing_key = if args.allow_missing_keys { MissingKey::Zero } else { MissingKey::Error };
    let mut printed = String::new();
    for one in &sealed {
        printed.push_str(&form.print(&unsealed::open(one, &keys, missing_key)?));
    }
    let printed = SecretText::new(printed);
    match &args.output {
        Some(path) => files::write(path, printed.expose_secret().as_bytes(), Privacy::OwnerAlone),
        None => context.output.secret(printed.expose_secret().as_bytes()),
    }
}
