//! Which videos other servers ask for here: a server that is asked by a server asks no third one.

use std::{
    collections::{HashMap, hash_map::Entry},
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::Duration,
};

use tokio::time::Instant;
use transcript_core::{ids::KeyId, video::VideoId};

/// The header that a server sends when it asks another one. Its value is 1.
pub const HOP: &str = "x-verbatim-hop";

/// For how long a video counts as asked for after the question was answered: a server that waits for a fetch asks
/// again meanwhile, and a source that is slow may come before the other server in the order.
const KEPT: Duration = Duration::from_secs(60);
/// The most videos that are remembered, and of those that one key asked for: many more than a server works on at once.
const VIDEOS_MAX: usize = 10_000;
const VIDEOS_PER_KEY_MAX: usize = 1_000;
/// How often it is looked for what need not be remembered any more, while there is no room.
const CLEARED_EVERY: Duration = Duration::from_secs(1);

/// The videos that other servers ask for here at this moment. A clone is a handle to the same list.
///
/// Two servers may name each other as their sources, or several stand in a circle. So that nobody waits for himself,
/// a server that is asked for a video by another one answers from its archive and its own sources. The fetch of a video is
/// shared by all who ask for it, so this holds for the video rather than for one request: a server that asks says so
/// ([`HOP`]), the face of this server notes it here for as long as it answers, and [`super::ServiceSupplier`] looks.
#[derive(Clone, Debug, Default)]
pub struct AskedByServers(Arc<Mutex<List>>);

#[derive(Debug, Default)]
struct List {
    videos: HashMap<VideoId, Asked>,
    /// Of how many of them each key was the first to ask.
    keys: HashMap<KeyId, usize>,
    /// When it was last cleared.
    cleared: Option<Instant>,
}

#[derive(Debug)]
struct Asked {
    /// The key that asked first.
    key: KeyId,
    /// How many ask now.
    now: u32,
    /// When the last one had its answer.
    last: Instant,
}

/// As long as it lives, another server asks for a video.
#[derive(Debug)]
pub struct AskedGuard {
    list: AskedByServers,
    /// None where there was no room to remember it.
    video: Option<VideoId>,
}

impl AskedByServers {
    /// Notes that another server asks for a video with this key, until the guard is dropped and a minute longer. Where
    /// there is no room, what was answered longest ago is forgotten; of a key that asks for too many, its own.
    pub fn note(&self, video: VideoId, key: &KeyId) -> AskedGuard {
        let has_room = self.list().note(&video, key, Instant::now());
        AskedGuard { list: self.clone(), video: has_room.then_some(video) }
    }

    /// Whether another server asks for this video, or did a moment ago.
    pub fn is_asked(&self, video: &VideoId) -> bool {
        let now = Instant::now();
        let mut list = self.list();
        match list.videos.get(video) {
            Some(asked) if asked.is_current(now) => true,
            Some(_) => {
                list.forget(video);
                false
            }
            None => false,
        }
    }

    fn list(&self) -> MutexGuard<'_, List> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl List {
    /// Notes a video; tells whether there was room.
    fn note(&mut self, video: &VideoId, key: &KeyId, now: Instant) -> bool {
        if let Some(asked) = self.videos.get_mut(video) {
            asked.now = asked.now.saturating_add(1);
            return true;
        }
        self.clear(key, now);
        let has_room = (!self.is_full_of(key) || self.forget_oldest(Some(key)))
            && (self.videos.len() < VIDEOS_MAX || self.forget_oldest(None));
        if has_room {
            self.videos.insert(video.clone(), Asked { key: key.clone(), now: 1, last: now });
            *self.keys.entry(key.clone()).or_default() += 1;
        }
        has_room
    }

    /// Forgets what need not be remembered any more, where room is wanted.
    fn clear(&mut self, key: &KeyId, now: Instant) {
        let is_due =
            self.cleared.is_none_or(|cleared| now.saturating_duration_since(cleared) >= CLEARED_EVERY);
        if is_due && (self.videos.len() >= VIDEOS_MAX || self.is_full_of(key)) {
            let old: Vec<_> = self.videos.iter().filter(|(_, asked)| !asked.is_current(now)).collect();
            let old: Vec<_> = old.into_iter().map(|(video, _)| video.clone()).collect();
            old.iter().for_each(|video| self.forget(video));
            self.cleared = Some(now);
        }
    }

    fn is_full_of(&self, key: &KeyId) -> bool {
        self.keys.get(key).is_some_and(|videos| *videos >= VIDEOS_PER_KEY_MAX)
    }

    /// Forgets what was answered longest ago, of one key's or of all; tells whether there was any.
    fn forget_oldest(&mut self, key: Option<&KeyId>) -> bool {
        let answered = self.videos.iter().filter(|(_, asked)| asked.now == 0);
        let answered = answered.filter(|(_, asked)| key.is_none_or(|key| asked.key == *key));
        let oldest = answered.min_by_key(|(_, asked)| asked.last).map(|(video, _)| video.clone());
        oldest.is_some_and(|video| {
            self.forget(&video);
            true
        })
    }

    fn forget(&mut self, video: &VideoId) {
        let Some(asked) = self.videos.remove(video) else { return };
        if let Entry::Occupied(mut videos) = self.keys.entry(asked.key) {
            *videos.get_mut() -= 1;
            if *videos.get() == 0 {
                videos.remove();
            }
        }
    }
}

impl Asked {
    fn is_current(&self, now: Instant) -> bool {
        self.now > 0 || now.saturating_duration_since(self.last) < KEPT
    }
}

impl Drop for AskedGuard {
    fn drop(&mut self) {
        let Some(video) = &self.video else { return };
        if let Some(asked) = self.list.list().videos.get_mut(video) {
            (asked.now, asked.last) = (asked.now.saturating_sub(1), Instant::now());
        }
    }
}

#[cfg(test)]
mod tests {
    use transcript_core::video::Platform;

    use super::*;

    fn video(number: usize) -> VideoId {
        VideoId::new(Platform::VideoSite, &format!("{number:011}")).unwrap()
    }

    fn key(name: &str) -> KeyId {
        KeyId::new(name)
    }

    #[tokio::test(start_paused = true)]
    async fn a_video_is_asked_for_as_long_as_anybody_asks_and_a_minute_longer() {
        let list = AskedByServers::default();
        assert!(!list.is_asked(&video(1)));
        let (first, second) = (list.note(video(1), &key("a")), list.note(video(1), &key("b")));
        drop(first);
        tokio::time::advance(KEPT * 2).await;
        assert!(list.is_asked(&video(1)) && !list.is_asked(&video(2)));
        drop(second);
        tokio::time::advance(KEPT - Duration::from_millis(1)).await;
        assert!(list.is_asked(&video(1)));
        tokio::time::advance(Duration::from_millis(1)).await;
        assert!(!list.is_asked(&video(1)));
        assert!(list.list().videos.is_empty() && list.list().keys.is_empty());
    }

    #[tokio::test(start_paused = true)]
    async fn who_asks_for_many_switches_nobody_off() {
        let list = AskedByServers::default();
        let honest = list.note(video(VIDEOS_MAX), &key("honest"));
        drop(list.note(video(VIDEOS_MAX + 1), &key("honest")));
        for number in 0..2 * VIDEOS_PER_KEY_MAX {
            drop(list.note(video(number), &key("greedy")));
            tokio::time::advance(Duration::from_millis(1)).await;
        }
        assert_eq!(list.list().videos.len(), VIDEOS_PER_KEY_MAX + 2);
        assert!(list.is_asked(&video(VIDEOS_MAX)) && list.is_asked(&video(VIDEOS_MAX + 1)));
        let is_asked = |number| list.is_asked(&video(number));
        assert!(is_asked(VIDEOS_PER_KEY_MAX) && !is_asked(VIDEOS_PER_KEY_MAX - 1), "its own oldest ones go");
        assert!(!list.is_asked(&video(VIDEOS_MAX + 2)), "nobody asked for it");
        drop(honest);
        tokio::time::advance(KEPT).await;
        let _now = list.note(video(7), &key("greedy"));
        assert_eq!(list.list().videos.len(), 1);
        assert_eq!(list.list().keys.len(), 1);
    }

    #[tokio::test(start_paused = true)]
    async fn what_is_remembered_has_a_bound_and_what_is_asked_now_stays() {
        let list = AskedByServers::default();
        let of = |number: usize| key(&format!("key-{}", number / VIDEOS_PER_KEY_MAX));
        let mut asking = vec![list.note(video(0), &of(0))];
        (1..VIDEOS_MAX).for_each(|number| drop(list.note(video(number), &of(number))));
        tokio::time::advance(Duration::from_millis(1)).await;
        drop(list.note(video(VIDEOS_MAX), &key("last")));
        assert_eq!(list.list().videos.len(), VIDEOS_MAX);
        assert!(list.is_asked(&video(0)) && list.is_asked(&video(VIDEOS_MAX)));
        // Of what all ask for now nothing is forgotten, and one more is not remembered.
        asking.extend((0..VIDEOS_MAX).map(|number| list.note(video(VIDEOS_MAX + number), &of(number))));
        let last = list.note(video(3 * VIDEOS_MAX), &key("last"));
        assert!(list.list().videos.len() <= VIDEOS_MAX && list.is_asked(&video(0)));
        assert!(last.video.is_none() && !list.is_asked(&video(3 * VIDEOS_MAX)));
        drop(asking);
        assert!(list.list().videos.values().all(|asked| asked.now == 0));
    }
}
