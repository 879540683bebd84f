//! WAL sync: a commit is acknowledged after the log is on disk.
//!
//! With `synchronous=FULL` SQLite waits for the disk in each commit and blocks all writers. So the writing
//! connection uses `synchronous=NORMAL`: in WAL mode a commit then writes the log completely, which survives a
//! crash of the process but not of the machine. A separate thread syncs the log, once for all transactions
//! committed since its last sync, while the next transaction runs. A later transaction cannot be on disk without
//! the earlier ones: the log is one file, read only as far as it is valid. An uncontended connection waits for
//! the disk itself ([`super::writer`]).
//!
//! After a failed sync the log is not synced again: the system may have dropped the pages that it could not
//! write, and would then report success. Writes stay disabled until the file is reopened.

use std::{
    ffi::OsString,
    fmt,
    fs::{self, File},
    io,
    path::{Path, PathBuf},
    sync::{
        Arc,
        atomic::{AtomicBool, AtomicUsize, Ordering},
    },
    thread,
};

use tokio::sync::{mpsc, oneshot};
use transcript_core::{Error, ErrorKind, Result, Retry};

use super::writer::QueuedWrite;
use crate::error::DbError;

/// Most transactions that wait for a sync. A writer beyond it waits too.
const WAITING_MAX: usize = 64;

/// The writes of a committed transaction.
type CommitBatch = Vec<Box<dyn QueuedWrite>>;

/// Syncs committed writes and sends their replies. Drop ends its thread.
#[derive(Debug)]
pub(super) struct WalSyncer {
    sender: mpsc::Sender<CommitBatch>,
    /// Number of transactions that wait for a sync.
    pending_syncs: Arc<AtomicUsize>,
    has_failed: Arc<AtomicBool>,
    ended: oneshot::Receiver<()>,
    file: PathBuf,
}

impl WalSyncer {
    /// Starts the thread for a database file.
    ///
    /// # Errors
    /// [`transcript_core::ErrorKind::Unavailable`] if the system cannot start a thread.
    pub(super) fn start(file: &Path) -> Result<Self> {
        let (sender, mut committed) = mpsc::channel::<CommitBatch>(WAITING_MAX);
        let (end, ended) = oneshot::channel();
        let (has_failed, pending_syncs) = (Arc::new(AtomicBool::new(false)), Arc::new(AtomicUsize::new(0)));
        let mut log = WalFile::for_database(file);
        let (thread_failed, synced, path) =
            (Arc::clone(&has_failed), Arc::clone(&pending_syncs), file.to_owned());
        let keep = move || {
            // The log may not exist yet.
            log.opened().ok();
            while let Some(first) = committed.blocking_recv() {
                let mut waiting = vec![first];
                while let Ok(next) = committed.try_recv() {
                    waiting.push(next);
                }
                if !thread_failed.load(Ordering::Acquire)
                    && let Err(error) = log.sync()
                {
                    record_failure(&thread_failed, &error, &path);
                }
                // A commit on the connection may have failed to sync in between.
                let has_failed = thread_failed.load(Ordering::Acquire);
                let result = if has_failed { Err(sync_failed(&path)) } else { Ok(()) };
                synced.fetch_sub(waiting.len(), Ordering::Release);
                waiting.iter_mut().flatten().for_each(|change| change.reply(result.clone()));
            }
            end.send(()).ok();
        };
        let thread = thread::Builder::new().name("verbatim-wal-sync".to_owned());
        thread.spawn(keep).map_err(|error| {
            Error::unavailable(format!("cannot start a thread for the database {}: {error}", file.display()))
        })?;
        Ok(Self { sender, pending_syncs, has_failed, ended, file: file.to_owned() })
    }

    /// The error of all writes, once a sync has failed.
    pub(super) fn failure(&self) -> Option<Error> {
        self.has_failed.load(Ordering::Acquire).then(|| sync_failed(&self.file))
    }

    /// Disables writes after a failed sync on the connection. Returns the error for the callers.
    pub(super) fn mark_failed(&self, fault: &DbError) -> Error {
        record_failure(&self.has_failed, fault, &self.file);
        sync_failed(&self.file)
    }

    /// Whether no committed transaction waits for a sync.
    pub(super) fn is_idle(&self) -> bool {
        self.pending_syncs.load(Ordering::Acquire) == 0
    }

    /// Syncs the writes' transaction, then sends their replies.
    pub(super) async fn sync_and_ack(&self, changes: CommitBatch) {
        self.pending_syncs.fetch_add(1, Ordering::Relaxed);
        if let Err(mpsc::error::SendError(mut changes)) = self.sender.send(changes).await {
            changes.iter_mut().for_each(|change| change.reply(Err(sync_failed(&self.file))));
        }
    }

    /// Waits until all committed transactions are synced and answered.
    pub(super) async fn close(self) {
        drop(self.sender);
        // An error means that the thread has ended already.
        self.ended.await.ok();
    }
}

/// The log of a database file.
#[derive(Debug)]
struct WalFile {
    path: PathBuf,
    folder: PathBuf,
    /// The log as opened last.
    open: Option<OpenedWal>,
}

impl WalFile {
    fn for_database(file: &Path) -> Self {
        let mut path = OsString::from(file);
        path.push("-wal");
        let folder = match file.parent() {
            Some(folder) if !folder.as_os_str().is_empty() => folder.to_owned(),
            _ => PathBuf::from("."),
        };
        Self { path: path.into(), folder, open: None }
    }

    /// Syncs the log.
    fn sync(&mut self) -> io::Result<()> {
        match self.opened() {
            Ok(log) => log.sync_data(),
            // There is no log if it was checkpointed, or if the file has a journal instead, as some network file
            // systems require. Then the commit waited for the disk, and the journal's end is in the folder.
            Err(error) if error.kind() == io::ErrorKind::NotFound => sync_folder(&self.folder),
            Err(error) => Err(error),
        }
    }

    /// The open log.
    ///
    /// It stays open: a newly opened file does not report earlier write errors, and SQLite checkpoints the log
    /// without reporting such errors. SQLite creates a new log whenever the last connection to the file was
    /// closed. Closing this file releases no locks of SQLite: those are on other files.
    fn opened(&mut self) -> io::Result<&File> {
        if cfg!(not(unix)) {
            // On these systems an open file keeps its path, and SQLite could not create another.
            self.open = None;
        }
        let name = WalName::read(&self.path)?;
        let opened = match self.open.take() {
            Some(opened) if opened.name == name => opened,
            _ => OpenedWal { log: open(&self.path)?, name },
        };
        Ok(&self.open.insert(opened).log)
    }
}

#[derive(Debug)]
struct OpenedWal {
    log: File,
    name: WalName,
}

/// Distinguishes a file from a later one with the same path.
#[derive(Debug, PartialEq, Eq)]
struct WalName(u64, u64);

impl WalName {
    #[cfg(unix)]
    fn read(path: &Path) -> io::Result<Self> {
        use std::os::unix::fs::MetadataExt;
        let metadata = fs::metadata(path)?;
        Ok(Self(metadata.dev(), metadata.ino()))
    }

    #[cfg(not(unix))]
    fn read(_path: &Path) -> io::Result<Self> {
        Ok(Self(0, 0))
    }
}

/// Windows can sync only a file that is open for writing.
#[cfg(windows)]
fn open(path: &Path) -> io::Result<File> {
    File::options().write(true).open(path)
}

#[cfg(not(windows))]
fn open(path: &Path) -> io::Result<File> {
    File::open(path)
}

#[cfg(unix)]
fn sync_folder(folder: &Path) -> io::Result<()> {
    File::open(folder)?.sync_all()
}

/// On these systems a folder cannot be opened as a file, and the system persists its entries.
#[cfg(not(unix))]
fn sync_folder(_folder: &Path) -> io::Result<()> {
    Ok(())
}

/// Records that a sync failed, and logs it once.
fn record_failure(has_failed: &AtomicBool, error: &dyn fmt::Debug, file: &Path) {
    if !has_failed.swap(true, Ordering::AcqRel) {
        tracing::error!(?error, file = %file.display(), "database sync failed, writes disabled");
    }
}

#[cold]
fn sync_failed(file: &Path) -> Error {
    let file = file.display();
    // Only a restart helps: no client should retry.
    Error::new(
        ErrorKind::Unavailable,
        Retry::Never,
        format!("cannot sync database {file}; writes are disabled: check the disk and restart"),
    )
}

#[cfg(test)]
mod tests {
    use std::time::{Duration, Instant};

    use async_trait::async_trait;
    use sqlx::SqliteConnection;

    use super::{super::writer::TxResult, *};
    use crate::error::DbResult;

    /// A write that only sends the reply it receives.
    struct SyncOutcome(Option<oneshot::Sender<Result<()>>>);

    #[async_trait]
    impl QueuedWrite for SyncOutcome {
        async fn run(&mut self, _: &mut SqliteConnection) -> DbResult<()> {
            Ok(())
        }

        async fn run_standalone(&mut self, _: &mut SqliteConnection) -> Option<TxResult<()>> {
            None
        }

        fn reject(&mut self, _: Error) {}

        fn reply(&mut self, committed: Result<()>) {
            if let Some(sender) = self.0.take() {
                sender.send(committed).ok();
            }
        }

        fn deadline(&self) -> Instant {
            Instant::now() + Duration::from_secs(60)
        }
    }

    async fn keep(syncer: &WalSyncer) -> Result<()> {
        let (sender, reply) = oneshot::channel();
        syncer.sync_and_ack(vec![Box::new(SyncOutcome(Some(sender)))]).await;
        reply.await.unwrap()
    }

    #[tokio::test]
    async fn wal_sync_close_waits_for_pending_acks() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("numbers.db");
        let syncer = WalSyncer::start(&file).unwrap();
        assert!(syncer.is_idle());
        keep(&syncer).await.unwrap();
        assert!(syncer.is_idle(), "an acknowledged write is no longer counted");
        fs::write(folder.path().join("numbers.db-wal"), "a log").unwrap();
        keep(&syncer).await.unwrap();
        let (sender, reply) = oneshot::channel();
        syncer.sync_and_ack(vec![Box::new(SyncOutcome(Some(sender)))]).await;
        syncer.close().await;
        reply.await.unwrap().unwrap();
    }

    #[tokio::test]
    async fn wal_sync_after_failure_rejects_writes() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("gone").join("numbers.db");
        let syncer = WalSyncer::start(&file).unwrap();
        assert!(syncer.failure().is_none());
        let error = keep(&syncer).await.unwrap_err();
        assert!(error.message().contains("numbers.db"), "{error}");
        fs::create_dir(folder.path().join("gone")).unwrap();
        assert!(keep(&syncer).await.is_err());
        assert!(syncer.failure().is_some());
    }
}
