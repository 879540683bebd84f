//! Copies all data between SQLite files and PostgreSQL.

use transcript_core::Result;

use crate::options::StorageOptions;
#[cfg(all(feature = "postgres", feature = "sqlite"))]
pub use storage_sqlx::{CopyProgress, CopySummary};

/// Progress of a copy.
#[cfg(not(all(feature = "postgres", feature = "sqlite")))]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CopyProgress {
    /// Table that is copied or compared, or `videos`.
    pub table: &'static str,
    /// Whether the copy is done and both sides are being compared.
    pub compares: bool,
    /// Rows done.
    pub done: u64,
    /// Rows in total.
    pub of: u64,
}

/// Summary of a copy.
#[cfg(not(all(feature = "postgres", feature = "sqlite")))]
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CopySummary {
    /// Rows of each table, by its name.
    pub rows: Vec<(&'static str, u64)>,
    /// Whether an interrupted copy was continued.
    pub resumed: bool,
}

/// Copies both stores from files to PostgreSQL, or back, and compares both sides row by row.
///
/// The target must be empty, or partly copied from the same source; then the copy continues. No program may use either
/// side during the copy, and none may open the target before the copy is complete. `on_progress` receives the progress.
///
/// # Errors
/// - [`transcript_core::ErrorKind::Invalid`]: both sides are of one kind, or one of them lacks one of the stores.
/// - [`transcript_core::ErrorKind::Conflict`]: one side is in use, the target holds other data, or both sides differ
///   afterwards.
/// - [`transcript_core::ErrorKind::Unsupported`]: this build lacks one of the features `sqlite` and `postgres`.
/// - As [`crate::Verbatim::open`] for a store that cannot be opened.
pub async fn copy_storage(
    from: &StorageOptions,
    to: &StorageOptions,
    on_progress: &mut (dyn FnMut(CopyProgress) + Send),
) -> Result<CopySummary> {
    #[cfg(all(feature = "postgres", feature = "sqlite"))]
    return storage_sqlx::copy_stores(stores(from)?, stores(to)?, on_progress).await;
    #[cfg(not(all(feature = "postgres", feature = "sqlite")))]
    {
        let _ = (from, to, on_progress);
        Err(transcript_core::Error::unsupported(
            "this build cannot copy: it lacks the feature sqlite or postgres",
        ))
    }
}

#[cfg(all(feature = "postgres", feature = "sqlite"))]
fn stores(options: &StorageOptions) -> Result<storage_sqlx::StorageLocation> {
    use crate::storage::postgres_options;
    match options {
        StorageOptions::Files { main, archive } => {
            Ok(storage_sqlx::StorageLocation::Files { main: main.clone(), archive: archive.clone() })
        }
        StorageOptions::Postgres { main, archive } => Ok(storage_sqlx::StorageLocation::Postgres {
            main: postgres_options(main),
            archive: postgres_options(archive),
        }),
        StorageOptions::Memory
        | StorageOptions::BoundedMemory(_)
        | StorageOptions::ArchiveFile(_)
        | StorageOptions::ArchivePostgres(_) => {
            Err(transcript_core::Error::invalid("a copy needs both stores: the ledger and the archive"))
        }
    }
}
