//! The stored body of a transcript: its compressed segments and a JSON header.
//!
//! The segments are the JSON list of a response, as one zstd frame. A client that accepts zstd receives the
//! frame's blocks as stored. On an automatic transcript of 50 minutes that takes 0.29 of the JSON; columns of
//! texts and times ([`crate::body_v1`]) took 0.21, but had to be decompressed, parsed, checked, serialised and
//! compressed again for every response. The header is a small JSON document, so any zstd and JSON tool can read
//! a whole body.
//!
//! A decoded body is checked against the digest in its row: a body that changed on disk is an error, never a
//! different text. A body that is sent without decoding is checked against a checksum of the stored bytes. The
//! checksum also covers the video, so a body stored under another video fails. The header ends with its own checksum,
//! which rows of earlier versions lack: there the whole body is decoded before its header is sent. In a column after
//! the segments it would cost SQLite another read of their last page.

pub(crate) mod words;

use std::{
    cell::RefCell,
    io,
    sync::{Arc, Mutex},
};

use bytes::Bytes;
use serde::{Deserialize, Serialize};
use transcript_core::{
    Error, Result,
    archive::{StoredBody, content_digest},
    body::segments,
    transcript::{LanguageTag, TrackInfo, TrackKind, Transcript, VideoDetails},
    video::VideoId,
};
use zstd::{
    bulk::{Compressor, Decompressor},
    dict::DecoderDictionary,
};

use crate::{codec, error::corrupt};

/// The version of this form; [`crate::body_v1`] is version 1.
const FORM_VERSION: u32 = 2;
/// The longest segments before compression, in bytes: the longest text, with room for the times.
const LENGTH_MAX: usize = 48 << 20;
/// The compression level: low, because a caller waits while a new transcript is compressed.
///
/// On the transcript above, level 3 took 3 % less space for twice the time, level 9 another 5 % for ten times that, and
/// level 19 another 5 % for two hundred times. Level 1 took 1 % more space, for the same time.
const LEVEL: i32 = 2;

/// Precedes the checksum in a header. JSON escapes quotes, so no text contains it.
const HEADER_CHECKSUM: &str = ",\"checksum\":";

thread_local! {
    /// Kept, because a new one for each transcript has its tables in fresh memory.
    static COMPRESSOR: RefCell<Option<Compressor<'static>>> = const { RefCell::new(None) };
}

/// The most decompressors that are kept. Each has 100 KB, too much for every thread of a caller.
const DECOMPRESSORS_MAX: usize = 4;

/// Kept, because creating one takes a tenth of the time of reading a transcript.
///
/// The lock is only tried: in a forked process, a thread that does not exist any more may hold it.
static DECOMPRESSORS: Mutex<Vec<Decompressor<'static>>> = Mutex::new(Vec::new());

/// An encoded transcript: compressed segments and a JSON header.
#[derive(Debug)]
pub(crate) struct EncodedBody {
    /// The digest of the content.
    pub(crate) content_sha256: Vec<u8>,
    /// The supplier.
    pub(crate) source: String,
    /// Length of the segments before compression, in bytes.
    pub(crate) length: u64,
    /// The header: the rest of the transcript as JSON, with its checksum as the last member.
    pub(crate) about: String,
    /// The compressed segments, shared with the bodies that are sent.
    pub(crate) segments: Bytes,
    /// The times of words, see [`words`]. `None` if there are none, or if they were not read.
    pub(crate) words: Option<Vec<u8>>,
}

/// The metadata of a transcript, in the column `about`.
#[derive(Serialize, Deserialize)]
struct BodyHeader {
    form: u32,
    video: String,
    title: Option<String>,
    author: Option<String>,
    duration_ms: Option<u64>,
    language: String,
    kind: String,
    name: Option<String>,
    original: bool,
}

impl EncodedBody {
    /// Serialises and compresses a transcript: a fraction of a millisecond for half an hour of speech.
    ///
    /// # Errors
    /// [`transcript_core::ErrorKind::Invalid`] when the transcript is larger than 48 MiB.
    pub(crate) fn pack(transcript: &Transcript) -> Result<Self> {
        Self::pack_with(transcript, words::pack(&transcript.segments)?)
    }

    /// As [`EncodedBody::pack`], with the words already encoded.
    pub(crate) fn pack_with(transcript: &Transcript, words: Option<Vec<u8>>) -> Result<Self> {
        let json = segments::write(&transcript.segments)?;
        if json.len() > LENGTH_MAX {
            return Err(Error::invalid("the transcript is too large to be archived: at most 48 MiB"));
        }
        let segments = compress(&json)
            .map_err(|error| Error::unexpected(format!("a transcript cannot be compressed: {error}")))?;
        let content_sha256 = content_digest(transcript);
        let header = codec::json(&BodyHeader::from_transcript(transcript))?;
        Ok(Self {
            about: with_checksum(&header, &content_sha256),
            content_sha256,
            source: transcript.source.clone(),
            length: json.len() as u64,
            segments: segments.into(),
            words,
        })
    }

    /// Stored size in bytes, with the words.
    pub(crate) fn bytes(&self) -> u64 {
        (self.segments.len() + self.about.len()) as u64 + self.words_bytes()
    }

    /// Stored size of the words in bytes.
    pub(crate) fn words_bytes(&self) -> u64 {
        self.words.as_ref().map_or(0, |words| words.len() as u64)
    }

    /// Whether the header has a valid checksum. It also covers the digest, so a header of another transcript fails.
    pub(crate) fn is_header_checked(&self) -> bool {
        let parts = self.about.rsplit_once(HEADER_CHECKSUM);
        parts.is_some_and(|(header, checksum)| {
            checksum.strip_suffix('}').and_then(|number| number.parse().ok())
                == Some(header_checksum(header, &self.content_sha256))
        })
    }

    /// The checksum to store with the body of this video: of the video, supplier, digest, length and segments.
    pub(crate) fn checksum(&self, video: &VideoId) -> u32 {
        let mut hasher = crc32fast::Hasher::new();
        for part in [video.platform().as_str(), video.id(), &self.source] {
            hasher.update(part.as_bytes());
            hasher.update(b"\n");
        }
        hasher.update(&self.content_sha256);
        hasher.update(&self.length.to_be_bytes());
        hasher.update(&self.segments);
        hasher.finalize()
    }

    /// The body as it is sent, with its checksum. The caller has checked the header.
    ///
    /// # Errors
    /// [`transcript_core::ErrorKind::Corrupt`] if the header does not decode.
    pub(crate) fn stored(&self, checksum: u32, details: Arc<VideoDetails>) -> Result<StoredBody> {
        let Self { content_sha256, source, length, segments, .. } = self;
        Ok(StoredBody {
            header: self.header()?,
            details,
            content_sha256: content_sha256.clone(),
            source: source.clone(),
            segments: segments.clone(),
            length: *length,
            checksum,
        })
    }

    /// The transcript without its segments. The caller has checked the header.
    ///
    /// # Errors
    /// As [`EncodedBody::stored`].
    pub(crate) fn header(&self) -> Result<Transcript> {
        let about: BodyHeader = serde_json::from_str(&self.about).map_err(|_| damaged())?;
        about.transcript(&self.source).ok_or_else(damaged)
    }

    /// The segments before compression.
    ///
    /// # Errors
    /// [`transcript_core::ErrorKind::Corrupt`] if they do not decompress, or exceed the stored length.
    pub(crate) fn json(&self) -> Result<Vec<u8>> {
        let length = usize::try_from(self.length).ok().filter(|length| *length <= LENGTH_MAX);
        decompress(&self.segments, length.ok_or_else(damaged)?).map_err(|_| damaged())
    }

    /// Decodes the transcript.
    ///
    /// # Errors
    /// [`transcript_core::ErrorKind::Corrupt`] if the body is damaged, or exceeds the stored length.
    pub(crate) fn unpack(&self) -> Result<Transcript> {
        let mut segments = segments::read(&self.json()?).ok_or_else(damaged)?;
        if let Some(words) = &self.words {
            words::unpack(words, &mut segments)?;
        }
        let transcript = Transcript { segments, ..self.header()? };
        if content_digest(&transcript) == self.content_sha256 { Ok(transcript) } else { Err(damaged()) }
    }
}

/// A header, which is a JSON object, with its checksum.
fn with_checksum(header: &str, content_sha256: &[u8]) -> String {
    let open = header.strip_suffix('}').unwrap_or(header);
    format!("{open}{HEADER_CHECKSUM}{}}}", header_checksum(open, content_sha256))
}

/// The checksum of a header without its end.
fn header_checksum(open: &str, content_sha256: &[u8]) -> u32 {
    let mut hasher = crc32fast::Hasher::new();
    hasher.update(content_sha256);
    hasher.update(open.as_bytes());
    hasher.finalize()
}

fn compress(json: &[u8]) -> io::Result<Vec<u8>> {
    COMPRESSOR.with_borrow_mut(|compressor| match compressor {
        Some(compressor) => compressor.compress(json),
        None => compressor.insert(Compressor::new(LEVEL)?).compress(json),
    })
}

/// The content of a frame, which has at most `length` bytes.
pub(crate) fn decompress(frame: &[u8], length: usize) -> io::Result<Vec<u8>> {
    decompress_with(frame, length, None)
}

/// As [`decompress`], for a frame with a dictionary.
pub(crate) fn decompress_with(
    frame: &[u8],
    length: usize,
    dictionary: Option<&'static DecoderDictionary<'static>>,
) -> io::Result<Vec<u8>> {
    let kept = DECOMPRESSORS.try_lock().ok().and_then(|mut kept| kept.pop());
    let mut decompressor = kept.unwrap_or_default();
    match dictionary {
        Some(dictionary) => decompressor.set_prepared_dictionary(dictionary)?,
        // The previous frame may have had one.
        None => decompressor.set_dictionary(&[])?,
    }
    let content = decompressor.decompress(frame, length);
    if let Ok(mut kept) = DECOMPRESSORS.try_lock()
        && kept.len() < DECOMPRESSORS_MAX
    {
        kept.push(decompressor);
    }
    content
}

/// The error for a body that does not decode.
#[cold]
pub(crate) fn damaged() -> Error {
    corrupt("the stored data is damaged")
}

/// The error for a body that decodes, but belongs to another video.
#[cold]
pub(crate) fn misplaced() -> Error {
    corrupt("the stored data belongs to another video")
}

impl BodyHeader {
    fn from_transcript(transcript: &Transcript) -> Self {
        let track = &transcript.track;
        Self {
            form: FORM_VERSION,
            video: transcript.video.to_string(),
            title: transcript.title.clone(),
            author: transcript.author.clone(),
            duration_ms: transcript.duration_ms,
            language: track.language.as_str().to_owned(),
            kind: track.kind.as_str().to_owned(),
            name: track.name.clone(),
            original: track.original,
        }
    }

    /// The transcript without its segments.
    fn transcript(self, source: &str) -> Option<Transcript> {
        if self.form != FORM_VERSION {
            return None;
        }
        Some(Transcript {
            video: codec::video(&self.video).ok()?,
            title: self.title,
            author: self.author,
            duration_ms: self.duration_ms,
            track: TrackInfo {
                language: LanguageTag::from_canonical(self.language),
                kind: TrackKind::from_name(&self.kind)?,
                name: self.name,
                original: self.original,
            },
            source: source.to_owned(),
            segments: Vec::new(),
        })
    }
}

#[cfg(test)]
pub(crate) mod tests {
    use transcript_core::{
        ErrorKind,
        transcript::Segment,
        video::{Platform, VideoId},
    };

    use super::*;

    /// A transcript with these segments, whose other fields are unusual.
    pub(crate) fn transcript(segments: Vec<Segment>) -> Transcript {
        Transcript {
            video: VideoId::new(Platform::YouTube, "aaaaaaaaaaa").unwrap(),
            title: Some("A \"title\"\u{0}\u{1F600}".to_owned()),
            author: None,
            duration_ms: Some(u64::MAX),
            track: TrackInfo {
                name: Some(String::new()),
                original: true,
                ..TrackInfo::new(LanguageTag::parse("zh-Hant").unwrap(), TrackKind::Generated)
            },
            source: "youtube-captions".to_owned(),
            segments,
        }
    }

    #[test]
    fn body_packed_unpacks_to_equal_transcript() {
        for segments in [
            vec![Segment::new("one", 0, 0)],
            vec![Segment::new("\u{2028}\n\\ </x>", 5, 7), Segment::new("", 5, 3_600_000_000)],
        ] {
            let transcript = transcript(segments);
            assert_eq!(EncodedBody::pack(&transcript).unwrap().unpack().unwrap(), transcript);
        }
    }

    #[test]
    fn body_packed_after_another_is_the_same() {
        let of = |text: &str| {
            transcript((0..400).map(|n| Segment::new(format!("{text} {n}"), n * 9, 8)).collect())
        };
        let pack = |text| EncodedBody::pack(&of(text)).unwrap().segments;
        // A cold transcript is packed again for each response, and its ETag depends on the bytes.
        let first = std::thread::spawn(move || EncodedBody::pack(&of("some words")).unwrap().segments)
            .join()
            .unwrap();
        pack("other words");
        assert_eq!(pack("some words"), first);
    }

    #[test]
    fn body_over_48_mib_is_rejected() {
        let large = transcript(vec![Segment::new("x".repeat(LENGTH_MAX), 0, 0)]);
        assert_eq!(EncodedBody::pack(&large).unwrap_err().kind(), ErrorKind::Invalid);
    }

    #[test]
    fn body_damaged_unpack_returns_corrupt() {
        let transcript = transcript((0..40).map(|n| Segment::new(format!("word {n}"), n * 9, 8)).collect());
        let check = |damage: &dyn Fn(&mut EncodedBody)| {
            let mut body = EncodedBody::pack(&transcript).unwrap();
            damage(&mut body);
            assert_eq!(body.unpack().unwrap_err().kind(), ErrorKind::Corrupt);
        };
        check(&|body| body.segments.clear());
        check(&|body| body.segments.truncate(body.segments.len() / 2));
        check(&|body| body.content_sha256[0] ^= 1);
        check(&|body| body.length -= 1);
        check(&|body| body.length = u64::MAX);
        check(&|body| body.source.push('s'));
        check(&|body| body.about = body.about.replace("title", "turtle"));
        check(&|body| body.about = body.about.replace("\"form\":2", "\"form\":3"));
        check(&|body| body.segments = zstd::bulk::compress(b"[]", 1).unwrap().into());
        let other = self::transcript(vec![Segment::new("others", 0, 1)]);
        let other = EncodedBody::pack(&other).unwrap();
        check(&|body| body.segments.clone_from(&other.segments));
    }

    #[test]
    fn body_damaged_changes_checksum() {
        let transcript = transcript((0..40).map(|n| Segment::new(format!("word {n}"), n * 9, 8)).collect());
        let video = &transcript.video;
        let whole = EncodedBody::pack(&transcript).unwrap();
        let checksum = whole.checksum(video);
        let check = |damage: &dyn Fn(&mut EncodedBody)| {
            let mut body = EncodedBody::pack(&transcript).unwrap();
            damage(&mut body);
            assert_ne!(body.checksum(video), checksum);
        };
        for index in 0..whole.segments.len() {
            check(&|body| {
                let mut segments = body.segments.to_vec();
                segments[index] ^= 0x10;
                body.segments = segments.into();
            });
        }
        check(&|body| body.content_sha256[31] ^= 1);
        check(&|body| body.length += 1);
        check(&|body| body.source.push('s'));
        let other = VideoId::new(Platform::YouTube, "bbbbbbbbbbb").unwrap();
        assert_ne!(whole.checksum(&other), checksum);
    }
}
