//! What was committed reaches the disk before anybody is told of it.
//!
//! SQLite waits for the disk within each commit (`synchronous=FULL`), and nobody can write meanwhile. So the connection
//! that writes commits without waiting (`synchronous=NORMAL`: in WAL mode a commit is then a write to the log, in
//! whole, that a crash of the process does not undo, but one of the machine may), and a thread of its own waits for the log, once for all
//! transactions that were committed since it last began to, while the next one is made. A later transaction cannot be
//! on the disk without those before it: the log is one file, and it is read only as far as it is whole. Only where
//! nobody else writes the connection waits itself ([`super::writer`]).
//!
//! A log that the disk has refused to keep is not asked about again: the system may have thrown away what it could not
//! write, and would then say that all is well. Nothing more is written until the file is opened anew.

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

use super::writer::Waiting;
use crate::error::Fault;

/// How many transactions may wait for the disk. Who writes then waits too.
const WAITING_MAX: usize = 64;

/// Changes whose transaction is committed.
type Committed = Vec<Box<dyn Waiting>>;

/// Where committed changes wait for the disk. Its thread ends when it is dropped.
#[derive(Debug)]
pub(super) struct Keeper {
    sender: mpsc::Sender<Committed>,
    /// How many transactions wait for the disk.
    under_way: Arc<AtomicUsize>,
    has_failed: Arc<AtomicBool>,
    ended: oneshot::Receiver<()>,
    file: PathBuf,
}

impl Keeper {
    /// Starts the thread for a database file.
    ///
    /// # Errors
    /// [`transcript_core::ErrorKind::Unavailable`] when the system gives no thread.
    pub(super) fn start(file: &Path) -> Result<Self> {
        let (sender, mut committed) = mpsc::channel::<Committed>(WAITING_MAX);
        let (end, ended) = oneshot::channel();
        let (has_failed, under_way) = (Arc::new(AtomicBool::new(false)), Arc::new(AtomicUsize::new(0)));
        let mut log = Log::of(file);
        let (thread_failed, kept_now, path) =
            (Arc::clone(&has_failed), Arc::clone(&under_way), file.to_owned());
        let keep = move || {
            // There may be none yet.
            log.opened().ok();
            while let Some(first) = committed.blocking_recv() {
                let mut waiting = vec![first];
                while let Ok(next) = committed.try_recv() {
                    waiting.push(next);
                }
                if !thread_failed.load(Ordering::Acquire)
                    && let Err(error) = log.sync()
                {
                    fail(&thread_failed, &error, &path);
                }
                // The connection may have been told meanwhile.
                let has_failed = thread_failed.load(Ordering::Acquire);
                let kept = if has_failed { Err(refused(&path)) } else { Ok(()) };
                kept_now.fetch_sub(waiting.len(), Ordering::Release);
                waiting.iter_mut().flatten().for_each(|change| change.answer(kept.clone()));
            }
            end.send(()).ok();
        };
        let thread = thread::Builder::new().name("verbatim-keeper".to_owned());
        thread.spawn(keep).map_err(|error| {
            Error::unavailable(format!("no thread for the database {}: {error}", file.display()))
        })?;
        Ok(Self { sender, under_way, has_failed, ended, file: file.to_owned() })
    }

    /// Why nothing may be written any more, where that is so.
    pub(super) fn failure(&self) -> Option<Error> {
        self.has_failed.load(Ordering::Acquire).then(|| refused(&self.file))
    }

    /// Has nothing more written: the connection itself was told that the disk did not keep something. Returns what
    /// whoever waits is told.
    pub(super) fn distrust(&self, fault: &Fault) -> Error {
        fail(&self.has_failed, fault, &self.file);
        refused(&self.file)
    }

    /// Whether all that was committed is kept, or refused: nobody waits for the disk here.
    pub(super) fn is_idle(&self) -> bool {
        self.under_way.load(Ordering::Acquire) == 0
    }

    /// Has changes answered once they are on the disk.
    pub(super) async fn keep(&self, changes: Committed) {
        self.under_way.fetch_add(1, Ordering::Relaxed);
        if let Err(mpsc::error::SendError(mut changes)) = self.sender.send(changes).await {
            changes.iter_mut().for_each(|change| change.answer(Err(refused(&self.file))));
        }
    }

    /// Waits until all that was committed is on the disk and answered.
    pub(super) async fn close(self) {
        drop(self.sender);
        // An error means that the thread has ended already.
        self.ended.await.ok();
    }
}

/// The log of a database file.
#[derive(Debug)]
struct Log {
    path: PathBuf,
    folder: PathBuf,
    /// The log as it was opened last.
    open: Option<Opened>,
}

impl Log {
    fn of(file: &Path) -> Self {
        let mut path = OsString::from(file);
        path.push("-wal");
        let folder = match file.parent() {
            Some(folder) if !folder.as_os_str().is_empty() => folder.to_owned(),
            _ => PathBuf::from("."),
        };
        Self { path: path.into(), folder, open: None }
    }

    /// Waits until the disk has it.
    fn sync(&mut self) -> io::Result<()> {
        match self.opened() {
            Ok(log) => log.sync_data(),
            // There is none where all of it is in the file already, or where the file has a journal instead, as some
            // file systems of the net want it: then the commit was waited for, and the journal's end is in the folder.
            Err(error) if error.kind() == io::ErrorKind::NotFound => sync_folder(&self.folder),
            Err(error) => Err(error),
        }
    }

    /// The log. It stays open: who opens a file is not told of what the disk refused before, and SQLite, which copies the
    /// log into the file now and then, tells nobody when that fails. SQLite makes a new log whenever the last connection
    /// to the file was closed. The locks that closing a file would undo are on other files.
    fn opened(&mut self) -> io::Result<&File> {
        if cfg!(not(unix)) {
            // A file that is open keeps its path there, and SQLite could make no other.
            self.open = None;
        }
        let name = Name::of(&self.path)?;
        let opened = match self.open.take() {
            Some(opened) if opened.name == name => opened,
            _ => Opened { log: open(&self.path)?, name },
        };
        Ok(&self.open.insert(opened).log)
    }
}

#[derive(Debug)]
struct Opened {
    log: File,
    name: Name,
}

/// What tells a file from another one that has its path later.
#[derive(Debug, PartialEq, Eq)]
struct Name(u64, u64);

impl Name {
    #[cfg(unix)]
    fn of(path: &Path) -> io::Result<Self> {
        use std::os::unix::fs::MetadataExt;
        let metadata = fs::metadata(path)?;
        Ok(Self(metadata.dev(), metadata.ino()))
    }

    #[cfg(not(unix))]
    fn of(_path: &Path) -> io::Result<Self> {
        Ok(Self(0, 0))
    }
}

/// Where only a file that may be written can be waited for.
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

/// Folders cannot be opened as files there, and what becomes of a name is kept by the system.
#[cfg(not(unix))]
fn sync_folder(_folder: &Path) -> io::Result<()> {
    Ok(())
}

/// Remembers that the disk has refused, which is told once.
fn fail(has_failed: &AtomicBool, error: &dyn fmt::Debug, file: &Path) {
    if !has_failed.swap(true, Ordering::AcqRel) {
        tracing::error!(?error, file = %file.display(), "the disk did not keep what was written");
    }
}

#[cold]
fn refused(file: &Path) -> Error {
    let file = file.display();
    // Only a new start helps: nobody need wait.
    Error::new(
        ErrorKind::Unavailable,
        Retry::Never,
        format!(
            "the disk did not keep what was written to the database {file}: look at the disk, then start again"
        ),
    )
}

#[cfg(test)]
mod tests {
    use std::time::{Duration, Instant};

    use async_trait::async_trait;
    use sqlx::SqliteConnection;

    use super::{super::writer::Attempt, *};
    use crate::error::Work;

    /// A change that only tells what it was answered.
    struct Told(Option<oneshot::Sender<Result<()>>>);

    #[async_trait]
    impl Waiting for Told {
        async fn make(&mut self, _: &mut SqliteConnection) -> Work<()> {
            Ok(())
        }

        async fn make_alone(&mut self, _: &mut SqliteConnection) -> Option<Attempt<()>> {
            None
        }

        fn refuse(&mut self, _: Error) {}

        fn answer(&mut self, committed: Result<()>) {
            if let Some(told) = self.0.take() {
                told.send(committed).ok();
            }
        }

        fn patience_ends(&self) -> Instant {
            Instant::now() + Duration::from_secs(60)
        }
    }

    async fn keep(keeper: &Keeper) -> Result<()> {
        let (told, answer) = oneshot::channel();
        keeper.keep(vec![Box::new(Told(Some(told)))]).await;
        answer.await.unwrap()
    }

    #[tokio::test]
    async fn what_is_kept_is_answered_and_closing_waits_for_it() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("numbers.db");
        let keeper = Keeper::start(&file).unwrap();
        assert!(keeper.is_idle());
        keep(&keeper).await.unwrap();
        assert!(keeper.is_idle(), "whoever is answered finds nobody waiting");
        fs::write(folder.path().join("numbers.db-wal"), "a log").unwrap();
        keep(&keeper).await.unwrap();
        let (told, answer) = oneshot::channel();
        keeper.keep(vec![Box::new(Told(Some(told)))]).await;
        keeper.close().await;
        answer.await.unwrap().unwrap();
    }

    #[tokio::test]
    async fn a_disk_that_refused_once_is_not_believed_again() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("gone").join("numbers.db");
        let keeper = Keeper::start(&file).unwrap();
        assert!(keeper.failure().is_none());
        let error = keep(&keeper).await.unwrap_err();
        assert!(error.message().contains("numbers.db"), "{error}");
        fs::create_dir(folder.path().join("gone")).unwrap();
        assert!(keep(&keeper).await.is_err());
        assert!(keeper.failure().is_some());
    }
}
