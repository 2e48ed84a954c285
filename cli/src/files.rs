//! Reading input whole, and replacing a file in one step.
//!
//! Contract of a write: the new bytes go to a new file in the same folder, reach the disk, and take the file's
//! name in one step, so that a reader, a crash or `kill -9` meets the old file or the new one, never a
//! mixture. Owner, mode and extended attributes are kept; a symbolic link stays and its target is replaced. What
//! is no regular file (`/dev/stdout`, a FIFO) is written directly. Files with plaintext are made for their owner
//! alone; where there was none before, a loss of power may still take it away. A file that changed since it was read is left alone. Whether another program writes between that last
//! look and the rename cannot be known; the window is a few microseconds.

mod folder;
mod replacing;

use std::fs::File;
use std::io::{self, Read};
use std::path::{Path, PathBuf};

use lacre_crypto::secret::Plaintext;
use lacre_crypto::{SecretBytes, SecretText};

use crate::compat;
use crate::error::{CommandError, Kind};
use crate::output;
use replacing::{Attributes, Existing, Place};

pub(crate) use folder::walk;
pub(crate) use replacing::is_left_behind;

/// Most bytes of a file or stream that are read.
pub(crate) const FILE_BYTES_MAX: u64 = 256 * 1024 * 1024;

/// A file or stream that was read: text, or bytes of any kind.
#[derive(Debug)]
pub(crate) struct Input<Content = SecretText> {
    /// What it is called in messages, and what decides its format and rule.
    pub(crate) name: PathBuf,
    /// Where it can be replaced; standard input cannot.
    pub(crate) path: Option<PathBuf>,
    /// What stood in it.
    pub(crate) content: Content,
}

impl Input<SecretBytes> {
    /// The same as text.
    pub(crate) fn into_text(self) -> Result<Input, CommandError> {
        let place = self.path.as_ref().map_or("standard input".into(), |path| path.display().to_string());
        let content = self.content.into_text().map_err(|bytes| {
            let bytes = bytes.expose_secret();
            let valid = std::str::from_utf8(bytes).map_or_else(|error| error.valid_up_to(), str::len);
            let before = String::from_utf8_lossy(&bytes[..valid]);
            let (line, column) = (before.matches('\n').count() + 1, before.rsplit('\n').next());
            let column = column.map_or(0, |text| text.chars().count()) + 1;
            CommandError::on(Kind::Read, place, format!("line {line}, column {column}: not UTF-8 text"))
                .hint("save it as UTF-8, or seal all of it as one value with `--input-type binary`")
        })?;
        Ok(Input { name: self.name, path: self.path, content })
    }
}

/// Whether a file is for everyone who may read the folder, or for its owner alone.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Privacy {
    /// Plaintext or a private key.
    OwnerAlone,
    /// Sealed or public text.
    Shared,
}

/// Reads the text in `path`, or on standard input when it is absent or `-`.
pub(crate) fn read(path: Option<&Path>, named: Option<&Path>) -> Result<Input, CommandError> {
    read_any(path, named)?.into_text()
}

/// As [`read`], whatever the bytes are.
pub(crate) fn read_any(
    path: Option<&Path>,
    named: Option<&Path>,
) -> Result<Input<SecretBytes>, CommandError> {
    let path = path.filter(|path| *path != Path::new("-"));
    let Some(path) = path else {
        return read_stdin(named);
    };
    let content = read_bytes(path)?;
    Ok(Input { name: named.unwrap_or(path).to_owned(), path: Some(path.to_owned()), content })
}

/// Reads a file's bytes, up to [`FILE_BYTES_MAX`].
pub(crate) fn read_bytes(path: &Path) -> Result<SecretBytes, CommandError> {
    let kind = |error: &io::Error| match error.kind() {
        io::ErrorKind::NotFound => Kind::NoFile,
        _ => Kind::Read,
    };
    let told = |error: io::Error| {
        let failure = CommandError::on(kind(&error), path.display(), plain_words(&error));
        match error.kind() {
            io::ErrorKind::IsADirectory => failure.hint("take the files of a folder with `--recursive`"),
            io::ErrorKind::NotFound => {
                failure.hint("look at the name, and at the folder this was started in")
            }
            io::ErrorKind::PermissionDenied => failure.hint("ask its owner for the right to read it"),
            _ => failure.hint("name a file of at most 256 MiB that can be read"),
        }
    };
    let read = |file: File| {
        // Known or not, more than is there is never made room for: all of it would be wiped in the end.
        let length = file.metadata().map_or(0, |metadata| metadata.len().min(FILE_BYTES_MAX));
        read_into(Vec::with_capacity(usize::try_from(length).unwrap_or_default() + 1), file, FILE_BYTES_MAX)
    };
    File::open(path).and_then(read).map_err(told)
}

/// Reads all of `reader`, and refuses what is longer than `bytes_max`.
pub(crate) fn read_bounded(reader: impl Read, bytes_max: u64) -> io::Result<SecretBytes> {
    read_into(Vec::new(), reader, bytes_max)
}

fn read_into(mut bytes: Vec<u8>, reader: impl Read, bytes_max: u64) -> io::Result<SecretBytes> {
    reader.take(bytes_max + 1).read_to_end(&mut bytes)?;
    let bytes = SecretBytes::new(bytes);
    if bytes.len() as u64 > bytes_max {
        return Err(io::Error::other(format!("larger than {bytes_max} bytes")));
    }
    Ok(bytes)
}

/// Writes `bytes` to `path`, in one step where it is a regular file or none yet. Plaintext tightens the mode of a file
/// that is there.
pub(crate) fn write(path: &Path, bytes: &[u8], privacy: Privacy) -> Result<(), CommandError> {
    let place = Place::find(path).map_err(|error| write_error(path, &error))?;
    let attributes = match (&place.metadata, privacy) {
        // Who calls sops may have made the file for others to read.
        (Some(old), Privacy::OwnerAlone) if !place.direct && !compat::as_sops() => {
            Attributes::kept(old).for_owner_alone()
        }
        (Some(old), _) => Attributes::kept(old),
        (None, _) => Attributes::fresh(privacy),
    };
    // Waiting for the disk is what takes most of the time of many files. Plaintext where there was no file is only as
    // good as the sealed file that it came from, and that one stays.
    let existing = match (&place.metadata, privacy) {
        (None, Privacy::OwnerAlone) => Existing::None,
        _ => Existing::Replace,
    };
    place.put(bytes, &attributes, existing).map_err(|error| write_error(path, &error))
}

/// Writes `bytes` to `path` in one step, and refuses when there is something by that name.
pub(crate) fn create(path: &Path, bytes: &[u8], privacy: Privacy) -> Result<(), CommandError> {
    let place = Place { target: path.to_owned(), metadata: None, direct: false };
    match place.put(bytes, &Attributes::fresh(privacy), Existing::Refuse) {
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {
            Err(CommandError::on(Kind::Write, path.display(), "exists already")
                .hint("name another file, or move that one away"))
        }
        result => result.map_err(|error| write_error(path, &error)),
    }
}

/// Replaces what `input` was read from, unless it changed since. Plaintext tightens the file's mode.
pub(crate) fn replace<Content: Plaintext>(
    input: &Input<Content>,
    bytes: &[u8],
    privacy: Privacy,
) -> Result<(), CommandError> {
    let refused = |what: &str| {
        CommandError::new(Kind::ConflictingFlags, format!("{what} cannot be changed in place"))
            .hint("name a file, or write to one with `--output FILE`")
    };
    let Some(path) = &input.path else { return Err(refused("standard input")) };
    let place = Place::find(path).map_err(|error| write_error(path, &error))?;
    // What is written into a pipe that was read to its end is lost.
    if place.direct {
        return Err(refused(&path.display().to_string()));
    }
    let attributes = match (&place.metadata, privacy) {
        (Some(old), Privacy::Shared) => Attributes::kept(old),
        (Some(old), Privacy::OwnerAlone) => Attributes::kept(old).for_owner_alone(),
        (None, _) => return Err(changed_meanwhile(path)),
    };
    match place.put(bytes, &attributes, Existing::Expect(input.content.expose_bytes())) {
        Err(error) if error.kind() == io::ErrorKind::StaleNetworkFileHandle => Err(changed_meanwhile(path)),
        result => result.map_err(|error| write_error(path, &error)),
    }
}

/// What an error of the system means, in its words without the error number.
pub(crate) fn plain_words(error: &io::Error) -> String {
    let text = error.to_string();
    text.split(" (os error").next().unwrap_or_default().to_owned()
}

fn read_stdin(named: Option<&Path>) -> Result<Input<SecretBytes>, CommandError> {
    if output::stdin_is_terminal() {
        return Err(CommandError::new(Kind::NoFile, "no file given, and standard input is a terminal")
            .hint("name a file, or pipe one in and name it with `--filename-override NAME`"));
    }
    let content = read_bounded(io::stdin().lock(), FILE_BYTES_MAX).map_err(|error| {
        CommandError::on(Kind::Read, "standard input", plain_words(&error)).hint("name a file")
    })?;
    let name = named.unwrap_or(Path::new("standard input")).to_owned();
    Ok(Input { name, path: None, content })
}

fn write_error(path: &Path, error: &io::Error) -> CommandError {
    let failure =
        CommandError::on(Kind::Write, path.display(), format!("cannot write: {}", plain_words(error)));
    match error.kind() {
        io::ErrorKind::PermissionDenied => failure.hint(
            "files are replaced in one step, so their folder must be writable and their owner must be yours to keep",
        ),
        io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded => {
            failure.hint("make room there; the file is as it was")
        }
        _ => failure.hint("the file is as it was; name another one with `--output FILE`"),
    }
}

fn changed_meanwhile(path: &Path) -> CommandError {
    CommandError::on(Kind::Write, path.display(), "changed since it was read; it is left as it is")
        .hint("run the command again")
}

#[cfg(test)]
mod tests {
    use std::fs::{self, Permissions};
    use std::os::unix::fs::{MetadataExt, PermissionsExt};

    use super::*;

    fn input(path: &Path) -> Input {
        read(Some(path), None).unwrap()
    }

    fn mode(path: &Path) -> u32 {
        fs::metadata(path).unwrap().mode() & 0o777
    }

    #[test]
    fn replacing_keeps_the_mode_and_the_link() {
        let folder = tempfile::tempdir().unwrap();
        let (file, link) = (folder.path().join("file"), folder.path().join("link"));
        fs::write(&file, "old").unwrap();
        fs::set_permissions(&file, Permissions::from_mode(0o640)).unwrap();
        std::os::unix::fs::symlink("file", &link).unwrap();
        replace(&input(&link), b"new", Privacy::Shared).unwrap();
        assert!(fs::symlink_metadata(&link).unwrap().is_symlink());
        assert_eq!((fs::read_to_string(&file).unwrap().as_str(), mode(&file)), ("new", 0o640));
        replace(&input(&link), b"plain", Privacy::OwnerAlone).unwrap();
        assert_eq!(mode(&file), 0o600);
        assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 2, "a temporary file stayed behind");
    }

    #[test]
    fn a_file_that_changed_meanwhile_is_left_alone() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("file");
        fs::write(&file, "old").unwrap();
        let read = input(&file);
        fs::write(&file, "NEW").unwrap();
        let error = replace(&read, b"ours", Privacy::Shared).unwrap_err();
        assert_eq!((error.kind, fs::read_to_string(&file).unwrap().as_str()), (Kind::Write, "NEW"));
        fs::remove_file(&file).unwrap();
        assert!(replace(&read, b"ours", Privacy::Shared).is_err());
        assert!(!file.exists());
    }

    #[test]
    fn new_plaintext_is_for_its_owner_alone() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("file");
        write(&file, b"plain", Privacy::OwnerAlone).unwrap();
        assert_eq!(mode(&file), 0o600);
        assert!(write(folder.path(), b"x", Privacy::Shared).is_err(), "a folder is no file");
    }

    #[test]
    fn what_is_made_new_overwrites_nothing() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("file");
        create(&file, b"one", Privacy::OwnerAlone).unwrap();
        assert!(create(&file, b"two", Privacy::OwnerAlone).is_err());
        assert_eq!((fs::read_to_string(&file).unwrap().as_str(), mode(&file)), ("one", 0o600));
        assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 1, "a temporary file stayed behind");
    }

    #[test]
    fn the_target_of_a_dangling_link_is_made() {
        let folder = tempfile::tempdir().unwrap();
        let link = folder.path().join("link");
        std::os::unix::fs::symlink("made", &link).unwrap();
        write(&link, b"x", Privacy::Shared).unwrap();
        assert_eq!(fs::read_to_string(folder.path().join("made")).unwrap(), "x");
    }

    #[test]
    fn what_is_no_text_or_too_long_is_refused() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("file");
        fs::write(&file, b"ab\xff").unwrap();
        let error = read(Some(&file), None).unwrap_err();
        assert!(error.cause.to_string().ends_with("line 1, column 3: not UTF-8 text"), "{}", error.cause);
        assert!(read_bounded(&b"123"[..], 3).is_ok() && read_bounded(&b"1234"[..], 3).is_err());
    }
}
