//! Argo CD's Lua engine: runs the scripts of a resource customization as Argo CD does.

use std::path::Path;

use anyhow::Result;
use serde_json::Value;

use crate::install::{Component, Source};
use crate::process::Tool;
use crate::versions;

/// The engine with a program of ours around it, which has the limits of Argo CD.
pub const COMPONENT: Component = Component {
    name: "argocd-lua",
    version: versions::GOPHER_LUA,
    source: Source::Go { folder: "argocd-lua", package: "." },
    program: "argocd-lua",
};

/// What a script returns for an object.
///
/// # Errors
/// It is not installed; or the script fails, takes more than a second or returns no table.
pub fn run(script: &Path, object: &Value) -> Result<Value> {
    let tool = Tool::new(COMPONENT.path()?).arg(script).stdin(object.to_string());
    Ok(serde_json::from_slice(&tool.run()?.success()?)?)
}
