//! One command over many files: on all cores, told in the order of the files, each file finished or left whole.
//!
//! A file that fails does not keep the others from being done. At the end stands a summary, and the exit code is that
//! of the first failure in the order of the files, so that it does not depend on which thread was faster.

use std::collections::{BTreeMap, HashMap};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::mpsc;
use std::thread;

use crate::commands::Context;
use crate::error::{CommandError, Kind};
use crate::output::{Replay, recorded};
use crate::targets::{Target, Targets};

/// Calls `work` for each of `items` on all cores, and `take` with each result on this thread, in the items' order.
pub(crate) fn in_order<Item: Sync, Done: Send>(
    items: &[Item],
    work: impl Fn(&Item) -> Done + Sync,
    mut take: impl FnMut(&Item, Done),
) {
    let next = AtomicUsize::new(0);
    let (sender, results) = mpsc::channel();
    let (next, work) = (&next, &work);
    let labour = move |sender: mpsc::Sender<(usize, Done)>| {
        while let Some((index, item)) = claim(items, next) {
            if sender.send((index, work(item))).is_err() {
                return;
            }
        }
    };
    thread::scope(|scope| {
        let cores = thread::available_parallelism().map_or(1, usize::from);
        let mut hired = 0;
        for _ in 0..cores.min(items.len()) {
            let sender = sender.clone();
            let spawned = thread::Builder::new().spawn_scoped(scope, move || labour(sender));
            hired += usize::from(spawned.is_ok());
        }
        // Where the system has no thread to give, this one does the work.
        if hired == 0 {
            labour(sender.clone());
        }
        drop(sender);
        let (mut early, mut turn) = (BTreeMap::new(), 0);
        for (index, done) in results {
            early.insert(index, done);
            while let Some(done) = early.remove(&turn) {
                take(&items[turn], done);
                turn += 1;
            }
        }
    });
}

fn claim<'a, Item>(items: &'a [Item], next: &AtomicUsize) -> Option<(usize, &'a Item)> {
    let index = next.fetch_add(1, Ordering::Relaxed);
    items.get(index).map(|item| (index, item))
}

/// Calls `work` for each target. It says in a word what became of the file: `sealed`, `unchanged`.
///
/// A single file that was named is worked on as if there were no batch: no summary, its error as it is.
pub(crate) fn run(
    targets: &Targets,
    context: &Context,
    work: impl Fn(&Target) -> Result<&'static str, CommandError> + Sync,
) -> Result<(), CommandError> {
    if let Some(only) = targets.only() {
        return work(only).map(drop);
    }
    let output = context.output;
    let mut tally = Tally { skipped: targets.skipped, ..Tally::default() };
    let (mut replay, mut broken, mut reasons) = (Replay::default(), Ok(()), Reasons::default());
    in_order(
        &targets.files,
        |target| recorded(|| work(target)),
        |target, (result, said)| {
            output.progress(None);
            broken = std::mem::replace(&mut broken, Ok(())).and_then(|()| replay.print(said));
            let result = result.map_err(|error| {
                let kind = error.kind;
                output.error(&reasons.told_once(&target.path, error));
                kind
            });
            tally.add(result);
            let count = tally.finished();
            output.progress(Some(&format!("{count}/{} {}", targets.files.len(), target.path.display())));
        },
    );
    output.progress(None);
    broken?;
    tally.conclude(context)
}

/// Long explanations that were given, and for which file: that nobody here opens a file is told at length once, and not
/// for each of a hundred files that are sealed for the same recipients.
#[derive(Default)]
struct Reasons(HashMap<String, PathBuf>);

impl Reasons {
    fn told_once(&mut self, path: &Path, error: CommandError) -> CommandError {
        let text = error.cause.to_string();
        let Some((first, reason)) = text.split_once('\n') else { return error };
        match self.0.get(reason) {
            Some(other) => CommandError::new(error.kind, first)
                .hint(format!("the reasons are those that were given for {}", other.display())),
            None => {
                self.0.insert(reason.to_owned(), path.to_owned());
                error
            }
        }
    }
}

/// What became of the files.
#[derive(Default)]
struct Tally {
    /// How many files ended with each word, in the order in which the words first came up.
    words: Vec<(&'static str, usize)>,
    failed: usize,
    first_failure: Option<Kind>,
    skipped: usize,
}

impl Tally {
    fn add(&mut self, result: Result<&'static str, Kind>) {
        match result {
            Ok(word) => match self.words.iter_mut().find(|(known, _)| *known == word) {
                Some((_, count)) => *count += 1,
                None => self.words.push((word, 1)),
            },
            Err(kind) => {
                self.failed += 1;
                self.first_failure.get_or_insert(kind);
            }
        }
    }

    fn finished(&self) -> usize {
        self.failed + self.words.iter().map(|(_, count)| count).sum::<usize>()
    }

    fn conclude(&self, context: &Context) -> Result<(), CommandError> {
        let mut parts: Vec<String> =
            self.words.iter().map(|(word, count)| format!("{count} {word}")).collect();
        if self.failed > 0 {
            parts.push(format!("{} failed", self.failed));
        }
        if self.skipped > 0 {
            parts.push(format!("{} skipped", self.skipped));
        }
        if parts.is_empty() {
            parts.push("no files there".to_owned());
        }
        let summary = parts.join(", ");
        match self.first_failure {
            None => {
                context.output.note(&summary);
                Ok(())
            }
            Some(kind) => Err(CommandError::new(kind, summary)
                .hint("those that failed are as they were: see to them, and run the command again")),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn results_come_in_the_order_of_the_items() {
        let items: Vec<u64> = (0..64).collect();
        let mut taken = Vec::new();
        let work = |item: &u64| {
            thread::sleep(std::time::Duration::from_micros(500 * ((item * 7) % 5)));
            item * 2
        };
        in_order(&items, work, |item, done| taken.push((*item, done)));
        assert_eq!(taken, items.iter().map(|item| (*item, item * 2)).collect::<Vec<_>>());
        in_order(&[], |item: &u64| *item, |_, _| panic!("there is nothing to take"));
    }

    #[test]
    fn a_long_reason_is_told_once() {
        let (mut reasons, long) = (Reasons::default(), "x\n  why\n  and how".to_owned());
        let mut told = |path: &str, text: &str| {
            let error = CommandError::new(Kind::NoKey, text.to_owned());
            let error = reasons.told_once(Path::new(path), error);
            (error.cause.to_string(), error.hints.join(""))
        };
        assert_eq!(told("a", &long), (long.clone(), String::new()));
        let (text, hint) = told("b", &long);
        assert_eq!((text.as_str(), hint.as_str()), ("x", "the reasons are those that were given for a"));
        assert_eq!(told("c", "x\n  other").0, "x\n  other");
        assert_eq!(told("d", "short").0, "short");
    }

    #[test]
    fn the_first_failure_decides() {
        let mut tally = Tally::default();
        tally.add(Ok("sealed"));
        tally.add(Err(Kind::NoKey));
        tally.add(Err(Kind::Read));
        tally.add(Ok("sealed"));
        let error = tally.conclude(&Context::default()).unwrap_err();
        assert_eq!((error.kind, error.cause.to_string().as_str()), (Kind::NoKey, "2 sealed, 2 failed"));
    }
}
