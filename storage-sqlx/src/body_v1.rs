//! The first stored form of a transcript: one zstd-compressed JSON document of columns. Read-only.
//!
//! New transcripts use [`crate::body`]; transcripts archived before it are still read from this form. Texts,
//! starts and lengths are columns, and a start is the distance from the previous one. A decoded document is
//! checked against the digest in its row.

use serde::Deserialize;
use transcript_core::{
    Result,
    archive::content_digest,
    transcript::{LanguageTag, Segment, TrackInfo, TrackKind, Transcript},
};

use crate::{
    body::{damaged, decompress},
    codec,
};

/// The version of this form.
const FORM: u32 = 1;
/// The largest document before compression, in bytes.
const LENGTH_MAX: usize = 32 << 20;

/// A transcript in the first stored form.
#[derive(Debug)]
pub(crate) struct BodyV1 {
    /// The digest of the content.
    pub(crate) content_sha256: Vec<u8>,
    /// Length of the document before compression, in bytes.
    pub(crate) length: u64,
    /// The compressed document.
    pub(crate) bytes: Vec<u8>,
}

/// The decompressed JSON document: metadata, and one column per segment field.
#[derive(Deserialize)]
struct BodyDocument {
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
    /// Each start in milliseconds, relative to the previous one.
    starts: Vec<i64>,
    /// Each length in milliseconds.
    durations: Vec<u64>,
    texts: Vec<String>,
}

impl BodyV1 {
    /// Decodes the transcript.
    ///
    /// # Errors
    /// [`transcript_core::ErrorKind::Corrupt`] if the document is damaged, or exceeds the stored length.
    pub(crate) fn unpack(&self) -> Result<Transcript> {
        let length = usize::try_from(self.length).ok().filter(|length| *length <= LENGTH_MAX);
        let document = decompress(&self.bytes, length.ok_or_else(damaged)?);
        let document: BodyDocument =
            serde_json::from_slice(&document.map_err(|_| damaged())?).map_err(|_| damaged())?;
        let transcript = document.transcript().ok_or_else(damaged)?;
        if content_digest(&transcript) == self.content_sha256 { Ok(transcript) } else { Err(damaged()) }
    }
}

impl BodyDocument {
    fn transcript(self) -> Option<Transcript> {
        let count = self.texts.len();
        if self.form != FORM || self.starts.len() != count || self.durations.len() != count {
            return None;
        }
        let mut start = 0_i64;
        let mut segments = Vec::with_capacity(count);
        for ((text, distance), duration_ms) in self.texts.into_iter().zip(self.starts).zip(self.durations) {
            start = start.checked_add(distance)?;
            segments.push(Segment::new(text, start.try_into().ok()?, duration_ms));
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

    /// A document as it was stored, and its transcript.
    fn sample_document() -> (String, Transcript) {
        let document = r#"{"form":1,"video":"video_site/aaaaaaaaaaa","title":"A \"title\"\u0000","author":null,
            "duration_ms":61001,"language":"zh-Hant","kind":"generated","name":"","original":true,
            "source":"youtube-captions","starts":[40,2571,0],"durations":[2570,1,0],
            "texts":["one","\u2028\n","three"]}"#;
        let transcript = Transcript {
            video: VideoId::new(Platform::YouTube, "aaaaaaaaaaa").unwrap(),
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

    fn encode_v1(document: &str) -> BodyV1 {
        BodyV1 {
            content_sha256: content_digest(&sample_document().1),
            length: document.len() as u64,
            bytes: zstd::bulk::compress(document.as_bytes(), 9).unwrap(),
        }
    }

    #[test]
    fn document_v1_unpacks_to_equal_transcript() {
        let (document, transcript) = sample_document();
        assert_eq!(encode_v1(&document).unpack().unwrap(), transcript);
    }

    #[test]
    fn document_v1_damaged_returns_corrupt() {
        let (document, transcript) = sample_document();
        let check = |damage: &dyn Fn(&mut BodyV1)| {
            let mut body = encode_v1(&document);
            damage(&mut body);
            assert_eq!(body.unpack().unwrap_err().kind(), ErrorKind::Corrupt);
        };
        check(&|body| body.bytes.clear());
        check(&|body| body.bytes.truncate(body.bytes.len() / 2));
        check(&|body| body.content_sha256[0] ^= 1);
        check(&|body| body.length -= 1);
        check(&|body| body.length = u64::MAX);
        check(&|body| body.bytes = zstd::bulk::compress(b"{}", 1).unwrap());
        for (from, to) in [("[40,", "[-41,"), ("2570,1,0", "2570,1"), ("\"form\":1", "\"form\":2")] {
            check(&|body| *body = encode_v1(&document.replace(from, to)));
        }
        // Some bits of a zstd frame are unused: a frame that still decodes must have the same text.
        let whole = encode_v1(&document);
        for index in 0..whole.bytes.len() {
            let mut bytes = whole.bytes.clone();
            bytes[index] ^= 0x10;
            let damaged = BodyV1 { bytes, content_sha256: whole.content_sha256.clone(), ..whole };
            match damaged.unpack() {
                Ok(read) => assert!(read == transcript, "different text at byte {index}"),
                Err(error) => assert_eq!(error.kind(), ErrorKind::Corrupt),
            }
        }
    }
}
