//! Caption formats in, segments out: pure, and never a panic.
//!
//! The body decides which format it is, never a header: platforms have served one format under another's
//! media type. Text and times stay as the supplier gave them; what each format's parser removes is in
//! that parser's documentation, and is markup of the format, never words. A body that is cut off is an
//! error rather than half a transcript.
//!
//! ```
//! let body = b"WEBVTT\n\n00:01.500 --> 00:03.000\n<v Ann>It is <i>so</i> quiet.\n";
//! let segments = transcript_core::captions::parse(body)?;
//! assert_eq!(segments[0].text, "It is so quiet.");
//! assert_eq!((segments[0].start_ms, segments[0].duration_ms), (1_500, 1_500));
//! # Ok::<(), transcript_core::captions::CaptionError>(())
//! ```

pub(crate) mod cue_file;
mod cues;
mod decimal;
mod encoding;
mod error;
mod json3;
mod lenient;
pub(crate) mod markup;
mod plain;
mod reading;
pub(crate) mod rolling;
mod sniff;
mod srt;
mod srv3;
mod timedtext;
pub(crate) mod timing;
mod ttml;
mod ttml_time;
mod utterances;
mod webvtt;
mod xml;

#[cfg(test)]
mod tests;

pub(crate) use cues::is_blank;
pub use error::{CaptionError, CaptionErrorKind};
pub use plain::{PlainCue, plain_cues};
pub use reading::{LINES_MAX, Occurrences, Reading};
pub use sniff::sniff;

use crate::transcript::Segment;

/// The version of these parsers. It is stored with every transcript, and rises whenever the same body
/// would give other segments.
pub const PARSER_VERSION: u32 = 2;

/// The largest body that is read, in bytes: 40 times what 50 minutes of word-timed captions take.
pub const BODY_BYTES_MAX: usize = 32 * 1024 * 1024;

/// The most segments that a body may have.
pub const SEGMENTS_MAX: usize = 100_000;

/// The latest start and end, in milliseconds: 1,000 hours. A segment that starts later is dropped, one
/// that ends later is cut there.
pub const TIME_MAX_MS: u64 = 1_000 * 60 * 60 * 1_000;

/// The deepest nesting of elements in an XML body.
pub const DEPTH_MAX: usize = 64;

/// A format in which captions come.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum CaptionFormat {
    /// YouTube's first XML: `<transcript><text start="1.54" dur="4.16">`.
    TimedText,
    /// YouTube's XML with milliseconds: `<timedtext format="3">`, also what styling tools upload.
    Srv3,
    /// YouTube's JSON: `{"wireMagic": "pb3", "events": […]}`.
    Json3,
    /// WebVTT.
    WebVtt,
    /// SRT.
    Srt,
    /// TTML: `<tt>`.
    Ttml,
    /// TikTok's JSON of captions that a creator edited: `{"utterances": […]}`.
    Utterances,
}

/// Reads captions in whatever format the body turns out to be.
///
/// The segments are ordered by start; those with equal starts keep the body's order. There is at least
/// one, and none without text.
///
/// # Errors
/// See [`CaptionErrorKind`] for each way in which a body can be no captions.
pub fn parse(body: &[u8]) -> Result<Vec<Segment>, CaptionError> {
    let text = encoding::decode(body)?;
    parse_text(sniffed(&text)?, &text).map(|reading| reading.segments)
}

/// As [`parse`], and tells what else the body says, and what of it could not be read.
///
/// # Errors
/// As [`parse`].
pub fn read(body: &[u8]) -> Result<Reading, CaptionError> {
    let text = encoding::decode(body)?;
    let format = sniffed(&text)?;
    let mut reading = parse_text(format, &text)?;
    reading.unreadable = if matches!(format, CaptionFormat::WebVtt | CaptionFormat::Srt) {
        reading::unreadable(timing::lines(&text))
    } else {
        let mut unreadable =
            reading::unreadable(reading.segments.iter().map(|segment| segment.text.as_str()));
        unreadable.lines.clear();
        unreadable
    };
    Ok(reading)
}

fn sniffed(text: &str) -> Result<CaptionFormat, CaptionError> {
    sniff::sniff_text(text).ok_or_else(|| sniff::not_captions(text))
}

/// Reads captions in a format that is known.
///
/// # Errors
/// As [`parse`]; [`CaptionErrorKind::NotCaptions`] also when the body is in another format.
pub fn parse_as(format: CaptionFormat, body: &[u8]) -> Result<Vec<Segment>, CaptionError> {
    parse_text(format, &encoding::decode(body)?).map(|reading| reading.segments)
}

fn parse_text(format: CaptionFormat, text: &str) -> Result<Reading, CaptionError> {
    let cues = match format {
        CaptionFormat::TimedText => timedtext::parse(text),
        CaptionFormat::Srv3 => srv3::parse(text),
        CaptionFormat::Json3 => json3::parse(text),
        CaptionFormat::WebVtt => webvtt::parse(text),
        CaptionFormat::Srt => srt::parse(text),
        CaptionFormat::Ttml => ttml::parse(text),
        CaptionFormat::Utterances => utterances::parse(text),
    }?;
    cues.into_reading()
}
