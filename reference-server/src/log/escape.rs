//! Text of clients in log lines: visible characters only, and no keys.

use std::{borrow::Cow, fmt::Write as _};

use transcript_core::text::is_blank_sign;

/// Longest text of a request that is logged, in characters.
const TEXT_MAX: usize = 120;
const KEY_PREFIXES: [&[u8]; 3] = [b"vbk_", b"vba_", b"vbo_"];

/// Returns a path or method as it is logged: visible ASCII, with other bytes percent-encoded.
///
/// It is cut at the maximum length, and before anything that looks like a key: a client may have put one there by
/// mistake.
pub(super) fn request_text(text: &str) -> Cow<'_, str> {
    let is_plain = text.bytes().all(|byte| byte.is_ascii_graphic() && byte != b'%');
    if is_plain
        && text.len() <= TEXT_MAX
        && !text.as_bytes().windows(2).any(|pair| pair.eq_ignore_ascii_case(b"vb"))
    {
        return Cow::Borrowed(text);
    }
    let end = key_start(text.as_bytes()).unwrap_or(text.len());
    let mut shown = String::with_capacity(TEXT_MAX);
    for byte in text.bytes().take(end) {
        let length = if byte.is_ascii_graphic() { 1 } else { 3 };
        if shown.len() + length > TEXT_MAX {
            shown.push('…');
            return Cow::Owned(shown);
        }
        // Writing to a string cannot fail.
        let _ = match byte.is_ascii_graphic() {
            true => shown.write_char(char::from(byte)),
            false => write!(shown, "%{byte:02X}"),
        };
    }
    if end < text.len() {
        shown.push('…');
    }
    Cow::Owned(shown)
}

/// Offset of the first key in a text, whose characters may be percent-encoded any number of times.
fn key_start(text: &[u8]) -> Option<usize> {
    let digit = |byte: u8| char::from(byte).to_digit(16);
    // Decoded bytes, each with the offset of its first source byte.
    let mut decoded: Vec<(u8, usize)> = Vec::with_capacity(text.len());
    for (at, &byte) in text.iter().enumerate() {
        decoded.push((byte, at));
        // A decoded byte may complete another escape: `%2576` is `%76`, which is `v`.
        while let [.., (b'%', start), (high, _), (low, _)] = *decoded.as_slice()
            && let (Some(high), Some(low)) = (digit(high), digit(low))
        {
            decoded.truncate(decoded.len() - 3);
            decoded.push(((high * 16 + low) as u8, start));
        }
    }
    // Invisible bytes between the characters do not hide a key.
    decoded.retain(|(byte, _)| byte.is_ascii_graphic());
    let is_key = |window: &&[(u8, usize)]| {
        let found = window.iter().map(|(byte, _)| byte.to_ascii_lowercase());
        KEY_PREFIXES.iter().any(|prefix| found.clone().eq(prefix.iter().copied()))
    };
    decoded.windows(4).find(is_key).and_then(|window| window.first()).map(|(_, at)| *at)
}

/// Escapes the invisible characters of a finished line, as `\u009b`, which is also JSON's escape.
///
/// They end a line, control a terminal or reorder the text around them. Colours are escape sequences of the log
/// itself: the text of events has none.
pub(super) fn escape_line(line: Vec<u8>, has_colours: bool) -> Vec<u8> {
    const ESCAPE: char = '\u{1b}';
    let (text, end) = match line.split_last() {
        Some((b'\n', text)) => (text, "\n"),
        _ => (line.as_slice(), ""),
    };
    let is_kept = |c: char| !is_invisible(c) || has_colours && c == ESCAPE;
    if text.iter().all(|&byte| byte.is_ascii() && is_kept(char::from(byte))) {
        return line;
    }
    let mut escaped = String::with_capacity(line.len());
    for c in String::from_utf8_lossy(text).chars() {
        match c {
            c if is_kept(c) => escaped.push(c),
            '\n' | '\r' | '\t' => escaped.extend(c.escape_default()),
            c => {
                for unit in c.encode_utf16(&mut [0; 2]) {
                    // Writing to a string cannot fail.
                    let _ = write!(escaped, "\\u{unit:04x}");
                }
            }
        }
    }
    escaped.push_str(end);
    escaped.into_bytes()
}

/// Whether a character is a control or format character, a line separator, or blank without being a space.
fn is_invisible(c: char) -> bool {
    c.is_control() || !c.is_ascii() && (matches!(c, '\u{2028}' | '\u{2029}') || is_blank_sign(c))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// Percent-encodes all or some bytes.
    fn encoded(text: &str, which: fn(usize) -> bool) -> String {
        let encode = |(at, byte): (usize, u8)| match which(at) {
            true => format!("%{byte:02x}"),
            false => char::from(byte).to_string(),
        };
        text.bytes().enumerate().map(encode).collect()
    }

    #[test]
    fn request_text_is_visible_ascii() {
        assert_eq!(request_text("/watch/video_site/dyke-walk-0"), "/watch/video_site/dyke-walk-0");
        for (text, expect) in [
            ("/a\u{9b}31m", "/a%C2%9B31m"),
            ("/a\u{202e}b", "/a%E2%80%AEb"),
            ("/a\u{1b}[2J\n", "/a%1B[2J%0A"),
            ("/a\u{200b}\u{feff}\u{2028}", "/a%E2%80%8B%EF%BB%BF%E2%80%A8"),
            ("/\u{e9}", "/%C3%A9"),
            ("/a%20b", "/a%20b"),
        ] {
            assert_eq!(request_text(text), expect, "{text:?}");
        }
    }

    #[test]
    fn request_text_is_cut_before_key_in_any_encoding() {
        let key = "vbk_hush-0123456789";
        let all = encoded(key, |_| true);
        for key in [
            key.to_owned(),
            key.to_uppercase(),
            key.replace("vbk_", "vba_"),
            encoded(key, |at| at % 2 == 0),
            encoded(key, |at| at == 3),
            all.clone(),
            all.to_uppercase(),
            encoded(&all, |at| at % 3 == 0),
            encoded(&encoded(&all, |_| true), |_| true),
            // The digits of an escape are escaped themselves.
            "v%%362k_hush".to_owned(),
            "v\u{200b}b\u{ad}k_hush".to_owned(),
            "v%E2%80%8Bbk_hush".to_owned(),
        ] {
            assert_eq!(request_text(&format!("/api/keys/{key}")), "/api/keys/…", "{key}");
        }
        assert_eq!(request_text("/vb/x%20vb"), "/vb/x%20vb");
    }

    proptest! {
        #[test]
        fn request_text_is_short_and_has_no_hidden_character(text: String) {
            let shown = request_text(&text);
            prop_assert!(shown.chars().all(|c| c.is_ascii_graphic() || c == '…'));
            prop_assert!(shown.chars().count() <= TEXT_MAX + 1);
        }

        #[test]
        fn line_has_no_invisible_character_and_json_stays_valid(text: String) {
            let line = format!("{}\n", serde_json::json!({ "message": text }));
            let escaped = String::from_utf8(escape_line(line.into_bytes(), false)).unwrap();
            let line = escaped.strip_suffix('\n').unwrap();
            prop_assert!(!line.contains(is_invisible), "{line:?}");
            prop_assert_eq!(&serde_json::from_str::<serde_json::Value>(line).unwrap()["message"], &text);
        }
    }

    #[test]
    fn line_invisible_characters_are_escaped() {
        for (line, has_colours, expect) in [
            ("plain \u{e9}\n", false, "plain \u{e9}\n"),
            ("two\nlines\r\n", false, "two\\nlines\\r\n"),
            ("\u{9b}31m\u{202e}x\u{2028}\n", false, "\\u009b31m\\u202ex\\u2028\n"),
            ("\u{e0041}\n", false, "\\udb40\\udc41\n"),
            ("\u{1b}[32mINFO\u{1b}[0m\n", true, "\u{1b}[32mINFO\u{1b}[0m\n"),
            ("\u{1b}[32mINFO\n", false, "\\u001b[32mINFO\n"),
        ] {
            let escaped = escape_line(line.as_bytes().to_vec(), has_colours);
            assert_eq!(String::from_utf8(escaped).unwrap(), expect, "{line:?}");
        }
    }
}
