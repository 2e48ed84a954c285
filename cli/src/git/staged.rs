//! What the next commit will hold: files as they stand in the index, which need not be what the work tree has.

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use lacre_crypto::SecretBytes;

use crate::error::{CommandError, Kind};
use crate::files;

/// Most bytes of the list of staged files.
const LIST_BYTES_MAX: u64 = 64 * 1024 * 1024;

/// A file that was added or changed since the last commit.
pub(crate) struct Staged {
    /// Where it stands in the work tree.
    pub(crate) path: PathBuf,
    /// The name of its content.
    object: String,
}

/// The files that were added or changed, below `paths` if there are any. Links and submodules are left out.
pub(crate) fn staged(paths: &[PathBuf]) -> Result<Vec<Staged>, CommandError> {
    let root = output(Command::new("git").args(["rev-parse", "--show-toplevel"]))?;
    let root = PathBuf::from(as_text(&root)?.trim_end_matches('\n'));
    let mut command = Command::new("git");
    command.args(["diff", "--cached", "--raw", "-z", "--no-abbrev", "--no-renames", "--no-ext-diff"]);
    let list = output(command.args(["--diff-filter=ACMT", "--"]).args(paths))?;
    parse(as_text(&list)?, &root).ok_or_else(|| {
        CommandError::general("git lists what is staged in a form that is not understood")
            .hint("check the files by their names: `lacre check FILE`")
    })
}

impl Staged {
    /// The content that will be committed.
    pub(crate) fn content(&self) -> Result<SecretBytes, CommandError> {
        output(Command::new("git").args(["cat-file", "blob", &self.object]))
    }
}

/// Reads `:OLD-MODE NEW-MODE OLD-OBJECT NEW-OBJECT STATUS`, then the path, each ended by a zero byte.
fn parse(list: &str, root: &Path) -> Option<Vec<Staged>> {
    let mut found = Vec::new();
    let mut fields = list.split_terminator('\0');
    while let Some(head) = fields.next() {
        let path = root.join(fields.next()?);
        let mut words = head.strip_prefix(':')?.split(' ');
        let (mode, object) = (words.nth(1)?, words.nth(1)?);
        if matches!(mode, "100644" | "100755") {
            found.push(Staged { path, object: object.to_owned() });
        }
    }
    Some(found)
}

fn output(command: &mut Command) -> Result<SecretBytes, CommandError> {
    let failed = |reason: String| {
        CommandError::on(Kind::Read, "git", reason)
            .hint("what is staged is known in a repository only: go there, or name files")
    };
    let spawned = command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::null()).spawn();
    let mut child = spawned.map_err(|error| failed(files::plain_words(&error)))?;
    let limit = files::FILE_BYTES_MAX.max(LIST_BYTES_MAX);
    let bytes = child.stdout.take().map(|stdout| files::read_bounded(stdout, limit));
    let status = child.wait().map_err(|error| failed(files::plain_words(&error)))?;
    match bytes.transpose().map_err(|error| failed(files::plain_words(&error)))? {
        Some(bytes) if status.success() => Ok(bytes),
        _ => Err(failed(format!("ended with {status}"))),
    }
}

fn as_text(bytes: &SecretBytes) -> Result<&str, CommandError> {
    bytes.as_text().ok_or_else(|| {
        CommandError::on(Kind::Read, "git", "names a file that is not UTF-8").hint("rename that file")
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_list_of_git_is_read_to_its_end() {
        let list =
            ":000000 100644 0000 1111 A\0a b.yaml\0:100644 120000 2 3 T\0link\0:100755 100755 4 5 M\0x/y\0";
        let found = parse(list, Path::new("/r")).unwrap();
        let told: Vec<_> =
            found.iter().map(|file| (file.path.to_str().unwrap(), file.object.as_str())).collect();
        assert_eq!(told, [("/r/a b.yaml", "1111"), ("/r/x/y", "5")]);
        assert!(parse("x", Path::new("/r")).is_none() && parse(":1 2 3 4 A\0", Path::new("/r")).is_none());
        assert!(parse("", Path::new("/r")).unwrap().is_empty());
    }
}
