//! The ends of a process: it is forked, or it exits.
//!
//! A fork copies memory and one thread. Locks that other threads hold at that moment, those of SQLite above all, are
//! held for ever in the child. So nothing begins while a process is being forked, and what is under way gets a moment
//! to end.
//!
//! At its exit the interpreter ends every other thread that wants to hold it, wherever that thread is; one that comes
//! from native code would take the process down with it. So from then on nobody attaches any more.

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

use crate::{opener::Opened, runtime};

/// How long a fork waits for what is under way.
const FORK_MAX: Duration = Duration::from_secs(1);
/// How long an exit waits for those who are attached.
const EXIT_MAX: Duration = Duration::from_secs(2);
/// How often who waits looks again.
const LOOK: Duration = Duration::from_micros(500);

static IS_FORKING: AtomicBool = AtomicBool::new(false);
static UNDER_WAY: AtomicUsize = AtomicUsize::new(0);
static IS_EXITING: AtomicBool = AtomicBool::new(false);
/// The thread that exits, as a number of ours.
static EXITING_THREAD: AtomicU64 = AtomicU64::new(0);
static ATTACHED: AtomicUsize = AtomicUsize::new(0);
/// What is open, and may still write after it has answered.
static OPENED: Mutex<Vec<Weak<OnceCell<Opened>>>> = Mutex::new(Vec::new());

thread_local! {
    /// A number that no other thread of the process has.
    static THREAD: u64 = {
        static NEXT: AtomicU64 = AtomicU64::new(1);
        NEXT.fetch_add(1, Ordering::Relaxed)
    };
}

/// Work that is under way, for as long as it lives.
pub(crate) struct UnderWay {
    /// Whether it was the only work when it began.
    pub(crate) is_alone: bool,
}

impl UnderWay {
    pub(crate) fn new() -> Self {
        Self { is_alone: UNDER_WAY.fetch_add(1, Ordering::AcqRel) == 0 }
    }
}

impl Drop for UnderWay {
    fn drop(&mut self) {
        UNDER_WAY.fetch_sub(1, Ordering::AcqRel);
    }
}

/// Notes what was opened, so that a fork waits for what it writes.
pub(crate) fn note_opened(_: Python<'_>, cell: Weak<OnceCell<Opened>>) {
    let mut opened = OPENED.lock().unwrap_or_else(PoisonError::into_inner);
    opened.retain(|known| known.strong_count() > 0);
    opened.push(cell);
}

/// Waits while another thread forks the process.
pub(crate) fn wait_for_forks(py: Python<'_>) {
    while IS_FORKING.load(Ordering::Acquire) {
        py.detach(|| thread::sleep(LOOK));
    }
}

/// Called before a fork: nothing begins any more, and what is under way ends, or a second is over.
#[pyfunction]
pub(crate) fn _before_fork(py: Python<'_>) {
    IS_FORKING.store(true, Ordering::Release);
    let opened: Vec<_> = {
        let opened = OPENED.lock().unwrap_or_else(PoisonError::into_inner);
        opened
            .iter()
            .filter_map(Weak::upgrade)
            .filter_map(|cell| cell.get().map(|opened| opened.parts.clone()))
            .collect()
    };
    let end = Instant::now() + FORK_MAX;
    let Ok(runtimes) = runtime::runtimes(py) else { return };
    py.detach(|| {
        while UNDER_WAY.load(Ordering::Acquire) > 0 && Instant::now() < end {
            thread::sleep(LOOK);
        }
        for parts in opened {
            let left = end.saturating_duration_since(Instant::now());
            let (tell, told) = std::sync::mpsc::channel();
            runtimes.shared.spawn(async move {
                parts.transcripts().close().await;
                // A fork that waited long enough hears of it no more.
                let _ = tell.send(());
            });
            let _late = told.recv_timeout(left);
        }
    });
}

/// Called after a fork, in the parent.
#[pyfunction]
pub(crate) fn _after_fork() {
    IS_FORKING.store(false, Ordering::Release);
}

/// Called after a fork, in the child: nothing of the parent's goes on here.
#[pyfunction]
pub(crate) fn _after_fork_in_child() {
    UNDER_WAY.store(0, Ordering::Release);
    ATTACHED.store(0, Ordering::Release);
    IS_FORKING.store(false, Ordering::Release);
}

/// Called before the interpreter goes: from now on nobody attaches but who is there already.
#[pyfunction]
pub(crate) fn _at_exit(py: Python<'_>) {
    EXITING_THREAD.store(THREAD.with(|thread| *thread), Ordering::Release);
    IS_EXITING.store(true, Ordering::Release);
    py.detach(|| {
        let end = Instant::now() + EXIT_MAX;
        while ATTACHED.load(Ordering::Acquire) > 0 && Instant::now() < end {
            thread::sleep(LOOK);
        }
    });
}

/// Attaches a thread of ours to the interpreter; none when that is on its way out.
pub(crate) fn attached<R>(work: impl FnOnce(Python<'_>) -> R) -> Option<R> {
    struct Leaving;
    impl Drop for Leaving {
        fn drop(&mut self) {
            ATTACHED.fetch_sub(1, Ordering::AcqRel);
        }
    }
    ATTACHED.fetch_add(1, Ordering::AcqRel);
    let _leaving = Leaving;
    if IS_EXITING.load(Ordering::Acquire) { None } else { Python::try_attach(work) }
}

/// A thread of Python's that waits without the interpreter stays away from it once that is on its way out.
pub(crate) fn stay_away_at_exit() {
    let is_other = || EXITING_THREAD.load(Ordering::Acquire) != THREAD.with(|thread| *thread);
    while IS_EXITING.load(Ordering::Acquire) && is_other() {
        thread::park();
    }
}
