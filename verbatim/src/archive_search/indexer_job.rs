//! Indexes in the background.

use std::{
    sync::Arc,
    time::{Duration, Instant},
};

use tokio::runtime::Handle;
use transcript_core::{Error, ErrorKind, Result, search::IndexProgress};

use super::SearchService;
use crate::job::{JobHandle, RoundLog, Stopped};

/// Pause between two looks for changes: what is archived is found within a second. What is archived in that time is
/// indexed together, because each step costs two commits.
const POLL_INTERVAL: Duration = Duration::from_millis(500);
/// Pause after the first failure; each further one doubles it up to the longest. It does not grow while a store is
/// unavailable, so that what is archived after an outage is found as soon as before.
const RETRY: Duration = Duration::from_secs(1);
const RETRY_MAX: Duration = Duration::from_secs(60);
/// Interval of the log lines about a build.
const LOG_INTERVAL: Duration = Duration::from_secs(30);
/// Name of the leader lease: of the servers on one database, one at a time indexes.
const LEADER_NAME: &str = "search-index";
/// Time after which another server may lead if this one died, in which searches miss what is archived. A slower step
/// does no harm: two servers that index at once repeat work.
const LEAD_TIMEOUT: Duration = Duration::from_secs(2);

/// Receives the outcome of each step, and the state of the index after each look that found nothing to do. It must not
/// block.
pub type IndexObserver = Arc<dyn Fn(&IndexProgress) + Send + Sync>;

#[derive(Clone)]
pub(super) struct IndexerJob {
    pub(super) service: SearchService,
    pub(super) observer: IndexObserver,
}

/// What was logged of a build.
#[derive(Debug, Default)]
struct BuildLog {
    since: Option<Instant>,
}

impl BuildLog {
    fn record(&mut self, progress: &IndexProgress) {
        let tracks = progress.state.tracks;
        match self.since {
            _ if progress.state.is_complete => {
                if self.since.take().is_some() || progress.built > 0 {
                    tracing::info!(tracks, "search index built");
                }
            }
            None => {
                tracing::info!(tracks, "search index is built in the background");
                self.since = Some(Instant::now());
            }
            Some(since) if since.elapsed() >= LOG_INTERVAL => {
                tracing::info!(tracks, "search index build continues");
                self.since = Some(Instant::now());
            }
            Some(_) => {}
        }
    }
}

/// The pause after a failure. `retry` is the one after the next failure that is no outage.
fn pause_after(error: &Error, retry: &mut Duration) -> Duration {
    if error.kind() == ErrorKind::Unavailable {
        return RETRY;
    }
    let longer = retry.saturating_mul(2).min(RETRY_MAX);
    std::mem::replace(retry, longer)
}

impl IndexerJob {
    pub(super) fn start(self) -> JobHandle {
        JobHandle::start(&Handle::current(), |stopped| self.run(stopped))
    }

    async fn run(self, mut stopped: Stopped) {
        let (mut pause, mut retry) = (Duration::ZERO, RETRY);
        let (mut build, log) = (BuildLog::default(), RoundLog::new("search indexing"));
        while !stopped.sleep(pause).await {
            let job = self.clone();
            let Some(ended) = stopped.run(async move { job.step_as_leader().await }).await else { break };
            log.record(&ended);
            pause = match ended {
                Ok(Ok((progress, is_step))) => {
                    retry = RETRY;
                    if is_step {
                        build.record(&progress);
                    }
                    (self.observer)(&progress);
                    // Other work of the process goes on between the steps of a build.
                    if is_step && progress.has_more() { Duration::from_millis(5) } else { POLL_INTERVAL }
                }
                Ok(Err(error)) => pause_after(&error, &mut retry),
                Err(_) => RETRY_MAX,
            };
        }
        self.service.servers.release_lead(LEADER_NAME, self.service.state.clock.as_ref()).await;
    }

    /// The outcome of one step and `true`; the state of the index and `false` if there is nothing to do but to merge a
    /// part of the index, or another server does it.
    async fn step_as_leader(&self) -> Result<(IndexProgress, bool)> {
        let (state, has_work) = self.service.inspect().await?;
        if has_work {
            let clock = self.service.state.clock.as_ref();
            if self.service.servers.try_lead(LEADER_NAME, clock, LEAD_TIMEOUT).await {
                return Ok((self.service.step().await?, true));
            }
        } else {
            self.service.optimize().await?;
        }
        Ok((IndexProgress { state, ..IndexProgress::default() }, false))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn indexer_pause_does_not_grow_in_outage() {
        let mut retry = RETRY;
        let mut pauses = |error: Error| [(); 8].map(|()| pause_after(&error, &mut retry).as_secs());
        assert_eq!(pauses(Error::unavailable("the database cannot be reached")), [1; 8]);
        assert_eq!(pauses(Error::unexpected("a statement was rejected")), [1, 2, 4, 8, 16, 32, 60, 60]);
        assert_eq!(pauses(Error::unavailable("the database cannot be reached")), [1; 8]);
    }
}
