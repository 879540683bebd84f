//! Pagination of the stores' lists, for operators and audits.

use std::fmt;

use serde::{Deserialize, Serialize};

use crate::{
    error::{Error, Result},
    ids::Cursor,
    time::Timestamp,
};

/// The largest page that a store returns; larger limits are reduced to it.
pub const PAGE_LIMIT: u32 = 1_000;

/// The page to read.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct PageRequest {
    /// Where the previous page ended; `None` for the first page. For a cursor that this store did not make,
    /// the store returns [`crate::ErrorKind::Invalid`] or starts at an arbitrary item.
    pub after: Option<Cursor>,
    /// At most this many items, from 1 to [`PAGE_LIMIT`].
    pub limit: u32,
}

impl PageRequest {
    /// The first page, with the largest limit.
    pub fn first() -> Self {
        Self { after: None, limit: PAGE_LIMIT }
    }

    /// The number of items to return: `limit`, clamped to 1..=[`PAGE_LIMIT`].
    pub fn size(&self) -> usize {
        self.limit.clamp(1, PAGE_LIMIT) as usize
    }
}

/// A page of items in the store's permanent order. Every page except the last is full.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Page<T> {
    /// The items.
    pub items: Vec<T>,
    /// Where the next page begins; `None` after the last page.
    pub next: Option<Cursor>,
}

impl<T> Page<T> {
    /// The first [`PageRequest::size`] items of those after the request's cursor.
    ///
    /// `items` begins after that cursor, and has at least one item more than the page if the list has one: that shows
    /// whether there is a next page. `cursor` returns the text of the cursor after an item.
    pub fn cut(
        items: impl IntoIterator<Item = T>,
        page: &PageRequest,
        cursor: impl Fn(&T) -> String,
    ) -> Self {
        let size = page.size();
        let mut items: Vec<T> = items.into_iter().take(size + 1).collect();
        let has_more = items.len() > size;
        items.truncate(size);
        let next = items.last().filter(|_| has_more).map(|last| Cursor::new(cursor(last)));
        Self { items, next }
    }
}

impl Cursor {
    /// The number in the cursor of a numbered list; 0 for the first page.
    ///
    /// # Errors
    /// [`crate::ErrorKind::Invalid`] if the cursor is not a number.
    pub fn number(after: Option<&Self>) -> Result<u64> {
        after.map_or(Ok(0), |cursor| cursor.as_str().parse().map_err(|_| no_cursor()))
    }

    /// The text of the cursor after an item of a list by time and id.
    pub fn time_and_id(time: Timestamp, id: impl fmt::Display) -> String {
        format!("{}/{id}", time.as_millis())
    }

    /// The time, in milliseconds since 1970-01-01T00:00:00Z, and the id in a cursor of [`Cursor::time_and_id`].
    ///
    /// # Errors
    /// [`crate::ErrorKind::Invalid`] if the cursor is not of that form.
    pub fn to_time_and_id(&self) -> Result<(i64, &str)> {
        let parts = self.as_str().split_once('/');
        parts.and_then(|(time, id)| Some((time.parse().ok()?, id))).ok_or_else(no_cursor)
    }
}

/// The error for a cursor that cannot be read.
#[cold]
pub fn no_cursor() -> Error {
    Error::invalid("the cursor is not from this store")
}
