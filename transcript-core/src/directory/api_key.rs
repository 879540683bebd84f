//! API key format: a prefix for the API, random characters and a checksum.

use sha2::{Digest, Sha256};

use crate::{
    error::{Error, Result},
    time::Random,
};

/// Digits of base62, in order.
const BASE62: &[u8; 62] = b"0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz";
/// Random characters in a key: 30 base62 digits are 178 bits.
const RANDOM_LENGTH: usize = 30;
/// Length of the CRC-32 in base62.
const CHECK_LENGTH: usize = 6;
/// Maximum of draws of 30 random bytes, of which 31 in 32 are usable.
const DRAWS_MAX: usize = 64;
/// Length of the prefix that is stored for display.
const HINT_LENGTH: usize = 8;

/// The API that a key belongs to.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum ApiKind {
    /// The lookup API; prefix `vbk_`.
    Lookup,
    /// The v1 API; prefix `vba_`.
    V1,
    /// The admin API; prefix `vbo_`.
    Admin,
}

impl ApiKind {
    /// Prefix of the API's keys.
    pub fn prefix(self) -> &'static str {
        match self {
            Self::Lookup => "vbk_",
            Self::V1 => "vba_",
            Self::Admin => "vbo_",
        }
    }
}

/// An API key in plain text.
///
/// It is shown once and never stored; `Debug` prints only its first characters.
#[derive(Clone, PartialEq, Eq)]
pub struct ApiKey {
    kind: ApiKind,
    text: String,
}

crate::display::debug_as!(ApiKey, |this| format_args!("ApiKey({}…)", this.hint()));

impl ApiKey {
    /// Generates a key: prefix, 30 random base62 characters, and the CRC-32 of these in 6 more characters.
    ///
    /// # Errors
    /// [`crate::ErrorKind::Unexpected`] if the random source returns no usable bytes.
    pub fn generate(kind: ApiKind, random: &dyn Random) -> Result<Self> {
        let mut text = kind.prefix().to_owned();
        for _ in 0..DRAWS_MAX {
            // 248 is the largest multiple of 62 in a byte; bytes above it would favour low digits.
            let digits = random.bytes(RANDOM_LENGTH as u32).into_iter().filter(|byte| *byte < 248);
            let room = kind.prefix().len() + RANDOM_LENGTH - text.len();
            text.extend(digits.take(room).map(|byte| char::from(BASE62[usize::from(byte) % 62])));
            if text.len() == kind.prefix().len() + RANDOM_LENGTH {
                let check = checksum(&text);
                text.push_str(&check);
                return Ok(Self { kind, text });
            }
        }
        Err(Error::unexpected("the random source returned too few usable bytes for a key"))
    }

    /// Parses a key; `None` if the prefix, the length, a character or the checksum is wrong.
    ///
    /// A typo is thus detected without a directory lookup.
    pub fn parse(text: &str) -> Option<Self> {
        let kind = [ApiKind::Lookup, ApiKind::V1, ApiKind::Admin]
            .into_iter()
            .find(|kind| text.starts_with(kind.prefix()))?;
        let length = kind.prefix().len() + RANDOM_LENGTH + CHECK_LENGTH;
        let body = &text.as_bytes()[kind.prefix().len()..];
        if text.len() != length || !body.iter().all(u8::is_ascii_alphanumeric) {
            return None;
        }
        let (before, check) = text.split_at(length - CHECK_LENGTH);
        (checksum(before) == check).then(|| Self { kind, text: text.to_owned() })
    }

    /// The API that the key belongs to.
    pub fn kind(&self) -> ApiKind {
        self.kind
    }

    /// The key in plain text, to be shown once.
    pub fn reveal(&self) -> &str {
        &self.text
    }

    /// SHA-256 of the whole key; this is what is stored.
    pub fn digest(&self) -> Vec<u8> {
        Sha256::digest(self.text.as_bytes()).to_vec()
    }

    /// First characters of the key, by which a user recognises it.
    pub fn hint(&self) -> String {
        self.text.chars().take(HINT_LENGTH).collect()
    }
}

/// CRC-32 of a text in base62, left-padded with zeros to 6 characters.
fn checksum(text: &str) -> String {
    let mut rest = crc32fast::hash(text.as_bytes());
    let mut digits = [b'0'; CHECK_LENGTH];
    for digit in digits.iter_mut().rev() {
        *digit = BASE62[(rest % 62) as usize];
        rest /= 62;
    }
    digits.iter().map(|digit| char::from(*digit)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::test_doubles::SequentialRandom;

    #[test]
    fn api_key_generated_key_parses() {
        let random = SequentialRandom::default();
        for kind in [ApiKind::Lookup, ApiKind::V1, ApiKind::Admin] {
            let key = ApiKey::generate(kind, &random).unwrap();
            assert_eq!(key.reveal().len(), 40);
            assert!(key.reveal().starts_with(kind.prefix()));
            assert_eq!(ApiKey::parse(key.reveal()), Some(key.clone()));
            assert_eq!(key.digest().len(), 32);
            assert!(!format!("{key:?}").contains(&key.reveal()[12..]));
        }
    }

    #[test]
    fn api_key_checksum_is_crc32() {
        // CRC-32 of "123456789" is 0xCBF43926 = 3421780262 = "3jZRME" in base62.
        assert_eq!(crc32fast::hash(b"123456789"), 0xCBF4_3926);
        assert_eq!(checksum("123456789"), "3jZRME");
    }

    #[test]
    fn api_key_changed_character_is_rejected() {
        let key = ApiKey::generate(ApiKind::Lookup, &SequentialRandom::default()).unwrap();
        let text = key.reveal();
        for index in 0..text.len() {
            let mut bytes = text.as_bytes().to_vec();
            bytes[index] = if bytes[index] == b'x' { b'y' } else { b'x' };
            let changed = String::from_utf8(bytes).unwrap();
            assert_eq!(ApiKey::parse(&changed), None, "{changed}");
        }
        for text in ["", "vbk_", "vbk_é", &text[..39], &format!("{text}0"), &text.to_uppercase()] {
            assert_eq!(ApiKey::parse(text), None, "{text}");
        }
    }
}
