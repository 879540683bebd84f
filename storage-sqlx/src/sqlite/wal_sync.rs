//! WAL sync: a commit is acknowledged after the log is on disk.
//!
//! With `synchronous=FULL` SQLite waits for the disk in each commit and blocks all writers. So the writing
//! connection uses `synchronous=NORMAL`: in WAL mode a commit then writes the log completely, which survives a
//! crash of the process but not of the machine. A separate thread syncs the log, once for all transactions
//! committed since its last sync, while the next transaction runs. A later transaction cannot be on disk without
//! the earlier ones: the log is one file, read only as far as it is valid. If no other write waits, the writer's
//! thread syncs the log itself, because then no other thread has to wake up.
//!
//! After a failed sync the log is not synced again: the system may have dropped the pages that it could not
//! write, and would then report success. Writes stay disabled until the file is reopened.

use std::{
    fmt,
    fs::File,
    io,
    path::{Path, PathBuf},
    sync::{
        Arc, Mutex, PoisonError,
        atomic::{AtomicBool, AtomicUsize, Ordering},
        mpsc::{self, SendError, SyncSender},
    },
    thread::{self, JoinHandle},
};

use transcript_core::{Error, ErrorKind, Result, Retry};

use super::{
    database_file::{FileIdentity, log_path},
    writer::QueuedWrite,
};

/// Most transactions that wait for a sync. A writer beyond it waits too.
const WAITING_MAX: usize = 64;

/// The writes of a committed transaction.
type CommitBatch = Vec<Box<dyn QueuedWrite>>;

/// Syncs committed writes and sends their replies. Drop ends its thread.
#[derive(Debug)]
pub(super) struct WalSyncer {
    sender: SyncSender<CommitBatch>,
    shared: Arc<WalSyncerShared>,
    thread: JoinHandle<()>,
}

#[derive(Debug)]
struct WalSyncerShared {
    log: Mutex<WalFile>,
    /// Number of transactions that wait for a sync by the thread.
    pending_syncs: AtomicUsize,
    has_failed: AtomicBool,
    file: PathBuf,
}

impl WalSyncer {
    /// Starts the thread for a database file.
    ///
    /// # Errors
    /// [`transcript_core::ErrorKind::Unavailable`] if the system cannot start a thread.
    pub(super) fn start(file: &Path) -> Result<Self> {
        let (sender, committed) = mpsc::sync_channel::<CommitBatch>(WAITING_MAX);
        let mut log = WalFile::for_database(file);
        // The log may not exist yet.
        log.opened().ok();
        let shared = Arc::new(WalSyncerShared {
            log: Mutex::new(log),
            pending_syncs: AtomicUsize::new(0),
            has_failed: AtomicBool::new(false),
            file: file.to_owned(),
        });
        let syncing = Arc::clone(&shared);
        let run = move || {
            while let Ok(first) = committed.recv() {
                let mut waiting = vec![first];
                waiting.extend(committed.try_iter());
                let result = syncing.sync();
                syncing.pending_syncs.fetch_sub(waiting.len(), Ordering::Release);
                waiting.iter_mut().flatten().for_each(|write| write.reply(result.clone()));
            }
        };
        let thread = thread::Builder::new().name("verbatim-wal-sync".to_owned()).spawn(run);
        let thread = thread.map_err(|error| cannot_start_thread(file, &error))?;
        Ok(Self { sender, shared, thread })
    }

    /// The error of all writes, once a sync has failed.
    pub(super) fn failure(&self) -> Option<Error> {
        self.shared.has_failed.load(Ordering::Acquire).then(|| sync_failed(&self.shared.file))
    }

    /// Disables writes after a failed sync on the connection. Returns the error for the callers.
    pub(super) fn mark_failed(&self, fault: &dyn fmt::Debug) -> Error {
        self.shared.record_failure(fault);
        sync_failed(&self.shared.file)
    }

    /// Whether no committed transaction waits for a sync.
    pub(super) fn is_idle(&self) -> bool {
        self.shared.pending_syncs.load(Ordering::Acquire) == 0
    }

    /// Syncs the writes' transaction on this thread, then sends their replies.
    ///
    /// Earlier transactions must be synced already ([`Self::is_idle`]).
    pub(super) fn sync_here_and_ack(&self, mut batch: CommitBatch) {
        let result = self.shared.sync();
        batch.iter_mut().for_each(|write| write.reply(result.clone()));
    }

    /// Syncs the writes' transaction on the other thread, which then sends their replies.
    pub(super) fn sync_and_ack(&self, batch: CommitBatch) {
        self.shared.pending_syncs.fetch_add(1, Ordering::Relaxed);
        if let Err(SendError(mut batch)) = self.sender.send(batch) {
            let error = sync_failed(&self.shared.file);
            batch.iter_mut().for_each(|write| write.reply(Err(error.clone())));
        }
    }

    /// Waits until all committed transactions are synced and answered.
    pub(super) fn close(self) {
        drop(self.sender);
        // An error means that the thread panicked, which has ended it too.
        self.thread.join().ok();
    }
}

impl WalSyncerShared {
    /// Syncs the log, unless a sync failed before.
    fn sync(&self) -> Result<()> {
        let mut log = self.log.lock().unwrap_or_else(PoisonError::into_inner);
        if !self.has_failed.load(Ordering::Acquire)
            && let Err(error) = log.sync()
        {
            self.record_failure(&error);
        }
        // A commit or a checkpoint on the connection may have failed to sync in between.
        if self.has_failed.load(Ordering::Acquire) {
            return Err(sync_failed(&self.file));
        }
        Ok(())
    }

    /// Records that a sync failed, and logs it once.
    fn record_failure(&self, error: &dyn fmt::Debug) {
        if !self.has_failed.swap(true, Ordering::AcqRel) {
            tracing::error!(?error, file = %self.file.display(), "database sync failed, writes disabled");
        }
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
        let folder = match file.parent() {
            Some(folder) if !folder.as_os_str().is_empty() => folder.to_owned(),
            _ => PathBuf::from("."),
        };
        Self { path: log_path(file), folder, open: None }
    }

    /// Syncs the log.
    fn sync(&mut self) -> io::Result<()> {
        match self.opened() {
            Ok(opened) => {
                opened.log.sync_data()?;
                // The name of a new log must survive a power cut as well as its content.
                if std::mem::take(&mut opened.is_new) { sync_folder(&self.folder) } else { Ok(()) }
            }
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
    fn opened(&mut self) -> io::Result<&mut OpenedWal> {
        if cfg!(not(unix)) {
            // On these systems an open file keeps its path, and SQLite could not create another.
            self.open = None;
        }
        let name = FileIdentity::read(&self.path)?;
        let opened = match self.open.take() {
            Some(opened) if opened.name == name => opened,
            _ => OpenedWal { log: open(&self.path)?, name, is_new: true },
        };
        Ok(self.open.insert(opened))
    }
}

#[derive(Debug)]
struct OpenedWal {
    log: File,
    name: FileIdentity,
    /// Whether its folder was not synced since it was opened.
    is_new: bool,
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

#[cold]
pub(super) fn cannot_start_thread(file: &Path, error: &io::Error) -> Error {
    Error::unavailable(format!("cannot start a thread for the database {}: {error}", file.display()))
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
    use std::{
        fs,
        time::{Duration, Instant},
    };

    use super::*;
    use crate::{error::DbResult, sqlite::session::SqliteSession};

    type SyncResult = Result<()>;

    /// A write that only sends the reply it receives.
    struct SyncOutcome(mpsc::Sender<SyncResult>);

    impl QueuedWrite for SyncOutcome {
        fn run(&mut self, _: &mut SqliteSession) -> DbResult<()> {
            Ok(())
        }

        fn reject(&mut self, _: Error) {}

        fn reply(&mut self, committed: SyncResult) {
            self.0.send(committed).ok();
        }

        fn deadline(&self) -> Instant {
            Instant::now() + Duration::from_secs(60)
        }

        fn is_cancelled(&self) -> bool {
            false
        }
    }

    fn batch() -> (CommitBatch, mpsc::Receiver<SyncResult>) {
        let (sender, reply) = mpsc::channel();
        (vec![Box::new(SyncOutcome(sender))], reply)
    }

    fn sync(syncer: &WalSyncer) -> SyncResult {
        let (batch, reply) = batch();
        syncer.sync_and_ack(batch);
        reply.recv().unwrap()
    }

    fn sync_here(syncer: &WalSyncer) -> SyncResult {
        let (batch, reply) = batch();
        syncer.sync_here_and_ack(batch);
        reply.try_recv().unwrap()
    }

    #[test]
    fn wal_sync_close_waits_for_pending_acks() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("numbers.db");
        let syncer = WalSyncer::start(&file).unwrap();
        assert!(syncer.is_idle());
        sync(&syncer).unwrap();
        assert!(syncer.is_idle(), "an acknowledged write is no longer counted");
        fs::write(folder.path().join("numbers.db-wal"), "a log").unwrap();
        sync(&syncer).unwrap();
        sync_here(&syncer).unwrap();
        let (batch, reply) = batch();
        syncer.sync_and_ack(batch);
        syncer.close();
        reply.try_recv().unwrap().unwrap();
    }

    #[test]
    fn wal_sync_after_failure_rejects_writes() {
        for sync_first in [sync, sync_here] {
            let folder = tempfile::tempdir().unwrap();
            let file = folder.path().join("gone").join("numbers.db");
            let syncer = WalSyncer::start(&file).unwrap();
            assert!(syncer.failure().is_none());
            let failed = sync_first(&syncer).unwrap_err();
            assert!(!failed.has_no_effect() && failed.message().contains("numbers.db"), "{failed:?}");
            fs::create_dir(folder.path().join("gone")).unwrap();
            assert!(sync(&syncer).is_err() && sync_here(&syncer).is_err());
            assert!(syncer.failure().is_some());
        }
    }
}
