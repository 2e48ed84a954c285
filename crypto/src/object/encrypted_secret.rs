//! An EncryptedSecret: its content, and how a controller opens it.

use std::collections::BTreeMap;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use jiff::{Span, Timestamp};
use serde_json::{Map, Value as Plain};

use crate::aead::ValueCipher;
use crate::data_key;
use crate::error::NoKeyError;
use crate::mac::{self, MacHasher};
use crate::metadata::Metadata;
use crate::object::{self, API_VERSION, KIND, ObjectError};
use crate::recipient::Identity;
use crate::seal::digest::{self, Items};
use crate::seal::{Bind, Claims, ObjectBind, Profile, Scope};
use crate::secret::{DataKey, SecretBytes};
use crate::value::{Form, Sealed, ValueType};

/// Most bytes of all values of a Secret together.
pub const SECRET_BYTES_MAX: usize = 1024 * 1024;
/// How far ahead of the reader's clock a document's time may be, in minutes.
pub const CLOCK_SKEW_MINUTES: i64 = 5;
/// Type of a Secret that does not name one.
pub const DEFAULT_TYPE: &str = "Opaque";

const FINGERPRINT_INFO: &[u8] = b"lacre.dev/fp/1";
const TREE_PURPOSE: &str = "lacre.dev/tree/object/1";

/// The typed content of `spec`, with defaults resolved.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Content {
    /// Type of the Secret.
    pub secret_type: String,
    /// Whether the Secret can never be changed.
    pub immutable: bool,
    /// Labels for the Secret.
    pub labels: BTreeMap<String, String>,
    /// Annotations for the Secret.
    pub annotations: BTreeMap<String, String>,
    /// Sealed base64 text by key.
    pub data: BTreeMap<String, String>,
    /// Sealed text by key.
    pub string_data: BTreeMap<String, String>,
    /// Names of the Secrets that hold the identities to open it with. Not authenticated.
    pub keys_from: Vec<String>,
    /// Whether to leave the Secret alone. Not authenticated, so that an incident can set it.
    pub suspend: bool,
}

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

/// Why an object is not opened: one variant per cause.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum OpenError {
    /// Its time lies ahead.
    #[error(
        "it says it was sealed at {0}, more than {CLOCK_SKEW_MINUTES} minutes from now: check the clock of whoever sealed it"
    )]
    FutureLastModified(String),
    /// A value of `data` is not base64.
    #[error("data.{0} does not open to base64 text: use stringData, or encode it before sealing")]
    InvalidBase64(String),
    /// Values that were valid once, or another order of them, stand in place of the sealed ones.
    #[error("the MAC does not match the values: an older or foreign value was put in place of a sealed one")]
    MacMismatch,
    /// No seal was ever there.
    #[error("it has no seal: seal it with `lacre kube seal`")]
    NeverSealed,
    /// A value is in the clear.
    #[error("{0} is not sealed")]
    PlaintextValue(String),
    /// The `sops` block was changed.
    #[error("the sops block was changed after sealing: a recipient, the selector, the MAC or the time")]
    RecipientsMismatch,
    /// It stands where it was not sealed for.
    #[error("it was sealed for {sealed_for}, and this is {found}")]
    ScopeMismatch {
        /// What it was sealed for.
        sealed_for: String,
        /// Where it stands.
        found: String,
    },
    /// The seal does not open.
    #[error("the seal does not open: {0}")]
    SealBroken(String),
    /// The seal is gone.
    #[error(
        "the seal was removed: another tool rewrote the sops block, or someone stripped it; `lacre reseal` after a look at the change"
    )]
    SealRemoved,
    /// A clear part of the content was changed.
    #[error(
        "a clear part of the content was changed after sealing: type, immutable, or the template's labels or annotations"
    )]
    TemplateMismatch,
    /// All values together are too large.
    #[error("the values take {0} bytes, more than the {SECRET_BYTES_MAX} of a Secret")]
    TooLarge(usize),
    /// The block says something that objects cannot have.
    #[error("{0}")]
    UnsupportedMetadata(String),
    /// A value does not open in its place.
    #[error("{0} does not open here: it was moved, exchanged or damaged")]
    ValueMismatch(String),
}

impl OpenError {
    /// The condition reason that stands for the cause.
    pub fn reason(&self) -> &'static str {
        match self {
            Self::FutureLastModified(_) => "FutureLastModified",
            Self::InvalidBase64(_) => "InvalidBase64",
            Self::MacMismatch => "MacMismatch",
            Self::NeverSealed => "NeverSealed",
            Self::PlaintextValue(_) => "PlaintextValue",
            Self::RecipientsMismatch => "RecipientsMismatch",
            Self::ScopeMismatch { .. } => "ScopeMismatch",
            Self::SealBroken(_) => "SealBroken",
            Self::SealRemoved => "SealRemoved",
            Self::TemplateMismatch => "TemplateMismatch",
            Self::TooLarge(_) => "TooLarge",
            Self::UnsupportedMetadata(_) => "UnsupportedMetadata",
            Self::ValueMismatch(_) => "ValueMismatch",
        }
    }
}

impl Content {
    /// Reads `spec`.
    ///
    /// # Errors
    /// [`ObjectError`] for a field this version does not know, which the seal would otherwise not cover, or one of
    /// the wrong type.
    pub fn read(spec: &Plain) -> Result<Self, ObjectError> {
        let fields = ["type", "immutable", "data", "stringData", "template", "keysFrom", "suspend"];
        let spec = known(spec, "spec", &fields)?;
        let none = Plain::Null;
        let template = known(spec.get("template").unwrap_or(&none), "spec.template", &["metadata"])?;
        let metadata = template.get("metadata").unwrap_or(&none);
        let metadata = known(metadata, "spec.template.metadata", &["labels", "annotations"])?;
        let content = Self {
            secret_type: text(&spec, "type")?.unwrap_or_else(|| DEFAULT_TYPE.to_owned()),
            immutable: boolean(&spec, "immutable")?,
            labels: texts(&metadata, "labels")?,
            annotations: texts(&metadata, "annotations")?,
            data: texts(&spec, "data")?,
            string_data: texts(&spec, "stringData")?,
            keys_from: keys_from(spec.get("keysFrom"))?,
            suspend: boolean(&spec, "suspend")?,
        };
        match content.data.keys().find(|key| content.string_data.contains_key(*key)) {
            Some(key) => {
                Err(ObjectError::new(format!("`{key}` stands in data and in stringData: remove one")))
            }
            None => Ok(content),
        }
    }

    /// The digest that the seal holds of it. `keysFrom` and `suspend` are no part of it.
    pub(crate) fn digest(&self) -> String {
        let mut items = Items::new(TREE_PURPOSE);
        items.add(b'T', &[self.secret_type.as_bytes()]);
        items.add(b'I', &[&[u8::from(self.immutable)]]);
        let maps =
            [(b'l', &self.labels), (b'a', &self.annotations), (b'd', &self.data), (b's', &self.string_data)];
        for (letter, map) in maps {
            items.add(b'M', &[]);
            map.iter().for_each(|(key, value)| items.add(letter, &[key.as_bytes(), value.as_bytes()]));
            items.add(b'E', &[]);
        }
        items.finish()
    }

    /// Each sealed text with its address, `data` before `stringData`, in the order of the keys.
    fn values(&self) -> impl Iterator<Item = (&'static str, &String, &String)> {
        let data = self.data.iter().map(|(key, text)| ("data", key, text));
        data.chain(self.string_data.iter().map(|(key, text)| ("stringData", key, text)))
    }
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
        data_key::recover(&self.metadata.groups, self.metadata.shamir_threshold, identities)
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

/// A mapping with no other fields than `fields`; null is an empty one.
fn known(value: &Plain, name: &str, fields: &[&str]) -> Result<Map<String, Plain>, ObjectError> {
    let map = match value {
        Plain::Null => Map::new(),
        Plain::Object(map) => map.clone(),
        _ => return Err(ObjectError::new(format!("`{name}` is not a mapping"))),
    };
    match map.keys().find(|key| !fields.contains(&key.as_str())) {
        Some(key) => Err(ObjectError::new(format!(
            "`{name}.{key}` is not known to this version, so no seal would cover it"
        ))),
        None => Ok(map),
    }
}

fn text(map: &Map<String, Plain>, name: &str) -> Result<Option<String>, ObjectError> {
    match map.get(name) {
        None | Some(Plain::Null) => Ok(None),
        Some(Plain::String(text)) => Ok(Some(text.clone()).filter(|text| !text.is_empty())),
        Some(_) => Err(ObjectError::new(format!("`{name}` is not text"))),
    }
}

fn boolean(map: &Map<String, Plain>, name: &str) -> Result<bool, ObjectError> {
    match map.get(name) {
        None | Some(Plain::Null) => Ok(false),
        Some(Plain::Bool(value)) => Ok(*value),
        Some(_) => Err(ObjectError::new(format!("`{name}` is neither true nor false"))),
    }
}

fn texts(map: &Map<String, Plain>, name: &str) -> Result<BTreeMap<String, String>, ObjectError> {
    let entries = match map.get(name) {
        None | Some(Plain::Null) => return Ok(BTreeMap::new()),
        Some(Plain::Object(entries)) => entries,
        Some(_) => return Err(ObjectError::new(format!("`{name}` is not a mapping"))),
    };
    let entry = |(key, value): (&String, &Plain)| match value {
        Plain::String(text) => Ok((key.clone(), text.clone())),
        Plain::Null => Ok((key.clone(), String::new())),
        _ => Err(ObjectError::new(format!("`{name}.{key}` is not text: put it in quotes"))),
    };
    entries.iter().map(entry).collect()
}

fn keys_from(value: Option<&Plain>) -> Result<Vec<String>, ObjectError> {
    let sources = match value {
        None | Some(Plain::Null) => return Ok(Vec::new()),
        Some(Plain::Array(sources)) => sources,
        Some(_) => return Err(ObjectError::new("`keysFrom` is not a list")),
    };
    let name = |source: &Plain| source.pointer("/secretRef/name").and_then(Plain::as_str).map(str::to_owned);
    let names = sources
        .iter()
        .map(|source| name(source).ok_or_else(|| ObjectError::new("`keysFrom` needs secretRef.name")));
    names.collect()
}
