//! The key service with the real peer on the other side: theirs for our command, ours for theirs, ours for ours.

use std::fs;
use std::io::{BufRead, BufReader, Write};
#[cfg(feature = "vault")]
use std::net::TcpListener;
use std::net::TcpStream;
use std::os::unix::fs::PermissionsExt;
use std::os::unix::net::UnixListener;
use std::path::Path;
use std::process::{Child, Command, Output, Stdio};
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, kill_process};
#[cfg(feature = "vault")]
use xtask::peers::bao::Bao;
#[cfg(all(feature = "azure", feature = "gcp"))]
use xtask::peers::clouds::Clouds;
use xtask::peers::gpg::{Algorithm, Gpg};
use xtask::peers::moto::Moto;
use xtask::peers::sops::Sops;
use xtask::process::{Server, start_on_free_port};

use crate::sandbox::{self, Sandbox};

const PLAIN: &str = "user: admin\nport: 5432\n";

type Environment = Vec<(&'static str, String)>;

/// A key service of `program` with the keys that `environment` leads to.
fn serve(sandbox: &Sandbox, program: &Path, environment: &Environment) -> (Server, String) {
    let log = sandbox.home().join("keyservice.log");
    let command = |port: u16| {
        let mut command = sandbox.command(program);
        command.env_remove("SOPS_AGE_KEY_FILE").envs(environment.iter().cloned());
        command.args(["keyservice", "--address", &format!("127.0.0.1:{port}")]);
        command
    };
    let ready = |port: u16| TcpStream::connect(("127.0.0.1", port)).is_ok();
    let (server, port) = start_on_free_port("keyservice", &log, command, ready).unwrap();
    (server, format!("tcp://127.0.0.1:{port}"))
}

/// Runs `program` where no key is to be found, with the service at `address` alone.
fn ask(sandbox: &Sandbox, program: &Path, address: &str, words: &[&str]) -> Output {
    let mut command = sandbox.command(program);
    command.env_remove("SOPS_AGE_KEY_FILE").env("SOPS_DISABLE_VERSION_CHECK", "true");
    // Stock sops wants them after the verb.
    command
        .arg(words[0])
        .args(["--enable-local-keyservice=false", "--keyservice", address])
        .args(&words[1..]);
    command.output().unwrap()
}

fn ask_ok(sandbox: &Sandbox, program: &Path, address: &str, words: &[&str]) -> String {
    let output = ask(sandbox, program, address, words);
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{} {words:?}: {said}", program.display());
    String::from_utf8(output.stdout).unwrap()
}

/// Each side from either tool: what one client has wrapped by one service, another has unwrapped by another.
fn all_ways(recipient: &[&str], environment: &Environment) {
    let sandbox = Sandbox::new();
    sandbox.write("plain.yaml", PLAIN);
    let peers = Sops::all().unwrap();
    let lacre = sandbox::lacre();
    let stock = || peers.iter().map(Sops::program);
    let (_ours, ours) = serve(&sandbox, lacre, environment);
    for client in stock().chain([lacre]) {
        let sealed = ask_ok(&sandbox, client, &ours, &[&["encrypt"], recipient, &["plain.yaml"]].concat());
        sandbox.write("sealed.yaml", &sealed);
        for opener in stock().chain([lacre]) {
            let opened = ask_ok(&sandbox, opener, &ours, &["decrypt", "sealed.yaml"]);
            assert!(opened.contains("port: 5432"), "{}: {opened}", opener.display());
        }
    }
    for server in stock() {
        let (_theirs, theirs) = serve(&sandbox, server, environment);
        let sealed = ask_ok(&sandbox, lacre, &theirs, &[&["encrypt"], recipient, &["plain.yaml"]].concat());
        sandbox.write("sealed.yaml", &sealed);
        for address in [&theirs, &ours] {
            assert_eq!(ask_ok(&sandbox, lacre, address, &["decrypt", "sealed.yaml"]), PLAIN);
        }
        ask_ok(&sandbox, lacre, &theirs, &["rotate", "--in-place", "sealed.yaml"]);
        assert_eq!(ask_ok(&sandbox, lacre, &ours, &["decrypt", "sealed.yaml"]), PLAIN);
    }
}

#[test]
fn age() {
    let key = sandbox::key_file("ops").display().to_string();
    all_ways(&["--age", &sandbox::recipient("ops")], &vec![("SOPS_AGE_KEY_FILE", key)]);
}

#[test]
fn pgp() {
    let gpg = Gpg::new().unwrap();
    let fingerprint = gpg.generate("ops <ops@example.org>", Algorithm::Curve25519).unwrap();
    all_ways(&["--pgp", &fingerprint], &vec![("GNUPGHOME", gpg.home().display().to_string())]);
}

#[test]
fn aws_kms() {
    let moto = Moto::shared().unwrap();
    let arn = moto.create_key().unwrap();
    let environment: Environment = moto.environment().into_iter().collect();
    all_ways(&["--kms", &arn, "--encryption-context", "team:shop"], &environment);
}

#[test]
#[cfg(feature = "vault")]
fn transit() {
    let bao = Bao::shared().unwrap();
    let key = bao.transit_key("key-service").unwrap();
    let environment = vec![("VAULT_ADDR", bao.address().to_owned()), ("VAULT_TOKEN", bao.token().to_owned())];
    all_ways(&["--hc-vault-transit", &key], &environment);
}

#[test]
#[cfg(all(feature = "azure", feature = "gcp"))]
fn google_and_azure() {
    let clouds = Clouds::shared().unwrap();
    all_ways(&["--gcp-kms", &clouds.gcp_key("a")], &clouds.environment());
    let pinned = format!("{}/{}", clouds.azure_key(), clouds.azure_versions()[0]);
    all_ways(&["--azure-kv", &pinned], &clouds.environment());
}

/// Whoever asks names the server; the service's token goes where its user lets it go.
#[test]
#[cfg(feature = "vault")]
fn the_services_vault_token_does_not_follow_an_address_of_a_client() {
    let bao = Bao::shared().unwrap();
    let key = bao.transit_key("key-service-stolen").unwrap();
    let environment = vec![("VAULT_ADDR", bao.address().to_owned()), ("VAULT_TOKEN", bao.token().to_owned())];
    let sandbox = Sandbox::new();
    let (_server, address) = serve(&sandbox, sandbox::lacre(), &environment);
    sandbox.write("a.yaml", PLAIN);
    ask_ok(&sandbox, sandbox::lacre(), &address, &["encrypt", "-i", "--hc-vault-transit", &key, "a.yaml"]);
    let stranger = TcpListener::bind("127.0.0.1:0").unwrap();
    stranger.set_nonblocking(true).unwrap();
    let named = format!("http://{}", stranger.local_addr().unwrap());
    sandbox.write("a.yaml", &sandbox.read("a.yaml").replace(bao.address(), &named));
    let refused = ask(&sandbox, sandbox::lacre(), &address, &["decrypt", "a.yaml"]);
    assert_eq!(refused.status.code(), Some(128), "{}", String::from_utf8_lossy(&refused.stderr));
    assert!(stranger.accept().is_err(), "the service called the stranger");
}

#[test]
fn shares_of_key_groups_pass_too() {
    let sandbox = Sandbox::new();
    let (ops, ci) = (sandbox::recipient("ops"), sandbox::recipient("ci"));
    let rule = format!("creation_rules:\n  - key_groups:\n      - age: [{ops}]\n      - age: [{ci}]\n");
    sandbox.write(".sops.yaml", &rule);
    sandbox.write("plain.yaml", PLAIN);
    let keys = ["ops", "ci"].map(|role| fs::read_to_string(sandbox::key_file(role)).unwrap()).concat();
    sandbox.write("both.agekey", &keys);
    let key = sandbox.work().join("both.agekey").display().to_string();
    let (_server, address) = serve(&sandbox, sandbox::lacre(), &vec![("SOPS_AGE_KEY_FILE", key)]);
    for program in [sandbox::lacre(), Sops::v3_13().unwrap().program()] {
        let sealed = ask_ok(&sandbox, program, &address, &["encrypt", "plain.yaml"]);
        assert!(sealed.contains("key_groups"), "{sealed}");
        sandbox.write("sealed.yaml", &sealed);
        assert_eq!(ask_ok(&sandbox, sandbox::lacre(), &address, &["decrypt", "sealed.yaml"]), PLAIN);
    }
}

#[test]
fn what_is_held_here_comes_first_and_services_in_turn() {
    let sandbox = Sandbox::new();
    sandbox.write("a.yaml", PLAIN);
    sandbox.lacre_ok(&["encrypt", "--in-place", "--age", &sandbox::recipient("ops"), "a.yaml"]);
    let key = |role: &str| vec![("SOPS_AGE_KEY_FILE", sandbox::key_file(role).display().to_string())];
    let (_stranger, first) = serve(&sandbox, sandbox::lacre(), &key("stranger"));
    let other = Sandbox::new();
    let (ops, second) = serve(&other, sandbox::lacre(), &key("ops"));
    // Held here: a service that is not there is not missed.
    assert_eq!(sandbox.lacre_ok(&["decrypt", "--keyservice", "tcp://127.0.0.1:1", "a.yaml"]), PLAIN);
    let listed = format!("{first},{second}");
    assert_eq!(ask_ok(&sandbox, sandbox::lacre(), &listed, &["decrypt", "a.yaml"]), PLAIN);
    drop(ops);
    let failed = ask(&sandbox, sandbox::lacre(), &listed, &["decrypt", "a.yaml"]);
    let said = String::from_utf8_lossy(&failed.stderr);
    assert_eq!(failed.status.code(), Some(128), "{said}");
    for words in [
        format!("the key service {first} answered: no identity there opens it"),
        format!("the key service {second} was not reached: Connection refused"),
        "hint: start the key service there".to_owned(),
    ] {
        assert!(said.contains(&words), "{words}: {said}");
    }
    assert!(
        !said.contains(&key("stranger")[0].1),
        "the client was told where the keys of others are: {said}"
    );
    let failed = ask(&sandbox, sandbox::lacre(), &second, &["rotate", "a.yaml"]);
    assert_eq!(failed.status.code(), Some(128));
    let words = ["encrypt", "--age", &sandbox::recipient("ops"), "--filename-override", "b.yaml", "-"];
    let mut command = sandbox.command(sandbox::lacre());
    command.args(["--enable-local-keyservice=false", "--keyservice", &second]).args(words);
    let failed = sandbox::with_input(command, b"a: b\n");
    let said = String::from_utf8_lossy(&failed.stderr);
    assert!(said.contains(&second) && failed.status.code() == Some(23), "{said}");
}

#[test]
fn a_person_is_asked_before_the_work_and_no_is_no() {
    let sandbox = Sandbox::new();
    sandbox.write("a.yaml", PLAIN);
    sandbox.lacre_ok(&["encrypt", "--in-place", "--age", &sandbox::recipient("ops"), "a.yaml"]);
    let mut service = Socket::start(&sandbox, &["--prompt"]);
    let decrypt = |answer: &str, service: &mut Socket| {
        service.type_in(answer);
        ask(&sandbox, sandbox::lacre(), &service.address, &["decrypt", "a.yaml"])
    };
    let refused = decrypt("n\n", &mut service);
    let said = String::from_utf8_lossy(&refused.stderr);
    assert!(said.contains("the person there refused") && refused.status.code() == Some(128), "{said}");
    assert!(!decrypt("\n", &mut service).status.success(), "no answer is no");
    assert_eq!(decrypt("y\n", &mut service).stdout, PLAIN.as_bytes());
    let asked = service.end();
    let question = format!("decrypt with age {}? (y/n)", sandbox::recipient("ops"));
    assert_eq!(asked.matches(&question).count(), 3, "{asked}");
    // Somebody without the key is asked as well, so that it was before the work.
    let mut command = sandbox.command(sandbox::lacre());
    command.env("SOPS_AGE_KEY_FILE", sandbox::key_file("stranger"));
    let mut service = Socket::start_with(&sandbox, command, &["--prompt"]);
    let refused = decrypt("n\n", &mut service);
    assert!(String::from_utf8_lossy(&refused.stderr).contains("the person there refused"));
}

#[test]
fn a_socket_is_its_owners_alone_and_gone_afterwards() {
    let sandbox = Sandbox::new();
    let service = Socket::start(&sandbox, &[]);
    let path = sandbox.work().join("s.sock");
    assert_eq!(fs::metadata(&path).unwrap().permissions().mode() & 0o777, 0o600);
    let second = sandbox.lacre(&["keyservice", "--network", "unix", "--address", "s.sock"]);
    assert!(String::from_utf8_lossy(&second.stderr).contains("something answers there already"));
    assert!(path.exists(), "the socket of the first was taken away");
    service.end();
    assert!(!path.exists());
    // Left behind by one that was killed.
    drop(UnixListener::bind(&path).unwrap());
    assert!(path.exists());
    // As from a terminal, with Ctrl-C.
    Socket::start(&sandbox, &[]).end_by(Signal::INT);
    assert!(!path.exists());
    fs::write(&path, "a file").unwrap();
    let refused = sandbox.lacre(&["keyservice", "--network", "unix", "--address", "s.sock"]);
    assert!(String::from_utf8_lossy(&refused.stderr).contains("is there and no socket"));
    assert_eq!(fs::read_to_string(&path).unwrap(), "a file");
}

#[test]
fn an_address_that_others_reach_is_warned_of() {
    let sandbox = Sandbox::new();
    for (address, is_warned) in
        [("0.0.0.0:0", true), (":0", true), ("127.0.0.1:0", false), ("[::1]:0", false)]
    {
        let mut command = sandbox.command(sandbox::lacre());
        command.args(["keyservice", "--address", address]).stderr(Stdio::piped());
        let mut child = command.spawn().unwrap();
        let mut said = String::new();
        let mut stderr = BufReader::new(child.stderr.take().unwrap());
        // The last line before it serves; an end without it shows below.
        while !said.contains("listening on tcp://") && stderr.read_line(&mut said).unwrap() > 0 {}
        kill_process(Pid::from_child(&child), Signal::INT).unwrap();
        child.wait().unwrap();
        assert_eq!(said.contains("warning: 0.0.0.0:"), is_warned, "{address}: {said}");
        assert_eq!(said.contains("is reached from elsewhere"), is_warned, "{address}: {said}");
        assert!(said.contains("listening on tcp://"), "{address}: {said}");
    }
}

#[test]
fn the_log_names_keys_and_never_what_was_wrapped() {
    let sandbox = Sandbox::new();
    sandbox.write("a.yaml", "password: CANARY-VALUE\n");
    let service = Socket::start(&sandbox, &["--verbose"]);
    let ops = sandbox::recipient("ops");
    ask_ok(&sandbox, sandbox::lacre(), &service.address, &["encrypt", "--in-place", "--age", &ops, "a.yaml"]);
    ask_ok(&sandbox, sandbox::lacre(), &service.address, &["decrypt", "a.yaml"]);
    let log = service.end();
    assert!(log.contains(&format!("encrypt with age {ops}: done")), "{log}");
    assert!(log.contains(&format!("decrypt with age {ops}: done")), "{log}");
    assert!(
        !log.contains("CANARY") && !log.contains("AGE ENCRYPTED FILE") && !log.contains("AGE-SECRET"),
        "{log}"
    );
}

/// The order in which kinds are tried shows in whether `gpg` was called before age opened the file.
#[test]
fn the_decryption_order_is_that_of_stock_tools() {
    let sandbox = Sandbox::new();
    let gpg = Gpg::new().unwrap();
    let fingerprint = gpg.generate("ops <ops@example.org>", Algorithm::Curve25519).unwrap();
    sandbox.write("a.yaml", PLAIN);
    let mut command = sandbox.command(sandbox::lacre());
    command.env("GNUPGHOME", gpg.home()).args(["encrypt", "--in-place", "--pgp", &fingerprint]);
    let sealed = command.args(["--age", &sandbox::recipient("ops"), "a.yaml"]).output().unwrap();
    assert!(sealed.status.success(), "{}", String::from_utf8_lossy(&sealed.stderr));
    let called = sandbox.tmp().join("called");
    let script = sandbox.home().join("gpg");
    fs::write(&script, format!("#!/bin/sh\ntouch {}\necho 'gpg: not today' >&2\nexit 2\n", called.display()))
        .unwrap();
    fs::set_permissions(&script, fs::Permissions::from_mode(0o755)).unwrap();
    let decrypt = |program: &Path, order: Option<&str>, key: &str| {
        let mut command = sandbox.command(program);
        command.env("SOPS_GPG_EXEC", &script).env("GNUPGHOME", gpg.home()).args(["decrypt", "a.yaml"]);
        command.env("SOPS_AGE_KEY_FILE", sandbox::key_file(key)).env("SOPS_DISABLE_VERSION_CHECK", "true");
        command.envs(order.map(|order| ("SOPS_DECRYPTION_ORDER", order)));
        let output = command.output().unwrap();
        let was_called = called.exists();
        let _ = fs::remove_file(&called);
        (output, was_called)
    };
    for program in [sandbox::lacre(), Sops::v3_13().unwrap().program(), Sops::v3_11().unwrap().program()] {
        for (order, expected) in
            [(None, false), (Some("pgp,age"), true), (Some("age,pgp"), false), (Some("kms,pgp"), true)]
        {
            let (output, was_called) = decrypt(program, order, "ops");
            assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
            assert_eq!(was_called, expected, "{} {order:?}", program.display());
        }
    }
    let (failed, _) = decrypt(sandbox::lacre(), Some("pgp"), "stranger");
    let said = String::from_utf8_lossy(&failed.stderr);
    assert!(
        said.contains(&format!("pgp {fingerprint}: gpg could not open the message: not today")),
        "{said}"
    );
}

/// `lacre keyservice` on a socket in the work folder, with a standard input to type in.
struct Socket {
    child: Option<Child>,
    address: String,
}

impl Socket {
    fn start(sandbox: &Sandbox, flags: &[&str]) -> Self {
        Self::start_with(sandbox, sandbox.command(sandbox::lacre()), flags)
    }

    fn start_with(sandbox: &Sandbox, mut command: Command, flags: &[&str]) -> Self {
        let path = sandbox.work().join("s.sock");
        command.args(["keyservice", "--network", "unix", "--address", "s.sock"]).args(flags);
        command.stdin(Stdio::piped()).stdout(Stdio::null()).stderr(Stdio::piped());
        let child = Some(command.spawn().unwrap());
        let started = Instant::now();
        while std::os::unix::net::UnixStream::connect(&path).is_err() {
            assert!(started.elapsed() < Duration::from_secs(30), "the service does not listen");
            std::thread::sleep(Duration::from_millis(20));
        }
        Self { child, address: format!("unix://{}", path.display()) }
    }

    fn type_in(&mut self, line: &str) {
        let stdin = self.child.as_mut().unwrap().stdin.as_mut();
        stdin.unwrap().write_all(line.as_bytes()).unwrap();
    }

    /// Asks it to end; gives what it logged.
    fn end(self) -> String {
        self.end_by(Signal::TERM)
    }

    fn end_by(mut self, signal: Signal) -> String {
        let child = self.child.take().unwrap();
        kill_process(Pid::from_child(&child), signal).unwrap();
        let output = child.wait_with_output().unwrap();
        let log = String::from_utf8(output.stderr).unwrap();
        assert!(output.status.success(), "{}: {log}", output.status);
        log
    }
}

impl Drop for Socket {
    fn drop(&mut self) {
        if let Some(child) = &mut self.child {
            let _ = child.kill();
            let _ = child.wait();
        }
    }
}
