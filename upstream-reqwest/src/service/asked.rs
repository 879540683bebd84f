//! Which videos other servers ask for here: a server that is asked by a server asks no third one.

use std::{
    collections::HashMap,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::Duration,
};

use tokio::time::Instant;
use transcript_core::video::VideoId;

/// The header that a server sends when it asks another one. Its value is 1.
pub const HOP: &str = "x-verbatim-hop";

/// For how long a video counts as asked for after the question was answered: a server that waits for a fetch asks
/// again meanwhile, and a source that is slow may come before the other server in the order.
const KEPT: Duration = Duration::from_secs(60);
/// The most videos that are remembered.
const VIDEOS_MAX: usize = 10_000;
/// How often it is looked for what need not be remembered any more, while the list is full.
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
    /// When it was last cleared.
    cleared: Option<Instant>,
}

#[derive(Clone, Copy, Debug)]
struct Asked {
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
    /// Notes that another server asks for a video, until the guard is dropped and a minute longer.
    pub fn note(&self, video: VideoId) -> AskedGuard {
        let now = Instant::now();
        let mut list = self.list();
        let is_due =
            list.cleared.is_none_or(|cleared| now.saturating_duration_since(cleared) >= CLEARED_EVERY);
        if list.is_full() && is_due {
            list.videos.retain(|_, asked| asked.is_current(now));
            list.cleared = Some(now);
        }
        let has_room = !list.is_full() || list.videos.contains_key(&video);
        let video = has_room.then_some(video);
        if let Some(video) = &video {
            let asked = list.videos.entry(video.clone()).or_insert(Asked { now: 0, last: now });
            asked.now = asked.now.saturating_add(1);
        }
        drop(list);
        AskedGuard { list: self.clone(), video }
    }

    /// Whether another server asks for this video, or did a moment ago. While there are too many to remember them
    /// all, any of them may be.
    pub fn is_asked(&self, video: &VideoId) -> bool {
        let now = Instant::now();
        let mut list = self.list();
        match list.videos.get(video) {
            Some(asked) if asked.is_current(now) => true,
            Some(_) => {
                list.videos.remove(video);
                list.is_full()
            }
            None => list.is_full(),
        }
    }

    fn list(&self) -> MutexGuard<'_, List> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl List {
    fn is_full(&self) -> bool {
        self.videos.len() >= VIDEOS_MAX
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
            *asked = Asked { now: asked.now.saturating_sub(1), last: Instant::now() };
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

    #[tokio::test(start_paused = true)]
    async fn a_video_is_asked_for_as_long_as_anybody_asks_and_a_minute_longer() {
        let list = AskedByServers::default();
        assert!(!list.is_asked(&video(1)));
        let (first, second) = (list.note(video(1)), list.note(video(1)));
        drop(first);
        tokio::time::advance(KEPT * 2).await;
        assert!(list.is_asked(&video(1)) && !list.is_asked(&video(2)));
        drop(second);
        tokio::time::advance(KEPT - Duration::from_millis(1)).await;
        assert!(list.is_asked(&video(1)));
        tokio::time::advance(Duration::from_millis(1)).await;
        assert!(!list.is_asked(&video(1)));
        assert_eq!(list.list().videos.len(), 0);
    }

    #[tokio::test(start_paused = true)]
    async fn what_is_remembered_has_a_bound() {
        let list = AskedByServers::default();
        (0..VIDEOS_MAX).for_each(|number| drop(list.note(video(number))));
        let one_more = list.note(video(VIDEOS_MAX));
        assert!(list.is_asked(&video(VIDEOS_MAX)) && list.is_asked(&video(0)), "any may be asked for");
        drop(one_more);
        tokio::time::advance(KEPT).await;
        let _now = list.note(video(VIDEOS_MAX));
        assert!(list.is_asked(&video(VIDEOS_MAX)));
        assert_eq!(list.list().videos.len(), 1);
        assert!(!list.is_asked(&video(0)));
    }
}
