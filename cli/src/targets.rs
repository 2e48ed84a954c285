//! Which files a command works on: those that were named, and what the named folders hold.
//!
//! A file that was named is always worked on. In a folder, a command takes what is its business and counts the rest: to
//! seal, the files that a creation rule is for and that are not sealed yet; for everything else, the sealed ones.

use std::collections::HashSet;
use std::fs::DirBuilder;
use std::os::unix::fs::DirBuilderExt;
use std::path::{Path, PathBuf};

use clap::Args;
use lacre_crypto::error::DecryptError;
use lacre_crypto::recipient::RecipientId;
use lacre_crypto::{Format, SealedFile};

use crate::args::{FormatArgs, TargetArgs};
use crate::batch;
use crate::commands::Context;
use crate::config::{self, CONFIG_NAME, Keys};
use crate::error::{CommandError, Kind};
use crate::{files, sealing};

/// Where the results of many files go.
#[derive(Args, Clone, Debug, Default)]
pub(crate) struct ManyArgs {
    /// Take the files of folders, too. Hidden folders and symbolic links in them are left out.
    #[arg(long, short)]
    pub(crate) recursive: bool,
    /// Write the results below this folder, by the names that the files have in theirs.
    #[arg(long, value_name = "DIR", conflicts_with_all = ["in_place", "output"])]
    pub(crate) output_dir: Option<PathBuf>,
}

impl ManyArgs {
    /// Refuses what has no place for each result of its own.
    pub(crate) fn check(&self, targets: &Targets, typed: &TargetArgs) -> Result<(), CommandError> {
        if let Some(folder) = &self.output_dir {
            let mut taken = HashSet::new();
            let places = targets.files.iter().map(|target| target.below(folder));
            let twice = places.into_iter().find(|place| !taken.insert(place.clone()));
            return twice.map_or(Ok(()), |place| {
                Err(CommandError::on(
                    Kind::ConflictingFlags,
                    place.display(),
                    "would be the result of two files",
                )
                .hint("name their folders with `--recursive`, or give each an `--output-dir` of its own"))
            });
        }
        if targets.only().is_none() && !typed.in_place {
            return Err(CommandError::new(
                Kind::ConflictingFlags,
                "many files have no one place for their results",
            )
            .hint("replace them with `--in-place`, or write them below a folder with `--output-dir DIR`"));
        }
        Ok(())
    }

    /// Where the result of `target` goes. Its folder is made if there is none.
    pub(crate) fn place(
        &self,
        target: Option<&Target>,
        typed: &TargetArgs,
    ) -> Result<TargetArgs, CommandError> {
        let (Some(folder), Some(target)) = (&self.output_dir, target) else { return Ok(typed.clone()) };
        let place = target.below(folder);
        if let Some(parent) = place.parent() {
            let made = DirBuilder::new().recursive(true).mode(0o700).create(parent);
            made.map_err(|error| {
                CommandError::on(Kind::Write, parent.display(), files::plain_words(&error))
                    .hint("give another folder with `--output-dir DIR`")
            })?;
        }
        Ok(TargetArgs { output: Some(place), ..typed.clone() })
    }
}

/// Standard input, when no file was named but it.
pub(crate) fn is_stdin(named: &[PathBuf]) -> bool {
    matches!(named, []) || matches!(named, [only] if only == Path::new("-"))
}

/// One file to work on.
#[derive(Clone, Debug)]
pub(crate) struct Target {
    pub(crate) path: PathBuf,
    /// The named folder that it was found in; nothing when it was named itself.
    pub(crate) folder: Option<PathBuf>,
}

/// The files to work on.
#[derive(Debug, Default)]
pub(crate) struct Targets {
    pub(crate) files: Vec<Target>,
    /// How many files of folders are none of the command's business.
    pub(crate) skipped: usize,
    /// Everyone whom the sealed ones among them are sealed for.
    pub(crate) recipients: Vec<RecipientId>,
    is_one: bool,
}

/// What a look at a file says, without any key.
pub(crate) enum State {
    /// There is no `sops` block in it.
    Plain,
    /// It is sealed for these.
    Sealed(Vec<RecipientId>),
    /// It cannot be read, or not as what it seems to be.
    Unclear,
}

impl Target {
    /// The file called `path`, named by the caller.
    pub(crate) fn named(path: &Path) -> Self {
        Self { path: path.to_owned(), folder: None }
    }

    /// Its format. In a folder a name that tells none means binary, as for stock tools.
    pub(crate) fn format(&self, typed: &FormatArgs) -> Result<Format, CommandError> {
        let name = typed.filename_override.as_deref().unwrap_or(&self.path);
        let is_binary = self.folder.is_some() && typed.input_type.is_none();
        match Format::from_file_name(&name.to_string_lossy()) {
            None if is_binary => Ok(Format::Binary),
            _ => sealing::format(name, typed),
        }
    }

    /// Where it goes below `folder`: by its path in the named folder, or by its bare name.
    pub(crate) fn below(&self, folder: &Path) -> PathBuf {
        let name = match &self.folder {
            Some(root) if root != Path::new(".") => self.path.strip_prefix(root).ok(),
            Some(_) => Some(self.path.as_path()),
            None => self.path.file_name().map(Path::new),
        };
        folder.join(name.unwrap_or(&self.path))
    }
}

impl Targets {
    /// The sealed files: all that were `named`, and those in the named folders if `recursive`.
    pub(crate) fn sealed(
        named: &[PathBuf],
        recursive: bool,
        typed: &FormatArgs,
    ) -> Result<Self, CommandError> {
        let is_business = |_: &Target, state: &State| !matches!(state, State::Plain);
        Self::find(named, recursive, typed, is_business)
    }

    /// The files that are to be sealed; with keys of the caller's own if `has_keys`, which need no rule.
    pub(crate) fn to_seal(
        named: &[PathBuf],
        recursive: bool,
        typed: &FormatArgs,
        has_keys: bool,
        context: &Context,
    ) -> Result<Self, CommandError> {
        let is_business = |target: &Target, state: &State| {
            matches!(state, State::Plain) && is_meant(&target.path, has_keys, context)
        };
        Self::find(named, recursive, typed, is_business)
    }

    /// The manifests whose bytes `mentions` says yes to, in the named folders, and all files that were named.
    #[cfg(feature = "kube")]
    pub(crate) fn mentioning(
        named: &[PathBuf],
        mentions: impl Fn(&[u8]) -> bool + Sync,
    ) -> Result<Self, CommandError> {
        let is_business = |target: &Target, _: &State| {
            let format = Format::from_file_name(&target.path.to_string_lossy());
            matches!(format, Some(Format::Json | Format::Yaml))
                && files::read_bytes(&target.path).is_ok_and(|bytes| mentions(bytes.expose_secret()))
        };
        Self::find(named, true, &FormatArgs::default(), is_business)
    }

    /// The one file, when no folder was named and nothing but it.
    pub(crate) fn only(&self) -> Option<&Target> {
        self.files.first().filter(|_| self.is_one)
    }

    fn find(
        named: &[PathBuf],
        recursive: bool,
        typed: &FormatArgs,
        is_business: impl Fn(&Target, &State) -> bool + Sync,
    ) -> Result<Self, CommandError> {
        let candidates = candidates(named, recursive)?;
        let is_one = candidates.len() == 1 && candidates[0].folder.is_none();
        if !is_one && typed.filename_override.is_some() {
            return Err(CommandError::new(
                Kind::ConflictingFlags,
                "`--filename-override` names one file, not many",
            )
            .hint("leave it out, or call the command once for each file"));
        }
        if is_one {
            return Ok(Self { files: candidates, is_one, ..Self::default() });
        }
        let mut targets = Self::default();
        let mut wanted = HashSet::new();
        let look = |target: &Target| {
            let state = look(target, typed);
            let is_taken = !files::is_left_behind(&target.path) && is_business(target, &state);
            (target.folder.is_none() || is_taken, state)
        };
        batch::in_order(&candidates, look, |target, (is_taken, state)| {
            if !is_taken {
                targets.skipped += 1;
                return;
            }
            targets.files.push(target.clone());
            if let State::Sealed(recipients) = state {
                let new = recipients.into_iter().filter(|id| wanted.insert(id.clone()));
                targets.recipients.extend(new);
            }
        });
        Ok(targets)
    }
}

/// What was named, each file once, with the files of folders in their places.
pub(crate) fn candidates(named: &[PathBuf], recursive: bool) -> Result<Vec<Target>, CommandError> {
    let mut found: Vec<Target> = Vec::new();
    for path in named {
        if recursive && path.is_dir() {
            let held = files::walk(path)?.into_iter();
            found.extend(held.map(|file| Target { path: file, folder: Some(path.clone()) }));
        } else {
            found.push(Target::named(path));
        }
    }
    let mut seen = HashSet::new();
    found
        .retain(|target| seen.insert(config::absolute(&target.path).unwrap_or_else(|_| target.path.clone())));
    Ok(found)
}

/// Looks at one file.
fn look(target: &Target, typed: &FormatArgs) -> State {
    let Ok(bytes) = files::read_bytes(&target.path) else { return State::Unclear };
    let Ok(format) = target.format(typed) else { return State::Unclear };
    state(bytes.expose_secret(), format)
}

/// What `content` is. Only a text that has the name of the block somewhere is taken apart.
pub(crate) fn state(content: &[u8], format: Format) -> State {
    let has = |needle: &str| content.windows(needle.len()).any(|window| window == needle.as_bytes());
    let Some(text) = std::str::from_utf8(content).ok().filter(|text| text.contains("sops")) else {
        return State::Plain;
    };
    match SealedFile::read(text, format) {
        Ok(file) => State::Sealed(file.metadata().recipients()),
        Err(DecryptError::NotSealed) => State::Plain,
        // A template or a file of another tool may mention sops; what holds sealed values as well is a broken file.
        Err(_) if has("ENC[AES256_GCM,") => State::Unclear,
        Err(_) => State::Plain,
    }
}

/// Whether a file configures git or the sealing itself. Such a file is never meant to be sealed, whatever pattern it matches:
/// nobody could read it then.
pub(crate) fn configures(path: &Path) -> bool {
    let name = path.file_name().unwrap_or_default().to_string_lossy();
    name == CONFIG_NAME || name.starts_with(".git")
}

/// Whether a file of a folder is to be sealed: its rule names it by a pattern, or takes every file and this one is of a
/// kind whose values are sealed one by one.
pub(crate) fn is_meant(path: &Path, has_keys: bool, context: &Context) -> bool {
    let name = path.file_name().unwrap_or_default().to_string_lossy();
    if configures(path) {
        return false;
    }
    // A rule that cannot be used is told when the file is sealed.
    match config::rule_or_none(path, Keys::Replaced, context) {
        Ok(None) => has_keys && Format::from_file_name(&name).is_some(),
        Ok(Some(rule)) => rule.has_pattern || Format::from_file_name(&name).is_some(),
        Err(_) => true,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn results_keep_their_place_below_the_named_folder() {
        let out = Path::new("out");
        let target = |path: &str, folder: Option<&str>| Target {
            path: path.into(),
            folder: folder.map(PathBuf::from),
        };
        assert_eq!(target("a/b.yaml", None).below(out), Path::new("out/b.yaml"));
        assert_eq!(target("a/b/c.yaml", Some("a")).below(out), Path::new("out/b/c.yaml"));
        assert_eq!(target("b/c.yaml", Some(".")).below(out), Path::new("out/b/c.yaml"));
    }

    #[test]
    fn each_file_is_taken_once() {
        let root = tempfile::tempdir().unwrap();
        let file = root.path().join("a.yaml");
        std::fs::write(&file, "a: b\n").unwrap();
        let named = [file.clone(), root.path().to_owned(), root.path().join("./a.yaml")];
        assert_eq!(candidates(&named, true).unwrap().len(), 1);
        assert_eq!(candidates(&named, false).unwrap().len(), 2, "a folder is no file");
    }

    #[test]
    fn only_what_could_be_sealed_is_taken_apart() {
        assert!(matches!(state(b"a: [", Format::Yaml), State::Plain));
        assert!(matches!(state(b"{{ sops }}: [", Format::Yaml), State::Plain));
        assert!(matches!(state(b"a: ENC[AES256_GCM,\nsops: [", Format::Yaml), State::Unclear));
        assert!(matches!(state(b"\xff", Format::Binary), State::Plain));
    }
}
