//! v1 transcript.

use serde::{Deserialize, Serialize};

use crate::{
    archive::{StoredTranscript, view::TranscriptView},
    body::segments::{self, Segment},
    error::Result,
    transcript::{LanguageTag, TrackInfo, TrackKind, Transcript, VideoDetails},
    video::{Platform, VideoId, VideoLink},
    wire::{
        AFTER_SEGMENTS, ChapterObject, ChunkObject, LanguageObject, V1MetadataObject,
        details::{self, ViewParts},
    },
};

/// Transcript (specification 2.5), the response of `GET /api/v1/transcript`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(
    feature = "openapi",
    derive(schemars::JsonSchema),
    schemars(description = "The transcript of a video.")
)]
pub struct VideoTranscript {
    /// The video's id.
    pub video_id: String,
    /// The video's title; empty if its supplier does not know it.
    pub title: String,
    /// The language code of the transcript.
    pub language: String,
    /// Whether a machine produced the text, by speech recognition or translation.
    pub is_generated: bool,
    /// Extension: the language that the caller requested.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "openapi", schemars(with = "String"))]
    pub requested_language: Option<String>,
    /// Extension: the languages in which the video has tracks, as far as known.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub languages: Vec<LanguageObject>,
    /// Extension: what is known of the video.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "openapi", schemars(with = "V1MetadataObject"))]
    pub metadata: Option<V1MetadataObject>,
    /// Extension: the chapters, ordered by start.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub chapters: Vec<ChapterObject>,
    /// Extension: the chunks of the segments, if they were requested.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub chunks: Vec<ChunkObject>,
    /// Extension: the start of the next page, if pages were requested and there is one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "openapi", schemars(with = "String"))]
    pub next_cursor: Option<String>,
    /// Extension: the number of characters of all segments' texts, if pages were requested.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "openapi", schemars(with = "u64"))]
    pub total_chars: Option<u64>,
    /// The segments.
    pub segments: Vec<Segment>,
}

impl VideoTranscript {
    /// Returns the JSON of a transcript before its segments; [`AFTER_SEGMENTS`] follows them.
    ///
    /// A caller that has the segments as JSON joins the three parts.
    ///
    /// # Errors
    /// Only if the serializer fails; no transcript causes that.
    pub fn before_segments(stored: &StoredTranscript, requested: Option<&LanguageTag>) -> Result<Vec<u8>> {
        details::before_last_list(&Self::without_segments(stored).with_requested(requested))
    }

    /// Adds the language that the caller requested.
    #[must_use]
    pub fn with_requested(self, requested: Option<&LanguageTag>) -> Self {
        Self { requested_language: requested.map(|tag| tag.as_str().to_owned()), ..self }
    }

    /// Serializes a transcript with this view of it.
    ///
    /// # Errors
    /// [`crate::ErrorKind::Invalid`] if the view has a cursor of another transcript or an invalid size of chunks.
    pub fn json(
        stored: &StoredTranscript,
        requested: Option<&LanguageTag>,
        view: TranscriptView,
    ) -> Result<Vec<u8>> {
        let ViewParts { chunks, next_cursor, total_chars, segments } = details::view(stored, view)?;
        let mut body = Self {
            chunks,
            next_cursor,
            total_chars,
            ..Self::without_segments(stored).with_requested(requested)
        };
        V1MetadataObject::describe(&mut body.metadata, &stored.details, view);
        let mut json = details::before_last_list(&body)?;
        json.extend(segments);
        json.extend_from_slice(AFTER_SEGMENTS);
        Ok(json)
    }

    fn without_segments(stored: &StoredTranscript) -> Self {
        let (transcript, details) = (&stored.transcript, &stored.details);
        Self {
            video_id: transcript.video.id().to_owned(),
            title: transcript.title.clone().unwrap_or_default(),
            language: transcript.track.language.as_str().to_owned(),
            is_generated: transcript.track.is_generated(),
            requested_language: None,
            languages: details::languages(transcript, details),
            metadata: V1MetadataObject::new(transcript, details),
            chapters: details::chapters(details),
            chunks: Vec::new(),
            next_cursor: None,
            total_chars: None,
            segments: Vec::new(),
        }
    }

    /// The details of the video, within the limits of metadata.
    pub fn details(&self) -> VideoDetails {
        let metadata = self.metadata.as_ref();
        details::to_details(
            &self.languages,
            metadata.map(V1MetadataObject::to_metadata).unwrap_or_default(),
            &self.chapters,
            metadata.and_then(V1MetadataObject::duration_ms),
        )
    }

    /// Converts the response to a transcript.
    ///
    /// The response does not name its supplier, so the caller provides `source`. A `video_id` that is not a YouTube id
    /// is read as a link.
    ///
    /// # Errors
    /// The invalid part: the video, the language or a time.
    pub fn into_transcript(self, source: impl Into<String>) -> std::result::Result<Transcript, &'static str> {
        let video = VideoId::new(Platform::YouTube, &self.video_id).ok();
        let linked = || match VideoLink::parse(&self.video_id) {
            Ok(VideoLink::Video(video)) => Some(video),
            _ => None,
        };
        let video = video.or_else(linked).ok_or("its video id is invalid")?;
        let language = LanguageTag::parse(&self.language).map_err(|_| "its language is invalid")?;
        let kind = if self.is_generated { TrackKind::Generated } else { TrackKind::Human };
        let metadata = self.metadata.unwrap_or_default();
        Ok(Transcript {
            video,
            title: Some(self.title).filter(|title| !title.is_empty()),
            duration_ms: metadata.duration_ms(),
            author: metadata.clean_author(),
            track: TrackInfo::new(language, kind),
            source: source.into(),
            segments: segments::from_wire(self.segments).ok_or("a time in it is invalid")?,
        })
    }
}

impl From<&StoredTranscript> for VideoTranscript {
    fn from(stored: &StoredTranscript) -> Self {
        let segments = stored.transcript.segments.iter().map(Segment::from).collect();
        Self { segments, ..Self::without_segments(stored) }
    }
}
