//! `lacre keyservice`: wraps and unwraps for others with what this user holds.

use std::collections::HashMap;
use std::fmt;
use std::fs;
use std::net::{TcpListener, ToSocketAddrs};
use std::os::unix::fs::FileTypeExt;
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use clap::{Args, ValueEnum};
use lacre_crypto::SecretBytes;
use lacre_crypto::data_key::unwrap_entry;
use lacre_crypto::error::NoKeyError;
use lacre_crypto::recipient::age::AgeRecipient;
use lacre_crypto::recipient::key_service::{Keeper, KeyServer, Limits, Listener};
use lacre_crypto::recipient::{RecipientId, UnwrapError, UnwrapFailure, WrappedKey};

use super::Context;
use crate::error::{CommandError, Kind};
use crate::files;
use crate::identities::Keyring;
use crate::output::Output;
use crate::recipients;

/// Most requests that are worked on at the same time.
const REQUESTS_MAX: usize = 16;

/// How long a request may take.
const DEADLINE: Duration = Duration::from_secs(30);

/// How long a request may take when a person is asked first.
const DEADLINE_WITH_PROMPT: Duration = Duration::from_secs(5 * 60);

/// Most kinds and recipients whose identities are kept; at the limit they are looked for anew.
const KEYRINGS_MAX: usize = 64;

/// Most characters of a recipient's name that are shown: it comes from whoever asks.
const NAME_CHARS_MAX: usize = 300;

/// Wrap and unwrap data keys for others, with the keys of this user.
///
/// Others reach it with `--keyservice tcp://ADDRESS` or `--keyservice unix://PATH`, also those who use sops. There is
/// no authentication: whoever reaches the address can unwrap whatever this user can. A socket is its owner's alone.
#[derive(Args, Debug)]
#[command(
    after_help = "Example:\n  lacre keyservice --network unix --address /run/user/1000/lacre.sock --prompt"
)]
pub(crate) struct KeyserviceArgs {
    /// What to listen on.
    #[arg(long, value_enum, default_value = "tcp")]
    network: Network,
    /// `HOST:PORT`, or the path of a socket.
    #[arg(long, value_name = "ADDRESS", default_value = "127.0.0.1:5000")]
    address: String,
    /// Ask before each request is worked on.
    #[arg(long)]
    prompt: bool,
    /// Tell of each request.
    #[arg(long)]
    verbose: bool,
}

/// Kinds of addresses.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum Network {
    /// A host and a port.
    Tcp,
    /// A path.
    Unix,
}

pub(crate) fn run(args: &KeyserviceArgs, context: &Context) -> Result<(), CommandError> {
    let output = context.output;
    let refused = |problem| CommandError::on(Kind::General, &args.address, files::plain_words(&problem));
    let server = KeyServer::new().map_err(refused)?;
    let (listener, _socket) = match args.network {
        Network::Tcp => (listen_tcp(&args.address, output)?, None),
        Network::Unix => {
            let (listener, socket) = listen_unix(Path::new(&args.address))?;
            output.note(&format!("listening on unix://{}", args.address));
            (listener, Some(socket))
        }
    };
    let keeper = User {
        output,
        verbose: args.verbose,
        prompt: args.prompt.then(Mutex::default),
        keyrings: Mutex::default(),
    };
    let deadline = if args.prompt { DEADLINE_WITH_PROMPT } else { DEADLINE };
    server.serve(listener, Arc::new(keeper), Limits { requests_max: REQUESTS_MAX, deadline }).map_err(refused)
}

fn listen_tcp(address: &str, output: Output) -> Result<Listener, CommandError> {
    let error = |problem: String| {
        CommandError::on(Kind::General, address, problem).hint("give `HOST:PORT`, such as 127.0.0.1:5000")
    };
    // Without a host, all addresses of this machine are meant, as in sops.
    let full = if address.starts_with(':') { format!("0.0.0.0{address}") } else { address.to_owned() };
    let addresses: Vec<_> =
        full.to_socket_addrs().map_err(|failure| error(files::plain_words(&failure)))?.collect();
    let listener =
        TcpListener::bind(addresses.as_slice()).map_err(|failure| error(files::plain_words(&failure)))?;
    let bound = listener.local_addr().map_err(|failure| error(files::plain_words(&failure)))?;
    if !bound.ip().is_loopback() {
        output.warn(&format!(
            "{bound} is reached from elsewhere: whoever does can unwrap what this user can, and data keys cross the network readable"
        ));
    }
    output.note(&format!("listening on tcp://{bound}"));
    Ok(Listener::Tcp(listener))
}

/// A socket that only its owner can connect to. One that a killed service left behind is taken away first.
fn listen_unix(path: &Path) -> Result<(Listener, Socket), CommandError> {
    let error = |problem: &str| CommandError::on(Kind::General, path.display(), problem);
    if let Ok(found) = fs::symlink_metadata(path) {
        if !found.file_type().is_socket() {
            return Err(error("is there and no socket").hint("give the path of a socket that is to be made"));
        }
        if UnixStream::connect(path).is_ok() {
            return Err(error("something answers there already").hint("use it, or end it first"));
        }
        fs::remove_file(path).map_err(|failure| error(&files::plain_words(&failure)))?;
    }
    // The mode must be right from the first moment. The server's threads, which run already, make no file meanwhile.
    let mask = rustix::process::umask(rustix::fs::Mode::from_raw_mode(0o177));
    let bound = UnixListener::bind(path);
    rustix::process::umask(mask);
    let listener = bound.map_err(|failure| {
        error(&files::plain_words(&failure))
            .hint("give a path in a folder that is there and that you can write to")
    })?;
    Ok((Listener::Unix(listener), Socket(path.to_owned())))
}

/// Takes the socket's name away when the service ends.
struct Socket(PathBuf);

impl Drop for Socket {
    fn drop(&mut self) {
        // A name that is gone already is what was wanted.
        let _ = fs::remove_file(&self.0);
    }
}

/// What is asked for.
#[derive(Clone, Copy)]
enum Verb {
    Decrypt,
    Encrypt,
}

impl fmt::Display for Verb {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(match self {
            Self::Decrypt => "decrypt",
            Self::Encrypt => "encrypt",
        })
    }
}

/// The keys of the user who runs this. Never asks other key services: two that list each other would go in circles.
struct User {
    output: Output,
    verbose: bool,
    /// Held while the person is asked, one question at a time.
    prompt: Option<Mutex<()>>,
    keyrings: Mutex<HashMap<(String, String), Arc<Keyring>>>,
}

impl Keeper for User {
    fn wrap(&self, recipient: &RecipientId, key: &SecretBytes) -> Result<String, UnwrapError> {
        self.attend(Verb::Encrypt, recipient, || {
            let denied = |reason| UnwrapError::new(UnwrapFailure::Denied, reason);
            let ready = recipients::build(recipient).map_err(|error| denied(error.cause.to_string()))?;
            ready.wrap(key).map_err(|error| denied(error.reason))
        })
    }

    fn unwrap(&self, wrapped: &WrappedKey) -> Result<SecretBytes, UnwrapError> {
        if let RecipientId::Age(text) = &wrapped.recipient {
            // It may go to a program of this user's (`SOPS_AGE_KEY_CMD`), so that it has to be one.
            AgeRecipient::parse(text)
                .map_err(|error| UnwrapError::new(UnwrapFailure::Broken, error.to_string()))?;
        }
        self.attend(Verb::Decrypt, &wrapped.recipient, || {
            let keyring = self.keyring(&wrapped.recipient);
            unwrap_entry(wrapped, &keyring.as_refs()).map_err(|failure| {
                self.output.note(&keyring.explain("request", &failure).cause.to_string());
                short(&failure)
            })
        })
    }
}

impl User {
    /// Asks if that was wanted, works, and tells.
    fn attend<T>(
        &self,
        verb: Verb,
        recipient: &RecipientId,
        work: impl FnOnce() -> Result<T, UnwrapError>,
    ) -> Result<T, UnwrapError> {
        let name: String = recipient.to_string().chars().take(NAME_CHARS_MAX).collect();
        if !self.is_allowed(verb, &name) {
            self.output.note(&format!("{verb} with {name}: refused"));
            return Err(UnwrapError::new(UnwrapFailure::Denied, "the person there refused the request"));
        }
        let outcome = work();
        match &outcome {
            Ok(_) if self.verbose => self.output.note(&format!("{verb} with {name}: done")),
            Ok(_) => {}
            Err(error) => self.output.note(&format!("{verb} with {name}: {error}")),
        }
        outcome
    }

    fn is_allowed(&self, verb: Verb, name: &str) -> bool {
        let Some(prompt) = &self.prompt else { return true };
        let _one_at_a_time = lock(prompt);
        let answer = self.output.ask(&format!("{verb} with {name}? (y/n) "));
        answer.is_some_and(|answer| matches!(answer.to_ascii_lowercase().as_str(), "y" | "yes"))
    }

    /// The identities of that kind. A command that is told which age recipient is wanted may give another for each.
    fn keyring(&self, wanted: &RecipientId) -> Arc<Keyring> {
        let kind = wanted.to_string().split(' ').next().unwrap_or_default().to_owned();
        let told = std::env::var_os("SOPS_AGE_KEY_CMD").is_some() && matches!(wanted, RecipientId::Age(_));
        let name = (kind, if told { wanted.to_string() } else { String::new() });
        if let Some(keyring) = lock(&self.keyrings).get(&name) {
            return Arc::clone(keyring);
        }
        let keyring = Arc::new(Keyring::local(std::slice::from_ref(wanted)));
        let mut keyrings = lock(&self.keyrings);
        if keyrings.len() >= KEYRINGS_MAX {
            keyrings.clear();
        }
        Arc::clone(keyrings.entry(name).or_insert(keyring))
    }
}

/// What the one who asks is told: what was tried, not where this user keeps keys.
fn short(failure: &NoKeyError) -> UnwrapError {
    let Some(last) = failure.attempts.last() else {
        return UnwrapError::new(UnwrapFailure::Denied, "no identity there opens it");
    };
    let said: Vec<&str> = failure.attempts.iter().map(|attempt| attempt.reason.as_str()).collect();
    UnwrapError::new(last.failure, said.join("; "))
}

/// A lock whose holder panicked still guards plain data.
fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
