//! Paging through what a store holds, for operators and audits.

use serde::{Deserialize, Serialize};

use crate::ids::Cursor;

/// The largest page that a store returns; larger requests are cut to it.
pub const PAGE_LIMIT: u32 = 1_000;

/// Which page is wanted.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct PageRequest {
    /// Where the page before ended; none for the first page. A cursor that the store did not make is
    /// [`crate::ErrorKind::Invalid`], or begins anywhere.
    pub after: Option<Cursor>,
    /// At most this many items, from 1 to [`PAGE_LIMIT`].
    pub limit: u32,
}

impl PageRequest {
    /// The first page, as large as a store gives.
    pub fn first() -> Self {
        Self { after: None, limit: PAGE_LIMIT }
    }

    /// The number of items to return: `limit`, brought between 1 and [`PAGE_LIMIT`].
    pub fn size(&self) -> usize {
        self.limit.clamp(1, PAGE_LIMIT) as usize
    }
}

/// A page of items, in the store's own lasting order. Every page but the last is full.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Page<T> {
    /// The items.
    pub items: Vec<T>,
    /// Where the next page begins; none after the last one.
    pub next: Option<Cursor>,
}
