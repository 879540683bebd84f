//! Texts in columns, which cannot hold U+0000.
//!
//! Titles, labels and names come from outside and may contain it. So U+0000 is stored as U+001A and `0`, and U+001A
//! itself, which is rare in texts, as U+001A and `1`: different texts stay different, and their order is well defined.

use std::borrow::Cow;

use sqlx::{Row, postgres::PgRow};

use crate::error::DbResult;

/// The escape character.
const MARK: char = '\u{1A}';

/// Encodes a text for a column.
pub(super) fn text(text: &str) -> Cow<'_, str> {
    if text.contains(['\0', MARK]) {
        Cow::Owned(text.replace(MARK, "\u{1A}1").replace('\0', "\u{1A}0"))
    } else {
        Cow::Borrowed(text)
    }
}

/// Encodes a text for a parameter.
pub(crate) fn encode(value: &str) -> String {
    text(value).into_owned()
}

/// Decodes the text of a column.
pub(crate) fn decode(column: String) -> String {
    if column.contains(MARK) { column.replace("\u{1A}0", "\0").replace("\u{1A}1", "\u{1A}") } else { column }
}

/// Decodes the text in a column of a row.
pub(super) fn read(row: &PgRow, column: usize) -> DbResult<String> {
    Ok(decode(row.try_get(column)?))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn text_encoded_decodes_equal_and_stays_unique() {
        let texts =
            ["", "a", "\0", "\u{1A}", "\u{1A}0", "\u{1A}1", "\0\u{1A}1\0", "0\u{1A}\0", "\u{1A}\u{1A}0"];
        for (index, one) in texts.iter().enumerate() {
            let stored = encode(one);
            assert!(!stored.contains('\0'), "{one:?}");
            assert_eq!(decode(stored.clone()), *one);
            assert!(texts[..index].iter().all(|other| encode(other) != stored), "{one:?}");
        }
    }
}
