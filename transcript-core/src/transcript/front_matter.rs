//! Front matter of a transcript: what is known of the video, as YAML or as lines of text (an extension).

use std::fmt::Write as _;

use super::{Transcript, VideoMetadata, format_timestamp};
use crate::text::one_line;

/// Renders what is known of a video as YAML between two `---` lines, to precede [`super::markdown`].
///
/// Texts are double-quoted JSON strings, which YAML reads as such: none of them can become a key or end the block.
///
/// ```
/// use transcript_core::{
///     transcript::{LanguageTag, TrackInfo, TrackKind, Transcript, VideoMetadata, front_matter},
///     video::{Platform, VideoId},
/// };
///
/// let transcript = Transcript {
///     video: VideoId::new(Platform::YouTube, "dQw4w9WgXcQ")?,
///     title: Some("A \"talk\"".to_owned()),
///     author: None,
///     duration_ms: Some(61_000),
///     track: TrackInfo::new(LanguageTag::english(), TrackKind::Human),
///     source: "youtube-captions".to_owned(),
///     segments: Vec::new(),
/// };
/// assert_eq!(
///     front_matter(&transcript, &VideoMetadata::default()),
///     "---\ntitle: \"A \\\"talk\\\"\"\nurl: \"https://www.youtube.com/watch?v=dQw4w9WgXcQ\"\nplatform: \"YouTube\"\n\
///      duration: \"1:01\"\nlanguage: \"en\"\ncaptions: \"manual\"\n---\n\n"
/// );
/// # Ok::<(), transcript_core::video::LinkError>(())
/// ```
pub fn front_matter(transcript: &Transcript, metadata: &VideoMetadata) -> String {
    let mut text = "---\n".to_owned();
    for (name, value) in fields(transcript, metadata) {
        text.push_str(&format!("{name}: {}\n", quote(&value)));
    }
    if !metadata.chapters.is_empty() {
        text.push_str("chapters:\n");
    }
    for chapter in &metadata.chapters {
        let time = format_timestamp(chapter.start_ms / 1_000);
        text.push_str(&format!("  - {{ start: {}, title: {} }}\n", quote(&time), quote(&chapter.title)));
    }
    text.push_str("---\n\n");
    text
}

/// What is known of a video as lines `name: value`, to precede plain text or to be a comment of WebVTT.
///
/// No value has a line end, or the arrow that WebVTT permits in the times of cues only.
pub(crate) fn fact_lines(transcript: &Transcript, metadata: &VideoMetadata) -> String {
    let fields = fields(transcript, metadata).into_iter();
    let shown = fields.filter(|(name, _)| !matches!(*name, "author_url" | "thumbnail"));
    shown.map(|(name, value)| format!("{name}: {}\n", one_line(&value).replace("-->", "→"))).collect()
}

/// What is known of a video, by name.
fn fields(transcript: &Transcript, metadata: &VideoMetadata) -> Vec<(&'static str, String)> {
    let video = &transcript.video;
    let published = metadata.published_at.map(|time| time.to_string());
    let fields = [
        ("title", transcript.title.clone()),
        ("author", transcript.author.clone()),
        ("author_url", metadata.author_url.clone()),
        ("url", Some(video.address())),
        ("platform", Some(video.platform().name().to_owned())),
        ("published", published.as_deref().and_then(|time| time.get(..DATE_LENGTH)).map(str::to_owned)),
        ("duration", transcript.duration_ms.map(|length| format_timestamp(length.div_ceil(1_000)))),
        ("thumbnail", metadata.thumbnail_url.clone()),
        ("language", Some(transcript.track.language.as_str().to_owned())),
        ("captions", Some(transcript.track.kind.wire_name().to_owned())),
    ];
    let known = |value: Option<String>| value.filter(|value| !value.trim().is_empty());
    fields.into_iter().filter_map(|(name, value)| Some((name, known(value)?))).collect()
}

/// Length of the date at the start of an RFC 3339 time.
const DATE_LENGTH: usize = 10;

/// A JSON string. YAML permits fewer characters than JSON, and ends a line at more.
fn quote(text: &str) -> String {
    let mut quoted = String::with_capacity(text.len() + 2);
    for c in serde_json::Value::from(text).to_string().chars() {
        if c.is_control() || matches!(c, '\u{2028}' | '\u{2029}' | '\u{FFFE}' | '\u{FFFF}') {
            // Writing to a string does not fail.
            let _ = write!(quoted, "\\u{:04x}", u32::from(c));
        } else {
            quoted.push(c);
        }
    }
    quoted
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{
        transcript::{Chapter, LanguageTag, TrackInfo, TrackKind},
        video::{Platform, VideoId},
    };

    #[test]
    fn fact_lines_hostile_texts_stay_one_line() {
        let transcript = Transcript {
            video: VideoId::new(Platform::TikTok, "6718335390845095173").unwrap(),
            title: Some(" a\r\n\n00:01 ---> 00:02\u{2028}b\u{0} ".to_owned()),
            author: Some("Ann".to_owned()),
            duration_ms: None,
            track: TrackInfo::new(LanguageTag::english(), TrackKind::Generated),
            source: "test".to_owned(),
            segments: Vec::new(),
        };
        let expect = format!(
            "title: a 00:01 -→ 00:02 b\nauthor: Ann\nurl: {}\nplatform: TikTok\nlanguage: en\ncaptions: auto\n",
            transcript.video.address()
        );
        assert_eq!(fact_lines(&transcript, &VideoMetadata::default()), expect);
    }

    #[test]
    fn front_matter_hostile_texts_stay_one_line() {
        let text = "a\n---\nb: [c]\u{2028}\u{85}\u{7f}\u{9f}\u{fffe}\u{ffff}\"' #é";
        let transcript = Transcript {
            video: VideoId::new(Platform::TikTok, "6718335390845095173").unwrap(),
            title: Some(text.to_owned()),
            author: Some(" ".to_owned()),
            duration_ms: None,
            track: TrackInfo::new(LanguageTag::unknown(), TrackKind::Translated),
            source: "test".to_owned(),
            segments: Vec::new(),
        };
        let chapters = vec![Chapter { title: text.to_owned(), start_ms: 3_600_000 }];
        let metadata = VideoMetadata { chapters, ..VideoMetadata::default() };
        let found = front_matter(&transcript, &metadata);
        let quoted = "\"a\\n---\\nb: [c]\\u2028\\u0085\\u007f\\u009f\\ufffe\\uffff\\\"' #é\"";
        let expect = format!(
            "---\ntitle: {quoted}\nurl: \"{}\"\nplatform: \"TikTok\"\nlanguage: \"und\"\ncaptions: \"translated\"\n\
             chapters:\n  - {{ start: \"1:00:00\", title: {quoted} }}\n---\n\n",
            transcript.video.address()
        );
        assert_eq!(found, expect);
    }
}
