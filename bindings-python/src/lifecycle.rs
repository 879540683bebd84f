//! Forks and the exit of the process.
//!
//! A fork copies memory and one thread. Locks that other threads hold at that time, SQLite's above all, are never
//! released in the child. Therefore no call starts during a fork, and the fork waits up to a second for running calls.
//!
//! At exit the interpreter ends every other thread that tries to attach. For a thread of native code that would abort
//! the process. Therefore no thread attaches once the exit has begun.

use std::{
    sync::{
        Mutex, PoisonError, Weak,
        atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering},
    },
    thread,
    time::{Duration, Instant},
};

use pyo3::prelude::*;
use tokio::sync::OnceCell;
use verbatim::Verbatim;

use crate::{events, lazy_open::OpenVerbatim, runtime};

/// Longest wait of a fork for running calls.
const FORK_WAIT_MAX: Duration = Duration::from_secs(1);
/// Longest wait of an exit for attached threads.
const EXIT_WAIT_MAX: Duration = Duration::from_secs(2);
/// Poll interval of waits.
const POLL_INTERVAL: Duration = Duration::from_micros(500);

static IS_FORKING: AtomicBool = AtomicBool::new(false);
static RUNNING_CALLS: AtomicUsize = AtomicUsize::new(0);
static IS_EXITING: AtomicBool = AtomicBool::new(false);
/// Number of the thread that runs the exit.
static EXITING_THREAD: AtomicU64 = AtomicU64::new(0);
static ATTACHED: AtomicUsize = AtomicUsize::new(0);
/// Open facades, which may still write after their calls have returned.
static OPEN_FACADES: Mutex<Vec<Weak<OnceCell<OpenVerbatim>>>> = Mutex::new(Vec::new());

thread_local! {
    /// A number unique to the thread within the process.
    static THREAD: u64 = {
        static NEXT: AtomicU64 = AtomicU64::new(1);
        NEXT.fetch_add(1, Ordering::Relaxed)
    };
}

/// Counts a running call until dropped.
pub(crate) struct WorkGuard {
    /// Whether no other call was running at its start.
    pub(crate) is_alone: bool,
}

impl WorkGuard {
    pub(crate) fn new() -> Self {
        Self { is_alone: RUNNING_CALLS.fetch_add(1, Ordering::AcqRel) == 0 }
    }
}

impl Drop for WorkGuard {
    fn drop(&mut self) {
        RUNNING_CALLS.fetch_sub(1, Ordering::AcqRel);
    }
}

/// Registers a facade, so that a fork waits for its writes.
pub(crate) fn register_open(_: Python<'_>, cell: Weak<OnceCell<OpenVerbatim>>) {
    let mut opened = OPEN_FACADES.lock().unwrap_or_else(PoisonError::into_inner);
    opened.retain(|facade| facade.strong_count() > 0);
    opened.push(cell);
}

/// Blocks while another thread forks the process.
pub(crate) fn wait_for_forks(py: Python<'_>) {
    while IS_FORKING.load(Ordering::Acquire) {
        py.detach(|| thread::sleep(POLL_INTERVAL));
    }
}

fn open_facades() -> Vec<Verbatim> {
    let opened = OPEN_FACADES.lock().unwrap_or_else(PoisonError::into_inner);
    let cells = opened.iter().filter_map(Weak::upgrade);
    cells.filter_map(|cell| cell.get().map(|opened| opened.verbatim.clone())).collect()
}

/// Runs before a fork: blocks new calls, and waits up to a second for running ones.
#[pyfunction]
pub(crate) fn _before_fork(py: Python<'_>) {
    IS_FORKING.store(true, Ordering::Release);
    // Without runtimes this process has no open facade, and creating them would start threads before the fork.
    let opened = runtime::existing_runtimes(py).map(|runtimes| (runtimes, open_facades()));
    let deadline = Instant::now() + FORK_WAIT_MAX;
    py.detach(|| {
        while RUNNING_CALLS.load(Ordering::Acquire) > 0 && Instant::now() < deadline {
            thread::sleep(POLL_INTERVAL);
        }
        let Some((runtimes, opened)) = opened else { return };
        for verbatim in opened {
            let remaining = deadline.saturating_duration_since(Instant::now());
            let (sender, receiver) = std::sync::mpsc::channel();
            runtimes.shared.spawn(async move {
                verbatim.transcripts().close().await;
                // The receiver is gone if the wait has timed out.
                let _ = sender.send(());
            });
            let _timed_out = receiver.recv_timeout(remaining);
        }
    });
}

/// Runs after a fork in the parent.
#[pyfunction]
pub(crate) fn _after_fork() {
    IS_FORKING.store(false, Ordering::Release);
}

/// Runs after a fork in the child: the calls of the parent do not continue here.
#[pyfunction]
pub(crate) fn _after_fork_in_child() {
    RUNNING_CALLS.store(0, Ordering::Release);
    ATTACHED.store(0, Ordering::Release);
    events::clear_after_fork();
    IS_FORKING.store(false, Ordering::Release);
}

/// Runs before the interpreter exits: only threads that are attached already stay attached.
#[pyfunction]
pub(crate) fn _at_exit(py: Python<'_>) {
    // The threads that run hooks end with the interpreter.
    events::flush(py);
    EXITING_THREAD.store(THREAD.with(|thread| *thread), Ordering::Release);
    IS_EXITING.store(true, Ordering::Release);
    py.detach(|| {
        let deadline = Instant::now() + EXIT_WAIT_MAX;
        while ATTACHED.load(Ordering::Acquire) > 0 && Instant::now() < deadline {
            thread::sleep(POLL_INTERVAL);
        }
    });
}

/// Attaches a native thread to the interpreter; `None` once the interpreter exits.
pub(crate) fn attached<R>(call: impl FnOnce(Python<'_>) -> R) -> Option<R> {
    struct LeaveGuard;
    impl Drop for LeaveGuard {
        fn drop(&mut self) {
            ATTACHED.fetch_sub(1, Ordering::AcqRel);
        }
    }
    ATTACHED.fetch_add(1, Ordering::AcqRel);
    let _leave_guard = LeaveGuard;
    if IS_EXITING.load(Ordering::Acquire) { None } else { Python::try_attach(call) }
}

/// Parks a detached Python thread once the interpreter exits, so that it does not attach again.
pub(crate) fn park_at_exit() {
    let is_other = || EXITING_THREAD.load(Ordering::Acquire) != THREAD.with(|thread| *thread);
    while IS_EXITING.load(Ordering::Acquire) && is_other() {
        thread::park();
    }
}
