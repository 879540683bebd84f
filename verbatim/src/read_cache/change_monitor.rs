//! Change monitor: reads the archive's change counter periodically for all requests.
//!
//! One statement per request would cost more than the remaining work of a response. Under traffic a server reads the
//! counter every 20 ms in the background; in a program the request that needs it does. A value is valid only if the
//! counter was read after the request arrived, or within the last 50 ms. Within that time every change reaches every
//! process. Without requests nothing is read.
//!
//! The counter of a database that lost commits, such as at a failover, goes back. The monitor adds an offset to the
//! archive's counter, so that its own numbers only grow and no selection of before the step becomes valid again.
//!
//! While the archive cannot be read, the last value is used for a bounded time ([`ChangeMonitor::last_known`]): what it
//! selected is better than no answer ([decision 0059](../../../docs/decisions/0059-stale-responses.md)).

use std::{
    sync::{
        Arc, PoisonError,
        atomic::{AtomicBool, AtomicU64, Ordering},
    },
    time::Duration,
};

use tokio::{
    runtime::Handle,
    sync::Mutex,
    time::{Instant, timeout},
};
use transcript_core::{Error, FailureLog, engine::Transcripts};

/// Age at which a reading is refreshed in the background.
const RENEW: Duration = Duration::from_millis(20);
/// Age at which a reading of the change counter is invalid: the longest time for which a change may be unseen.
pub const CHANGE_COUNTER_AGE_MAX: Duration = Duration::from_millis(50);
/// Longest reading of the counter if an old value may be used instead: a stopped database does not respond at all.
const READING_MAX: Duration = Duration::from_secs(1);
/// Interval of readings in the background while they fail.
const RETRY: Duration = Duration::from_secs(1);

/// The change counter of one archive, read recently.
#[derive(Debug)]
pub struct ChangeMonitor {
    transcripts: Transcripts,
    /// Start of the last successful reading, in microseconds after `start`; 0 before the first.
    read_at: AtomicU64,
    /// Start of the last failed reading, in microseconds after `start`.
    failed_at: AtomicU64,
    /// Readings that started earlier are invalid.
    valid_from: AtomicU64,
    /// The counter with its offset, which only grows. It may be newer than `read_at`, never older.
    count: AtomicU64,
    steps: std::sync::Mutex<CounterSteps>,
    start: Instant,
    /// Age until which the last counter is used while readings fail.
    stale_max: Duration,
    /// Whether valid readings are refreshed in the background.
    renews_ahead: bool,
    /// Whether a background reading is in progress.
    renewing: AtomicBool,
    /// Held during a reading that requests wait for.
    reading: Mutex<()>,
    failures: FailureLog,
    runtime: Handle,
}

/// What detects a counter that goes back.
#[derive(Debug, Default)]
struct CounterSteps {
    /// What is added to the archive's counter.
    offset: u64,
    /// When the counter last grew, in microseconds after `start`.
    grew_at: u64,
}

impl ChangeMonitor {
    /// Creates the monitor; while the archive cannot be read, the last counter is used for `stale_max`.
    ///
    /// # Panics
    /// Outside a tokio runtime, which performs the readings in the background.
    pub(super) fn new(transcripts: Transcripts, stale_max: Duration) -> Self {
        Self {
            transcripts,
            read_at: AtomicU64::new(0),
            failed_at: AtomicU64::new(0),
            // The first reading is due immediately.
            valid_from: AtomicU64::new(1),
            count: AtomicU64::new(0),
            steps: std::sync::Mutex::default(),
            start: Instant::now(),
            stale_max,
            renews_ahead: true,
            renewing: AtomicBool::new(false),
            reading: Mutex::default(),
            failures: FailureLog::new(),
            runtime: Handle::current(),
        }
    }

    /// Creates the monitor of a program: it reads nothing in the background and uses no old counter.
    ///
    /// # Panics
    /// As [`ChangeMonitor::new`].
    pub(super) fn for_program(transcripts: Transcripts) -> Self {
        Self { renews_ahead: false, ..Self::new(transcripts, Duration::ZERO) }
    }

    /// Returns the counter unless its reading is invalid; [`Self::read`] then reads it.
    ///
    /// On a server it starts a background reading if it is about to expire.
    pub fn changes(self: &Arc<Self>, now: Instant) -> Option<u64> {
        let read_at = self.read_at.load(Ordering::Acquire);
        let age = Duration::from_micros(self.micros(now).saturating_sub(read_at));
        if age >= CHANGE_COUNTER_AGE_MAX || read_at < self.valid_from.load(Ordering::Acquire) {
            return None;
        }
        if self.renews_ahead && age > RENEW {
            self.renew_in_background();
        }
        Some(self.count.load(Ordering::Relaxed))
    }

    /// Returns the counter of the last successful reading, if it is not too old and the newest reading has just failed.
    pub fn last_known(self: &Arc<Self>, now: Instant) -> Option<u64> {
        let (read_at, failed_at) =
            (self.read_at.load(Ordering::Acquire), self.failed_at.load(Ordering::Relaxed));
        let age = |at: u64| Duration::from_micros(self.micros(now).saturating_sub(at));
        // A failure says nothing about later: then the caller waits for a new reading.
        if failed_at <= read_at
            || age(failed_at) > RETRY + 2 * READING_MAX
            || age(read_at) >= self.stale_max
            || read_at < self.valid_from.load(Ordering::Acquire)
        {
            return None;
        }
        if age(failed_at) > RETRY {
            self.renew_in_background();
        }
        Some(self.count.load(Ordering::Relaxed))
    }

    /// Starts a reading, unless one is in progress.
    fn renew_in_background(self: &Arc<Self>) {
        if !self.renewing.swap(true, Ordering::Relaxed) {
            let this = Arc::clone(self);
            self.runtime.spawn(async move {
                this.renew().await;
                this.renewing.store(false, Ordering::Relaxed);
            });
        }
    }

    /// Returns the counter and waits for a reading if necessary; `None` if it cannot be read.
    ///
    /// Any executor can poll this if no old counter may be used, which needs a timer.
    pub async fn read(self: &Arc<Self>) -> Option<u64> {
        let now = Instant::now();
        if let Some(changes) = self.changes(now) {
            return Some(changes);
        }
        let requested_at = self.micros(now);
        let _reading = self.reading.lock().await;
        // One waiter reads for all: a reading that started after this request serves it, however long it took. A
        // failed reading is not repeated by each waiter.
        if self.read_at.load(Ordering::Acquire) < requested_at
            && self.failed_at.load(Ordering::Relaxed) < requested_at
        {
            self.renew().await;
        }
        (self.read_at.load(Ordering::Acquire) >= requested_at).then(|| self.count.load(Ordering::Relaxed))
    }

    /// Records the archive's counter, of a reading that began at `started_at`; adds the offset.
    pub fn record(&self, count: u64, started_at: Instant) -> u64 {
        let started_at = self.micros(started_at);
        let mut steps = self.steps.lock().unwrap_or_else(PoisonError::into_inner);
        let known = self.count.load(Ordering::Relaxed);
        let mut changes = count.saturating_add(steps.offset);
        // The newer of two overlapping readings wins. A later reading finds less only if the archive lost commits.
        if changes < known && started_at > steps.grew_at {
            let lost = known - changes;
            steps.offset += lost + 1;
            changes = known + 1;
            tracing::warn!(lost, "change counter went back: the archive was restored or failed over");
        }
        if changes > known {
            steps.grew_at = self.micros(Instant::now());
            self.count.store(changes, Ordering::Relaxed);
        }
        self.read_at.fetch_max(started_at, Ordering::Release);
        changes
    }

    /// Invalidates all readings that have started, also those of this microsecond.
    pub(super) fn invalidate(&self) {
        self.valid_from.fetch_max(self.micros(Instant::now()) + 1, Ordering::Release);
    }

    /// Microseconds since the start, from 1.
    fn micros(&self, now: Instant) -> u64 {
        now.saturating_duration_since(self.start).as_micros() as u64 + 1
    }

    async fn renew(&self) {
        let started_at = Instant::now();
        let reading = self.transcripts.change_counter();
        let read = if self.stale_max.is_zero() {
            reading.await
        } else {
            let late = |_| Err(Error::unavailable("the change counter was not read within a second"));
            timeout(READING_MAX, reading).await.unwrap_or_else(late)
        };
        match read {
            Ok(count) => {
                self.record(count, started_at);
                self.failures.succeeded();
            }
            Err(error) => {
                self.failed_at.fetch_max(self.micros(started_at), Ordering::Relaxed);
                if let Some(failures) = self.failures.failed() {
                    tracing::warn!(%error, failures, "change counter read failed");
                }
            }
        }
    }
}
