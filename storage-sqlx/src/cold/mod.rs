//! The compact form of a transcript: some two thirds of the form that is sent, for what is hardly asked for.
//!
//! The times are a column of small numbers (`times`), the texts are joined, and each is a zstd frame of its own,
//! since what compresses one well does not compress the other. The texts' frame is compressed with a
//! [`Dictionary`]: a short video has hardly said anything twice, but most of what it says was said before. What it
//! costs is that nothing of it can be sent as it lies there; so a transcript that is asked for is brought
//! back into the form of `body`, to the same bytes, since it is made of the same segments in the same way.
//!
//! A compact transcript says by itself how it is read: its first byte is the codec, its second the dictionary.
//! Behind them are the frame of the times, and that of the texts: the rest of the transcript as JSON, and then
//! each segment's text behind a byte that no text has. One of a codec or a dictionary that this program does not know is
//! [`ErrorKind::Unsupported`], and whatever does not give back what its digest says is
//! [`ErrorKind::Corrupt`]: there are never other words.
//!
//! The module is public for programs that measure it or train dictionaries.

pub(crate) mod compaction;
mod dictionary;
mod times;

use serde::{Deserialize, Serialize};
use tokio::runtime::Handle;
use transcript_core::{
    Error, ErrorKind, Result, Retry,
    archive::{StoredBody, content_digest},
    transcript::{LanguageTag, Segment, TrackInfo, TrackKind, Transcript},
    video::VideoId,
};
use zstd::{
    bulk::{Compressor, Decompressor},
    zstd_safe::{find_frame_compressed_size, get_frame_content_size},
};

pub use dictionary::Dictionary;

use crate::{
    body::{Body, damaged, misplaced},
    codec,
};

/// The codec that is written: times as a column, texts joined, two frames.
const COLUMNS: u8 = 1;
/// Before each segment's text. UTF-8 has no such byte.
const BEFORE_TEXT: u8 = 0xFF;
/// Nobody waits for it. Level 22 makes nothing of a transcript's size any smaller.
const LEVEL: i32 = 19;
/// The longest column before compression, in bytes: more than a body in the form that is sent.
const LENGTH_MAX: usize = 64 << 20;

/// The transcript but its segments.
#[derive(Serialize, Deserialize)]
struct About {
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

/// Brings transcripts into the compact form. It holds the memory that the compressor needs, some megabytes.
pub struct Packer {
    times: Compressor<'static>,
    texts: Compressor<'static>,
    dictionary: Dictionary,
}

impl std::fmt::Debug for Packer {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Packer").field("dictionary", &self.dictionary).finish_non_exhaustive()
    }
}

impl Packer {
    /// One that compresses with this dictionary.
    ///
    /// # Errors
    /// None; one that the compressor has.
    pub fn new(dictionary: Dictionary) -> Result<Self> {
        let texts = match dictionary {
            Dictionary::None => Compressor::new(LEVEL),
            dictionary => Compressor::with_dictionary(LEVEL, dictionary.bytes()),
        };
        let (times, mut texts) = (Compressor::new(LEVEL).map_err(compressor)?, texts.map_err(compressor)?);
        // Which dictionary it is, the byte before the frames says.
        texts.include_dictid(false).map_err(compressor)?;
        Ok(Self { times, texts, dictionary })
    }

    /// The compact form of a transcript: some milliseconds for half an hour of speech.
    ///
    /// # Errors
    /// [`ErrorKind::Invalid`] when the transcript is larger than any that is archived.
    pub fn pack(&mut self, transcript: &Transcript) -> Result<Vec<u8>> {
        let times = times::write(&transcript.segments).ok_or_else(too_large)?;
        let texts = texts(transcript)?;
        if LENGTH_MAX < texts.len().max(times.len()) {
            return Err(too_large());
        }
        let mut bytes = vec![COLUMNS, self.dictionary.number()];
        bytes.extend(self.times.compress(&times).map_err(compressor)?);
        bytes.extend(self.texts.compress(&texts).map_err(compressor)?);
        Ok(bytes)
    }
}

/// What a dictionary is for: the rest of a transcript and the texts of its segments, as they are compressed.
///
/// # Errors
/// None that a transcript can cause.
pub fn texts(transcript: &Transcript) -> Result<Vec<u8>> {
    let track = &transcript.track;
    let about = About {
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
    let mut bytes = codec::json(&about)?.into_bytes();
    for segment in &transcript.segments {
        bytes.push(BEFORE_TEXT);
        bytes.extend_from_slice(segment.text.as_bytes());
    }
    Ok(bytes)
}

/// Reads a transcript back whose content has this digest.
///
/// # Errors
/// [`ErrorKind::Corrupt`] when the bytes are damaged in any way; [`ErrorKind::Unsupported`] when they are of a codec
/// or dictionary of a newer version.
pub fn unpack(bytes: &[u8], content_sha256: &[u8]) -> Result<Transcript> {
    let (&codec, rest) = bytes.split_first().ok_or_else(damaged)?;
    let (&number, frames) = rest.split_first().ok_or_else(damaged)?;
    if codec != COLUMNS {
        return Err(newer(format!("codec {codec}")));
    }
    let dictionary = Dictionary::of(number).ok_or_else(|| newer(format!("dictionary {number}")))?;
    let transcript = columns(frames, dictionary).ok_or_else(damaged)?;
    if content_digest(&transcript) == content_sha256 { Ok(transcript) } else { Err(damaged()) }
}

/// A body as it is sent, made of its compact form; away from the threads that serve, since some are long.
///
/// # Errors
/// As [`unpack`]; also when the transcript is another video's.
pub(crate) async fn thawed(
    video: VideoId,
    content_sha256: Vec<u8>,
    compact: Vec<u8>,
    runtime: &Handle,
) -> Result<StoredBody> {
    let thawing = runtime.spawn_blocking(move || {
        let transcript = unpack(&compact, &content_sha256)?;
        if transcript.video == video { Ok(Body::pack(&transcript)?.stored(&video)) } else { Err(misplaced()) }
    });
    let thawed = thawing.await;
    thawed.map_err(|error| Error::unexpected(format!("unpacking a transcript failed: {error}"))).flatten()
}

fn columns(frames: &[u8], dictionary: Dictionary) -> Option<Transcript> {
    let (times, texts) = frames.split_at_checked(find_frame_compressed_size(frames).ok()?)?;
    if find_frame_compressed_size(texts).ok()? != texts.len() {
        return None;
    }
    let times = times::read(&decompressed(times, Dictionary::None)?)?;
    let texts = decompressed(texts, dictionary)?;
    let mut parts = texts.split(|byte| *byte == BEFORE_TEXT);
    let about: About = serde_json::from_slice(parts.next()?).ok()?;
    let mut segments = Vec::with_capacity(times.len());
    for (start_ms, duration_ms) in times {
        let text = std::str::from_utf8(parts.next()?).ok()?.to_owned();
        segments.push(Segment { text, start_ms, duration_ms });
    }
    parts.next().is_none().then_some(())?;
    Some(Transcript {
        video: codec::video(&about.video).ok()?,
        title: about.title,
        author: about.author,
        duration_ms: about.duration_ms,
        track: TrackInfo {
            language: LanguageTag::from_canonical(about.language),
            kind: TrackKind::from_name(&about.kind)?,
            name: about.name,
            original: about.original,
        },
        source: about.source,
        segments,
    })
}

/// The content of one frame, which says how long it is.
fn decompressed(frame: &[u8], dictionary: Dictionary) -> Option<Vec<u8>> {
    let length = usize::try_from(get_frame_content_size(frame).ok()??).ok()?;
    if LENGTH_MAX < length {
        return None;
    }
    let mut decompressor = match dictionary.ready() {
        Some(dictionary) => Decompressor::with_prepared_dictionary(dictionary),
        None => Decompressor::new(),
    };
    decompressor.as_mut().ok()?.decompress(frame, length).ok()
}

fn compressor(error: std::io::Error) -> Error {
    Error::unexpected(format!("a transcript cannot be compressed: {error}"))
}

#[cold]
fn too_large() -> Error {
    Error::invalid("the transcript is too large to be archived: at most 48 MiB")
}

#[cold]
fn newer(what: String) -> Error {
    let message = format!(
        "an archived transcript is in a compact form that this version cannot read ({what}): use the version that \
        compacted it, or a newer one"
    );
    Error::new(ErrorKind::Unsupported, Retry::Never, message)
}

#[cfg(test)]
mod tests;
