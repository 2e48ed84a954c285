//! The command line: every flag with its unit and default.
//!
//! Here are Lacre's own; [`sealed`] has those of the Sealed Secrets controller. A flag given twice counts as given last.

use std::path::PathBuf;
use std::time::Duration;

use clap::{Parser, ValueEnum};

use crate::policy::Scope;

pub mod environment;
pub mod go;
pub mod sealed;

use sealed::SealedArgs;

/// Turns sealed objects into Kubernetes Secrets.
#[derive(Clone, Debug, Parser)]
#[command(name = "lacre-controller", after_help = EXAMPLE, args_override_self = true)]
pub struct Args {
    /// Print the version and end
    #[arg(long)]
    pub version: bool,

    /// Namespace of the controller itself: its identities, published keys and lease [default: that of its pod]
    #[arg(long, env = "POD_NAMESPACE", value_name = "NAMESPACE")]
    pub namespace: Option<String>,

    /// The one namespace whose objects are served [default: what --all-namespaces and --additional-namespaces say]
    #[arg(long, value_name = "NAMESPACE")]
    pub watch_namespace: Option<String>,

    /// Kubeconfig file [default: $KUBECONFIG, then the pod's service account]
    #[arg(long, value_name = "FILE")]
    pub kubeconfig: Option<PathBuf>,

    /// Name of this cluster, for seals that are limited to certain clusters
    #[arg(long, value_name = "NAME")]
    pub cluster_name: Option<String>,

    /// Most objects that are worked on at a time
    #[arg(long, default_value_t = 8, value_name = "COUNT", value_parser = clap::value_parser!(u16).range(1..=1024))]
    pub concurrency: u16,

    /// Delay before a second attempt after a passing failure; it doubles with each one (such as 500ms, 2s, 5m)
    #[arg(long, default_value = "2s", value_name = "DURATION", value_parser = go::length)]
    pub retry_delay: Duration,

    /// Longest delay between attempts
    #[arg(long, default_value = "5m", value_name = "DURATION", value_parser = go::length)]
    pub retry_delay_max: Duration,

    /// Longest time after which a Ready object is looked at again although nothing is known to have changed
    #[arg(long, default_value = "1h", value_name = "DURATION", value_parser = go::length)]
    pub resync: Duration,

    /// Longest time a key service may take for one answer
    #[arg(long, default_value = "10s", value_name = "DURATION", value_parser = go::length)]
    pub key_service_deadline: Duration,

    /// Most unwrapped data keys that are remembered; 0 asks key services anew each time
    #[arg(long, default_value_t = 4096, value_name = "COUNT")]
    pub key_cache: usize,

    /// Furthest reach of a seal that is accepted
    #[arg(long, value_enum, default_value_t = Scope::Cluster)]
    pub max_scope: Scope,

    /// Serve objects in the controller's own namespace, too
    #[arg(long)]
    pub allow_own_namespace: bool,

    /// Make Secrets of this type although it is a credential of the cluster itself; may be repeated
    #[arg(long, value_name = "TYPE")]
    pub allow_type: Vec<String>,

    /// Let templates set this label or annotation although controllers act upon it; may be repeated
    #[arg(long, value_name = "KEY")]
    pub allow_template_key: Vec<String>,

    /// Use OpenPGP keys of key Secrets (*.asc); their arithmetic does not run in constant time
    #[arg(long)]
    pub enable_pgp: bool,

    /// Open objects of this namespace with the cloud credentials of the controller's environment; may be repeated
    #[arg(long, value_name = "NAMESPACE")]
    pub ambient_cloud_namespace: Vec<String>,

    /// Address of AWS KMS when it is not Amazon's, such as that of a VPC endpoint
    #[arg(long, value_name = "URL")]
    pub aws_kms_endpoint: Option<String>,

    /// Work only while holding the lease lacre-controller in the controller's namespace
    #[arg(long)]
    pub leader_elect: bool,

    /// How long the lease holds without being renewed
    #[arg(long, default_value = "15s", value_name = "DURATION", value_parser = go::length)]
    pub lease_duration: Duration,

    /// How often the lease is renewed; at most a third of its duration
    #[arg(long, default_value = "5s", value_name = "DURATION", value_parser = go::length)]
    pub lease_interval: Duration,

    /// How logs are written
    #[arg(long, value_enum, default_value_t = LogFormat::Text, ignore_case = true)]
    pub log_format: LogFormat,

    /// What is logged: a level, or a filter such as lacre_controller=debug,kube=warn [default: --log-level]
    #[arg(long, env = "LACRE_LOG", value_name = "FILTER")]
    pub log: Option<String>,

    /// Those of the Sealed Secrets controller.
    #[command(flatten)]
    pub sealed: SealedArgs,

    /// Words that belong to no flag, such as the `false` of `--update-status false`. Sealed Secrets ignores them; they
    /// are ignored and told.
    #[arg(hide = true)]
    pub stray: Vec<String>,
}

const EXAMPLE: &str = "Example:
  lacre-controller --leader-elect --max-scope namespace --log-format json
      in a pod: serves all namespaces, refuses seals that reach further than one namespace
  lacre-controller --kubeconfig ~/.kube/config --namespace lacre-system --listen 127.0.0.1:8080
      on a laptop, against the cluster of the kubeconfig";

/// How logs are written.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum LogFormat {
    /// One line of text per event.
    Text,
    /// One JSON object per event.
    Json,
}

impl Args {
    /// Whether the flags fit together.
    ///
    /// # Errors
    /// What does not.
    pub fn check(&self) -> Result<(), &'static str> {
        // A holder gives up after two thirds of the length, and one renewal may fail.
        match self.lease_interval * 3 > self.lease_duration {
            true => Err("--lease-interval must be at most a third of --lease-duration"),
            false => Ok(()),
        }
    }
}

#[cfg(test)]
mod tests {
    use clap::CommandFactory;

    use super::*;

    #[test]
    fn the_command_line_is_well_formed_and_shows_an_example() {
        Args::command().debug_assert();
        assert!(Args::command().render_long_help().to_string().contains("Example:"));
    }

    #[test]
    fn a_lease_is_renewed_often_enough_to_be_kept() {
        let check = |flags: &[&str]| Args::parse_from(["lacre-controller"].iter().chain(flags)).check();
        assert_eq!(check(&[]), Ok(()));
        assert!(check(&["--lease-duration", "14s"]).is_err());
        assert!(check(&["--lease-interval", "6s"]).is_err());
    }

    #[test]
    fn truth_values_stand_alone_or_behind_an_equals_sign() {
        let parse = |flags: &[&str]| Args::parse_from(["lacre-controller"].iter().chain(flags)).sealed;
        assert!(parse(&["--watch-for-secrets"]).watch_for_secrets);
        assert!(!parse(&["--update-status=false"]).update_status);
        assert!(parse(&["--update-status=false", "--update-status"]).update_status, "the last one counts");
        let twice = Args::parse_from(["lacre-controller", "--allow-type=a", "--allow-type", "b"]);
        assert_eq!(twice.allow_type, ["a", "b"]);
    }

    #[test]
    fn values_that_would_fail_later_are_refused_at_once() {
        for flag in [
            "--privatekey-labels=team",
            "--privatekey-annotations=a b=c",
            "--key-prefix=Upper",
            "--key-prefix=",
            "--key-size=1024",
            "--key-ttl=0",
            "--key-renew-period=-1h",
            "--key-renew-period=1ms",
            "--key-cutoff-time=yesterday",
            "--key-order-priority=Newest",
            "--rate-limit=0",
            "--listen-addr=8080",
            "--log-level=loud",
        ] {
            let error = Args::try_parse_from(["lacre-controller", flag]).unwrap_err();
            assert_eq!(error.exit_code(), 2, "{flag}");
        }
    }

    #[test]
    fn namespaces_are_the_own_one_and_those_added_unless_all_are_served() {
        let parse = |flags: &[&str]| Args::parse_from(["lacre-controller"].iter().chain(flags));
        let namespaces = |flags: &[&str]| parse(flags).sealed.namespaces("own");
        let list = |names: &[&str]| Some(names.iter().map(|name| (*name).to_owned()).collect::<Vec<_>>());
        assert_eq!(namespaces(&[]), None);
        assert_eq!(namespaces(&["--all-namespaces=false"]), list(&["own"]));
        assert_eq!(namespaces(&["--additional-namespaces=a, b,,a,own"]), list(&["own", "a", "b"]));
    }
}
