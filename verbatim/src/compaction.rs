//! Moves old transcripts to cold storage in the background, a few at a time.
//!
//! The job works a tenth of the time, so that requests notice it little. It keeps no state: after a restart it scans
//! the stored bodies again from the first, and those in cold storage are no longer among them.

use std::{sync::Arc, time::Duration};

use tokio::{runtime::Handle, time::Instant};
use transcript_core::{
    Clock, Result,
    archive::{Archive, CompactOutcome, CompactRequest},
    debug_fields,
    ids::Cursor,
    page::PageRequest,
};

use crate::{
    job::{JobHandle, RoundLog, Stopped},
    server_group::ServerGroup,
    system::SystemClock,
};

/// Transcripts scanned in one step.
const PAGE: u32 = 50;
/// Pause after a step, as a multiple of the time that it took.
const PAUSE_FACTOR: u32 = 9;
/// Shortest pause after a step.
const PAUSE_MIN: Duration = Duration::from_millis(500);
/// Pause after the last stored transcript, and after a panic.
const PAUSE_MAX: Duration = Duration::from_secs(6 * 60 * 60);
/// Pause after an error, and before the next attempt to lead.
const RETRY: Duration = Duration::from_secs(60);
/// Time before the first step: a server that starts has other work.
const START: Duration = Duration::from_secs(10);
/// Name of the leader lease: of the servers on one database, one at a time compacts.
const LEADER_NAME: &str = "archive-compaction";
/// Time after which another server may lead if this one died: longer than a step and the pause after it.
const LEAD_TIMEOUT: Duration = Duration::from_secs(120);

/// Receives the outcome of each step. It must not block.
pub type CompactionObserver = Arc<dyn Fn(&CompactOutcome) + Send + Sync>;

/// What the job works with.
#[derive(Clone)]
pub(crate) struct Compaction {
    pub(crate) archive: Arc<dyn Archive>,
    /// Age from which transcripts are moved.
    pub(crate) age: Duration,
    pub(crate) observer: CompactionObserver,
    pub(crate) servers: ServerGroup,
    pub(crate) clock: Arc<SystemClock>,
}

debug_fields!(Compaction { age, servers });

impl Compaction {
    /// Starts the job on the current runtime.
    pub(crate) fn start(self) -> JobHandle {
        JobHandle::start(&Handle::current(), |stopped| self.run(stopped))
    }

    async fn run(self, mut stopped: Stopped) {
        let (mut after, mut pause, log) = (None, START, RoundLog::new("compaction of old transcripts"));
        while !stopped.sleep(pause).await {
            if !self.servers.try_lead(LEADER_NAME, self.clock.as_ref(), LEAD_TIMEOUT).await {
                (after, pause) = (None, RETRY);
                continue;
            }
            let (job, position, started) = (self.clone(), after.take(), Instant::now());
            let Some(ended) = stopped.run(async move { job.compact_page(position).await }).await else {
                break;
            };
            log.record(&ended);
            pause = match ended {
                Ok(Ok(next)) => {
                    after = next;
                    let is_end = after.is_none();
                    let rest = started.elapsed().saturating_mul(PAUSE_FACTOR).clamp(PAUSE_MIN, RETRY);
                    if is_end { PAUSE_MAX } else { rest }
                }
                Ok(Err(_)) => RETRY,
                Err(_) => PAUSE_MAX,
            };
            if pause >= PAUSE_MAX {
                self.servers.release_lead(LEADER_NAME, self.clock.as_ref()).await;
            }
        }
        self.servers.release_lead(LEADER_NAME, self.clock.as_ref()).await;
    }

    /// Compacts some transcripts; returns where to continue, `None` at the end.
    async fn compact_page(&self, after: Option<Cursor>) -> Result<Option<Cursor>> {
        let page = PageRequest { after, limit: PAGE };
        let stored_before = self.clock.now().minus(self.age);
        let outcome = self.archive.compact(CompactRequest { stored_before, page }).await?;
        for video in &outcome.damaged {
            tracing::warn!(%video, "a stored transcript is damaged and was not compacted: verbatim archive verify");
        }
        (self.observer)(&outcome);
        Ok(outcome.next)
    }
}
