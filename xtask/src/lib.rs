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
pub mod versions;
pub mod wait;

/// The root of the repository that this crate was built from.
pub fn root() -> PathBuf {
    let xtask = Path::new(env!("CARGO_MANIFEST_DIR"));
    xtask.parent().unwrap_or(xtask).to_path_buf()
}
