//! The way to the cluster, and what is said when there is none.
//!
//! A kubeconfig holds tokens and keys, a plugin for logging in prints them, and the words of whoever reads either may
//! repeat what they cannot read. So no such words are passed on, but what kind of thing failed.

use std::error::Error;
use std::panic::{AssertUnwindSafe, catch_unwind};

use anyhow::anyhow;
use kube::config::{Config, KubeConfigOptions, Kubeconfig, KubeconfigError};
use kube::{Client, client::AuthError};

use crate::args::Args;

/// A client for the cluster that the flags, a kubeconfig or the pod name.
///
/// # Errors
/// None of them leads to one.
pub(super) async fn connect(args: &Args) -> anyhow::Result<Client> {
    let config = match &args.kubeconfig {
        None => Config::infer().await.map_err(|error| {
            let cause = error.source().and_then(|source| source.downcast_ref()).map_or("", told);
            anyhow!("neither a kubeconfig nor a service account can be used; kubeconfig: {cause}")
        })?,
        Some(path) => {
            let unusable = |error| {
                let cause = told(&error);
                anyhow!("{}: {cause}; name one that can be used with --kubeconfig", path.display())
            };
            let file = Kubeconfig::read_from(path).map_err(unusable)?;
            Config::from_custom_kubeconfig(file, &KubeConfigOptions::default()).await.map_err(unusable)?
        }
    };
    client(config)
}

fn client(config: Config) -> anyhow::Result<Client> {
    // The library panics at a token that cannot stand in a header. Nothing is left half done: the configuration is gone.
    match catch_unwind(AssertUnwindSafe(|| Client::try_from(config))) {
        Ok(Ok(client)) => Ok(client),
        Ok(Err(kube::Error::Auth(error))) => Err(anyhow!("cannot log in: {}", told_of_login(&error))),
        Ok(Err(_)) => Err(anyhow!("cannot build a client: see to the kubeconfig's certificates and proxy")),
        Err(_) => {
            Err(anyhow!("cannot log in: the token holds a character that no header may hold; renew it"))
        }
    }
}

fn told(error: &KubeconfigError) -> &'static str {
    match error {
        KubeconfigError::CurrentContextNotSet => "no current context is set",
        KubeconfigError::KindMismatch | KubeconfigError::ApiVersionMismatch => {
            "files of different kinds or versions"
        }
        KubeconfigError::LoadContext(_) => "the current context is not there",
        KubeconfigError::LoadClusterOfContext(_) => "the context's cluster is not there",
        KubeconfigError::FindPath | KubeconfigError::ReadConfig(..) => "the file cannot be read",
        KubeconfigError::Parse(_) => "the file is no YAML of a kubeconfig",
        KubeconfigError::MissingClusterUrl => "the cluster has no server",
        KubeconfigError::ParseClusterUrl(_) => "the cluster's server is no URL",
        KubeconfigError::ParseProxyUrl(_) => "the cluster's proxy is no URL",
        KubeconfigError::LoadCertificateAuthority(_) | KubeconfigError::ParseCertificates(_) => {
            "the certificate authority cannot be read"
        }
        KubeconfigError::LoadClientCertificate(_) => "the client certificate cannot be read",
        KubeconfigError::LoadClientKey(_) => "the client key cannot be read",
        // Which others there are depends on what else of the workspace is built with the client.
        #[allow(unreachable_patterns, reason = "there are none when the controller is built alone")]
        _ => "it cannot be used",
    }
}

fn told_of_login(error: &AuthError) -> &'static str {
    match error {
        AuthError::InvalidBasicAuth(_) | AuthError::InvalidBearerToken(_) => {
            "the token or password holds a character that no header may hold; renew it"
        }
        AuthError::ReadTokenFile(..) => "the file with the token cannot be read",
        AuthError::AuthExecStart(_) | AuthError::MissingCommand => {
            "the kubeconfig's plugin cannot be started; see to its `exec.command`"
        }
        AuthError::AuthExecRun { .. } | AuthError::AuthExec(_) => {
            "the kubeconfig's plugin failed; run its `exec.command` by hand"
        }
        AuthError::AuthExecParse(_) | AuthError::ExecPluginFailed => {
            "what the kubeconfig's plugin printed is no ExecCredential; run its `exec.command` by hand"
        }
        _ => "the kubeconfig's user cannot be used; see to it",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    async fn refused(user: &str) -> String {
        let text = format!(
            "apiVersion: v1\nkind: Config\ncurrent-context: c\n\
             clusters: [{{name: c, cluster: {{server: 'https://127.0.0.1:1'}}}}]\n\
             contexts: [{{name: c, context: {{cluster: c, user: u}}}}]\nusers: [{{name: u, user: {user}}}]\n"
        );
        match Kubeconfig::from_yaml(&text) {
            Err(error) => told(&error).to_owned(),
            Ok(file) => {
                let options = KubeConfigOptions::default();
                match Config::from_custom_kubeconfig(file, &options).await {
                    Err(error) => told(&error).to_owned(),
                    Ok(config) => format!("{:#}", client(config).err().unwrap()),
                }
            }
        }
    }

    #[tokio::test]
    async fn what_fails_is_told_without_the_credential() {
        let exec = |script: &str| {
            format!(
                "{{exec: {{apiVersion: client.authentication.k8s.io/v1, interactiveMode: Never, command: sh, args: \
                 ['-c', '{script}']}}}}"
            )
        };
        for (user, expected) in [
            ("{token: \"CANARY\\n\"}".to_owned(), "no header may hold"),
            (exec("echo CANARY; exit 3"), "plugin failed"),
            (exec("echo CANARY"), "no ExecCredential"),
            ("{token: [CANARY]}".to_owned(), "no YAML of a kubeconfig"),
        ] {
            let refused = refused(&user).await;
            assert!(refused.contains(expected), "{user}: {refused}");
            assert!(!refused.contains("CANARY"), "{refused}");
        }
    }
}
