//! Text formats of a transcript.

use std::{fmt, ops::Range};

use super::{srt::write_srt_page, webvtt::write_webvtt_page, write_webvtt_with_words};
use crate::transcript::{Transcript, markdown, prose};

use crate::names::names;

/// Transcript formats other than JSON.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum TextFormat {
    /// `text`: plain text.
    Text,
    /// `md`: Markdown with timestamps.
    Markdown,
    /// `srt`: SRT subtitles.
    Srt,
    /// `vtt`: WebVTT subtitles.
    WebVtt,
}

names!(TextFormat, from_wire {
    Text = "text",
    Markdown = "md",
    Srt = "srt",
    WebVtt = "vtt",
});

impl TextFormat {
    /// The media type of a formatted transcript.
    pub fn media_type(self) -> &'static str {
        match self {
            Self::Text => "text/plain; charset=utf-8",
            Self::Markdown => "text/markdown; charset=utf-8",
            Self::Srt => "application/x-subrip; charset=utf-8",
            Self::WebVtt => "text/vtt; charset=utf-8",
        }
    }

    /// Whether what is known of the video can precede the words: SRT has no place for it.
    pub fn has_front_matter(self) -> bool {
        self != Self::Srt
    }

    /// Formats a transcript.
    pub fn format(self, transcript: &Transcript) -> String {
        self.format_page(transcript, 0..transcript.segments.len(), false)
    }

    /// Formats a page of the segments; `has_words` adds the times of words to WebVTT.
    pub(crate) fn format_page(self, transcript: &Transcript, page: Range<usize>, has_words: bool) -> String {
        let segments = &transcript.segments;
        match self {
            Self::Text => prose(segments.get(page).unwrap_or_default()),
            Self::Markdown if page.len() == segments.len() => markdown(transcript),
            Self::Markdown => {
                let segments = segments.get(page).unwrap_or_default().to_vec();
                markdown(&Transcript { segments, ..transcript.without_segments() })
            }
            Self::Srt => write_srt_page(segments, page),
            Self::WebVtt => write_webvtt_page(segments, page, has_words),
        }
    }
}

impl Transcript {
    /// Plain text in paragraphs, without times; as [`Display`](fmt::Display) prints it.
    pub fn to_text(&self) -> String {
        TextFormat::Text.format(self)
    }

    /// Markdown with timestamps that link into the video.
    pub fn to_markdown(&self) -> String {
        TextFormat::Markdown.format(self)
    }

    /// SRT subtitles.
    pub fn to_srt(&self) -> String {
        TextFormat::Srt.format(self)
    }

    /// WebVTT subtitles.
    pub fn to_webvtt(&self) -> String {
        TextFormat::WebVtt.format(self)
    }

    /// WebVTT subtitles with the times of words, as far as known.
    pub fn to_webvtt_with_words(&self) -> String {
        write_webvtt_with_words(&self.segments)
    }
}

impl fmt::Display for Transcript {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.to_text())
    }
}
