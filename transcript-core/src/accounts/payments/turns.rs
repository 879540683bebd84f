//! Taking turns: the same event many times at once is worked on once or twice, not many times.
//!
//! Whoever comes while work on the same subject is under way waits for it to end, and then either works
//! themselves or finds that a run which began after they came has done it for them. It saves calls and
//! nothing else: what is done stays right when everybody works at once, as several servers do.

use std::{
    collections::HashMap,
    sync::{
        Arc, Mutex, MutexGuard, PoisonError,
        atomic::{AtomicU64, Ordering},
    },
};

use crate::error::Result;

/// The runs of one subject.
#[derive(Debug, Default)]
struct Turn {
    /// How many runs have begun.
    begun: AtomicU64,
    /// The last run that succeeded; held while one works.
    done: tokio::sync::Mutex<u64>,
}

/// The subjects that are worked on.
#[derive(Debug, Default)]
pub(super) struct Turns {
    turns: Mutex<HashMap<String, Arc<Turn>>>,
}

impl Turns {
    /// Does the work, or waits until a run that began later than this call has done it.
    pub(super) async fn take<F: Future<Output = Result<()>>>(
        &self,
        subject: &str,
        work: impl FnOnce() -> F,
    ) -> Result<()> {
        let guest = self.enter(subject);
        let came_after = guest.turn.begun.load(Ordering::SeqCst);
        let mut done = guest.turn.done.lock().await;
        if *done > came_after {
            return Ok(());
        }
        let run = guest.turn.begun.fetch_add(1, Ordering::SeqCst) + 1;
        work().await?;
        *done = run;
        Ok(())
    }

    /// Does the work while nobody else works on this subject in this process.
    pub(super) async fn alone<T, F: Future<Output = Result<T>>>(
        &self,
        subject: &str,
        work: impl FnOnce() -> F,
    ) -> Result<T> {
        let guest = self.enter(subject);
        let _done = guest.turn.done.lock().await;
        work().await
    }

    fn enter(&self, subject: &str) -> Guest<'_> {
        let turn = Arc::clone(self.lock().entry(subject.to_owned()).or_default());
        Guest { turns: self, subject: subject.to_owned(), turn }
    }

    fn lock(&self) -> MutexGuard<'_, HashMap<String, Arc<Turn>>> {
        // The map is whole at every moment.
        self.turns.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Somebody who works on a subject or waits for it; the last one to leave clears the table.
struct Guest<'a> {
    turns: &'a Turns,
    subject: String,
    turn: Arc<Turn>,
}

impl Drop for Guest<'_> {
    fn drop(&mut self) {
        let mut turns = self.turns.lock();
        // The table's own and this one: nobody else is left.
        if Arc::strong_count(&self.turn) <= 2 {
            turns.remove(&self.subject);
        }
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;
    use crate::error::Error;

    #[tokio::test(start_paused = true)]
    async fn many_at_once_are_worked_on_twice() {
        let (turns, runs) = (Arc::new(Turns::default()), Arc::new(AtomicU64::new(0)));
        let mut tasks = tokio::task::JoinSet::new();
        for _ in 0..50 {
            let (turns, runs) = (Arc::clone(&turns), Arc::clone(&runs));
            tasks.spawn(async move {
                let work = || async {
                    runs.fetch_add(1, Ordering::SeqCst);
                    tokio::time::sleep(Duration::from_secs(1)).await;
                    Ok(())
                };
                turns.take("cs_1", work).await.unwrap();
            });
        }
        while tasks.join_next().await.is_some() {}
        // All but the first came while the first was at work, before the second began.
        assert_eq!(runs.load(Ordering::SeqCst), 2);
        assert!(turns.lock().is_empty(), "nothing is left behind");
    }

    #[tokio::test(start_paused = true)]
    async fn a_failed_run_stands_for_nobody_else() {
        let (turns, runs) = (Turns::default(), AtomicU64::new(0));
        let take = |fails: bool| {
            let runs = &runs;
            turns.take("cs_1", move || async move {
                runs.fetch_add(1, Ordering::SeqCst);
                tokio::time::sleep(Duration::from_secs(1)).await;
                if fails { Err(Error::unavailable("away")) } else { Ok(()) }
            })
        };
        let (first, second, third) = tokio::join!(take(true), take(true), take(false));
        assert!(first.is_err() && second.is_err() && third.is_ok());
        assert_eq!(runs.load(Ordering::SeqCst), 3);
    }

    #[tokio::test(start_paused = true)]
    async fn subjects_do_not_wait_for_each_other_and_whoever_leaves_lets_the_next_one_in() {
        let turns = Turns::default();
        let slow = || async { std::future::pending().await };
        let leave = tokio::time::timeout(Duration::from_secs(1), turns.take("one", slow));
        let other = turns.take("other", || async { Ok(()) });
        let (left, other) = tokio::join!(leave, other);
        assert!(left.is_err() && other.is_ok());
        turns.take("one", || async { Ok(()) }).await.unwrap();
        assert!(turns.lock().is_empty(), "nothing is left behind");
    }
}
