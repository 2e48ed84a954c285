//! Certificates that publish a sealing key.
//!
//! A certificate is only the container in which the key travels: nobody checks its signature, and its times say how
//! long clients should seal to it, never how long the key opens. It is written as Sealed Secrets writes it, because
//! other clients read it.

use std::time::Duration;

use aws_lc_rs::rand::SystemRandom;
use aws_lc_rs::signature::RSA_PKCS1_SHA256;
use jiff::Timestamp;
use pkcs8::ObjectIdentifier;
use pkcs8::SubjectPublicKeyInfoRef;
use pkcs8::der::asn1::{
    Any, BitString, BitStringRef, GeneralizedTime, Null, OctetString, PrintableStringRef, SetOfVec, UtcTime,
    Utf8StringRef,
};
use pkcs8::der::oid::AssociatedOid;
use pkcs8::der::{DateTime, Decode, Encode};
use sha2::{Digest, Sha256};
use x509_cert::attr::AttributeTypeAndValue;
use x509_cert::certificate::{CertificateInner, Raw, TbsCertificateInner};
use x509_cert::ext::Extension;
use x509_cert::ext::pkix::{BasicConstraints, KeyUsage, KeyUsages, SubjectKeyIdentifier};
use x509_cert::name::{Name, RdnSequence, RelativeDistinguishedName};
use x509_cert::serial_number::SerialNumber;
use x509_cert::spki::{AlgorithmIdentifierOwned, SubjectPublicKeyInfoOwned};
use x509_cert::time::{Time, Validity};

use super::{PublicSealingKey, SealingKey, SealingKeyError, malformed, pem};

const LABEL: &str = "CERTIFICATE";
const COMMON_NAME: ObjectIdentifier = ObjectIdentifier::new_unwrap("2.5.4.3");
const SHA256_WITH_RSA: ObjectIdentifier = ObjectIdentifier::new_unwrap("1.2.840.113549.1.1.11");
/// Length of a serial number in bytes: 128 random bits.
const SERIAL_BYTES: usize = 16;
/// How much of the digest of a key names it, as RFC 7093 section 2 says.
const KEY_IDENTIFIER_BYTES: usize = 20;
/// The first year that a certificate writes in four digits.
const FOUR_DIGITS_FROM: u16 = 2050;

/// A certificate with an RSA key in it.
#[derive(Clone, Debug)]
pub struct Certificate {
    public: PublicSealingKey,
    pem: String,
    not_before: Timestamp,
    not_after: Timestamp,
}

impl Certificate {
    /// The first certificate of a PEM text.
    ///
    /// # Errors
    /// When there is none, or its key is not an RSA key of a size that is used.
    pub fn from_pem(text: &str) -> Result<Self, SealingKeyError> {
        let blocks = pem::blocks(text)?;
        match blocks.iter().find(|block| block.label == LABEL) {
            Some(block) => Self::from_der(block.content.expose_secret()),
            None => Err(SealingKeyError::NoCertificate { found: pem::found(&blocks) }),
        }
    }

    /// A certificate for `key`, signed by itself: version 3, a random serial number, for nothing but encryption.
    ///
    /// # Errors
    /// When a time lies beyond what certificates can say.
    pub fn self_signed(
        key: &SealingKey,
        common_name: &str,
        not_before: Timestamp,
        validity: Duration,
    ) -> Result<Self, SealingKeyError> {
        let tbs = to_be_signed(key.public(), common_name, not_before, validity)?;
        let message = tbs.to_der().map_err(broken)?;
        let pair = key.signing()?;
        let mut signature = vec![0; pair.public_modulus_len()];
        pair.sign(&RSA_PKCS1_SHA256, &SystemRandom::new(), &message, &mut signature)
            .map_err(|_| SealingKeyError::Generation)?;
        let certificate = CertificateInner::<Raw> {
            signature_algorithm: tbs.signature.clone(),
            tbs_certificate: tbs,
            signature: BitString::from_bytes(&signature).map_err(broken)?,
        };
        Self::from_der(&certificate.to_der().map_err(broken)?)
    }

    /// The key that it publishes.
    pub fn public(&self) -> &PublicSealingKey {
        &self.public
    }

    /// The certificate alone as PEM.
    pub fn pem(&self) -> &str {
        &self.pem
    }

    /// When clients may begin to seal to it.
    pub fn not_before(&self) -> Timestamp {
        self.not_before
    }

    /// After when clients should no longer seal to it. What was sealed opens still.
    pub fn not_after(&self) -> Timestamp {
        self.not_after
    }

    fn from_der(der: &[u8]) -> Result<Self, SealingKeyError> {
        // `Raw` takes serial numbers as they are: other tools write negative and overlong ones.
        let certificate = CertificateInner::<Raw>::from_der(der).map_err(broken)?;
        let tbs = &certificate.tbs_certificate;
        let spki = &tbs.subject_public_key_info;
        if spki.algorithm.oid != pkcs1::ALGORITHM_OID {
            return Err(SealingKeyError::CertificateNotRsa { found: algorithm_name(&spki.algorithm.oid) });
        }
        let spki = spki.to_der().map_err(broken)?;
        let spki = SubjectPublicKeyInfoRef::try_from(spki.as_slice()).map_err(broken)?;
        let time = |time: &Time| {
            let seconds = i64::try_from(time.to_unix_duration().as_secs()).unwrap_or(i64::MAX);
            Timestamp::from_second(seconds).map_err(|_| SealingKeyError::Time)
        };
        Ok(Self {
            public: PublicSealingKey::from_spki(&spki)?,
            pem: pem::write(LABEL, der),
            not_before: time(&tbs.validity.not_before)?,
            not_after: time(&tbs.validity.not_after)?,
        })
    }
}

fn broken(reason: impl std::fmt::Display) -> SealingKeyError {
    malformed("the certificate", reason)
}

/// The name by which people know an algorithm of keys, or its number.
pub(super) fn algorithm_name(oid: &ObjectIdentifier) -> String {
    let oid = oid.to_string();
    match oid.as_str() {
        "1.2.840.10045.2.1" => "EC (elliptic curve)".to_owned(),
        "1.2.840.10040.4.1" => "DSA".to_owned(),
        "1.2.840.113549.1.1.10" => "RSA-PSS (for signatures only)".to_owned(),
        "1.3.101.110" => "X25519".to_owned(),
        "1.3.101.112" => "Ed25519".to_owned(),
        "1.3.101.113" => "Ed448".to_owned(),
        _ => format!("of the algorithm {oid}"),
    }
}

/// A PKCS#1 public key in the container that certificates and libraries take.
pub(super) fn subject_public_key_info(pkcs1_der: &[u8]) -> Result<Vec<u8>, SealingKeyError> {
    let bits = BitStringRef::from_bytes(pkcs1_der).map_err(broken)?;
    let info = SubjectPublicKeyInfoRef { algorithm: pkcs1::ALGORITHM_ID, subject_public_key: bits };
    info.to_der().map_err(broken)
}

fn to_be_signed(
    key: &PublicSealingKey,
    common_name: &str,
    not_before: Timestamp,
    validity: Duration,
) -> Result<TbsCertificateInner<Raw>, SealingKeyError> {
    let not_after = not_before.checked_add(validity).map_err(|_| SealingKeyError::Time)?;
    let validity = Validity { not_before: time(not_before)?, not_after: time(not_after)? };
    let der = key.to_der()?;
    let spki = subject_public_key_info(&der)?;
    let mut serial = [0; SERIAL_BYTES];
    getrandom::fill(&mut serial).map_err(|_| SealingKeyError::Generation)?;
    // Neither zero nor with leading zeros: some readers refuse both.
    serial[0] |= 1;
    let name = name(common_name)?;
    Ok(TbsCertificateInner {
        version: x509_cert::Version::V3,
        serial_number: SerialNumber::new(&serial).map_err(broken)?,
        signature: AlgorithmIdentifierOwned { oid: SHA256_WITH_RSA, parameters: Some(Null.into()) },
        issuer: name.clone(),
        validity,
        subject: name,
        subject_public_key_info: SubjectPublicKeyInfoOwned::from_der(&spki).map_err(broken)?,
        issuer_unique_id: None,
        subject_unique_id: None,
        extensions: Some(extensions(&der)?),
    })
}

fn time(time: Timestamp) -> Result<Time, SealingKeyError> {
    let seconds = u64::try_from(time.as_second()).map_err(|_| SealingKeyError::Time)?;
    let date =
        DateTime::from_unix_duration(Duration::from_secs(seconds)).map_err(|_| SealingKeyError::Time)?;
    match date.year() < FOUR_DIGITS_FROM {
        true => UtcTime::from_date_time(date).map(Time::UtcTime).map_err(broken),
        false => Ok(Time::GeneralTime(GeneralizedTime::from_date_time(date))),
    }
}

fn name(common_name: &str) -> Result<Name, SealingKeyError> {
    if common_name.is_empty() {
        return Ok(RdnSequence::default());
    }
    let value = match PrintableStringRef::new(common_name) {
        Ok(text) => Any::encode_from(&text),
        Err(_) => Utf8StringRef::new(common_name).and_then(|text| Any::encode_from(&text)),
    };
    let attribute = AttributeTypeAndValue { oid: COMMON_NAME, value: value.map_err(broken)? };
    let part = SetOfVec::try_from(vec![attribute]).map_err(broken)?;
    Ok(RdnSequence(vec![RelativeDistinguishedName(part)]))
}

/// As the peer has them: what the key is for, that it is its own authority, and its digest as its name.
fn extensions(key_der: &[u8]) -> Result<Vec<Extension>, SealingKeyError> {
    let identifier = &Sha256::digest(key_der)[..KEY_IDENTIFIER_BYTES];
    let identifier = SubjectKeyIdentifier(OctetString::new(identifier).map_err(broken)?);
    Ok(vec![
        extension(&KeyUsage(KeyUsages::EncipherOnly.into()), true)?,
        extension(&BasicConstraints { ca: true, path_len_constraint: None }, true)?,
        extension(&identifier, false)?,
    ])
}

fn extension<T: AssociatedOid + Encode>(content: &T, critical: bool) -> Result<Extension, SealingKeyError> {
    let value = OctetString::new(content.to_der().map_err(broken)?).map_err(broken)?;
    Ok(Extension { extn_id: T::OID, critical, extn_value: value })
}
