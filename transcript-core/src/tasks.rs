//! Tasks that outlive the call that started them.

use std::{pin::Pin, sync::Arc};

use tokio::{runtime::Handle, sync::watch};
use tracing::Instrument as _;

/// Starts background tasks on a runtime and counts the running ones. A clone counts with the original.
#[derive(Clone, Debug)]
pub(crate) struct BackgroundTasks {
    runtime: Handle,
    active: Arc<watch::Sender<usize>>,
}

/// Work of one type for every task. The runtime's code for a task is compiled for each type of work.
pub(crate) fn boxed<T>(
    work: impl Future<Output = T> + Send + 'static,
) -> Pin<Box<dyn Future<Output = T> + Send>> {
    Box::pin(work)
}

/// Work that [`BackgroundTasks::wait_until_idle`] waits for; drop ends it.
#[derive(Debug)]
pub(crate) struct ActivityGuard(Arc<watch::Sender<usize>>);

impl Drop for ActivityGuard {
    fn drop(&mut self) {
        self.0.send_modify(|count| *count -= 1);
    }
}

impl BackgroundTasks {
    pub(crate) fn new(runtime: Handle) -> Self {
        Self { runtime, active: Arc::new(watch::Sender::new(0)) }
    }

    /// The runtime of the tasks.
    pub(crate) fn runtime(&self) -> &Handle {
        &self.runtime
    }

    /// Counts work that runs elsewhere.
    pub(crate) fn begin(&self) -> ActivityGuard {
        self.active.send_modify(|count| *count += 1);
        ActivityGuard(Arc::clone(&self.active))
    }

    /// Runs work to its end.
    pub(crate) fn detach(&self, work: impl Future<Output = ()> + Send + 'static) {
        let running = self.begin();
        let work = async move {
            work.await;
            drop(running);
        };
        // Log lines of the work carry the span of the request that started it.
        self.runtime.spawn(boxed(work.in_current_span()));
    }

    /// Waits until nothing runs.
    pub(crate) async fn wait_until_idle(&self) {
        // The sender is in `self`, so this cannot fail here.
        let _ = self.active.subscribe().wait_for(|count| *count == 0).await;
    }
}
