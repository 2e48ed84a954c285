//! From what a person or a rule names to recipients that can wrap a key.
//!
//! A recipient is first read as its [`RecipientId`], public and comparable; only when a file is about to be written
//! are the ids turned into something that wraps, since that may call `gpg` or a key service.

use lacre_crypto::Groups;
use lacre_crypto::recipient::age::AgeRecipient;
use lacre_crypto::recipient::post_quantum;
use lacre_crypto::recipient::{AwsKmsKey, AzureKeyVaultKey, GcpKmsKey, Recipient, RecipientId, VaultKey};

use crate::args::{AwsArgs, KeyArgs};
use crate::commands::Context;
use crate::error::{CommandError, Kind};

/// Recipients that can wrap, group by group.
pub(crate) struct ReadyGroups {
    groups: Vec<Vec<Box<dyn Recipient>>>,
    threshold: Option<usize>,
}

impl ReadyGroups {
    /// Makes each id ready to wrap. The first that cannot be used is an error that names it; that some undo what others
    /// are for is said.
    pub(crate) fn new(
        groups: &[Vec<RecipientId>],
        threshold: Option<usize>,
        context: &Context,
    ) -> Result<Self, CommandError> {
        if post_quantum::is_undone(groups, threshold) {
            context.output.warn(
                "a recipient that is not post-quantum stands beside one that is, and voids its protection: \
                 whoever keeps the file can open it once there are quantum computers",
            );
        }
        let ready = |id: &RecipientId| context.global.recipient(id, build);
        let group = |ids: &Vec<RecipientId>| ids.iter().map(ready).collect::<Result<_, _>>();
        let groups = groups.iter().map(group).collect::<Result<_, _>>()?;
        Ok(Self { groups, threshold })
    }

    /// The groups as the crypto crate takes them.
    pub(crate) fn as_groups(&self) -> Groups<'_> {
        let groups = self.groups.iter().map(|group| group.iter().map(AsRef::as_ref).collect()).collect();
        Groups { groups, threshold: self.threshold }
    }
}

/// The words of a list with commas, as sops writes recipients on one line.
pub(crate) fn words(text: &str) -> impl Iterator<Item = &str> {
    text.split(',').map(str::trim).filter(|word| !word.is_empty())
}

/// The recipients that a command line names, as one group; none when it names none.
pub(crate) fn typed(keys: &KeyArgs) -> Result<Vec<RecipientId>, CommandError> {
    let mut group = Vec::new();
    for word in keys.age.iter().flat_map(|text| words(text)) {
        group.push(parse_age(word)?);
    }
    for word in keys.pgp.iter().flat_map(|text| words(text)) {
        group.push(parse_pgp(word)?);
    }
    for word in keys.kms.iter().flat_map(|text| words(text)) {
        group.push(parse_typed_kms(word, &keys.aws)?);
    }
    let words_of = |list: &[String]| list.iter().flat_map(|text| words(text)).map(str::to_owned).collect();
    let (gcp, azure): (Vec<String>, Vec<String>) = (words_of(&keys.gcp_kms), words_of(&keys.azure_kv));
    let vault: Vec<String> = words_of(&keys.hc_vault_transit);
    group.extend(service_recipients(&gcp, &azure, &vault)?);
    if let Some(word) = keys.hckms.iter().flat_map(|text| words(text)).next() {
        return Err(refused_hckms(word));
    }
    Ok(without_duplicates(group))
}

/// `group` with each recipient once, where it first stands.
pub(crate) fn without_duplicates(group: Vec<RecipientId>) -> Vec<RecipientId> {
    let mut kept: Vec<RecipientId> = Vec::with_capacity(group.len());
    for recipient in group {
        if !kept.contains(&recipient) {
            kept.push(recipient);
        }
    }
    kept
}

/// An age recipient, checked as far as its text goes.
pub(crate) fn parse_age(word: &str) -> Result<RecipientId, CommandError> {
    AgeRecipient::parse(word).map(|recipient| recipient.id()).map_err(|error| {
        CommandError::general(format!("age recipient: {error}"))
            .hint("an age recipient begins with `age1` or `ssh-`; `lacre keygen` prints that of a new key")
    })
}

/// An OpenPGP fingerprint, without its spaces and in upper case; a `!` behind it pins a subkey.
pub(crate) fn parse_pgp(word: &str) -> Result<RecipientId, CommandError> {
    let fingerprint: String = word.chars().filter(|character| !character.is_whitespace()).collect();
    let name = fingerprint.strip_prefix("0x").unwrap_or(&fingerprint);
    let digits = name.strip_suffix('!').unwrap_or(name);
    if !matches!(digits.len(), 40 | 64) || !digits.bytes().all(|byte| byte.is_ascii_hexdigit()) {
        return Err(CommandError::general(format!("pgp recipient `{word}`: not a fingerprint of 40 digits"))
            .hint("`gpg --list-keys --fingerprint` shows fingerprints"));
    }
    Ok(RecipientId::Pgp(name.to_ascii_uppercase()))
}

/// An AWS KMS key from the command line, with its encryption context.
pub(crate) fn parse_typed_kms(word: &str, aws: &AwsArgs) -> Result<RecipientId, CommandError> {
    let profile = aws.aws_profile.as_deref().unwrap_or_default();
    parse_kms(word, aws.encryption_context.as_deref(), profile)
}

/// An AWS KMS key: `ARN` or `ARN+ROLE-ARN`.
pub(crate) fn parse_kms(
    word: &str,
    context: Option<&str>,
    profile: &str,
) -> Result<RecipientId, CommandError> {
    let context = context.unwrap_or_default();
    check_context(context)?;
    AwsKmsKey::parse(word, context, profile)
        .map(RecipientId::AwsKms)
        .map_err(|error| CommandError::general(format!("kms recipient `{word}`: {error}")))
}

/// Refuses an encryption context that is not `KEY:VALUE,…`.
pub(crate) fn check_context(context: &str) -> Result<(), CommandError> {
    AwsKmsKey::parse_context(context).map(drop).map_err(|error| {
        CommandError::new(Kind::BadEncryptionContext, error.to_string())
            .hint("write it as `--encryption-context team:shop,stage:prod`")
    })
}

/// Keys in services that one word describes each, in the order in which sops takes them from a rule.
pub(crate) fn service_recipients(
    gcp: &[String],
    azure: &[String],
    vault: &[String],
) -> Result<Vec<RecipientId>, CommandError> {
    let gcp = gcp.iter().map(|word| parse_gcp(word));
    let azure = azure.iter().map(|word| parse_azure(word));
    let vault = vault.iter().map(|word| parse_vault(word));
    gcp.chain(azure).chain(vault).collect()
}

/// A key in Google Cloud KMS.
pub(crate) fn parse_gcp(word: &str) -> Result<RecipientId, CommandError> {
    GcpKmsKey::parse(word).map(RecipientId::GcpKms).map_err(|error| {
        CommandError::general(format!("gcp_kms recipient `{word}`: {error}"))
            .hint("`gcloud kms keys list` shows keys; the newest version counts, so none is named")
    })
}

/// A key in Azure Key Vault; which version is meant may be left open.
pub(crate) fn parse_azure(word: &str) -> Result<RecipientId, CommandError> {
    AzureKeyVaultKey::parse(word).map(RecipientId::AzureKeyVault).map_err(|error| {
        CommandError::general(format!("azure_kv recipient `{word}`: {error}"))
            .hint("`az keyvault key list --vault-name VAULT` shows keys")
    })
}

/// A key in a transit engine of Vault or OpenBao.
pub(crate) fn parse_vault(word: &str) -> Result<RecipientId, CommandError> {
    VaultKey::parse(word).map(RecipientId::Vault).map_err(|error| {
        CommandError::general(format!("hc_vault recipient `{word}`: {error}"))
            .hint("the engine's path stands between `v1` and `keys`; `vault secrets list` shows engines")
    })
}

/// A kind that stock sops can seal for and this build cannot.
pub(crate) fn refused_hckms(word: &str) -> CommandError {
    CommandError::general(format!("hckms recipient `{word}`: HuaweiCloud KMS cannot be sealed for"))
        .hint("leave it out, or write the file with stock sops; entries for it that a file has are kept")
}

/// `group` with each key as `held` spells it, if it has it: with the version that is left open, and the comment of an
/// SSH key.
pub(crate) fn pinned(group: &[RecipientId], held: &[RecipientId]) -> Vec<RecipientId> {
    let pin = |id: &RecipientId| match held.contains(id) {
        true => id.clone(),
        false => held.iter().find(|held| id.means(held)).unwrap_or(id).clone(),
    };
    without_duplicates(group.iter().map(pin).collect())
}

/// `id` as something that wraps in this process.
pub(crate) fn build(id: &RecipientId) -> Result<Box<dyn Recipient>, CommandError> {
    match id {
        RecipientId::Age(text) => match AgeRecipient::parse(text) {
            #[cfg(feature = "age-plugin")]
            Ok(recipient) => Ok(Box::new(recipient.with_prompt(crate::identities::unlocking().prompt))),
            #[cfg(not(feature = "age-plugin"))]
            Ok(recipient) => Ok(Box::new(recipient)),
            Err(error) => Err(CommandError::general(format!("{id}: {error}"))),
        },
        RecipientId::AwsKms(_)
        | RecipientId::AzureKeyVault(_)
        | RecipientId::GcpKms(_)
        | RecipientId::Vault(_) => crate::identities::service_recipient(id),
        RecipientId::Other { .. } => {
            Err(CommandError::general(format!("{id}: this build cannot seal for it"))
                .hint("remove it with `--rm-…` or `lacre updatekeys`, or write the file with stock sops"))
        }
        RecipientId::Pgp(fingerprint) => build_pgp(fingerprint),
    }
}

/// In process when a ring of public keys or `gpg` has it; by the program itself when it is weak, and not without a
/// warning.
#[cfg(feature = "pgp")]
fn build_pgp(fingerprint: &str) -> Result<Box<dyn Recipient>, CommandError> {
    use lacre_crypto::recipient::pgp::{PgpRecipient, WeakPgpRecipient};
    let mut refused = None;
    for ring in crate::identities::public_rings() {
        match PgpRecipient::look_up(fingerprint, ring.expose_secret()) {
            Ok(Some(recipient)) => return Ok(Box::new(recipient)),
            Ok(None) => {}
            Err(error) => refused = Some(error),
        }
    }
    // gpg may have a newer certificate, or another place for them.
    let gpg = crate::identities::gpg_program();
    let found = PgpRecipient::from_gpg(fingerprint, &gpg);
    if found.is_err()
        && let Ok(weak) = WeakPgpRecipient::from_gpg(fingerprint, &gpg)
    {
        crate::output::Output::default().warn(&format!(
            "pgp {fingerprint}: {}, too weak to keep secrets; sealed through gpg; ask its owner for a new key",
            weak.weakness()
        ));
        return Ok(Box::new(weak));
    }
    match (found, refused) {
        (Ok(recipient), _) => Ok(Box::new(recipient)),
        (Err(_), Some(refused)) => Err(CommandError::general(format!("pgp {fingerprint}: {refused}")).hint(
            "import a current certificate of its owner with `gpg --import`, or leave that recipient out",
        )),
        (Err(error), None) => Err(CommandError::general(format!("pgp {fingerprint}: {error}"))
            .hint("import a current public key with `gpg --import`")),
    }
}

#[cfg(not(feature = "pgp"))]
fn build_pgp(fingerprint: &str) -> Result<Box<dyn Recipient>, CommandError> {
    Err(CommandError::general(format!("pgp {fingerprint}: this build has no OpenPGP")))
}

#[cfg(test)]
mod tests {
    use super::*;

    const KEY: &str = "arn:aws:kms:eu-west-1:111122223333:key/k";

    #[test]
    fn kms_keys_take_a_role_and_a_context() {
        let id = parse_kms(&format!("{KEY}+arn:aws:iam::1:role/r"), Some("a:b,c:d"), "ops").unwrap();
        let RecipientId::AwsKms(key) = id else { panic!("another kind") };
        assert_eq!((key.arn.as_str(), key.role.as_deref()), (KEY, Some("arn:aws:iam::1:role/r")));
        assert_eq!((key.context["c"].as_str(), key.profile.as_str()), ("d", "ops"));
    }

    #[test]
    fn a_version_left_open_is_the_one_that_is_held() {
        let azure =
            |version: &str| parse_azure(&format!("https://t.vault.azure.net/keys/k/{version}")).unwrap();
        let held = [azure("1"), azure("2")];
        assert_eq!(pinned(&[azure(""), azure("2"), azure("3")], &held), [azure("1"), azure("2"), azure("3")]);
        assert_eq!(pinned(&[azure("")], &[]), [azure("")]);
    }

    #[test]
    fn an_ssh_key_keeps_the_comment_that_is_held() {
        let ssh = |comment: &str| RecipientId::Age(format!("ssh-ed25519 AAAA{comment}"));
        assert_eq!(pinned(&[ssh(" ops")], &[ssh(" ci")]), [ssh(" ci")]);
        assert_eq!(pinned(&[ssh(" ops"), ssh("")], &[ssh(" ci")]), [ssh(" ci")]);
        let both = [ssh(" ci"), ssh(" ops")];
        assert_eq!(pinned(&both, &both), both);
        assert_eq!(pinned(&[ssh(" ops")], &[]), [ssh(" ops")]);
    }

    #[test]
    fn what_is_no_recipient_is_refused() {
        assert!(parse_gcp("projects/p").is_err() && parse_azure("t/k").is_err() && parse_vault("k").is_err());
        assert!(parse_kms("arn:aws:kms", None, "").is_err());
        assert!(parse_kms("alias/x", None, "").is_err());
        assert!(parse_pgp("ABCD").is_err() && parse_pgp(&"g".repeat(40)).is_err());
        assert_eq!(parse_kms(KEY, Some("x"), "").unwrap_err().kind, Kind::BadEncryptionContext);
    }

    #[test]
    fn fingerprints_lose_their_spaces() {
        let spaced = "0123 4567 89ab cdef 0123  4567 89ab cdef 0123 4567";
        assert_eq!(
            parse_pgp(spaced).unwrap(),
            RecipientId::Pgp("0123456789ABCDEF0123456789ABCDEF01234567".into())
        );
    }
}
