//! The working parts for the commands that are no servers.

use std::{io, path::Path, sync::Arc, time::Duration};

use transcript_core::engine::{EngineOptions, Observer};
use verbatim::{Options, StorageOptions, Verbatim};

use super::Failure;
use crate::{config::Settings, wiring};

/// The working parts for a command that is no server.
///
/// `limits.wait` is how long a request over HTTP waits; whoever typed a command waits for its end.
pub(super) async fn open(settings: &Settings) -> Result<Verbatim, Failure> {
    Ok(Verbatim::open(options(settings)?).await?)
}

/// The same for a command that asks about what is kept, or changes it: where nothing is kept yet, it says so, since the
/// data folder may be another one than was meant.
pub(super) async fn open_existing(settings: &Settings) -> Result<Verbatim, Failure> {
    let options = options(settings)?;
    if let StorageOptions::Files { main, .. } = &options.storage {
        check_exists(main)?;
    }
    Ok(Verbatim::open(options).await?)
}

/// As [`open_existing`], for a command that is about transcripts alone.
pub(super) async fn open_existing_archive(settings: &Settings) -> Result<Verbatim, Failure> {
    if let StorageOptions::Files { archive, .. } = options(settings)?.storage {
        check_exists(&archive)?;
    }
    open_archive(settings).await
}

/// As [`open_archive`], for a command that only looks: where there is no archive yet, none is made.
pub(super) async fn open_archive_to_look(settings: &Settings) -> Result<Verbatim, Failure> {
    let mut options = options(settings)?;
    options.storage = match options.storage {
        StorageOptions::Files { archive, .. } if check_exists(&archive).is_err() => StorageOptions::Memory,
        StorageOptions::Files { archive, .. } => StorageOptions::ArchiveFile(archive),
        StorageOptions::Postgres { archive, .. } => StorageOptions::ArchivePostgres(archive),
        other => other,
    };
    Ok(Verbatim::open(options).await?)
}

fn check_exists(file: &Path) -> Result<(), Failure> {
    match file.symlink_metadata() {
        Err(error) if error.kind() == io::ErrorKind::NotFound => Err(Failure::Fault(format!(
            "there is no {}: nothing was kept there yet; --data names another data folder",
            file.display()
        ))),
        _ => Ok(()),
    }
}

/// The same for a command that is about transcripts alone: it works also while the file of keys and the ledger
/// is locked, damaged or read-only.
pub(super) async fn open_archive(settings: &Settings) -> Result<Verbatim, Failure> {
    open_archive_for(settings, None).await
}

/// The same for somebody who waits for a new transcript no longer than this.
pub(super) async fn open_archive_within(settings: &Settings, wait: Duration) -> Result<Verbatim, Failure> {
    Ok(Verbatim::open(of_archive(Options { wait, ..options(settings)? })).await?)
}

/// The same for somebody who hears how far fetches are.
pub(super) async fn open_archive_for(
    settings: &Settings,
    observer: Option<Arc<dyn Observer>>,
) -> Result<Verbatim, Failure> {
    Ok(Verbatim::open(of_archive(Options { observer, ..options(settings)? })).await?)
}

/// The same options without keys and ledger.
fn of_archive(options: Options) -> Options {
    let storage = match options.storage {
        StorageOptions::Files { archive, .. } => StorageOptions::ArchiveFile(archive),
        StorageOptions::Postgres { archive, .. } => StorageOptions::ArchivePostgres(archive),
        other => other,
    };
    Options { storage, ..options }
}

fn options(settings: &Settings) -> Result<Options, Failure> {
    let base_url = settings.server.base_url_at(settings.server.listen);
    Ok(Options { wait: EngineOptions::default().work, ..wiring::options(settings, base_url)? })
}
