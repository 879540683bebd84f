//! What is known of a video besides its segments.

use transcript_core::{
    time::Timestamp,
    transcript::{self, LanguageTag, LiveStatus, TrackInfo},
};

use crate::error::{Failure, VerbatimError, count};

/// Milliseconds that are not negative.
pub(crate) fn millis(value: i64) -> Result<u64, VerbatimError> {
    u64::try_from(value).map_err(|_| Failure::invalid_input("a time is negative"))
}

/// Whether a video is or was live.
#[uniffi::remote(Enum)]
pub enum LiveStatus {
    /// It was never live.
    NotLive,
    /// It is scheduled.
    Upcoming,
    /// It is live now.
    Live,
    /// It was live.
    WasLive,
}

/// A chapter of a video. It lasts until the next one starts.
#[derive(Clone, Debug, PartialEq, Eq, uniffi::Record)]
pub struct Chapter {
    /// The title.
    pub title: String,
    /// Start in milliseconds from the beginning of the video.
    pub start_ms: i64,
}

/// Metadata of a video. `None` is unknown; title, publisher and length are in the transcript.
#[derive(Clone, Debug, Default, PartialEq, Eq, uniffi::Record)]
pub struct VideoMetadata {
    /// The platform's id of the channel or profile.
    #[uniffi(default = None)]
    pub author_id: Option<String>,
    /// The URL of the channel or profile.
    #[uniffi(default = None)]
    pub author_url: Option<String>,
    /// When the video was published, in milliseconds since 1970.
    #[uniffi(default = None)]
    pub published_at: Option<Timestamp>,
    /// The URL of a preview image.
    #[uniffi(default = None)]
    pub thumbnail_url: Option<String>,
    /// Whether the video is or was live.
    #[uniffi(default = None)]
    pub live: Option<LiveStatus>,
    /// The description.
    #[uniffi(default = None)]
    pub description: Option<String>,
    /// The chapters, ordered by start.
    #[uniffi(default = [])]
    pub chapters: Vec<Chapter>,
}

/// What an archive knows of a video besides the texts.
#[derive(Clone, Debug, Default, PartialEq, Eq, uniffi::Record)]
pub struct VideoDetails {
    /// The metadata.
    #[uniffi(default)]
    pub metadata: VideoMetadata,
    /// The known tracks, archived or not, in order of discovery.
    #[uniffi(default = [])]
    pub tracks: Vec<TrackInfo>,
}

/// Returns this metadata with the unknown fields taken from `earlier`, as an archive must store it.
///
/// # Errors
/// `InvalidInput` if a chapter starts at a negative time.
#[uniffi::export]
pub fn merge_metadata(
    metadata: VideoMetadata,
    earlier: VideoMetadata,
) -> Result<VideoMetadata, VerbatimError> {
    Ok(VideoMetadata::from(&metadata.into_core()?.or(&earlier.into_core()?)))
}

/// Returns the English name of a language; the tag itself for a rare one.
///
/// # Errors
/// `InvalidInput` if it is no BCP 47 tag.
#[uniffi::export]
pub fn language_name(language: String) -> Result<String, VerbatimError> {
    Ok(LanguageTag::parse(&language)?.english_name())
}

impl From<&transcript::VideoMetadata> for VideoMetadata {
    fn from(metadata: &transcript::VideoMetadata) -> Self {
        let chapter = |chapter: &transcript::Chapter| Chapter {
            title: chapter.title.clone(),
            start_ms: count(chapter.start_ms),
        };
        Self {
            author_id: metadata.author_id.clone(),
            author_url: metadata.author_url.clone(),
            published_at: metadata.published_at,
            thumbnail_url: metadata.thumbnail_url.clone(),
            live: metadata.live,
            description: metadata.description.clone(),
            chapters: metadata.chapters.iter().map(chapter).collect(),
        }
    }
}

impl VideoMetadata {
    /// The core's metadata of a record.
    ///
    /// # Errors
    /// `InvalidInput` if a chapter starts at a negative time.
    pub(crate) fn into_core(self) -> Result<transcript::VideoMetadata, VerbatimError> {
        let chapter = |chapter: Chapter| {
            Ok(transcript::Chapter { title: chapter.title, start_ms: millis(chapter.start_ms)? })
        };
        Ok(transcript::VideoMetadata {
            author_id: self.author_id,
            author_url: self.author_url,
            published_at: self.published_at,
            thumbnail_url: self.thumbnail_url,
            live: self.live,
            description: self.description,
            chapters: self.chapters.into_iter().map(chapter).collect::<Result<_, VerbatimError>>()?,
        })
    }
}

impl From<&transcript::VideoDetails> for VideoDetails {
    fn from(details: &transcript::VideoDetails) -> Self {
        Self { metadata: VideoMetadata::from(&details.metadata), tracks: details.tracks.clone() }
    }
}

impl VideoDetails {
    /// The core's details of a record.
    ///
    /// # Errors
    /// `InvalidInput` if a chapter starts at a negative time.
    pub(crate) fn into_core(self) -> Result<transcript::VideoDetails, VerbatimError> {
        Ok(transcript::VideoDetails { metadata: self.metadata.into_core()?, tracks: self.tracks })
    }
}
