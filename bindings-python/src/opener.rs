//! The working parts behind a Python object: opened when they are first needed, and anew in a forked child.

use std::{
    future::Future,
    sync::{
        Arc, Mutex, PoisonError,
        atomic::{AtomicBool, Ordering},
    },
};

use pyo3::prelude::*;
use tokio::{sync::OnceCell, task::JoinSet};
use transcript_core::{
    Error,
    accounts::mail::{Mailer, RunningSender},
};
use verbatim::{AtHand, Options, Verbatim};

use crate::{
    ends,
    fault::Fault,
    runtime::{self, OfProcess, Runtimes},
};

/// The parts, once they are open, and the runtimes of their process: they live on the shared one.
type Cell = (Arc<OnceCell<Opened>>, Runtimes);

/// How many bytes of archived transcripts are at hand at most.
const AT_HAND_BYTES: u64 = 16 << 20;

/// What was opened.
pub(crate) struct Opened {
    pub(crate) parts: Verbatim,
    /// None where the archive is written in Python: that is asked every time.
    at_hand: Option<AtHand>,
    /// Sends mails until it is dropped.
    _sender: Option<RunningSender>,
}

/// What opens the parts.
pub(crate) struct Opener {
    /// Shared with every call, which is short beside copying them.
    options: Arc<Options>,
    /// Who sends the mails of registrations; none: they wait.
    mailer: Option<Arc<dyn Mailer>>,
    is_closed: Arc<AtomicBool>,
    /// Locked for moments only, by who holds the interpreter: no fork falls in between.
    opened: Mutex<Option<OfProcess<Cell>>>,
}

impl Opener {
    pub(crate) fn new(options: Options, mailer: Option<Arc<dyn Mailer>>) -> Self {
        Self { options: Arc::new(options), mailer, is_closed: Arc::default(), opened: Mutex::new(None) }
    }

    fn cell(&self, py: Python<'_>) -> PyResult<Cell> {
        let runtimes = runtime::runtimes(py)?;
        let mut opened = self.opened.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(cell) = opened.as_ref().and_then(OfProcess::get) {
            return Ok(cell.clone());
        }
        let cell = (Arc::new(OnceCell::new()), runtimes);
        ends::note_opened(py, Arc::downgrade(&cell.0));
        // The parent's, if there is one, is left as it is.
        *opened = Some(OfProcess::new(cell.clone()));
        Ok(cell)
    }

    /// The parts, to be awaited on the package's runtime.
    pub(crate) fn open(
        &self,
        py: Python<'_>,
    ) -> PyResult<impl Future<Output = Result<Verbatim, Fault>> + Send + use<>> {
        let open = self.open_with_at_hand(py)?;
        Ok(async move { open.await.map(|(parts, _)| parts) })
    }

    /// The same for a call that changes what is archived: nothing of before is at hand once the guard is dropped.
    pub(crate) fn open_to_change(
        &self,
        py: Python<'_>,
    ) -> PyResult<impl Future<Output = Result<(Verbatim, Changing), Fault>> + Send + use<>> {
        let open = self.open_with_at_hand(py)?;
        Ok(async move { open.await.map(|(parts, at_hand)| (parts, Changing(at_hand))) })
    }

    /// What is at hand, where the parts are open already, and the runtimes of their process.
    pub(crate) fn at_hand(&self, _: Python<'_>) -> Option<(AtHand, Runtimes)> {
        if self.is_closed() {
            return None;
        }
        let opened = self.opened.lock().unwrap_or_else(PoisonError::into_inner);
        let (cell, runtimes) = opened.as_ref().and_then(OfProcess::get)?;
        Some((cell.get()?.at_hand.clone()?, *runtimes))
    }

    /// The parts, and what is at hand of the archive.
    pub(crate) fn open_with_at_hand(
        &self,
        py: Python<'_>,
    ) -> PyResult<impl Future<Output = Result<(Verbatim, Option<AtHand>), Fault>> + Send + use<>> {
        let (cell, runtimes) = self.cell(py)?;
        let (options, mailer) = (Arc::clone(&self.options), self.mailer.clone());
        let is_closed = Arc::clone(&self.is_closed);
        Ok(async move {
            if is_closed.load(Ordering::Acquire) {
                return Err(Fault::Closed);
            }
            // Boxed, since it is done once, and what every call is made of is no larger for it.
            let open = || async move {
                let is_own = options.own.archive.is_some();
                let mut options = Options::clone(&options);
                options.own.beside = Some(runtimes.alone.clone());
                let parts = Verbatim::open(options).await?;
                let at_hand = (!is_own).then(|| AtHand::new(parts.clone(), AT_HAND_BYTES));
                let sender = mailer.map(|mailer| parts.start_mail(mailer));
                Ok::<_, Error>(Opened { parts, at_hand, _sender: sender })
            };
            // On their own runtime, whichever this caller's is; in a set, so that it ends with the caller.
            let opened = || {
                Box::pin(async {
                    let mut opening = JoinSet::new();
                    opening.spawn_on(open(), runtimes.shared);
                    let opened = opening.join_next().await.and_then(Result::ok);
                    opened.unwrap_or_else(|| Err(Error::unexpected("opening broke down")))
                })
            };
            let opened = cell.get_or_try_init(opened).await?;
            Ok((opened.parts.clone(), opened.at_hand.clone()))
        })
    }

    /// Closes the parts, waiting for the work that is under way.
    pub(crate) fn close(
        &self,
        py: Python<'_>,
    ) -> PyResult<impl Future<Output = Result<(), Fault>> + Send + use<>> {
        let (cell, _) = self.cell(py)?;
        let is_closed = Arc::clone(&self.is_closed);
        Ok(async move {
            is_closed.store(true, Ordering::Release);
            if let Some(opened) = cell.get() {
                opened.parts.close().await;
            }
            Ok(())
        })
    }

    pub(crate) fn is_closed(&self) -> bool {
        self.is_closed.load(Ordering::Acquire)
    }
}

/// Something is being changed in the archive; with this ends what was at hand, however that went.
pub(crate) struct Changing(Option<AtHand>);

impl Drop for Changing {
    fn drop(&mut self) {
        if let Some(at_hand) = &self.0 {
            at_hand.clear();
        }
    }
}

impl Drop for Opener {
    fn drop(&mut self) {
        let opened = self.opened.get_mut().unwrap_or_else(PoisonError::into_inner).take();
        let Some(opened) = opened else { return };
        if let Some((_, runtimes)) = opened.get() {
            // What they end with is theirs to end in: on their own runtime, not on this thread.
            runtimes.shared.spawn(async move { drop(opened) });
        }
    }
}
