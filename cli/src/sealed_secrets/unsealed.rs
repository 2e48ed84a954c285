//! An opened SealedSecret as the Secret that its controller would make of it.

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use lacre_crypto::object::SealedSecret;
use lacre_crypto::object::sealed_secret::{
    API_VERSION, KIND, MissingKey, PlainSecret, UnsealError, UnsealOptions, is_nothing,
};
use lacre_crypto::sealing_key::SealingKey;
use serde_json::{Map, Value, json};

use super::manifest::Manifest;
use crate::error::{CommandError, Kind};

/// The annotation of a template by which its Secret does without an owner.
const WITHOUT_OWNER: &str = "sealedsecrets.bitnami.com/skip-set-owner-references";

/// Most items of an object that it is told of why they do not open.
const CAUSES_MAX: usize = 5;

/// The SealedSecret in `manifest`.
pub(crate) fn read(manifest: &Manifest) -> Result<SealedSecret, CommandError> {
    if manifest.kind().is_none() {
        return Err(manifest
            .refuse("it has no kind, and a SealedSecret is wanted")
            .hint("give a manifest with `kind: SealedSecret`"));
    }
    SealedSecret::from_json(&manifest.object)
        .map_err(|error| manifest.refuse(error).hint("give a manifest with `kind: SealedSecret`"))
}

/// The Secret in `manifest`, opened with `keys` and rendered, as data that is printed because somebody asked for it.
pub(crate) fn open(
    manifest: &Manifest,
    keys: &[SealingKey],
    missing_key: MissingKey,
) -> Result<Value, CommandError> {
    let sealed = read(manifest)?;
    let keys: Vec<&SealingKey> = keys.iter().collect();
    let options = UnsealOptions { accept_v1: true, missing_key, render: true, deadline: None };
    let opened = sealed.open(&keys, &options).map_err(|error| not_opened(&sealed, &error, &keys))?;
    Ok(as_object(&sealed, opened))
}

/// Why nothing was opened: in the words that scripts know, then what could be found out about each item.
fn not_opened(sealed: &SealedSecret, error: &UnsealError, keys: &[&SealingKey]) -> CommandError {
    let told = CommandError::new(Kind::NoKey, error.to_string());
    if keys.is_empty() {
        return told.hint("name the keys with `--recovery-private-key`");
    }
    match error {
        UnsealError::Items(_) | UnsealError::Legacy(_) => {
            let causes = sealed.diagnose(error, keys, &[]);
            let first = causes.iter().take(CAUSES_MAX);
            first.fold(told, |told, cause| told.hint(cause.to_string()))
        }
        UnsealError::Templates(_) => told.hint("correct the template, or take it out: the items do open"),
        _ => told.hint("seal the Secret again"),
    }
}

fn as_object(sealed: &SealedSecret, opened: PlainSecret) -> Value {
    let mut metadata = opened.metadata;
    let is_off = |value: &str| value == "true";
    if !sealed.template.annotation(WITHOUT_OWNER).is_some_and(is_off) {
        let owner = json!({
            "apiVersion": API_VERSION,
            "kind": KIND,
            "name": sealed.name,
            "uid": sealed.uid,
            "controller": true,
        });
        metadata.insert("ownerReferences".to_owned(), json!([owner]));
    }
    metadata.retain(|_, value| !is_nothing(value));
    let data: Map<String, Value> = opened
        .data
        .iter()
        .map(|(key, value)| (key.clone(), STANDARD.encode(value.expose_secret()).into()))
        .collect();
    let mut object = Map::new();
    object.insert("kind".to_owned(), "Secret".into());
    object.insert("apiVersion".to_owned(), "v1".into());
    object.insert("metadata".to_owned(), metadata.into());
    if let Some(immutable) = opened.immutable {
        object.insert("immutable".to_owned(), immutable.into());
    }
    if !data.is_empty() {
        object.insert("data".to_owned(), data.into());
    }
    if !opened.type_.is_empty() {
        object.insert("type".to_owned(), opened.type_.into());
    }
    object.into()
}
