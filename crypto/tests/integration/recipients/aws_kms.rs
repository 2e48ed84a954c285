//! KMS and STS as moto serves them.

use std::io::{self, Read, Write};
use std::net::{Shutdown, TcpListener, TcpStream};
use std::sync::{Arc, Mutex};
use std::thread;
use std::time::Duration;

use lacre_crypto::recipient::aws_kms::{AwsContext, AwsCredentials, AwsKmsIdentity, AwsKmsRecipient};
use lacre_crypto::recipient::{AwsKmsKey, Identity, Recipient, RecipientId, UnwrapFailure};
use lacre_crypto::secret::SecretText;
use xtask::peers::moto::Moto;

use super::{Tested, entry, keys};

const ROLE: &str = "arn:aws:iam::123456789012:role/unwrap";

fn context(endpoint: &str) -> AwsContext {
    AwsContext {
        endpoint: Some(endpoint.to_owned()),
        credentials: AwsCredentials::Static {
            access_key_id: "AKIDOFTHECALLER".to_owned(),
            secret_access_key: SecretText::from("test"),
            session_token: None,
        },
        deadline: Duration::from_secs(30),
        allow_role_and_profile: true,
    }
}

#[test]
fn what_kms_wraps_it_unwraps_with_the_same_context_alone() -> Tested {
    let moto = Moto::shared()?;
    let arn = moto.create_key()?;
    let identity = AwsKmsIdentity::new(context(moto.endpoint()));
    for encryption_context in ["", "team:shop,stage:prod"] {
        let key = AwsKmsKey::parse(&arn, encryption_context, "")?;
        let recipient = AwsKmsRecipient::new(key.clone(), context(moto.endpoint()))?;
        for secret in keys() {
            let enc = recipient.wrap(&secret)?;
            assert_eq!(identity.unwrap(&entry(recipient.id(), &enc)).ok_or("not for us")??, secret);
            for wrong in ["team:shop", "team:shop,stage:test", "stage:prod,team:shop,x:y"] {
                let key = AwsKmsKey::parse(&arn, wrong, "")?;
                let outcome = identity.unwrap(&entry(RecipientId::AwsKms(key), &enc)).ok_or("not for us")?;
                let error = outcome.map(drop).unwrap_err();
                assert_eq!(error.kind, UnwrapFailure::Broken, "{wrong}: {error}");
            }
        }
    }
    Ok(())
}

#[test]
fn a_key_that_is_not_there_is_a_refusal() -> Tested {
    let moto = Moto::shared()?;
    let arn = "arn:aws:kms:us-east-1:123456789012:key/00000000-0000-0000-0000-000000000000";
    let recipient = AwsKmsRecipient::new(AwsKmsKey::parse(arn, "", "")?, context(moto.endpoint()))?;
    let [secret, _] = keys();
    let reason = recipient.wrap(&secret).unwrap_err().reason;
    assert!(reason.contains("NotFoundException"), "{reason}");
    Ok(())
}

#[test]
fn a_damaged_blob_is_broken() -> Tested {
    let moto = Moto::shared()?;
    let key = AwsKmsKey::parse(&moto.create_key()?, "", "")?;
    let identity = AwsKmsIdentity::new(context(moto.endpoint()));
    let recipient = AwsKmsRecipient::new(key, context(moto.endpoint()))?;
    let [secret, _] = keys();
    let enc = recipient.wrap(&secret)?;
    let middle = enc.len() / 2;
    let flipped = if enc.as_bytes()[middle] == b'A' { "B" } else { "A" };
    let damaged = format!("{}{flipped}{}", &enc[..middle], &enc[middle + 1..]);
    let error = identity.unwrap(&entry(recipient.id(), damaged)).ok_or("not for us")?.map(drop).unwrap_err();
    assert_eq!(error.kind, UnwrapFailure::Broken, "{error}");
    Ok(())
}

/// The role is assumed at STS as the caller, and KMS is called with what STS gave, once for several files.
#[test]
fn a_role_is_assumed_and_used() -> Tested {
    let moto = Moto::shared()?;
    let wire = Wire::to(moto.endpoint())?;
    let arn = moto.create_key()?;
    let key = AwsKmsKey::parse(&format!("{arn}+{ROLE}"), "", "")?;
    let recipient = AwsKmsRecipient::new(key, context(moto.endpoint()))?;
    let [secret, _] = keys();
    let enc = recipient.wrap(&secret)?;
    let identity = AwsKmsIdentity::new(context(&wire.endpoint));
    for _ in 0..2 {
        assert_eq!(identity.unwrap(&entry(recipient.id(), &enc)).ok_or("not for us")??, secret);
    }
    let (sent, received) = wire.seen();
    let assumed = between(&received, "<AccessKeyId>", "<").ok_or("STS gave no key")?;
    assert_eq!(sent.matches("Action=AssumeRole&").count(), 1, "{sent}");
    assert!(sent.contains("RoleSessionName=sops%40"), "{sent}");
    assert_eq!(sent.matches("TrentService.Decrypt").count(), 2, "{sent}");
    let credentials: Vec<&str> =
        sent.split("Credential=").skip(1).filter_map(|it| it.split('/').next()).collect();
    assert_eq!(credentials, ["AKIDOFTHECALLER", assumed, assumed]);
    Ok(())
}

#[test]
fn a_role_is_ignored_where_documents_may_not_choose() -> Tested {
    let moto = Moto::shared()?;
    let wire = Wire::to(moto.endpoint())?;
    let arn = moto.create_key()?;
    let key = AwsKmsKey::parse(&format!("{arn}+{ROLE}"), "", "of-somebody")?;
    let recipient = AwsKmsRecipient::new(AwsKmsKey::parse(&arn, "", "")?, context(moto.endpoint()))?;
    let [secret, _] = keys();
    let enc = recipient.wrap(&secret)?;
    let identity =
        AwsKmsIdentity::new(AwsContext { allow_role_and_profile: false, ..context(&wire.endpoint) });
    assert_eq!(identity.unwrap(&entry(RecipientId::AwsKms(key), &enc)).ok_or("not for us")??, secret);
    let (sent, _) = wire.seen();
    assert!(!sent.contains("AssumeRole") && sent.contains("Credential=AKIDOFTHECALLER/"), "{sent}");
    Ok(())
}

fn between<'a>(text: &'a str, before: &str, after: &str) -> Option<&'a str> {
    text.split_once(before)?.1.split_once(after).map(|(found, _)| found)
}

/// Passes bytes on to the real service, and keeps them.
struct Wire {
    endpoint: String,
    sent: Arc<Mutex<Vec<u8>>>,
    received: Arc<Mutex<Vec<u8>>>,
}

impl Wire {
    fn to(endpoint: &str) -> io::Result<Self> {
        let target = endpoint.trim_start_matches("http://").to_owned();
        let listener = TcpListener::bind("127.0.0.1:0")?;
        let wire = Self {
            endpoint: format!("http://{}", listener.local_addr()?),
            sent: Arc::default(),
            received: Arc::default(),
        };
        let (sent, received) = (Arc::clone(&wire.sent), Arc::clone(&wire.received));
        thread::spawn(move || -> io::Result<()> {
            for near in listener.incoming() {
                let near = near?;
                let far = TcpStream::connect(&target)?;
                pass(near.try_clone()?, far.try_clone()?, Arc::clone(&sent));
                pass(far, near, Arc::clone(&received));
            }
            Ok(())
        });
        Ok(wire)
    }

    fn seen(&self) -> (String, String) {
        [&self.sent, &self.received]
            .map(|kept| {
                kept.lock().map(|kept| String::from_utf8_lossy(&kept).into_owned()).unwrap_or_default()
            })
            .into()
    }
}

fn pass(mut from: TcpStream, mut to: TcpStream, kept: Arc<Mutex<Vec<u8>>>) {
    thread::spawn(move || -> io::Result<()> {
        let mut buffer = [0; 4096];
        loop {
            let count = from.read(&mut buffer)?;
            if count == 0 {
                return to.shutdown(Shutdown::Write);
            }
            if let Ok(mut kept) = kept.lock() {
                kept.extend_from_slice(&buffer[..count]);
            }
            to.write_all(&buffer[..count])?;
        }
    });
}
