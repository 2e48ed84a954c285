//! Archives that are the same bytes whenever and by whomever they are made from the same files.

use std::path::Path;
use std::process::Command;

use anyhow::{Context, Result, ensure};

/// Packs a folder with its name as the first part of all paths, in the order of paths, with `seconds` (since 1970) as every
/// file's time, and nobody as its owner.
///
/// # Errors
/// There is no GNU tar, or it fails.
pub fn pack(folder: &Path, seconds: u64, archive: &Path) -> Result<()> {
    let (Some(parent), Some(name)) = (folder.parent(), folder.file_name()) else {
        anyhow::bail!("{} has no name", folder.display());
    };
    let mut command = Command::new("tar");
    command.args(["--create", "--format=ustar", "--sort=name", "--owner=0", "--group=0", "--numeric-owner"]);
    // Rights as well: what else the umask of whoever packs makes of them.
    command.args(["--mode=u=rwX,go=rX", "--use-compress-program=gzip --no-name --best"]);
    command.arg(format!("--mtime=@{seconds}")).arg("--file").arg(archive);
    command.arg("--directory").arg(parent).arg(name).env_clear().env("LC_ALL", "C");
    command.env("PATH", std::env::var_os("PATH").context("no PATH")?);
    let output = command.output().context("cannot start tar")?;
    ensure!(output.status.success(), "tar: {}", String::from_utf8_lossy(&output.stderr));
    Ok(())
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::os::unix::fs::PermissionsExt;

    use super::*;

    /// A folder whose files are made in this order, with these rights.
    fn packed(names: [&str; 2], mode: u32) -> Result<Vec<u8>> {
        let scratch = tempfile::tempdir()?;
        let folder = scratch.path().join("made");
        fs::create_dir(&folder)?;
        for name in names {
            fs::write(folder.join(name), name)?;
            fs::set_permissions(folder.join(name), fs::Permissions::from_mode(mode))?;
        }
        let archive = scratch.path().join("made.tar.gz");
        pack(&folder, 1_000_000_000, &archive)?;
        Ok(fs::read(archive)?)
    }

    #[test]
    fn order_and_rights_of_files_leave_no_trace() -> Result<()> {
        let first = packed(["a", "b"], 0o600)?;
        assert_eq!(first, packed(["b", "a"], 0o664)?);
        assert_ne!(first, packed(["a", "c"], 0o600)?);
        Ok(())
    }
}
