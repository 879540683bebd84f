//! What is known of a video besides its words.

use serde::{Deserialize, Serialize};

use super::{NAME_BYTES_MAX, TIME_MAX_MS, TrackInfo};
use crate::{
    error::{Error, Result},
    names::names,
    text::head,
    time::Timestamp,
};

/// Maximum number of chapters of a video.
pub const CHAPTERS_MAX: usize = 1_000;
/// Maximum number of bytes of a description.
pub const DESCRIPTION_BYTES_MAX: usize = 64 * 1024;
/// Maximum number of bytes of a URL in the metadata.
const URL_BYTES_MAX: usize = 2_048;

/// Whether a video is or was live.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
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

names!(LiveStatus, from_name {
    NotLive = "not_live",
    Upcoming = "upcoming",
    Live = "live",
    WasLive = "was_live",
});

/// A chapter of a video. It lasts until the next one starts.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Chapter {
    /// The title.
    pub title: String,
    /// Start in milliseconds from the beginning of the video.
    pub start_ms: u64,
}

/// Metadata of a video, as the supplier provided it. `None` is unknown.
///
/// Title, publisher and length are in [`super::Transcript`].
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(default)]
pub struct VideoMetadata {
    /// The platform's id of the channel or profile.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub author_id: Option<String>,
    /// The URL of the channel or profile.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub author_url: Option<String>,
    /// When the video was published.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub published_at: Option<Timestamp>,
    /// The URL of a preview image.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub thumbnail_url: Option<String>,
    /// Whether the video is or was live.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub live: Option<LiveStatus>,
    /// The description.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub description: Option<String>,
    /// The chapters, ordered by start.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub chapters: Vec<Chapter>,
}

impl VideoMetadata {
    /// Whether nothing is known.
    pub fn is_empty(&self) -> bool {
        *self == Self::default()
    }

    /// This metadata with the unknown fields taken from `earlier`.
    pub fn or(self, earlier: &Self) -> Self {
        Self {
            author_id: self.author_id.or_else(|| earlier.author_id.clone()),
            author_url: self.author_url.or_else(|| earlier.author_url.clone()),
            published_at: self.published_at.or(earlier.published_at),
            thumbnail_url: self.thumbnail_url.or_else(|| earlier.thumbnail_url.clone()),
            live: self.live.or(earlier.live),
            description: self.description.or_else(|| earlier.description.clone()),
            chapters: if self.chapters.is_empty() { earlier.chapters.clone() } else { self.chapters },
        }
    }

    /// Removes what exceeds the limits: hostile or broken metadata never costs a transcript.
    ///
    /// Control characters are removed, URLs must be `https`, texts are cut, and chapters are ordered; one that is
    /// empty, starts with another, or starts after `duration_ms` is left out.
    #[must_use]
    pub fn cleaned(self, duration_ms: Option<u64>) -> Self {
        let name = |text: Option<String>| text.and_then(|text| clean_line(&text, NAME_BYTES_MAX));
        let url = |url: Option<String>| url.filter(|url| is_safe_url(url));
        let end = duration_ms.unwrap_or(TIME_MAX_MS).min(TIME_MAX_MS);
        let mut chapters: Vec<Chapter> = self
            .chapters
            .into_iter()
            .filter(|chapter| chapter.start_ms <= end)
            .filter_map(|Chapter { title, start_ms }| {
                Some(Chapter { title: clean_line(&title, NAME_BYTES_MAX)?, start_ms })
            })
            .collect();
        chapters.sort_by_key(|chapter| chapter.start_ms);
        chapters.dedup_by_key(|chapter| chapter.start_ms);
        chapters.truncate(CHAPTERS_MAX);
        Self {
            author_id: name(self.author_id),
            author_url: url(self.author_url),
            published_at: self.published_at,
            thumbnail_url: url(self.thumbnail_url),
            live: self.live,
            description: self.description.and_then(|text| clean_text(&text, DESCRIPTION_BYTES_MAX)),
            chapters,
        }
    }

    /// Checks the limits of the metadata. Code that stores it calls this first.
    ///
    /// # Errors
    /// [`crate::ErrorKind::Invalid`] if it exceeds a limit; [`VideoMetadata::cleaned`] never does.
    pub fn check(&self) -> Result<()> {
        let is_long = |text: &Option<String>, max| text.as_ref().is_some_and(|text| text.len() > max);
        if is_long(&self.author_id, NAME_BYTES_MAX) || is_long(&self.description, DESCRIPTION_BYTES_MAX) {
            return Err(Error::invalid("a text in the metadata is longer than 64 KiB"));
        }
        if [&self.author_url, &self.thumbnail_url].into_iter().flatten().any(|url| !is_safe_url(url)) {
            return Err(Error::invalid("a URL in the metadata is not an https URL of at most 2,048 bytes"));
        }
        let chapters = &self.chapters;
        let is_bad = |chapter: &Chapter| {
            chapter.title.is_empty() || chapter.title.len() > NAME_BYTES_MAX || chapter.start_ms > TIME_MAX_MS
        };
        if chapters.len() > CHAPTERS_MAX || chapters.iter().any(is_bad) {
            return Err(Error::invalid("a chapter is beyond its limits, or there are more than 1,000"));
        }
        if !chapters.is_sorted_by(|one, next| one.start_ms < next.start_ms) {
            return Err(Error::invalid("the chapters are not ordered by start"));
        }
        Ok(())
    }
}

/// What an archive knows of a video besides the texts: metadata and tracks.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct VideoDetails {
    /// The metadata.
    pub metadata: VideoMetadata,
    /// The known tracks, archived or not, in order of discovery.
    pub tracks: Vec<TrackInfo>,
}

/// A line without control characters and outer white space; `None` if nothing is left.
pub(crate) fn clean_line(text: &str, bytes_max: usize) -> Option<String> {
    let line: String = text.chars().map(|c| if c.is_control() { ' ' } else { c }).collect();
    cut(line.trim(), bytes_max)
}

/// A text without control characters other than line breaks; `None` if nothing is left.
fn clean_text(text: &str, bytes_max: usize) -> Option<String> {
    let text: String = text.chars().filter(|c| *c == '\n' || !c.is_control()).collect();
    cut(text.trim(), bytes_max)
}

fn cut(text: &str, bytes_max: usize) -> Option<String> {
    Some(head(text, bytes_max)).filter(|text| !text.is_empty()).map(str::to_owned)
}

fn is_safe_url(url: &str) -> bool {
    let is_plain = |byte: u8| byte.is_ascii_graphic() && !matches!(byte, b'"' | b'<' | b'>' | b'\\' | b'`');
    url.len() <= URL_BYTES_MAX && url.starts_with("https://") && url.len() > 8 && url.bytes().all(is_plain)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn chapter(title: &str, start_ms: u64) -> Chapter {
        Chapter { title: title.to_owned(), start_ms }
    }

    #[test]
    fn metadata_cleaned_is_within_limits() {
        let text = |text: &str| Some(text.to_owned());
        let hostile = VideoMetadata {
            author_id: text(" \u{7}UC\nx "),
            author_url: text("javascript:alert(1)"),
            thumbnail_url: text("https://i.ytimg.com/vi/x/hq.jpg"),
            description: text(&"é".repeat(DESCRIPTION_BYTES_MAX)),
            chapters: vec![
                chapter("late", 9_000),
                chapter("b", 500),
                chapter(" \n", 600),
                chapter("a", 0),
                chapter("c", 500),
            ],
            ..VideoMetadata::default()
        };
        assert!(hostile.check().is_err());
        let cleaned = hostile.cleaned(Some(1_000));
        cleaned.check().unwrap();
        assert_eq!(cleaned.author_id.as_deref(), Some("UC x"));
        assert_eq!((cleaned.author_url, cleaned.thumbnail_url.is_some()), (None, true));
        assert_eq!(cleaned.chapters, [chapter("a", 0), chapter("b", 500)]);
    }

    #[test]
    fn metadata_unknown_fields_are_kept() {
        let earlier = VideoMetadata {
            live: Some(LiveStatus::WasLive),
            author_id: Some("a".to_owned()),
            ..VideoMetadata::default()
        };
        let newer = VideoMetadata {
            author_id: Some("b".to_owned()),
            chapters: vec![chapter("c", 0)],
            ..VideoMetadata::default()
        };
        let merged = newer.clone().or(&earlier);
        assert_eq!(merged, VideoMetadata { live: Some(LiveStatus::WasLive), ..newer });
        assert_eq!(VideoMetadata::default().or(&earlier), earlier);
    }
}
