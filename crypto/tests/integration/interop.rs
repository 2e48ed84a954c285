//! The documents and stock sops, both ways: what one seals the other opens to the same data.

use std::fs;
use std::path::{Path, PathBuf};
use std::time::Duration;

use lacre_crypto::document::Document;
use lacre_crypto::recipient::aws_kms::{AwsContext, AwsCredentials, AwsKmsIdentity, AwsKmsRecipient};
use lacre_crypto::recipient::pgp::{PgpRecipient, read_secret_keys};
use lacre_crypto::recipient::{AwsKmsKey, Identity, Recipient};
use lacre_crypto::value::{Value, ValueType};
use lacre_crypto::{
    EncryptOptions, Format, Groups, OpenOptions, SealedFile, SecretBytes, SecretText, Selector, Verdict,
};
use xtask::peers::gpg::{FixedKey, Gpg};
use xtask::peers::moto::Moto;
use xtask::peers::sops::Sops;

use crate::documents::{documents, format_of};
use crate::support::{Bench, open, seal, write_options};

/// Type and bytes of a value.
type Typed = (Option<ValueType>, Vec<u8>);

/// All values, in order; comments left out.
fn values(text: &str, format: Format) -> Result<Vec<Typed>, String> {
    let document = Document::read(text, format).map_err(|error| format!("{error} in {text}"))?;
    let is_value = |value: &&Value| value.kind() != Some(ValueType::Comment);
    let leaves = document.leaves.iter().map(|leaf| &leaf.value).filter(is_value);
    Ok(leaves.map(|value| (value.kind(), value.bytes().to_vec())).collect())
}

/// What stock sops gives for our sealed text holds the values of the original, and it has nothing to remark.
fn opens_ours(bench: &Bench, sops: &Sops, path: &Path) -> Result<(), String> {
    let name = path.file_name().unwrap().to_str().unwrap();
    let content = fs::read(path).unwrap();
    let sealed = seal(&content, format_of(path), &bench.identity)?;
    let ran = bench
        .sops(sops, &["decrypt", "FILE"], name, &sealed)
        .map_err(|error| format!("{error}\n{sealed}"))?;
    if !ran.remarks.trim().is_empty() {
        return Err(format!("it remarks: {}", ran.remarks));
    }
    // Where stock prints YAML that nobody can read (blocks with a digit in lists), its JSON holds the same data.
    let printed = bytes(&ran.bytes, path).or_else(|_| {
        let json = bench.sops(sops, &["decrypt", "--output-type", "json", "FILE"], name, &sealed)?;
        bytes(&json.bytes, Path::new("x.json"))
    })?;
    match printed == bytes(&content, path)? {
        true => Ok(()),
        false => Err(format!("other values:\n{}", ran.stdout)),
    }
}

/// The values' bytes; numbers as numbers, since stock tools print them in other spellings. A binary file is one value.
fn bytes(content: &[u8], path: &Path) -> Result<Vec<Vec<u8>>, String> {
    if format_of(path) == Format::Binary {
        return Ok(vec![content.to_vec()]);
    }
    let text = std::str::from_utf8(content).map_err(|error| error.to_string())?;
    let normal = |(kind, bytes): (Option<ValueType>, Vec<u8>)| match (kind, String::from_utf8(bytes.clone()))
    {
        (Some(ValueType::Int | ValueType::Float), Ok(text)) => match text.parse::<f64>() {
            Ok(0.0) => b"0".to_vec(),
            Ok(float) if float.abs() > 1e15 => float.to_string().into_bytes(),
            _ => bytes,
        },
        _ => bytes,
    };
    Ok(values(text, format_of(path))?.into_iter().map(normal).collect())
}

/// What stock sops seals we open: same values, MAC verified.
fn is_opened_by_us(bench: &Bench, sops: &Sops, path: &Path) -> Result<(), String> {
    let name = path.file_name().unwrap().to_str().unwrap();
    let content = fs::read(path).unwrap();
    let arguments = ["encrypt", "--age", &bench.key.recipient, "FILE"];
    let sealed = bench.sops(sops, &arguments, name, &content)?.stdout;
    let open =
        open(&sealed, format_of(path), &bench.identity).map_err(|error| format!("{error}\n{sealed}"))?;
    if open.verdict() != Verdict::NeverSealed {
        return Err(format!("the verdict is {:?}", open.verdict()));
    }
    if !open.warnings().is_empty() {
        return Err(format!("{}\n{sealed}", open.warnings().join("; ")));
    }
    match bytes(open.plaintext().expose_secret(), path)? == bytes(&content, path)? {
        true => Ok(()),
        false => Err(format!("other values:\n{}", String::from_utf8_lossy(open.plaintext().expose_secret()))),
    }
}

fn over_all_documents(check: fn(&Bench, &Sops, &Path) -> Result<(), String>) {
    let with = |sops: Sops| {
        let bench = Bench::new();
        let failure = |path: PathBuf| {
            let name = path.file_name()?.to_str()?.to_owned();
            check(&bench, &sops, &path).err().map(|error| format!("{} {name}: {error}", sops.version()))
        };
        documents().into_iter().filter_map(failure).collect::<Vec<_>>()
    };
    let failures: Vec<String> = std::thread::scope(|scope| {
        let running = Sops::all().unwrap().map(|sops| scope.spawn(move || with(sops)));
        running.into_iter().flat_map(|thread| thread.join().unwrap()).collect()
    });
    assert!(failures.is_empty(), "{} failures\n{}", failures.len(), failures.join("\n---- "));
}

#[test]
fn stock_sops_opens_what_we_seal() {
    over_all_documents(opens_ours);
}

#[test]
fn we_open_what_stock_sops_seals() {
    over_all_documents(is_opened_by_us);
}

/// One value under OpenPGP and under KMS with an encryption context, in both directions and releases.
#[test]
fn pgp_files_open_on_both_sides() {
    let (bench, gpg) = (Bench::new(), Gpg::new().unwrap());
    let fingerprint = gpg.import_fixed(FixedKey::RsaAlice).unwrap();
    let recipient = PgpRecipient::find(&fingerprint, &gpg.export_certificate(&fingerprint).unwrap()).unwrap();
    let secret = SecretBytes::new(gpg.export_secret_key(&fingerprint).unwrap());
    let identity = read_secret_keys(&secret).unwrap().remove(0);
    let environment = [("GNUPGHOME", gpg.home().to_str().unwrap().to_owned())];
    opens_both_ways(&bench, &recipient, &identity, &["--pgp", &fingerprint], &environment);
}

#[test]
fn kms_files_open_on_both_sides() {
    let (bench, moto) = (Bench::new(), Moto::shared().unwrap());
    let arn = moto.create_key().unwrap();
    let context = || AwsContext {
        endpoint: Some(moto.endpoint().to_owned()),
        credentials: AwsCredentials::Static {
            access_key_id: "AKIDOFTHECALLER".to_owned(),
            secret_access_key: SecretText::from("test"),
            session_token: None,
        },
        deadline: Duration::from_secs(30),
        allow_role_and_profile: false,
    };
    let key = AwsKmsKey::parse(&arn, "team:shop,stage:prod", "").unwrap();
    let recipient = AwsKmsRecipient::new(key, context()).unwrap();
    let identity = AwsKmsIdentity::new(context());
    let flags = ["--kms", &arn, "--encryption-context", "team:shop,stage:prod"];
    let environment: Vec<(&str, String)> = moto.environment();
    opens_both_ways(&bench, &recipient, &identity, &flags, &environment);
}

fn opens_both_ways(
    bench: &Bench,
    recipient: &dyn Recipient,
    identity: &dyn Identity,
    flags: &[&str],
    environment: &[(&str, String)],
) {
    let text = "user: ops\npassword: hunter2\n";
    let options = EncryptOptions {
        groups: Groups::one(vec![recipient]),
        selector: Selector::default(),
        mac_only_encrypted: false,
        bind: None,
        write: write_options(),
    };
    let ours = lacre_crypto::encrypt(&SecretText::from(text), Format::Yaml, &options).unwrap();
    for sops in Sops::all().unwrap() {
        let opened = bench.sops_with(&sops, &["decrypt", "FILE"], "ours.yaml", &ours, environment).unwrap();
        assert_eq!((opened.stdout.as_str(), opened.remarks.trim()), (text, ""), "{}", sops.version());
        let mut arguments = vec!["encrypt"];
        arguments.extend(flags);
        arguments.push("FILE");
        let theirs = bench.sops_with(&sops, &arguments, "theirs.yaml", text, environment).unwrap().stdout;
        let file = SealedFile::read(&theirs, Format::Yaml).unwrap();
        let key = file.unwrap_key(&[identity]).unwrap();
        let open = file.open(key, &OpenOptions::default()).unwrap();
        assert_eq!(open.plaintext().as_text(), Some(text), "{}", sops.version());
    }
}

/// Two of three groups open a file, whoever sealed it.
#[test]
fn key_groups_open_on_both_sides() {
    let (bench, others) = (Bench::new(), [Bench::new(), Bench::new()]);
    let text = "password: hunter2\n";
    let recipients: Vec<_> =
        [&bench, &others[0], &others[1]].iter().map(|bench| bench.identity.recipient()).collect();
    let groups = recipients.iter().map(|recipient| vec![recipient as &dyn Recipient]).collect();
    let options = EncryptOptions {
        groups: Groups { groups, threshold: Some(2) },
        selector: Selector::default(),
        mac_only_encrypted: false,
        bind: None,
        write: write_options(),
    };
    let ours = lacre_crypto::encrypt(&SecretText::from(text), Format::Yaml, &options).unwrap();
    let one = open(&ours, Format::Yaml, &bench.identity).unwrap_err();
    assert!(one.contains("cannot unwrap the data key"), "{one}");
    let two: [&dyn Identity; 2] = [&bench.identity, &others[1].identity];
    let file = SealedFile::read(&ours, Format::Yaml).unwrap();
    let key = file.unwrap_key(&two).unwrap();
    assert_eq!(file.open(key, &OpenOptions::default()).unwrap().plaintext().as_text(), Some(text));
    let keys = format!("{}\n{}", bench.key.identity, others[1].key.identity);
    let rule = |bench: &Bench| format!("    - age: [{}]\n", bench.key.recipient);
    let rules = format!(
        "creation_rules:\n- shamir_threshold: 2\n  key_groups:\n{}{}{}",
        rule(&bench),
        rule(&others[0]),
        rule(&others[1])
    );
    fs::write(bench.folder.path().join("key.txt"), keys).unwrap();
    let config = bench.folder.path().join("sops.yaml");
    fs::write(&config, rules).unwrap();
    for sops in Sops::all().unwrap() {
        assert_eq!(bench.sops(&sops, &["decrypt", "FILE"], "ours.yaml", &ours).unwrap().stdout, text);
        let arguments = ["--config", config.to_str().unwrap(), "encrypt", "FILE"];
        let theirs = bench.sops(&sops, &arguments, "theirs.yaml", text).unwrap().stdout;
        let file = SealedFile::read(&theirs, Format::Yaml).unwrap();
        let key = file.unwrap_key(&two).unwrap();
        assert_eq!(file.open(key, &OpenOptions::default()).unwrap().plaintext().as_text(), Some(text));
    }
}
