//! One part on one side of a copy.

use async_trait::async_trait;
use transcript_core::{Error, ErrorKind, Result, Retry};

use super::{
    row::{Column, Row, Value},
    table::Table,
};

/// What a side is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Role {
    Source,
    Target,
}

/// What a target knows of the copy that is made to it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Note {
    /// What is copied, in words.
    pub(super) source: String,
    /// How far the copy is, as [`super::work`] writes it.
    pub(super) place: String,
}

/// One part on one side.
#[async_trait]
pub(super) trait Side: Send {
    /// What people call it.
    fn name(&self) -> &str;

    /// Whether it is a file, in which no two rows of a table have the same number.
    fn is_files(&self) -> bool;

    /// The columns of a table that are carried, by name.
    async fn columns(&mut self, table: &'static Table) -> Result<Vec<Column>>;

    /// The names of all tables.
    async fn tables(&mut self) -> Result<Vec<String>>;

    /// How many rows a table has.
    async fn count(&mut self, table: &'static Table) -> Result<u64>;

    /// The next rows in the order of the key, after a row with this key.
    async fn page(
        &mut self,
        table: &'static Table,
        columns: &[Column],
        after: Option<&[Value]>,
    ) -> Result<Vec<Row>>;

    /// The next videos that anything is known of, in their order.
    async fn videos(&mut self, after: Option<&str>, limit: u32) -> Result<Vec<String>>;

    /// The rows of some videos, each video's in the order of its key.
    async fn of_videos(
        &mut self,
        table: &'static Table,
        columns: &[Column],
        videos: &[String],
    ) -> Result<Vec<Row>>;

    /// Bodies of these videos that are in no table of bodies yet: the ids of their transcripts, and what becomes of
    /// them. Only files have such.
    async fn old_bodies(&mut self, videos: &[String]) -> Result<Vec<super::videos::OldBody>>;

    /// What is noted here of a copy that has not ended; none where there is no such copy.
    async fn note(&mut self) -> Result<Option<Note>>;

    /// Begins a copy to here: from now on nobody opens it.
    ///
    /// # Errors
    /// [`ErrorKind::Conflict`] where somebody is connected, or there is something already.
    async fn begin_copy(&mut self, note: &Note) -> Result<()>;

    /// Goes on with one: nobody else does from now on. The note as it is now.
    async fn take_over(&mut self) -> Result<Note>;

    /// Stores rows, and how far the copy is then, in one transaction.
    async fn store(&mut self, batches: Vec<Batch>, place: &str) -> Result<()>;

    /// The copy has ended: it may be opened.
    async fn end_copy(&mut self) -> Result<()>;

    /// Which of these numbers are taken already, in a database in which no two rows have the same.
    async fn taken(&mut self, table: &'static Table, numbers: &[i64]) -> Result<Vec<i64>>;

    /// The newest number of a wallet's entries that were copied; 0 where there is none.
    async fn newest_entry(&mut self, wallet: &str) -> Result<i64>;

    /// The largest number of a table's rows, in a database in which no two have the same; 0 where there is none.
    async fn largest(&mut self, table: &'static Table) -> Result<i64>;

    /// Gives everything back.
    async fn close(self: Box<Self>);
}

/// Rows for a table.
#[derive(Debug)]
pub(super) struct Batch {
    pub(super) table: &'static Table,
    pub(super) columns: Vec<Column>,
    pub(super) rows: Vec<Row>,
}

/// Something that must be put right first.
#[cold]
pub(super) fn conflict(message: impl Into<String>) -> Error {
    Error::new(ErrorKind::Conflict, Retry::Never, message)
}

/// The place of a column.
pub(super) fn place(columns: &[Column], name: &str) -> Result<usize> {
    columns
        .iter()
        .position(|column| column.name == name)
        .ok_or_else(|| Error::unexpected(format!("a table has no column {name}")))
}
