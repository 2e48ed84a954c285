//! The flags of the Sealed Secrets controller, release 0.40: their names, defaults and syntax are its own, so that its
//! manifests start this controller.

use std::collections::BTreeMap;
use std::time::Duration;

use clap::{ArgAction, Args, ValueEnum};
use jiff::Timestamp;

use super::go::{self, ListenAddress};

/// What a name's prefix may take, so that a suffix has room in it.
const KEY_PREFIX_CHARS_MAX: usize = 245;

/// Labels or annotations, as given.
pub type Pairs = BTreeMap<String, String>;

/// Which time says which sealing key is the newest.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum KeyOrder {
    /// When its certificate begins to be valid.
    #[value(name = "CertNotBefore")]
    CertNotBefore,
    /// When its Secret was made.
    #[value(name = "SecretCreationTimestamp")]
    SecretCreationTimestamp,
}

/// What a template makes of a key that is not there.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum TemplateMissingKey {
    /// The object fails.
    Error,
    /// The text that Sealed Secrets writes for it.
    Zero,
}

/// What happens to a Secret that is no longer as its SealedSecret says.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Drift {
    /// It is put right.
    Repair,
    /// It is told in status and events, and left as it is.
    Report,
}

/// The flags of the Sealed Secrets controller, and ours about SealedSecrets.
#[derive(Clone, Debug, Args)]
#[command(next_help_heading = "As Sealed Secrets has them, and for its objects")]
pub struct SealedArgs {
    /// What the names of sealing keys begin with
    #[arg(long, default_value = "sealed-secrets-key", value_name = "PREFIX", value_parser = key_prefix)]
    pub key_prefix: String,

    /// Size of sealing keys that are made, in bits
    #[arg(long, default_value_t = 4096, value_name = "BITS", value_parser = key_size)]
    pub key_size: usize,

    /// How long the certificates of sealing keys that are made are valid; their keys open for ever
    #[arg(long, default_value = "87600h0m0s", value_name = "DURATION", value_parser = go::length)]
    pub key_ttl: Duration,

    /// Common name in certificates that are made
    #[arg(long, default_value = "", value_name = "NAME")]
    pub my_cn: String,

    /// Age of the newest sealing key at which another is made; 0 makes none
    #[arg(long, alias = "rotate-period", default_value = "720h0m0s", value_name = "DURATION", value_parser = renew_period)]
    pub key_renew_period: Duration,

    /// Which time says which sealing key is the newest
    #[arg(long, value_enum, default_value_t = KeyOrder::CertNotBefore, value_name = "TIME")]
    pub key_order_priority: KeyOrder,

    /// Make a sealing key at the start if the newest is older than this, such as `Mon, 02 Jan 2006 15:04:05 -0700`
    #[arg(long, default_value = "", value_name = "TIME", hide_default_value = true, value_parser = cutoff_time)]
    pub key_cutoff_time: CutoffTime,

    /// Annotations of sealing keys that are made: NAME=VALUE with commas between
    #[arg(long, default_value = "", value_name = "PAIRS", hide_default_value = true, value_parser = annotations)]
    pub privatekey_annotations: Pairs,

    /// Labels of sealing keys that are made: NAME=VALUE with commas between
    #[arg(long, default_value = "", value_name = "PAIRS", hide_default_value = true, value_parser = labels)]
    pub privatekey_labels: Pairs,

    /// Sealing keys are watched through their whole life, whatever this says
    #[arg(long, default_value = "false", num_args = 0..=1, require_equals = true, default_missing_value = "true", action = ArgAction::Set, value_parser = go::truth)]
    pub watch_for_secrets: bool,

    /// Never make a sealing key; wait until somebody brings one
    #[arg(long)]
    pub bring_your_own_keys: bool,

    /// Read `spec.data`, too, in which the first releases of Sealed Secrets sealed all at once
    #[arg(long, default_value = "true", num_args = 0..=1, require_equals = true, default_missing_value = "true", action = ArgAction::Set, value_parser = go::truth)]
    pub accept_deprecated_v1_data: bool,

    /// Serve all namespaces, not only the controller's own
    #[arg(long, default_value = "true", num_args = 0..=1, require_equals = true, default_missing_value = "true", action = ArgAction::Set, value_parser = go::truth)]
    pub all_namespaces: bool,

    /// Namespaces that are served beside the controller's own, with commas between, instead of all
    #[arg(long, default_value = "", value_name = "NAMESPACES", hide_default_value = true)]
    pub additional_namespaces: String,

    /// Labels that a SealedSecret must have to be served, as kubectl writes selectors
    #[arg(long, default_value = "", value_name = "SELECTOR", hide_default_value = true)]
    pub label_selector: String,

    /// Delete the Secret of a SealedSecret that is deleted, instead of leaving it to the cluster's garbage collector
    #[arg(long, default_value = "false", num_args = 0..=1, require_equals = true, default_missing_value = "true", action = ArgAction::Set, value_parser = go::truth)]
    pub old_gc_behavior: bool,

    /// Write the status of SealedSecrets
    #[arg(long, default_value = "true", num_args = 0..=1, require_equals = true, default_missing_value = "true", action = ArgAction::Set, value_parser = go::truth)]
    pub update_status: bool,

    /// Do not watch Secrets: nothing is repaired before its SealedSecret is looked at again
    #[arg(long, default_value = "false", num_args = 0..=1, require_equals = true, default_missing_value = "true", action = ArgAction::Set, value_parser = go::truth)]
    pub skip_recreate: bool,

    /// Has no effect: what failed is tried again without end, ever more rarely (--retry-delay-max)
    #[arg(long, default_value_t = 5, value_name = "COUNT", allow_negative_numbers = true)]
    pub max_unseal_retries: i64,

    /// What a template makes of a key that is not there
    #[arg(long, value_enum, default_value_t = TemplateMissingKey::Error)]
    pub template_missing_key: TemplateMissingKey,

    /// What happens to a Secret that is no longer as its SealedSecret says
    #[arg(long, value_enum, default_value_t = Drift::Repair)]
    pub drift: Drift,

    /// Refuse to SealedSecrets, too, the types and template keys that EncryptedSecrets may not use
    #[arg(long)]
    pub restrict_sealed_secrets: bool,

    /// Requests per second that /v1/verify and /v1/rotate each take from one client in the long run
    #[arg(long, default_value_t = 2, value_name = "COUNT", value_parser = clap::value_parser!(u32).range(1..=1_000_000))]
    pub rate_limit: u32,

    /// Requests beyond that which one client may make at once
    #[arg(long, default_value_t = 2, value_name = "COUNT", value_parser = clap::value_parser!(u32).range(0..=1_000_000))]
    pub rate_limit_burst: u32,

    /// Take requests to /v1/verify and /v1/rotate only with a bearer token of this cluster, or from --proxy-address
    #[arg(long)]
    pub require_token: bool,

    /// Address from which the API server's proxy comes, which has asked for the token already; may be repeated
    #[arg(long, value_name = "ADDRESS")]
    pub proxy_address: Vec<std::net::IpAddr>,

    /// Address of the API: certificate, verify, rotate, and the probes; port 0 takes a free one and logs it
    #[arg(long, alias = "listen", default_value = ":8080", value_name = "[HOST]:PORT", value_parser = go::listen_address)]
    pub listen_addr: ListenAddress,

    /// Address of /metrics
    #[arg(long, default_value = ":8081", value_name = "[HOST]:PORT", value_parser = go::listen_address)]
    pub listen_metrics_addr: ListenAddress,

    /// Longest time between two pieces of a request
    #[arg(long, default_value = "2m0s", value_name = "DURATION", value_parser = go::length)]
    pub read_timeout: Duration,

    /// Longest time that an answer may take
    #[arg(long, default_value = "2m0s", value_name = "DURATION", value_parser = go::length)]
    pub write_timeout: Duration,

    /// Leave out of /metrics what names single SealedSecrets
    #[arg(long, default_value = "false", num_args = 0..=1, require_equals = true, default_missing_value = "true", action = ArgAction::Set, value_parser = go::truth)]
    pub metrics_omit_secret_labels: bool,

    /// Has no effect: --concurrency bounds the requests to the API server, which has its own fair queues
    #[arg(long, default_value_t = 5.0, value_name = "COUNT", allow_negative_numbers = true)]
    pub kubeclient_qps: f32,

    /// Has no effect, as --kubeclient-qps
    #[arg(long, default_value_t = 10, value_name = "COUNT", allow_negative_numbers = true)]
    pub kubeclient_burst: i64,

    /// What is logged when --log does not say it: DEBUG, INFO, WARN or ERROR
    #[arg(long, default_value = "INFO", value_name = "LEVEL", value_parser = log_level)]
    pub log_level: String,

    /// Log to standard output what is no warning or error
    #[arg(long, default_value = "true", num_args = 0..=1, require_equals = true, default_missing_value = "true", action = ArgAction::Set, value_parser = go::truth)]
    pub log_info_stdout: bool,
}

/// A time, if one is given.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct CutoffTime(pub Option<Timestamp>);

impl SealedArgs {
    /// The namespaces that are served, or none for all of them. `own` is the controller's own, and always among them.
    pub fn namespaces(&self, own: &str) -> Option<Vec<String>> {
        let added = self.additional_namespaces.split(',').map(str::trim).filter(|name| !name.is_empty());
        let mut namespaces = vec![own.to_owned()];
        for name in added {
            if !namespaces.iter().any(|known| known == name) {
                namespaces.push(name.to_owned());
            }
        }
        (!self.all_namespaces || !self.additional_namespaces.is_empty()).then_some(namespaces)
    }

    /// Flags that were given and have no effect here, for the log.
    pub fn without_effect(&self) -> Vec<&'static str> {
        let mut flags = Vec::new();
        if self.max_unseal_retries != 5 {
            flags.push("--max-unseal-retries");
        }
        if self.kubeclient_qps != 5.0 || self.kubeclient_burst != 10 {
            flags.push("--kubeclient-qps and --kubeclient-burst");
        }
        flags
    }
}

fn key_prefix(text: &str) -> Result<String, String> {
    let is_legal =
        |character: char| character.is_ascii_lowercase() || character.is_ascii_digit() || character == '-';
    if text.len() > KEY_PREFIX_CHARS_MAX {
        return Err(format!("expected at most {KEY_PREFIX_CHARS_MAX} characters"));
    }
    if text.is_empty() || text.starts_with('-') {
        return Err("expected it to begin with a letter or digit".to_owned());
    }
    match text.chars().find(|character| !is_legal(*character)) {
        Some(illegal) => Err(format!("the character {illegal:?} cannot stand in a name: use a-z, 0-9 and -")),
        None => Ok(text.to_owned()),
    }
}

fn key_size(text: &str) -> Result<usize, String> {
    let bits = text.parse().ok().filter(|bits| [2048, 3072, 4096, 8192].contains(bits));
    bits.ok_or_else(|| "expected 2048, 3072, 4096 or 8192 bits".to_owned())
}

/// Zero, or long enough that keys cannot pile up.
fn renew_period(text: &str) -> Result<Duration, String> {
    match go::duration(text)? {
        short if !short.is_zero() && short < Duration::from_secs(1) => {
            Err("expected 0, or at least one second".to_owned())
        }
        period => Ok(period),
    }
}

fn cutoff_time(text: &str) -> Result<CutoffTime, String> {
    match text {
        "" => Ok(CutoffTime(None)),
        text => go::mail_time(text).map(|time| CutoffTime(Some(time))),
    }
}

fn annotations(text: &str) -> Result<Pairs, String> {
    go::pairs(text, false)
}

fn labels(text: &str) -> Result<Pairs, String> {
    go::pairs(text, true)
}

fn log_level(text: &str) -> Result<String, String> {
    let level = text.to_ascii_lowercase();
    match level.as_str() {
        "debug" | "info" | "warn" | "error" => Ok(level),
        _ => Err("expected one of DEBUG, INFO, WARN, ERROR".to_owned()),
    }
}
