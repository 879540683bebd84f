//! The stored times of words: [`transcript_core::body::words`].
//!
//! They are apart from the stored body, because responses without words are sent as that body is, and few requests need
//! words. Cold storage leaves them where they are: they are as small as they get.

use std::borrow::Cow;

use transcript_core::{Error, Result, body::words, transcript::Segment};
use zstd::{
    bulk,
    zstd_safe::{MAGICNUMBER, get_frame_content_size},
};

use crate::body::damaged;

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
/// [`transcript_core::ErrorKind::Corrupt`] if they are damaged. Words that are damaged and still fit are detected by the
/// digest of the transcript.
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
    bulk::decompress(packed, length).map(Cow::Owned).map_err(|_| damaged())
}
