//! What goes with the programs because of those whose code is in them: the list of packages with their licences, and how
//! to relink the programs with changed libraries that are under the LGPL.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write;

use anyhow::Result;

use super::linked::{self, Package};

/// Between the parts of the list.
const LINE: &str = "----------------------------------------------------------------------------------------";

/// The list: every package with version, licence and source, then every text once, with those that it belongs to.
///
/// # Errors
/// A package has no licence text.
pub fn third_party(packages: &BTreeSet<Package>) -> Result<String> {
    let mut list = String::from(
        "The programs in this archive contain code of these packages. The Rust standard library is a part of them, too: \
         see RUST.html.\n\n",
    );
    // By its words: copies of one licence differ in where their lines end.
    let mut texts: BTreeMap<String, (Vec<String>, String)> = BTreeMap::new();
    for package in packages {
        let Package { name, version, licence, repository, .. } = package;
        writeln!(list, "{name} {version}  {licence}  {repository}")?;
        for text in linked::licence_texts(package, packages)? {
            let words: Vec<_> = text.split_whitespace().collect();
            let (owners, _) = texts.entry(words.join(" ")).or_insert_with(|| (Vec::new(), tidy(&text)));
            // Its own text and that of code in it may be the same.
            let owner = format!("{name} {version}");
            if owners.last() != Some(&owner) {
                owners.push(owner);
            }
        }
    }
    let mut by_owner: Vec<_> = texts.into_values().collect();
    by_owner.sort();
    for (owners, text) in by_owner {
        write!(list, "\n{LINE}\n{}:\n\n{text}\n", owners.join(", "))?;
    }
    Ok(list)
}

/// A text with ends of lines as ours, and without empty lines at its own ends.
fn tidy(text: &str) -> String {
    let lines: Vec<_> = text.trim_start_matches('\u{feff}').lines().map(str::trim_end).collect();
    lines.join("\n").trim_matches('\n').to_owned()
}

/// The arguments with which cargo builds with the libraries that lie beside our sources, and not with those of the registry.
pub fn relink_arguments(lgpl: &[&Package]) -> Vec<String> {
    lgpl.iter()
        .map(|Package { name, version, .. }| {
            format!("--config=patch.crates-io.{name}.path=\"../{name}-{version}\"")
        })
        .collect()
}

/// How to relink `programs` with changed libraries.
pub fn relinking(version: &str, programs: &[&str], lgpl: &[&Package]) -> String {
    let names: Vec<_> = lgpl.iter().map(|package| format!("{} {}", package.name, package.version)).collect();
    let folders: Vec<_> =
        lgpl.iter().map(|package| format!("../{}-{}", package.name, package.version)).collect();
    let patches: Vec<_> =
        relink_arguments(lgpl).iter().map(|argument| format!(" \\\n        '{argument}'")).collect();
    let builds: Vec<_> = programs
        .iter()
        .map(|program| format!("    cargo build --release --package {program}{}\n", patches.concat()))
        .collect();
    format!(
        "The programs {programs} of this archive contain these libraries, which are under the GNU Library General\n\
         Public License, version 2 or (at your option) any later one; its text is the file LGPL-2.0.txt beside this one:\n\n    \
         {names}\n\n\
         You may change them and build the programs with what you changed, and you may take the programs apart to find\n\
         faults in such changes. What you need is lacre-{version}-source.tar.gz, which goes with this archive: our\n\
         sources, the lock file with the version of every other package, and the sources of these libraries. Rust comes\n\
         from https://rustup.rs, in the version that rust-toolchain.toml names.\n\n    \
         tar -xzf lacre-{version}-source.tar.gz\n    \
         cd lacre-{version}-source/lacre\n    \
         # change what you like in {folders}\n{builds}\n\
         The programs are then in target/release. cargo enters the changed libraries in Cargo.lock and leaves everything\n\
         else there as it is. Whoever passes this archive on passes the one with the sources on as well.\n\n\
         A program without these libraries, and without OpenPGP:\n\n    \
         cargo build --release --locked --package lacre --no-default-features\n",
        programs = programs.join(" and "),
        names = names.join("\n    "),
        folders = folders.join(" and "),
        builds = builds.concat(),
    )
}
