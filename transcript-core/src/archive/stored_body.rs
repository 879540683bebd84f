//! Stored form of a transcript, for responses that are built without decoding it.

use std::sync::Arc;

use bytes::Bytes;

use crate::transcript::{Transcript, VideoDetails};

/// Segments of a transcript in the form in which they are sent.
///
/// It makes archived responses cheap: the server sends it without decompressing, parsing, checking and encoding
/// it; see [`crate::body::zstd_frame`]. [`super::Archive::stored_body`] returns it. The times of words are only in the
/// decoded form.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StoredBody {
    /// [`super::content_digest`] of the transcript: 32 bytes.
    pub content_sha256: Vec<u8>,
    /// Name of the supplier of the transcript.
    pub source: String,
    /// Output of [`crate::body::segments::write`] as one zstd frame.
    ///
    /// The frame has no dictionary and a window of at most 8 MiB.
    ///
    /// The memory may be shared with other bodies: copy what is kept for long.
    pub segments: Bytes,
    /// Size of the segments before compression, in bytes.
    pub length: u64,
    /// CRC-32 that distinguishes frames, also two frames of the same content.
    pub checksum: u32,
    /// The transcript without its segments.
    pub header: Transcript,
    /// As [`super::StoredTranscript::details`].
    pub details: Arc<VideoDetails>,
}
