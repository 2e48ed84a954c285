//! Many files in one call: whole folders of all formats, there and back, with stock sops reading along.

use std::collections::BTreeMap;
use std::fs;
use std::io::{Read, Write};
use std::net::{Shutdown, TcpListener, TcpStream};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use crate::sandbox::{self, Sandbox};
use xtask::peers::moto::Moto;
use xtask::peers::sops::Sops;

/// Files of each format.
const EACH: usize = 8;

/// A folder with files of all formats, in folders of their own, and the rule that is for all of them.
fn folder() -> Sandbox {
    let sandbox = Sandbox::new();
    let rule = format!("creation_rules:\n  - path_regex: ^s/\n    age: {}\n", sandbox::recipient("ops"));
    sandbox.write(".sops.yaml", &rule);
    for number in 0..EACH {
        sandbox.write(&format!("s/{number}/a.yaml"), &format!("# c\nkey: value {number}\nn: {number}\n"));
        sandbox.write(&format!("s/{number}/b.json"), &format!("{{\"key\": \"value {number}\"}}\n"));
        sandbox.write(&format!("s/{number}/.env"), &format!("KEY=value {number}\n"));
        sandbox.write(&format!("s/{number}/d.ini"), &format!("[s]\nkey = value {number}\n"));
        sandbox.write(&format!("s/{number}/e.pem"), &format!("value {number}\n"));
    }
    sandbox
}

fn contents(folder: &Path) -> BTreeMap<PathBuf, Vec<u8>> {
    let mut found = BTreeMap::new();
    for entry in fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        match path.is_dir() {
            true => found.extend(contents(&path)),
            false => drop(found.insert(path.clone(), fs::read(&path).unwrap())),
        }
    }
    found
}

#[test]
fn a_folder_of_all_formats_comes_back_to_the_byte() {
    let sandbox = folder();
    let secrets = sandbox.work().join("s");
    let plain = contents(&secrets);
    assert_eq!(plain.len(), 5 * EACH);
    sandbox.lacre_ok(&["encrypt", "--in-place", "--recursive", "s"]);
    let sealed = contents(&secrets);
    assert!(sealed.values().all(|text| !String::from_utf8_lossy(text).contains("value 3")));
    sandbox.lacre_ok(&["check"]);
    sandbox.lacre_ok(&["updatekeys", "--check", "--recursive", "s"]);
    sandbox.lacre_ok(&["rotate", "--in-place", "--recursive", "s"]);
    assert!(contents(&secrets).iter().all(|(path, text)| sealed[path] != *text), "a file was not rotated");
    sandbox.lacre_ok(&["decrypt", "--output-dir", "out", "--recursive", "s"]);
    let out: Vec<Vec<u8>> = contents(&sandbox.work().join("out")).into_values().collect();
    assert_eq!(out, plain.values().cloned().collect::<Vec<_>>());
    for name in ["s/3/a.yaml", "s/3/b.json", "s/3/.env", "s/3/d.ini", "s/3/e.pem"] {
        let sops = &Sops::all().unwrap()[0];
        let tool = sops.tool().env("SOPS_AGE_KEY_FILE", sandbox::key_file("ops")).dir(sandbox.work());
        let opened = tool.args(["decrypt", name]).run().unwrap().success().unwrap();
        assert!(String::from_utf8_lossy(&opened).contains("value 3"), "{name}");
    }
    sandbox.lacre_ok(&["decrypt", "--in-place", "--recursive", "s"]);
    assert_eq!(contents(&secrets), plain);
}

#[test]
fn files_that_share_a_wrapped_key_open_with_a_service_that_is_asked_once() {
    let moto = Moto::shared().unwrap();
    let (sandbox, arn) = (Sandbox::new(), moto.create_key().unwrap());
    let environment: BTreeMap<String, String> =
        moto.environment().into_iter().map(|(name, value)| (name.to_owned(), value)).collect();
    let questions = Questions::on_the_way_to(&environment["AWS_ENDPOINT_URL"]);
    let lacre = |words: &[&str]| {
        let mut command = sandbox.command(sandbox::lacre());
        command.envs(&environment).env("AWS_ENDPOINT_URL", &questions.address).args(words).output().unwrap()
    };
    sandbox.write("0.yaml", "key: value\n");
    let done = lacre(&["encrypt", "--in-place", "--kms", &arn, "0.yaml"]);
    assert!(done.status.success(), "{}", String::from_utf8_lossy(&done.stderr));
    let sealed = sandbox.read("0.yaml");
    let mut words = vec!["decrypt".to_owned(), "--output-dir".to_owned(), "out".to_owned()];
    for number in 0..20 {
        let name = format!("{number}.yaml");
        sandbox.write(&name, &sealed);
        words.push(name);
    }
    // The same wrapped key under another encryption context is another question, and the service says no.
    sandbox.write(
        "other.yaml",
        &sealed.replace("aws_profile: \"\"", "aws_profile: \"\"\n          context:\n            team: shop"),
    );
    words.push("other.yaml".to_owned());
    let done = lacre(&words.iter().map(String::as_str).collect::<Vec<_>>());
    let said = String::from_utf8_lossy(&done.stderr).into_owned();
    assert_eq!(done.status.code(), Some(128), "{said}");
    assert!(said.contains("error: other.yaml: no identity here opens it"), "{said}\n{sealed}");
    assert!(said.contains("error: 20 opened, 1 failed"), "{said}");
    assert_eq!(questions.count.load(Ordering::SeqCst), 2, "one for the 20 files, one for the other context");
}

/// Counts the calls for decryption that pass through to a key service.
struct Questions {
    address: String,
    count: Arc<AtomicUsize>,
}

impl Questions {
    fn on_the_way_to(service: &str) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = format!("http://{}", listener.local_addr().unwrap());
        let service = service.trim_start_matches("http://").trim_end_matches('/').to_owned();
        let count = Arc::new(AtomicUsize::new(0));
        let counted = Arc::clone(&count);
        std::thread::spawn(move || {
            for client in listener.incoming() {
                let (client, server) = (client.unwrap(), TcpStream::connect(&service).unwrap());
                let (answers_from, answers_to) = (server.try_clone().unwrap(), client.try_clone().unwrap());
                let counted = Arc::clone(&counted);
                std::thread::spawn(move || pass(client, server, &counted));
                std::thread::spawn(move || pass(answers_from, answers_to, &AtomicUsize::new(0)));
            }
        });
        Self { address, count }
    }
}

/// Passes bytes on until their sender has no more, and counts the heads of calls among them.
fn pass(mut from: TcpStream, mut to: TcpStream, counted: &AtomicUsize) {
    const CALL: &[u8] = b"TrentService.Decrypt";
    let (mut buffer, mut seen) = ([0; 4096], Vec::new());
    while let Ok(length @ 1..) = from.read(&mut buffer) {
        seen.extend_from_slice(&buffer[..length]);
        while let Some(at) = seen.windows(CALL.len()).position(|window| window == CALL) {
            counted.fetch_add(1, Ordering::SeqCst);
            seen.drain(..at + CALL.len());
        }
        seen.drain(..seen.len().saturating_sub(CALL.len()));
        if to.write_all(&buffer[..length]).is_err() {
            return;
        }
    }
    let _ = to.shutdown(Shutdown::Write);
}
