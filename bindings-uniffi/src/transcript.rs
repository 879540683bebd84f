//! The words of a video, as plain records.

use transcript_core::{
    captions, transcript,
    transcript::{LanguageTag, TrackInfo, TrackKind},
    video::{Platform, VideoId},
};

use crate::error::{Failure, VerbatimError, count};

/// Where a video is.
#[uniffi::remote(Enum)]
pub enum Platform {
    /// YouTube.
    VideoSite,
    /// TikTok.
    ShortVideo,
    /// Instagram.
    Reels,
    /// X, once Twitter.
    Microblog,
}

/// How the words came to be.
#[uniffi::remote(Enum)]
pub enum TrackKind {
    /// Written by a person.
    Human,
    /// Recognised from speech by a machine.
    Generated,
    /// Translated from another track by a machine.
    Translated,
}

/// A piece of text with the time in which it was spoken.
#[derive(Clone, Debug, PartialEq, Eq, uniffi::Record)]
pub struct Segment {
    /// The text, as the supplier gave it.
    pub text: String,
    /// When it starts, in milliseconds from the video's beginning.
    pub start_ms: i64,
    /// How long it lasts, in milliseconds.
    pub duration_ms: i64,
}

/// The words of one video in one language.
#[derive(Clone, Debug, PartialEq, Eq, uniffi::Record)]
pub struct Transcript {
    /// Where the video is.
    pub platform: Platform,
    /// Its id there.
    pub video_id: String,
    /// The language as a BCP 47 tag; `und` where nobody knows it.
    pub language: String,
    /// How the words came to be.
    pub kind: TrackKind,
    /// The segments, by start.
    pub segments: Vec<Segment>,
    /// The video's title, where it is known.
    #[uniffi(default = None)]
    pub title: Option<String>,
    /// Who published the video, where that is known.
    #[uniffi(default = None)]
    pub author: Option<String>,
    /// The video's length in milliseconds, where it is known.
    #[uniffi(default = None)]
    pub duration_ms: Option<i64>,
    /// The track's own name, where it has one beside its language.
    #[uniffi(default = None)]
    pub track_name: Option<String>,
    /// Whether this is the language that is spoken in the video, as far as the supplier knows.
    #[uniffi(default = false)]
    pub is_original: bool,
    /// The name of the supplier that it came from. One that a supplier of the app's returns bears that one's name.
    #[uniffi(default = "")]
    pub source: String,
    /// Whether it was archived already when it was asked for.
    #[uniffi(default = false)]
    pub from_cache: bool,
    /// Counts the refreshes: 1 for the first; 0 where it is of no archive.
    #[uniffi(default = 0)]
    pub revision: u32,
}

/// The forms of a transcript beside its segments.
#[derive(Clone, Copy, Debug, PartialEq, Eq, uniffi::Enum)]
pub enum Format {
    /// Plain prose.
    Text,
    /// Markdown with times.
    Markdown,
    /// SRT subtitles.
    Srt,
    /// WebVTT subtitles.
    WebVtt,
}

/// A transcript in another form.
///
/// # Errors
/// `InvalidInput` when it is no transcript: its id, its language or a time.
#[uniffi::export]
pub fn render(transcript: Transcript, format: Format) -> Result<String, VerbatimError> {
    Ok(written(&transcript.into_core()?, format))
}

/// The segments of captions in any of the forms that platforms have: WebVTT, SRT, TTML, YouTube's own.
///
/// So a supplier of the app's reads what the platform's HTTP stack fetched.
///
/// # Errors
/// `InvalidInput` when there is none.
#[uniffi::export]
pub fn parse_captions(captions: Vec<u8>) -> Result<Vec<Segment>, VerbatimError> {
    let segments = captions::parse(&captions).map_err(|error| Failure::invalid(error.to_string()))?;
    Ok(segments.iter().map(Segment::from).collect())
}

pub(crate) fn written(of: &transcript::Transcript, format: Format) -> String {
    match format {
        Format::Text => transcript::prose(&of.segments),
        Format::Markdown => transcript::markdown(of),
        Format::Srt => transcript::srt(&of.segments),
        Format::WebVtt => transcript::webvtt(&of.segments),
    }
}

impl From<&transcript::Segment> for Segment {
    fn from(segment: &transcript::Segment) -> Self {
        Self {
            text: segment.text.clone(),
            start_ms: count(segment.start_ms),
            duration_ms: count(segment.duration_ms),
        }
    }
}

/// Milliseconds that are none before the beginning.
pub(crate) fn millis(value: i64) -> Result<u64, VerbatimError> {
    u64::try_from(value).map_err(|_| Failure::invalid("a time lies before the beginning"))
}

impl Transcript {
    /// The record of a transcript of the core's.
    pub(crate) fn of(inner: &transcript::Transcript, from_cache: bool, revision: u32) -> Self {
        Self {
            platform: inner.video.platform(),
            video_id: inner.video.id().to_owned(),
            language: inner.track.language.as_str().to_owned(),
            kind: inner.track.kind,
            segments: inner.segments.iter().map(Segment::from).collect(),
            title: inner.title.clone(),
            author: inner.author.clone(),
            duration_ms: inner.duration_ms.map(count),
            track_name: inner.track.name.clone(),
            is_original: inner.track.original,
            source: inner.source.clone(),
            from_cache,
            revision,
        }
    }

    /// The transcript of the core's.
    ///
    /// # Errors
    /// `InvalidInput` when the id, the language or a time is none.
    pub(crate) fn into_core(self) -> Result<transcript::Transcript, VerbatimError> {
        let video = VideoId::new(self.platform, &self.video_id);
        let segment = |segment: Segment| {
            Ok(transcript::Segment {
                text: segment.text,
                start_ms: millis(segment.start_ms)?,
                duration_ms: millis(segment.duration_ms)?,
            })
        };
        Ok(transcript::Transcript {
            video: video.map_err(|error| Failure::invalid(error.to_string()))?,
            title: self.title,
            author: self.author,
            duration_ms: self.duration_ms.map(millis).transpose()?,
            track: TrackInfo {
                language: LanguageTag::parse(&self.language)?,
                kind: self.kind,
                name: self.track_name,
                original: self.is_original,
            },
            source: self.source,
            segments: self.segments.into_iter().map(segment).collect::<Result<_, VerbatimError>>()?,
        })
    }
}
