//! Concurrent calls, whose results are returned in the order of completion.

use std::{
    sync::{
        Arc, Mutex, PoisonError,
        atomic::{AtomicBool, Ordering},
    },
    time::Duration,
};

use pyo3::{
    exceptions::{PyRuntimeError, PyValueError},
    prelude::*,
};
use tokio::{sync, task::AbortHandle};
use verbatim::service::{ServiceError, ServiceReply, ServiceResult};

use crate::{
    exceptions::{BindingError, interrupted, link_error},
    options,
    pending::{Finisher, PendingCall},
    runtime::{self, PerProcess},
};

type BatchEntry = (u64, Finisher);

/// Started calls and their results; drop cancels them.
struct BatchItem {
    tasks: Mutex<Vec<AbortHandle>>,
    sender: sync::mpsc::UnboundedSender<BatchEntry>,
    receiver: Arc<sync::Mutex<sync::mpsc::UnboundedReceiver<BatchEntry>>>,
}

impl BatchItem {
    fn cancel(&self) {
        self.tasks.lock().unwrap_or_else(PoisonError::into_inner).iter().for_each(AbortHandle::abort);
    }
}

impl Drop for BatchItem {
    fn drop(&mut self) {
        self.cancel();
    }
}

/// Concurrent calls. Drop cancels those that still run.
#[pyclass(frozen, module = "verbatim_transcripts._native")]
pub(crate) struct Batch {
    state: PerProcess<BatchItem>,
    /// Waits for paused sources, or for a server.
    pub(crate) waits: verbatim::Batch,
}

#[pymethods]
impl Batch {
    /// A batch that waits at most `max_wait` seconds for paused sources or a server; `None`: the default of the facade.
    #[new]
    fn new(#[pyo3(from_py_with = options::extract::<Option<f64>>)] max_wait: Option<f64>) -> PyResult<Self> {
        let waits = match max_wait.map(Duration::try_from_secs_f64) {
            None => verbatim::Batch::default(),
            Some(Ok(max_wait)) => verbatim::Batch::new(max_wait),
            Some(Err(_)) => return Err(PyValueError::new_err("max_wait must be a number of seconds from 0")),
        };
        let (sender, receiver) = sync::mpsc::unbounded_channel();
        let receiver = Arc::new(sync::Mutex::new(receiver));
        let state = PerProcess::new(BatchItem { tasks: Mutex::default(), sender, receiver });
        Ok(Self { state, waits })
    }

    /// Starts a call under a number.
    fn start(&self, py: Python<'_>, number: u64, pending: &PendingCall) -> PyResult<()> {
        let state = self.state()?;
        let work = pending.take()?;
        let mut guard = CompletionGuard { sender: state.sender.clone(), number, done: None };
        let task = runtime::spawn(py, async move {
            let guard = &mut guard;
            guard.done = Some(work.await);
        })?;
        let mut tasks = state.tasks.lock().unwrap_or_else(PoisonError::into_inner);
        // Finished tasks need no handle: nothing is left to abort.
        tasks.retain(|task| !task.is_finished());
        tasks.push(task);
        Ok(())
    }

    /// The next result, as `(number, object or None, exception or None)`. Each started call yields one.
    fn next(&self) -> PyResult<PendingCall> {
        let receiver = Arc::clone(&self.state()?.receiver);
        let next = async move { receiver.lock().await.recv().await.ok_or(BindingError::Interrupted) };
        Ok(PendingCall::new(next, |py, (number, done)| {
            let (value, error) = match done(py) {
                Ok(value) => (Some(value), None),
                Err(error) => (None, Some(error.into_value(py))),
            };
            Ok((number, value, error).into_pyobject(py)?.into_any().unbind())
        }))
    }

    /// Cancels the running calls, before drop does: the traceback of an exception can keep the batch alive.
    fn cancel(&self) {
        // The calls of another process run there.
        if let Some(state) = self.state.get() {
            state.cancel();
        }
    }
}

impl Batch {
    /// The waits of a batch; without one a call does not wait.
    pub(crate) fn waits_of(batch: Option<&Bound<'_, Self>>) -> verbatim::Batch {
        batch.map_or_else(|| verbatim::Batch::new(Duration::ZERO), |batch| batch.get().waits.clone())
    }

    fn state(&self) -> PyResult<&BatchItem> {
        self.state.get().ok_or_else(|| PyRuntimeError::new_err("the batch belongs to another process"))
    }
}

/// As [`verbatim::Batch::call_service`], for a link. Once the object is closed, a call that waited is not sent.
pub(crate) async fn call_service<T, F>(
    waits: &verbatim::Batch,
    is_closed: &AtomicBool,
    link: &str,
    call: impl Fn() -> F + Send + Sync,
    reason: impl Fn(&T) -> Option<&str> + Send,
) -> Result<ServiceReply<T>, BindingError>
where
    F: Future<Output = ServiceResult<T>> + Send,
    T: Send,
{
    let is_refused = AtomicBool::new(false);
    let open_call = || async {
        if is_closed.load(Ordering::Acquire) {
            is_refused.store(true, Ordering::Release);
            return Err(ServiceError::unsupported("the object is closed"));
        }
        call().await
    };
    let reply = waits.call_service(open_call, reason).await;
    reply.map_err(|error| {
        if is_refused.load(Ordering::Acquire) { BindingError::Closed } else { link_error(link, error).into() }
    })
}

/// Sends the result of a call, also when the call panics or is aborted.
struct CompletionGuard {
    sender: sync::mpsc::UnboundedSender<BatchEntry>,
    number: u64,
    done: Option<Finisher>,
}

impl Drop for CompletionGuard {
    fn drop(&mut self) {
        let done = self.done.take().unwrap_or_else(|| Box::new(|_| Err(interrupted())));
        // The receiver is gone after the batch was dropped.
        let _ = self.sender.send((self.number, done));
    }
}
