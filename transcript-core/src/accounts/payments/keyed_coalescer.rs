//! Coalesces concurrent runs per key: many simultaneous events of one object cause one or two runs.
//!
//! A caller that arrives during a run of the same key waits for its end. It then starts a run, unless a run that
//! began after its arrival has succeeded. This only saves calls: concurrent runs, as on several servers, are
//! also correct.

use std::{
    collections::HashMap,
    sync::{
        Arc, Mutex, MutexGuard, PoisonError,
        atomic::{AtomicU64, Ordering},
    },
};

use crate::error::Result;

#[derive(Debug, Default)]
struct KeyedRun {
    /// The number of runs that have begun.
    started: AtomicU64,
    /// The last run that succeeded; locked during a run.
    last_success: tokio::sync::Mutex<u64>,
}

/// The keys with runs or waiters.
#[derive(Debug, Default)]
pub(super) struct KeyedCoalescer {
    runs: Mutex<HashMap<String, Arc<KeyedRun>>>,
}

impl KeyedCoalescer {
    /// Runs the work, or waits until a run that began after this call has succeeded.
    pub(super) async fn run<F: Future<Output = Result<()>>>(
        &self,
        key: &str,
        work: impl FnOnce() -> F,
    ) -> Result<()> {
        let guard = self.enter(key);
        let started_before = guard.run.started.load(Ordering::SeqCst);
        let mut last_success = guard.run.last_success.lock().await;
        if *last_success > started_before {
            return Ok(());
        }
        let run_number = guard.run.started.fetch_add(1, Ordering::SeqCst) + 1;
        work().await?;
        *last_success = run_number;
        Ok(())
    }

    /// Runs the work while no other work of this key runs in this process.
    pub(super) async fn run_exclusive<T, F: Future<Output = Result<T>>>(
        &self,
        key: &str,
        work: impl FnOnce() -> F,
    ) -> Result<T> {
        let guard = self.enter(key);
        let _done = guard.run.last_success.lock().await;
        work().await
    }

    fn enter(&self, key: &str) -> KeyedGuard<'_> {
        let run = Arc::clone(self.lock().entry(key.to_owned()).or_default());
        KeyedGuard { coalescer: self, key: key.to_owned(), run }
    }

    fn lock(&self) -> MutexGuard<'_, HashMap<String, Arc<KeyedRun>>> {
        // The map is consistent after a panic, too.
        self.runs.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// A runner or waiter of a key; the last guard removes the key from the table.
struct KeyedGuard<'a> {
    coalescer: &'a KeyedCoalescer,
    key: String,
    run: Arc<KeyedRun>,
}

impl Drop for KeyedGuard<'_> {
    fn drop(&mut self) {
        let mut runs = self.coalescer.lock();
        // The references of the table and of this guard: there is no other guard.
        if Arc::strong_count(&self.run) <= 2 {
            runs.remove(&self.key);
        }
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;
    use crate::error::Error;

    #[tokio::test(start_paused = true)]
    async fn coalescer_concurrent_calls_run_twice() {
        let (coalescer, runs) = (Arc::new(KeyedCoalescer::default()), Arc::new(AtomicU64::new(0)));
        let mut tasks = tokio::task::JoinSet::new();
        for _ in 0..50 {
            let (coalescer, runs) = (Arc::clone(&coalescer), Arc::clone(&runs));
            tasks.spawn(async move {
                let work = || async {
                    runs.fetch_add(1, Ordering::SeqCst);
                    tokio::time::sleep(Duration::from_secs(1)).await;
                    Ok(())
                };
                coalescer.run("cs_1", work).await.unwrap();
            });
        }
        while tasks.join_next().await.is_some() {}
        // All but the first arrived during the first run, before the second one began.
        assert_eq!(runs.load(Ordering::SeqCst), 2);
        assert!(coalescer.lock().is_empty(), "no key remains");
    }

    #[tokio::test(start_paused = true)]
    async fn coalescer_failed_run_is_not_shared() {
        let (coalescer, runs) = (KeyedCoalescer::default(), AtomicU64::new(0));
        let call = |fails: bool| {
            let runs = &runs;
            coalescer.run("cs_1", move || async move {
                runs.fetch_add(1, Ordering::SeqCst);
                tokio::time::sleep(Duration::from_secs(1)).await;
                if fails { Err(Error::unavailable("unreachable")) } else { Ok(()) }
            })
        };
        let (first, second, third) = tokio::join!(call(true), call(true), call(false));
        assert!(first.is_err() && second.is_err() && third.is_ok());
        assert_eq!(runs.load(Ordering::SeqCst), 3);
    }

    #[tokio::test(start_paused = true)]
    async fn coalescer_keys_are_independent_and_cancelled_run_unlocks() {
        let coalescer = KeyedCoalescer::default();
        let slow = || async { std::future::pending().await };
        let leave = tokio::time::timeout(Duration::from_secs(1), coalescer.run("one", slow));
        let other = coalescer.run("other", || async { Ok(()) });
        let (left, other) = tokio::join!(leave, other);
        assert!(left.is_err() && other.is_ok());
        coalescer.run("one", || async { Ok(()) }).await.unwrap();
        assert!(coalescer.lock().is_empty(), "no key remains");
    }
}
