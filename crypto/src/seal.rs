//! The seal: the field `sops.lacre`, which authenticates the whole document and carries what the format cannot.
//!
//! `seal = AES-256-GCM(HKDF(K, "lacre.dev/seal/1"), fresh nonce, "lacre/1", claims)` with the claims of this module as
//! JSON. Its key is never the data key itself: stock tools can be made to reuse a nonce under that one, and whoever
//! has seen that forges tags. It proves that a holder of the data key wrote the document, not which one.

use serde::{Deserialize, Serialize};

use crate::aead::ValueCipher;
use crate::format::Edit;
use crate::mac;
use crate::secret::{DataKey, SecretBytes};
use crate::value::{Form, Sealed, Value, ValueType};

pub mod digest;

const KEY_INFO: &[u8] = b"lacre.dev/seal/1";
const ASSOCIATED_DATA: &[u8] = b"lacre/1";
const VERSION: u32 = 1;

/// What a file's seal says about it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// No seal was ever there: the MAC alone speaks for the file.
    NeverSealed,
    /// There was a seal and it is gone.
    Removed,
    /// It is there and everything agrees with it.
    Valid,
}

/// The two ways of looking at a document's content.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Profile {
    /// The text's events, in their order.
    File,
    /// A cluster object's typed content, which survives what an API server does to it.
    Object,
}

/// Where a sealed object may be opened.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Scope {
    /// Under any name in any namespace.
    Cluster,
    /// Under any name in its namespace.
    Namespace,
    /// Under its name in its namespace.
    Strict,
}

impl Scope {
    /// The scope of that name.
    pub fn from_word(word: &str) -> Option<Self> {
        [Self::Cluster, Self::Namespace, Self::Strict].into_iter().find(|scope| scope.word() == word)
    }

    /// Its name.
    pub fn word(self) -> &'static str {
        match self {
            Self::Cluster => "cluster",
            Self::Namespace => "namespace",
            Self::Strict => "strict",
        }
    }
}

/// What a document is bound to.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, untagged)]
pub enum Bind {
    /// A cluster object, always in full.
    Object(ObjectBind),
    /// A file, by its path.
    Path(PathBind),
}

/// The object that a seal was made for.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ObjectBind {
    /// API group.
    pub group: String,
    /// Kind.
    pub kind: String,
    /// How much of the rest counts.
    pub scope: Scope,
    /// Namespace it was sealed for.
    pub namespace: String,
    /// Name it was sealed for.
    pub name: String,
    /// Names of the clusters that may open it; all when absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub clusters: Option<Vec<String>>,
}

/// The file that a seal was made for.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct PathBind {
    /// Path below the repository's root, with `/` between folders.
    pub path: String,
}

/// The plaintext of a seal.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Claims {
    v: u32,
    pub(crate) profile: Profile,
    pub(crate) docs: usize,
    /// SHA-256 of the content as stored, in hexadecimal digits.
    pub(crate) tree: String,
    /// SHA-256 of the `sops` block, likewise.
    pub(crate) meta: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) bind: Option<Bind>,
    #[serde(default, skip_serializing_if = "Source::is_empty")]
    pub(crate) source: Source,
}

/// What rides nowhere else: how the author spelled things.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub(crate) struct Source {
    /// By leaf, the edits to its default spelling.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub(crate) leaves: Vec<(usize, Vec<Edit>)>,
    /// By event, the alias that stood where its content was written out.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub(crate) aliases: Vec<(usize, String)>,
    /// Whether the last line had no line break.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub(crate) eof: bool,
}

impl Source {
    fn is_empty(&self) -> bool {
        *self == Self::default()
    }
}

impl Claims {
    pub(crate) fn new(profile: Profile, docs: usize, tree: String, meta: String) -> Self {
        Self { v: VERSION, profile, docs, tree, meta, bind: None, source: Source::default() }
    }

    /// The text of the field.
    pub(crate) fn seal(&self, key: &DataKey) -> String {
        let json = serde_json::to_vec(self).expect("the claims are plain data");
        let value = Value::Typed(ValueType::Str, SecretBytes::new(json));
        ValueCipher::new(&mac::derive(key, KEY_INFO)).seal(&value, ASSOCIATED_DATA).to_string()
    }

    /// The claims in the field's text.
    ///
    /// # Errors
    /// Why there are none to be believed.
    pub(crate) fn open(key: &DataKey, text: &str) -> Result<Self, String> {
        let sealed = Sealed::parse(text, Form::Strict).map_err(str::to_owned)?;
        let cipher = ValueCipher::new(&mac::derive(key, KEY_INFO));
        let json =
            cipher.open(&sealed, ASSOCIATED_DATA).ok_or("it was not written with this file's data key")?;
        let claims: Self = serde_json::from_slice(json.expose_secret())
            .map_err(|_| "its content is not what this version knows".to_owned())?;
        if claims.v != VERSION {
            return Err(format!("it is of version {}, and this version knows {VERSION}", claims.v));
        }
        Ok(claims)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn claims_are_strict() {
        let key = DataKey::generate();
        let cipher = ValueCipher::new(&mac::derive(&key, KEY_INFO));
        let open =
            |json: &str| Claims::open(&key, &cipher.seal(&Value::text(json), ASSOCIATED_DATA).to_string());
        let good = r#"{"v":1,"profile":"file","docs":1,"tree":"","meta":""}"#;
        assert!(open(good).is_ok());
        let bad = [
            good.replace("\"v\":1", "\"v\":2"),
            good.replace("\"docs\":1", "\"docs\":1,\"docs\":1"),
            good.replace("\"docs\":1", "\"docs\":1,\"more\":1"),
            good.replace("file", "other"),
            good.replace("\"meta\":\"\"", "\"meta\":\"\",\"bind\":{\"path\":\"a\",\"x\":1}"),
            good.replace("\"meta\":\"\"", "\"meta\":\"\",\"bind\":{}"),
            good.replace(",\"meta\":\"\"", ""),
        ];
        for json in bad {
            assert!(open(&json).is_err(), "{json}");
        }
        assert!(
            Claims::open(
                &DataKey::generate(),
                &Claims::new(Profile::File, 1, String::new(), String::new()).seal(&key)
            )
            .is_err()
        );
    }
}
