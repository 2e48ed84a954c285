//! Which `.sops.yaml` counts for a file, and what the file is called below it.

use std::fs;
use std::path::{Component, Path, PathBuf};

use super::CONFIG_NAME;
use crate::compat::Spoken;
use crate::error::{CommandError, Kind};
use crate::output::Output;

/// How many folders upward are looked at.
const FOLDERS_MAX: usize = 100;

/// The configuration for `file`: the `named` one, else the nearest upward from the file's folder; in the place of
/// sops, from the working folder.
pub(super) fn find(
    file: &Path,
    named: Option<&Path>,
    spoken: Spoken,
    output: Output,
) -> Result<Option<PathBuf>, CommandError> {
    if let Some(named) = named.filter(|named| !named.as_os_str().is_empty()) {
        return Ok(Some(named.to_owned()));
    }
    let near = nearest(absolute(file)?.parent(), output);
    let there = nearest(Some(&absolute(Path::new("."))?), output);
    match spoken {
        Spoken::Sops => {
            if let Some((near, there)) = different(near.as_deref(), there.as_deref()) {
                output.warn(&format!(
                    "using {}, as sops does from this folder; {} is nearer to the file",
                    there.display(),
                    near.display(),
                ));
            }
            Ok(there)
        }
        _ => {
            if let Some((near, there)) = different(near.as_deref(), there.as_deref()) {
                output.warn(&format!(
                    "using {}, which is nearest to the file; stock sops started here would use {}",
                    near.display(),
                    there.display(),
                ));
            }
            Ok(near.or(there))
        }
    }
}

/// Both paths, if there are two and they lead to different files.
fn different<'a>(near: Option<&'a Path>, there: Option<&'a Path>) -> Option<(&'a Path, &'a Path)> {
    near.zip(there).filter(|(near, there)| fs::canonicalize(near).ok() != fs::canonicalize(there).ok())
}

/// `file` as path rules see it: below the configuration's folder, with `/` between its parts; a file outside keeps
/// its whole path.
pub(super) fn path_below(config: &Path, file: &Path) -> Result<String, CommandError> {
    let (config, file) = (absolute(config)?, absolute(file)?);
    let below = config.parent().and_then(|folder| file.strip_prefix(folder).ok()).unwrap_or(&file);
    Ok(below.to_string_lossy().replace(std::path::MAIN_SEPARATOR, "/"))
}

/// `path` from the root, with `.` and `..` taken out as text. Symbolic links are not followed, as in sops.
pub(crate) fn absolute(path: &Path) -> Result<PathBuf, CommandError> {
    let whole = std::path::absolute(path).map_err(|error| {
        CommandError::on(Kind::Read, "the working directory", error).hint("go to a folder that is there")
    })?;
    let mut clean = PathBuf::new();
    for component in whole.components() {
        match component {
            Component::CurDir => {}
            Component::ParentDir => {
                clean.pop();
            }
            other => clean.push(other),
        }
    }
    Ok(clean)
}

fn nearest(folder: Option<&Path>, output: Output) -> Option<PathBuf> {
    for folder in folder?.ancestors().take(FOLDERS_MAX) {
        let config = folder.join(CONFIG_NAME);
        if config.is_file() {
            return Some(config);
        }
        let misnamed = folder.join(".sops.yml");
        if misnamed.is_file() {
            output.warn(&format!("{} is not read: its name must be {CONFIG_NAME}", misnamed.display()));
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths_are_cleaned_and_cut_at_the_configuration() {
        let below = |config: &str, file: &str| path_below(Path::new(config), Path::new(file)).unwrap();
        assert_eq!(below("/r/.sops.yaml", "/r/a/../b/./c.yaml"), "b/c.yaml");
        assert_eq!(below("/r/sub/.sops.yaml", "/r/c.yaml"), "/r/c.yaml");
        assert_eq!(below("/r/.sops.yaml", "/other/c.yaml"), "/other/c.yaml");
    }

    #[test]
    fn the_nearest_file_counts() {
        let root = tempfile::tempdir().unwrap();
        let inner = root.path().join("a/b");
        fs::create_dir_all(&inner).unwrap();
        fs::write(root.path().join(CONFIG_NAME), "").unwrap();
        let found = || find(&inner.join("x.yaml"), None, Spoken::Lacre, Output::default()).unwrap().unwrap();
        assert_eq!(found(), root.path().join(CONFIG_NAME));
        fs::write(root.path().join("a").join(CONFIG_NAME), "").unwrap();
        assert_eq!(found(), root.path().join("a").join(CONFIG_NAME));
        let named = find(&inner.join("x.yaml"), Some(Path::new("other")), Spoken::Lacre, Output::default());
        assert_eq!(named.unwrap().unwrap(), Path::new("other"));
    }
}
