//! Vectors of an embedding model that are stored with a transcript.

use crate::{
    error::{Error, Result},
    video::VideoId,
};

/// Maximum size of the stored vectors of a transcript, in bytes.
pub const VECTORS_BYTES_MAX: usize = 8 << 20;

/// Identifies the vectors of a transcript; see [`super::Archive::vectors`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct VectorsKey {
    /// The video.
    pub video: VideoId,
    /// [`super::content_digest`] of the transcript.
    pub content_sha256: Vec<u8>,
    /// Digest of the embedding model and of the embedded texts.
    pub texts_sha256: [u8; 32],
}

/// Checks the size of vectors; every implementation of [`super::Archive::put_vectors`] calls it first.
///
/// # Errors
/// [`crate::ErrorKind::Invalid`] for more than [`VECTORS_BYTES_MAX`].
pub fn check_vectors(vectors: &[u8]) -> Result<()> {
    match vectors.len() {
        0..=VECTORS_BYTES_MAX => Ok(()),
        bytes => Err(Error::invalid(format!("the vectors have {bytes} bytes; allowed: {VECTORS_BYTES_MAX}"))),
    }
}
