//! The dictionaries that the compact form is compressed with: what people who speak often say.
//!
//! Each has a number, which is stored with whatever was compressed with it. A published one is never changed nor
//! removed: without its bytes nothing can be read that they compressed. A better one gets the next number. How they
//! were made is told in `dictionaries/README.md`.

use std::sync::LazyLock;

use zstd::dict::DecoderDictionary;

/// What a compact transcript is compressed with.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Dictionary {
    /// Nothing: each is by itself.
    None,
    /// The first one, mostly English.
    Captions1,
}

static CAPTIONS_1: &[u8] = include_bytes!("../../dictionaries/captions-1.dict");
static CAPTIONS_1_READY: LazyLock<DecoderDictionary<'static>> =
    LazyLock::new(|| DecoderDictionary::copy(CAPTIONS_1));

impl Dictionary {
    /// The one that is compressed with now.
    pub const NEWEST: Self = Self::Captions1;

    /// The number that is stored.
    pub(super) fn number(self) -> u8 {
        match self {
            Self::None => 0,
            Self::Captions1 => 1,
        }
    }

    /// The one with this number; none where it is of a newer version than this program.
    pub(super) fn of(number: u8) -> Option<Self> {
        [Self::None, Self::Captions1].into_iter().find(|dictionary| dictionary.number() == number)
    }

    /// Its bytes.
    pub(super) fn bytes(self) -> &'static [u8] {
        match self {
            Self::None => &[],
            Self::Captions1 => CAPTIONS_1,
        }
    }

    /// Ready to decompress with.
    pub(super) fn ready(self) -> Option<&'static DecoderDictionary<'static>> {
        match self {
            Self::None => None,
            Self::Captions1 => Some(&CAPTIONS_1_READY),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A dictionary that changed would orphan all that was compressed with it.
    #[test]
    fn published_dictionaries_are_what_they_were() {
        let of = |dictionary: Dictionary| (dictionary.bytes().len(), crc32fast::hash(dictionary.bytes()));
        assert_eq!(of(Dictionary::Captions1), (65_536, 0x0C23_1275));
        for number in 0..=u8::MAX {
            assert!(Dictionary::of(number).is_none_or(|dictionary| dictionary.number() == number));
        }
    }
}
