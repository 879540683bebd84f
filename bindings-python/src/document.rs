//! A transcript as a JSON document, written by `to_json` and by pickles.

use serde::{Deserialize, Serialize};
use transcript_core::{
    body::segments::{self, Segment},
    transcript::{self, LanguageTag, TrackInfo, TrackKind},
    video::{Platform, VideoId},
};

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
    transcript: Vec<Segment>,
}

impl Document {
    pub(crate) fn new(transcript: &transcript::Transcript, from_cache: bool, revision: u32) -> Self {
        let track = &transcript.track;
        Self {
            platform: transcript.video.platform().name().to_owned(),
            video_id: transcript.video.id().to_owned(),
            title: transcript.title.clone(),
            author: transcript.author.clone(),
            duration: transcript.duration_ms.map(crate::segment::seconds),
            language: track.language.as_str().to_owned(),
            kind: track.kind.as_str().to_owned(),
            is_generated: track.is_generated(),
            track_name: track.name.clone(),
            original: track.original,
            source: transcript.source.clone(),
            from_cache,
            revision,
            transcript: transcript.segments.iter().map(Segment::from).collect(),
        }
    }

    /// Converts the document; the error names the invalid field.
    pub(crate) fn into_transcript(self) -> Result<transcript::Transcript, String> {
        let platform = Platform::parse(&self.platform).ok_or("unknown platform")?;
        let millis = self.duration.map(|duration| (duration * 1_000.0).round());
        Ok(transcript::Transcript {
            video: VideoId::new(platform, &self.video_id).map_err(|error| error.to_string())?,
            title: self.title,
            author: self.author,
            duration_ms: millis.filter(|millis| *millis >= 0.0).map(|millis| millis as u64),
            track: TrackInfo {
                language: LanguageTag::parse(&self.language).map_err(|error| error.to_string())?,
                kind: TrackKind::from_name(&self.kind).ok_or("unknown kind")?,
                name: self.track_name,
                original: self.original,
            },
            source: self.source,
            segments: segments::from_wire(self.transcript).ok_or("invalid time in a segment")?,
        })
    }
}
