//! Moving both stores from files to a database server, or back.
//!
//! What is copied is rows, table by table in the order of a key, and the transcripts of a video together. Each batch is
//! one transaction of the target, and so is how far the copy has come: whoever was killed goes on there. Then both
//! sides are read to the end and compared. Until that is done the target's schema has a version that no program opens
//! ([`HALF_COPIED`]), not even an older one.
//!
//! The source must rest. A file is locked for as long as the copy takes, which nobody gets while a server has it open;
//! of a database server all tables are locked against changes, and it is asked who else is connected.

mod check;
mod files;
mod row;
mod server;
mod side;
mod table;
#[cfg(test)]
mod tests;
mod videos;
mod work;

use std::path::PathBuf;

use transcript_core::{Error, Result};

use crate::{PostgresOptions, error::HALF_COPIED};
use side::{Role, Side};
use work::Work;

/// Where both stores are.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Stores {
    /// In two files.
    Files {
        /// The file of money and people.
        main: PathBuf,
        /// The file of transcripts.
        archive: PathBuf,
    },
    /// In PostgreSQL: in one database, or in two.
    Postgres {
        /// The database of money and people.
        main: PostgresOptions,
        /// The database of transcripts.
        archive: PostgresOptions,
    },
}

/// How far a copy has come.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CopyStep {
    /// What is copied, or compared: the name of a table, or `videos`.
    pub table: &'static str,
    /// Whether the copy is done, and both sides are being compared.
    pub compares: bool,
    /// How many rows of both stores are done.
    pub done: u64,
    /// How many there are.
    pub of: u64,
}

/// What was copied.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Copied {
    /// The rows of each table, by its name.
    pub rows: Vec<(&'static str, u64)>,
    /// Whether an earlier copy was gone on with.
    pub resumed: bool,
}

/// The two parts, each with tables of its own.
const PARTS: [&table::Part; 2] = [&table::MAIN, &table::ARCHIVE];

/// Copies both stores to where nothing is yet, and compares them. Run again after an end in the middle, it goes on.
///
/// The source stays as it is. Nobody may write to it meanwhile, and nobody may use the target.
///
/// # Errors
/// - [`transcript_core::ErrorKind::Invalid`]: both are of one kind, or there is no source.
/// - [`transcript_core::ErrorKind::Conflict`]: one of them is in use; the target has other content; it is not the same
///   as the source afterwards.
/// - As the stores' own `open`.
pub async fn copy_stores(
    from: Stores,
    to: Stores,
    tell: &mut (dyn FnMut(CopyStep) + Send),
) -> Result<Copied> {
    let is_same_kind = matches!(
        (&from, &to),
        (Stores::Files { .. }, Stores::Files { .. }) | (Stores::Postgres { .. }, Stores::Postgres { .. })
    );
    if is_same_kind {
        return Err(Error::invalid(
            "the copy goes from files to PostgreSQL or back: for two of one kind there are sqlite3's .backup and \
             pg_dump",
        ));
    }
    let mut sources = both(&from, Role::Source).await?;
    let mut targets = both(&to, Role::Target).await?;
    let copied = Work::new(&mut sources, &mut targets, tell).run().await;
    for side in sources.into_iter().chain(targets) {
        side.close().await;
    }
    copied
}

/// The two parts of stores, in the order of [`PARTS`].
async fn both(stores: &Stores, role: Role) -> Result<[Box<dyn Side>; 2]> {
    Ok(match stores {
        Stores::Files { main, archive } => [
            Box::new(files::Files::open(&table::MAIN, main, role).await?),
            Box::new(files::Files::open(&table::ARCHIVE, archive, role).await?),
        ],
        Stores::Postgres { main, archive } => [
            Box::new(server::Server::open(&table::MAIN, main, role).await?),
            Box::new(server::Server::open(&table::ARCHIVE, archive, role).await?),
        ],
    })
}
