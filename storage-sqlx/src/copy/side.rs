//! One side of a copy, source or target: a part (main or archive) in a file or in a database.

use async_trait::async_trait;
use transcript_core::{Error, Result};

use super::{
    row::{CopyColumn, CopyRow, CopyValue},
    table::CopyTable,
};

/// Role of a side.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum CopyRole {
    Source,
    Target,
}

/// The state of a copy, stored in its target.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct CopyState {
    /// Description of the source.
    pub(super) source: String,
    /// The position of the copy, as written by [`super::copier`].
    pub(super) position: String,
}

/// A part as the source or the target of a copy.
#[async_trait]
pub(super) trait CopySide: Send {
    /// Name in messages.
    fn name(&self) -> &str;

    /// Whether it is a file, in which the numbers of a table's rows are unique.
    fn is_files(&self) -> bool;

    /// The copied columns of a table, by name.
    async fn columns(&mut self, table: &'static CopyTable) -> Result<Vec<CopyColumn>>;

    /// The names of all tables.
    async fn tables(&mut self) -> Result<Vec<String>>;

    /// The number of rows in a table.
    async fn count(&mut self, table: &'static CopyTable) -> Result<u64>;

    /// The next rows in key order, after the row with this key.
    async fn page(
        &mut self,
        table: &'static CopyTable,
        columns: &[CopyColumn],
        after: Option<&[CopyValue]>,
    ) -> Result<Vec<CopyRow>>;

    /// The next videos with any stored rows, in order.
    async fn videos(&mut self, after: Option<&str>, limit: u32) -> Result<Vec<String>>;

    /// The rows of some videos, each video's in key order.
    async fn rows_of_videos(
        &mut self,
        table: &'static CopyTable,
        columns: &[CopyColumn],
        videos: &[String],
    ) -> Result<Vec<CopyRow>>;

    /// Bodies of these videos that are not yet in the table of bodies, in the current form.
    ///
    /// Only files have such bodies.
    async fn legacy_bodies(&mut self, videos: &[String]) -> Result<Vec<super::videos::LegacyBody>>;

    /// The stored state of an unfinished copy, if there is one.
    async fn copy_state(&mut self) -> Result<Option<CopyState>>;

    /// Begins a copy to this side: from now on it cannot be opened.
    ///
    /// # Errors
    /// [`ErrorKind::Conflict`] if there are other connections or existing rows.
    async fn begin_copy(&mut self, state: &CopyState) -> Result<()>;

    /// Continues a copy, exclusively from now on. Returns its stored state.
    async fn take_over(&mut self) -> Result<CopyState>;

    /// Stores rows and the new position in one transaction.
    async fn store(&mut self, batches: Vec<CopyBatch>, position: &str) -> Result<()>;

    /// Ends the copy: the side can be opened.
    async fn end_copy(&mut self) -> Result<()>;

    /// The numbers that are already used, in a database whose numbers are unique.
    async fn used_numbers(&mut self, table: &'static CopyTable, numbers: &[i64]) -> Result<Vec<i64>>;

    /// The newest copied entry of a wallet; 0 if there is none.
    async fn newest_entry(&mut self, wallet: &str) -> Result<i64>;

    /// The largest number of a table's rows, in a database whose numbers are unique; 0 if there is none.
    async fn largest_number(&mut self, table: &'static CopyTable) -> Result<i64>;

    /// Releases all locks and connections.
    async fn close(self: Box<Self>);
}

/// Rows for a table.
#[derive(Debug)]
pub(super) struct CopyBatch {
    pub(super) table: &'static CopyTable,
    pub(super) columns: Vec<CopyColumn>,
    pub(super) rows: Vec<CopyRow>,
}

/// The index of a column.
pub(super) fn column_index(columns: &[CopyColumn], name: &str) -> Result<usize> {
    columns
        .iter()
        .position(|column| column.name == name)
        .ok_or_else(|| Error::unexpected(format!("a table has no column {name}")))
}
