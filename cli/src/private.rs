//! A folder for plaintext that a program must find in a file: this user's alone, wiped when it goes out of scope.
//!
//! It lives on a memory file system (`XDG_RUNTIME_DIR`, then `/dev/shm`) unless the caller names another place. What
//! the kernel may have swapped out is out of reach. A process that is killed outright leaves its folder: the next one
//! that makes a folder there wipes it. A folder in use is told by the lock that its process holds on it.

use std::fs::{self, File, OpenOptions, Permissions};
use std::io::{self, Write};
use std::os::unix::fs::{FileExt, MetadataExt, OpenOptionsExt, PermissionsExt};
use std::path::{Path, PathBuf};

use tempfile::TempDir;

/// File systems that live in memory, by the number that `statfs` gives.
const MEMORY_FILE_SYSTEMS: [u64; 2] = [0x0102_1994, 0x8584_58f6];

/// How folders are called that are wiped when their process is gone.
const PREFIX: &str = "lacre-";

/// How folders are called that stay until their owner deletes them.
const PREFIX_KEPT: &str = "kept-lacre-";

/// How often a folder is made before giving up: another process may take a new one, not locked yet, for a leftover.
const ATTEMPTS_MAX: usize = 8;

/// The folder, for as long as this value lives, and the lock on it.
pub(crate) struct PrivateFolder(Option<(TempDir, File)>);

impl PrivateFolder {
    /// One in memory; nothing where there is no memory file system that this user can write to.
    pub(crate) fn in_memory() -> Option<Self> {
        let runtime = std::env::var_os("XDG_RUNTIME_DIR").map(PathBuf::from);
        let candidates = runtime.into_iter().chain([PathBuf::from("/dev/shm")]);
        candidates.filter(|parent| is_in_memory(parent)).find_map(|parent| Self::inside(&parent).ok())
    }

    /// One in `parent`, whatever that lies on.
    pub(crate) fn inside(parent: &Path) -> io::Result<Self> {
        wipe_leftovers(parent);
        for _ in 0..ATTEMPTS_MAX {
            let mode = Permissions::from_mode(0o700);
            let made = tempfile::Builder::new().prefix(PREFIX).permissions(mode).tempdir_in(parent)?;
            let Ok(lock) = File::open(made.path()) else { continue };
            if lock.try_lock().is_ok() && made.path().exists() {
                return Ok(Self(Some((made, lock))));
            }
        }
        Err(io::Error::other("a new folder is taken away each time"))
    }

    /// Where `name` stands in it, or would.
    pub(crate) fn place(&self, name: &Path) -> PathBuf {
        self.0.as_ref().map(|(folder, _)| folder.path().join(name)).unwrap_or_default()
    }

    /// A new file called `name` that holds `bytes`, for its owner alone.
    pub(crate) fn create(&self, name: &Path, bytes: &[u8]) -> io::Result<PathBuf> {
        let file = self.place(name);
        let mut made = OpenOptions::new().write(true).create_new(true).mode(0o600).open(&file)?;
        made.write_all(bytes)?;
        Ok(file)
    }

    /// Leaves the folder and what is in it, under a name of its own, and says which.
    pub(crate) fn keep(mut self) -> PathBuf {
        let Some((folder, _lock)) = self.0.take() else { return PathBuf::new() };
        let made = folder.keep();
        let name = made.file_name().unwrap_or_default().to_string_lossy();
        let kept = made.with_file_name(name.replacen(PREFIX, PREFIX_KEPT, 1));
        match fs::rename(&made, &kept) {
            Ok(()) => kept,
            Err(_) => made,
        }
    }
}

impl Drop for PrivateFolder {
    fn drop(&mut self) {
        if let Some((folder, _lock)) = self.0.take() {
            overwrite_all(folder.path());
        }
    }
}

/// Wipes the folders in `parent` that processes of this user left when they were killed.
fn wipe_leftovers(parent: &Path) {
    let user = rustix::process::geteuid().as_raw();
    for entry in fs::read_dir(parent).into_iter().flatten().flatten() {
        let ours = entry.file_name().to_string_lossy().starts_with(PREFIX)
            && entry.metadata().is_ok_and(|found| found.is_dir() && found.uid() == user);
        if !ours {
            continue;
        }
        let Ok(lock) = File::open(entry.path()) else { continue };
        if lock.try_lock().is_ok() {
            overwrite_all(&entry.path());
            let _ = fs::remove_dir_all(entry.path());
        }
    }
}

fn overwrite_all(folder: &Path) {
    for entry in fs::read_dir(folder).into_iter().flatten().flatten() {
        overwrite(&entry.path());
    }
}

fn is_in_memory(folder: &Path) -> bool {
    #[cfg(target_os = "linux")]
    {
        rustix::fs::statfs(folder).is_ok_and(|system| MEMORY_FILE_SYSTEMS.contains(&(system.f_type as u64)))
    }
    #[cfg(not(target_os = "linux"))]
    {
        let _ = (folder, MEMORY_FILE_SYSTEMS);
        false
    }
}

/// Overwrites a file's bytes with zeros, so that the pages do not keep them once the name is gone.
fn overwrite(path: &Path) {
    let wipe = |file: File| -> io::Result<()> {
        let zeros = [0; 4096];
        let length = file.metadata()?.len();
        (0..length).step_by(zeros.len()).try_for_each(|offset| file.write_all_at(&zeros, offset))?;
        file.set_len(0)
    };
    if path.symlink_metadata().is_ok_and(|found| found.is_file()) {
        let _ = OpenOptions::new().write(true).open(path).and_then(wipe);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn wiping_leaves_no_byte() {
        let place = tempfile::tempdir().unwrap();
        let folder = PrivateFolder::inside(place.path()).unwrap();
        let file = folder.create("file".as_ref(), b"secret").unwrap();
        let link = place.path().join("link");
        fs::hard_link(&file, &link).unwrap();
        assert_eq!(fs::metadata(&file).unwrap().permissions().mode() & 0o777, 0o600);
        assert_eq!(fs::metadata(file.parent().unwrap()).unwrap().permissions().mode() & 0o777, 0o700);
        drop(folder);
        assert_eq!(fs::read(&link).unwrap(), b"");
        assert!(!file.exists());
    }

    #[test]
    fn what_a_killed_process_left_is_wiped_by_the_next() {
        let place = tempfile::tempdir().unwrap();
        let mut killed = PrivateFolder::inside(place.path()).unwrap();
        let file = killed.create("file".as_ref(), b"secret").unwrap();
        let link = place.path().join("link");
        fs::hard_link(&file, &link).unwrap();
        let used = PrivateFolder::inside(place.path()).unwrap();
        assert_eq!(fs::read(&link).unwrap(), b"secret", "its process lives");
        let (folder, lock) = killed.0.take().unwrap();
        let _ = folder.keep();
        drop(lock);
        let kept = PrivateFolder::inside(place.path()).unwrap();
        assert!(!file.exists());
        assert_eq!(fs::read(&link).unwrap(), b"");
        assert!(used.place("".as_ref()).is_dir(), "its process lives");
        kept.create("file".as_ref(), b"edit").unwrap();
        let kept = kept.keep();
        drop(PrivateFolder::inside(place.path()).unwrap());
        assert_eq!(fs::read(kept.join("file")).unwrap(), b"edit", "somebody was told where it is");
    }
}
