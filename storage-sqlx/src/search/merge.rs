//! Merges the parts of an index in a file.
//!
//! FTS5 writes a part for each transaction, and merges four of a size while it writes. A query looks each word up in
//! every part, and each part has its own list of words.

use crate::{
    error::DbResult,
    sql::{Session, WriteTx, values},
};

/// Videos that are put before parts are merged.
pub(super) const MERGE_VIDEOS: usize = 64;
/// Most pages that a transaction writes, in some 10 ms.
const MERGE_PAGES: i64 = 150;

const MERGE: &str = "INSERT INTO terms (terms, rank) VALUES ('merge', $1)";
const CHANGES: &str = "SELECT total_changes()";
/// A merge that changes fewer rows had nothing to do.
const CHANGES_MIN: i64 = 2;

/// Merges some pages.
#[derive(Debug)]
pub(super) struct MergeTx;

impl WriteTx for MergeTx {
    /// Whether nothing is left to merge.
    type Outcome = bool;

    /// A crash of the machine may undo it.
    #[cfg(feature = "sqlite")]
    fn needs_sync(&self, _: &bool) -> bool {
        false
    }

    async fn run<S: Session>(&self, db: &mut S) -> DbResult<bool> {
        let before: i64 = db.only_row(CHANGES, &values![]).await?.take(0)?;
        db.execute(MERGE, &values![MERGE_PAGES]).await?;
        let after: i64 = db.only_row(CHANGES, &values![]).await?.take(0)?;
        Ok(after.saturating_sub(before) < CHANGES_MIN)
    }
}
