//! The runtime that all work runs on: one for the process, made when it is first needed.
//!
//! Futures of the exported calls only wait for tasks on it, so that any dispatcher of Kotlin or Swift may poll them.

use std::sync::{Mutex, PoisonError};

use tokio::runtime::{Builder, Handle, Runtime};

use crate::error::{Failure, FailureKind, VerbatimError};

/// The most threads that drive the work: it waits for the network and the disk, mostly.
const THREADS_MAX: usize = 4;

/// Never ended: an app ends with its process.
static RUNTIME: Mutex<Option<Runtime>> = Mutex::new(None);

/// The runtime.
///
/// # Errors
/// [`FailureKind::Unavailable`] when the system gives no threads.
pub(crate) fn handle() -> Result<Handle, VerbatimError> {
    let mut kept = RUNTIME.lock().unwrap_or_else(PoisonError::into_inner);
    if let Some(runtime) = kept.as_ref() {
        return Ok(runtime.handle().clone());
    }
    let threads = std::thread::available_parallelism().map_or(2, std::num::NonZero::get);
    let runtime = Builder::new_multi_thread()
        .worker_threads(threads.clamp(2, THREADS_MAX))
        .thread_name("verbatim")
        .enable_all()
        .build()
        .map_err(|error| {
            Failure::of(FailureKind::Unavailable, format!("no threads for the work: {error}"))
        })?;
    let handle = runtime.handle().clone();
    *kept = Some(runtime);
    Ok(handle)
}
