//! Flags of the Sealed Secrets controller that are given as environment variables: `SEALED_SECRETS_KEY_TTL` is
//! `--key-ttl`. What the command line says goes before it.

use std::ffi::{OsStr, OsString};

use clap::{CommandFactory, Parser};

use super::Args;

/// What the names of the variables begin with.
pub const PREFIX: &str = "SEALED_SECRETS_";

/// Command lines, read.
pub struct Read {
    /// What command line and environment say.
    pub args: Args,
    /// Variables that name a flag and whose value it cannot have. They are ignored, as Sealed Secrets does, and told.
    pub ignored: Vec<String>,
}

/// Reads a command line, with the name of the program first, and an environment.
///
/// # Errors
/// The command line is wrong, or asks for help.
pub fn read(
    line: impl IntoIterator<Item = OsString>,
    variable: impl Fn(&str) -> Option<OsString>,
) -> Result<Read, clap::Error> {
    let mut line = line.into_iter();
    let program = line.next().unwrap_or_else(|| OsString::from("lacre-controller"));
    let (mut given, mut ignored) = (vec![program.clone()], Vec::new());
    for flag in flags() {
        let name = format!("{PREFIX}{}", flag.to_uppercase().replace('-', "_"));
        let Some(value) = variable(&name) else { continue };
        let flag = joined(&flag, &value);
        match Args::try_parse_from([&program, &flag]) {
            Ok(_) => given.push(flag),
            Err(_) => ignored.push(name),
        }
    }
    let args = Args::try_parse_from(given.into_iter().chain(line))?;
    Ok(Read { args, ignored })
}

/// The flags that take a value. Those of ours that take none are not the peer's, and have no variables.
fn flags() -> Vec<String> {
    let takes_value = |argument: &clap::Arg| {
        argument.get_action().takes_values() && argument.get_long().is_some() && argument.get_env().is_none()
    };
    let command = Args::command();
    let longs = command.get_arguments().filter(|argument| takes_value(argument)).flat_map(|argument| {
        argument.get_long_and_visible_aliases().unwrap_or_default().into_iter().map(str::to_owned)
    });
    // The deprecated name first, as the flag with both is given once by each.
    ["rotate-period".to_owned()].into_iter().chain(longs).collect()
}

fn joined(flag: &str, value: &OsStr) -> OsString {
    let mut joined = OsString::from(format!("--{flag}="));
    joined.push(value);
    joined
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    fn parsed(line: &[&str], variables: &[(&str, &str)]) -> Read {
        let line = ["lacre-controller"].iter().chain(line).map(OsString::from);
        let variable = |name: &str| {
            variables.iter().find(|(key, _)| *key == name).map(|(_, value)| OsString::from(value))
        };
        read(line, variable).unwrap()
    }

    #[test]
    fn a_variable_stands_for_its_flag_and_the_command_line_goes_before_it() {
        let variables = [("SEALED_SECRETS_KEY_SIZE", "2048"), ("SEALED_SECRETS_UPDATE_STATUS", "f")];
        let read = parsed(&["--key-size=3072"], &variables);
        assert_eq!((read.args.sealed.key_size, read.args.sealed.update_status), (3072, false));
        assert!(read.ignored.is_empty());
        let read = parsed(&[], &[("SEALED_SECRETS_ROTATE_PERIOD", "2h")]);
        assert_eq!(read.args.sealed.key_renew_period, Duration::from_secs(7200));
    }

    #[test]
    fn a_variable_that_its_flag_cannot_have_is_told() {
        let read = parsed(&[], &[("SEALED_SECRETS_KEY_TTL", "soon"), ("SEALED_SECRETS_MY_CN", "")]);
        assert_eq!(read.ignored, ["SEALED_SECRETS_KEY_TTL"]);
        assert_eq!(read.args.sealed.key_ttl, Duration::from_secs(87_600 * 3600));
    }
}
