//! Where long texts are worked on: beside the runtime's own threads, so that nobody waits behind them.

use std::sync::Arc;

use tokio::{runtime::Handle, sync::Semaphore};

use crate::error::{Error, Result};

/// Texts of fewer bytes are worked on at once: that takes less time than handing them over.
const SMALL: usize = 32 * 1024;
/// How many long texts are worked on at the same time. More would only take the processors from everything else.
const AT_ONCE: usize = 4;

/// The place for heavy work. A clone is the same place.
#[derive(Clone, Debug)]
pub(super) struct Desk {
    runtime: Handle,
    places: Arc<Semaphore>,
}

impl Desk {
    pub(super) fn new(runtime: Handle) -> Self {
        Self { runtime, places: Arc::new(Semaphore::new(AT_ONCE)) }
    }

    /// Does work that grows with a text of so many bytes.
    ///
    /// # Cancellation
    /// Dropping the future ends the waiting. What has begun goes to its end, and keeps its place until then.
    pub(super) async fn work<T: Send + 'static>(
        &self,
        bytes: usize,
        work: impl FnOnce() -> T + Send + 'static,
    ) -> Result<T> {
        if bytes < SMALL {
            return Ok(work());
        }
        let stopped = || Error::unavailable("the service is stopping");
        let place = Arc::clone(&self.places).acquire_owned().await.map_err(|_| stopped())?;
        let working = self.runtime.spawn_blocking(move || {
            let done = work();
            drop(place);
            done
        });
        working.await.map_err(|error| {
            if error.is_panic() { Error::unexpected("looking at a transcript failed") } else { stopped() }
        })
    }
}

#[cfg(test)]
mod tests {
    use std::{
        sync::atomic::{AtomicUsize, Ordering},
        thread,
    };

    use tokio::task::JoinSet;

    use super::*;

    #[tokio::test]
    async fn what_is_long_is_done_elsewhere_and_by_few() {
        let desk = Desk::new(Handle::current());
        let here = thread::current().id();
        assert_eq!(desk.work(SMALL - 1, || thread::current().id()).await.unwrap(), here);
        assert_ne!(desk.work(SMALL, || thread::current().id()).await.unwrap(), here);
        let (running, most) = (Arc::new(AtomicUsize::new(0)), Arc::new(AtomicUsize::new(0)));
        let mut all = JoinSet::new();
        for _ in 0..40 {
            let (desk, running, most) = (desk.clone(), Arc::clone(&running), Arc::clone(&most));
            let work = move || {
                most.fetch_max(running.fetch_add(1, Ordering::SeqCst) + 1, Ordering::SeqCst);
                thread::yield_now();
                running.fetch_sub(1, Ordering::SeqCst);
            };
            all.spawn(async move { desk.work(SMALL, work).await });
        }
        while let Some(done) = all.join_next().await {
            done.unwrap().unwrap();
        }
        assert!(most.load(Ordering::SeqCst) <= AT_ONCE);
        assert!(desk.work::<()>(SMALL, || panic!("a defect")).await.is_err());
        assert_eq!(desk.places.available_permits(), AT_ONCE);
    }
}
