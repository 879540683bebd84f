//! Bytes in hexadecimal digits.

/// Writes bytes as hexadecimal digits: two per byte, in lower case.
pub fn encode(bytes: &[u8]) -> String {
    let mut text = String::with_capacity(2 * bytes.len());
    // Hot path: several ids are made per charged request, and a formatter takes many times as long.
    let digits = bytes.iter().flat_map(|byte| [byte >> 4, byte & 15]);
    text.extend(digits.map(|digit| char::from(b"0123456789abcdef"[usize::from(digit)])));
    text
}

/// Reads the bytes of hexadecimal digits in either case.
///
/// `None` for an odd number of digits and for any other character, a sign or a space included.
pub fn decode(text: &str) -> Option<Vec<u8>> {
    let digit = |byte: u8| char::from(byte).to_digit(16);
    let byte = |&[high, low]: &[u8; 2]| u8::try_from(16 * digit(high)? + digit(low)?).ok();
    let (pairs, []) = text.as_bytes().as_chunks::<2>() else { return None };
    pairs.iter().map(byte).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hex_all_bytes_are_read_back() {
        let bytes: Vec<u8> = (0..=u8::MAX).collect();
        let text = encode(&bytes);
        assert!(text.starts_with("000102") && text.contains("090a0b") && text.ends_with("fdfeff"), "{text}");
        assert_eq!(decode(&text), Some(bytes.clone()));
        assert_eq!(decode(&text.to_uppercase()), Some(bytes));
        assert_eq!((encode(&[]), decode("")), (String::new(), Some(Vec::new())));
    }

    #[test]
    fn hex_other_text_is_rejected() {
        for text in ["0", "0a1", "+a", "-a", "a+", " a", "0x", "0g", "é", "0é1", "１０"] {
            assert_eq!(decode(text), None, "{text}");
        }
    }
}
