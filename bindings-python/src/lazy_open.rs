//! The facade behind a Python object: opened on first use, and opened again in a forked child.

use std::{
    future::Future,
    sync::{
        Arc, Mutex, PoisonError,
        atomic::{AtomicBool, Ordering},
    },
};

use pyo3::prelude::*;
use tokio::{
    sync::{Mutex as AsyncMutex, OnceCell},
    task::JoinSet,
};
use transcript_core::{Error, accounts::mail::Mailer};
use verbatim::{JobHandle, Options, StorageOptions, TranscriptCache, Verbatim};

use crate::{
    exceptions::BindingError,
    lifecycle,
    runtime::{self, PerProcess, Runtimes},
};

/// The facade, once it is open, and the runtimes of its process; its tasks run on the shared runtime.
type ProcessCell = (Arc<OnceCell<OpenVerbatim>>, Runtimes);

/// Size limit of the cache of archived transcripts.
const CACHE_BYTES: u64 = 16 << 20;

/// An open facade.
pub(crate) struct OpenVerbatim {
    pub(crate) verbatim: Verbatim,
    /// `None` for an archive written in Python, which is read on every call.
    cache: Option<TranscriptCache>,
    /// Sends mails until it is stopped. Locked while it stops, so that another close waits too.
    mail_sender: AsyncMutex<Option<JobHandle>>,
}

/// Opens the facade on first use.
pub(crate) struct LazyVerbatim {
    /// Shared with every call; a copy would cost more than the call.
    options: Arc<Options>,
    /// Sender of registration mails; `None`: mails stay queued.
    mailer: Option<Arc<dyn Mailer>>,
    is_closed: Arc<AtomicBool>,
    /// Locked briefly and only while attached to the interpreter, so no fork happens in between.
    opened: Mutex<Option<PerProcess<ProcessCell>>>,
}

impl LazyVerbatim {
    pub(crate) fn new(options: Options, mailer: Option<Arc<dyn Mailer>>) -> Self {
        Self { options: Arc::new(options), mailer, is_closed: Arc::default(), opened: Mutex::new(None) }
    }

    fn cell(&self, py: Python<'_>) -> PyResult<ProcessCell> {
        let runtimes = runtime::runtimes(py)?;
        let mut opened = self.opened.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(cell) = opened.as_ref().and_then(PerProcess::get) {
            return Ok(cell.clone());
        }
        let cell = (Arc::new(OnceCell::new()), runtimes);
        lifecycle::register_open(py, Arc::downgrade(&cell.0));
        // A value of the parent process is neither used nor closed.
        *opened = Some(PerProcess::new(cell.clone()));
        Ok(cell)
    }

    /// The facade, to be awaited on a runtime of the package.
    pub(crate) fn open(
        &self,
        py: Python<'_>,
    ) -> PyResult<impl Future<Output = Result<Verbatim, BindingError>> + Send + use<>> {
        let open = self.open_with_cache(py)?;
        Ok(async move { open.await.map(|(verbatim, _)| verbatim) })
    }

    /// As [`Self::open`], for calls that change the archive: dropping the guard invalidates the cache.
    pub(crate) fn open_to_change(
        &self,
        py: Python<'_>,
    ) -> PyResult<impl Future<Output = Result<(Verbatim, InvalidateGuard), BindingError>> + Send + use<>>
    {
        let open = self.open_with_cache(py)?;
        Ok(async move { open.await.map(|(verbatim, cache)| (verbatim, InvalidateGuard(cache))) })
    }

    /// The cache, if the facade is open already, and the runtimes of its process.
    pub(crate) fn cache(&self, _: Python<'_>) -> Option<(TranscriptCache, Runtimes)> {
        if self.is_closed() {
            return None;
        }
        let opened = self.opened.lock().unwrap_or_else(PoisonError::into_inner);
        let (cell, runtimes) = opened.as_ref().and_then(PerProcess::get)?;
        Some((cell.get()?.cache.clone()?, *runtimes))
    }

    /// The facade and its cache.
    pub(crate) fn open_with_cache(
        &self,
        py: Python<'_>,
    ) -> PyResult<
        impl Future<Output = Result<(Verbatim, Option<TranscriptCache>), BindingError>> + Send + use<>,
    > {
        let (cell, runtimes) = self.cell(py)?;
        let (options, mailer) = (Arc::clone(&self.options), self.mailer.clone());
        let is_closed = Arc::clone(&self.is_closed);
        Ok(async move {
            if is_closed.load(Ordering::Acquire) {
                return Err(BindingError::Closed);
            }
            if let Some(opened) = cell.get() {
                return Ok((opened.verbatim.clone(), opened.cache.clone()));
            }
            let is_closing = Arc::clone(&is_closed);
            let open = move || async move {
                // Closed while another caller, who has left, was opening.
                if is_closing.load(Ordering::Acquire) {
                    return Err(BindingError::Closed);
                }
                let is_custom = options.custom.archive.is_some();
                let mut options = Options::clone(&options);
                options.custom.caller_runtime = Some(runtimes.alone.clone());
                let verbatim = Verbatim::open(options).await?;
                let cache = (!is_custom).then(|| TranscriptCache::new(verbatim.clone(), CACHE_BYTES));
                let mail_sender = AsyncMutex::new(mailer.map(|mailer| verbatim.start_mail(mailer)));
                Ok(OpenVerbatim { verbatim, cache, mail_sender })
            };
            let opening = async move {
                let opened = cell.get_or_try_init(open).await?;
                Ok::<_, BindingError>((opened.verbatim.clone(), opened.cache.clone()))
            };
            let interrupted =
                || Err(BindingError::from(Error::unexpected("opening the archive was interrupted")));
            let opened = run_on_shared(opening, runtimes).await.unwrap_or_else(interrupted)?;
            if is_closed.load(Ordering::Acquire) {
                return Err(BindingError::Closed);
            }
            Ok(opened)
        })
    }

    /// Closes the facade after its running calls. A call that is still opening it fails as closed.
    pub(crate) fn close(
        &self,
        py: Python<'_>,
    ) -> PyResult<impl Future<Output = Result<(), BindingError>> + Send + use<>> {
        let (cell, runtimes) = self.cell(py)?;
        let is_closed = Arc::clone(&self.is_closed);
        Ok(async move {
            is_closed.store(true, Ordering::Release);
            // Waits for a caller that is opening, and opens nothing itself.
            let opened = async move {
                let opened = cell.get_or_try_init(|| std::future::ready(Err(()))).await.ok()?;
                let mut sender = opened.mail_sender.lock().await;
                // Before the stores close: the outcome of a mail that is being sent is stored.
                if let Some(sender) = sender.take() {
                    sender.stop().await;
                }
                Some(opened.verbatim.clone())
            };
            if let Some(verbatim) = run_on_shared(opened, runtimes).await.flatten() {
                verbatim.close().await;
            }
            Ok(())
        })
    }

    /// Whether the transcripts are in the memory of this process.
    pub(crate) fn is_in_memory(&self) -> bool {
        let Options { storage, custom, .. } = self.options.as_ref();
        matches!(storage, StorageOptions::Memory | StorageOptions::BoundedMemory(_))
            && custom.archive.is_none()
    }

    pub(crate) fn is_closed(&self) -> bool {
        self.is_closed.load(Ordering::Acquire)
    }
}

/// Starts work on the shared runtime, whichever runtime the caller uses; the `JoinSet` aborts it with the caller.
///
/// It continues while the thread that waits for it runs a signal handler, which may wait for the same cell. A task also
/// keeps the future of every call small.
fn run_on_shared<T: Send + 'static>(
    work: impl Future<Output = T> + Send + 'static,
    runtimes: Runtimes,
) -> impl Future<Output = Option<T>> + Send {
    let mut tasks = JoinSet::new();
    tasks.spawn_on(work, runtimes.shared);
    async move { tasks.join_next().await.and_then(Result::ok) }
}

/// Guard of an archive change: drop invalidates the cache, whatever the outcome.
pub(crate) struct InvalidateGuard(Option<TranscriptCache>);

impl Drop for InvalidateGuard {
    fn drop(&mut self) {
        if let Some(cache) = &self.0 {
            cache.invalidate_all();
        }
    }
}

impl Drop for LazyVerbatim {
    fn drop(&mut self) {
        let opened = self.opened.get_mut().unwrap_or_else(PoisonError::into_inner).take();
        let Some(opened) = opened else { return };
        if let Some((_, runtimes)) = opened.get() {
            // The drop of the facade needs its own runtime, and must not block this thread.
            runtimes.shared.spawn(async move { drop(opened) });
        }
    }
}
