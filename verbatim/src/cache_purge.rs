//! Purges changed videos from the caches in front of the servers.
//!
//! The archive records a changed video in the transaction of the change, so a withdrawal neither waits for the hook
//! nor is lost with a process. A row is deleted after its second purge: a response that a server sent shortly before
//! the change may reach a cache after the first.

use std::{collections::HashMap, sync::Arc, time::Duration};

use tokio::{runtime::Handle, time::Instant};
use transcript_core::{
    FailureLog, Result,
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

/// Interval of reading the changed videos, and the shortest pause after a failure.
const POLL_INTERVAL: Duration = Duration::from_secs(1);
/// Pause after a call of the hook, while more purges may be due: services limit the calls of a second.
const CALL_PAUSE: Duration = Duration::from_millis(200);
/// The longest pause after failures, each of which doubles it.
const PAUSE_MAX: Duration = Duration::from_secs(60);
/// Time between the two purges of a video: longer than a response is on its way to a cache.
const SECOND_PURGE: Duration = Duration::from_secs(10);
/// Most changed videos that are listed, the newest change first. Earlier ones wait until some of these are purged.
const VIDEOS_MAX: u32 = 1_000;
/// Most keys of one call: services accept from 100 on.
const KEYS_MAX: usize = 100;
/// Name of the leader lease: of the servers on one database, one at a time purges.
const LEADER_NAME: &str = "cache-purges";
/// Time after which another server may lead if this one died: longer than a call, and than the time between two purges
/// of a video.
const LEAD_TIMEOUT: Duration = Duration::from_secs(30);

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

/// Videos that were purged once, with the change and the time, which no step of a clock changes.
#[derive(Debug, Default)]
struct FirstPurges(HashMap<VideoId, (u64, Instant)>);

impl FirstPurges {
    /// The videos of the next call: those whose second purge is due, and those to purge for the first time.
    ///
    /// Neither waits for all of the others. Only a list that is not full shows that a video has no change any more.
    fn due(&mut self, listed: &[ChangedVideo]) -> (Vec<ChangedVideo>, Vec<ChangedVideo>) {
        let changes: HashMap<_, _> = listed.iter().map(|listed| (&listed.video, listed.change)).collect();
        let is_full = listed.len() >= VIDEOS_MAX as usize;
        self.0.retain(|video, (change, _)| changes.get(video).map_or(is_full, |newest| *newest == *change));
        let mut again: Vec<_> = self.0.iter().filter(|(_, (_, at))| at.elapsed() >= SECOND_PURGE).collect();
        again.sort_unstable_by_key(|(_, (_, at))| *at);
        let first_max = KEYS_MAX - again.len().min(KEYS_MAX / 2);
        let first: Vec<_> = listed
            .iter()
            .filter(|listed| !self.0.contains_key(&listed.video))
            .take(first_max)
            .cloned()
            .collect();
        let again = again.into_iter().take(KEYS_MAX - first.len());
        let changed = |(video, (change, _)): (&VideoId, &(u64, Instant))| ChangedVideo {
            video: video.clone(),
            change: *change,
        };
        (again.map(changed).collect(), first)
    }

    /// Records a first purge.
    fn extend(&mut self, first: Vec<ChangedVideo>) {
        let purged_at = Instant::now();
        self.0.extend(first.into_iter().map(|listed| (listed.video, (listed.change, purged_at))));
    }

    /// Removes videos that were purged twice.
    fn remove(&mut self, again: &[ChangedVideo]) {
        for listed in again {
            self.0.remove(&listed.video);
        }
    }
}

/// What a round without an error did.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum PurgeRound {
    /// No purge was due.
    Idle,
    /// Another server purges.
    NotLeading,
    /// The hook was called, and succeeded.
    Purged,
}

impl CachePurger {
    /// Starts the job on the current runtime.
    pub(crate) fn start(self) -> JobHandle {
        JobHandle::start(&Handle::current(), |stopped| self.run(stopped))
    }

    async fn run(self, mut stopped: Stopped) {
        let (mut first_purges, mut pause) = (FirstPurges::default(), POLL_INTERVAL);
        let (log, mut is_leading) = (RoundLog::new("cache purge"), false);
        while !stopped.sleep(pause).await {
            let (purger, purges) = (self.clone(), std::mem::take(&mut first_purges));
            let Some(ended) = stopped.run(async move { purger.purge_changed(purges).await }).await else {
                break;
            };
            let ended = ended.map(|(purges, purged)| {
                first_purges = purges;
                purged
            });
            // Without a call, nothing shows that the hook works for this server: another one may have purged.
            if !matches!(ended, Ok(Ok(PurgeRound::Idle | PurgeRound::NotLeading))) {
                log.record(&ended);
            }
            pause = match ended {
                Ok(Ok(PurgeRound::NotLeading)) => pause.max(POLL_INTERVAL),
                Ok(Ok(PurgeRound::Idle)) => POLL_INTERVAL,
                Ok(Ok(PurgeRound::Purged)) => CALL_PAUSE,
                Ok(Err(_)) => pause.saturating_mul(2).clamp(POLL_INTERVAL, PAUSE_MAX),
                Err(_) => PAUSE_MAX,
            };
            is_leading |= matches!(ended, Ok(Ok(PurgeRound::Purged)));
            // While the hook fails for this server, another one may purge; so may one after this server is killed.
            if !matches!(ended, Ok(Ok(_))) || (is_leading && first_purges.0.is_empty()) {
                self.servers.release_lead(LEADER_NAME, self.clock.as_ref()).await;
                is_leading = false;
            }
        }
        self.servers.release_lead(LEADER_NAME, self.clock.as_ref()).await;
    }

    /// Calls the hook for videos whose purge is due; returns what was purged once.
    async fn purge_changed(&self, mut purges: FirstPurges) -> (FirstPurges, Result<PurgeRound>) {
        let result = self.try_purge_changed(&mut purges).await;
        (purges, result)
    }

    async fn try_purge_changed(&self, purges: &mut FirstPurges) -> Result<PurgeRound> {
        let (again, first) = purges.due(&self.archive.changed_videos(VIDEOS_MAX).await?);
        if again.is_empty() && first.is_empty() {
            return Ok(PurgeRound::Idle);
        }
        if !self.may_purge().await {
            return Ok(PurgeRound::NotLeading);
        }
        // Until then a server may send what it sent before the change.
        tokio::time::sleep(CHANGE_COUNTER_AGE_MAX).await;
        let keys: Vec<_> = again.iter().chain(&first).map(|listed| surrogate_key(&listed.video)).collect();
        let purged = self.hook.purge(&keys).await;
        (self.observer)(keys.len(), purged.is_ok());
        purged?;
        tracing::info!(videos = keys.len(), "videos purged from shared caches");
        purges.extend(first);
        if !again.is_empty() {
            // A video that changed again keeps its row.
            self.archive.delete_changed_videos(&again).await?;
            purges.remove(&again);
        }
        Ok(PurgeRound::Purged)
    }

    /// Whether this server leads, or the database of the leader lease cannot be written.
    ///
    /// A purge needs the archive and the hook only. It does not wait for another database: then all servers purge.
    async fn may_purge(&self) -> bool {
        static FAILURES: FailureLog = FailureLog::new();
        match self.servers.request_lead(LEADER_NAME, self.clock.as_ref(), LEAD_TIMEOUT).await {
            Ok(is_leader) => {
                FAILURES.succeeded();
                is_leader
            }
            Err(error) => {
                if let Some(failures) = FAILURES.failed() {
                    tracing::warn!(%error, failures, "leader lease request failed; this server purges without it");
                }
                true
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use transcript_core::video::Platform;

    use super::*;

    fn changed(number: u64, change: u64) -> ChangedVideo {
        let video = VideoId::new(Platform::YouTube, &format!("{number:011}")).unwrap();
        ChangedVideo { video, change }
    }

    /// The list of an archive with these rows, of which the last one is the newest.
    fn listed(rows: &[ChangedVideo]) -> Vec<ChangedVideo> {
        rows.iter().rev().take(VIDEOS_MAX as usize).cloned().collect()
    }

    /// Calls until all rows are purged twice, with their times. After each of the first ones, this many rows are added.
    async fn purge_all(rows: &mut Vec<ChangedVideo>, added: &[u64]) -> Vec<(Instant, Vec<ChangedVideo>)> {
        let (mut purges, mut calls, mut added) = (FirstPurges::default(), Vec::new(), added.iter());
        while !rows.is_empty() {
            let (again, first) = purges.due(&listed(rows));
            let keys: Vec<_> = again.iter().chain(&first).cloned().collect();
            assert!(keys.len() <= KEYS_MAX);
            if keys.is_empty() {
                tokio::time::advance(POLL_INTERVAL).await;
                continue;
            }
            calls.push((Instant::now(), keys));
            purges.extend(first);
            rows.retain(|row| again.iter().all(|listed| listed.change != row.change));
            purges.remove(&again);
            let next = calls.len() as u64 * 10_000;
            rows.extend((0..added.next().copied().unwrap_or_default()).map(|n| changed(next + n, next + n)));
            tokio::time::advance(CALL_PAUSE).await;
        }
        calls
    }

    #[tokio::test(start_paused = true)]
    async fn second_purge_does_not_wait_for_newer_changes() {
        for added in [vec![1_500_u64], vec![100; 60], vec![]] {
            let (withdrawn, started) = (changed(1, 1), Instant::now());
            let calls = purge_all(&mut vec![withdrawn.clone()], &added).await;
            let mut counts: HashMap<_, usize> = HashMap::new();
            for listed in calls.iter().flat_map(|(_, keys)| keys) {
                *counts.entry(listed.change).or_default() += 1;
            }
            assert_eq!(counts.len() as u64, 1 + added.iter().sum::<u64>());
            assert!(counts.values().all(|count| *count == 2), "a video is not purged twice");
            let times = calls.iter().filter(|(_, keys)| keys.contains(&withdrawn));
            let times: Vec<_> = times.map(|(at, _)| at.duration_since(started)).collect();
            assert_eq!((times.len(), times[0]), (2, Duration::ZERO));
            assert!((SECOND_PURGE..SECOND_PURGE + POLL_INTERVAL).contains(&times[1]), "{times:?}");
        }
    }

    #[tokio::test(start_paused = true)]
    async fn first_purge_is_forgotten_with_its_change() {
        let (one, other) = (changed(1, 1), changed(2, 2));
        let mut purges = FirstPurges::default();
        purges.extend(vec![one.clone(), other.clone()]);
        // The first one changed again, and another server has purged the second one twice.
        let again = changed(1, 3);
        assert_eq!(purges.due(std::slice::from_ref(&again)), (vec![], vec![again.clone()]));
        assert!(purges.0.is_empty());
        purges.extend(vec![one.clone()]);
        assert_eq!(purges.due(std::slice::from_ref(&one)), (vec![], vec![]));
        tokio::time::advance(SECOND_PURGE).await;
        assert_eq!(purges.due(std::slice::from_ref(&one)), (vec![one.clone()], vec![]));
    }
}
