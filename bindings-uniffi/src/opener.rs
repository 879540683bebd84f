//! The working parts: opened when they are first needed, closed while the app rests, and opened again.

use std::{
    fmt,
    path::PathBuf,
    sync::{
        Arc, Mutex, PoisonError,
        atomic::{AtomicBool, Ordering},
    },
};

use tokio::sync::OnceCell;
use transcript_core::{Error, ErrorKind, Retry, accounts::mail::RunningSender};
use verbatim::{Options, Verbatim};

use crate::{
    error::{Failure, FailureKind, VerbatimError},
    ports::{ForeignMailer, Mailer},
    runtime,
};

type Cell = Arc<OnceCell<Opened>>;

/// What was opened.
struct Opened {
    parts: Verbatim,
    /// Sends mails until it is dropped.
    _sender: Option<RunningSender>,
}

/// What opens the parts.
pub(crate) struct Opener {
    options: Options,
    /// The folder of the files, made where it is not there.
    folder: Option<PathBuf>,
    mailer: Option<Arc<dyn Mailer>>,
    is_closed: AtomicBool,
    cell: Mutex<Cell>,
}

impl fmt::Debug for Opener {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Opener").field("is_closed", &self.is_closed()).finish_non_exhaustive()
    }
}

impl Opener {
    pub(crate) fn new(options: Options, folder: Option<PathBuf>, mailer: Option<Arc<dyn Mailer>>) -> Self {
        Self { options, folder, mailer, is_closed: AtomicBool::new(false), cell: Mutex::default() }
    }

    pub(crate) fn is_closed(&self) -> bool {
        self.is_closed.load(Ordering::Acquire)
    }

    /// The parts, on the runtime.
    ///
    /// # Errors
    /// `Closed`; the storage's faults.
    pub(crate) async fn open(&self) -> Result<Verbatim, VerbatimError> {
        if self.is_closed() {
            return Err(Failure::of(FailureKind::Closed, "it was shut down"));
        }
        let cell = Arc::clone(&self.cell.lock().unwrap_or_else(PoisonError::into_inner));
        let open = async || {
            if let Some(folder) = self.folder.clone() {
                make(folder).await?;
            }
            let parts = Verbatim::open(self.options.clone()).await?;
            let mailer = self.mailer.clone();
            let _sender = mailer.map(|mailer| parts.start_mail(Arc::new(ForeignMailer(mailer))));
            Ok::<_, Error>(Opened { parts, _sender })
        };
        Ok(cell.get_or_try_init(open).await?.parts.clone())
    }

    /// Closes the parts once the work that is under way is done; the next call opens them again.
    pub(crate) async fn pause(&self) {
        let cell = std::mem::take(&mut *self.cell.lock().unwrap_or_else(PoisonError::into_inner));
        if let Some(opened) = cell.get() {
            opened.parts.close().await;
        }
    }

    /// Closes the parts for good.
    pub(crate) async fn close(&self) {
        self.is_closed.store(true, Ordering::Release);
        self.pause().await;
    }
}

impl Drop for Opener {
    fn drop(&mut self) {
        let cell = std::mem::take(self.cell.get_mut().unwrap_or_else(PoisonError::into_inner));
        if let (Some(_), Ok(runtime)) = (cell.get(), runtime::handle()) {
            // What they end with is theirs to end in: on their runtime, not on the app's thread.
            runtime.spawn(async move {
                if let Some(opened) = cell.get() {
                    opened.parts.close().await;
                }
            });
        }
    }
}

/// Makes the folder of the files.
async fn make(folder: PathBuf) -> Result<(), Error> {
    let made = tokio::task::spawn_blocking(move || std::fs::create_dir_all(folder)).await;
    let fault = |message: String| Error::new(ErrorKind::Unavailable, Retry::Never, message);
    match made {
        Ok(Ok(())) => Ok(()),
        Ok(Err(error)) => Err(fault(format!("the folder for the files cannot be made: {error}"))),
        Err(_) => Err(fault("the folder for the files could not be made".to_owned())),
    }
}
