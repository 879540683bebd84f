//! Format detection from the body alone.

use quick_xml::{Reader, events::Event};

use super::{
    CaptionError, CaptionFormat,
    encoding::peek,
    timing::{TimingLine, lines},
};
use crate::text::head;

/// Number of leading bytes in which the format must be recognizable.
const PEEK_BYTES: usize = 64 * 1024;

/// Maximum number of non-empty lines before the first timing line of an SRT file.
const LINES_BEFORE_TIMING: usize = 10;

/// Detects the format of a body; `None` if it is not captions.
///
/// Only the beginning is examined, so the body may still turn out to be malformed or without text.
///
/// ```
/// use transcript_core::captions::{CaptionFormat, sniff};
///
/// assert_eq!(sniff(b"WEBVTT - a title\n\n"), Some(CaptionFormat::WebVtt));
/// assert_eq!(sniff(b"<!DOCTYPE html><html></html>"), None);
/// ```
pub fn sniff(body: &[u8]) -> Option<CaptionFormat> {
    sniff_text(&peek(body, PEEK_BYTES))
}

pub(super) fn sniff_text(text: &str) -> Option<CaptionFormat> {
    let text = text.trim_start();
    match text.chars().next()? {
        '<' => format_of_root(text),
        '{' => {
            let head = head(text, PEEK_BYTES);
            let is_json3 = head.contains("\"wireMagic\"") || head.contains("\"events\"");
            let has_utterances = || head.contains("\"utterances\"").then_some(CaptionFormat::Utterances);
            if is_json3 { Some(CaptionFormat::Json3) } else { has_utterances() }
        }
        _ if is_webvtt(text) => Some(CaptionFormat::WebVtt),
        _ => {
            let mut first = lines(head(text, PEEK_BYTES))
                .filter(|line| !line.trim().is_empty())
                .take(LINES_BEFORE_TIMING);
            first.any(|line| TimingLine::parse(line) != TimingLine::NotTiming).then_some(CaptionFormat::Srt)
        }
    }
}

/// Whether a text begins with the WebVTT signature.
pub(super) fn is_webvtt(text: &str) -> bool {
    text.strip_prefix("WEBVTT")
        .is_some_and(|rest| rest.is_empty() || rest.starts_with(['\n', '\r', ' ', '\t']))
}

/// Format with the root element of this XML document.
fn format_of_root(text: &str) -> Option<CaptionFormat> {
    let mut reader = Reader::from_str(head(text, PEEK_BYTES));
    loop {
        match reader.read_event().ok()? {
            Event::Start(element) | Event::Empty(element) => {
                return match element.local_name().into_inner() {
                    "transcript" => Some(CaptionFormat::TimedText),
                    "timedtext" => Some(CaptionFormat::Srv3),
                    "tt" => Some(CaptionFormat::Ttml),
                    _ => None,
                };
            }
            Event::Eof => return None,
            _ => {}
        }
    }
}

/// Error for a body that is in none of the formats.
pub(super) fn not_captions(text: &str) -> CaptionError {
    let text = text.trim_start();
    let lower = head(text, PEEK_BYTES).to_ascii_lowercase();
    CaptionError::not_captions(if lower.starts_with("<!doctype html") || lower.contains("<html") {
        "This is a web page, not captions."
    } else if text.starts_with(['{', '[']) {
        "This is JSON without captions."
    } else if text.starts_with('<') {
        "This is XML, but in none of the caption formats (transcript, timedtext, tt)."
    } else {
        "The text is in no caption format: it is not WebVTT, SRT, SBV, TTML, or XML or JSON of YouTube."
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use CaptionFormat::{Json3, Srt, Srv3, TimedText, Ttml, Utterances, WebVtt};

    #[test]
    fn sniff_body_returns_format() {
        for (body, expect) in [
            ("<transcript><text start=\"0\">a</text></transcript>", Some(TimedText)),
            ("<?xml version=\"1.0\"?>\n<!-- <tt> -->\n<transcript/>", Some(TimedText)),
            ("\u{FEFF}<?xml version=\"1.0\"?><timedtext format=\"3\">", Some(Srv3)),
            ("<tt xmlns=\"http://www.w3.org/ns/ttml\">", Some(Ttml)),
            ("<?xml version='1.0'?><tt:tt xmlns:tt='x'>", Some(Ttml)),
            ("<transcript_list docid=\"1\"/>", None),
            ("<ttx>", None),
            ("<!doctype html><html><body>tt</body></html>", None),
            ("<", None),
            ("<?xml version=\"1.0\"", None),
            ("{\"wireMagic\":\"pb3\",\"events\":[]}", Some(Json3)),
            (" \n{ \"events\" : [] }", Some(Json3)),
            ("{\"error\":{\"code\":403}}", None),
            ("[]", None),
            ("{\"utterances\":[]}", Some(Utterances)),
            ("WEBVTT", Some(WebVtt)),
            ("\u{FEFF}WEBVTT\r\n\r\n", Some(WebVtt)),
            ("WEBVTT Kind: captions\n", Some(WebVtt)),
            ("WEBVTTX\n", None),
            ("1\r\n00:00:01,000 --> 00:00:02,000\r\nhi", Some(Srt)),
            ("\n\n00:01.000-->00:02.000\nhi", Some(Srt)),
            ("0:00:01.000,0:00:03.000\r\nhi", Some(Srt)),
            ("Just words, with an arrow --> here", None),
            ("\u{89}PNG\r\n", None),
            ("", None),
        ] {
            assert_eq!(sniff(body.as_bytes()), expect, "{body:?}");
        }
    }

    #[test]
    fn sniff_other_content_is_named_in_error() {
        let message = |body: &str| not_captions(body).to_string();
        assert!(message("<!DOCTYPE html><p>").contains("web page"));
        assert!(message("<?xml version=\"1.0\"?><html/>").contains("web page"));
        assert!(message("{}").contains("JSON"));
        assert!(message("<feed/>").contains("XML"));
        assert!(message("hello").contains("no caption format"));
    }
}
