//! Words, and what is known of the video, in the JSON of transcripts.
//!
//! Those of Verbatim's export are restored unchanged. In other formats, what does not fit is left out: it never costs
//! the transcript.

use serde::Deserialize;
use serde_json::{Value, value::RawValue};
use transcript_core::{
    Error, Result,
    time::Timestamp,
    transcript::{Chapter, LiveStatus, VideoMetadata, Word},
    wire::MetadataObject,
};

use super::json::{from_str, millis};

/// A word with its times in seconds.
#[derive(Deserialize)]
struct DraftWord {
    #[serde(alias = "word")]
    text: String,
    start: f64,
    duration: Option<f64>,
    /// Speech recognizers write this instead of the duration.
    end: Option<f64>,
}

/// What the JSON has of the video in `metadata` and `chapters`.
#[derive(Default)]
pub(super) struct DraftDetails {
    /// The title, which exports have elsewhere.
    pub(super) title: Option<String>,
    /// The publisher, which exports have elsewhere.
    pub(super) author: Option<String>,
    /// The duration; of an export the given one.
    pub(super) duration_ms: Option<u64>,
    pub(super) metadata: VideoMetadata,
}

/// Metadata of the video, in the names of both APIs.
#[derive(Default, Deserialize)]
#[serde(rename_all = "camelCase")]
struct DraftMetadata {
    /// Of any type, as the next two: JSON of other programs may have an object here, and keeps the other fields.
    title: Option<Value>,
    author: Option<Value>,
    #[serde(alias = "duration_seconds")]
    duration_seconds: Option<Value>,
    #[serde(alias = "author_id")]
    author_id: Option<String>,
    #[serde(alias = "author_url")]
    author_url: Option<String>,
    #[serde(alias = "published_at")]
    published_at: Option<String>,
    #[serde(alias = "thumbnail_url")]
    thumbnail_url: Option<String>,
    live: Option<String>,
    description: Option<String>,
}

/// A chapter with its start in seconds.
#[derive(Deserialize)]
struct DraftChapter {
    title: String,
    start: f64,
}

/// Words of one segment.
///
/// # Errors
/// `Invalid` if they are unreadable and `is_ours`.
pub(super) fn words(json: Option<&RawValue>, is_ours: bool) -> Result<Vec<Word>> {
    let Some(json) = json else { return Ok(Vec::new()) };
    let word = |word: DraftWord| {
        let start_ms = millis(word.start.max(0.0))?;
        let duration_ms = match (word.duration, word.end) {
            (Some(duration), _) => millis(duration.max(0.0))?,
            (None, end) => millis(end.unwrap_or_default().max(0.0))?.saturating_sub(start_ms),
        };
        let text = if is_ours { word.text } else { word.text.trim().to_owned() };
        Ok(Word::new(text, start_ms, duration_ms))
    };
    let words =
        from_str::<Vec<DraftWord>>(json.get()).and_then(|words| words.into_iter().map(word).collect());
    if is_ours { words } else { Ok(words.unwrap_or_default()) }
}

/// Metadata and chapters of the video, whose duration the JSON may have elsewhere.
///
/// # Errors
/// `Invalid` if they are unreadable and `is_ours`.
pub(super) fn details(
    metadata: Option<&RawValue>,
    chapters: Option<&RawValue>,
    duration_ms: Option<u64>,
    is_ours: bool,
) -> Result<DraftDetails> {
    let read_metadata = metadata.map_or_else(|| Ok(DraftMetadata::default()), |json| from_str(json.get()));
    let read_chapters = chapters.map_or_else(|| Ok(Vec::new()), self::chapters);
    if is_ours {
        let metadata = to_metadata(read_metadata?, read_chapters?, true)?;
        return Ok(DraftDetails { duration_ms, metadata, ..DraftDetails::default() });
    }
    let mut draft = read_metadata.unwrap_or_default();
    let header = MetadataObject {
        title: text(draft.title.take()),
        author: text(draft.author.take()),
        duration_seconds: draft.duration_seconds.as_ref().and_then(Value::as_f64),
        ..MetadataObject::default()
    };
    let duration_ms = duration_ms.or(header.duration_ms());
    let metadata = to_metadata(draft, read_chapters.unwrap_or_default(), false)?.cleaned(duration_ms);
    Ok(DraftDetails { title: header.clean_title(), author: header.clean_author(), duration_ms, metadata })
}

fn text(value: Option<Value>) -> Option<String> {
    value.and_then(|value| value.as_str().map(str::to_owned))
}

fn chapters(json: &RawValue) -> Result<Vec<Chapter>> {
    let chapters: Vec<DraftChapter> = from_str(json.get())?;
    let chapter = |DraftChapter { title, start }| Ok(Chapter { title, start_ms: millis(start)? });
    chapters.into_iter().map(chapter).collect()
}

fn to_metadata(draft: DraftMetadata, chapters: Vec<Chapter>, is_ours: bool) -> Result<VideoMetadata> {
    let published_at = draft.published_at.as_deref().map(Timestamp::parse);
    let live = draft.live.as_deref().map(LiveStatus::from_name);
    if is_ours && (published_at == Some(None) || live == Some(None)) {
        return Err(Error::invalid("publishedAt or live of the metadata is not a value of this format"));
    }
    Ok(VideoMetadata {
        author_id: draft.author_id,
        author_url: draft.author_url,
        published_at: published_at.flatten(),
        thumbnail_url: draft.thumbnail_url,
        live: live.flatten(),
        description: draft.description,
        chapters,
    })
}
