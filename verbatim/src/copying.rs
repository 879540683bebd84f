//! Moving everything from files to PostgreSQL, or back.

use transcript_core::Result;

use crate::options::StorageOptions;
#[cfg(all(feature = "postgres", feature = "sqlite"))]
pub use storage_sqlx::{Copied, CopyStep};

/// How far a copy has come.
#[cfg(not(all(feature = "postgres", feature = "sqlite")))]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CopyStep {
    /// What is copied, or compared: the name of a table, or `videos`.
    pub table: &'static str,
    /// Whether the copy is done, and both sides are being compared.
    pub compares: bool,
    /// How many rows are done.
    pub done: u64,
    /// How many there are.
    pub of: u64,
}

/// What was copied.
#[cfg(not(all(feature = "postgres", feature = "sqlite")))]
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Copied {
    /// The rows of each table, by its name.
    pub rows: Vec<(&'static str, u64)>,
    /// Whether an earlier copy was gone on with.
    pub resumed: bool,
}

/// Copies money and transcripts from files to PostgreSQL, or back, and compares both sides to the last row.
///
/// The target must be empty, or half copied from the same source: then the copy goes on where it stopped. Until it is
/// over, no program opens the target. Both must rest: nobody may use them meanwhile. `tell` hears how far the copy is.
///
/// # Errors
/// - [`transcript_core::ErrorKind::Invalid`]: both are of one kind, or one of them is no place of both stores.
/// - [`transcript_core::ErrorKind::Conflict`]: one of them is in use; the target holds something else; both sides are
///   not the same afterwards.
/// - [`transcript_core::ErrorKind::Unsupported`]: this build lacks one of the features `sqlite` and `postgres`.
/// - As [`crate::Verbatim::open`] for what cannot be opened.
pub async fn copy_storage(
    from: &StorageOptions,
    to: &StorageOptions,
    tell: &mut (dyn FnMut(CopyStep) + Send),
) -> Result<Copied> {
    #[cfg(all(feature = "postgres", feature = "sqlite"))]
    return storage_sqlx::copy_stores(stores(from)?, stores(to)?, tell).await;
    #[cfg(not(all(feature = "postgres", feature = "sqlite")))]
    {
        let _ = (from, to, tell);
        Err(crate::storage::lacking("this build cannot copy: it lacks the feature sqlite or postgres"))
    }
}

#[cfg(all(feature = "postgres", feature = "sqlite"))]
fn stores(options: &StorageOptions) -> Result<storage_sqlx::Stores> {
    use crate::storage::reached;
    match options {
        StorageOptions::Files { main, archive } => {
            Ok(storage_sqlx::Stores::Files { main: main.clone(), archive: archive.clone() })
        }
        StorageOptions::Postgres { main, archive } => {
            Ok(storage_sqlx::Stores::Postgres { main: reached(main), archive: reached(archive) })
        }
        StorageOptions::Memory
        | StorageOptions::MemoryUpTo(_)
        | StorageOptions::ArchiveFile(_)
        | StorageOptions::ArchivePostgres(_) => {
            Err(transcript_core::Error::invalid("what is copied is both stores: money and transcripts"))
        }
    }
}
