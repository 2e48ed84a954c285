//! The flags of the real Sealed Secrets controller, release 0.40: each exists here with the same default.

use std::collections::BTreeMap;
use std::ffi::OsString;

use anyhow::{Context, Result, ensure};
use clap::CommandFactory;
use lacre_controller::args::{Args, environment};
use xtask::peers::sealed_secrets;
use xtask::process::Tool;

/// A flag as `--help` lists it, and its default as text.
fn theirs() -> Result<BTreeMap<String, String>> {
    let help = Tool::new(sealed_secrets::CONTROLLER.path()?).arg("--help").run()?;
    let help = String::from_utf8([help.stdout, help.stderr].concat())?;
    let mut flags = BTreeMap::new();
    for line in help.lines().filter_map(|line| line.trim_start().strip_prefix("--")) {
        let (head, _) = line.split_once("  ").context("a flag without its text")?;
        let (name, is_switch) = head.split_once(' ').map_or((head, true), |(name, _)| (name, false));
        let default = line.rsplit_once("(default ").and_then(|(_, text)| text.strip_suffix(')'));
        let default = default.map(|text| text.trim_matches('"').to_owned());
        let absent = if is_switch { "false" } else { "" };
        flags.insert(name.to_owned(), default.unwrap_or_else(|| absent.to_owned()));
    }
    ensure!(flags.len() >= 30, "only {} flags were found: {flags:?}", flags.len());
    Ok(flags)
}

#[test]
fn every_flag_is_here_with_the_same_default() -> Result<()> {
    let command = Args::command();
    let mut different = Vec::new();
    for (name, default) in theirs()? {
        let Some(ours) = command.get_arguments().find(|argument| argument.get_long() == Some(&name)) else {
            different.push(format!("--{name} is not there"));
            continue;
        };
        let is_bare = !ours.get_action().takes_values();
        let values = ours.get_default_values().iter().map(|value| value.to_string_lossy());
        let value = if is_bare { "false".to_owned() } else { values.collect::<Vec<_>>().join(",") };
        if value != default {
            different.push(format!("--{name}: {value:?} here, {default:?} there"));
        }
    }
    ensure!(different.is_empty(), "{}", different.join("\n"));
    Ok(())
}

#[test]
fn every_flag_can_be_given_with_its_default_and_as_a_variable() -> Result<()> {
    for (name, default) in theirs()?.into_iter().filter(|(name, _)| name != "version") {
        let flag = OsString::from(format!("--{name}={default}"));
        environment::read([OsString::from("controller"), flag], |_| None)
            .with_context(|| format!("--{name}={default}"))?;
        let variable = format!("SEALED_SECRETS_{}", name.to_uppercase().replace('-', "_"));
        let asked = std::cell::Cell::new(false);
        let read = environment::read([OsString::from("controller")], |asked_for| {
            let is_it = asked_for == variable;
            asked.set(asked.get() || is_it);
            is_it.then(|| OsString::from(&default))
        })?;
        ensure!(asked.get() && read.ignored.is_empty(), "{variable}={default}: {:?}", read.ignored);
    }
    Ok(())
}

#[test]
fn the_deprecated_name_of_the_renewal_period_still_works() -> Result<()> {
    let line = ["controller", "--rotate-period=48h"].map(OsString::from);
    let read = environment::read(line, |_| None)?;
    assert_eq!(read.args.sealed.key_renew_period.as_secs(), 48 * 3600);
    Ok(())
}

fn ours(arguments: &[&str]) -> Result<xtask::process::Finished> {
    Tool::new(env!("CARGO_BIN_EXE_lacre-controller")).args(arguments).run()
}

#[test]
fn the_version_is_told_in_the_words_that_scripts_look_for() -> Result<()> {
    let theirs = Tool::new(sealed_secrets::CONTROLLER.path()?).arg("--version").run()?;
    let theirs = String::from_utf8(theirs.stdout)?;
    assert!(theirs.starts_with("controller version: "), "{theirs}");
    let ours = String::from_utf8(ours(&["--version"])?.success()?)?;
    assert_eq!(ours, format!("controller version: v{}\n", env!("CARGO_PKG_VERSION")));
    Ok(())
}

#[test]
fn a_wrong_command_line_is_a_message_with_an_exit_code() -> Result<()> {
    for arguments in [&["--privatekey-labels=team"][..], &["--typo"], &["--key-size", "1"]] {
        let ended = ours(arguments)?;
        let told = String::from_utf8(ended.stderr)?;
        assert_eq!((ended.code, ended.stdout.len()), (Some(2), 0), "{told}");
        assert!(told.starts_with("error: ") && !told.contains("panicked"), "{told}");
    }
    assert_eq!(ours(&["--help"])?.code, Some(0));
    Ok(())
}

#[test]
fn a_start_that_fails_is_a_message_with_an_exit_code() -> Result<()> {
    for arguments in [&[][..], &["--kubeconfig", "/nonexistent"], &["--lease-duration", "1s"]] {
        let ended = ours(arguments)?;
        let told = String::from_utf8(ended.stderr)?;
        assert_eq!(ended.code, Some(1), "{told}");
        assert!(told.contains("error: ") && !told.contains("panicked"), "{told}");
    }
    Ok(())
}
