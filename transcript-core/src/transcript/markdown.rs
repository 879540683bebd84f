//! Transcript as Markdown with times (`format=md`, specification 14).

use std::fmt::Write as _;

use super::{Transcript, markdown_escape::escape, paragraphs};

/// Renders a transcript as Markdown: title, author, and each paragraph after its time.
///
/// The time links to that moment of the video, if the platform has such links. Title, author and transcript are
/// plain text: none of it can become a link, a heading, HTML or any other markup of `CommonMark` or GitHub's
/// dialect.
///
/// ```
/// use transcript_core::{
///     transcript::{LanguageTag, Segment, TrackInfo, TrackKind, Transcript, markdown},
///     video::{Platform, VideoId},
/// };
///
/// let transcript = Transcript {
///     video: VideoId::new(Platform::YouTube, "dQw4w9WgXcQ")?,
///     title: Some("A *talk*".to_owned()),
///     author: Some("Ann".to_owned()),
///     duration_ms: None,
///     track: TrackInfo::new(LanguageTag::english(), TrackKind::Human),
///     source: "youtube-captions".to_owned(),
///     segments: vec![Segment::new("Hello there.", 61_500, 900)],
/// };
/// assert_eq!(
///     markdown(&transcript),
///     "# A \\*talk\\*\n\nby Ann\n\n[1:01](https://www.youtube.com/watch?v=dQw4w9WgXcQ&t=61s) Hello there.\n"
/// );
/// # Ok::<(), transcript_core::video::LinkError>(())
/// ```
pub fn markdown(transcript: &Transcript) -> String {
    let mut blocks = Vec::new();
    if let Some(title) = line(transcript.title.as_deref()) {
        blocks.push(format!("# {title}\n"));
    }
    if let Some(author) = line(transcript.author.as_deref()) {
        blocks.push(format!("by {author}\n"));
    }
    for paragraph in paragraphs(&transcript.segments) {
        let seconds = paragraph.start_ms / 1_000;
        let (time, address) = (format_timestamp(seconds), transcript.video.address_at(seconds));
        blocks.push(format!("[{time}]({address}) {}\n", escape(&paragraph.text)));
    }
    blocks.join("\n")
}

/// A text on one line, escaped; `None` if it is blank.
fn line(text: Option<&str>) -> Option<String> {
    let words: Vec<_> = text?.split_whitespace().collect();
    if words.is_empty() { None } else { Some(escape(&words.join(" "))) }
}

/// Formats a time in a video: `m:ss`, or `h:mm:ss` from one hour on.
///
/// ```
/// use transcript_core::transcript::format_timestamp;
///
/// assert_eq!(format_timestamp(65), "1:05");
/// assert_eq!(format_timestamp(3_600), "1:00:00");
/// ```
pub fn format_timestamp(seconds: u64) -> String {
    let mut text = String::new();
    let (hours, minutes, seconds) = (seconds / 3_600, seconds / 60 % 60, seconds % 60);
    // Writing to a string cannot fail.
    let _ = if hours > 0 {
        write!(text, "{hours}:{minutes:02}:{seconds:02}")
    } else {
        write!(text, "{minutes}:{seconds:02}")
    };
    text
}
