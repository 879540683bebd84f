//! Texts: their beginning, their form on one line, and their repair in JSON.

use std::borrow::Cow;

use icu_properties::{CodePointSetData, props::DefaultIgnorableCodePoint};
use memchr::{memchr, memmem};

/// The beginning of a text: at most `bytes_max` bytes, cut at a character boundary.
pub fn head(text: &str, bytes_max: usize) -> &str {
    let mut end = text.len().min(bytes_max);
    while !text.is_char_boundary(end) {
        end -= 1;
    }
    text.get(..end).unwrap_or(text)
}

/// Whether a text stays on one line and in its order.
///
/// Control characters, line separators and characters that reorder the text around them do not; the marks of direction
/// in names of right-to-left scripts do.
pub(crate) fn is_one_line(text: &str) -> bool {
    !text.contains(|c: char| c.is_control() || matches!(c, '\u{2028}' | '\u{2029}') || is_reordering(c))
}

/// A text on one line: its words, with single spaces between them and without control characters.
///
/// ```
/// use transcript_core::text::one_line;
///
/// assert_eq!(one_line(" a\r\n\tb\u{0}c\u{2028}"), "a b c");
/// ```
pub fn one_line(text: &str) -> String {
    let words = text.split(|c: char| c.is_whitespace() || c.is_control());
    words.filter(|word| !word.is_empty()).collect::<Vec<_>>().join(" ")
}

/// Whether a character reorders the text around it.
pub fn is_reordering(c: char) -> bool {
    matches!(c, '\u{202A}'..='\u{202E}' | '\u{2066}'..='\u{2069}')
}

/// Whether a text shows anything.
pub(crate) fn is_visible(text: &str) -> bool {
    text.contains(|c: char| !c.is_whitespace() && !c.is_control() && !is_blank_sign(c))
}

/// Whether a character is invisible, or blank without being white space.
pub fn is_blank_sign(c: char) -> bool {
    // Unicode counts the blank of Braille as a symbol, and what surrounds an annotation as visible.
    matches!(c, '\u{2800}' | '\u{FFF9}'..='\u{FFFB}')
        || CodePointSetData::new::<DefaultIgnorableCodePoint>().contains(c)
}

/// Length of an escape in JSON such as `\ud83d`, in bytes.
const ESCAPE_LENGTH: usize = 6;

/// A JSON text in which each escaped surrogate without its other half is U+FFFD.
///
/// Programs that cut a text between two UTF-16 units write half an emoji as `\ud83d`. A parser of JSON would reject the
/// whole text for it. All else stays unchanged, whether it is JSON or not.
///
/// ```
/// use transcript_core::text::replace_lone_surrogates;
///
/// assert_eq!(replace_lone_surrogates(r#""a\ud83d""#), r#""a\ufffd""#);
/// assert_eq!(replace_lone_surrogates(r#""\ud83d\ude00""#), r#""\ud83d\ude00""#);
/// ```
#[must_use]
pub fn replace_lone_surrogates(json: &str) -> Cow<'_, str> {
    let bytes = json.as_bytes();
    if memmem::find(bytes, b"\\ud").is_none() && memmem::find(bytes, b"\\uD").is_none() {
        return Cow::Borrowed(json);
    }
    let mut replaced = String::new();
    let (mut copied, mut from) = (0, 0);
    while let Some(found) = bytes.get(from..).and_then(|rest| memchr(b'\\', rest)) {
        let at = from + found;
        let after = at + ESCAPE_LENGTH;
        match escaped_unit(bytes, at) {
            Some(0xD800..=0xDBFF) if matches!(escaped_unit(bytes, after), Some(0xDC00..=0xDFFF)) => {
                from = after + ESCAPE_LENGTH;
            }
            Some(0xD800..=0xDFFF) => {
                replaced.push_str(json.get(copied..at).unwrap_or(""));
                replaced.push_str("\\ufffd");
                (copied, from) = (after, after);
            }
            Some(_) => from = after,
            // An escape of two characters: the second one may be a backslash.
            None => from = at + 2,
        }
    }
    if copied == 0 {
        return Cow::Borrowed(json);
    }
    replaced.push_str(json.get(copied..).unwrap_or(""));
    Cow::Owned(replaced)
}

/// The UTF-16 unit that an escape at this place of a JSON text names.
fn escaped_unit(json: &[u8], at: usize) -> Option<u16> {
    let digits = json.get(at..at + ESCAPE_LENGTH)?.strip_prefix(b"\\u")?;
    // A sign is no digit, but `from_str_radix` accepts one.
    let digits = std::str::from_utf8(digits).ok().filter(|_| digits.iter().all(u8::is_ascii_hexdigit))?;
    u16::from_str_radix(digits, 16).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lone_surrogates_of_json_are_replaced() {
        for (json, expect) in [
            (r#""\ud83d""#, r#""\ufffd""#),
            (r#""a\uDE00b""#, r#""a\ufffdb""#),
            (r#""é\ud83d\ud83d\ude00é""#, r#""é\ufffd\ud83d\ude00é""#),
            (r#""\ud83d\u0041\ude00""#, r#""\ufffd\u0041\ufffd""#),
            (r#""\ud83d\n\uD83D""#, r#""\ufffd\n\ufffd""#),
            // A backslash before the letters of an escape, and unfinished ones.
            (r#""\\ud83d""#, r#""\\ud83d""#),
            (r#""\\\ud83d""#, r#""\\\ufffd""#),
            (r#""\ud8"#, r#""\ud8"#),
            (r#""\ud83d\"#, r#""\ufffd\"#),
            (r#""\ud83"#, r#""\ud83"#),
            (r#""\ud83é""#, r#""\ud83é""#),
            (r#""\ud7ff\ue000""#, r#""\ud7ff\ue000""#),
            ("\\ud83d", "\\ufffd"),
            ("", ""),
        ] {
            assert_eq!(replace_lone_surrogates(json), expect, "{json}");
        }
        assert!(matches!(replace_lone_surrogates(r#""\ud83d\ude00""#), Cow::Borrowed(_)));
        let json = replace_lone_surrogates(r#""\ud83d\ude00 \udead""#);
        let text: String = serde_json::from_str(&json).unwrap();
        assert_eq!(text, "😀 \u{FFFD}");
    }

    #[test]
    fn names_on_one_line_that_show_something_are_recognized() {
        // A family is several emoji with joiners, and a name may have marks of its direction.
        for name in [
            "laptop",
            "Example & Söhne",
            "שלום\u{200F}",
            "\u{61C}مرحبا",
            "👩\u{200D}👩\u{FE0F}",
            "می\u{200C}خواهم",
        ] {
            assert!(is_one_line(name) && is_visible(name), "{name:?}");
        }
        for name in
            ["a\nb", "a\u{85}b", "a\u{2028}b", "a\u{2029}b", "a\u{202E}b", "a\u{2066}b\u{2069}", "\u{9B}2J"]
        {
            assert!(!is_one_line(name), "{name:?}");
        }
        for name in
            ["", " \u{3000}", "\u{200B}", "\u{FEFF} \u{AD}", "\u{FFF9}", "\u{2800}", "\u{E0041}\u{FE0F}"]
        {
            assert!(!is_visible(name), "{name:?}");
        }
    }

    #[test]
    fn heads_end_at_character_boundaries() {
        for (bytes_max, expected) in
            [(0, ""), (1, "a"), (2, "a"), (3, "aé"), (6, "aé"), (7, "aé😀"), (9, "aé😀")]
        {
            assert_eq!(head("aé😀", bytes_max), expected, "{bytes_max}");
        }
    }
}
