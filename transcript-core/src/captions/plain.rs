//! YouTube's first XML format as it is written: no tag removed, no entity of HTML's decoded, and times as they are.
//!
//! For who reads these cues by rules of their own, and has an XML parser for all else. So only the one form is read
//! that YouTube writes, in which no XML parser finds anything else than is read here; whatever differs from it in
//! anything, be it well-formed or not, is left to that parser, with its own errors.

use std::borrow::Cow;

use memchr::{memchr3, memmem};

use super::SEGMENTS_MAX;

/// A cue of YouTube's first XML format, as it is written.
#[derive(Clone, Debug, PartialEq)]
pub struct PlainCue<'a> {
    /// The element's text, decoded as XML and no further; never empty.
    pub text: Cow<'a, str>,
    /// When it is shown, in seconds from the video's beginning.
    pub start: f64,
    /// How long it is shown, in seconds; zero where that is not said.
    pub duration: f64,
}

/// The longest number that is read: none of up to 15 digits loses anything.
const NUMBER_MAX: usize = 16;

/// The cues that have text, in their order, of a body `<transcript><text start="1.54" dur="4.16">…</text>…`; none where
/// any of it is in another form, which an XML parser may know.
///
/// ```
/// let body = br#"<transcript><text start="1.5" dur="2">Tom &amp;amp; Ann</text></transcript>"#;
/// let cues = transcript_core::captions::plain_cues(body).unwrap();
/// assert_eq!((cues[0].text.as_ref(), cues[0].start, cues[0].duration), ("Tom &amp; Ann", 1.5, 2.0));
/// ```
#[must_use]
pub fn plain_cues(body: &[u8]) -> Option<Vec<PlainCue<'_>>> {
    let text = std::str::from_utf8(body).ok()?;
    if !is_all_xml(body) {
        return None;
    }
    let mut rest = after_declaration(text)?.strip_prefix("<transcript>")?;
    let mut cues = Vec::new();
    loop {
        rest = after_blanks(rest);
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
            cues.push(PlainCue { text, start, duration });
        }
        if cues.len() > SEGMENTS_MAX {
            return None;
        }
    }
    after_blanks(rest.strip_prefix("</transcript>")?).is_empty().then_some(cues)
}

/// Whether all of this UTF-8 are characters that XML may have, and none that it turns into another.
fn is_all_xml(body: &[u8]) -> bool {
    let is_control = |byte: &u8| *byte < b' ' && !matches!(byte, b'\n' | b'\t');
    // U+FFFE and U+FFFF are not characters; their neighbours that begin alike are rare.
    !body.iter().any(is_control) && memmem::find(body, b"\xef\xbf").is_none()
}

/// What follows the declaration, where there is one.
fn after_declaration(text: &str) -> Option<&str> {
    let Some(declared) = text.strip_prefix("<?xml version=\"1.0\"") else { return Some(text) };
    let declared = declared.strip_prefix(" encoding=\"utf-8\"").unwrap_or(declared);
    let declared = declared.strip_prefix(" encoding=\"UTF-8\"").unwrap_or(declared);
    Some(after_blanks(after_blanks(declared).strip_prefix("?>")?))
}

fn after_blanks(text: &str) -> &str {
    text.trim_start_matches([' ', '\n', '\t'])
}

/// The number up to the quotation mark, and what follows that.
fn number(text: &str) -> Option<(f64, &str)> {
    let (number, after) = text.split_once('"')?;
    let (whole, fraction) = number.split_once('.').unwrap_or((number, "0"));
    let is_digits = |part: &str| !part.is_empty() && part.bytes().all(|byte| byte.is_ascii_digit());
    let is_known = number.len() <= NUMBER_MAX && is_digits(whole) && is_digits(fraction);
    Some((is_known.then(|| number.parse().ok())??, after))
}

/// The text up to the end of the element, and what follows that.
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
        let cues = plain_cues(body.as_bytes())?;
        Some(cues.into_iter().map(|cue| (cue.text.into_owned(), cue.start, cue.duration)).collect())
    }

    #[test]
    fn cues_are_read_as_they_are_written() {
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
    fn every_declaration_that_is_read_says_the_same() {
        for before in [
            "",
            "<?xml version=\"1.0\"?>",
            "<?xml version=\"1.0\" ?>\n",
            "<?xml version=\"1.0\" encoding=\"UTF-8\"?>",
        ] {
            assert_eq!(
                plain_cues(format!("{before}<transcript></transcript>\n").as_bytes()),
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
            assert_eq!(plain_cues(format!("{before}<transcript></transcript>").as_bytes()), None, "{before}");
        }
    }

    #[test]
    fn whatever_is_in_another_form_is_left_to_others() {
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
            assert_eq!(plain_cues(body), None, "{body:?}");
        }
    }

    proptest! {
        #[test]
        fn no_bytes_panic(body in prop::collection::vec(any::<u8>(), 0..200)) {
            let _ = plain_cues(&body);
        }

        #[test]
        fn what_is_written_is_read(
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
