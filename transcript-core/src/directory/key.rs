//! The form of keys: a prefix that names the surface, randomness, and a checksum.

use std::fmt;

use sha2::{Digest, Sha256};

use crate::{
    error::{Error, Result},
    time::Random,
};

/// The digits of base62, in order.
const BASE62: &[u8; 62] = b"0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz";
/// Random characters in a key: 30 of 62 are 178 bits.
const RANDOM_LENGTH: usize = 30;
/// The CRC-32 in base62 takes up to 6 characters.
const CHECK_LENGTH: usize = 6;
/// How often randomness is drawn: 30 bytes at a time, of which 31 in 32 can be used.
const DRAWS_MAX: usize = 64;
/// How many first characters of a key are kept for display.
const HINT_LENGTH: usize = 8;

/// The surface that a key is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Surface {
    /// The look-up API; prefix `vbk_`.
    Lookup,
    /// The v1 API; prefix `vba_`.
    Account,
}

impl Surface {
    /// The prefix of its keys.
    pub fn prefix(self) -> &'static str {
        match self {
            Self::Lookup => "vbk_",
            Self::Account => "vba_",
        }
    }
}

/// A key in the clear. It is shown once and never stored; `Debug` prints its first characters only.
#[derive(Clone, PartialEq, Eq)]
pub struct Key {
    surface: Surface,
    text: String,
}

impl Key {
    /// A new key: prefix, 30 random base62 characters, and the CRC-32 of all before it in 6 more.
    ///
    /// # Errors
    /// [`crate::ErrorKind::Unexpected`] when the source of randomness gives none.
    pub fn generate(surface: Surface, random: &dyn Random) -> Result<Self> {
        let mut text = surface.prefix().to_owned();
        for _ in 0..DRAWS_MAX {
            // 248 is the largest multiple of 62 in a byte: what lies above would favour low digits.
            let digits = random.bytes(RANDOM_LENGTH as u32).into_iter().filter(|byte| *byte < 248);
            let room = surface.prefix().len() + RANDOM_LENGTH - text.len();
            text.extend(digits.take(room).map(|byte| char::from(BASE62[usize::from(byte) % 62])));
            if text.len() == surface.prefix().len() + RANDOM_LENGTH {
                let check = checksum(&text);
                text.push_str(&check);
                return Ok(Self { surface, text });
            }
        }
        Err(Error::unexpected("the source of randomness gives too little for a key"))
    }

    /// Reads a key. None when it is no key of ours: the prefix, the length, a character or the checksum
    /// is wrong; so typos are recognised without a look-up.
    pub fn parse(text: &str) -> Option<Self> {
        let surface = [Surface::Lookup, Surface::Account]
            .into_iter()
            .find(|surface| text.starts_with(surface.prefix()))?;
        let length = surface.prefix().len() + RANDOM_LENGTH + CHECK_LENGTH;
        let body = &text.as_bytes()[surface.prefix().len()..];
        if text.len() != length || !body.iter().all(u8::is_ascii_alphanumeric) {
            return None;
        }
        let (before, check) = text.split_at(length - CHECK_LENGTH);
        (checksum(before) == check).then(|| Self { surface, text: text.to_owned() })
    }

    /// The surface that it is for.
    pub fn surface(&self) -> Surface {
        self.surface
    }

    /// The key itself, for its one showing.
    pub fn reveal(&self) -> &str {
        &self.text
    }

    /// The SHA-256 of the whole key: what is stored.
    pub fn digest(&self) -> Vec<u8> {
        Sha256::digest(self.text.as_bytes()).to_vec()
    }

    /// Its first characters, for people to tell their keys apart.
    pub fn hint(&self) -> String {
        self.text.chars().take(HINT_LENGTH).collect()
    }
}

impl fmt::Debug for Key {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Key({}…)", self.hint())
    }
}

/// The CRC-32 of a text in base62, left-padded with zeros to 6 characters.
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

    #[derive(Debug)]
    struct Counting(std::sync::atomic::AtomicU8);

    impl Random for Counting {
        fn bytes(&self, count: u32) -> Vec<u8> {
            use std::sync::atomic::Ordering::Relaxed;
            (0..count).map(|_| self.0.fetch_add(7, Relaxed)).collect()
        }
    }

    #[test]
    fn a_generated_key_reads_back() {
        let random = Counting(200.into());
        for surface in [Surface::Lookup, Surface::Account] {
            let key = Key::generate(surface, &random).unwrap();
            assert_eq!(key.reveal().len(), 40);
            assert!(key.reveal().starts_with(surface.prefix()));
            assert_eq!(Key::parse(key.reveal()), Some(key.clone()));
            assert_eq!(key.digest().len(), 32);
            assert!(!format!("{key:?}").contains(&key.reveal()[12..]));
        }
    }

    #[test]
    fn the_checksum_is_that_of_crc32() {
        // CRC-32 of "123456789" is 0xCBF43926 = 3421780262 = "3jZRME" in base62.
        assert_eq!(crc32fast::hash(b"123456789"), 0xCBF4_3926);
        assert_eq!(checksum("123456789"), "3jZRME");
    }

    #[test]
    fn any_changed_character_is_noticed() {
        let key = Key::generate(Surface::Lookup, &Counting(0.into())).unwrap();
        let text = key.reveal();
        for place in 0..text.len() {
            let mut bytes = text.as_bytes().to_vec();
            bytes[place] = if bytes[place] == b'x' { b'y' } else { b'x' };
            let changed = String::from_utf8(bytes).unwrap();
            assert_eq!(Key::parse(&changed), None, "{changed}");
        }
        for text in ["", "vbk_", "vbk_é", &text[..39], &format!("{text}0"), &text.to_uppercase()] {
            assert_eq!(Key::parse(text), None, "{text}");
        }
    }
}
