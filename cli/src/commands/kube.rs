//! `lacre kube`: Kubernetes objects. The list of its commands; none of them talks to a cluster.

mod seal;

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
    Seal(seal::SealArgs),
}

pub(crate) fn run(args: &KubeArgs, context: &Context) -> Result<(), CommandError> {
    match &args.command {
        KubeCommand::Seal(args) => seal::run(args, context),
    }
}
