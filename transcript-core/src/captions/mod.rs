//! Parsers of caption formats: pure functions that never panic.
//!
//! The format is detected from the body, never from a header: platforms have served one format under another's
//! media type. Text and times stay as the supplier provided them. What a parser removes is markup of its format, and
//! copies of a line that only display it, never spoken words; its documentation lists it. A truncated body is an error,
//! not half a transcript. Where a format has times inside a line, its parts become the words of the segment.
//!
//! ```
//! let body = b"WEBVTT\n\n00:01.500 --> 00:03.000\n<v Ann>It is <i>so</i> quiet.\n";
//! let segments = transcript_core::captions::parse(body)?;
//! assert_eq!(segments[0].text, "It is so quiet.");
//! assert_eq!((segments[0].start_ms, segments[0].duration_ms), (1_500, 1_500));
//! # Ok::<(), transcript_core::captions::CaptionError>(())
//! ```

mod cue_collector;
mod cue_file;
mod decimal;
mod encoding;
mod error;
mod json3;
mod karaoke;
mod lenient;
mod markup;
mod parsed;
mod raw_timedtext;
mod rolling;
mod sniff;
mod srt;
mod srv3;
mod styling;
mod time_marks;
mod timedtext;
mod timing;
mod ttml;
mod ttml_time;
mod utterances;
mod webvtt;
mod webvtt_header;
mod write;
mod xml;

#[cfg(test)]
mod tests;

use cue_collector::is_blank;
pub use error::{CaptionError, CaptionErrorKind};
pub use parsed::{LINES_MAX, Occurrences, ParsedCaptions};
pub use raw_timedtext::{RawCue, parse_raw_timedtext};
pub use sniff::sniff;
pub use write::{TextFormat, write_srt, write_webvtt, write_webvtt_with_words};

use crate::{
    text::replace_lone_surrogates,
    transcript::{LanguageTag, SEGMENTS_MAX, Segment, TIME_MAX_MS},
};

/// Version of these parsers, stored with every transcript.
///
/// It rises whenever the same body would produce other segments. Stored transcripts stay as they are until they are
/// refreshed.
pub const PARSER_VERSION: u32 = 9;

/// Maximum size of a body in bytes: 40 times the size of 50 minutes of word-timed captions.
pub const BODY_BYTES_MAX: usize = 32 * 1024 * 1024;

/// Maximum nesting depth of elements in an XML body.
pub const DEPTH_MAX: usize = 64;

/// Caption format.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum CaptionFormat {
    /// YouTube's first XML format: `<transcript><text start="1.54" dur="4.16">`.
    TimedText,
    /// YouTube's XML with milliseconds: `<timedtext format="3">`, also uploaded by styling tools.
    Srv3,
    /// YouTube's JSON: `{"wireMagic": "pb3", "events": […]}`.
    Json3,
    /// WebVTT.
    WebVtt,
    /// SRT, and SBV of YouTube Studio.
    Srt,
    /// TTML: `<tt>`.
    Ttml,
    /// TikTok's JSON of captions edited by a creator: `{"utterances": […]}`.
    Utterances,
}

/// Parses captions in the format detected from the body.
///
/// The segments are ordered by start; those with equal starts keep the order of the body. There is at least
/// one segment, and every segment has text.
///
/// # Errors
/// See [`CaptionErrorKind`] for the reasons.
pub fn parse(body: &[u8]) -> Result<Vec<Segment>, CaptionError> {
    let text = encoding::decode(body)?;
    parse_text(detect_format(&text)?, &text, None).map(|captions| captions.segments)
}

/// Parses like [`parse`], and also reports metadata and unreadable parts of the body.
///
/// # Errors
/// As [`parse`].
pub fn parse_with_report(body: &[u8]) -> Result<ParsedCaptions, CaptionError> {
    parse_with_report_in(body, None)
}

/// Parses like [`parse_with_report`]; of a body in several languages, the one that matches `language` is read.
///
/// If none matches, or with `None`, it is the main language of the body.
///
/// # Errors
/// As [`parse`].
pub fn parse_with_report_in(
    body: &[u8],
    language: Option<&LanguageTag>,
) -> Result<ParsedCaptions, CaptionError> {
    let text = encoding::decode(body)?;
    let format = detect_format(&text)?;
    let mut captions = parse_text(format, &text, language)?;
    captions.unreadable = if matches!(format, CaptionFormat::WebVtt | CaptionFormat::Srt) {
        parsed::unreadable(timing::lines(&text))
    } else {
        let mut unreadable =
            parsed::unreadable(captions.segments.iter().map(|segment| segment.text.as_str()));
        unreadable.lines.clear();
        unreadable
    };
    Ok(captions)
}

fn detect_format(text: &str) -> Result<CaptionFormat, CaptionError> {
    sniff::sniff_text(text).ok_or_else(|| sniff::not_captions(text))
}

/// Parses captions in a known format.
///
/// # Errors
/// As [`parse`]; also [`CaptionErrorKind::NotCaptions`] if the body is in another format.
pub fn parse_as(format: CaptionFormat, body: &[u8]) -> Result<Vec<Segment>, CaptionError> {
    parse_text(format, &encoding::decode(body)?, None).map(|captions| captions.segments)
}

fn parse_text(
    format: CaptionFormat,
    text: &str,
    language: Option<&LanguageTag>,
) -> Result<ParsedCaptions, CaptionError> {
    let cues = match format {
        CaptionFormat::TimedText => timedtext::parse(text),
        CaptionFormat::Srv3 => srv3::parse(text),
        CaptionFormat::Json3 => json3::parse(&replace_lone_surrogates(text)),
        CaptionFormat::WebVtt => webvtt::parse(text),
        CaptionFormat::Srt => srt::parse(text),
        CaptionFormat::Ttml => ttml::parse(text, language),
        CaptionFormat::Utterances => utterances::parse(&replace_lone_surrogates(text)),
    }?;
    cues.into_parsed()
}
