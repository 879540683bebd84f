//! Calls that Python waits for or awaits.
//!
//! A call that can block returns a [`PendingCall`], which starts on `wait` or `await`. The plain and the async
//! functions of the package share it, so each call is implemented once.

use std::{
    cell::Cell,
    future::Future,
    panic::{AssertUnwindSafe, catch_unwind},
    pin::Pin,
    sync::{
        Arc, Mutex, PoisonError,
        atomic::{AtomicBool, Ordering},
    },
    task::{Context, Poll, Wake, Waker},
    thread::{self, Thread},
    time::{Duration, Instant},
};

use pyo3::{exceptions::PyRuntimeError, prelude::*, types::PyAny};
use tokio::{runtime::Handle, task::AbortHandle};

use crate::{
    events,
    exceptions::{BindingError, interrupted},
    lifecycle::{self, WorkGuard},
    runtime::{self, Runtimes},
};

/// Interval at which a waiting thread checks for signals.
const SIGNAL_CHECK_INTERVAL: Duration = Duration::from_millis(50);
/// First pause of a result that waits for event hooks.
const EVENT_PAUSE_MIN: Duration = Duration::from_millis(1);

thread_local! {
    /// The process in which this thread runs the event loop of the package.
    static LOOP_PROCESS: Cell<Option<u32>> = const { Cell::new(None) };
}

/// Marks this thread as that of the package's event loop, in this process: a forked child runs other code on it.
#[pyfunction]
pub(crate) fn _mark_loop_thread() {
    LOOP_PROCESS.set(Some(std::process::id()));
}

/// Rejects a wait on the thread of the package's event loop: the call can need a coroutine of that loop.
///
/// # Errors
/// `RuntimeError` on that thread.
fn reject_loop_thread() -> PyResult<()> {
    if LOOP_PROCESS.get().is_some_and(|process| process == std::process::id()) {
        return Err(PyRuntimeError::new_err(
            "a plain call in an async method would block the event loop of the package: \
             await its twin, such as aget",
        ));
    }
    Ok(())
}

/// Converts the result of a call to a Python object or exception.
pub(crate) type Finisher = Box<dyn FnOnce(Python<'_>) -> PyResult<Py<PyAny>> + Send>;
/// The future of a call.
pub(crate) type PendingWork = Pin<Box<dyn Future<Output = Finisher> + Send>>;

/// State of a call that has not started.
enum PendingState {
    Work(PendingWork),
    /// The result is known already.
    Ready(Py<PyAny>),
}

/// A call that starts when it is waited for or awaited, once.
#[pyclass(frozen, module = "verbatim_transcripts._native")]
pub(crate) struct PendingCall {
    state: Mutex<Option<PendingState>>,
}

impl PendingCall {
    /// A call, and the conversion of its result to a Python object.
    pub(crate) fn new<T: Send + 'static>(
        work: impl Future<Output = Result<T, BindingError>> + Send + 'static,
        make: impl FnOnce(Python<'_>, T) -> PyResult<Py<PyAny>> + Send + 'static,
    ) -> Self {
        let work = async move {
            let result = work.await;
            Box::new(move |py: Python<'_>| match result {
                Ok(value) => make(py, value),
                Err(error) => Err(error.into_py_err(py)),
            }) as Finisher
        };
        Self { state: Mutex::new(Some(PendingState::Work(Box::pin(work)))) }
    }

    /// A call whose result is known.
    pub(crate) fn ready(value: Py<PyAny>) -> Self {
        Self { state: Mutex::new(Some(PendingState::Ready(value))) }
    }

    /// Takes the future, which can run once.
    pub(crate) fn take(&self) -> PyResult<PendingWork> {
        Ok(match self.state()? {
            PendingState::Work(work) => work,
            PendingState::Ready(value) => {
                Box::pin(std::future::ready(Box::new(move |_: Python<'_>| Ok(value)) as Finisher))
            }
        })
    }

    fn state(&self) -> PyResult<PendingState> {
        let state = self.state.lock().unwrap_or_else(PoisonError::into_inner).take();
        state.ok_or_else(|| PyRuntimeError::new_err("this call was already waited for"))
    }
}

/// Wakes the waiting thread.
struct ThreadWaker {
    thread: Thread,
    is_woken: AtomicBool,
}

impl Wake for ThreadWaker {
    fn wake(self: Arc<Self>) {
        self.wake_by_ref();
    }

    fn wake_by_ref(self: &Arc<Self>) {
        self.is_woken.store(true, Ordering::Release);
        self.thread.unpark();
    }
}

impl ThreadWaker {
    /// Polls the future on this thread until it is ready or [`SIGNAL_CHECK_INTERVAL`] has passed.
    fn poll<T>(
        self: &Arc<Self>,
        mut work: Pin<&mut (impl Future<Output = T> + ?Sized)>,
        runtime: &Handle,
    ) -> Poll<T> {
        // For timers and tasks that the future creates.
        let _inside = runtime.enter();
        let waker = Waker::from(Arc::clone(self));
        let mut deadline = None;
        loop {
            if let Poll::Ready(done) = work.as_mut().poll(&mut Context::from_waker(&waker)) {
                return Poll::Ready(done);
            }
            // Many futures are ready after the first poll, without a clock read.
            let deadline = *deadline.get_or_insert_with(|| Instant::now() + SIGNAL_CHECK_INTERVAL);
            while !self.is_woken.swap(false, Ordering::AcqRel) {
                let remaining = deadline.saturating_duration_since(Instant::now());
                if remaining.is_zero() {
                    return Poll::Pending;
                }
                thread::park_timeout(remaining);
            }
        }
    }
}

/// Runs `poll` detached from the interpreter until its result is ready; a signal handler's exception ends the wait.
///
/// Each poll takes [`SIGNAL_CHECK_INTERVAL`] at most.
fn wait_until_ready<T: Send>(py: Python<'_>, mut poll: impl FnMut() -> Poll<T> + Send) -> PyResult<T> {
    loop {
        let polled = py.detach(|| {
            let polled = catch_unwind(AssertUnwindSafe(&mut poll));
            lifecycle::park_at_exit();
            polled
        });
        match polled {
            Ok(Poll::Ready(done)) => return Ok(done),
            Ok(Poll::Pending) => py.check_signals()?,
            Err(_) => return Err(interrupted()),
        }
    }
}

/// Waits for a future detached from the interpreter; an exception of a signal handler cancels it.
///
/// The future is polled on this thread: passing it to a runtime thread and waking up again takes longer than many
/// calls.
///
/// # Errors
/// The exception of a signal handler, or `RuntimeError` on the thread of the package's event loop.
pub(crate) fn wait_for<T: Send>(
    py: Python<'_>,
    runtimes: Runtimes,
    mut work: Pin<&mut (impl Future<Output = T> + Send + ?Sized)>,
) -> PyResult<T> {
    reject_loop_thread()?;
    lifecycle::wait_for_forks(py);
    let guard = WorkGuard::new();
    let runtime = if guard.is_alone { runtimes.alone } else { runtimes.shared };
    let waiter = Arc::new(ThreadWaker { thread: thread::current(), is_woken: AtomicBool::new(false) });
    wait_until_ready(py, || waiter.poll(work.as_mut(), runtime))
}

/// Waits for a future on the runtime that waiting threads drive ([`runtime::caller_runtime`]).
///
/// # Errors
/// The error of the future, or the exception of a signal handler.
pub(crate) fn block_on<T: Send>(
    py: Python<'_>,
    work: impl Future<Output = Result<T, BindingError>> + Send,
) -> PyResult<T> {
    lifecycle::wait_for_forks(py);
    let _guard = WorkGuard::new();
    let runtime = runtime::caller_runtime(py)?;
    let mut work = std::pin::pin!(async {
        // Connections are not polled between calls. The first yield lets the runtime collect I/O events, the second
        // one lets it handle them, so that a connection closed by the peer is not used.
        tokio::task::yield_now().await;
        tokio::task::yield_now().await;
        work.await
    });
    let poll =
        || match runtime.block_on(async { tokio::time::timeout(SIGNAL_CHECK_INTERVAL, &mut work).await }) {
            Ok(done) => Poll::Ready(done),
            Err(_) => Poll::Pending,
        };
    wait_until_ready(py, poll)?.map_err(|error| error.into_py_err(py))
}

#[pymethods]
impl PendingCall {
    /// Waits for the call, as [`wait_for`] does.
    pub(crate) fn wait(&self, py: Python<'_>) -> PyResult<Py<PyAny>> {
        match self.state()? {
            PendingState::Work(mut work) => {
                let done = wait_for(py, runtime::runtimes(py)?, work.as_mut())?;
                events::flush(py);
                done(py)
            }
            PendingState::Ready(value) => Ok(value),
        }
    }

    /// Starts the call and returns an iterator for the running event loop. Cancelling the future cancels the call.
    fn __await__<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        let event_loop = py.import("asyncio")?.call_method0("get_running_loop")?;
        let state = self.state()?;
        let future = event_loop.call_method0("create_future")?;
        let work = match state {
            PendingState::Work(work) => work,
            PendingState::Ready(value) => {
                future.call_method1("set_result", (value,))?;
                return future.call_method0("__await__");
            }
        };
        let target = (future.clone().unbind(), event_loop.clone().unbind());
        let waiter = LoopWaiter { target: Some(target) };
        let task = runtime::spawn(py, async move {
            let waiter = waiter;
            let done = work.await;
            waiter.complete(done);
        })?;
        future.call_method1("add_done_callback", (CancelGuard { task },))?;
        future.call_method0("__await__")
    }
}

/// Delivers the result to an event loop; drop without a result delivers an exception.
struct LoopWaiter {
    target: Option<(Py<PyAny>, Py<PyAny>)>,
}

impl LoopWaiter {
    fn complete(mut self, done: Finisher) {
        self.send(done);
    }

    fn send(&mut self, done: Finisher) {
        let Some((future, event_loop)) = self.target.take() else { return };
        // No delivery once the interpreter exits.
        let _exiting = lifecycle::attached(|py| {
            let delivery = ResultDelivery {
                future,
                event_loop: event_loop.clone_ref(py),
                created_at: Instant::now(),
                done: Mutex::new(Some(done)),
            };
            // A closed event loop has no waiters.
            let _closed = event_loop.call_method1(py, "call_soon_threadsafe", (delivery,));
        });
    }
}

impl Drop for LoopWaiter {
    fn drop(&mut self) {
        self.send(Box::new(|_| Err(interrupted())));
    }
}

/// Sets the result of the future on the thread of the event loop, after the events of the call.
#[pyclass(frozen, module = "verbatim_transcripts._native")]
struct ResultDelivery {
    future: Py<PyAny>,
    event_loop: Py<PyAny>,
    created_at: Instant,
    done: Mutex<Option<Finisher>>,
}

#[pymethods]
impl ResultDelivery {
    fn __call__(slf: &Bound<'_, Self>) -> PyResult<()> {
        let (py, this) = (slf.py(), slf.get());
        let future = this.future.bind(py);
        if future.call_method0("done")?.is_truthy()? {
            return Ok(());
        }
        let remaining = events::DELIVERY_WAIT_MAX.saturating_sub(this.created_at.elapsed());
        if !remaining.is_zero() && !events::is_flushed(py) {
            // The loop runs its other tasks. Growing pauses: many results may wait at the same time.
            let waited = events::DELIVERY_WAIT_MAX - remaining;
            let pause = (EVENT_PAUSE_MIN + waited / 4).min(remaining);
            if this.event_loop.bind(py).call_method1("call_later", (pause.as_secs_f64(), slf)).is_ok() {
                return Ok(());
            }
        }
        let Some(done) = this.done.lock().unwrap_or_else(PoisonError::into_inner).take() else {
            return Ok(());
        };
        match done(py) {
            Ok(value) => future.call_method1("set_result", (value,))?,
            Err(error) => future.call_method1("set_exception", (error,))?,
        };
        Ok(())
    }
}

/// Aborts the call when its future is cancelled.
#[pyclass(frozen, module = "verbatim_transcripts._native")]
struct CancelGuard {
    task: AbortHandle,
}

#[pymethods]
impl CancelGuard {
    fn __call__(&self, future: &Bound<'_, PyAny>) -> PyResult<()> {
        if future.call_method0("cancelled")?.is_truthy()? {
            self.task.abort();
        }
        Ok(())
    }
}
