//! Replacing a file in one step: where a write ends up, the new file beside the old one, and what it takes over from it.

use std::fs::{self, File, Metadata, OpenOptions, Permissions};
use std::io::{self, Write};
use std::os::fd::AsRawFd;
use std::os::unix::fs::{MetadataExt, OpenOptionsExt, PermissionsExt};
use std::path::{Path, PathBuf};

use rustix::fs::{Gid, Uid, XattrFlags};

use super::{FILE_BYTES_MAX, Privacy, read_bounded};

/// Most symbolic links that are followed to a file.
const LINKS_MAX: usize = 40;

const OWNER_ALONE: u32 = 0o600;

/// How the name of a file begins between the moment when it is complete and the one when it takes the other's name.
const TEMPORARY_PREFIX: &str = ".lacre-";

/// Whether the file at `path` was left behind by a process that was killed in that moment. It is complete, nobody reads
/// it, and it may be removed.
pub(crate) fn is_left_behind(path: &Path) -> bool {
    path.file_name().is_some_and(|name| name.as_encoded_bytes().starts_with(TEMPORARY_PREFIX.as_bytes()))
}

/// What to do about a file that is there already.
pub(super) enum Existing<'a> {
    /// Replace it if it still holds this.
    Expect(&'a [u8]),
    /// There is none, and what is written can be made again: it need not be on the disk when this returns.
    None,
    Refuse,
    Replace,
}

/// Where a write ends up once symbolic links are followed.
pub(super) struct Place {
    pub(super) target: PathBuf,
    /// Of the file that is there now.
    pub(super) metadata: Option<Metadata>,
    /// Whether it must be written without a rename: a device, a pipe, a process's own stream.
    pub(super) direct: bool,
}

impl Place {
    pub(super) fn find(path: &Path) -> io::Result<Self> {
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
    pub(super) fn put(
        &self,
        bytes: &[u8],
        attributes: &Attributes,
        existing: Existing<'_>,
    ) -> io::Result<()> {
        if self.direct {
            return OpenOptions::new().write(true).open(&self.target)?.write_all(bytes);
        }
        let folder = match self.target.parent() {
            Some(folder) if folder != Path::new("") => folder,
            _ => Path::new("."),
        };
        let lasts = !matches!(existing, Existing::None);
        let fill = |mut file: &File| {
            file.write_all(bytes)?;
            attributes.apply(file, &self.target)?;
            if lasts { file.sync_all() } else { Ok(()) }
        };
        let temporary = complete_file(folder, attributes.mode_at_creation(), &fill)?;
        let persisted = match existing {
            Existing::Expect(content) if !same_content(&self.target, content) => {
                return Err(io::ErrorKind::StaleNetworkFileHandle.into());
            }
            Existing::Expect(_) | Existing::None | Existing::Replace => temporary.persist(&self.target),
            Existing::Refuse => temporary.persist_noclobber(&self.target),
        };
        persisted.map_err(|error| error.error)?;
        if lasts { File::open(folder)?.sync_all() } else { Ok(()) }
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
    name.prefix(TEMPORARY_PREFIX);
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
pub(super) struct Attributes {
    owner: Option<(u32, u32)>,
    /// The exact mode; nothing leaves a new shared file to the umask.
    mode: Option<u32>,
    extended: bool,
}

impl Attributes {
    pub(super) fn kept(old: &Metadata) -> Self {
        Self { owner: Some((old.uid(), old.gid())), mode: Some(old.mode() & 0o7777), extended: true }
    }

    pub(super) fn fresh(privacy: Privacy) -> Self {
        let mode = (privacy == Privacy::OwnerAlone).then_some(OWNER_ALONE);
        Self { owner: None, mode, extended: false }
    }

    /// Without what group and others may do, access lists included.
    pub(super) fn for_owner_alone(self) -> Self {
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
