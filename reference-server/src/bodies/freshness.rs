//! Whether what was found still holds: the archive's count of changes, read often and shared by all.
//!
//! A statement for every request would cost more than the rest of the answer. So the count is read at most
//! every 20 ms, and nothing is sent that rests on a reading that began more than 50 ms ago and before the request
//! came: within that time every change reaches every server, whichever process makes it. Without requests nothing
//! is read.

use std::{
    sync::{
        Arc,
        atomic::{AtomicBool, AtomicU64, Ordering},
    },
    time::{Duration, Instant},
};

use tokio::{runtime::Handle, sync::Mutex};
use transcript_core::engine::Transcripts;

/// A reading older than this is replaced, while it still serves.
const RENEW: Duration = Duration::from_millis(20);
/// A reading older than this serves no more: after it, every server shows what was committed before.
pub(crate) const EXPIRE: Duration = Duration::from_millis(50);

/// The archive's count of changes, as of a moment ago.
#[derive(Debug)]
pub(super) struct Freshness {
    transcripts: Transcripts,
    /// When the last reading began, in microseconds after `start`.
    read_at: AtomicU64,
    /// When the last reading that failed began, in the same way.
    failed_at: AtomicU64,
    /// What it read. It may be newer than `read_at`, never older.
    count: AtomicU64,
    start: Instant,
    /// Whether a reading that nobody waits for is under way.
    renewing: AtomicBool,
    /// Held by whoever reads while others wait.
    reading: Mutex<()>,
    runtime: Handle,
}

impl Freshness {
    /// It must be made inside the runtime that then does the reading.
    pub(super) fn new(transcripts: Transcripts) -> Self {
        // As if the last reading had been long ago.
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

    /// The count, unless its reading is too old. One that soon will be is renewed meanwhile.
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

    /// The count; waits for a reading when there is none that serves. None when it cannot be read.
    pub(super) async fn read(self: &Arc<Self>) -> Option<u64> {
        if let Some(changes) = self.changes(Instant::now()) {
            return Some(changes);
        }
        let asked_at = self.since_start();
        let _reading = self.reading.lock().await;
        // Of all who wait, one reads for the others: what began after they asked serves them, however long it took, and
        // none of them waits for a store that has just failed another.
        if self.read_at.load(Ordering::Acquire) < asked_at
            && self.failed_at.load(Ordering::Relaxed) < asked_at
        {
            self.renew().await;
        }
        (self.read_at.load(Ordering::Acquire) >= asked_at).then(|| self.count.load(Ordering::Relaxed))
    }

    fn since_start(&self) -> u64 {
        self.start.elapsed().as_micros() as u64
    }

    fn age(&self, now: Instant) -> Duration {
        let read_at = Duration::from_micros(self.read_at.load(Ordering::Acquire));
        now.saturating_duration_since(self.start).saturating_sub(read_at)
    }

    async fn renew(&self) {
        let begun = self.since_start();
        match self.transcripts.changes().await {
            Ok(count) => {
                // It never shrinks, so of two readings that overtake each other the newer one stays.
                self.count.fetch_max(count, Ordering::Relaxed);
                self.read_at.fetch_max(begun, Ordering::Release);
            }
            Err(error) => {
                self.failed_at.fetch_max(begun, Ordering::Relaxed);
                tracing::warn!(%error, "the archive's count of changes could not be read");
            }
        }
    }
}
