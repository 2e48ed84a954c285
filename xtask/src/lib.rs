//! The real programs that Lacre is tested against, and the commands behind `cargo xtask`.
//!
//! Tests start from [`peers`]: a file per program, each with a type that finds it ([`peers::sops::Sops`]) or
//! starts it on a free loopback port and stops it when dropped ([`peers::moto::Moto`],
//! [`peers::cluster::Cluster`]). Nothing here stands in for a program: what cannot be had is an error.
//!
//! `cargo xtask peers` installs them once, by version, below the [cache folder](cache::folder); the commands are in
//! [`commands`].

use std::path::{Path, PathBuf};

pub mod cache;
pub mod commands;
pub mod http;
pub mod install;
pub mod output;
pub mod peers;
pub mod process;
pub mod scratch;
pub mod sources;
pub mod template_case;
pub mod versions;
pub mod wait;

/// The root of the repository: of the package that cargo runs, so that clones which share a target folder each find
/// their own; outside of cargo, of the clone that this crate was built from.
pub fn root() -> PathBuf {
    let built_from = Path::new(env!("CARGO_MANIFEST_DIR")).to_path_buf();
    let package = std::env::var_os("CARGO_MANIFEST_DIR").map_or(built_from.clone(), PathBuf::from);
    let of =
        |package: &Path| package.parent().filter(|root| root.join("xtask").is_dir()).map(Path::to_path_buf);
    of(&package).or_else(|| of(&built_from)).unwrap_or(package)
}
