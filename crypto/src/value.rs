//! Typed values and the text form of a sealed one, `ENC[AES256_GCM,data:…,iv:…,tag:…,type:…]`.
//!
//! A value is a type word and the plaintext bytes that stock sops writes for it, and nothing else: two values are
//! equal when both are. The source spelling (`0x1F`, `1.10`) is no part of it; it rides in the seal
//! ([`crate::seal`]), because a second plaintext for the same value makes other tools reuse a nonce.

use std::ops::Range;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;

use crate::secret::SecretBytes;

/// Type word of a value, stored in the clear beside its ciphertext.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum ValueType {
    /// `True` or `False`.
    Bool,
    /// Raw bytes. Read from old files only, never written.
    Bytes,
    /// A comment without its comment sign.
    Comment,
    /// A binary64 number in decimal without exponent, `+Inf`, `-Inf` or `NaN`.
    Float,
    /// A signed 64-bit integer in decimal.
    Int,
    /// Text, or bytes of a binary scalar.
    Str,
    /// RFC 3339 with as many fraction digits as needed.
    Time,
}

impl ValueType {
    /// The word on the wire.
    pub fn word(self) -> &'static str {
        match self {
            Self::Bool => "bool",
            Self::Bytes => "bytes",
            Self::Comment => "comment",
            Self::Float => "float",
            Self::Int => "int",
            Self::Str => "str",
            Self::Time => "time",
        }
    }

    fn from_word(word: &str) -> Option<Self> {
        [Self::Bool, Self::Bytes, Self::Comment, Self::Float, Self::Int, Self::Str, Self::Time]
            .into_iter()
            .find(|kind| kind.word() == word)
    }
}

/// A value with its type, or the absence of one.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Value {
    /// Null: never sealed and no part of the MAC.
    Null,
    /// Anything else, as its type and its plaintext bytes on the wire.
    Typed(ValueType, SecretBytes),
}

impl Value {
    /// A text value.
    pub fn text(text: &str) -> Self {
        Self::Typed(ValueType::Str, SecretBytes::new(text.as_bytes().to_vec()))
    }

    /// A comment, given without its sign.
    pub fn comment(text: &str) -> Self {
        Self::Typed(ValueType::Comment, SecretBytes::new(text.as_bytes().to_vec()))
    }

    /// The plaintext bytes; none for null.
    pub fn bytes(&self) -> &[u8] {
        match self {
            Self::Null => &[],
            Self::Typed(_, bytes) => bytes.expose_secret(),
        }
    }

    /// The type, unless null.
    pub fn kind(&self) -> Option<ValueType> {
        match self {
            Self::Null => None,
            Self::Typed(kind, _) => Some(*kind),
        }
    }

    /// The bytes as text, when they are text.
    pub fn as_text(&self) -> Option<&str> {
        std::str::from_utf8(self.bytes()).ok()
    }

    /// Whether there is something to seal: null and the empty text stay as they are.
    pub fn is_sealable(&self) -> bool {
        !self.bytes().is_empty()
    }

    /// Brings opened plaintext into the one form of its type, so that values from every writer compare equal.
    ///
    /// # Errors
    /// A reason without any of the value, when the bytes are not of their type.
    pub fn from_opened(kind: ValueType, bytes: SecretBytes) -> Result<Self, &'static str> {
        let canonical = match kind {
            ValueType::Str | ValueType::Comment => return Ok(Self::Typed(kind, bytes)),
            ValueType::Bytes => return Ok(Self::Typed(ValueType::Str, bytes)),
            ValueType::Bool => text_of(&bytes).and_then(canonical_bool),
            ValueType::Int => {
                text_of(&bytes).and_then(|text| text.parse::<i64>().ok()).map(|int| int.to_string())
            }
            ValueType::Float => text_of(&bytes).and_then(parse_float).map(float_text),
            ValueType::Time => text_of(&bytes).map(str::to_owned),
        };
        canonical
            .map(|text| Self::Typed(kind, SecretBytes::new(text.into_bytes())))
            .ok_or("the plaintext is not of the type it is marked with")
    }
}

fn text_of(bytes: &SecretBytes) -> Option<&str> {
    std::str::from_utf8(bytes.expose_secret()).ok()
}

fn canonical_bool(text: &str) -> Option<String> {
    match text {
        "1" | "t" | "T" | "TRUE" | "true" | "True" => Some("True".to_owned()),
        "0" | "f" | "F" | "FALSE" | "false" | "False" => Some("False".to_owned()),
        _ => None,
    }
}

fn parse_float(text: &str) -> Option<f64> {
    match text {
        "+Inf" => Some(f64::INFINITY),
        "-Inf" => Some(f64::NEG_INFINITY),
        _ => text.parse().ok(),
    }
}

/// The wire text of a binary64 number: shortest digits that read back to it, never an exponent.
pub fn float_text(float: f64) -> String {
    if float.is_infinite() {
        return if float > 0.0 { "+Inf" } else { "-Inf" }.to_owned();
    }
    float.to_string()
}

/// The nonce of a sealed value.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Nonce {
    /// 32 bytes, as everyone writes it.
    Long([u8; 32]),
    /// 12 bytes, as some have.
    Short([u8; 12]),
}

impl AsRef<[u8]> for Nonce {
    fn as_ref(&self) -> &[u8] {
        match self {
            Self::Long(bytes) => bytes,
            Self::Short(bytes) => bytes,
        }
    }
}

/// A sealed value taken apart.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Sealed {
    /// Ciphertext without its tag.
    pub data: Vec<u8>,
    /// Nonce.
    pub nonce: Nonce,
    /// Authentication tag.
    pub tag: [u8; 16],
    /// Type of the plaintext.
    pub kind: ValueType,
}

/// How exactly the text must have the written form.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Form {
    /// As other readers take it: anything may follow the last bracket, line breaks may stand in the base64.
    Lax,
    /// As every writer writes it.
    Strict,
}

/// Most bytes of a nonce or tag, and what decoding them asks for beyond.
const SHORT_BYTES_MAX: usize = 36;

const PREFIX: &str = "ENC[AES256_GCM,data:";

impl Sealed {
    /// Whether `text` claims to be a sealed value. Every text that [`Sealed::parse`] accepts does.
    pub fn looks_like(text: &str) -> bool {
        text.starts_with(PREFIX)
    }

    /// The text form.
    pub fn text(&self) -> String {
        let mut text = String::with_capacity(Self::room(self.data.len()));
        self.push_text(&mut text);
        text
    }

    /// Most bytes of the text form of so many bytes of data.
    pub(crate) fn room(data: usize) -> usize {
        // Nonce, tag, names and type are 104 bytes and the type's.
        112 + data.div_ceil(3) * 4
    }

    /// Adds the text form to `text`.
    pub(crate) fn push_text(&self, text: &mut String) {
        text.push_str(PREFIX);
        STANDARD.encode_string(&self.data, text);
        text.push_str(",iv:");
        STANDARD.encode_string(self.nonce, text);
        text.push_str(",tag:");
        STANDARD.encode_string(self.tag, text);
        text.push_str(",type:");
        text.push_str(self.kind.word());
        text.push(']');
    }

    /// Reads the text form.
    ///
    /// # Errors
    /// A reason that repeats nothing of the text.
    pub fn parse(text: &str, form: Form) -> Result<Self, &'static str> {
        let mut data = Vec::new();
        let Fields { nonce, tag, kind, .. } = Fields::parse(text, form, &mut data)?;
        Ok(Self { data, nonce, tag, kind })
    }
}

/// A sealed value taken apart, with its data in memory that it shares with others.
pub(crate) struct Fields {
    /// The ciphertext's place there.
    pub(crate) data: Range<usize>,
    pub(crate) nonce: Nonce,
    pub(crate) tag: [u8; 16],
    pub(crate) kind: ValueType,
}

impl Fields {
    /// Bytes that reading the data of `text` asks room for.
    pub(crate) fn room(text: &str) -> usize {
        let data = text.strip_prefix(PREFIX).and_then(|rest| rest.split(',').next()).unwrap_or_default();
        base64::decoded_len_estimate(data.len())
    }

    /// Reads the text form, and adds its data to `bytes`.
    ///
    /// # Errors
    /// A reason that repeats nothing of the text.
    pub(crate) fn parse(text: &str, form: Form, bytes: &mut Vec<u8>) -> Result<Self, &'static str> {
        let rest = text.strip_prefix(PREFIX).ok_or("it does not have the form of a sealed value")?;
        let end = rest.rfind(']').ok_or("the sealed value is cut short")?;
        if form == Form::Strict && end + 1 != rest.len() {
            return Err("something follows the sealed value");
        }
        let mut fields = rest[..end].split(',');
        let data = fields.next();
        let mut field = |name| fields.next().and_then(|text| text.strip_prefix(name));
        let (nonce, tag, kind) = (field("iv:"), field("tag:"), field("type:"));
        let (Some(data), Some(nonce), Some(tag), Some(kind), None) = (data, nonce, tag, kind, fields.next())
        else {
            return Err("the sealed value does not have its four fields");
        };
        let data = decode_onto(bytes, data, form)?;
        let nonce = parse_nonce(nonce, form)?;
        let tag =
            decode_short(tag, form, |tag| tag.try_into().ok())?.ok_or("the tag is not 16 bytes long")?;
        let kind = ValueType::from_word(kind).ok_or("the sealed value has an unknown type")?;
        if data.is_empty() {
            return Err("the sealed value has no data");
        }
        Ok(Self { data, nonce, tag, kind })
    }
}

impl std::fmt::Display for Sealed {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.write_str(&self.text())
    }
}

fn parse_nonce(text: &str, form: Form) -> Result<Nonce, &'static str> {
    let nonce = decode_short(text, form, |nonce| match nonce.len() {
        12 => nonce.try_into().ok().map(Nonce::Short),
        _ => nonce.try_into().ok().map(Nonce::Long),
    })?;
    nonce.ok_or("the nonce is neither 12 nor 32 bytes long")
}

/// What `take` makes of a field of at most 32 bytes; it is given more when there is more.
fn decode_short<T>(
    text: &str,
    form: Form,
    take: impl Fn(&[u8]) -> Option<T>,
) -> Result<Option<T>, &'static str> {
    let mut bytes = [0; SHORT_BYTES_MAX];
    match STANDARD.decode_slice(text, &mut bytes) {
        Ok(length) => Ok(take(&bytes[..length])),
        // Too long, in a loose form, or no base64 at all.
        Err(_) => decode(text, form).map(|bytes| take(&bytes)),
    }
}

/// Adds what `text` stands for to `bytes`, and says where it is.
fn decode_onto(bytes: &mut Vec<u8>, text: &str, form: Form) -> Result<Range<usize>, &'static str> {
    let start = bytes.len();
    bytes.resize(start + base64::decoded_len_estimate(text.len()), 0);
    let decoded = STANDARD.decode_slice(text, &mut bytes[start..]);
    bytes.truncate(start + decoded.as_ref().map_or(0, |length| *length));
    if decoded.is_err() {
        bytes.extend(decode(text, form)?);
    }
    Ok(start..bytes.len())
}

fn decode(text: &str, form: Form) -> Result<Vec<u8>, &'static str> {
    let decoded = if form == Form::Lax && text.contains(['\r', '\n']) {
        STANDARD.decode(text.replace(['\r', '\n'], ""))
    } else {
        STANDARD.decode(text)
    };
    decoded.map_err(|_| "the sealed value is not valid base64")
}

#[cfg(test)]
mod tests {
    use super::*;

    const GOOD: &str = "ENC[AES256_GCM,data:YQ==,iv:AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA=,tag:AAAAAAAAAAAAAAAAAAAAAA==,type:str]";

    #[test]
    fn the_written_form_reads_back() {
        let sealed = Sealed::parse(GOOD, Form::Strict).unwrap();
        assert_eq!(sealed.to_string(), GOOD);
        assert_eq!(
            (sealed.data.as_slice(), sealed.nonce.as_ref().len(), sealed.kind),
            (&b"a"[..], 32, ValueType::Str)
        );
    }

    #[test]
    fn other_forms_are_refused() {
        let cases = [
            ("", "form"),
            ("ENC[AES256_GCM,data:YQ==", "cut short"),
            (&GOOD.replace("type:str", "type:wat"), "unknown type"),
            (&GOOD.replace("data:YQ==", "data:"), "no data"),
            (&GOOD.replace("data:YQ==", "data:Y!=="), "base64"),
            (&GOOD.replace("AAA==,type", "==,type"), "base64"),
            (&GOOD.replace("tag:AAAAAAAA", "tag:AAAA"), "16 bytes"),
            (&GOOD.replace("iv:AAAA", "iv:"), "12 nor 32"),
            (&GOOD.replace(",tag", ",x:1,tag"), "four fields"),
            (&format!("{GOOD}junk"), "follows"),
            (&format!("{GOOD}\n"), "follows"),
        ];
        for (text, reason) in cases {
            let error = Sealed::parse(text, Form::Strict).unwrap_err();
            assert!(error.contains(reason), "{text}: {error}");
        }
    }

    #[test]
    fn the_lax_form_takes_what_other_readers_take() {
        assert!(Sealed::parse(&format!("{GOOD}junk"), Form::Lax).is_ok());
        assert!(Sealed::parse(&GOOD.replace("YQ==", "YQ\n=="), Form::Lax).is_ok());
        assert!(Sealed::parse(&GOOD.replace("YQ==", "YQ\n=="), Form::Strict).is_err());
    }

    #[test]
    fn floats_are_written_without_exponent() {
        let cases = [
            (1.0, "1"),
            (1e30, "1000000000000000000000000000000"),
            (1e-9, "0.000000001"),
            (-0.0, "-0"),
            (f64::INFINITY, "+Inf"),
            (f64::NEG_INFINITY, "-Inf"),
            (f64::NAN, "NaN"),
            (18446744073709551615.0, "18446744073709552000"),
        ];
        for (float, text) in cases {
            assert_eq!(float_text(float), text);
        }
    }

    #[test]
    fn opened_bytes_come_into_one_form() {
        let open = |kind, text: &str| Value::from_opened(kind, SecretBytes::new(text.as_bytes().to_vec()));
        assert_eq!(open(ValueType::Bool, "true").unwrap().bytes(), b"True");
        assert_eq!(open(ValueType::Float, "1.50").unwrap().bytes(), b"1.5");
        assert!(open(ValueType::Bool, "yes").is_err());
        assert!(open(ValueType::Int, "1.5").is_err());
        assert!(open(ValueType::Int, "9223372036854775808").is_err());
        assert!(open(ValueType::Float, "one").is_err());
    }
}
