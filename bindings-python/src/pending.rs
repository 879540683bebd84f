//! Work that was asked for, to be waited for or awaited.
//!
//! A call that may take time gives a [`Pending`]: nothing happens before it is waited for (`wait`) or awaited.
//! The package's functions do one or the other, so each call is written once for both.

use std::{
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
    ends::{self, UnderWay},
    fault::Fault,
    runtime::{self, Runtimes},
};

/// How often a thread that waits looks whether it was interrupted.
const LOOK_EVERY: Duration = Duration::from_millis(50);

/// What came of the work, still to be made a Python object or exception.
pub(crate) type Done = Box<dyn FnOnce(Python<'_>) -> PyResult<Py<PyAny>> + Send>;
/// The work itself.
pub(crate) type Work = Pin<Box<dyn Future<Output = Done> + Send>>;

/// What is waited for.
enum Awaited {
    Work(Work),
    /// It was there at once.
    There(Py<PyAny>),
}

/// Work that begins when it is waited for or awaited; once.
#[pyclass(frozen, module = "verbatim._native")]
pub(crate) struct Pending {
    awaited: Mutex<Option<Awaited>>,
}

impl Pending {
    /// Work, and how its result becomes a Python object.
    pub(crate) fn new<T: Send + 'static>(
        work: impl Future<Output = Result<T, Fault>> + Send + 'static,
        make: impl FnOnce(Python<'_>, T) -> PyResult<Py<PyAny>> + Send + 'static,
    ) -> Self {
        let work = async move {
            let result = work.await;
            Box::new(move |py: Python<'_>| match result {
                Ok(value) => make(py, value),
                Err(fault) => Err(fault.into_py_err(py)),
            }) as Done
        };
        Self { awaited: Mutex::new(Some(Awaited::Work(Box::pin(work)))) }
    }

    /// What needs no work.
    pub(crate) fn there(value: Py<PyAny>) -> Self {
        Self { awaited: Mutex::new(Some(Awaited::There(value))) }
    }

    /// Takes the work, which can be done once.
    pub(crate) fn take(&self) -> PyResult<Work> {
        Ok(match self.awaited()? {
            Awaited::Work(work) => work,
            Awaited::There(value) => {
                Box::pin(std::future::ready(Box::new(move |_: Python<'_>| Ok(value)) as Done))
            }
        })
    }

    fn awaited(&self) -> PyResult<Awaited> {
        let taken = self.awaited.lock().unwrap_or_else(PoisonError::into_inner).take();
        taken.ok_or_else(|| PyRuntimeError::new_err("this was waited for already"))
    }
}

/// Wakes the thread that waits.
struct Waiter {
    thread: Thread,
    is_woken: AtomicBool,
}

impl Wake for Waiter {
    fn wake(self: Arc<Self>) {
        self.wake_by_ref();
    }

    fn wake_by_ref(self: &Arc<Self>) {
        self.is_woken.store(true, Ordering::Release);
        self.thread.unpark();
    }
}

impl Waiter {
    /// Does what is to be done on this thread, until the work is done or it is time to look around.
    fn work<T>(
        self: &Arc<Self>,
        mut work: Pin<&mut (impl Future<Output = T> + ?Sized)>,
        runtime: &Handle,
    ) -> Poll<T> {
        // For timers and tasks of the work's own.
        let _inside = runtime.enter();
        let waker = Waker::from(Arc::clone(self));
        let mut end = None;
        loop {
            if let Poll::Ready(done) = work.as_mut().poll(&mut Context::from_waker(&waker)) {
                return Poll::Ready(done);
            }
            // Much is done by now, and needs no clock.
            let end = *end.get_or_insert_with(|| Instant::now() + LOOK_EVERY);
            while !self.is_woken.swap(false, Ordering::AcqRel) {
                let left = end.saturating_duration_since(Instant::now());
                if left.is_zero() {
                    return Poll::Pending;
                }
                thread::park_timeout(left);
            }
        }
    }
}

/// Waits for work that is done in turns of [`LOOK_EVERY`] at most, with other Python threads at work meanwhile; an
/// interrupt ends it.
fn until_done<T: Send>(py: Python<'_>, mut turn: impl FnMut() -> Poll<T> + Send) -> PyResult<T> {
    loop {
        let heard = py.detach(|| {
            let heard = catch_unwind(AssertUnwindSafe(&mut turn));
            ends::stay_away_at_exit();
            heard
        });
        match heard {
            Ok(Poll::Ready(done)) => return Ok(done),
            Ok(Poll::Pending) => py.check_signals()?,
            Err(_) => return Err(PyRuntimeError::new_err("the work broke down")),
        }
    }
}

/// Waits for work with other Python threads at work meanwhile; an interrupt ends it.
///
/// The work is done on this thread, as far as it is not another's: to hand it to one of the runtime's and to be told of
/// its end takes longer than much of what is asked for.
pub(crate) fn wait_for<T: Send>(
    py: Python<'_>,
    runtimes: Runtimes,
    mut work: Pin<&mut (impl Future<Output = T> + Send + ?Sized)>,
) -> PyResult<T> {
    ends::wait_for_forks(py);
    let under_way = UnderWay::new();
    let runtime = if under_way.is_alone { runtimes.alone } else { runtimes.shared };
    let waiter = Arc::new(Waiter { thread: thread::current(), is_woken: AtomicBool::new(false) });
    until_done(py, || waiter.work(work.as_mut(), runtime))
}

/// Waits for work on the runtime that is driven by who waits ([`runtime::of_callers`]), as [`Pending::wait`] does.
///
/// # Errors
/// What the work fails with; what a signal's handler raises.
pub(crate) fn drive<T: Send>(
    py: Python<'_>,
    work: impl Future<Output = Result<T, Fault>> + Send,
) -> PyResult<T> {
    ends::wait_for_forks(py);
    let _under_way = UnderWay::new();
    let runtime = runtime::of_callers(py)?;
    let mut work = std::pin::pin!(async {
        // Nobody has looked at the connections since the last call: one that was closed must be known to be. The
        // first time round the news are taken in, and the second time heeded.
        tokio::task::yield_now().await;
        tokio::task::yield_now().await;
        work.await
    });
    let turn = || match runtime.block_on(async { tokio::time::timeout(LOOK_EVERY, &mut work).await }) {
        Ok(done) => Poll::Ready(done),
        Err(_) => Poll::Pending,
    };
    until_done(py, turn)?.map_err(|fault| fault.into_py_err(py))
}

#[pymethods]
impl Pending {
    /// Waits for the work, as [`wait_for`] does.
    pub(crate) fn wait(&self, py: Python<'_>) -> PyResult<Py<PyAny>> {
        match self.awaited()? {
            Awaited::Work(mut work) => wait_for(py, runtime::runtimes(py)?, work.as_mut())?(py),
            Awaited::There(value) => Ok(value),
        }
    }

    /// Begins the work, and gives what the running event loop waits for. Cancelling that ends the work.
    fn __await__<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        let event_loop = py.import("asyncio")?.call_method0("get_running_loop")?;
        let awaited = self.awaited()?;
        let future = event_loop.call_method0("create_future")?;
        let work = match awaited {
            Awaited::Work(work) => work,
            Awaited::There(value) => {
                future.call_method1("set_result", (value,))?;
                return future.call_method0("__await__");
            }
        };
        let (to, wake) = (future.clone().unbind(), event_loop.clone().unbind());
        let waiting = Waiting { to: Some((to, wake)) };
        let task = runtime::begin(py, async move {
            let waiting = waiting;
            let done = work.await;
            waiting.deliver(done);
        })?;
        future.call_method1("add_done_callback", (Cancelling { task },))?;
        future.call_method0("__await__")
    }
}

/// Who waits in an event loop. Whatever becomes of the work, they are answered.
struct Waiting {
    to: Option<(Py<PyAny>, Py<PyAny>)>,
}

impl Waiting {
    fn deliver(mut self, done: Done) {
        self.send(done);
    }

    fn send(&mut self, done: Done) {
        let Some((future, event_loop)) = self.to.take() else { return };
        // An interpreter that is on its way out wants no more answers.
        let _gone = ends::attached(|py| {
            let delivery = Delivery { future, done: Mutex::new(Some(done)) };
            // A loop that was closed has nobody left who waits.
            let _closed = event_loop.call_method1(py, "call_soon_threadsafe", (delivery,));
        });
    }
}

impl Drop for Waiting {
    fn drop(&mut self) {
        self.send(Box::new(|_| Err(PyRuntimeError::new_err("the work broke down"))));
    }
}

/// Gives the result to who waits, on the thread of their event loop.
#[pyclass(frozen, module = "verbatim._native")]
struct Delivery {
    future: Py<PyAny>,
    done: Mutex<Option<Done>>,
}

#[pymethods]
impl Delivery {
    fn __call__(&self, py: Python<'_>) -> PyResult<()> {
        let Some(done) = self.done.lock().unwrap_or_else(PoisonError::into_inner).take() else {
            return Ok(());
        };
        let future = self.future.bind(py);
        if future.call_method0("done")?.is_truthy()? {
            return Ok(());
        }
        match done(py) {
            Ok(value) => future.call_method1("set_result", (value,))?,
            Err(error) => future.call_method1("set_exception", (error,))?,
        };
        Ok(())
    }
}

/// Ends the work when who awaited it was cancelled.
#[pyclass(frozen, module = "verbatim._native")]
struct Cancelling {
    task: AbortHandle,
}

#[pymethods]
impl Cancelling {
    fn __call__(&self, future: &Bound<'_, PyAny>) -> PyResult<()> {
        if future.call_method0("cancelled")?.is_truthy()? {
            self.task.abort();
        }
        Ok(())
    }
}
