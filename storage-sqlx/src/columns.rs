//! The first stored form of a transcript: one JSON document, in columns, compressed with zstd. Nothing is
//! written in it any more; what was archived before [`crate::body`] is read from it for ever.
//!
//! Texts, starts and lengths are columns, and a start is the distance from the one before. What is read back
//! is checked against the digest that is stored beside it.

use serde::Deserialize;
use transcript_core::{
    Result,
    archive::content_digest,
    transcript::{LanguageTag, Segment, TrackInfo, TrackKind, Transcript},
};

use crate::{body::damaged, codec};

/// The version of this form.
const FORM: u32 = 1;
/// The largest document before compression, in bytes.
const LENGTH_MAX: usize = 32 << 20;

/// A transcript as it was stored.
#[derive(Debug)]
pub(crate) struct Columns {
    /// The digest of the content.
    pub(crate) content_sha256: Vec<u8>,
    /// How many bytes the document had before compression.
    pub(crate) length: u64,
    /// The compressed document.
    pub(crate) bytes: Vec<u8>,
}

#[derive(Deserialize)]
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

impl Columns {
    /// Reads a transcript back.
    ///
    /// # Errors
    /// [`transcript_core::ErrorKind::Corrupt`] when the document is damaged in any way, or longer than it
    /// says.
    pub(crate) fn unpack(&self) -> Result<Transcript> {
        let length = usize::try_from(self.length).ok().filter(|length| *length <= LENGTH_MAX);
        let document = zstd::bulk::decompress(&self.bytes, length.ok_or_else(damaged)?);
        let document: Document =
            serde_json::from_slice(&document.map_err(|_| damaged())?).map_err(|_| damaged())?;
        let transcript = document.transcript().ok_or_else(damaged)?;
        if content_digest(&transcript) == self.content_sha256 { Ok(transcript) } else { Err(damaged()) }
    }
}

impl Document {
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

    /// A document as it was written, and the transcript in it.
    fn written() -> (String, Transcript) {
        let document = r#"{"form":1,"video":"video_site/aaaaaaaaaaa","title":"A \"title\"\u0000","author":null,
            "duration_ms":61001,"language":"zh-Hant","kind":"generated","name":"","original":true,
            "source":"youtube-captions","starts":[40,2571,0],"durations":[2570,1,0],
            "texts":["one","\u2028\n","three"]}"#;
        let transcript = Transcript {
            video: VideoId::new(Platform::VideoSite, "aaaaaaaaaaa").unwrap(),
            title: Some("A \"title\"\u{0}".to_owned()),
            author: None,
            duration_ms: Some(61_001),
            track: TrackInfo {
                name: Some(String::new()),
                original: true,
                ..TrackInfo::new(LanguageTag::parse("zh-Hant").unwrap(), TrackKind::Generated)
            },
            source: "youtube-captions".to_owned(),
            segments: vec![
                Segment::new("one", 40, 2_570),
                Segment::new("\u{2028}\n", 2_611, 1),
                Segment::new("three", 2_611, 0),
            ],
        };
        (document.to_owned(), transcript)
    }

    fn columns(document: &str) -> Columns {
        Columns {
            content_sha256: content_digest(&written().1),
            length: document.len() as u64,
            bytes: zstd::bulk::compress(document.as_bytes(), 9).unwrap(),
        }
    }

    #[test]
    fn a_document_is_read_to_the_last_character() {
        let (document, transcript) = written();
        assert_eq!(columns(&document).unpack().unwrap(), transcript);
    }

    #[test]
    fn a_damaged_document_is_an_error_never_other_words() {
        let (document, transcript) = written();
        let check = |damage: &dyn Fn(&mut Columns)| {
            let mut columns = columns(&document);
            damage(&mut columns);
            assert_eq!(columns.unpack().unwrap_err().kind(), ErrorKind::Corrupt);
        };
        check(&|columns| columns.bytes.clear());
        check(&|columns| columns.bytes.truncate(columns.bytes.len() / 2));
        check(&|columns| columns.content_sha256[0] ^= 1);
        check(&|columns| columns.length -= 1);
        check(&|columns| columns.length = u64::MAX);
        check(&|columns| columns.bytes = zstd::bulk::compress(b"{}", 1).unwrap());
        for (from, to) in [("[40,", "[-41,"), ("2570,1,0", "2570,1"), ("\"form\":1", "\"form\":2")] {
            check(&|columns| *columns = self::columns(&document.replace(from, to)));
        }
        // Some bits of a zstd frame mean nothing: whatever still reads must be the very same words.
        let whole = columns(&document);
        for place in 0..whole.bytes.len() {
            let mut bytes = whole.bytes.clone();
            bytes[place] ^= 0x10;
            let damaged = Columns { bytes, content_sha256: whole.content_sha256.clone(), ..whole };
            match damaged.unpack() {
                Ok(read) => assert!(read == transcript, "other words, at byte {place}"),
                Err(error) => assert_eq!(error.kind(), ErrorKind::Corrupt),
            }
        }
    }
}
