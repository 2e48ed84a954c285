//! An EncryptedSecret, and how a controller opens it.

use std::collections::BTreeMap;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use jiff::{Span, Timestamp};
use serde_json::Value as Plain;

use crate::aead::ValueCipher;
use crate::data_key::{self, DecryptionOrder};
use crate::error::NoKeyError;
use crate::mac::{self, MacHasher};
use crate::metadata::Metadata;
use crate::object::content::Content;
use crate::object::open_error::{CLOCK_SKEW_MINUTES, OpenError, SECRET_BYTES_MAX};
use crate::object::{self, API_VERSION, KIND, ObjectError};
use crate::recipient::Identity;
use crate::seal::digest;
use crate::seal::{Bind, Claims, ObjectBind, Profile, Scope};
use crate::secret::{DataKey, SecretBytes};
use crate::value::{Form, Sealed, ValueType};

const FINGERPRINT_INFO: &[u8] = b"lacre.dev/fp/1";

/// An EncryptedSecret as an API server gives it.
#[derive(Clone, Debug)]
pub struct EncryptedSecret {
    /// Its namespace.
    pub namespace: String,
    /// Its name, which is the Secret's too.
    pub name: String,
    /// Its content.
    pub content: Content,
    metadata: Metadata,
}

/// Where and when an object is opened.
#[derive(Clone, Copy, Debug)]
pub struct ObjectContext<'a> {
    /// Name of this cluster, for seals that name clusters.
    pub cluster_name: Option<&'a str>,
    /// The time now.
    pub now: Timestamp,
}

/// What a verified object holds.
#[derive(Debug)]
pub struct OpenSecret {
    /// Decoded values by key, from `data` and `stringData` alike.
    pub data: BTreeMap<String, SecretBytes>,
    /// When it was sealed.
    pub last_modified: Timestamp,
    /// What it was sealed for.
    pub bind: ObjectBind,
    key: DataKey,
}

impl EncryptedSecret {
    /// Reads an object as an API server gives it, or a manifest as JSON.
    ///
    /// # Errors
    /// [`ObjectError`] when it is of another kind, has no `sops` block, or a field that the seal would not cover.
    pub fn from_json(object: &Plain) -> Result<Self, ObjectError> {
        let field =
            |pointer: &str| object.pointer(pointer).and_then(Plain::as_str).unwrap_or_default().to_owned();
        if field("/apiVersion") != API_VERSION || field("/kind") != KIND {
            return Err(ObjectError::new(format!("it is not a {KIND} of {API_VERSION}")));
        }
        let block = object.get("sops").ok_or_else(|| ObjectError::new("it has no sops block: seal it"))?;
        Ok(Self {
            namespace: field("/metadata/namespace"),
            name: field("/metadata/name"),
            content: Content::read(object.get("spec").unwrap_or(&Plain::Null))?,
            metadata: Metadata::read(block)
                .map_err(|reason| ObjectError::new(format!("the sops block: {reason}")))?,
        })
    }

    /// Its `sops` block.
    pub fn metadata(&self) -> &Metadata {
        &self.metadata
    }

    /// Recovers the data key.
    ///
    /// # Errors
    /// [`NoKeyError`] when none of the identities can.
    pub fn unwrap_key(&self, identities: &[&dyn Identity]) -> Result<DataKey, NoKeyError> {
        let order = DecryptionOrder::default();
        data_key::recover(&self.metadata.groups, self.metadata.shamir_threshold, identities, &order)
    }

    /// Verifies everything, then opens the values.
    ///
    /// # Errors
    /// [`OpenError`] with the one cause; no value leaves this call then.
    pub fn open(&self, key: DataKey, context: &ObjectContext<'_>) -> Result<OpenSecret, OpenError> {
        let last_modified = self.check_metadata(context)?;
        let claims = self.claims(&key)?;
        let bind = self.check_bind(&claims, context)?;
        if claims.meta != digest::meta(&self.metadata.stock_block()) {
            return Err(OpenError::RecipientsMismatch);
        }
        let cipher = ValueCipher::new(key.expose_secret());
        let values = self.values(&cipher)?;
        if claims.tree != self.content.digest() {
            let changed = if self.mac_matches(&cipher, &values) {
                OpenError::TemplateMismatch
            } else {
                OpenError::MacMismatch
            };
            return Err(changed);
        }
        Ok(OpenSecret { data: decoded(values)?, last_modified, bind, key })
    }

    fn check_metadata(&self, context: &ObjectContext<'_>) -> Result<Timestamp, OpenError> {
        let unsupported = |reason: &str| OpenError::UnsupportedMetadata(reason.to_owned());
        if self.metadata.selector.to_string() != object::selector().to_string()
            || !self.metadata.mac_only_encrypted
        {
            return Err(unsupported(
                "an EncryptedSecret must be sealed by encrypted_regex ^(data|stringData)$ with mac_only_encrypted",
            ));
        }
        let last_modified: Timestamp =
            self.metadata.last_modified.parse().map_err(|_| unsupported("lastmodified is not RFC 3339"))?;
        let latest =
            context.now.saturating_add(Span::new().minutes(CLOCK_SKEW_MINUTES)).unwrap_or(context.now);
        match last_modified > latest {
            true => Err(OpenError::FutureLastModified(self.metadata.last_modified.clone())),
            false => Ok(last_modified),
        }
    }

    fn claims(&self, key: &DataKey) -> Result<Claims, OpenError> {
        let Some(seal) = &self.metadata.seal else {
            let mac = self.metadata.mac.as_deref().unwrap_or_default();
            return Err(match mac::is_marked(key, mac, &self.metadata.last_modified) {
                true => OpenError::SealRemoved,
                false => OpenError::NeverSealed,
            });
        };
        let claims = Claims::open(key, seal).map_err(OpenError::SealBroken)?;
        match (claims.profile, claims.docs) {
            (Profile::Object, 1) => Ok(claims),
            _ => Err(OpenError::SealBroken("it was made for a file, not for an object".to_owned())),
        }
    }

    fn check_bind(&self, claims: &Claims, context: &ObjectContext<'_>) -> Result<ObjectBind, OpenError> {
        let Some(Bind::Object(bind)) = &claims.bind else {
            return Err(OpenError::SealBroken("it does not say which object it was made for".to_owned()));
        };
        let in_cluster = bind.clusters.as_ref().is_none_or(|clusters| {
            context.cluster_name.is_some_and(|name| clusters.iter().any(|cluster| cluster == name))
        });
        if in_cluster && object::bind_allows(bind, &self.namespace, &self.name) {
            return Ok(bind.clone());
        }
        let cluster = context.cluster_name.filter(|_| !in_cluster).map(|name| format!(" in {name}"));
        Err(OpenError::ScopeMismatch {
            sealed_for: object::shown(bind),
            found: format!("{}/{}{}", self.namespace, self.name, cluster.unwrap_or_default()),
        })
    }

    fn values(&self, cipher: &ValueCipher) -> Result<Vec<(&'static str, String, SecretBytes)>, OpenError> {
        let open = |(field, key, text): (&'static str, &String, &String)| {
            let path = format!("{field}.{key}");
            if text.is_empty() {
                return Ok((field, key.clone(), SecretBytes::default()));
            }
            if !Sealed::looks_like(text) {
                return Err(OpenError::PlaintextValue(path));
            }
            let sealed =
                Sealed::parse(text, Form::Strict).ok().filter(|sealed| sealed.kind == ValueType::Str);
            let sealed = sealed.ok_or_else(|| OpenError::ValueMismatch(path.clone()))?;
            let additional_data = format!("spec:{field}:{key}:");
            let bytes = cipher.open(&sealed, additional_data.as_bytes());
            Ok((field, key.clone(), bytes.ok_or(OpenError::ValueMismatch(path))?))
        };
        self.content.values().map(open).collect()
    }

    /// Whether the MAC speaks for the values, which tells a changed value from a changed template.
    fn mac_matches(&self, cipher: &ValueCipher, values: &[(&'static str, String, SecretBytes)]) -> bool {
        let mac = self.metadata.mac.as_deref().unwrap_or_default();
        let mut hasher = MacHasher::new(true);
        values.iter().for_each(|(_, _, bytes)| hasher.add(bytes.expose_secret()));
        mac::open(cipher, mac, &self.metadata.last_modified) == Some(hasher.finish())
    }
}

fn decoded(
    values: Vec<(&'static str, String, SecretBytes)>,
) -> Result<BTreeMap<String, SecretBytes>, OpenError> {
    let decode = |(field, key, bytes): (&'static str, String, SecretBytes)| {
        if field == "stringData" {
            return Ok((key, bytes));
        }
        match STANDARD.decode(bytes.expose_secret()) {
            Ok(decoded) => Ok((key, SecretBytes::new(decoded))),
            Err(_) => Err(OpenError::InvalidBase64(key)),
        }
    };
    let data: BTreeMap<_, _> = values.into_iter().map(decode).collect::<Result<_, _>>()?;
    let size = data.values().map(SecretBytes::len).sum();
    if size > SECRET_BYTES_MAX { Err(OpenError::TooLarge(size)) } else { Ok(data) }
}

impl OpenSecret {
    /// A fingerprint of one value: 64 hexadecimal digits that only holders of this document's data key can compute,
    /// so that a guess cannot be tested against it. Different for each object by its `uid`.
    pub fn fingerprint(&self, uid: &str, key: &str) -> Option<String> {
        let value = self.data.get(key)?;
        Some(mac::fingerprint(
            &self.key,
            FINGERPRINT_INFO,
            &[uid.as_bytes(), key.as_bytes(), value.expose_secret()],
        ))
    }

    /// The scope it was sealed for.
    pub fn scope(&self) -> Scope {
        self.bind.scope
    }
}
