//! Change monitor: reads the archive's change counter periodically for all requests.
//!
//! One statement per request would cost more than the remaining work of a response. The counter is read at most
//! every 20 ms. A response is sent only if the counter was read after the request arrived, or within the last
//! 50 ms. Within that time every change reaches every server, also changes by other processes. Without requests
//! nothing is read.

use std::{
    sync::{
        Arc,
        atomic::{AtomicBool, AtomicU64, Ordering},
    },
    time::{Duration, Instant},
};

use tokio::{runtime::Handle, sync::Mutex};
use transcript_core::engine::Transcripts;

/// Age at which a reading is refreshed in the background.
const RENEW: Duration = Duration::from_millis(20);
/// Age at which a reading is invalid. Afterwards every server serves all earlier commits.
pub(crate) const EXPIRE: Duration = Duration::from_millis(50);

/// The archive's change counter, read recently.
#[derive(Debug)]
pub(super) struct ChangeMonitor {
    transcripts: Transcripts,
    /// Start of the last successful reading, in microseconds after `start`.
    read_at: AtomicU64,
    /// Start of the last failed reading, in microseconds after `start`.
    failed_at: AtomicU64,
    /// The counter. It may be newer than `read_at`, never older.
    count: AtomicU64,
    start: Instant,
    /// Whether a background reading is in progress.
    renewing: AtomicBool,
    /// Held during a reading that requests wait for.
    reading: Mutex<()>,
    runtime: Handle,
}

impl ChangeMonitor {
    /// Creates the monitor. Must be called inside the runtime that performs the readings.
    pub(super) fn new(transcripts: Transcripts) -> Self {
        // The first reading is due immediately.
        let now = Instant::now();
        let start = now.checked_sub(2 * EXPIRE).unwrap_or(now);
        Self {
            transcripts,
            read_at: AtomicU64::new(0),
            failed_at: AtomicU64::new(0),
            count: AtomicU64::new(0),
            start,
            renewing: AtomicBool::new(false),
            reading: Mutex::default(),
            runtime: Handle::current(),
        }
    }

    /// Returns the counter unless its reading is too old.
    ///
    /// Starts a background reading if it is about to expire.
    pub(super) fn changes(self: &Arc<Self>, now: Instant) -> Option<u64> {
        let age = self.age(now);
        if age > RENEW && !self.renewing.swap(true, Ordering::Relaxed) {
            let this = Arc::clone(self);
            self.runtime.spawn(async move {
                this.renew().await;
                this.renewing.store(false, Ordering::Relaxed);
            });
        }
        (age <= EXPIRE).then(|| self.count.load(Ordering::Relaxed))
    }

    /// Returns the counter and waits for a reading if necessary; `None` if it cannot be read.
    pub(super) async fn read(self: &Arc<Self>) -> Option<u64> {
        if let Some(changes) = self.changes(Instant::now()) {
            return Some(changes);
        }
        let requested_at = self.since_start();
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

    fn since_start(&self) -> u64 {
        self.start.elapsed().as_micros() as u64
    }

    fn age(&self, now: Instant) -> Duration {
        let read_at = Duration::from_micros(self.read_at.load(Ordering::Acquire));
        now.saturating_duration_since(self.start).saturating_sub(read_at)
    }

    async fn renew(&self) {
        let started_at = self.since_start();
        match self.transcripts.changes().await {
            Ok(count) => {
                // The counter never shrinks; the newer of two overlapping readings wins.
                self.count.fetch_max(count, Ordering::Relaxed);
                self.read_at.fetch_max(started_at, Ordering::Release);
            }
            Err(error) => {
                self.failed_at.fetch_max(started_at, Ordering::Relaxed);
                tracing::warn!(%error, "change counter read failed");
            }
        }
    }
}
