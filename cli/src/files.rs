//! Reading input whole, and replacing a file in one step.
//!
//! Contract of a write: the new bytes go to a new file in the same folder, reach the disk, and take the file's
//! name in one step, so that a reader, a crash or `kill -9` meets the old file or the new one, never a
//! mixture. Owner, mode and extended attributes are kept; a symbolic link stays and its target is replaced. What
//! is no regular file (`/dev/stdout`, a FIFO) is written directly. Files with plaintext are made for their owner
//! alone. A file that changed since it was read is left alone. Whether another program writes between that last
//! look and the rename cannot be known; the window is a few microseconds.

use std::fs::{self, File, Metadata, OpenOptions, Permissions};
use std::io::{self, Read, Write};
use std::os::fd::AsRawFd;
use std::os::unix::fs::{MetadataExt, OpenOptionsExt, PermissionsExt};
use std::path::{Path, PathBuf};

use lacre_crypto::secret::Plaintext;
use lacre_crypto::{SecretBytes, SecretText};
use rustix::fs::{Gid, Uid, XattrFlags};

use crate::error::{CommandError, Kind};
use crate::output;

/// Most bytes of a file or stream that are read.
pub(crate) const FILE_BYTES_MAX: u64 = 256 * 1024 * 1024;

/// Most symbolic links that are followed to a file.
const LINKS_MAX: usize = 40;

const OWNER_ALONE: u32 = 0o600;

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
            let valid =
                std::str::from_utf8(bytes.expose_secret()).map_or_else(|error| error.valid_up_to(), str::len);
            CommandError::on(Kind::Read, place, format!("not UTF-8 text at byte {}", valid + 1))
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
    File::open(path)
        .and_then(|file| read_bounded(file, FILE_BYTES_MAX))
        .map_err(|error| CommandError::on(kind(&error), path.display(), plain_words(&error)))
}

/// Reads all of `reader`, and refuses what is longer than `bytes_max`.
pub(crate) fn read_bounded(reader: impl Read, bytes_max: u64) -> io::Result<SecretBytes> {
    let mut bytes = Vec::new();
    reader.take(bytes_max + 1).read_to_end(&mut bytes)?;
    let bytes = SecretBytes::new(bytes);
    if bytes.len() as u64 > bytes_max {
        return Err(io::Error::other(format!("larger than {bytes_max} bytes")));
    }
    Ok(bytes)
}

/// Writes `bytes` to `path`, in one step where it is a regular file or none yet.
pub(crate) fn write(path: &Path, bytes: &[u8], privacy: Privacy) -> Result<(), CommandError> {
    let place = Place::find(path).map_err(|error| write_error(path, &error))?;
    let attributes = match &place.metadata {
        Some(old) => Attributes::kept(old),
        None => Attributes::fresh(privacy),
    };
    place.put(bytes, &attributes, Existing::Replace).map_err(|error| write_error(path, &error))
}

/// Writes `bytes` to `path` in one step, and refuses when there is something by that name.
pub(crate) fn create(path: &Path, bytes: &[u8], privacy: Privacy) -> Result<(), CommandError> {
    let place = Place { target: path.to_owned(), metadata: None, direct: false };
    match place.put(bytes, &Attributes::fresh(privacy), Existing::Refuse) {
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {
            Err(CommandError::on(Kind::Write, path.display(), "exists already"))
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

/// What to do about a file that is there already.
enum Existing<'a> {
    /// Replace it if it still holds this.
    Expect(&'a [u8]),
    Refuse,
    Replace,
}

/// Where a write ends up once symbolic links are followed.
struct Place {
    target: PathBuf,
    /// Of the file that is there now.
    metadata: Option<Metadata>,
    /// Whether it must be written without a rename: a device, a pipe, a process's own stream.
    direct: bool,
}

impl Place {
    fn find(path: &Path) -> io::Result<Self> {
        let mut target = path.to_owned();
        for _ in 0..LINKS_MAX {
            let stream = is_stream(&target);
            match fs::symlink_metadata(&target) {
                Ok(metadata) if metadata.is_symlink() && !stream => {
                    let link = fs::read_link(&target)?;
                    target = target.parent().unwrap_or(Path::new("")).join(link);
                }
                Ok(metadata) if metadata.is_dir() => return Err(io::ErrorKind::IsADirectory.into()),
                Ok(metadata) => {
                    let direct = stream || !metadata.is_file();
                    return Ok(Self { target, metadata: Some(metadata), direct });
                }
                Err(error) if error.kind() == io::ErrorKind::NotFound => {
                    return Ok(Self { target, metadata: None, direct: false });
                }
                Err(error) => return Err(error),
            }
        }
        Err(io::Error::other("too many levels of symbolic links"))
    }

    /// Puts `bytes` there. An expected content that is no longer found is reported as a stale handle.
    fn put(&self, bytes: &[u8], attributes: &Attributes, existing: Existing<'_>) -> io::Result<()> {
        if self.direct {
            return OpenOptions::new().write(true).open(&self.target)?.write_all(bytes);
        }
        let folder = match self.target.parent() {
            Some(folder) if folder != Path::new("") => folder,
            _ => Path::new("."),
        };
        let fill = |mut file: &File| {
            file.write_all(bytes)?;
            attributes.apply(file, &self.target)?;
            file.sync_all()
        };
        let temporary = complete_file(folder, attributes.mode_at_creation(), &fill)?;
        let persisted = match existing {
            Existing::Expect(content) if !same_content(&self.target, content) => {
                return Err(io::ErrorKind::StaleNetworkFileHandle.into());
            }
            Existing::Expect(_) | Existing::Replace => temporary.persist(&self.target),
            Existing::Refuse => temporary.persist_noclobber(&self.target),
        };
        persisted.map_err(|error| error.error)?;
        File::open(folder)?.sync_all()
    }
}

/// A temporary file in `folder` that `fill` has completed. Where the system can, it has no name until it is complete,
/// so that not even `kill -9` leaves plaintext behind under the name of a temporary file.
fn complete_file(
    folder: &Path,
    mode: u32,
    fill: &dyn Fn(&File) -> io::Result<()>,
) -> io::Result<tempfile::TempPath> {
    let mut name = tempfile::Builder::new();
    name.prefix(".lacre-");
    if let Some(file) = unnamed_file(folder, mode) {
        fill(&file)?;
        let linked = name.make_in(folder, |path| link(&file, path));
        // Without /proc a file cannot be given a name afterwards.
        if !linked.as_ref().is_err_and(|error| error.kind() == io::ErrorKind::NotFound) {
            return linked.map(tempfile::NamedTempFile::into_temp_path);
        }
    }
    let create = |path: &Path| OpenOptions::new().write(true).create_new(true).mode(mode).open(path);
    let file = name.make_in(folder, create)?;
    fill(file.as_file())?;
    Ok(file.into_temp_path())
}

#[cfg(target_os = "linux")]
fn unnamed_file(folder: &Path, mode: u32) -> Option<File> {
    use rustix::fs::{Mode, OFlags};
    let flags = OFlags::TMPFILE | OFlags::WRONLY | OFlags::CLOEXEC;
    rustix::fs::open(folder, flags, Mode::from_raw_mode(mode)).ok().map(File::from)
}

#[cfg(not(target_os = "linux"))]
fn unnamed_file(_folder: &Path, _mode: u32) -> Option<File> {
    None
}

/// Gives an unnamed file its name, which must be free.
fn link(file: &File, path: &Path) -> io::Result<()> {
    use rustix::fs::{AtFlags, CWD};
    let unnamed = format!("/proc/self/fd/{}", file.as_raw_fd());
    rustix::fs::linkat(CWD, unnamed, CWD, path, AtFlags::SYMLINK_FOLLOW).map_err(io::Error::from)
}

/// What a new file takes over from the one it replaces.
struct Attributes {
    owner: Option<(u32, u32)>,
    /// The exact mode; nothing leaves a new shared file to the umask.
    mode: Option<u32>,
    extended: bool,
}

impl Attributes {
    fn kept(old: &Metadata) -> Self {
        Self { owner: Some((old.uid(), old.gid())), mode: Some(old.mode() & 0o7777), extended: true }
    }

    fn fresh(privacy: Privacy) -> Self {
        let mode = (privacy == Privacy::OwnerAlone).then_some(OWNER_ALONE);
        Self { owner: None, mode, extended: false }
    }

    /// Without what group and others may do, access lists included.
    fn for_owner_alone(self) -> Self {
        Self { mode: self.mode.map(|mode| mode & 0o700), extended: false, ..self }
    }

    fn mode_at_creation(&self) -> u32 {
        if self.mode.is_some() { OWNER_ALONE } else { 0o666 }
    }

    /// The owner first, since changing it clears bits of the mode.
    fn apply(&self, file: &File, replaced: &Path) -> io::Result<()> {
        let own = file.metadata()?;
        if let Some((user, group)) = self.owner
            && (user, group) != (own.uid(), own.gid())
        {
            rustix::fs::fchown(file, Some(Uid::from_raw(user)), Some(Gid::from_raw(group)))?;
        }
        if self.extended {
            copy_extended_attributes(replaced, file);
        }
        self.mode.map_or(Ok(()), |mode| file.set_permissions(Permissions::from_mode(mode)))
    }
}

/// Access lists and labels. What the system refuses to copy is what it would not have let us set by hand.
fn copy_extended_attributes(from: &Path, to: &File) {
    let mut names = vec![0; 64 * 1024];
    let Ok(length) = rustix::fs::listxattr(from, names.as_mut_slice()) else {
        return;
    };
    let mut value = vec![0; 64 * 1024];
    for name in names[..length].split(|byte| *byte == 0).filter(|name| !name.is_empty()) {
        if let Ok(length) = rustix::fs::getxattr(from, name, value.as_mut_slice()) {
            let _ = rustix::fs::fsetxattr(to, name, &value[..length], XattrFlags::empty());
        }
    }
}

/// Whether `target` stands for a process's own stream or a device. `/dev/shm` is a folder like any other.
fn is_stream(target: &Path) -> bool {
    target.starts_with("/proc") || target.starts_with("/dev") && !target.starts_with("/dev/shm")
}

fn same_content(path: &Path, expected: &[u8]) -> bool {
    let read = File::open(path).and_then(|file| read_bounded(file, FILE_BYTES_MAX));
    read.is_ok_and(|bytes| bytes.expose_secret() == expected)
}

fn read_stdin(named: Option<&Path>) -> Result<Input<SecretBytes>, CommandError> {
    if output::stdin_is_terminal() {
        return Err(CommandError::new(Kind::NoFile, "no file given, and standard input is a terminal")
            .hint("name a file, or pipe one in and name it with `--filename-override NAME`"));
    }
    let content = read_bounded(io::stdin().lock(), FILE_BYTES_MAX)
        .map_err(|error| CommandError::on(Kind::Read, "standard input", plain_words(&error)))?;
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
        _ => failure,
    }
}

fn changed_meanwhile(path: &Path) -> CommandError {
    CommandError::on(Kind::Write, path.display(), "changed since it was read; it is left as it is")
        .hint("run the command again")
}

#[cfg(test)]
mod tests {
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
        assert!(error.cause.to_string().ends_with("not UTF-8 text at byte 3"), "{}", error.cause);
        assert!(read_bounded(&b"123"[..], 3).is_ok() && read_bounded(&b"1234"[..], 3).is_err());
    }
}
