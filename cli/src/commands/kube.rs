//! `lacre kube`: Kubernetes objects. The list of its commands.
//!
//! `seal` makes EncryptedSecrets, and SealedSecrets when asked to; the others are about SealedSecrets and the keys of the
//! controller that opens them. Only what says so in its help talks to a cluster.

#[cfg(feature = "kube")]
mod cert;
#[cfg(feature = "kube")]
mod cluster_args;
#[cfg(feature = "kube")]
mod keys;
#[cfg(feature = "kube")]
mod reseal;
mod seal;
#[cfg(feature = "kube")]
mod sealed_files;
#[cfg(feature = "kube")]
mod unseal;
#[cfg(feature = "kube")]
mod validate;

use clap::{Args, Subcommand};

use super::Context;
use crate::error::CommandError;

/// Seal Kubernetes Secrets as objects that the controller opens in the cluster.
#[derive(Args, Debug)]
pub(crate) struct KubeArgs {
    #[command(subcommand)]
    command: KubeCommand,
}

#[derive(Debug, Subcommand)]
enum KubeCommand {
    #[cfg(feature = "kube")]
    Cert(cert::CertArgs),
    #[cfg(feature = "kube")]
    Keys(keys::KeysArgs),
    #[cfg(feature = "kube")]
    Reseal(reseal::ResealArgs),
    Seal(Box<seal::SealArgs>),
    #[cfg(feature = "kube")]
    Unseal(unseal::UnsealArgs),
    #[cfg(feature = "kube")]
    Validate(validate::ValidateArgs),
}

pub(crate) fn run(args: &KubeArgs, context: &Context) -> Result<(), CommandError> {
    match &args.command {
        #[cfg(feature = "kube")]
        KubeCommand::Cert(args) => cert::run(args, context),
        #[cfg(feature = "kube")]
        KubeCommand::Keys(args) => keys::run(args, context),
        #[cfg(feature = "kube")]
        KubeCommand::Reseal(args) => reseal::run(args, context),
        KubeCommand::Seal(args) => seal::run(args, context),
        #[cfg(feature = "kube")]
        KubeCommand::Unseal(args) => unseal::run(args, context),
        #[cfg(feature = "kube")]
        KubeCommand::Validate(args) => validate::run(args, context),
    }
}

impl KubeArgs {
    /// Whether `--json` was given to a command that has it.
    pub(super) fn is_for_scripts(&self) -> bool {
        match &self.command {
            #[cfg(feature = "kube")]
            KubeCommand::Cert(args) => args.script.json,
            #[cfg(feature = "kube")]
            KubeCommand::Keys(args) => args.is_for_scripts(),
            #[cfg(feature = "kube")]
            KubeCommand::Reseal(args) => args.script.json,
            #[cfg(feature = "kube")]
            KubeCommand::Validate(args) => args.script.json,
            #[cfg(feature = "kube")]
            KubeCommand::Unseal(_) => false,
            KubeCommand::Seal(_) => false,
        }
    }
}
