//! Texts in columns: a column takes every character but U+0000.
//!
//! Titles, labels and names come from outside and may hold one. So U+0000 is written as U+001A and `0`, and U+001A
//! itself, which hardly any text has, as U+001A and `1`: texts that differ stay different, and their order is one.

use std::borrow::Cow;

use sqlx::{Row, postgres::PgRow};

use crate::error::{Work, corrupt};

/// What stands before the two characters that are written otherwise.
const MARK: char = '\u{1A}';

/// A text as a column takes it.
pub(super) fn text(text: &str) -> Cow<'_, str> {
    if text.contains(['\0', MARK]) {
        Cow::Owned(text.replace(MARK, "\u{1A}1").replace('\0', "\u{1A}0"))
    } else {
        Cow::Borrowed(text)
    }
}

/// A text as a parameter takes it.
pub(crate) fn own(value: &str) -> String {
    text(value).into_owned()
}

/// A text as a parameter takes it, where there is one.
pub(super) fn perhaps(value: Option<&str>) -> Option<String> {
    value.map(own)
}

/// The text that a column holds.
pub(crate) fn plain(column: String) -> String {
    if column.contains(MARK) { column.replace("\u{1A}0", "\0").replace("\u{1A}1", "\u{1A}") } else { column }
}

/// The text in a column of a row.
pub(super) fn read(row: &PgRow, column: usize) -> Work<String> {
    Ok(plain(row.try_get(column)?))
}

/// The text in a column that may have none.
pub(super) fn read_perhaps(row: &PgRow, column: usize) -> Work<Option<String>> {
    Ok(row.try_get::<Option<String>, _>(column)?.map(plain))
}

/// The list of JSON in a column.
pub(super) fn listed<T: serde::de::DeserializeOwned>(json: &str) -> Work<Vec<T>> {
    Ok(serde_json::from_str(json).map_err(|_| corrupt("a stored list is damaged"))?)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_text_comes_back_and_none_is_taken_for_another() {
        let texts =
            ["", "a", "\0", "\u{1A}", "\u{1A}0", "\u{1A}1", "\0\u{1A}1\0", "0\u{1A}\0", "\u{1A}\u{1A}0"];
        for (place, one) in texts.iter().enumerate() {
            let stored = own(one);
            assert!(!stored.contains('\0'), "{one:?}");
            assert_eq!(plain(stored.clone()), *one);
            assert!(texts[..place].iter().all(|other| own(other) != stored), "{one:?}");
        }
    }
}
