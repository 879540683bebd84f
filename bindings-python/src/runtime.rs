//! The runtime that all work runs on: one for each process.
//!
//! A process that was forked has its parent's memory and none of its threads, so its parent's runtime would never do
//! anything again. It is left as it is, never closed, and a new one is made.
//!
//! Beside it is one with a single thread, for who asks while nobody else does ([`Runtimes::alone`]): threads that share work wake
//! each other to look for some, and for every timer, which for one caller is a fifth of what a transcript costs. A third
//! one has no threads: it is driven by whoever waits for its work ([`of_callers`]).

use std::{
    future::Future,
    sync::{Mutex, PoisonError},
};

use pyo3::{exceptions::PyRuntimeError, prelude::*};
use tokio::{
    runtime::{Builder, Handle, Runtime},
    task::AbortHandle,
};

use crate::ends::{self, UnderWay};

/// The most threads that drive the work: it is waiting for the network, mostly.
const THREADS_MAX: usize = 4;

/// What the process with this id has. The lock is only held by who holds the interpreter's too, so that no thread that
/// is gone can have left it locked in a child.
type Kept<T> = Mutex<Option<(u32, T)>>;

static RUNTIMES: Kept<Runtimes> = Mutex::new(None);
static OF_CALLERS: Kept<&'static Runtime> = Mutex::new(None);

/// The runtimes of a process that do their work by themselves.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Runtimes {
    /// For all work.
    pub(crate) shared: &'static Handle,
    /// For work that is asked for while no other is under way.
    pub(crate) alone: &'static Handle,
}

/// The runtimes of this process; the token says that the interpreter is held.
///
/// # Errors
/// `RuntimeError` when the system gives no threads.
pub(crate) fn runtimes(py: Python<'_>) -> PyResult<Runtimes> {
    kept(py, &RUNTIMES, || {
        let threads = std::thread::available_parallelism().map_or(2, std::num::NonZero::get);
        let threads = threads.clamp(2, THREADS_MAX);
        let build =
            |threads, name| built(Builder::new_multi_thread().worker_threads(threads).thread_name(name));
        let (shared, alone) = (build(threads, "verbatim")?, build(1, "verbatim-alone")?);
        // Once both are there: what is leaked is never given back.
        Ok(Runtimes { shared: leaked(shared).handle(), alone: leaked(alone).handle() })
    })
}

/// The runtime of this process for work that only goes on while somebody waits for it, who drives it: its connections
/// are read on the thread that wants the answer, and nobody is woken in between. Of several at the same time one
/// drives for all, and each does its own work.
///
/// # Errors
/// As [`runtimes`].
pub(crate) fn of_callers(py: Python<'_>) -> PyResult<&'static Runtime> {
    kept(py, &OF_CALLERS, || built(&mut Builder::new_current_thread()).map(leaked))
}

fn kept<T: Copy>(_: Python<'_>, kept: &Kept<T>, make: impl FnOnce() -> PyResult<T>) -> PyResult<T> {
    let pid = std::process::id();
    let mut kept = kept.lock().unwrap_or_else(PoisonError::into_inner);
    if let Some((of, value)) = *kept
        && of == pid
    {
        return Ok(value);
    }
    let value = make()?;
    *kept = Some((pid, value));
    Ok(value)
}

fn built(builder: &mut Builder) -> PyResult<Runtime> {
    let no_threads = |error| PyRuntimeError::new_err(format!("no threads for the work: {error}"));
    builder.enable_all().build().map_err(no_threads)
}

fn leaked(runtime: Runtime) -> &'static Runtime {
    Box::leak(Box::new(runtime))
}

/// Begins work on the runtime of this process; never while the process is being forked.
///
/// # Errors
/// As [`runtimes`].
pub(crate) fn begin(
    py: Python<'_>,
    work: impl Future<Output = ()> + Send + 'static,
) -> PyResult<AbortHandle> {
    ends::wait_for_forks(py);
    let under_way = UnderWay::new();
    let task = runtimes(py)?.shared.spawn(async move {
        let _under_way = under_way;
        work.await;
    });
    Ok(task.abort_handle())
}

/// What belongs to one process: in a child it is left as it is, never closed.
///
/// A child that closed its parent's connections or files would close them for the parent: SQLite's locks are the
/// process's, and so are the streams of a connection.
#[derive(Debug)]
pub(crate) struct OfProcess<T> {
    pid: u32,
    value: Option<T>,
}

impl<T> OfProcess<T> {
    pub(crate) fn new(value: T) -> Self {
        Self { pid: std::process::id(), value: Some(value) }
    }

    /// The value, in the process that it belongs to.
    pub(crate) fn get(&self) -> Option<&T> {
        self.value.as_ref().filter(|_| self.pid == std::process::id())
    }
}

impl<T> Drop for OfProcess<T> {
    fn drop(&mut self) {
        if self.pid != std::process::id() {
            std::mem::forget(self.value.take());
        }
    }
}
