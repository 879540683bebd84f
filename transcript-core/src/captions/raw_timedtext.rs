//! YouTube's first XML format as written: tags, HTML entities and times stay unprocessed.
//!
//! For callers that process these cues by their own rules and have an XML parser for everything else. Only the
//! form that YouTube writes is accepted, for which every XML parser returns the same result. Any deviation,
//! well-formed or not, is left to the caller's parser and its errors.

use std::borrow::Cow;

use memchr::{memchr3, memmem};

use super::SEGMENTS_MAX;

/// Cue of YouTube's first XML format, as written.
#[derive(Clone, Debug, PartialEq)]
pub struct RawCue<'a> {
    /// Text of the element, decoded as XML and no further; never empty.
    pub text: Cow<'a, str>,
    /// Start in seconds from the beginning of the video.
    pub start: f64,
    /// Duration in seconds; zero if absent.
    pub duration: f64,
}

/// Maximum length of a number: up to 15 digits convert without loss.
const NUMBER_MAX: usize = 16;

/// Parses the cues with text, in order; `None` if any part of the body has another form.
///
/// The body is `<transcript><text start="1.54" dur="4.16">…</text>…`. After `None`, an XML parser may still read it.
///
/// ```
/// let body = br#"<transcript><text start="1.5" dur="2">Tom &amp;amp; Ann</text></transcript>"#;
/// let cues = transcript_core::captions::parse_raw_timedtext(body).unwrap();
/// assert_eq!((cues[0].text.as_ref(), cues[0].start, cues[0].duration), ("Tom &amp; Ann", 1.5, 2.0));
/// ```
#[must_use]
pub fn parse_raw_timedtext(body: &[u8]) -> Option<Vec<RawCue<'_>>> {
    let text = std::str::from_utf8(body).ok()?;
    if !is_all_xml(body) {
        return None;
    }
    let mut rest = skip_declaration(text)?.strip_prefix("<transcript>")?;
    let mut cues = Vec::new();
    loop {
        rest = skip_blanks(rest);
        let Some(cue) = rest.strip_prefix("<text start=\"") else { break };
        let (start, after) = number(cue)?;
        let (duration, after) = match after.strip_prefix(" dur=\"") {
            Some(after) => number(after)?,
            None => (0.0, after),
        };
        let text;
        (text, rest) = match after.strip_prefix("/>") {
            Some(after) => (Cow::Borrowed(""), after),
            None => content(after.strip_prefix('>')?)?,
        };
        if !text.is_empty() {
            cues.push(RawCue { text, start, duration });
        }
        if cues.len() > SEGMENTS_MAX {
            return None;
        }
    }
    skip_blanks(rest.strip_prefix("</transcript>")?).is_empty().then_some(cues)
}

/// Whether XML allows every character of this UTF-8 text and turns none into another.
fn is_all_xml(body: &[u8]) -> bool {
    let is_control = |byte: &u8| *byte < b' ' && !matches!(byte, b'\n' | b'\t');
    // U+FFFE and U+FFFF are not characters; others with the same first bytes are rare.
    !body.iter().any(is_control) && memmem::find(body, b"\xef\xbf").is_none()
}

/// Text after the XML declaration, if there is one.
fn skip_declaration(text: &str) -> Option<&str> {
    let Some(declared) = text.strip_prefix("<?xml version=\"1.0\"") else { return Some(text) };
    let declared = declared.strip_prefix(" encoding=\"utf-8\"").unwrap_or(declared);
    let declared = declared.strip_prefix(" encoding=\"UTF-8\"").unwrap_or(declared);
    Some(skip_blanks(skip_blanks(declared).strip_prefix("?>")?))
}

fn skip_blanks(text: &str) -> &str {
    text.trim_start_matches([' ', '\n', '\t'])
}

/// Parses the number up to the quotation mark; returns it and the text after the mark.
fn number(text: &str) -> Option<(f64, &str)> {
    let (number, after) = text.split_once('"')?;
    let (whole, fraction) = number.split_once('.').unwrap_or((number, "0"));
    let is_digits = |part: &str| !part.is_empty() && part.bytes().all(|byte| byte.is_ascii_digit());
    let is_valid = number.len() <= NUMBER_MAX && is_digits(whole) && is_digits(fraction);
    Some((is_valid.then(|| number.parse().ok())??, after))
}

/// Decodes the text up to the end of the element; returns it and what follows.
fn content(text: &str) -> Option<(Cow<'_, str>, &str)> {
    let (mut decoded, mut rest) = (Cow::Borrowed(""), text);
    loop {
        let at = memchr3(b'<', b'&', b'>', rest.as_bytes())?;
        let (before, mark) = rest.split_at_checked(at)?;
        decoded += before;
        if let Some(after) = mark.strip_prefix("</text>") {
            return Some((decoded, after));
        }
        let (reference, after) = mark.strip_prefix('&')?.split_at_checked(mark.find(';')?)?;
        decoded += match reference {
            "amp;" => "&",
            "lt;" => "<",
            "gt;" => ">",
            "quot;" => "\"",
            "apos;" | "#39;" => "'",
            _ => return None,
        };
        rest = after;
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn read(cues: &str) -> Option<Vec<(String, f64, f64)>> {
        let body = format!("<?xml version=\"1.0\" encoding=\"utf-8\" ?><transcript>{cues}</transcript>");
        let cues = parse_raw_timedtext(body.as_bytes())?;
        Some(cues.into_iter().map(|cue| (cue.text.into_owned(), cue.start, cue.duration)).collect())
    }

    #[test]
    fn raw_cues_keep_text_and_times() {
        for (text, expect) in [
            ("I&amp;#39;m &#39;here&apos;", "I&#39;m 'here'"),
            ("&lt;i&gt;not&lt;/i&gt; &quot;", "<i>not</i> \""),
            (" as \t given\n", " as \t given\n"),
            ("caf\u{e9} \u{85} \u{1f980}", "caf\u{e9} \u{85} \u{1f980}"),
            ("]] ]&gt;", "]] ]>"),
        ] {
            let cue = format!("<text start=\"1.54\" dur=\"4.16\">{text}</text>");
            assert_eq!(read(&cue), Some(vec![(expect.to_owned(), 1.54, 4.16)]), "{text}");
        }
        let several = "\n <text start=\"0\">a</text><text start=\"7\" dur=\"1\"/><text start=\"8\"></text>\t\
                       <text start=\"00012.250\" dur=\"0\">b</text>\n";
        assert_eq!(read(several), Some(vec![("a".to_owned(), 0.0, 0.0), ("b".to_owned(), 12.25, 0.0)]));
        assert_eq!(read(""), Some(Vec::new()));
    }

    #[test]
    fn raw_declaration_accepts_equivalent_forms_only() {
        for before in [
            "",
            "<?xml version=\"1.0\"?>",
            "<?xml version=\"1.0\" ?>\n",
            "<?xml version=\"1.0\" encoding=\"UTF-8\"?>",
        ] {
            assert_eq!(
                parse_raw_timedtext(format!("{before}<transcript></transcript>\n").as_bytes()),
                Some(Vec::new())
            );
        }
        for before in [
            "\n<?xml version=\"1.0\"?>",
            "\u{feff}",
            "<?xml version=\"1.1\"?>",
            "<?xml version=\"1.0\" encoding=\"latin-1\"?>",
            "<?xml version=\"1.0\"encoding=\"utf-8\"?>",
            "<?xml version=\"1.0\" standalone=\"yes\"?>",
            "<!DOCTYPE transcript []>",
            "<!-- -->",
        ] {
            assert_eq!(
                parse_raw_timedtext(format!("{before}<transcript></transcript>").as_bytes()),
                None,
                "{before}"
            );
        }
    }

    #[test]
    fn raw_other_forms_return_none() {
        for cues in [
            "<text start=\"1\">a",
            "<text start=\"1\">a</text",
            "<text start=\"1\">a</b></text>",
            "<text start=\"1\">a<b/></text>",
            "<text start=\"1\"><![CDATA[a]]></text>",
            "<text start=\"1\">a > b</text>",
            "<text start=\"1\">]]></text>",
            "<text start=\"1\">a & b</text>",
            "<text start=\"1\">&eacute;</text>",
            "<text start=\"1\">&#x27;</text>",
            "<text start=\"1\">a\r\nb</text>",
            "<text start=\"1\">a\0</text>",
            "<text start=\"1\">\u{fffe}</text>",
            "<text start='1'>a</text>",
            "<text  start=\"1\">a</text>",
            "<text dur=\"1\" start=\"1\">a</text>",
            "<text start=\"1\" dur=\"1\" dur=\"1\">a</text>",
            "<text dur=\"1\">a</text>",
            "<text start=\"\">a</text>",
            "<text start=\"1.\">a</text>",
            "<text start=\".5\">a</text>",
            "<text start=\"-1\">a</text>",
            "<text start=\"1e3\">a</text>",
            "<text start=\"1_0\">a</text>",
            "<text start=\"inf\">a</text>",
            "<text start=\" 1\">a</text>",
            "<text start=\"10000000000000000\">a</text>",
            "<p t=\"1\">a</p>",
            "words<text start=\"1\">a</text>",
            "<text start=\"1\">a</text></transcript><transcript>",
        ] {
            assert_eq!(read(cues), None, "{cues}");
        }
        for body in [&b""[..], b"<html>", b"<transcript/>", b"<transcript>\xff</transcript>", b"<transcript>"]
        {
            assert_eq!(parse_raw_timedtext(body), None, "{body:?}");
        }
    }

    proptest! {
        #[test]
        fn raw_arbitrary_bytes_never_panic(body in prop::collection::vec(any::<u8>(), 0..200)) {
            let _ = parse_raw_timedtext(&body);
        }

        #[test]
        fn raw_written_cue_is_read_back(
            text in "[ -~\u{e9}\u{1f980}\n]{1,40}", start in 0_u32..9_000_000, duration in 0_u32..9_000,
        ) {
            let escaped = text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;");
            let seconds = |ms: u32| format!("{}.{:03}", ms / 1_000, ms % 1_000);
            let cue = format!("<text start=\"{}\" dur=\"{}\">{escaped}</text>", seconds(start), seconds(duration));
            let expect = (text, f64::from(start) / 1_000.0, f64::from(duration) / 1_000.0);
            prop_assert_eq!(read(&cue), Some(vec![expect]));
        }
    }
}
