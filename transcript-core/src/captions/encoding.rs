//! Decoding of bodies to text.

use std::borrow::Cow;

use super::{BODY_BYTES_MAX, CaptionError, CaptionErrorKind};

/// Maximum number of unreadable characters that are replaced by U+FFFD.
///
/// A platform that sometimes cuts a character in half still delivers its text, with a visible mark for each
/// missing character. A file in another encoding is rejected, not archived with holes.
const REPLACED_MAX: usize = 3;

/// Decodes a body without its byte order mark: UTF-8, or UTF-16 if the mark says so.
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
        return Err(CaptionError::new(CaptionErrorKind::Empty, "The captions are empty."));
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

/// Decodes the beginning of a body, however broken it is. Use the result for detection only.
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
    fn decode_byte_order_mark_selects_encoding() {
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
    fn decode_blank_body_is_empty() {
        for body in [&b""[..], b" \r\n\t", b"\xEF\xBB\xBF", b"\xFF\xFE", b"\xEF\xBB\xBF\n"] {
            assert_eq!(decode(body).unwrap_err().kind(), CaptionErrorKind::Empty, "{body:?}");
        }
    }

    #[test]
    fn decode_few_broken_characters_are_marked_others_rejected() {
        assert_eq!(decode(b"caf\xC3 x").unwrap(), "caf\u{FFFD} x");
        assert_eq!(decode(b"\xFF\xFEh\0i").unwrap(), "h\u{FFFD}");
        assert_eq!(decode(b"\xFF\xFE\x00\xD8h\0").unwrap(), "\u{FFFD}h");
        let latin1 = decode(b"d\xE9j\xE0 vu \xE9t\xE9").unwrap_err();
        assert_eq!(latin1.kind(), CaptionErrorKind::Malformed);
        assert!(latin1.to_string().contains("UTF-8"));
    }

    #[test]
    fn decode_body_above_limit_is_rejected() {
        let body = vec![b'a'; BODY_BYTES_MAX + 1];
        assert_eq!(decode(&body).unwrap_err().kind(), CaptionErrorKind::TooLarge);
        assert!(decode(&body[1..]).is_ok());
    }
}
