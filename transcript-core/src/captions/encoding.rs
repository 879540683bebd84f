//! From bytes to text.

use std::borrow::Cow;

use super::{BODY_BYTES_MAX, CaptionError, CaptionErrorKind};

/// How many unreadable characters are replaced by U+FFFD before the body is refused.
///
/// A platform that cuts a character in half here and there still gives its words, with a visible mark
/// where one is missing; a file in another encoding is refused rather than kept for ever with holes.
const REPLACED_MAX: usize = 3;

/// The body as text, without its byte order mark: UTF-8, or UTF-16 where a byte order mark says so.
pub(super) fn decode(body: &[u8]) -> Result<Cow<'_, str>, CaptionError> {
    if body.len() > BODY_BYTES_MAX {
        let mib = BODY_BYTES_MAX / (1024 * 1024);
        return Err(CaptionError::new(
            CaptionErrorKind::TooLarge,
            format!("The captions are larger than {mib} MiB."),
        ));
    }
    let text = match body {
        [0xEF, 0xBB, 0xBF, rest @ ..] => decode_utf8(rest)?,
        [0xFF, 0xFE, rest @ ..] => decode_utf16(rest, u16::from_le_bytes)?.into(),
        [0xFE, 0xFF, rest @ ..] => decode_utf16(rest, u16::from_be_bytes)?.into(),
        _ => decode_utf8(body)?,
    };
    if text.trim().is_empty() {
        return Err(CaptionError::new(
            CaptionErrorKind::Empty,
            "The answer was empty where captions were due.",
        ));
    }
    Ok(text)
}

fn decode_utf8(bytes: &[u8]) -> Result<Cow<'_, str>, CaptionError> {
    if let Ok(text) = std::str::from_utf8(bytes) {
        return Ok(Cow::Borrowed(text));
    }
    let mut text = String::with_capacity(bytes.len());
    let mut replaced = 0;
    for chunk in bytes.utf8_chunks() {
        text.push_str(chunk.valid());
        if !chunk.invalid().is_empty() {
            replace(&mut text, &mut replaced)?;
        }
    }
    Ok(Cow::Owned(text))
}

fn decode_utf16(bytes: &[u8], unit: fn([u8; 2]) -> u16) -> Result<String, CaptionError> {
    let mut text = String::with_capacity(bytes.len());
    let mut replaced = 0;
    let (pairs, rest) = bytes.as_chunks::<2>();
    for decoded in char::decode_utf16(pairs.iter().map(|&pair| unit(pair))) {
        match decoded {
            Ok(c) => text.push(c),
            Err(_) => replace(&mut text, &mut replaced)?,
        }
    }
    if !rest.is_empty() {
        replace(&mut text, &mut replaced)?;
    }
    Ok(text)
}

fn replace(text: &mut String, replaced: &mut usize) -> Result<(), CaptionError> {
    *replaced += 1;
    if *replaced > REPLACED_MAX {
        return Err(CaptionError::malformed(
            "The captions are not UTF-8. Convert the file to UTF-8, or to UTF-16 with a byte order mark.",
        ));
    }
    text.push(char::REPLACEMENT_CHARACTER);
    Ok(())
}

/// The beginning of a body as text, however broken it is: only to look at, never to keep.
pub(super) fn peek(body: &[u8], bytes_max: usize) -> String {
    let head = body.get(..bytes_max).unwrap_or(body);
    let units = |rest: &[u8], unit: fn([u8; 2]) -> u16| -> String {
        char::decode_utf16(rest.as_chunks::<2>().0.iter().map(|&pair| unit(pair)))
            .map(|decoded| decoded.unwrap_or(char::REPLACEMENT_CHARACTER))
            .collect()
    };
    match head {
        [0xEF, 0xBB, 0xBF, rest @ ..] => String::from_utf8_lossy(rest).into_owned(),
        [0xFF, 0xFE, rest @ ..] => units(rest, u16::from_le_bytes),
        [0xFE, 0xFF, rest @ ..] => units(rest, u16::from_be_bytes),
        _ => String::from_utf8_lossy(head).into_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn byte_order_marks_name_the_encoding() {
        for body in [
            &b"hi \xC3\xA9"[..],
            b"\xEF\xBB\xBFhi \xC3\xA9",
            b"\xFF\xFEh\0i\0 \0\xE9\0",
            b"\xFE\xFF\0h\0i\0 \0\xE9",
        ] {
            assert_eq!(decode(body).unwrap(), "hi é", "{body:?}");
            assert_eq!(peek(body, 100), "hi é", "{body:?}");
        }
        assert_eq!(peek(b"abcdef", 3), "abc");
    }

    #[test]
    fn nothing_is_empty() {
        for body in [&b""[..], b" \r\n\t", b"\xEF\xBB\xBF", b"\xFF\xFE", b"\xEF\xBB\xBF\n"] {
            assert_eq!(decode(body).unwrap_err().kind(), CaptionErrorKind::Empty, "{body:?}");
        }
    }

    #[test]
    fn a_few_broken_characters_are_marked_and_another_encoding_is_refused() {
        assert_eq!(decode(b"caf\xC3 x").unwrap(), "caf\u{FFFD} x");
        assert_eq!(decode(b"\xFF\xFEh\0i").unwrap(), "h\u{FFFD}");
        assert_eq!(decode(b"\xFF\xFE\x00\xD8h\0").unwrap(), "\u{FFFD}h");
        let latin1 = decode(b"d\xE9j\xE0 vu \xE9t\xE9").unwrap_err();
        assert_eq!(latin1.kind(), CaptionErrorKind::Malformed);
        assert!(latin1.to_string().contains("UTF-8"));
    }

    #[test]
    fn a_body_above_the_limit_is_refused() {
        let body = vec![b'a'; BODY_BYTES_MAX + 1];
        assert_eq!(decode(&body).unwrap_err().kind(), CaptionErrorKind::TooLarge);
        assert!(decode(&body[1..]).is_ok());
    }
}
