//! Which files a folder holds, in an order that is the same everywhere.

use std::fs;
use std::path::{Path, PathBuf};

use super::plain_words;
use crate::error::{CommandError, Kind};

/// Folders inside each other that are entered at most.
const DEPTH_MAX: usize = 128;

/// Most files that one folder may hold.
const FILES_MAX: usize = 1_000_000;

/// The files below `folder`, sorted by name within each folder. Hidden folders (`.git`) and symbolic links are left out:
/// a link's target is met where it stands, or is outside of what was named.
pub(crate) fn walk(folder: &Path) -> Result<Vec<PathBuf>, CommandError> {
    let mut found = Vec::new();
    enter(folder, 0, &mut found)?;
    Ok(found)
}

fn enter(folder: &Path, depth: usize, found: &mut Vec<PathBuf>) -> Result<(), CommandError> {
    let refuse = |reason: String| {
        CommandError::on(Kind::Read, folder.display(), reason)
            .hint("name a folder further down, or its files")
    };
    if depth > DEPTH_MAX {
        return Err(refuse(format!("folders are nested deeper than {DEPTH_MAX}")));
    }
    let failed = |error| refuse(plain_words(&error));
    let entries = fs::read_dir(folder).map_err(failed)?.collect::<Result<Vec<_>, _>>().map_err(failed)?;
    let mut named: Vec<_> = entries.into_iter().map(|entry| (entry.file_name(), entry)).collect();
    named.sort_by(|(one, _), (other, _)| one.cmp(other));
    for (name, entry) in named {
        let kind = entry.file_type().map_err(failed)?;
        // `.` is left out of the names, as people write them.
        let path = if folder == Path::new(".") { PathBuf::from(&name) } else { entry.path() };
        let is_hidden = name.as_encoded_bytes().starts_with(b".");
        if kind.is_dir() && !is_hidden {
            enter(&path, depth + 1, found)?;
        } else if kind.is_file() {
            found.push(path);
        }
        if found.len() > FILES_MAX {
            return Err(refuse(format!("more than {FILES_MAX} files")));
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn files_come_in_order_without_hidden_folders_and_links() {
        let root = tempfile::tempdir().unwrap();
        for folder in ["b", ".git", "a/.terraform"] {
            fs::create_dir_all(root.path().join(folder)).unwrap();
        }
        for file in ["b/2", "b/1", ".git/config", "a/.terraform/x", "a/z", ".env", "c"] {
            fs::write(root.path().join(file), "").unwrap();
        }
        std::os::unix::fs::symlink("b", root.path().join("link")).unwrap();
        std::os::unix::fs::symlink("../a", root.path().join("b/up")).unwrap();
        std::os::unix::fs::symlink("c", root.path().join("d")).unwrap();
        let found = walk(root.path()).unwrap();
        let names: Vec<_> =
            found.iter().map(|path| path.strip_prefix(root.path()).unwrap().to_str().unwrap()).collect();
        assert_eq!(names, [".env", "a/z", "b/1", "b/2", "c"]);
    }

    #[test]
    fn the_depth_is_limited() {
        let root = tempfile::tempdir().unwrap();
        let nested = |levels: usize| root.path().join("d/".repeat(levels));
        fs::create_dir_all(nested(DEPTH_MAX)).unwrap();
        assert!(walk(root.path()).is_ok());
        fs::create_dir(nested(DEPTH_MAX + 1)).unwrap();
        assert!(walk(root.path()).is_err());
    }
}
