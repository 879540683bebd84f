//! The runtime of all work: one for the process, started on first use.
//!
//! Futures of the exported calls only wait for tasks on it, so any dispatcher of Kotlin or Swift can poll them.

use std::sync::{Mutex, PoisonError};

use tokio::runtime::{Builder, Handle, Runtime};

use crate::error::{Failure, FailureKind, VerbatimError};

/// Maximum of worker threads: the work mostly waits for the network and the disk.
const THREADS_MAX: usize = 4;

/// Never shut down: it ends with the process.
static RUNTIME: Mutex<Option<Runtime>> = Mutex::new(None);

/// Handle of the runtime.
///
/// # Errors
/// [`FailureKind::Unavailable`] if the system cannot start threads.
pub(crate) fn handle() -> Result<Handle, VerbatimError> {
    let mut slot = RUNTIME.lock().unwrap_or_else(PoisonError::into_inner);
    if let Some(runtime) = slot.as_ref() {
        return Ok(runtime.handle().clone());
    }
    let threads = std::thread::available_parallelism().map_or(2, std::num::NonZero::get);
    let runtime = Builder::new_multi_thread()
        .worker_threads(threads.clamp(2, THREADS_MAX))
        .thread_name("verbatim")
        .enable_all()
        .build()
        .map_err(|error| {
            Failure::error(FailureKind::Unavailable, format!("cannot start threads: {error}"))
        })?;
    let handle = runtime.handle().clone();
    *slot = Some(runtime);
    Ok(handle)
}
