//! The runtimes of a process.
//!
//! A forked child has its parent's memory and none of its threads, so the parent's runtime never runs again there. It
//! is never closed; the child creates its own.
//!
//! A second runtime has a single thread, for a call that starts while no other runs ([`Runtimes::alone`]): threads that
//! share work wake each other to steal tasks and for every timer, a fifth of the cost of a transcript for a single
//! caller. A third one has no threads: the waiting caller drives it ([`caller_runtime`]). See decision 0036.

use std::{
    future::Future,
    sync::{Mutex, PoisonError},
};

use pyo3::{exceptions::PyRuntimeError, prelude::*};
use tokio::{
    runtime::{Builder, Handle, Runtime},
    task::AbortHandle,
};

use crate::lifecycle::{self, WorkGuard};

/// Maximum number of worker threads; they mostly wait for the network.
const THREADS_MAX: usize = 4;

/// A value of the process with this id. The lock is held only while attached, so a fork never copies it locked.
type ProcessRuntimes<T> = Mutex<Option<(u32, T)>>;

static RUNTIMES: ProcessRuntimes<Runtimes> = Mutex::new(None);
static CALLER_RUNTIME: ProcessRuntimes<&'static Runtime> = Mutex::new(None);

/// The runtimes of a process that have their own threads.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Runtimes {
    /// For all calls.
    pub(crate) shared: &'static Handle,
    /// For a call that starts while no other runs.
    pub(crate) alone: &'static Handle,
}

/// The runtimes of this process; the token proves that the thread is attached.
///
/// # Errors
/// `RuntimeError` if the system cannot create threads.
pub(crate) fn runtimes(py: Python<'_>) -> PyResult<Runtimes> {
    get_or_create(py, &RUNTIMES, || {
        let threads = std::thread::available_parallelism().map_or(2, std::num::NonZero::get);
        let threads = threads.clamp(2, THREADS_MAX);
        let create =
            |threads, name| build(Builder::new_multi_thread().worker_threads(threads).thread_name(name));
        let (shared, alone) = (create(threads, "verbatim")?, create(1, "verbatim-alone")?);
        // Leaked only once both exist: a leaked runtime is never dropped.
        Ok(Runtimes { shared: leak(shared).handle(), alone: leak(alone).handle() })
    })
}

/// The runtimes of this process, if a call has created them.
pub(crate) fn existing_runtimes(_: Python<'_>) -> Option<Runtimes> {
    let slot = RUNTIMES.lock().unwrap_or_else(PoisonError::into_inner);
    slot.filter(|(owner, _)| *owner == std::process::id()).map(|(_, runtimes)| runtimes)
}

/// The runtime of this process that waiting callers drive.
///
/// Its connections are read on the thread that waits, without wakeups. Of several concurrent callers one drives the
/// connections of all, and each polls its own future.
///
/// # Errors
/// As [`runtimes`].
pub(crate) fn caller_runtime(py: Python<'_>) -> PyResult<&'static Runtime> {
    get_or_create(py, &CALLER_RUNTIME, || build(&mut Builder::new_current_thread()).map(leak))
}

fn get_or_create<T: Copy>(
    _: Python<'_>,
    slot: &ProcessRuntimes<T>,
    make: impl FnOnce() -> PyResult<T>,
) -> PyResult<T> {
    let pid = std::process::id();
    let mut slot = slot.lock().unwrap_or_else(PoisonError::into_inner);
    if let Some((owner, value)) = *slot
        && owner == pid
    {
        return Ok(value);
    }
    let value = make()?;
    *slot = Some((pid, value));
    Ok(value)
}

fn build(builder: &mut Builder) -> PyResult<Runtime> {
    let thread_error = |error| PyRuntimeError::new_err(format!("cannot create threads: {error}"));
    builder.enable_all().build().map_err(thread_error)
}

fn leak(runtime: Runtime) -> &'static Runtime {
    Box::leak(Box::new(runtime))
}

/// Starts a future on the shared runtime of this process, never during a fork.
///
/// # Errors
/// As [`runtimes`].
pub(crate) fn spawn(
    py: Python<'_>,
    work: impl Future<Output = ()> + Send + 'static,
) -> PyResult<AbortHandle> {
    lifecycle::wait_for_forks(py);
    let guard = WorkGuard::new();
    let task = runtimes(py)?.shared.spawn(async move {
        let _guard = guard;
        work.await;
    });
    Ok(task.abort_handle())
}

/// A value that belongs to one process; a forked child neither uses nor drops it.
///
/// A child that closed its parent's connections or files would close them for the parent: SQLite's locks belong to the
/// process, and so do the streams of a connection.
#[derive(Debug)]
pub(crate) struct PerProcess<T> {
    pid: u32,
    value: Option<T>,
}

impl<T> PerProcess<T> {
    pub(crate) fn new(value: T) -> Self {
        Self { pid: std::process::id(), value: Some(value) }
    }

    /// The value, in the process that it belongs to.
    pub(crate) fn get(&self) -> Option<&T> {
        self.value.as_ref().filter(|_| self.pid == std::process::id())
    }
}

impl<T> Drop for PerProcess<T> {
    fn drop(&mut self) {
        if self.pid != std::process::id() {
            std::mem::forget(self.value.take());
        }
    }
}
