//! Cold storage: a denser encoding of old transcripts, about two thirds of the size of the stored body.
//!
//! The times are a column of small numbers (`times`) and the texts are joined; each is a zstd frame, because
//! they compress differently. The frame of the texts uses a [`Dictionary`]: a short video repeats few of its
//! phrases, but most of them occur in other videos. A cold transcript cannot be sent as stored. A request for it
//! rebuilds the stored body (`body`), byte for byte, from the decoded segments.
//!
//! A cold transcript describes its encoding: the first byte is the codec, the second the dictionary. Two frames
//! follow: the times, then the texts. The texts begin with the rest of the transcript as JSON, followed by each
//! segment's text after a byte that never occurs in text. An unknown codec or dictionary is
//! [`ErrorKind::Unsupported`], and content that does not match its digest is [`ErrorKind::Corrupt`]: a different
//! text is never returned.
//!
//! [`ErrorKind::Corrupt`]: transcript_core::ErrorKind::Corrupt
//! [`ErrorKind::Unsupported`]: transcript_core::ErrorKind::Unsupported
//!
//! The module is public for programs that measure it or train dictionaries.

mod dictionary;
mod times;

use serde::{Deserialize, Serialize};
use tokio::runtime::Handle;
use transcript_core::{
    Error, Result,
    archive::content_digest,
    transcript::{LanguageTag, Segment, TrackInfo, TrackKind, Transcript},
    video::VideoId,
};
use zstd::{
    bulk::Compressor,
    zstd_safe::{find_frame_compressed_size, get_frame_content_size},
};

pub use dictionary::Dictionary;

use crate::{
    body::{EncodedBody, damaged, decompress_with, misplaced, words},
    codec,
};

/// The codec of new cold transcripts: times as a column, texts joined, two frames.
const COLUMN_CODEC: u8 = 1;
/// Precedes each segment's text. UTF-8 has no such byte.
const TEXT_MARKER: u8 = 0xFF;
/// The compression level: high, because no caller waits for compaction.
///
/// Level 22 makes nothing of a transcript's size any smaller.
const LEVEL: i32 = 19;
/// The longest column before compression, in bytes: more than any stored body has.
const LENGTH_MAX: usize = 64 << 20;

/// The transcript without its segments.
#[derive(Serialize, Deserialize)]
struct ColdHeader {
    video: String,
    #[serde(skip_serializing_if = "Option::is_none", default)]
    title: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none", default)]
    author: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none", default)]
    duration_ms: Option<u64>,
    language: String,
    kind: String,
    #[serde(skip_serializing_if = "Option::is_none", default)]
    name: Option<String>,
    original: bool,
    source: String,
}

/// Compresses transcripts for cold storage. It owns the compressor's memory, some megabytes.
pub struct Packer {
    times: Compressor<'static>,
    texts: Compressor<'static>,
    dictionary: Dictionary,
}

transcript_core::debug_fields!(Packer { dictionary });

impl Packer {
    /// Creates a packer that compresses with this dictionary.
    ///
    /// # Errors
    /// Only an error of the compressor.
    pub fn new(dictionary: Dictionary) -> Result<Self> {
        let texts = match dictionary {
            Dictionary::None => Compressor::new(LEVEL),
            dictionary => Compressor::with_dictionary(LEVEL, dictionary.bytes()),
        };
        let (times, mut texts) =
            (Compressor::new(LEVEL).map_err(compressor_error)?, texts.map_err(compressor_error)?);
        // The byte before the frames names the dictionary.
        texts.include_dictid(false).map_err(compressor_error)?;
        Ok(Self { times, texts, dictionary })
    }

    /// Encodes a transcript: some milliseconds for half an hour of speech.
    ///
    /// # Errors
    /// [`Invalid`](transcript_core::ErrorKind::Invalid) if the transcript exceeds the archive's limit.
    pub fn pack(&mut self, transcript: &Transcript) -> Result<Vec<u8>> {
        let times = times::write(&transcript.segments).ok_or_else(too_large)?;
        let texts = texts(transcript)?;
        if LENGTH_MAX < texts.len().max(times.len()) {
            return Err(too_large());
        }
        let mut bytes = vec![COLUMN_CODEC, self.dictionary.number()];
        bytes.extend(self.times.compress(&times).map_err(compressor_error)?);
        bytes.extend(self.texts.compress(&texts).map_err(compressor_error)?);
        Ok(bytes)
    }
}

/// A transcript's header and texts before compression, on which dictionaries train.
///
/// # Errors
/// Only an error of the JSON encoder, which no transcript causes.
pub fn texts(transcript: &Transcript) -> Result<Vec<u8>> {
    let track = &transcript.track;
    let header = ColdHeader {
        video: transcript.video.to_string(),
        title: transcript.title.clone(),
        author: transcript.author.clone(),
        duration_ms: transcript.duration_ms,
        language: track.language.as_str().to_owned(),
        kind: track.kind.as_str().to_owned(),
        name: track.name.clone(),
        original: track.original,
        source: transcript.source.clone(),
    };
    let mut bytes = codec::json(&header)?.into_bytes();
    for segment in &transcript.segments {
        bytes.push(TEXT_MARKER);
        bytes.extend_from_slice(segment.text.as_bytes());
    }
    Ok(bytes)
}

/// Decodes a transcript whose content has this digest. The times of its words are stored apart, also before compaction.
///
/// # Errors
/// [`ErrorKind::Corrupt`] if the bytes are damaged; [`ErrorKind::Unsupported`] if their codec or dictionary is of a
/// newer version.
///
/// [`ErrorKind::Corrupt`]: transcript_core::ErrorKind::Corrupt
/// [`ErrorKind::Unsupported`]: transcript_core::ErrorKind::Unsupported
pub fn unpack(bytes: &[u8], words: Option<&[u8]>, content_sha256: &[u8]) -> Result<Transcript> {
    let (&codec, rest) = bytes.split_first().ok_or_else(damaged)?;
    let (&number, frames) = rest.split_first().ok_or_else(damaged)?;
    if codec != COLUMN_CODEC {
        return Err(newer_version_error(format!("codec {codec}")));
    }
    let dictionary =
        Dictionary::from_number(number).ok_or_else(|| newer_version_error(format!("dictionary {number}")))?;
    let mut transcript = decode_columns(frames, dictionary).ok_or_else(damaged)?;
    if let Some(words) = words {
        words::unpack(words, &mut transcript.segments)?;
    }
    if content_digest(&transcript) == content_sha256 { Ok(transcript) } else { Err(damaged()) }
}

/// Rebuilds the stored body from a cold transcript, on a blocking thread because some are long.
///
/// # Errors
/// As [`unpack`]; also if the transcript belongs to another video.
pub(crate) async fn rebuild_body(
    video: VideoId,
    content_sha256: Vec<u8>,
    compact: Vec<u8>,
    words: Option<Vec<u8>>,
    runtime: &Handle,
) -> Result<EncodedBody> {
    let rebuilding = runtime.spawn_blocking(move || {
        let transcript = unpack(&compact, words.as_deref(), &content_sha256)?;
        match transcript.video == video {
            true => EncodedBody::pack_with(&transcript, words),
            false => Err(misplaced()),
        }
    });
    let rebuilt = rebuilding.await;
    rebuilt.map_err(|error| Error::unexpected(format!("unpacking a transcript failed: {error}"))).flatten()
}

fn decode_columns(frames: &[u8], dictionary: Dictionary) -> Option<Transcript> {
    let (times, texts) = frames.split_at_checked(find_frame_compressed_size(frames).ok()?)?;
    if find_frame_compressed_size(texts).ok()? != texts.len() {
        return None;
    }
    let times = times::read(&decompress(times, Dictionary::None)?)?;
    let texts = decompress(texts, dictionary)?;
    let mut parts = texts.split(|byte| *byte == TEXT_MARKER);
    let header: ColdHeader = serde_json::from_slice(parts.next()?).ok()?;
    let mut segments = Vec::with_capacity(times.len());
    for (start_ms, duration_ms) in times {
        let text = std::str::from_utf8(parts.next()?).ok()?.to_owned();
        segments.push(Segment::new(text, start_ms, duration_ms));
    }
    parts.next().is_none().then_some(())?;
    Some(Transcript {
        video: codec::video(&header.video).ok()?,
        title: header.title,
        author: header.author,
        duration_ms: header.duration_ms,
        track: TrackInfo {
            language: LanguageTag::from_canonical(header.language),
            kind: TrackKind::from_name(&header.kind)?,
            name: header.name,
            original: header.original,
        },
        source: header.source,
        segments,
    })
}

/// The content of one frame that records its length.
fn decompress(frame: &[u8], dictionary: Dictionary) -> Option<Vec<u8>> {
    let length = usize::try_from(get_frame_content_size(frame).ok()??).ok()?;
    if LENGTH_MAX < length {
        return None;
    }
    decompress_with(frame, length, dictionary.ready()).ok()
}

fn compressor_error(error: std::io::Error) -> Error {
    Error::unexpected(format!("a transcript cannot be compressed: {error}"))
}

#[cold]
fn too_large() -> Error {
    Error::invalid("the transcript is too large to be archived: at most 48 MiB")
}

#[cold]
fn newer_version_error(what: String) -> Error {
    let message = format!(
        "the stored data is damaged, or its encoding is of a newer version ({what}): use the version that compacted \
        it, or a newer one"
    );
    Error::unsupported(message)
}

#[cfg(test)]
mod tests;
