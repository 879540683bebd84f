//! A transcript as a JSON document, written by `to_json` and by pickles.

use serde::{Deserialize, Serialize};
use transcript_core::{
    archive::KNOWN_TRACKS_MAX,
    body::segments::{self, Segment},
    time::Timestamp,
    transcript::{self, Chapter, LanguageTag, LiveStatus, TrackInfo, TrackKind, VideoDetails, VideoMetadata},
    video::{Platform, VideoId},
    wire::ChapterObject,
};

use crate::segment::seconds;

/// Fields of the document, with the names and units of the lookup API where that has them.
#[derive(Serialize, Deserialize)]
pub(crate) struct Document {
    platform: String,
    video_id: String,
    title: Option<String>,
    author: Option<String>,
    duration: Option<f64>,
    language: String,
    kind: String,
    is_generated: bool,
    track_name: Option<String>,
    original: bool,
    source: String,
    pub(crate) from_cache: bool,
    pub(crate) revision: u32,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    metadata: Option<DocumentMetadata>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    chapters: Vec<ChapterObject>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    tracks: Vec<TrackInfo>,
    transcript: Vec<Segment>,
}

/// Metadata of the video besides title, author, length and chapters.
#[derive(Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
struct DocumentMetadata {
    #[serde(skip_serializing_if = "Option::is_none")]
    author_id: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    author_url: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    published_at: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    thumbnail_url: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    live: Option<LiveStatus>,
    #[serde(skip_serializing_if = "Option::is_none")]
    description: Option<String>,
}

impl Document {
    pub(crate) fn new(
        transcript: &transcript::Transcript,
        details: &VideoDetails,
        from_cache: bool,
        revision: u32,
    ) -> Self {
        let track = &transcript.track;
        let metadata = DocumentMetadata::from(&details.metadata);
        Self {
            platform: transcript.video.platform().name().to_owned(),
            video_id: transcript.video.id().to_owned(),
            title: transcript.title.clone(),
            author: transcript.author.clone(),
            duration: transcript.duration_ms.map(seconds),
            language: track.language.as_str().to_owned(),
            kind: track.kind.as_str().to_owned(),
            is_generated: track.is_generated(),
            track_name: track.name.clone(),
            original: track.original,
            source: transcript.source.clone(),
            from_cache,
            revision,
            metadata: (metadata != DocumentMetadata::default()).then_some(metadata),
            chapters: details.metadata.chapters.iter().map(ChapterObject::from).collect(),
            tracks: details.tracks.clone(),
            transcript: transcript.segments.iter().map(Segment::with_words).collect(),
        }
    }

    /// Converts the document; the error names the invalid field.
    pub(crate) fn into_transcript(mut self) -> Result<(transcript::Transcript, VideoDetails), String> {
        let platform = Platform::parse(&self.platform).ok_or("unknown platform")?;
        let millis = self.duration.map(|duration| (duration * 1_000.0).round());
        let duration_ms = millis.filter(|millis| *millis >= 0.0).map(|millis| millis as u64);
        let metadata = self.metadata.unwrap_or_default().into_metadata(self.chapters)?;
        // Metadata is not refused: it never costs a transcript.
        let metadata = if metadata.check().is_ok() { metadata } else { metadata.cleaned(duration_ms) };
        self.tracks.truncate(KNOWN_TRACKS_MAX);
        let details = VideoDetails { metadata, tracks: self.tracks };
        let transcript = transcript::Transcript {
            video: VideoId::new(platform, &self.video_id).map_err(|error| error.to_string())?,
            title: self.title,
            author: self.author,
            duration_ms,
            track: TrackInfo {
                language: LanguageTag::parse(&self.language).map_err(|error| error.to_string())?,
                kind: TrackKind::from_name(&self.kind).ok_or("unknown kind")?,
                name: self.track_name,
                original: self.original,
            },
            source: self.source,
            segments: segments::from_wire(self.transcript).ok_or("invalid time in a segment")?,
        };
        Ok((transcript, details))
    }
}

impl From<&VideoMetadata> for DocumentMetadata {
    fn from(metadata: &VideoMetadata) -> Self {
        Self {
            author_id: metadata.author_id.clone(),
            author_url: metadata.author_url.clone(),
            published_at: metadata.published_at.map(|time| time.to_string()),
            thumbnail_url: metadata.thumbnail_url.clone(),
            live: metadata.live,
            description: metadata.description.clone(),
        }
    }
}

impl DocumentMetadata {
    fn into_metadata(self, chapters: Vec<ChapterObject>) -> Result<VideoMetadata, String> {
        let published_at = self.published_at.as_deref().map(Timestamp::parse);
        if published_at == Some(None) {
            return Err("invalid published_at".to_owned());
        }
        // Times of chapters are those of segments.
        let chapters = chapters.into_iter().map(|ChapterObject { title, start }| Segment {
            text: title,
            start,
            duration: 0.0,
            words: Vec::new(),
        });
        let chapters = segments::from_wire(chapters.collect()).ok_or("invalid time of a chapter")?;
        let chapter =
            |chapter: transcript::Segment| Chapter { title: chapter.text, start_ms: chapter.start_ms };
        Ok(VideoMetadata {
            author_id: self.author_id,
            author_url: self.author_url,
            published_at: published_at.flatten(),
            thumbnail_url: self.thumbnail_url,
            live: self.live,
            description: self.description,
            chapters: chapters.into_iter().map(chapter).collect(),
        })
    }
}
