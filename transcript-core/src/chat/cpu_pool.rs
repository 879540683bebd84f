//! Runs work on long texts on the blocking pool, so that the runtime's worker threads stay free.

use std::sync::Arc;

use tokio::{runtime::Handle, sync::Semaphore};

use super::task::{stopping, task_error};
use crate::error::Result;

/// Texts of fewer bytes are processed inline: that takes less time than a thread switch.
pub(super) const INLINE_BYTES: usize = 32 * 1024;
/// Maximum of long texts that answers process at the same time. More would only take CPU time from other work.
pub(crate) const ANSWERS_MAX: usize = 4;
/// Maximum of long texts that free searches process at the same time.
pub(crate) const SEARCHES_MAX: usize = 1;

/// Bounded pool for CPU-bound work. Clones share the bound.
#[derive(Clone, Debug)]
pub(crate) struct CpuPool {
    runtime: Handle,
    permits: Arc<Semaphore>,
}

impl CpuPool {
    /// Creates a pool that processes at most `concurrency_max` long texts at the same time.
    pub(crate) fn new(runtime: Handle, concurrency_max: usize) -> Self {
        Self { runtime, permits: Arc::new(Semaphore::new(concurrency_max)) }
    }

    /// Runs work whose cost grows with a text of `bytes` bytes.
    ///
    /// # Cancellation
    /// Dropping the future stops the wait. Work that has started runs to its end and holds its permit until then.
    pub(crate) async fn work<T: Send + 'static>(
        &self,
        bytes: usize,
        work: impl FnOnce() -> T + Send + 'static,
    ) -> Result<T> {
        if bytes < INLINE_BYTES {
            return Ok(work());
        }
        let permit = Arc::clone(&self.permits).acquire_owned().await.map_err(|_| stopping())?;
        let working = self.runtime.spawn_blocking(move || {
            let done = work();
            drop(permit);
            done
        });
        let panicked = "the task that processes a transcript panicked";
        working.await.map_err(|ended| task_error(&ended, panicked))
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
    async fn cpu_pool_long_work_runs_on_few_other_threads() {
        let pool = CpuPool::new(Handle::current(), ANSWERS_MAX);
        let here = thread::current().id();
        assert_eq!(pool.work(INLINE_BYTES - 1, || thread::current().id()).await.unwrap(), here);
        assert_ne!(pool.work(INLINE_BYTES, || thread::current().id()).await.unwrap(), here);
        let (running, most) = (Arc::new(AtomicUsize::new(0)), Arc::new(AtomicUsize::new(0)));
        let mut all = JoinSet::new();
        for _ in 0..40 {
            let (pool, running, most) = (pool.clone(), Arc::clone(&running), Arc::clone(&most));
            let work = move || {
                most.fetch_max(running.fetch_add(1, Ordering::SeqCst) + 1, Ordering::SeqCst);
                thread::yield_now();
                running.fetch_sub(1, Ordering::SeqCst);
            };
            all.spawn(async move { pool.work(INLINE_BYTES, work).await });
        }
        while let Some(done) = all.join_next().await {
            done.unwrap().unwrap();
        }
        assert!(most.load(Ordering::SeqCst) <= ANSWERS_MAX);
        assert!(pool.work::<()>(INLINE_BYTES, || panic!("a defect")).await.is_err());
        assert_eq!(pool.permits.available_permits(), ANSWERS_MAX);
    }
}
