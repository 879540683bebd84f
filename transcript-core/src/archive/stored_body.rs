//! A transcript as it is stored, for answers that are put together without reading it.

use bytes::Bytes;

/// The segments of a transcript in the form in which they are sent.
///
/// It is what makes an archived answer cheap: whoever sends it need not decompress, read, check and write
/// it again; see [`crate::wire::frame`]. The rest of the transcript, its title among it, is only found by
/// [`super::Archive::find`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StoredBody {
    /// The transcript's [`super::content_digest`]: 32 bytes.
    pub content_sha256: Vec<u8>,
    /// The name of the supplier that gave the transcript.
    pub source: String,
    /// What [`crate::wire::segments::write`] makes of the segments, compressed: one zstd frame without a
    /// dictionary, with a window of at most 8 MiB. The memory that it holds may be shared with others'
    /// bodies: copy what is kept for long.
    pub segments: Bytes,
    /// How many bytes the segments have before compression.
    pub length: u64,
    /// Tells two frames of the same content apart, and frames of other contents too: a CRC-32.
    pub checksum: u32,
}
