//! A key in AWS KMS as people and the `sops` block name it. Read in every build, also in one that cannot call KMS.

use std::collections::BTreeMap;

use super::KeyError;

/// Most characters of an Amazon resource name.
const ARN_CHARS_MAX: usize = 2048;

/// Most characters of a region; the longest today has 14.
const REGION_CHARS_MAX: usize = 32;

/// A key in AWS KMS as the `sops` block describes it.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct AwsKmsKey {
    /// Amazon resource name of the key or alias; its fourth field is the region.
    pub arn: String,
    /// Role to assume before the call, as an Amazon resource name.
    pub role: Option<String>,
    /// Encryption context: additional data that KMS binds the wrapped key to.
    pub context: BTreeMap<String, String>,
    /// Named profile of the shared configuration; empty for none.
    pub profile: String,
}

impl AwsKmsKey {
    /// Reads a key as people write it: `ARN` or `ARN+ROLE-ARN`; a context as `key:value,key:value` or empty; a
    /// profile or empty.
    ///
    /// # Errors
    /// [`KeyError`] when one of them has another form.
    pub fn parse(text: &str, context: &str, profile: &str) -> Result<Self, KeyError> {
        let compact: String = text.chars().filter(|character| !character.is_whitespace()).collect();
        let (arn, role) = match compact.split_once("+arn:") {
            Some((arn, role)) => (arn.to_owned(), Some(format!("arn:{role}"))),
            None => (compact, None),
        };
        let key =
            Self { arn, role, context: Self::parse_context(context)?, profile: profile.trim().to_owned() };
        key.region()?;
        Ok(key)
    }

    /// Reads an encryption context: `key:value,key:value`, or nothing.
    ///
    /// # Errors
    /// [`KeyError`] when it has another form. A value cannot hold a colon, as in stock tools.
    pub fn parse_context(text: &str) -> Result<BTreeMap<String, String>, KeyError> {
        let pair = |word: &str| match word.split_once(':') {
            Some((key, value)) if !key.is_empty() && !value.contains(':') => {
                Ok((key.to_owned(), value.to_owned()))
            }
            _ => Err(KeyError::new("the encryption context is not of the form key:value,key:value")),
        };
        text.split(',').map(str::trim).filter(|word| !word.is_empty()).map(pair).collect()
    }

    /// The region in the ARN, after the whole key was checked.
    pub(super) fn region(&self) -> Result<&str, KeyError> {
        let fields: Vec<&str> = self.arn.splitn(6, ':').collect();
        let ["arn", partition, "kms", region, account, resource] = fields[..] else {
            return Err(not_a_key());
        };
        let name = resource.strip_prefix("key/").or_else(|| resource.strip_prefix("alias/"));
        let is_account = !account.is_empty() && account.bytes().all(|digit| digit.is_ascii_digit());
        let is_short = region.len() <= REGION_CHARS_MAX && self.arn.len() <= ARN_CHARS_MAX;
        let is_key = partition.starts_with("aws") && is_word(partition) && is_word(region);
        if !(is_key && is_account && is_short && name.is_some_and(is_resource)) {
            return Err(not_a_key());
        }
        if let Some(role) = &self.role {
            let is_role =
                role.len() <= ARN_CHARS_MAX && role.starts_with("arn:aws") && role.contains(":role/");
            if !is_role {
                return Err(KeyError::new(
                    "not an AWS role: one looks like arn:aws:iam::111122223333:role/NAME",
                ));
            }
        }
        Ok(region)
    }

    /// Whether the ARN names a key and not an alias, which may have moved to another key since.
    #[cfg(feature = "aws")]
    pub(super) fn is_pinned(&self) -> bool {
        self.arn.contains(":key/")
    }
}

fn not_a_key() -> KeyError {
    KeyError::new(
        "not an AWS KMS key: one looks like arn:aws:kms:eu-west-1:111122223333:key/ID, or …:alias/NAME",
    )
}

/// Safe inside a host name.
fn is_word(text: &str) -> bool {
    let safe = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit() || byte == b'-';
    !text.is_empty() && text.bytes().all(safe)
}

fn is_resource(text: &str) -> bool {
    let safe = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_' | b'/');
    !text.is_empty() && text.bytes().all(safe)
}

#[cfg(test)]
mod tests {
    use super::*;

    const ARN: &str = "arn:aws:kms:eu-west-1:111122223333:key/1234abcd-12ab-34cd-56ef-1234567890ab";
    const ROLE: &str = "arn:aws:iam::111122223333:role/r";

    #[test]
    fn keys_are_read_with_role_context_and_profile() {
        let key = AwsKmsKey::parse(&format!(" {ARN}+{ROLE} "), "b:2, a:1", "prod").unwrap();
        assert_eq!((key.arn.as_str(), key.role.as_deref(), key.profile.as_str()), (ARN, Some(ROLE), "prod"));
        assert_eq!(key.context, BTreeMap::from([("a", "1"), ("b", "2")].map(|(k, v)| (k.into(), v.into()))));
        let alias = AwsKmsKey::parse("arn:aws-cn:kms:cn-north-1:111122223333:alias/a/b_c", "", "").unwrap();
        assert!(alias.arn.contains(":alias/") && alias.region().unwrap() == "cn-north-1");
    }

    #[test]
    fn what_would_lead_elsewhere_is_no_key() {
        for arn in [
            "",
            "alias/name",
            "arn:aws:s3:eu-west-1:111122223333:key/k",
            "arn:aws:kms::111122223333:key/k",
            "arn:aws:kms:evil.example/#:111122223333:key/k",
            "arn:aws:kms:a.b:111122223333:key/k",
            "arn:aws:kms:eu-west-1:me:key/k",
            "arn:aws:kms:eu-west-1:111122223333:key/",
            "arn:aws:kms:eu-west-1:111122223333:key/k?x",
            "arn:gcp:kms:eu-west-1:111122223333:key/k",
        ] {
            assert!(AwsKmsKey::parse(arn, "", "").is_err(), "{arn}");
        }
        for (region, fits) in
            [("a".repeat(REGION_CHARS_MAX), true), ("a".repeat(REGION_CHARS_MAX + 1), false)]
        {
            let arn = format!("arn:aws:kms:{region}:111122223333:key/k");
            assert_eq!(AwsKmsKey::parse(&arn, "", "").is_ok(), fits, "{region}");
        }
        let stem = "arn:aws:kms:eu-west-1:111122223333:key/";
        for (length, fits) in [(ARN_CHARS_MAX, true), (ARN_CHARS_MAX + 1, false)] {
            let arn = format!("{stem}{}", "k".repeat(length - stem.len()));
            assert_eq!(AwsKmsKey::parse(&arn, "", "").is_ok(), fits, "{length}");
        }
        assert!(AwsKmsKey::parse(&format!("{ARN}+arn:aws:iam::1:user/u"), "", "").is_err());
        for context in ["a", "a:b:c", ":b"] {
            assert!(AwsKmsKey::parse(ARN, context, "").is_err(), "{context}");
        }
    }
}
