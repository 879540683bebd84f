//! Pagination of the stores' lists, for operators and audits.

use serde::{Deserialize, Serialize};

use crate::ids::Cursor;

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
