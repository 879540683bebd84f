//! The digest of a transcript's content.

use sha2::{Digest, Sha256};

use crate::transcript::Transcript;

/// The SHA-256 of everything in a transcript that a reader can see: 32 bytes.
///
/// Every part is preceded by its length, so that no two different transcripts give the same bytes.
/// The digest is stable across versions: it is the base of the ETag of every format.
pub fn content_digest(transcript: &Transcript) -> Vec<u8> {
    let mut hash = Sha256::new();
    let mut part = |bytes: &[u8]| {
        hash.update((bytes.len() as u64).to_be_bytes());
        hash.update(bytes);
    };
    part(transcript.video.to_string().as_bytes());
    for text in [&transcript.title, &transcript.author, &transcript.track.name] {
        part(text.as_ref().map_or(b"\0".as_slice(), |text| text.as_bytes()));
    }
    part(&transcript.duration_ms.map_or(Vec::new(), |ms| ms.to_be_bytes().to_vec()));
    part(transcript.track.language.as_str().as_bytes());
    part(transcript.track.kind.as_str().as_bytes());
    part(&[u8::from(transcript.track.original)]);
    part(transcript.source.as_bytes());
    for segment in &transcript.segments {
        part(segment.text.as_bytes());
        part(&segment.start_ms.to_be_bytes());
        part(&segment.duration_ms.to_be_bytes());
    }
    hash.finalize().to_vec()
}
