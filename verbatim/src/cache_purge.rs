//! Purges changed videos from the caches in front of the servers.
//!
//! The archive records a changed video in the transaction of the change, so a withdrawal neither waits for the hook
//! nor is lost with a process. A row is deleted after its second purge: a response that a server sent shortly before
//! the change may reach a cache after the first.

use std::{collections::HashMap, sync::Arc, time::Duration};

use tokio::runtime::Handle;
use transcript_core::{
    Clock, Result, Timestamp,
    archive::{Archive, ChangedVideo},
    debug_fields,
    video::VideoId,
};
use upstream_reqwest::PurgeHook;

use crate::{
    job::{JobHandle, RoundLog, Stopped},
    read_cache::CHANGE_COUNTER_AGE_MAX,
    server_group::ServerGroup,
    system::SystemClock,
};

/// Interval of reading the changed videos, and the pause after the first failure.
const POLL_INTERVAL: Duration = Duration::from_secs(1);
/// The longest pause after failures, each of which doubles it.
const PAUSE_MAX: Duration = Duration::from_secs(60);
/// Time between the two purges of a video: longer than a response is on its way to a cache.
const SECOND_PURGE: Duration = Duration::from_secs(10);
/// Most changed videos that wait for their second purge.
const VIDEOS_MAX: u32 = 1_000;
/// Most keys of one call: services accept from 100 on.
const KEYS_MAX: usize = 100;
/// Name of the leader lease: of the servers on one database, one at a time purges.
const LEADER_NAME: &str = "cache-purges";
/// Time after which another server may lead if this one died: longer than the calls of one round.
const LEAD_TIMEOUT: Duration = Duration::from_secs(180);

/// The surrogate key of a video's responses: letters, digits, `-` and `_`.
pub fn surrogate_key(video: &VideoId) -> String {
    format!("{}-{}", video.platform(), video.id())
}

/// Receives the number of videos of a call of the hook, and whether it succeeded. It must not block.
pub type PurgeObserver = Arc<dyn Fn(usize, bool) + Send + Sync>;

/// What the task works with.
#[derive(Clone)]
pub(crate) struct CachePurger {
    pub(crate) archive: Arc<dyn Archive>,
    pub(crate) hook: PurgeHook,
    pub(crate) observer: PurgeObserver,
    pub(crate) servers: ServerGroup,
    pub(crate) clock: Arc<SystemClock>,
}

debug_fields!(CachePurger { hook, servers });

/// Videos that were purged once, with the change and the time.
type FirstPurges = HashMap<VideoId, (u64, Timestamp)>;

impl CachePurger {
    /// Starts the job on the current runtime.
    pub(crate) fn start(self) -> JobHandle {
        JobHandle::start(&Handle::current(), |stopped| self.run(stopped))
    }

    async fn run(self, mut stopped: Stopped) {
        let (mut first_purges, mut pause) = (FirstPurges::new(), POLL_INTERVAL);
        let log = RoundLog::new("cache purge");
        while !stopped.sleep(pause).await {
            let (purger, purges) = (self.clone(), std::mem::take(&mut first_purges));
            let Some(ended) = stopped.run(async move { purger.purge_changed(purges).await }).await else {
                break;
            };
            let ended = ended.map(|(purges, purged)| {
                first_purges = purges;
                purged
            });
            log.record(&ended);
            pause = match ended {
                Ok(Ok(())) => POLL_INTERVAL,
                Ok(Err(_)) => pause.saturating_mul(2).min(PAUSE_MAX),
                Err(_) => PAUSE_MAX,
            };
        }
        self.servers.release_lead(LEADER_NAME, self.clock.as_ref()).await;
    }

    /// Purges the videos whose purge is due; returns what was purged once.
    async fn purge_changed(&self, mut purges: FirstPurges) -> (FirstPurges, Result<()>) {
        let result = self.try_purge_changed(&mut purges).await;
        (purges, result)
    }

    async fn try_purge_changed(&self, purges: &mut FirstPurges) -> Result<()> {
        let changed = self.archive.changed_videos(VIDEOS_MAX).await?;
        let is_listed = |video: &VideoId, change: u64| {
            changed.iter().any(|listed| listed.video == *video && listed.change == change)
        };
        purges.retain(|video, (change, _)| is_listed(video, *change));
        let now = self.clock.now();
        let is_due = |listed: &ChangedVideo| {
            purges.get(&listed.video).is_none_or(|(_, at)| at.plus(SECOND_PURGE) <= now)
        };
        let due: Vec<_> = changed.iter().filter(|listed| is_due(listed)).cloned().collect();
        if due.is_empty() || !self.servers.try_lead(LEADER_NAME, self.clock.as_ref(), LEAD_TIMEOUT).await {
            return Ok(());
        }
        // Until then a server may send what it sent before the change.
        tokio::time::sleep(CHANGE_COUNTER_AGE_MAX).await;
        for videos in due.chunks(KEYS_MAX) {
            let keys: Vec<_> = videos.iter().map(|listed| surrogate_key(&listed.video)).collect();
            let purged = self.hook.purge(&keys).await;
            (self.observer)(keys.len(), purged.is_ok());
            purged?;
            tracing::info!(videos = keys.len(), "videos purged from shared caches");
            let (again, first): (Vec<_>, Vec<_>) =
                videos.iter().cloned().partition(|listed| purges.contains_key(&listed.video));
            let purged_at = self.clock.now();
            purges.extend(first.into_iter().map(|listed| (listed.video, (listed.change, purged_at))));
            if !again.is_empty() {
                self.archive.delete_changed_videos(&again).await?;
            }
        }
        Ok(())
    }
}
