//! Videos that other servers request here.
//!
//! A server does not forward a request of a server to a third one.

use std::{
    collections::{HashMap, hash_map::Entry},
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::Duration,
};

use tokio::time::Instant;
use transcript_core::{ids::KeyId, video::VideoId};

/// How long a video counts as requested after the response.
///
/// A server that waits for a fetch polls again, and a slow supplier may come before the other server in the order.
const RETENTION: Duration = Duration::from_secs(60);
/// Maximum number of stored videos, in total and per key.
///
/// Both are far more than a server fetches at the same time.
const VIDEOS_MAX: usize = 10_000;
const VIDEOS_PER_KEY_MAX: usize = 1_000;
/// Minimum time between removals of expired entries while the list is full.
const CLEANUP_INTERVAL: Duration = Duration::from_secs(1);

/// The videos that other servers currently request here. A clone is a handle to the same list.
///
/// Two servers may use each other as a source, or several may form a circle. To prevent a deadlock, a server answers
/// a request of another server from its archive and its own sources only. All waiters share the fetch of a video, so
/// this rule applies to the video rather than to one request. The requesting server sends the header
/// [`X_VERBATIM_HOP`](transcript_core::headers::X_VERBATIM_HOP), the HTTP layer of this server registers the video here
/// until it responds, and [`super::ServiceSupplier`] checks it.
#[derive(Clone, Debug, Default)]
pub struct PeerRequests(Arc<Mutex<RequestList>>);

#[derive(Debug, Default)]
struct RequestList {
    videos: HashMap<VideoId, RequestedVideo>,
    /// Number of videos that each key was the first to request.
    keys: HashMap<KeyId, usize>,
    /// When expired entries were last removed.
    cleared: Option<Instant>,
}

#[derive(Debug)]
struct RequestedVideo {
    /// The key that requested the video first.
    key: KeyId,
    /// Number of active requests.
    active: u32,
    /// When the last request was answered.
    answered_at: Instant,
}

/// An active request of another server for a video.
#[derive(Debug)]
pub struct PeerRequestGuard {
    list: PeerRequests,
    /// `None` if the list was full.
    video: Option<VideoId>,
}

impl PeerRequests {
    /// Registers a request of another server until the guard is dropped, and for 60 seconds after that.
    ///
    /// If the list is full, the entry that was answered longest ago is removed; if the key has its maximum number of
    /// entries, its own oldest one.
    pub fn register(&self, video: VideoId, key: &KeyId) -> PeerRequestGuard {
        let has_room = self.list().register(&video, key, Instant::now());
        PeerRequestGuard { list: self.clone(), video: has_room.then_some(video) }
    }

    /// Whether another server requests this video, or did within the last 60 seconds.
    pub fn is_requested(&self, video: &VideoId) -> bool {
        let now = Instant::now();
        let mut list = self.list();
        match list.videos.get(video) {
            Some(entry) if entry.is_current(now) => true,
            Some(_) => {
                list.remove(video);
                false
            }
            None => false,
        }
    }

    fn list(&self) -> MutexGuard<'_, RequestList> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl RequestList {
    /// Registers a video; returns whether there was room.
    fn register(&mut self, video: &VideoId, key: &KeyId, now: Instant) -> bool {
        if let Some(entry) = self.videos.get_mut(video) {
            entry.active = entry.active.saturating_add(1);
            return true;
        }
        self.remove_expired(key, now);
        let has_room = (!self.is_full_for(key) || self.remove_oldest(Some(key)))
            && (self.videos.len() < VIDEOS_MAX || self.remove_oldest(None));
        if has_room {
            self.videos
                .insert(video.clone(), RequestedVideo { key: key.clone(), active: 1, answered_at: now });
            *self.keys.entry(key.clone()).or_default() += 1;
        }
        has_room
    }

    /// Removes expired entries when room is needed.
    fn remove_expired(&mut self, key: &KeyId, now: Instant) {
        let is_due =
            self.cleared.is_none_or(|cleared| now.saturating_duration_since(cleared) >= CLEANUP_INTERVAL);
        if is_due && (self.videos.len() >= VIDEOS_MAX || self.is_full_for(key)) {
            let old: Vec<_> = self.videos.iter().filter(|(_, entry)| !entry.is_current(now)).collect();
            let old: Vec<_> = old.into_iter().map(|(video, _)| video.clone()).collect();
            old.iter().for_each(|video| self.remove(video));
            self.cleared = Some(now);
        }
    }

    fn is_full_for(&self, key: &KeyId) -> bool {
        self.keys.get(key).is_some_and(|videos| *videos >= VIDEOS_PER_KEY_MAX)
    }

    /// Removes the entry that was answered longest ago, of one key or of all.
    ///
    /// Returns whether there was one.
    fn remove_oldest(&mut self, key: Option<&KeyId>) -> bool {
        let answered = self.videos.iter().filter(|(_, entry)| entry.active == 0);
        let answered = answered.filter(|(_, entry)| key.is_none_or(|key| entry.key == *key));
        let oldest = answered.min_by_key(|(_, entry)| entry.answered_at).map(|(video, _)| video.clone());
        oldest.is_some_and(|video| {
            self.remove(&video);
            true
        })
    }

    fn remove(&mut self, video: &VideoId) {
        let Some(entry) = self.videos.remove(video) else { return };
        if let Entry::Occupied(mut videos) = self.keys.entry(entry.key) {
            *videos.get_mut() -= 1;
            if *videos.get() == 0 {
                videos.remove();
            }
        }
    }
}

impl RequestedVideo {
    fn is_current(&self, now: Instant) -> bool {
        self.active > 0 || now.saturating_duration_since(self.answered_at) < RETENTION
    }
}

impl Drop for PeerRequestGuard {
    fn drop(&mut self) {
        let Some(video) = &self.video else { return };
        if let Some(entry) = self.list.list().videos.get_mut(video) {
            (entry.active, entry.answered_at) = (entry.active.saturating_sub(1), Instant::now());
        }
    }
}

#[cfg(test)]
mod tests {
    use transcript_core::video::Platform;

    use super::*;

    fn video(number: usize) -> VideoId {
        VideoId::new(Platform::YouTube, &format!("{number:011}")).unwrap()
    }

    fn key(name: &str) -> KeyId {
        KeyId::new(name)
    }

    #[tokio::test(start_paused = true)]
    async fn peer_request_expires_60_s_after_last_guard() {
        let list = PeerRequests::default();
        assert!(!list.is_requested(&video(1)));
        let (first, second) = (list.register(video(1), &key("a")), list.register(video(1), &key("b")));
        drop(first);
        tokio::time::advance(RETENTION * 2).await;
        assert!(list.is_requested(&video(1)) && !list.is_requested(&video(2)));
        drop(second);
        tokio::time::advance(RETENTION - Duration::from_millis(1)).await;
        assert!(list.is_requested(&video(1)));
        tokio::time::advance(Duration::from_millis(1)).await;
        assert!(!list.is_requested(&video(1)));
        assert!(list.list().videos.is_empty() && list.list().keys.is_empty());
    }

    #[tokio::test(start_paused = true)]
    async fn peer_requests_of_busy_key_evict_only_its_own() {
        let list = PeerRequests::default();
        let honest = list.register(video(VIDEOS_MAX), &key("honest"));
        drop(list.register(video(VIDEOS_MAX + 1), &key("honest")));
        for number in 0..2 * VIDEOS_PER_KEY_MAX {
            drop(list.register(video(number), &key("greedy")));
            tokio::time::advance(Duration::from_millis(1)).await;
        }
        assert_eq!(list.list().videos.len(), VIDEOS_PER_KEY_MAX + 2);
        assert!(list.is_requested(&video(VIDEOS_MAX)) && list.is_requested(&video(VIDEOS_MAX + 1)));
        let is_asked = |number| list.is_requested(&video(number));
        assert!(is_asked(VIDEOS_PER_KEY_MAX) && !is_asked(VIDEOS_PER_KEY_MAX - 1), "own oldest entries go");
        assert!(!list.is_requested(&video(VIDEOS_MAX + 2)), "it was not requested");
        drop(honest);
        tokio::time::advance(RETENTION).await;
        let _now = list.register(video(7), &key("greedy"));
        assert_eq!(list.list().videos.len(), 1);
        assert_eq!(list.list().keys.len(), 1);
    }

    #[tokio::test(start_paused = true)]
    async fn peer_requests_full_list_keeps_active_entries() {
        let list = PeerRequests::default();
        let of = |number: usize| key(&format!("key-{}", number / VIDEOS_PER_KEY_MAX));
        let mut guards = vec![list.register(video(0), &of(0))];
        (1..VIDEOS_MAX).for_each(|number| drop(list.register(video(number), &of(number))));
        tokio::time::advance(Duration::from_millis(1)).await;
        drop(list.register(video(VIDEOS_MAX), &key("last")));
        assert_eq!(list.list().videos.len(), VIDEOS_MAX);
        assert!(list.is_requested(&video(0)) && list.is_requested(&video(VIDEOS_MAX)));
        // Active entries are not removed, and one more is not stored.
        guards.extend((0..VIDEOS_MAX).map(|number| list.register(video(VIDEOS_MAX + number), &of(number))));
        let last = list.register(video(3 * VIDEOS_MAX), &key("last"));
        assert!(list.list().videos.len() <= VIDEOS_MAX && list.is_requested(&video(0)));
        assert!(last.video.is_none() && !list.is_requested(&video(3 * VIDEOS_MAX)));
        drop(guards);
        assert!(list.list().videos.values().all(|entry| entry.active == 0));
    }
}
