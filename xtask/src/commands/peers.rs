//! `cargo xtask peers`: installs the real programs that tests need.

use std::process::ExitCode;

use anyhow::{Context, Result};

use crate::install::{self, Component};
use crate::output;
use crate::peers::ALL;

/// Installs the named components, or all.
///
/// # Errors
/// A name is unknown, or a component cannot be had.
pub fn run(names: &[String]) -> Result<ExitCode> {
    for component in chosen(names)? {
        install::ensure(component)?;
        output::line(&format!("{} {}: {}", component.name, component.version, component.path()?.display()));
    }
    Ok(ExitCode::SUCCESS)
}

fn chosen(names: &[String]) -> Result<Vec<&'static Component>> {
    if names.is_empty() {
        return Ok(ALL.to_vec());
    }
    let known = || ALL.map(|component| component.name).join(", ");
    let find = |name: &String| ALL.into_iter().find(|component| component.name == name);
    names.iter().map(|name| find(name).with_context(|| format!("`{name}` is none of {}", known()))).collect()
}

#[cfg(test)]
mod tests {
    use super::chosen;

    #[test]
    fn no_name_means_all() {
        assert_eq!(chosen(&[]).unwrap().len(), crate::peers::ALL.len());
    }

    #[test]
    fn an_unknown_name_is_an_error_that_lists_the_known_ones() {
        let error = chosen(&["minikube".to_owned()]).unwrap_err().to_string();
        assert!(error.contains("`minikube` is none of gpg, age"), "{error}");
    }
}
