//! Text formats of a transcript.

use super::{write_srt, write_webvtt};
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

    /// Formats a transcript.
    pub fn format(self, transcript: &Transcript) -> String {
        match self {
            Self::Text => prose(&transcript.segments),
            Self::Markdown => markdown(transcript),
            Self::Srt => write_srt(&transcript.segments),
            Self::WebVtt => write_webvtt(&transcript.segments),
        }
    }
}
