//! Prometheus' own check of alert rules.

use anyhow::Result;

use crate::install::{Component, Source};
use crate::process::Tool;
use crate::versions;

/// The distribution's package brings `promtool`, and a server that nobody starts.
pub const COMPONENT: Component = Component {
    name: "promtool",
    version: versions::PROMTOOL,
    source: Source::Debian("prometheus"),
    program: "promtool",
};

/// A run of it.
///
/// # Errors
/// It is not installed.
pub fn tool() -> Result<Tool> {
    Ok(Tool::new(COMPONENT.path()?))
}
