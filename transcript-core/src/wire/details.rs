//! What is known of a video besides its segments, in the responses of both APIs (extensions).

use serde::{Deserialize, Serialize};

use crate::{
    archive::{
        KNOWN_TRACKS_MAX, StoredTranscript,
        view::{SegmentPage, TranscriptView},
    },
    body::segments::{self, millis, seconds},
    error::{Error, Result},
    time::Timestamp,
    transcript::{
        self, CHAPTERS_MAX, Chapter, Chunk, LanguageTag, LiveStatus, NAME_BYTES_MAX, Segment, TrackInfo,
        TrackKind, Transcript, VideoDetails, VideoMetadata, clean_line,
    },
};

/// JSON of a response with segments, after them.
pub const AFTER_SEGMENTS: &[u8] = b"}";

/// Returns the JSON of a response before its last field's value, which is an empty list.
///
/// A caller that has the list as JSON adds it and [`AFTER_SEGMENTS`].
///
/// # Errors
/// Only if the serializer fails; no response causes that.
pub(super) fn before_last_list(response: &impl Serialize) -> Result<Vec<u8>> {
    let json = serde_json::to_vec(response);
    let mut json =
        json.map_err(|error| Error::unexpected(format!("cannot serialize a response: {error}")))?;
    // The JSON ends with the empty list and the end of the object.
    json.truncate(json.len().saturating_sub("[]".len() + AFTER_SEGMENTS.len()));
    Ok(json)
}

/// Language in which a video has a track.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(
    feature = "openapi",
    derive(schemars::JsonSchema),
    schemars(description = "A language in which the video has captions.", rename = "Language")
)]
pub struct LanguageObject {
    /// The language tag (BCP 47).
    pub tag: String,
    /// The track's own name, else the English name of the language.
    pub name: String,
    /// One of `manual`, `auto`, `translated`.
    #[cfg_attr(feature = "openapi", schemars(extend("enum" = TrackKind::ALL.map(TrackKind::wire_name))))]
    pub kind: String,
    /// Whether the language is known to be the spoken one.
    pub original: bool,
}

impl From<&TrackInfo> for LanguageObject {
    fn from(track: &TrackInfo) -> Self {
        Self {
            tag: track.language.as_str().to_owned(),
            name: track.name.clone().unwrap_or_else(|| track.language.english_name()),
            kind: track.kind.wire_name().to_owned(),
            original: track.original,
        }
    }
}

impl LanguageObject {
    /// The track of the language; `None` if its tag or its kind is invalid.
    pub fn to_track(&self) -> Option<TrackInfo> {
        let language = LanguageTag::parse(&self.tag).ok()?;
        let kind = TrackKind::from_wire_name(&self.kind)?;
        let name = clean_line(&self.name, NAME_BYTES_MAX).filter(|name| *name != language.english_name());
        Some(TrackInfo { language, kind, name, original: self.original })
    }
}

/// The details of a video in the response of a server, within the limits of metadata.
pub(super) fn to_details(
    languages: &[LanguageObject],
    metadata: VideoMetadata,
    chapters: &[ChapterObject],
    duration_ms: Option<u64>,
) -> VideoDetails {
    let chapter = |chapter: &ChapterObject| {
        Some(Chapter { title: chapter.title.clone(), start_ms: millis(chapter.start)? })
    };
    let chapters = chapters.iter().filter_map(chapter).take(CHAPTERS_MAX).collect();
    let metadata = VideoMetadata { chapters, ..metadata }.cleaned(duration_ms);
    VideoDetails { metadata, tracks: to_tracks(languages) }
}

/// The tracks in the response of a server, within the limits of metadata.
pub(super) fn to_tracks(languages: &[LanguageObject]) -> Vec<TrackInfo> {
    languages.iter().filter_map(LanguageObject::to_track).take(KNOWN_TRACKS_MAX).collect()
}

/// The languages of a video: its known tracks, and the track of the transcript if it is not among them.
pub fn languages(header: &Transcript, details: &VideoDetails) -> Vec<LanguageObject> {
    let is_known = details.tracks.iter().any(|track| track.is_same(&header.track));
    let own = (!is_known).then_some(&header.track);
    details.tracks.iter().chain(own).map(LanguageObject::from).collect()
}

/// Chapter of a video.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(
    feature = "openapi",
    derive(schemars::JsonSchema),
    schemars(description = "A chapter. It lasts until the next one starts.", rename = "Chapter")
)]
pub struct ChapterObject {
    /// The title.
    pub title: String,
    /// When it starts, in seconds.
    #[cfg_attr(feature = "openapi", schemars(range(min = 0.0)))]
    pub start: f64,
}

impl From<&Chapter> for ChapterObject {
    fn from(chapter: &Chapter) -> Self {
        Self { title: chapter.title.clone(), start: seconds(chapter.start_ms) }
    }
}

/// Chunk of a transcript.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(
    feature = "openapi",
    derive(schemars::JsonSchema),
    schemars(description = "Segments as one text; times are seconds.", rename = "Chunk")
)]
pub struct ChunkObject {
    /// When it starts, in seconds.
    #[cfg_attr(feature = "openapi", schemars(range(min = 0.0)))]
    pub start: f64,
    /// When it ends, in seconds.
    #[cfg_attr(feature = "openapi", schemars(range(min = 0.0)))]
    pub end: f64,
    /// The text, on one line.
    pub text: String,
    /// The address of its start in the video, if the platform has such addresses; otherwise that of the video.
    #[cfg_attr(feature = "openapi", schemars(extend("format" = "uri")))]
    pub url: String,
}

/// The parts of a response that a view selects.
pub(super) struct ViewParts {
    pub(super) chunks: Vec<ChunkObject>,
    pub(super) next_cursor: Option<String>,
    pub(super) total_chars: Option<u64>,
    /// The JSON of the segments.
    pub(super) segments: Vec<u8>,
}

/// Selects the parts of a view. Segments without words are written without copies.
///
/// # Errors
/// [`crate::ErrorKind::Invalid`] for a cursor of another transcript, or an invalid size of chunks.
pub(super) fn view(stored: &StoredTranscript, view: TranscriptView) -> Result<ViewParts> {
    let page =
        SegmentPage::select(stored, view).map_err(|error| Error::invalid(format!("cursor: {error}")))?;
    let segments = page.of(stored);
    let video = &stored.transcript.video;
    let chunk = |chunk: Chunk| ChunkObject {
        start: seconds(chunk.start_ms),
        end: seconds(chunk.end_ms),
        text: chunk.text,
        url: video.address_at(chunk.start_ms / 1_000),
    };
    let chunks = match view.chunk {
        Some(options) => transcript::chunks(segments, &stored.details.metadata.chapters, options)?,
        None => Vec::new(),
    };
    Ok(ViewParts {
        chunks: chunks.into_iter().map(chunk).collect(),
        next_cursor: page.next.map(|next| next.to_string()),
        total_chars: page.total_chars,
        segments: write_segments(segments, view)?,
    })
}

fn write_segments(segments: &[Segment], view: TranscriptView) -> Result<Vec<u8>> {
    if !view.words {
        return segments::write(segments);
    }
    let segments: Vec<_> = segments.iter().map(segments::Segment::with_words).collect();
    serde_json::to_vec(&segments)
        .map_err(|error| Error::unexpected(format!("cannot serialize segments: {error}")))
}

pub(super) fn chapters(details: &VideoDetails) -> Vec<ChapterObject> {
    details.metadata.chapters.iter().map(ChapterObject::from).collect()
}

/// Defines the metadata of one API. The two differ in the case of their fields.
macro_rules! metadata_object {
    ($(#[$attribute:meta])* $name:ident) => {
        #[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
        #[cfg_attr(feature = "openapi", derive(schemars::JsonSchema))]
        $(#[$attribute])*
        #[serde(default)]
        pub struct $name {
            /// The title.
            #[serde(skip_serializing_if = "Option::is_none")]
            #[cfg_attr(feature = "openapi", schemars(with = "String"))]
            pub title: Option<String>,
            /// The name of the channel or profile.
            #[serde(skip_serializing_if = "Option::is_none")]
            #[cfg_attr(feature = "openapi", schemars(with = "String"))]
            pub author: Option<String>,
            /// The platform's id of the channel or profile.
            #[serde(skip_serializing_if = "Option::is_none")]
            #[cfg_attr(feature = "openapi", schemars(with = "String"))]
            pub author_id: Option<String>,
            /// The address of the channel or profile.
            #[serde(skip_serializing_if = "Option::is_none")]
            #[cfg_attr(feature = "openapi", schemars(with = "String", extend("format" = "uri")))]
            pub author_url: Option<String>,
            /// The length of the video in seconds.
            #[serde(skip_serializing_if = "Option::is_none")]
            #[cfg_attr(feature = "openapi", schemars(with = "f64", range(min = 0.0)))]
            pub duration_seconds: Option<f64>,
            /// When the video was published: RFC 3339, UTC.
            #[serde(skip_serializing_if = "Option::is_none")]
            #[cfg_attr(feature = "openapi", schemars(with = "String", extend("format" = "date-time")))]
            pub published_at: Option<String>,
            /// The address of a preview image.
            #[serde(skip_serializing_if = "Option::is_none")]
            #[cfg_attr(feature = "openapi", schemars(with = "String", extend("format" = "uri")))]
            pub thumbnail_url: Option<String>,
            /// One of `not_live`, `upcoming`, `live`, `was_live`.
            #[serde(skip_serializing_if = "Option::is_none")]
            #[cfg_attr(
                feature = "openapi",
                schemars(with = "String", extend("enum" = LiveStatus::ALL.map(LiveStatus::as_str)))
            )]
            pub live: Option<String>,
            /// The description, if it was requested; at most 64 KiB.
            #[serde(skip_serializing_if = "Option::is_none")]
            #[cfg_attr(
                feature = "openapi",
                schemars(with = "String", length(max = crate::transcript::DESCRIPTION_BYTES_MAX))
            )]
            pub description: Option<String>,
        }

        impl $name {
            /// The metadata of a video, without its description; `None` if nothing is known.
            pub(super) fn new(header: &Transcript, details: &VideoDetails) -> Option<Self> {
                let metadata = &details.metadata;
                let object = Self {
                    title: header.title.clone().filter(|title| !title.is_empty()),
                    author: header.author.clone().filter(|author| !author.is_empty()),
                    author_id: metadata.author_id.clone(),
                    author_url: metadata.author_url.clone(),
                    duration_seconds: header.duration_ms.map(seconds),
                    published_at: metadata.published_at.map(|time| time.to_string()),
                    thumbnail_url: metadata.thumbnail_url.clone(),
                    live: metadata.live.map(|live| live.as_str().to_owned()),
                    description: None,
                };
                (object != Self::default()).then_some(object)
            }

            /// Adds the description of a video to its metadata, if it is known and the view has it.
            pub(super) fn describe(metadata: &mut Option<Self>, details: &VideoDetails, view: TranscriptView) {
                if let Some(description) = details.metadata.description.clone().filter(|_| view.description) {
                    metadata.get_or_insert_default().description = Some(description);
                }
            }

            /// The title within the limits of a transcript.
            pub fn clean_title(&self) -> Option<String> {
                clean_line(self.title.as_ref()?, NAME_BYTES_MAX)
            }

            /// The name of the channel or profile within the limits of a transcript.
            pub fn clean_author(&self) -> Option<String> {
                clean_line(self.author.as_ref()?, NAME_BYTES_MAX)
            }

            /// The length of the video in milliseconds.
            pub fn duration_ms(&self) -> Option<u64> {
                self.duration_seconds.and_then(millis)
            }

            /// The metadata without title, author and length, which belong to the transcript.
            pub(super) fn to_metadata(&self) -> VideoMetadata {
                VideoMetadata {
                    author_id: self.author_id.clone(),
                    author_url: self.author_url.clone(),
                    published_at: self.published_at.as_deref().and_then(Timestamp::parse),
                    thumbnail_url: self.thumbnail_url.clone(),
                    live: self.live.as_deref().and_then(LiveStatus::from_name),
                    description: self.description.clone(),
                    ..VideoMetadata::default()
                }
            }
        }
    };
}

metadata_object! {
    /// Metadata of a video in the lookup API.
    #[cfg_attr(
        feature = "openapi",
        schemars(description = "What is known of the video.", rename = "VideoMetadata")
    )]
    #[serde(rename_all = "camelCase")]
    MetadataObject
}

#[cfg(feature = "accounts")]
metadata_object! {
    /// Metadata of a video in the v1 API.
    #[cfg_attr(
        feature = "openapi",
        schemars(description = "What is known of the video.", rename = "V1VideoMetadata")
    )]
    V1MetadataObject
}
