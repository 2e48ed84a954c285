//! What may be typed, and nothing about what it means: the top level, and the groups of flags that commands share.
//!
//! Names and meanings of flags are those of sops, because people and scripts know them.

use std::ffi::OsString;
use std::path::PathBuf;

use clap::builder::BoolishValueParser;
use clap::{Args, Parser};

use crate::commands::Command;
use crate::identities::Service;

/// Seals secrets in git and opens them where they are needed.
#[derive(Debug, Parser)]
#[command(name = "lacre", version, max_term_width = 100)]
#[command(after_help = "Start with `lacre keygen` and `lacre init`. Exit codes are those of sops.")]
pub(crate) struct CommandLine {
    #[command(flatten)]
    pub(crate) global: GlobalArgs,
    #[command(subcommand)]
    pub(crate) command: Command,
}

/// What every command understands.
#[derive(Args, Clone, Debug, Default)]
pub(crate) struct GlobalArgs {
    /// Use this file of rules instead of the nearest `.sops.yaml`.
    #[arg(long, global = true, value_name = "FILE", env = "SOPS_CONFIG", hide_env_values = true)]
    pub(crate) config: Option<OsString>,
    /// Ask this key service too, at `tcp://HOST:PORT` or `unix:///PATH`; may be given several times.
    #[arg(long, global = true, value_name = "URL", value_delimiter = ',', env = "SOPS_KEYSERVICE")]
    #[arg(hide_env_values = true, value_parser = Service::parse)]
    pub(crate) keyservice: Vec<Service>,
    /// Whether this process wraps and unwraps itself, before key services are asked.
    #[arg(
        long,
        global = true,
        value_name = "BOOL",
        env = "SOPS_ENABLE_LOCAL_KEYSERVICE",
        hide_env_values = true
    )]
    #[arg(num_args = 0..=1, require_equals = true, default_missing_value = "true")]
    #[arg(value_parser = BoolishValueParser::new())]
    pub(crate) enable_local_keyservice: Option<bool>,
    /// Try keys of these kinds first, such as `age,pgp,kms`; otherwise silent ones, then remote ones.
    #[arg(long, global = true, value_name = "KIND,…", env = "SOPS_DECRYPTION_ORDER", hide_env_values = true)]
    pub(crate) decryption_order: Option<String>,
}

/// Speaks to scripts.
#[derive(Args, Clone, Copy, Debug, Default)]
pub(crate) struct JsonArgs {
    /// Print the result, and an error, as one JSON object.
    #[arg(long)]
    pub(crate) json: bool,
}

/// For whom a new file is sealed.
#[derive(Args, Clone, Debug, Default)]
pub(crate) struct RecipientArgs {
    #[command(flatten)]
    pub(crate) keys: KeyArgs,
    /// Of several key groups, this many are needed; it replaces the rule's number.
    #[arg(long = "shamir-secret-sharing-threshold", value_name = "NUMBER")]
    pub(crate) shamir_threshold: Option<usize>,
}

/// Keys that a document is sealed for. Any of these replaces the keys of the rule, not its selectors.
#[derive(Args, Clone, Debug, Default)]
pub(crate) struct KeyArgs {
    /// Seal for these age recipients.
    #[arg(long, short, value_name = "RECIPIENT,…", value_delimiter = ',', env = "SOPS_AGE_RECIPIENTS")]
    #[arg(hide_env_values = true)]
    pub(crate) age: Vec<String>,
    /// Seal for these OpenPGP fingerprints.
    #[arg(long, short, value_name = "FINGERPRINT,…", value_delimiter = ',', env = "SOPS_PGP_FP")]
    #[arg(hide_env_values = true)]
    pub(crate) pgp: Vec<String>,
    /// Seal for these AWS KMS keys, each `ARN` or `ARN+ROLE-ARN`.
    #[arg(long, short, value_name = "ARN,…", value_delimiter = ',', env = "SOPS_KMS_ARN")]
    #[arg(hide_env_values = true)]
    pub(crate) kms: Vec<String>,
    /// Seal for these keys in Google Cloud KMS, each `projects/P/locations/L/keyRings/R/cryptoKeys/K`.
    #[arg(long, value_name = "RESOURCE,…", value_delimiter = ',', env = "SOPS_GCP_KMS_IDS")]
    #[arg(hide_env_values = true)]
    pub(crate) gcp_kms: Vec<String>,
    /// Seal for these keys in Azure Key Vault, each `https://VAULT/keys/NAME`, with or without `/VERSION`.
    #[arg(long, value_name = "URL,…", value_delimiter = ',', env = "SOPS_AZURE_KEYVAULT_URLS")]
    #[arg(hide_env_values = true)]
    pub(crate) azure_kv: Vec<String>,
    /// Seal for these transit keys of Vault or OpenBao, each `https://SERVER/v1/ENGINE/keys/NAME`.
    #[arg(long, value_name = "URL,…", value_delimiter = ',', env = "SOPS_VAULT_URIS")]
    #[arg(hide_env_values = true)]
    pub(crate) hc_vault_transit: Vec<String>,
    /// HuaweiCloud KMS, which stock sops knows: refused, since a file must not lack a recipient.
    #[arg(long, value_name = "KEY,…", value_delimiter = ',', env = "SOPS_HUAWEICLOUD_KMS_IDS", hide = true)]
    #[arg(hide_env_values = true)]
    pub(crate) hckms: Vec<String>,
    #[command(flatten)]
    pub(crate) aws: AwsArgs,
}

/// Parameters of the AWS KMS keys on the same command line.
#[derive(Args, Clone, Debug, Default)]
pub(crate) struct AwsArgs {
    /// Use this profile of the shared AWS configuration; it is stored in the file.
    #[arg(long, value_name = "NAME")]
    pub(crate) aws_profile: Option<String>,
    /// Bind the wrapped key to this encryption context.
    #[arg(long, value_name = "KEY:VALUE,…")]
    pub(crate) encryption_context: Option<String>,
}

/// Which values are sealed. At most one; none means all but keys that end in `_unencrypted`.
#[derive(Args, Clone, Debug, Default)]
pub(crate) struct SelectorArgs {
    /// Leave values plain whose key, or a key above, ends like this.
    #[arg(long, value_name = "SUFFIX")]
    pub(crate) unencrypted_suffix: Option<String>,
    /// Seal only values whose key, or a key above, ends like this.
    #[arg(long, value_name = "SUFFIX")]
    pub(crate) encrypted_suffix: Option<String>,
    /// Leave values plain whose key, or a key above, matches.
    #[arg(long, value_name = "PATTERN")]
    pub(crate) unencrypted_regex: Option<String>,
    /// Seal only values whose key, or a key above, matches.
    #[arg(long, value_name = "PATTERN")]
    pub(crate) encrypted_regex: Option<String>,
    /// Leave values plain that stand below a comment that matches.
    #[arg(long, value_name = "PATTERN")]
    pub(crate) unencrypted_comment_regex: Option<String>,
    /// Seal only values that stand below a comment that matches.
    #[arg(long, value_name = "PATTERN")]
    pub(crate) encrypted_comment_regex: Option<String>,
    /// Compute the sops MAC over sealed values alone.
    #[arg(long)]
    pub(crate) mac_only_encrypted: bool,
    /// Go on when the selector leaves every value plain.
    #[arg(long)]
    pub(crate) allow_plaintext: bool,
}

/// How the document is read.
#[derive(Args, Clone, Debug, Default)]
pub(crate) struct FormatArgs {
    /// Read the document as `yaml`, `json`, `dotenv`, `ini` or `binary`, whatever its name.
    #[arg(long, value_name = "FORMAT")]
    pub(crate) input_type: Option<String>,
    /// Write in this format, if the command can; without it, in the one that was read, every byte as it was.
    #[arg(long, value_name = "FORMAT")]
    pub(crate) output_type: Option<String>,
    /// Choose format and rule by this name; for standard input.
    #[arg(long, value_name = "NAME")]
    pub(crate) filename_override: Option<PathBuf>,
    /// Indent by this many spaces what is written in another format than it was read in.
    #[arg(long, value_name = "SPACES", allow_negative_numbers = true)]
    pub(crate) indent: Option<i64>,
}

impl FormatArgs {
    /// The same for reading alone.
    pub(crate) fn to_read(&self) -> Self {
        Self { output_type: None, ..self.clone() }
    }
}

/// How strictly a document is opened.
#[derive(Args, Clone, Copy, Debug, Default)]
pub(crate) struct MacArgs {
    /// Open the document although the sops MAC does not match; this proves nothing about its content.
    #[arg(long)]
    pub(crate) ignore_mac: bool,
}

/// Where the result goes.
#[derive(Args, Clone, Debug, Default)]
pub(crate) struct TargetArgs {
    /// Replace the file.
    #[arg(long, short, conflicts_with = "output")]
    pub(crate) in_place: bool,
    /// Write to this file instead of standard output.
    #[arg(long, value_name = "FILE")]
    pub(crate) output: Option<PathBuf>,
}
