//! The stored form of a transcript: its segments as they are sent, and beside them the rest.
//!
//! The segments are the JSON list that stands in an answer, as one zstd frame: whoever accepts zstd is sent
//! the frame's blocks as they lie in the database. On an automatic transcript of 50 minutes that takes 0.28
//! of the JSON; columns of texts and times ([`crate::columns`]) took 0.21, and had to be decompressed, read,
//! checked, written and compressed again before every answer. The rest is a small JSON document, so any
//! zstd and JSON tool can read it all.
//!
//! What is read back is checked against the digest that is stored beside it: a body that changed on disk
//! is an error, never other words. Where a body is sent unread, a checksum of the stored bytes tells, which
//! also covers the video: a body in another one's place does not have it.

use serde::{Deserialize, Serialize};
use transcript_core::{
    Error, Result,
    archive::{StoredBody, content_digest},
    transcript::{LanguageTag, TrackInfo, TrackKind, Transcript},
    video::VideoId,
    wire::segments,
};

use crate::{codec, error::corrupt};

/// The form after [`crate::columns`].
const FORM: u32 = 2;
/// The longest segments before compression, in bytes: as much text as a transcript may have, with room for
/// the times.
const LENGTH_MAX: usize = 48 << 20;
/// A body is compressed while somebody waits for their transcript. On the transcript above, level 9 took
/// 5 % less than 3 does, and level 19 another 5 %, for ten and two hundred times the time.
const LEVEL: i32 = 3;

/// A transcript as it is stored.
#[derive(Debug)]
pub(crate) struct Body {
    /// The digest of the content.
    pub(crate) content_sha256: Vec<u8>,
    /// The supplier.
    pub(crate) source: String,
    /// How many bytes the segments had before compression.
    pub(crate) length: u64,
    /// The rest of the transcript as JSON.
    pub(crate) about: String,
    /// The compressed segments.
    pub(crate) segments: Vec<u8>,
}

#[derive(Serialize, Deserialize)]
struct About {
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

impl Body {
    /// Serialises and compresses a transcript. It takes a fraction of a millisecond for half an hour of speech.
    ///
    /// # Errors
    /// [`transcript_core::ErrorKind::Invalid`] when the transcript is larger than 48 MiB.
    pub(crate) fn pack(transcript: &Transcript) -> Result<Self> {
        let json = segments::write(&transcript.segments)?;
        if json.len() > LENGTH_MAX {
            return Err(Error::invalid("the transcript is too large to be archived: at most 48 MiB"));
        }
        let segments = zstd::bulk::compress(&json, LEVEL)
            .map_err(|error| Error::unexpected(format!("a transcript cannot be compressed: {error}")))?;
        Ok(Self {
            content_sha256: content_digest(transcript),
            source: transcript.source.clone(),
            length: json.len() as u64,
            about: codec::json(&About::of(transcript))?,
            segments,
        })
    }

    /// How many bytes it takes.
    pub(crate) fn bytes(&self) -> u64 {
        (self.segments.len() + self.about.len()) as u64
    }

    /// The checksum that is stored beside it.
    pub(crate) fn checksum(&self, video: &VideoId) -> u32 {
        checksum(video, &self.source, &self.content_sha256, self.length, &self.segments)
    }

    /// The same as whoever sends it takes it.
    pub(crate) fn stored(self, video: &VideoId) -> StoredBody {
        let checksum = self.checksum(video);
        let Self { content_sha256, source, length, segments, .. } = self;
        StoredBody { content_sha256, source, segments: segments.into(), length, checksum }
    }

    /// The segments before compression.
    ///
    /// # Errors
    /// [`transcript_core::ErrorKind::Corrupt`] when they do not decompress, or are longer than they say.
    pub(crate) fn json(&self) -> Result<Vec<u8>> {
        let length = usize::try_from(self.length).ok().filter(|length| *length <= LENGTH_MAX);
        zstd::bulk::decompress(&self.segments, length.ok_or_else(damaged)?).map_err(|_| damaged())
    }

    /// Reads a transcript back.
    ///
    /// # Errors
    /// [`transcript_core::ErrorKind::Corrupt`] when the body is damaged in any way, or longer than it says.
    pub(crate) fn unpack(&self) -> Result<Transcript> {
        let segments = segments::read(&self.json()?).ok_or_else(damaged)?;
        let about: About = serde_json::from_str(&self.about).map_err(|_| damaged())?;
        let transcript = about.transcript(&self.source).ok_or_else(damaged)?;
        let transcript = Transcript { segments, ..transcript };
        if content_digest(&transcript) == self.content_sha256 { Ok(transcript) } else { Err(damaged()) }
    }
}

/// What is sent of a stored body, when its checksum is the one that is stored beside it.
///
/// # Errors
/// [`transcript_core::ErrorKind::Corrupt`] when it is another one.
pub(crate) fn sent(
    video: &VideoId,
    source: String,
    content_sha256: Vec<u8>,
    length: u64,
    segments: Vec<u8>,
    stored: u64,
) -> Result<StoredBody> {
    let checksum = checksum(video, &source, &content_sha256, length, &segments);
    if u64::from(checksum) != stored {
        return Err(damaged());
    }
    Ok(StoredBody { content_sha256, source, segments: segments.into(), length, checksum })
}

/// A checksum over all that an answer is made of.
fn checksum(video: &VideoId, source: &str, content_sha256: &[u8], length: u64, segments: &[u8]) -> u32 {
    let mut sum = crc32fast::Hasher::new();
    for part in [video.platform().as_str(), video.id(), source] {
        sum.update(part.as_bytes());
        sum.update(b"\n");
    }
    sum.update(content_sha256);
    sum.update(&length.to_be_bytes());
    sum.update(segments);
    sum.finalize()
}

/// What is said of a body that does not read back.
#[cold]
pub(crate) fn damaged() -> Error {
    corrupt("an archived transcript is damaged: delete it, and it is fetched again")
}

/// What is said of one that reads back, but is of another video than it lies under.
#[cold]
pub(crate) fn misplaced() -> Error {
    corrupt("a transcript lies in the place of another video's")
}

impl About {
    fn of(transcript: &Transcript) -> Self {
        let track = &transcript.track;
        Self {
            form: FORM,
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

    /// The transcript, still without segments.
    fn transcript(self, source: &str) -> Option<Transcript> {
        if self.form != FORM {
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
mod tests {
    use transcript_core::{
        ErrorKind,
        transcript::Segment,
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
            vec![Segment::new("\u{2028}\n\\ </x>", 5, 7), Segment::new("", 5, 3_600_000_000)],
        ] {
            let transcript = transcript(segments);
            assert_eq!(Body::pack(&transcript).unwrap().unpack().unwrap(), transcript);
        }
    }

    #[test]
    fn what_cannot_be_stored_is_refused() {
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
        check(&|body| body.segments.clear());
        check(&|body| body.segments.truncate(body.segments.len() / 2));
        check(&|body| body.content_sha256[0] ^= 1);
        check(&|body| body.length -= 1);
        check(&|body| body.length = u64::MAX);
        check(&|body| body.source.push('s'));
        check(&|body| body.about = body.about.replace("title", "turtle"));
        check(&|body| body.about = body.about.replace("\"form\":2", "\"form\":3"));
        check(&|body| body.segments = zstd::bulk::compress(b"[]", 1).unwrap());
        let other = self::transcript(vec![Segment::new("others", 0, 1)]);
        let other = Body::pack(&other).unwrap();
        check(&|body| body.segments.clone_from(&other.segments));
    }

    #[test]
    fn whatever_is_damaged_shows_in_the_checksum() {
        let transcript = transcript((0..40).map(|n| Segment::new(format!("word {n}"), n * 9, 8)).collect());
        let video = &transcript.video;
        let whole = Body::pack(&transcript).unwrap();
        let checksum = whole.checksum(video);
        let check = |damage: &dyn Fn(&mut Body)| {
            let mut body = Body::pack(&transcript).unwrap();
            damage(&mut body);
            assert_ne!(body.checksum(video), checksum);
        };
        for place in 0..whole.segments.len() {
            check(&|body| body.segments[place] ^= 0x10);
        }
        check(&|body| body.content_sha256[31] ^= 1);
        check(&|body| body.length += 1);
        check(&|body| body.source.push('s'));
        let other = VideoId::new(Platform::VideoSite, "bbbbbbbbbbb").unwrap();
        assert_ne!(whole.checksum(&other), checksum);
    }
}
