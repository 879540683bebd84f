//! A [`Verbatim`] that opens on first use, closes on a pause, and opens again on the next call.

use std::{
    path::PathBuf,
    sync::{
        Arc, Mutex, PoisonError,
        atomic::{AtomicBool, Ordering},
    },
};

use tokio::sync::OnceCell;
use transcript_core::{Error, ErrorKind, Retry};
use verbatim::{Options, Verbatim};

#[cfg(feature = "local-service")]
use crate::ports::{ForeignMailer, Mailer};
use crate::{
    error::{Failure, FailureKind, VerbatimError},
    runtime,
};

type OpenCell = Arc<OnceCell<OpenVerbatim>>;

/// An open [`Verbatim`] with its mail sender.
struct OpenVerbatim {
    verbatim: Verbatim,
    /// Sends mails until it is dropped.
    #[cfg(feature = "local-service")]
    _mail_sender: Option<verbatim::JobHandle>,
}

/// Opens a [`Verbatim`] on first use.
pub(crate) struct LazyVerbatim {
    options: Options,
    /// Folder of the files, created if it does not exist.
    folder: Option<PathBuf>,
    #[cfg(feature = "local-service")]
    mailer: Option<Arc<dyn Mailer>>,
    is_closed: AtomicBool,
    cell: Mutex<OpenCell>,
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
            cell: Mutex::default(),
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

    /// Opens it if necessary. Call this on the runtime.
    ///
    /// # Errors
    /// `Closed`; failures of the storage.
    pub(crate) async fn open(&self) -> Result<Verbatim, VerbatimError> {
        self.reject_closed()?;
        let cell = Arc::clone(&self.cell.lock().unwrap_or_else(PoisonError::into_inner));
        let open = async || {
            // Closed while another caller, who has left, was opening.
            self.reject_closed()?;
            if let Some(folder) = self.folder.clone() {
                create_folder(folder).await?;
            }
            let verbatim = Verbatim::open(self.options.clone()).await?;
            Ok::<_, VerbatimError>(OpenVerbatim {
                #[cfg(feature = "local-service")]
                _mail_sender: self
                    .mailer
                    .clone()
                    .map(|mailer| verbatim.start_mail(Arc::new(ForeignMailer(mailer)))),
                verbatim,
            })
        };
        let verbatim = cell.get_or_try_init(open).await?.verbatim.clone();
        self.reject_closed()?;
        Ok(verbatim)
    }

    fn reject_closed(&self) -> Result<(), VerbatimError> {
        match self.is_closed() {
            true => Err(Failure::error(FailureKind::Closed, "Transcripts was shut down: create a new one")),
            false => Ok(()),
        }
    }

    /// Waits for running work and closes; the next call opens again, even while this one waits.
    pub(crate) async fn pause(&self) {
        let cell = std::mem::take(&mut *self.cell.lock().unwrap_or_else(PoisonError::into_inner));
        // Waits for a caller that is opening, and opens nothing itself.
        if let Ok(open) = cell.get_or_try_init(|| std::future::ready(Err(()))).await {
            open.verbatim.close().await;
        }
    }

    /// Waits for running work and closes; later calls fail as `Closed`.
    pub(crate) async fn close(&self) {
        self.is_closed.store(true, Ordering::Release);
        self.pause().await;
    }
}

impl Drop for LazyVerbatim {
    fn drop(&mut self) {
        let cell = std::mem::take(self.cell.get_mut().unwrap_or_else(PoisonError::into_inner));
        if let (Some(_), Ok(runtime)) = (cell.get(), runtime::handle()) {
            // Closing waits for work, so it runs on the runtime and not on the app's thread.
            runtime.spawn(async move {
                if let Some(open) = cell.get() {
                    open.verbatim.close().await;
                }
            });
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
