//! The stored form of a transcript: one JSON document, in columns, compressed with zstd.
//!
//! A body stands by itself: everything that a reader of the transcript can see is in it, with the version
//! of its form, and any zstd and JSON tool can read it. Texts, starts and lengths are kept as columns, and
//! a start as the distance from the one before. Measured on an automatic transcript of 50 minutes, that
//! takes 0.21 of the segments' own JSON, against 0.28 for compressed rows; a binary form would take
//! another tenth off, and would need a reader of its own.
//!
//! What is read back is checked against the digest that is stored beside it: a body that changed on disk
//! is an error, never other words.

use serde::{Deserialize, Serialize};
use transcript_core::{
    Error, Result,
    archive::content_digest,
    transcript::{LanguageTag, Segment, TrackInfo, TrackKind, Transcript},
};

use crate::{codec, error::corrupt};

/// The only form so far.
const FORM: u32 = 1;
/// The largest body before compression, in bytes: some 500 hours of speech.
const LENGTH_MAX: usize = 32 << 20;
/// Bodies are compressed once and read often. On the transcript above, level 9 took 7 % less than 3 did,
/// and level 19 another 5 %, for ten times the time.
const LEVEL: i32 = 9;

/// A transcript as it is stored.
#[derive(Debug)]
pub(crate) struct Body {
    /// The digest of the content.
    pub(crate) content_sha256: Vec<u8>,
    /// How many bytes the document had before compression.
    pub(crate) length: u64,
    /// The compressed document.
    pub(crate) bytes: Vec<u8>,
}

#[derive(Serialize, Deserialize)]
struct Document {
    form: u32,
    video: String,
    title: Option<String>,
    author: Option<String>,
    duration_ms: Option<u64>,
    language: String,
    kind: String,
    name: Option<String>,
    original: bool,
    source: String,
    /// Each start in milliseconds, less the one before.
    starts: Vec<i64>,
    /// Each length in milliseconds.
    durations: Vec<u64>,
    texts: Vec<String>,
}

impl Body {
    /// Serialises and compresses a transcript. It takes some milliseconds.
    ///
    /// # Errors
    /// [`transcript_core::ErrorKind::Invalid`] when the transcript is larger than 32 MiB.
    pub(crate) fn pack(transcript: &Transcript) -> Result<Self> {
        let document = codec::json(&Document::of(transcript)?)?;
        if document.len() > LENGTH_MAX {
            return Err(Error::invalid("the transcript is too large to be archived: at most 32 MiB"));
        }
        let bytes = zstd::bulk::compress(document.as_bytes(), LEVEL)
            .map_err(|error| Error::unexpected(format!("a transcript cannot be compressed: {error}")))?;
        let length = document.len() as u64;
        Ok(Self { content_sha256: content_digest(transcript), length, bytes })
    }

    /// Reads a transcript back.
    ///
    /// # Errors
    /// [`transcript_core::ErrorKind::Corrupt`] when the body is damaged in any way, or longer than it says.
    pub(crate) fn unpack(&self) -> Result<Transcript> {
        let damaged = || corrupt("an archived transcript is damaged: delete it, and it is fetched again");
        let length = usize::try_from(self.length).ok().filter(|length| *length <= LENGTH_MAX);
        let document = zstd::bulk::decompress(&self.bytes, length.ok_or_else(damaged)?);
        let document: Document =
            serde_json::from_slice(&document.map_err(|_| damaged())?).map_err(|_| damaged())?;
        let transcript = document.transcript().ok_or_else(damaged)?;
        if content_digest(&transcript) == self.content_sha256 { Ok(transcript) } else { Err(damaged()) }
    }
}

impl Document {
    fn of(transcript: &Transcript) -> Result<Self> {
        let mut before = 0;
        let mut starts = Vec::with_capacity(transcript.segments.len());
        for segment in &transcript.segments {
            let start = codec::column(segment.start_ms)?;
            // Both are at least 0, so their difference fits.
            starts.push(start - before);
            before = start;
        }
        let track = &transcript.track;
        Ok(Self {
            form: FORM,
            video: transcript.video.to_string(),
            title: transcript.title.clone(),
            author: transcript.author.clone(),
            duration_ms: transcript.duration_ms,
            language: track.language.as_str().to_owned(),
            kind: track.kind.as_str().to_owned(),
            name: track.name.clone(),
            original: track.original,
            source: transcript.source.clone(),
            starts,
            durations: transcript.segments.iter().map(|segment| segment.duration_ms).collect(),
            texts: transcript.segments.iter().map(|segment| segment.text.clone()).collect(),
        })
    }

    fn transcript(self) -> Option<Transcript> {
        let count = self.texts.len();
        if self.form != FORM || self.starts.len() != count || self.durations.len() != count {
            return None;
        }
        let mut start = 0_i64;
        let mut segments = Vec::with_capacity(count);
        for ((text, distance), duration_ms) in self.texts.into_iter().zip(self.starts).zip(self.durations) {
            start = start.checked_add(distance)?;
            segments.push(Segment { text, start_ms: start.try_into().ok()?, duration_ms });
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
            source: self.source,
            segments,
        })
    }
}

#[cfg(test)]
mod tests {
    use transcript_core::{
        ErrorKind,
        video::{Platform, VideoId},
    };

    use super::*;

    fn transcript(segments: Vec<Segment>) -> Transcript {
        Transcript {
            video: VideoId::new(Platform::VideoSite, "aaaaaaaaaaa").unwrap(),
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
    fn a_body_reads_back_to_the_last_character() {
        for segments in [
            vec![Segment::new("one", 0, 0)],
            vec![Segment::new("\u{2028}\n\\ </x>", 5, 7), Segment::new("", 5, u64::MAX)],
            // Out of order, as no supplier should give them.
            vec![Segment::new("late", i64::MAX as u64, 1), Segment::new("early", 0, 1)],
        ] {
            let transcript = transcript(segments);
            assert_eq!(Body::pack(&transcript).unwrap().unpack().unwrap(), transcript);
        }
    }

    #[test]
    fn what_cannot_be_stored_is_refused() {
        let far = transcript(vec![Segment::new("far", i64::MAX as u64 + 1, 0)]);
        assert_eq!(Body::pack(&far).unwrap_err().kind(), ErrorKind::Invalid);
        let large = transcript(vec![Segment::new("x".repeat(LENGTH_MAX), 0, 0)]);
        assert_eq!(Body::pack(&large).unwrap_err().kind(), ErrorKind::Invalid);
    }

    #[test]
    fn a_damaged_body_is_an_error_never_other_words() {
        let transcript = transcript((0..40).map(|n| Segment::new(format!("word {n}"), n * 9, 8)).collect());
        let check = |damage: &dyn Fn(&mut Body)| {
            let mut body = Body::pack(&transcript).unwrap();
            damage(&mut body);
            assert_eq!(body.unpack().unwrap_err().kind(), ErrorKind::Corrupt);
        };
        check(&|body| body.bytes.clear());
        check(&|body| body.bytes.truncate(body.bytes.len() / 2));
        check(&|body| body.content_sha256[0] ^= 1);
        check(&|body| body.length -= 1);
        check(&|body| body.length = u64::MAX);
        check(&|body| body.bytes = zstd::bulk::compress(b"{}", 1).unwrap());
        // Some bits of a zstd frame mean nothing: whatever still reads must be the very same words.
        let whole = Body::pack(&transcript).unwrap();
        for place in 0..whole.bytes.len() {
            let mut bytes = whole.bytes.clone();
            bytes[place] ^= 0x10;
            let damaged = Body { bytes, content_sha256: whole.content_sha256.clone(), ..whole };
            match damaged.unpack() {
                Ok(read) => assert!(read == transcript, "other words, at byte {place}"),
                Err(error) => assert_eq!(error.kind(), ErrorKind::Corrupt),
            }
        }
        let other = self::transcript(vec![Segment::new("others", 0, 1)]);
        let other = Body::pack(&other).unwrap();
        check(&|body| body.bytes.clone_from(&other.bytes));
    }
}
