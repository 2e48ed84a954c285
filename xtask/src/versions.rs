//! The version of every program that Lacre is built with or proven against.
//!
//! A version stands here and in the file that pins its hashes (`xtask/peers/NAME/`); a test compares the two.

/// age's own command, as the distribution has it: only its presence is asked for.
pub const AGE: &str = "debian";
/// The age that knows post-quantum keys.
pub const AGE_1_3: &str = "1.3.2";
/// The real `bao` of OpenBao.
pub const BAO: &str = "2.7.2";
/// The tool behind `cargo xtask deny`.
pub const CARGO_DENY: &str = "0.20.2";
/// The store behind the Kubernetes API server.
pub const ETCD: &str = "3.5.1";
/// The Google Cloud Storage that tests talk to.
pub const FAKE_GCS: &str = "1.56.1";
/// GnuPG, as the distribution has it: only its presence is asked for.
pub const GPG: &str = "debian";
/// Argo CD's Lua engine.
pub const GOPHER_LUA: &str = "1.1.2";
/// The newest helm of its third generation.
pub const HELM: &str = "3.22.0";
/// API server, controller manager and kubectl.
pub const KUBERNETES: &str = "1.37.2";
/// The AWS that tests talk to.
pub const MOTO: &str = "5.2.5";
/// `kubeseal` and the Sealed Secrets controller.
pub const SEALED_SECRETS: &str = "0.40.0";
/// Prometheus' check of rules, as the distribution has it: only its presence is asked for.
pub const PROMTOOL: &str = "debian";
/// The older sops that Lacre is proven against.
pub const SOPS_3_11: &str = "3.11.0";
/// The newest sops that Lacre is proven against, and the one it is measured against.
pub const SOPS_3_13: &str = "3.13.3";
/// OpenSSH's key maker, as the distribution has it: only its presence is asked for.
pub const SSH_KEYGEN: &str = "debian";
