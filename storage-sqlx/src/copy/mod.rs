//! Copies both stores from files to a database server, or back.
//!
//! The copy transfers rows, table by table in key order, and the transcripts of a video together. Each batch is one
//! transaction of the target, which also stores the position: a copy that was killed continues there. Then both sides
//! are read completely and compared. Until that is done, the target's schema has a version that no program opens
//! ([`crate::error::INCOMPLETE_COPY`]), not even an older one.
//!
//! The source must not change. A file is locked during the copy, which fails while a server has it open. On a database
//! server all tables are locked against changes, and the copy checks for other connections.

mod check;
mod copier;
mod files;
mod row;
mod server;
mod side;
mod statement;
mod table;
#[cfg(test)]
mod tests;
mod videos;

use std::path::{Path, PathBuf};

use transcript_core::{Error, Result};

use crate::PostgresOptions;
use copier::Copier;
use side::{CopyRole, CopySide};

/// Location of both stores.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum StorageLocation {
    /// Two files.
    Files {
        /// The file of keys, accounts and the ledger.
        main: PathBuf,
        /// The file of transcripts.
        archive: PathBuf,
    },
    /// PostgreSQL: one database, or two.
    Postgres {
        /// The database of keys, accounts and the ledger.
        main: PostgresOptions,
        /// The database of transcripts.
        archive: PostgresOptions,
    },
}

/// Progress of a copy.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CopyProgress {
    /// The table that is copied or compared, or `videos`.
    pub table: &'static str,
    /// Whether the copy is comparing both sides, after all rows were copied.
    pub compares: bool,
    /// Number of finished rows, of both stores.
    pub done: u64,
    /// Total number of rows.
    pub of: u64,
}

/// Summary of a copy.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CopySummary {
    /// Number of rows by table.
    pub rows: Vec<(&'static str, u64)>,
    /// Whether the run continued an interrupted copy.
    pub resumed: bool,
}

/// The two parts, each with its own tables.
const PARTS: [&table::TablePart; 2] = [&table::MAIN, &table::ARCHIVE];

/// Copies both stores to an empty target and compares them. A second run continues the first.
///
/// Of the files of a source, that of keys, accounts and the ledger may be missing: it is copied as an empty one. The
/// source keeps all its rows, and gets the newest schema. During the copy, nothing may write to the source or use the
/// target.
///
/// # Errors
/// - [`transcript_core::ErrorKind::Invalid`]: both are of one kind, or there is no source.
/// - [`transcript_core::ErrorKind::Conflict`]: one of them is in use; the target has other content; the comparison
///   found a difference.
/// - As the stores' own `open`.
pub async fn copy_stores(
    from: StorageLocation,
    to: StorageLocation,
    on_progress: &mut (dyn FnMut(CopyProgress) + Send),
) -> Result<CopySummary> {
    let is_same_kind = matches!(
        (&from, &to),
        (StorageLocation::Files { .. }, StorageLocation::Files { .. })
            | (StorageLocation::Postgres { .. }, StorageLocation::Postgres { .. })
    );
    if is_same_kind {
        return Err(Error::invalid(
            "the copy goes from files to PostgreSQL or back: to copy within one kind, use .backup of sqlite3, or \
             pg_dump",
        ));
    }
    let mut sources = open_both(&from, CopyRole::Source).await?;
    let mut targets = open_both(&to, CopyRole::Target).await?;
    let copied = match prepare(&mut sources, &mut targets).await {
        Ok(()) => Copier::new(&mut sources, &mut targets, on_progress).run().await,
        Err(error) => Err(error),
    };
    for side in sources.into_iter().chain(targets) {
        side.close().await;
    }
    copied
}

/// Migrates both sides to the newest schema.
///
/// Servers of an earlier version cannot use a migrated source again, so it is last: a rejected target changes nothing
/// there. Nor does one part of it change the other.
async fn prepare(sources: &mut [Box<dyn CopySide>; 2], targets: &mut [Box<dyn CopySide>; 2]) -> Result<()> {
    let source = copier::describe(sources);
    let [main, archive] = &mut *targets;
    main.prepare(CopyRole::Target).await?;
    let is_new = main.copy_state().await?.is_none();
    if is_new {
        main.check_empty().await?;
    }
    archive.prepare(CopyRole::Target).await?;
    if is_new && archive.copy_state().await?.is_none() {
        archive.check_empty().await?;
    }
    copier::read_states(&source, targets).await?;
    for source in sources.iter_mut() {
        source.prepare(CopyRole::Source).await?;
    }
    Ok(())
}

/// Whether a source has transcripts only, because no server has started there. In another folder, a missing file is
/// more likely a wrong path, or a volume that is not mounted.
fn is_archive_only(main: &Path, archive: &Path, role: CopyRole) -> bool {
    let is_beside = main.parent() == archive.parent();
    role == CopyRole::Source && is_beside && archive.is_file() && main.symlink_metadata().is_err()
}

/// Opens the two parts of a location, in the order of [`PARTS`].
async fn open_both(stores: &StorageLocation, role: CopyRole) -> Result<[Box<dyn CopySide>; 2]> {
    Ok(match stores {
        StorageLocation::Files { main, archive } if is_archive_only(main, archive, role) => [
            Box::new(files::SqliteSide::empty(&table::MAIN, main)?),
            Box::new(files::SqliteSide::open(&table::ARCHIVE, archive, role).await?),
        ],
        StorageLocation::Files { main, archive } => [
            Box::new(files::SqliteSide::open(&table::MAIN, main, role).await?),
            Box::new(files::SqliteSide::open(&table::ARCHIVE, archive, role).await?),
        ],
        StorageLocation::Postgres { main, archive } => [
            Box::new(server::PostgresSide::open(&table::MAIN, main, role).await?),
            Box::new(server::PostgresSide::open(&table::ARCHIVE, archive, role).await?),
        ],
    })
}
