//! The stored times of words: [`transcript_core::body::words`].
//!
//! They are apart from the stored body, because responses without words are sent as that body is, and few requests need
//! words. Cold storage leaves them where they are: they are as small as they get.

use std::borrow::Cow;

use transcript_core::{Error, Result, body::words, transcript::Segment};
use zstd::zstd_safe::{MAGICNUMBER, get_frame_content_size};

use super::{damaged, decompress};

/// The longest words, in bytes: more than the largest number of words takes.
const LENGTH_MAX: usize = 48 << 20;

/// Encodes the times of words; `None` if the segments have none.
///
/// # Errors
/// [`transcript_core::ErrorKind::Invalid`] if the words do not fit their segments, or exceed 48 MiB.
pub(crate) fn pack(segments: &[Segment]) -> Result<Option<Vec<u8>>> {
    if segments.iter().all(|segment| segment.words.is_empty()) {
        return Ok(None);
    }
    let encoded = words::encode(segments).filter(|encoded| encoded.len() <= LENGTH_MAX);
    encoded.map(Some).ok_or_else(|| Error::invalid("the words of the transcript do not fit its segments"))
}

/// Decodes the times of words into their segments.
///
/// # Errors
/// [`transcript_core::ErrorKind::Corrupt`] if they are damaged. Words that are damaged and still fit are detected by
/// the digest of the transcript.
pub(crate) fn unpack(packed: &[u8], segments: &mut [Segment]) -> Result<()> {
    words::decode(&encoded(packed)?, segments).ok_or_else(damaged)
}

/// The encoded words. Their first version is stored as a zstd frame.
fn encoded(packed: &[u8]) -> Result<Cow<'_, [u8]>> {
    if !packed.starts_with(&MAGICNUMBER.to_le_bytes()) {
        return Ok(Cow::Borrowed(packed));
    }
    let length =
        get_frame_content_size(packed).ok().flatten().and_then(|length| usize::try_from(length).ok());
    let length = length.filter(|length| *length <= LENGTH_MAX).ok_or_else(damaged)?;
    decompress(packed, length).map(Cow::Owned).map_err(|_| damaged())
}

#[cfg(test)]
mod tests {
    use transcript_core::transcript::{Word, set_word_durations};

    use super::*;

    /// The words of the test in their first version, as the program before encoded them.
    const COLUMNS: [u8; 42] = [
        1, 20, 3, 1, 0, 2, 5, 2, 0, 6, 2, 6, 5, 2, 1, 0, 0, 0, 10, 4, 4, 16, 8, 6, 20, 1, 0, 3, 2, 1, 4, 10,
        6, 2, 0, 18, 0, 1, 0, 0, 0, 0,
    ];

    #[test]
    fn words_of_first_version_are_read() {
        let without = vec![
            Segment::new("it is so\nquiet", 1_000, 3_000),
            Segment::new("no words here", 2_500, 2_000),
            Segment::new("再见, 朋友", 4_000, 900),
        ];
        let mut expected = without.clone();
        expected[0].words = [("it", 1_000), ("is", 1_240), ("so", 1_399), ("quiet", 1_900)]
            .map(|(text, start)| Word::new(text, start, 0))
            .into();
        expected[2].words = vec![Word::new("再见", 4_000, 0), Word::new("朋友", 4_300, 0)];
        set_word_durations(&mut expected);
        expected[0].words[1].duration_ms = 17;

        let frame = zstd::bulk::compress(&COLUMNS, 3).unwrap();
        let mut decoded = without.clone();
        unpack(&frame, &mut decoded).unwrap();
        assert_eq!(decoded, expected);
        // What replaces it is shorter, and read as well.
        let packed = pack(&expected).unwrap().unwrap();
        assert!(packed.len() < COLUMNS.len(), "{}", packed.len());
        let mut decoded = without.clone();
        unpack(&packed, &mut decoded).unwrap();
        assert_eq!(decoded, expected);
        let cut = frame.get(..frame.len() - 1).unwrap();
        assert!(unpack(cut, &mut without.clone()).is_err());
    }
}
