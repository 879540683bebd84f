//! Opens the stores for all commands except `serve`.
//!
//! A command uses few connections, so that it finds room beside the servers.

use std::{fmt, io, path::Path, time::Duration};

use transcript_core::engine::EngineOptions;
use verbatim::{Options, StorageOptions, Verbatim};

use super::{CommandError, print_stderr};
use crate::{
    config::{OUTBOX_FOLDER, Settings},
    operations::{Operations, Operator},
};

/// Most connections to a database.
const CONNECTIONS: u32 = 2;
/// Shortest timeout of a database call. If no connection is left on the database server, a call waits for one: servers
/// close those that they did not use for 20 seconds, when their next job runs, at most 10 seconds later.
const CALL_TIMEOUT: Duration = Duration::from_secs(60);

/// How to name the data folder of a server that runs as another user.
const OTHER_FOLDER: &str =
    "--data, or the variable VERBATIM_DATA, selects another data folder, such as /var/lib/verbatim";

/// Opens all stores.
///
/// A command waits until a fetch ends, whatever `limits.wait` is: that setting is for requests over HTTP.
pub(super) async fn open(settings: &Settings) -> Result<Verbatim, CommandError> {
    open_with(settings, options(settings)?).await
}

async fn open_with(settings: &Settings, options: Options) -> Result<Verbatim, CommandError> {
    Verbatim::open(options).await.map_err(|error| settings.with_origin(error).into())
}

/// Opens existing stores, for commands that read or change data.
///
/// Missing files are an error, because the data folder may be wrong.
pub(super) async fn open_existing(settings: &Settings) -> Result<Verbatim, CommandError> {
    let options = options(settings)?;
    if let StorageOptions::Files { main, .. } = &options.storage {
        check_exists(main)?;
    }
    open_with(settings, options).await
}

/// Reports on standard error if only transcripts are stored, as after `get` and `import`.
pub(super) fn report_missing_main_file(storage: &StorageOptions) {
    if let StorageOptions::Files { main, archive } = storage
        && check_exists(main).is_err()
        && check_exists(archive).is_ok()
    {
        print_stderr(&format!(
            "verbatim: {} does not exist: there are no keys, accounts and credits",
            main.display()
        ));
    }
}

/// Like [`open_existing`], for commands that need transcripts only.
pub(super) async fn open_existing_archive(settings: &Settings) -> Result<Verbatim, CommandError> {
    check_archive_exists(settings)?;
    open_archive(settings).await
}

fn check_archive_exists(settings: &Settings) -> Result<(), CommandError> {
    match options(settings)?.storage {
        StorageOptions::Files { archive, .. } => check_exists(&archive),
        _ => Ok(()),
    }
}

/// Like [`open_archive`], for commands of operators that also work on a new archive.
pub(super) async fn open_any_archive(settings: &Settings) -> Result<Verbatim, CommandError> {
    if let StorageOptions::Files { archive, .. } = options(settings)?.storage
        && check_exists(&archive).is_err()
    {
        print_stderr(&format!("verbatim: {} is a new archive; {OTHER_FOLDER}", archive.display()));
    }
    open_archive(settings).await
}

/// Like [`open_archive`], for commands that only read: a missing archive is not created.
pub(super) async fn open_archive_read_only(settings: &Settings) -> Result<Verbatim, CommandError> {
    let mut options = archive_only(options(settings)?);
    if let StorageOptions::ArchiveFile(archive) = &options.storage
        && check_exists(archive).is_err()
    {
        options.storage = StorageOptions::Memory;
    }
    open_with(settings, options).await
}

fn check_exists(file: &Path) -> Result<(), CommandError> {
    match file.symlink_metadata() {
        Err(error) if error.kind() == io::ErrorKind::NotFound => Err(CommandError::Fault(format!(
            "{} does not exist: nothing is stored there yet; {OTHER_FOLDER}",
            file.display()
        ))),
        _ => Ok(()),
    }
}

/// Opens the archive only. Works while the file of keys and the ledger is locked, damaged or read-only.
pub(super) async fn open_archive(settings: &Settings) -> Result<Verbatim, CommandError> {
    open_archive_with(settings, |options| options).await
}

/// Like [`open_archive`], with adapted options.
pub(super) async fn open_archive_with(
    settings: &Settings,
    adapt: impl FnOnce(Options) -> Options,
) -> Result<Verbatim, CommandError> {
    open_with(settings, archive_only(adapt(options(settings)?))).await
}

/// Returns the options without keys and ledger.
fn archive_only(options: Options) -> Options {
    let storage = match options.storage {
        StorageOptions::Files { archive, .. } => StorageOptions::ArchiveFile(archive),
        StorageOptions::Postgres { archive, .. } => StorageOptions::ArchivePostgres(archive),
        other => other,
    };
    Options { storage, ..options }
}

fn options(settings: &Settings) -> Result<Options, CommandError> {
    let base_url = settings.server.base_url_at(settings.server.listen.socket_address());
    let mut options = Options { wait: EngineOptions::default().work_timeout, ..settings.options(&base_url)? };
    wait_for_connections(&mut options.storage);
    if let StorageOptions::Postgres { main, archive } = &mut options.storage {
        for database in [main, archive] {
            database.connections = database.connections.min(CONNECTIONS);
        }
    }
    Ok(options)
}

/// Raises the timeouts of database calls to [`CALL_TIMEOUT`].
pub(super) fn wait_for_connections(storage: &mut StorageOptions) {
    if let StorageOptions::Postgres { main, archive } = storage {
        for database in [main, archive] {
            database.timeout = database.timeout.max(CALL_TIMEOUT);
        }
    }
}

/// Reports a takedown that is not in the audit log.
pub(super) fn warn_unrecorded(error: &dyn fmt::Display) {
    print_stderr(&format!("verbatim: this operation is not in the audit log: {error}"));
}

/// Opens all stores if they can be opened, else the archive only.
///
/// A takedown must not depend on the file of keys and the ledger. Without that file, no server has run here.
pub(super) async fn open_with_audit_log(settings: &Settings) -> Result<Verbatim, CommandError> {
    if let StorageOptions::Files { main, .. } = &options(settings)?.storage
        && check_exists(main).is_err()
    {
        return open_any_archive(settings).await;
    }
    match open(settings).await {
        Ok(verbatim) => Ok(verbatim),
        Err(error) => {
            let verbatim = open_archive(settings).await?;
            warn_unrecorded(&error);
            Ok(verbatim)
        }
    }
}

/// Like [`open_with_audit_log`], for commands that change an existing archive.
pub(super) async fn open_existing_with_audit_log(settings: &Settings) -> Result<Verbatim, CommandError> {
    check_archive_exists(settings)?;
    open_with_audit_log(settings).await
}

/// Returns the operations of the system's user.
pub(super) fn operations(settings: &Settings, verbatim: &Verbatim) -> Operations {
    Operations::new(verbatim.clone(), settings.data.join(OUTBOX_FOLDER), Operator::of_command())
}
