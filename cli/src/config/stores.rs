//! The `stores` section of `.sops.yaml`: how a document is laid out that is printed in another format.

use std::path::Path;

use lacre_crypto::Layout;
use serde::Deserialize;

use super::{file, lookup};
use crate::commands::Context;
use crate::compat;
use crate::error::{CommandError, Kind};

/// The section as written.
#[derive(Clone, Copy, Debug, Default, Deserialize)]
pub(super) struct Stores {
    #[serde(default)]
    json: Store,
    #[serde(default)]
    yaml: Store,
}

#[derive(Clone, Copy, Debug, Default, Deserialize)]
struct Store {
    indent: Option<i64>,
}

/// The layout for what is made of `name`: as typed, or as its configuration says. As for stock sops, JSON's -1 is a tab
/// and YAML's 0 the default.
///
/// # Errors
/// The configuration cannot be used, or a number is below those.
pub(crate) fn layout(name: &Path, typed: Option<i64>, context: &Context) -> Result<Layout, CommandError> {
    let stores = match typed {
        Some(_) => Stores { json: Store { indent: typed }, yaml: Store { indent: typed } },
        None => configured(name, context)?,
    };
    let refuse = |what: &str, indent: i64| {
        CommandError::new(Kind::Emit, format!("an indent of {indent} cannot be used for {what}"))
            .hint("give `--indent` a number of spaces")
    };
    let defaults = Layout::default();
    let yaml_indent = match stores.yaml.indent.unwrap_or_default() {
        0 => defaults.yaml_indent,
        indent => usize::try_from(indent).map_err(|_| refuse("YAML", indent))?,
    };
    let json_indent = match stores.json.indent.unwrap_or(-1) {
        -1 => defaults.json_indent,
        indent => match usize::try_from(indent) {
            Ok(indent) if indent <= INDENT_MAX => Some(indent),
            _ => return Err(refuse("JSON", indent)),
        },
    };
    Ok(Layout { json_indent, yaml_indent })
}

/// Most spaces of a level of JSON.
const INDENT_MAX: usize = 64;

fn configured(name: &Path, context: &Context) -> Result<Stores, CommandError> {
    let given = context.global.config.as_deref().map(Path::new);
    match lookup::find(name, given, compat::spoken(), context.output)? {
        Some(config) => Ok(file::read(&config)?.stores),
        None => Ok(Stores::default()),
    }
}
