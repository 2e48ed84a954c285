//! What is given out says whose code it contains, and lets libraries under the LGPL be changed.

use std::collections::BTreeSet;
use std::process::Command;

use anyhow::{Result, ensure};
use xtask::commands::dist::linked::{self, Package, Program};
use xtask::commands::dist::{self, notices};

const LACRE: Program<'_> = Program { package: "lacre", default_features: true };

fn lgpl(packages: &BTreeSet<Package>) -> Vec<&Package> {
    packages.iter().filter(|package| package.is_lgpl()).collect()
}

#[test]
fn every_package_in_the_programs_has_a_licence_text() -> Result<()> {
    let packages = linked::packages(&dist::PROGRAMS, &dist::host()?)?;
    assert!(packages.len() > 100, "cargo's tree was not understood");
    let without: Vec<_> =
        packages.iter().filter_map(|package| linked::licence_texts(package, &packages).err()).collect();
    assert!(without.is_empty(), "{without:?}");
    for package in &packages {
        let texts = linked::licence_texts(package, &packages)?;
        assert!(texts.iter().any(|text| text.len() > 400), "{} has no whole text", package.name);
    }
    Ok(())
}

#[test]
fn the_list_names_each_package_and_each_text_once() -> Result<()> {
    let packages = linked::packages(&[LACRE], &dist::host()?)?;
    let list = notices::third_party(&packages)?;
    for Package { name, version, licence, .. } in &packages {
        let lines = list.matches(&format!("\n{name} {version}  {licence}  ")).count();
        assert_eq!(lines, 1, "{name} {version}");
    }
    assert_eq!(list.matches("This is the first released version of the library GPL").count(), 1);
    // Macros run when the program is built and are no part of it; our own packages are nobody else's.
    for name in ["serde_derive", "syn", "lacre-crypto", "xtask"] {
        assert!(!list.contains(&format!("\n{name} ")), "{name}");
    }
    Ok(())
}

#[test]
fn the_notice_names_exactly_the_libraries_under_the_lgpl() -> Result<()> {
    let packages = linked::packages(&[LACRE], &dist::host()?)?;
    let found = lgpl(&packages);
    let names: Vec<_> = found.iter().map(|package| package.name.as_str()).collect();
    assert_eq!(names, ["buffered-reader", "sequoia-openpgp"]);
    let notice = notices::relinking("1.2.3", &["lacre"], &found);
    for package in &packages {
        assert_eq!(
            notice.contains(&format!("    {} {}\n", package.name, package.version)),
            package.is_lgpl(),
            "{}",
            package.name
        );
    }
    Ok(())
}

#[test]
fn without_default_features_nothing_is_under_the_lgpl() -> Result<()> {
    let bare = Program { default_features: false, ..LACRE };
    let packages = linked::packages(&[bare], &dist::host()?)?;
    assert!(!packages.is_empty());
    assert_eq!(lgpl(&packages), Vec::<&Package>::new());
    Ok(())
}

/// The recipe itself, up to the compiler: cargo takes the libraries beside the sources, and every other package as locked.
#[test]
fn relinking_changes_two_entries_of_the_lock_file() -> Result<()> {
    let packages = linked::packages(&[LACRE], &dist::host()?)?;
    let (found, scratch) = (lgpl(&packages), tempfile::tempdir()?);
    dist::unpack_sources(scratch.path(), &found)?;
    let lacre = scratch.path().join("lacre");
    let locked = std::fs::read_to_string(lacre.join("Cargo.lock"))?;
    let mut cargo = Command::new(env!("CARGO"));
    cargo.args(["metadata", "--format-version", "1"]).args(notices::relink_arguments(&found));
    let output = cargo.current_dir(&lacre).output()?;
    ensure!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let relocked = std::fs::read_to_string(lacre.join("Cargo.lock"))?;
    let gone: Vec<_> = without_checksums(&locked, &relocked);
    assert_eq!(gone, ["buffered-reader", "sequoia-openpgp"]);
    Ok(())
}

/// The packages that come from the registry by `before` and not by `after`.
fn without_checksums(before: &str, after: &str) -> Vec<String> {
    let pinned = |lock: &str| -> BTreeSet<String> {
        lock.split("[[package]]\n")
            .filter(|entry| entry.contains("\nchecksum = "))
            .map(str::to_owned)
            .collect()
    };
    let after = pinned(after);
    pinned(before)
        .into_iter()
        .filter(|entry| !after.contains(entry))
        .filter_map(|entry| Some(entry.strip_prefix("name = \"")?.split('"').next()?.to_owned()))
        .collect()
}
