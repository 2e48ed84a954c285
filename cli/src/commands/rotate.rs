//! `lacre rotate`: a new data key, all values sealed anew, recipients added or removed.

use std::path::PathBuf;

use clap::Args;
use lacre_crypto::recipient::RecipientId;
use lacre_crypto::{EncryptOptions, Groups, OpenFile, WriteOptions};
use serde_json::json;

use super::Context;
use crate::args::{AwsArgs, FormatArgs, JsonArgs, KeyArgs, MacArgs, TargetArgs};
use crate::error::{CommandError, Kind};
use crate::opening::{self, Leniency, Opener, strangers};
use crate::output::Output;
use crate::targets::{Target, Targets};
use crate::wrapping::Ready;
use crate::{batch, compat, config, delivery, files, recipients, sealing};

/// Seal documents under new data keys, for the same recipients or changed ones.
///
/// Whoever knew the old data key cannot read what is written from now on. What they could read before stays in git
/// history: change the secrets themselves when that matters.
#[derive(Args, Debug)]
#[command(after_help = "Example:\n  lacre rotate --in-place --rm-age age1… secrets.yaml")]
pub(crate) struct RotateArgs {
    /// The sealed documents, or folders with `--recursive`.
    #[arg(value_name = "FILE", required = true)]
    files: Vec<PathBuf>,
    /// Take the sealed files of folders, too. Hidden folders and symbolic links in them are left out.
    #[arg(long, short)]
    recursive: bool,
    #[command(flatten)]
    target: TargetArgs,
    #[command(flatten, next_help_heading = "Recipients")]
    changes: ChangeArgs,
    /// Take over recipients of a file without a seal that its creation rule does not name.
    #[arg(long)]
    accept_recipients: bool,
    #[command(flatten)]
    mac: MacArgs,
    #[command(flatten)]
    pub(super) script: JsonArgs,
    #[command(flatten, next_help_heading = "Format")]
    format: FormatArgs,
}

/// Recipients that join the first group or leave any.
#[derive(Args, Debug, Default)]
struct ChangeArgs {
    /// Add these age recipients.
    #[arg(long, value_name = "RECIPIENT,…", value_delimiter = ',')]
    add_age: Vec<String>,
    /// Remove these age recipients.
    #[arg(long, value_name = "RECIPIENT,…", value_delimiter = ',')]
    rm_age: Vec<String>,
    /// Add these OpenPGP fingerprints.
    #[arg(long, value_name = "FINGERPRINT,…", value_delimiter = ',')]
    add_pgp: Vec<String>,
    /// Remove these OpenPGP fingerprints.
    #[arg(long, value_name = "FINGERPRINT,…", value_delimiter = ',')]
    rm_pgp: Vec<String>,
    /// Add these AWS KMS keys.
    #[arg(long, value_name = "ARN,…", value_delimiter = ',')]
    add_kms: Vec<String>,
    /// Remove these AWS KMS keys.
    #[arg(long, value_name = "ARN,…", value_delimiter = ',')]
    rm_kms: Vec<String>,
    /// Add these keys in Google Cloud KMS.
    #[arg(long, value_name = "RESOURCE,…", value_delimiter = ',')]
    add_gcp_kms: Vec<String>,
    /// Remove these keys in Google Cloud KMS.
    #[arg(long, value_name = "RESOURCE,…", value_delimiter = ',')]
    rm_gcp_kms: Vec<String>,
    /// Add these keys in Azure Key Vault; the newest version if none is named.
    #[arg(long, value_name = "URL,…", value_delimiter = ',')]
    add_azure_kv: Vec<String>,
    /// Remove these keys in Azure Key Vault; every version if none is named.
    #[arg(long, value_name = "URL,…", value_delimiter = ',')]
    rm_azure_kv: Vec<String>,
    /// Add these transit keys of Vault or OpenBao.
    #[arg(long, value_name = "URL,…", value_delimiter = ',')]
    add_hc_vault_transit: Vec<String>,
    /// Remove these transit keys of Vault or OpenBao.
    #[arg(long, value_name = "URL,…", value_delimiter = ',')]
    rm_hc_vault_transit: Vec<String>,
    /// HuaweiCloud KMS cannot be sealed for: refused.
    #[arg(long, value_name = "KEY,…", value_delimiter = ',', hide = true)]
    add_hckms: Vec<String>,
    /// Remove these keys in HuaweiCloud KMS, for which only stock sops seals.
    #[arg(long, value_name = "KEY,…", value_delimiter = ',')]
    rm_hckms: Vec<String>,
    #[command(flatten)]
    aws: AwsArgs,
}

impl ChangeArgs {
    fn added(&self) -> Result<Vec<RecipientId>, CommandError> {
        recipients::typed(&KeyArgs {
            age: self.add_age.clone(),
            pgp: self.add_pgp.clone(),
            kms: self.add_kms.clone(),
            gcp_kms: self.add_gcp_kms.clone(),
            azure_kv: self.add_azure_kv.clone(),
            hc_vault_transit: self.add_hc_vault_transit.clone(),
            hckms: self.add_hckms.clone(),
            aws: self.aws.clone(),
        })
    }

    fn removed(&self) -> Result<Vec<RecipientId>, CommandError> {
        let mut ids = recipients::typed(&KeyArgs {
            age: self.rm_age.clone(),
            pgp: self.rm_pgp.clone(),
            kms: self.rm_kms.clone(),
            gcp_kms: self.rm_gcp_kms.clone(),
            azure_kv: self.rm_azure_kv.clone(),
            hc_vault_transit: self.rm_hc_vault_transit.clone(),
            hckms: Vec::new(),
            aws: self.aws.clone(),
        })?;
        let other = |word: &str| RecipientId::Other { kind: "hckms".to_owned(), name: word.to_owned() };
        ids.extend(self.rm_hckms.iter().flat_map(|text| recipients::words(text)).map(other));
        Ok(ids)
    }
}

/// Who joins and who leaves.
struct Changes {
    added: Vec<RecipientId>,
    removed: Vec<RecipientId>,
}

pub(crate) fn run(args: &RotateArgs, context: &Context) -> Result<(), CommandError> {
    let changes = Changes { added: args.changes.added()?, removed: args.changes.removed()? };
    let targets = Targets::sealed(&args.files, args.recursive, &args.format)?;
    if targets.only().is_none() && !args.target.in_place {
        return Err(CommandError::new(
            Kind::ConflictingFlags,
            "many files have no one place for their results",
        )
        .hint("replace them with `--in-place`"));
    }
    let (opener, ready) = (Opener::expecting(context, &targets.recipients), Ready::default());
    batch::run(&targets, context, |target| {
        rotate(target, args, &changes, &opener, &ready, context).map(|()| "rotated")
    })
}

fn rotate(
    target: &Target,
    args: &RotateArgs,
    Changes { added, removed }: &Changes,
    opener: &Opener<'_>,
    ready: &Ready,
    context: &Context,
) -> Result<(), CommandError> {
    let input = files::read(Some(&target.path), args.format.filename_override.as_deref())?;
    let format = target.format(&args.format.to_read())?;
    let leniency = Leniency::from(args.mac);
    let open = opener.open_to_write(&input, format, leniency)?;
    strangers::refuse(&input.name, &open, args.accept_recipients, context)?;
    let name = input.name.display().to_string();
    let groups = changed(&name, opening::groups(&open), added, removed, context.output)?;
    let ready = ready.groups(&groups, open.metadata().shamir_threshold, context)?;
    let options = sealing::write_options(&input.name, context);
    let sealed = match sealing::output_format(format, &args.format)? {
        to if to == format => lacre_crypto::rotate(&open, &ready.as_groups(), &options)
            .map_err(|error| CommandError::writing(&name, error))?,
        to => {
            let layout = config::layout(&input.name, args.format.indent, context)?;
            let text = open.converted(to, &layout).map_err(|error| CommandError::converting(&name, error))?;
            let options = as_before(&open, ready.as_groups(), options);
            lacre_crypto::encrypt(&text, to, &options).map_err(|error| CommandError::writing(&name, error))?
        }
    };
    delivery::sealed(&sealed, &args.target, &input, context.output)?;
    if !args.target.in_place && args.target.output.is_none() {
        return Ok(());
    }
    let value = json!({
        "file": name, "changed": true,
        "added": added.iter().map(ToString::to_string).collect::<Vec<_>>(),
        "removed": removed.iter().map(ToString::to_string).collect::<Vec<_>>(),
    });
    context.output.done(&format!("{name}: sealed under a new data key"), &value)
}

/// How a document that was printed in another format is sealed: with what `open` was sealed by.
fn as_before<'a>(open: &OpenFile, groups: Groups<'a>, write: WriteOptions) -> EncryptOptions<'a> {
    let metadata = open.metadata();
    EncryptOptions {
        groups,
        selector: metadata.selector.clone(),
        mac_only_encrypted: metadata.mac_only_encrypted,
        bind: None,
        write,
    }
}

/// `groups` with `added` in the first one and without `removed`.
fn changed(
    name: &str,
    mut groups: Vec<Vec<RecipientId>>,
    added: &[RecipientId],
    removed: &[RecipientId],
    output: Output,
) -> Result<Vec<Vec<RecipientId>>, CommandError> {
    for id in removed {
        if !groups.iter().flatten().any(|held| same_key(held, id)) {
            let problem = format!("{name}: is not sealed for {id}");
            if !compat::as_sops() {
                return Err(CommandError::general(problem)
                    .hint(format!("see for whom it is sealed with `lacre doctor {name}`")));
            }
            output.warn(&problem);
        }
        groups.iter_mut().for_each(|group| group.retain(|held| !same_key(held, id)));
    }
    if groups.is_empty() {
        groups.push(Vec::new());
    }
    for id in added {
        if !groups[0].iter().any(|held| id.means(held)) {
            groups[0].push(id.clone());
        }
    }
    if groups.iter().any(Vec::is_empty) {
        return Err(CommandError::general(format!("{name}: a group would have no recipient left"))
            .hint("add one with `--add-age` or another of the `--add-…` flags in the same call"));
    }
    Ok(groups)
}

/// Whether both name the same key: for AWS KMS its resource name counts, whatever role reaches it.
fn same_key(held: &RecipientId, named: &RecipientId) -> bool {
    match (held, named) {
        (RecipientId::AwsKms(held), RecipientId::AwsKms(named)) => held.arn == named.arn,
        _ => named.means(held),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn id(name: &str) -> RecipientId {
        RecipientId::Age(name.to_owned())
    }

    #[test]
    fn recipients_join_the_first_group_and_leave_any() {
        let groups = vec![vec![id("a"), id("b")], vec![id("c"), id("d")]];
        let result =
            changed("f", groups, &[id("e"), id("a")], &[id("c"), id("b")], Output::default()).unwrap();
        assert_eq!(result, [vec![id("a"), id("e")], vec![id("d")]]);
    }

    #[test]
    fn nobody_left_and_nobody_there_are_refused() {
        assert!(changed("f", vec![vec![id("a")]], &[], &[id("a")], Output::default()).is_err());
        assert!(changed("f", vec![vec![id("a")]], &[], &[id("b")], Output::default()).is_err());
        assert!(changed("f", vec![vec![id("a")]], &[id("b")], &[id("a")], Output::default()).is_ok());
    }
}
