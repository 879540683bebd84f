//! Work of a question in a task of a runtime: a panic is an error, and ends nothing else.

use tokio::{
    runtime::Handle,
    task::{JoinError, JoinSet},
};
use tracing::Instrument as _;

use crate::error::{Error, Result};

/// Runs work in a task. `panicked` is the message if it panics.
///
/// # Cancellation
/// Dropping the future ends the work at its next await.
pub(super) async fn run_in_task<T: Send + 'static>(
    runtime: &Handle,
    work: impl Future<Output = Result<T>> + Send + 'static,
    panicked: &'static str,
) -> Result<T> {
    // A `JoinSet` aborts its task when it is dropped.
    let mut tasks = JoinSet::new();
    tasks.spawn_on(work.in_current_span(), runtime);
    match tasks.join_next().await {
        Some(ended) => ended.map_err(|ended| task_error(&ended, panicked))?,
        None => Err(stopping()),
    }
}

/// The error of a task that ended without a result.
pub(super) fn task_error(ended: &JoinError, panicked: &'static str) -> Error {
    if ended.is_panic() { Error::unexpected(panicked) } else { stopping() }
}

/// The error of work whose runtime ends.
pub(super) fn stopping() -> Error {
    Error::unavailable("the service is stopping")
}
