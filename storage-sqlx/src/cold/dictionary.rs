//! Dictionaries of cold storage: phrases that are common in speech.
//!
//! Each has a number, which is stored with every transcript compressed with it. A published dictionary is never
//! changed or removed, because its bytes are needed to read those transcripts. A better one gets the next number.
//! `dictionaries/README.md` describes how they were made.

use std::sync::LazyLock;

use zstd::dict::DecoderDictionary;

/// The dictionary of a cold transcript.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Dictionary {
    /// No dictionary.
    None,
    /// The first dictionary, mostly English.
    Captions1,
}

static CAPTIONS_1: &[u8] = include_bytes!("../../dictionaries/captions-1.dict");
static CAPTIONS_1_READY: LazyLock<DecoderDictionary<'static>> =
    LazyLock::new(|| DecoderDictionary::copy(CAPTIONS_1));

impl Dictionary {
    /// The dictionary of new cold transcripts.
    pub const NEWEST: Self = Self::Captions1;

    /// The stored number.
    pub(super) fn number(self) -> u8 {
        match self {
            Self::None => 0,
            Self::Captions1 => 1,
        }
    }

    /// The dictionary with this number. `None` if a newer version introduced it.
    pub(super) fn from_number(number: u8) -> Option<Self> {
        [Self::None, Self::Captions1].into_iter().find(|dictionary| dictionary.number() == number)
    }

    /// The bytes of the dictionary.
    pub(super) fn bytes(self) -> &'static [u8] {
        match self {
            Self::None => &[],
            Self::Captions1 => CAPTIONS_1,
        }
    }

    /// The prepared dictionary for decompression.
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

    /// A changed dictionary would make all transcripts compressed with it unreadable.
    #[test]
    fn dictionary_published_bytes_are_unchanged() {
        let size_and_crc =
            |dictionary: Dictionary| (dictionary.bytes().len(), crc32fast::hash(dictionary.bytes()));
        assert_eq!(size_and_crc(Dictionary::Captions1), (65_536, 0x0C23_1275));
        for number in 0..=u8::MAX {
            assert!(Dictionary::from_number(number).is_none_or(|dictionary| dictionary.number() == number));
        }
    }
}
