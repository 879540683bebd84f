//! Cuts of texts.

/// The beginning of a text: at most `bytes_max` bytes, cut at a character boundary.
pub fn head(text: &str, bytes_max: usize) -> &str {
    let mut end = text.len().min(bytes_max);
    while !text.is_char_boundary(end) {
        end -= 1;
    }
    text.get(..end).unwrap_or(text)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn heads_end_at_character_boundaries() {
        for (bytes_max, expected) in
            [(0, ""), (1, "a"), (2, "a"), (3, "aé"), (6, "aé"), (7, "aé😀"), (9, "aé😀")]
        {
            assert_eq!(head("aé😀", bytes_max), expected, "{bytes_max}");
        }
    }
}
