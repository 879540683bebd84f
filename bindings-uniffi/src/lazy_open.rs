//! A [`Verbatim`] that opens on first use, closes on a pause, and opens again on the next call.

use std::{
    ops::Deref,
    path::PathBuf,
    sync::{
        Arc, Mutex, MutexGuard, PoisonError,
        atomic::{AtomicBool, Ordering},
    },
};

use tokio::sync::OnceCell;
use transcript_core::{ActivityCount, ActivityGuard, Error, ErrorKind, Retry};
use verbatim::{Options, StorageOptions, Verbatim};

#[cfg(feature = "local-service")]
use crate::ports::{ForeignMailer, Mailer};
use crate::{
    error::{Failure, FailureKind, VerbatimError},
    runtime,
};

/// An open [`Verbatim`] with its mail sender.
struct OpenVerbatim {
    verbatim: Verbatim,
    /// Sends mails until it is stopped.
    #[cfg(feature = "local-service")]
    mail_sender: Mutex<Option<verbatim::JobHandle>>,
}

/// A [`Verbatim`] from its first call until it is closed.
#[derive(Clone, Default)]
struct Session {
    cell: Arc<OnceCell<OpenVerbatim>>,
    /// The calls that opened it, or wait for it to open.
    calls: ActivityCount,
}

impl Session {
    /// Waits for running work; what is open stays open.
    async fn wait_until_idle(&self) {
        self.calls.wait_until_idle().await;
        if let Some(open) = self.cell.get() {
            open.verbatim.transcripts().close().await;
        }
    }

    /// Waits for running work, also of the mail sender, and closes.
    async fn close(self) {
        self.calls.wait_until_idle().await;
        let Some(open) = self.cell.get() else { return };
        #[cfg(feature = "local-service")]
        {
            let sender = open.mail_sender.lock().unwrap_or_else(PoisonError::into_inner).take();
            // Before the stores close: the outcome of a mail that is being sent is stored.
            if let Some(sender) = sender {
                sender.stop().await;
            }
        }
        open.verbatim.close().await;
    }
}

/// The [`Verbatim`] of a call: closing waits until it is dropped.
pub(crate) struct OpenCall {
    verbatim: Verbatim,
    _running: ActivityGuard,
}

impl Deref for OpenCall {
    type Target = Verbatim;

    fn deref(&self) -> &Verbatim {
        &self.verbatim
    }
}

/// Opens a [`Verbatim`] on first use.
pub(crate) struct LazyVerbatim {
    options: Options,
    /// Folder of the files, created if it does not exist.
    folder: Option<PathBuf>,
    #[cfg(feature = "local-service")]
    mailer: Option<Arc<dyn Mailer>>,
    is_closed: AtomicBool,
    session: Mutex<Session>,
    /// The sessions that are being closed.
    closings: ActivityCount,
}

transcript_core::debug_fields!(LazyVerbatim |this| { is_closed: this.is_closed() });

impl LazyVerbatim {
    pub(crate) fn new(options: Options, folder: Option<PathBuf>) -> Self {
        Self {
            options,
            folder,
            #[cfg(feature = "local-service")]
            mailer: None,
            is_closed: AtomicBool::new(false),
            session: Mutex::default(),
            closings: ActivityCount::default(),
        }
    }

    /// Sends mails through this mailer; `None`: mails stay queued.
    #[cfg(feature = "local-service")]
    pub(crate) fn with_mailer(mut self, mailer: Option<Arc<dyn Mailer>>) -> Self {
        self.mailer = mailer;
        self
    }

    pub(crate) fn is_closed(&self) -> bool {
        self.is_closed.load(Ordering::Acquire)
    }

    fn lock_session(&self) -> MutexGuard<'_, Session> {
        self.session.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Opens it if necessary. Call this on the runtime, and keep the result until the call ends.
    ///
    /// # Errors
    /// `Closed`; failures of the storage.
    pub(crate) async fn open(&self) -> Result<OpenCall, VerbatimError> {
        self.reject_closed()?;
        let (cell, running) = {
            let session = self.lock_session();
            (Arc::clone(&session.cell), session.calls.begin())
        };
        let open = async || {
            // Closed while another caller, who has left, was opening.
            self.reject_closed()?;
            if let Some(folder) = self.folder.clone() {
                create_folder(folder).await?;
            }
            let verbatim = Verbatim::open(self.options.clone()).await?;
            Ok::<_, VerbatimError>(OpenVerbatim {
                #[cfg(feature = "local-service")]
                mail_sender: Mutex::new(
                    self.mailer.clone().map(|mailer| verbatim.start_mail(Arc::new(ForeignMailer(mailer)))),
                ),
                verbatim,
            })
        };
        let verbatim = cell.get_or_try_init(open).await?.verbatim.clone();
        self.reject_closed()?;
        Ok(OpenCall { verbatim, _running: running })
    }

    fn reject_closed(&self) -> Result<(), VerbatimError> {
        match self.is_closed() {
            true => Err(Failure::error(FailureKind::Closed, "Transcripts was shut down: create a new one")),
            false => Ok(()),
        }
    }

    /// Waits for running work and closes the files; the next call opens again, even while this one waits.
    ///
    /// Without files nothing is closed, because a storage in memory would be lost.
    pub(crate) async fn pause(&self) {
        if matches!(self.options.storage, StorageOptions::Memory) {
            let session = self.lock_session().clone();
            session.wait_until_idle().await;
        } else {
            self.close_session();
        }
        self.closings.wait_until_idle().await;
    }

    /// Waits for running work and closes; later calls fail as `Closed`.
    pub(crate) async fn close(&self) {
        self.is_closed.store(true, Ordering::Release);
        self.close_session();
        self.closings.wait_until_idle().await;
    }

    /// Starts closing the session. A caller that waits for it may leave: it does not end the task.
    fn close_session(&self) {
        let session = std::mem::take(&mut *self.lock_session());
        let closing = self.closings.begin();
        tokio::spawn(async move {
            session.close().await;
            drop(closing);
        });
    }
}

impl Drop for LazyVerbatim {
    fn drop(&mut self) {
        let session = std::mem::take(self.session.get_mut().unwrap_or_else(PoisonError::into_inner));
        if let (Some(_), Ok(runtime)) = (session.cell.get(), runtime::handle()) {
            // Closing waits for work, so it runs on the runtime and not on the app's thread.
            runtime.spawn(session.close());
        }
    }
}

/// Creates the folder of the files.
async fn create_folder(folder: PathBuf) -> Result<(), Error> {
    let created = tokio::task::spawn_blocking(move || std::fs::create_dir_all(folder)).await;
    let unavailable = |message: String| Error::new(ErrorKind::Unavailable, Retry::Never, message);
    match created {
        Ok(Ok(())) => Ok(()),
        Ok(Err(error)) => Err(unavailable(format!("cannot create the storage folder: {error}"))),
        Err(_) => Err(unavailable("cannot create the storage folder".to_owned())),
    }
}
