//! The transit engine as OpenBao serves it.

use std::time::Duration;

use lacre_crypto::recipient::vault::{Vault, VaultContext, VaultTrust};
use lacre_crypto::recipient::{Identity, Recipient, RecipientId, UnwrapError, UnwrapFailure, VaultKey};
use lacre_crypto::secret::SecretText;
use serde_json::json;
use xtask::peers::bao::Bao;

use super::{Tested, entry, keys};

fn vault(bao: &Bao, token: Option<&str>) -> Result<Vault, Box<dyn std::error::Error>> {
    Ok(Vault::new(VaultContext {
        token: token.map(SecretText::from),
        namespace: None,
        trust: VaultTrust::listed([bao.address()])?,
        authorities: None,
        danger_accept_any_certificate: false,
        deadline: Duration::from_secs(30),
    }))
}

fn failure(vault: &Vault, id: RecipientId, enc: &str) -> Result<UnwrapError, Box<dyn std::error::Error>> {
    let outcome = vault.identity().unwrap(&entry(id, enc)).ok_or("not for us")?;
    Ok(outcome.map(drop).err().ok_or("it opened")?)
}

#[test]
fn what_transit_wraps_it_unwraps_also_after_its_key_was_rotated() -> Tested {
    let bao = Bao::shared()?;
    bao.post("sys/mounts/a/b", &json!({"type": "transit"}))?;
    bao.post("a/b/keys/deep", &json!({}))?;
    let deep = format!("{}/v1/a/b/keys/deep", bao.address());
    let vault = vault(bao, Some(bao.token()))?;
    for (engine, address) in [("transit", bao.transit_key("plain")?), ("a/b", deep)] {
        let key = VaultKey::parse(&address)?;
        let recipient = vault.recipient(key.clone())?;
        for secret in keys() {
            let old = recipient.wrap(&secret)?;
            assert!(old.starts_with("vault:v"), "{old}");
            bao.post(&format!("{engine}/keys/{}/rotate", key.name), &json!({}))?;
            let new = recipient.wrap(&secret)?;
            assert_ne!(old.split(':').nth(1), new.split(':').nth(1));
            for enc in [&old, &new, &format!("{new}\n")] {
                let opened = vault.identity().unwrap(&entry(recipient.id(), enc)).ok_or("not for us")??;
                assert_eq!(opened, secret);
            }
        }
    }
    Ok(())
}

#[test]
fn refusals_and_damage_are_told_apart() -> Tested {
    let bao = Bao::shared()?;
    let key = VaultKey::parse(&bao.transit_key("refused")?)?;
    let other = VaultKey::parse(&bao.transit_key("other")?)?;
    let gone = VaultKey { name: "gone".to_owned(), ..key.clone() };
    let nowhere = VaultKey { engine_path: "nowhere".to_owned(), ..key.clone() };
    let vault = vault(bao, Some(bao.token()))?;
    let [secret, _] = keys();
    let enc = vault.recipient(key.clone())?.wrap(&secret)?;
    let damaged = enc.replace(":v1:", ":v1:AA");
    for (key, enc, kind) in [
        (key.clone(), damaged.as_str(), UnwrapFailure::Broken),
        (other, &enc, UnwrapFailure::Broken),
        (gone, &enc, UnwrapFailure::Denied),
        (nowhere, &enc, UnwrapFailure::Denied),
    ] {
        let error = failure(&vault, RecipientId::Vault(key.clone()), enc)?;
        assert_eq!(error.kind, kind, "{key}: {error}");
    }
    for (token, words) in [(Some("CANARY"), "permission denied"), (None, "no Vault token")] {
        let error = failure(&self::vault(bao, token)?, RecipientId::Vault(key.clone()), &enc)?;
        assert_eq!(error.kind, UnwrapFailure::Denied);
        assert!(error.reason.contains(words) && !error.reason.contains("CANARY"), "{error}");
    }
    Ok(())
}

#[test]
fn a_sealed_server_is_unreachable() -> Tested {
    let bao = Bao::start()?;
    let key = VaultKey::parse(&bao.transit_key("sealed")?)?;
    let vault = vault(&bao, Some(bao.token()))?;
    let [secret, _] = keys();
    let enc = vault.recipient(key.clone())?.wrap(&secret)?;
    bao.post("sys/seal", &json!({}))?;
    let error = failure(&vault, RecipientId::Vault(key), &enc)?;
    assert_eq!(error.kind, UnwrapFailure::Unreachable, "{error}");
    assert!(error.reason.contains("sealed"), "{error}");
    Ok(())
}
