//! Short links: cached, or resolved once for all concurrent callers.
//!
//! The video of a link is stored in the archive permanently. That a link leads to no video is cached in this process
//! for a while: the link may be created later, and made-up links must not fill a database.

use std::{
    collections::{HashMap, VecDeque},
    sync::{Arc, Mutex, MutexGuard, PoisonError},
};

use tokio::sync::oneshot;

use super::EngineInner;
use crate::{
    error::Error,
    failure_log::log_failure,
    retry::with_timeout,
    supplier::{LinkResolver, ResolveOutcome, SupplyError, SupplyReason},
    time::{LEASE_MAX, Timestamp},
    video::ShortLink,
};

/// Number of cached dead links; beyond it the oldest are evicted.
const DEAD_LINKS_MAX: usize = 4_096;

type ResolveResult = Result<ResolveOutcome, SupplyError>;

/// The links that are being resolved, and the cache of dead ones.
#[derive(Debug, Default)]
pub(super) struct ShortLinkCache {
    state: Mutex<ShortLinkState>,
}

#[derive(Debug, Default)]
struct ShortLinkState {
    /// The waiters of each link that is being resolved.
    resolving: HashMap<ShortLink, Vec<oneshot::Sender<ResolveResult>>>,
    dead: HashMap<ShortLink, DeadLink>,
    /// The dead links, oldest first.
    dead_by_age: VecDeque<(ShortLink, Timestamp)>,
}

#[derive(Debug)]
struct DeadLink {
    message: String,
    cached_at: Timestamp,
    expires_at: Timestamp,
}

impl ShortLinkCache {
    /// Why a link leads to no video, if that is cached.
    fn cached_dead_link(&self, link: &ShortLink, now: Timestamp) -> Option<ResolveOutcome> {
        let state = self.lock();
        // One that was cached in the future is of a clock that was ahead and was corrected since.
        let is_valid = |dead: &&DeadLink| now < dead.expires_at && dead.cached_at <= now.plus(LEASE_MAX);
        let dead = state.dead.get(link).filter(is_valid)?;
        Some(ResolveOutcome::NotAVideo(dead.message.clone()))
    }

    /// Caches that a link leads to no video.
    fn cache_dead_link(&self, link: &ShortLink, message: &str, now: Timestamp, expires_at: Timestamp) {
        let mut state = self.lock();
        let ShortLinkState { dead, dead_by_age, .. } = &mut *state;
        while let Some((oldest, expires_at)) = dead_by_age.front()
            && (*expires_at <= now || DEAD_LINKS_MAX <= dead_by_age.len())
        {
            // It may have been cached again since.
            if dead.get(oldest).is_some_and(|dead| dead.expires_at == *expires_at) {
                dead.remove(oldest);
            }
            dead_by_age.pop_front();
        }
        let message = message.to_owned();
        dead.insert(link.clone(), DeadLink { message, cached_at: now, expires_at });
        dead_by_age.push_back((link.clone(), expires_at));
    }

    /// Adds a waiter for a link. The first one gets the leader, which must resolve it.
    fn join(self: &Arc<Self>, link: &ShortLink) -> (oneshot::Receiver<ResolveResult>, Option<ResolveLeader>) {
        let (reply, answer) = oneshot::channel();
        let mut state = self.lock();
        if let Some(waiting) = state.resolving.get_mut(link) {
            // Remove disconnected waiters: one link would collect them while it is being resolved.
            waiting.retain(|waiter| !waiter.is_closed());
            waiting.push(reply);
            return (answer, None);
        }
        state.resolving.insert(link.clone(), vec![reply]);
        (answer, Some(ResolveLeader { links: Arc::clone(self), link: link.clone() }))
    }

    fn lock(&self) -> MutexGuard<'_, ShortLinkState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The task that resolves a link. Drop removes the link, also on a panic or a runtime shutdown.
#[derive(Debug)]
struct ResolveLeader {
    links: Arc<ShortLinkCache>,
    link: ShortLink,
}

impl ResolveLeader {
    fn notify_all(&self, answer: &ResolveResult) {
        for waiter in self.take_waiters() {
            // The receiver may be gone.
            let _ = waiter.send(answer.clone());
        }
    }

    fn take_waiters(&self) -> Vec<oneshot::Sender<ResolveResult>> {
        self.links.lock().resolving.remove(&self.link).unwrap_or_default()
    }
}

impl Drop for ResolveLeader {
    fn drop(&mut self) {
        drop(self.take_waiters());
    }
}

impl EngineInner {
    /// Resolves a link; `None` if it is unknown and the platform may not be requested.
    pub(super) async fn resolve(
        self: &Arc<Self>,
        link: &ShortLink,
        query_platform: bool,
    ) -> Result<Option<ResolveOutcome>, SupplyError> {
        if let Some(known) = self.cached_link(link).await? {
            return Ok(Some(known));
        }
        if !query_platform {
            return Ok(None);
        }
        let Some(resolver) = self.resolvers.get(&link.platform()) else {
            let platform = link.platform().name();
            let message =
                format!("Short links of {platform} are not followed: it has no source of transcripts.");
            return Err(SupplyError::new(SupplyReason::Misconfigured, message));
        };
        let (answer, leader) = self.links.join(link);
        if let Some(leader) = leader {
            let (inner, resolver) = (Arc::clone(self), Arc::clone(resolver));
            let running = self.tasks.begin();
            self.current_runtime().spawn(async move {
                let answer = inner.resolve_with(&leader.link, resolver.as_ref()).await;
                leader.notify_all(&answer);
                // Their end ends the wait of `close`, so what they hold is released first.
                drop((inner, resolver));
                drop(running);
            });
        }
        let interrupted = || {
            SupplyError::new(SupplyReason::Cancelled, "Resolving the short link was interrupted. Try again.")
        };
        answer.await.unwrap_or_else(|_| Err(interrupted())).map(Some)
    }

    async fn cached_link(&self, link: &ShortLink) -> Result<Option<ResolveOutcome>, SupplyError> {
        let stored_video = with_timeout(self.options.store_timeout, self.archive.short_link(link)).await;
        let stored_video = stored_video.map_err(|error| store_read_error(&error))?;
        Ok(stored_video
            .map(ResolveOutcome::Video)
            .or_else(|| self.links.cached_dead_link(link, self.clock.now())))
    }

    /// Resolves a link with its platform, and stores the result.
    async fn resolve_with(&self, link: &ShortLink, resolver: &dyn LinkResolver) -> ResolveResult {
        // Another call may have resolved it since the caller read the cache.
        if let Some(known) = self.cached_link(link).await? {
            return Ok(known);
        }
        let deadline = self.clock.now().plus(self.options.wait_timeout);
        let Ok(resolved) =
            tokio::time::timeout(self.options.wait_timeout, resolver.resolve(link, deadline)).await
        else {
            return Err(SupplyError::new(
                SupplyReason::Timeout,
                "Resolving the short link took too long. Try again later.",
            ));
        };
        let resolved = match resolved? {
            // Stored permanently, so it must be a video of the link's own platform.
            ResolveOutcome::Video(video) if video.platform() != link.platform() => ResolveOutcome::NotAVideo(
                format!("this short link does not lead to {}", link.platform().name()),
            ),
            resolved => resolved,
        };
        match &resolved {
            ResolveOutcome::Video(video) => {
                if let Err(error) =
                    with_timeout(self.options.store_timeout, self.archive.put_short_link(link, video)).await
                {
                    // The result is valid all the same; the next caller resolves the link again.
                    log_failure!(warn, [link = link.code(), %error], "short link not stored");
                }
            }
            ResolveOutcome::NotAVideo(message) => {
                let now = self.clock.now();
                self.links.cache_dead_link(link, message, now, now.plus(self.options.absence.no_captions));
            }
        }
        Ok(resolved)
    }
}

/// The error when the stored short links cannot be read; the details go to the log.
fn store_read_error(error: &Error) -> SupplyError {
    log_failure!(warn, [%error], "short link read failed");
    SupplyError::new(
        SupplyReason::Unreachable,
        "The short link could not be looked up. Try again in a moment.",
    )
}

#[cfg(test)]
mod tests {
    use std::{
        sync::atomic::{AtomicU32, Ordering},
        time::Duration,
    };

    use async_trait::async_trait;
    use tokio::{runtime::Handle, sync::Semaphore, task::JoinSet};

    use super::*;
    use crate::{
        engine::Transcripts,
        memory::MemoryArchive,
        test_doubles::{ManualClock, SequentialRandom},
        video::{Platform, VideoId, VideoLink},
    };

    const HOUR_MS: i64 = 3_600_000;

    /// A platform that responds to one request per permit, depending on the code.
    #[derive(Debug)]
    struct FakeResolver {
        requests: AtomicU32,
        permits: Semaphore,
    }

    #[async_trait]
    impl LinkResolver for FakeResolver {
        async fn resolve(&self, link: &ShortLink, _: Timestamp) -> ResolveResult {
            self.requests.fetch_add(1, Ordering::Relaxed);
            self.permits.acquire().await.unwrap().forget();
            match link.code() {
                code if code.contains("dead") => Ok(ResolveOutcome::NotAVideo("it has expired".to_owned())),
                code if code.contains("away") => {
                    Ok(ResolveOutcome::Video(video(Platform::YouTube, "dQw4w9WgXcQ")))
                }
                code if code.contains("fault") => Err(SupplyError::new(SupplyReason::Timeout, "Too slow.")),
                code if code.contains("panic") => panic!("scripted panic"),
                _ => Ok(ResolveOutcome::Video(video(Platform::TikTok, "20"))),
            }
        }
    }

    struct ShortLinkFixture {
        engine: Transcripts,
        platform: Arc<FakeResolver>,
        clock: Arc<ManualClock>,
    }

    fn video(platform: Platform, id: &str) -> VideoId {
        VideoId::new(platform, id).unwrap()
    }

    fn link(code: &str) -> ShortLink {
        match VideoLink::parse(&format!("https://vm.tiktok.com/{code}/")).unwrap() {
            VideoLink::Short(link) => link,
            other @ VideoLink::Video(_) => panic!("{other:?}"),
        }
    }

    fn fixture() -> ShortLinkFixture {
        let clock = Arc::<ManualClock>::default();
        let platform = Arc::new(FakeResolver { requests: AtomicU32::new(0), permits: Semaphore::new(0) });
        let archive = Arc::new(MemoryArchive::default());
        let engine = Transcripts::builder(
            archive,
            Arc::clone(&clock) as _,
            Arc::new(SequentialRandom::default()),
            Handle::current(),
        )
        .link_resolver(Platform::TikTok, Arc::clone(&platform) as _)
        .build();
        ShortLinkFixture { engine, platform, clock }
    }

    impl ShortLinkFixture {
        async fn resolve(&self, code: &str) -> ResolveResult {
            self.engine.resolve(&link(code), true).await.map(Option::unwrap)
        }

        fn requests(&self) -> u32 {
            self.platform.requests.load(Ordering::Relaxed)
        }

        /// Concurrent callers. Their one request gets its response as soon as all of them wait.
        async fn resolve_concurrently(&self, code: &str, size: usize) -> Vec<ResolveResult> {
            let mut callers = JoinSet::new();
            for _ in 0..size {
                let (engine, link) = (self.engine.clone(), link(code));
                callers.spawn(async move { engine.resolve(&link, true).await.map(Option::unwrap) });
            }
            let waiting = || self.engine.inner.links.lock().resolving.get(&link(code)).map_or(0, Vec::len);
            while waiting() < size {
                tokio::task::yield_now().await;
            }
            self.platform.permits.add_permits(1);
            callers.join_all().await
        }

        /// Waits until this many requests were made.
        async fn wait_for_requests(&self, requests: u32) {
            while self.requests() < requests {
                tokio::task::yield_now().await;
            }
        }
    }

    #[tokio::test]
    async fn short_link_concurrent_calls_share_request_and_result() {
        let fixture = fixture();
        for (number, code) in [(1, "ZTalive"), (2, "ZTdead"), (3, "ZTfault"), (4, "ZTaway")] {
            let answers = fixture.resolve_concurrently(code, 50).await;
            assert_eq!(fixture.requests(), number, "{code}");
            assert!(answers.iter().all(|answer| *answer == answers[0]), "{code}: {answers:?}");
            let expect = match code {
                "ZTalive" => matches!(&answers[0], Ok(ResolveOutcome::Video(video)) if video.id() == "20"),
                "ZTfault" => matches!(&answers[0], Err(error) if *error.reason() == SupplyReason::Timeout),
                _ => matches!(&answers[0], Ok(ResolveOutcome::NotAVideo(_))),
            };
            assert!(expect, "{code}: {:?}", answers[0]);
        }
        // All results but the failure are cached.
        for code in ["ZTalive", "ZTdead", "ZTaway"] {
            assert!(fixture.engine.resolve(&link(code), false).await.unwrap().is_some(), "{code}");
            fixture.resolve(code).await.unwrap();
        }
        assert_eq!(
            (fixture.engine.resolve(&link("ZTfault"), false).await, fixture.requests()),
            (Ok(None), 4)
        );
        assert!(fixture.resolve_concurrently("ZTfault", 1).await[0].is_err());
        assert_eq!(fixture.requests(), 5);
    }

    #[tokio::test]
    async fn short_link_dead_entry_expires() {
        let fixture = fixture();
        let first = fixture.resolve_concurrently("ZTdead", 1).await.remove(0);
        fixture.clock.set(Timestamp::from_millis(6 * HOUR_MS - 1));
        assert_eq!((fixture.resolve("ZTdead").await, fixture.requests()), (first, 1));
        fixture.clock.set(Timestamp::from_millis(6 * HOUR_MS));
        assert_eq!(fixture.engine.resolve(&link("ZTdead"), false).await, Ok(None));
        assert!(fixture.resolve_concurrently("ZTdead", 1).await[0].is_ok());
        assert_eq!(fixture.requests(), 2);
        // The clock was ahead.
        fixture.clock.set(Timestamp::from_millis(HOUR_MS));
        assert_eq!(fixture.engine.resolve(&link("ZTdead"), false).await, Ok(None));
    }

    #[tokio::test]
    async fn short_link_cache_evicts_oldest_at_max() {
        let links = ShortLinkCache::default();
        let at = Timestamp::from_millis;
        let known = |number: usize| links.cached_dead_link(&link(&format!("ZT{number}")), at(0)).is_some();
        for number in 0..DEAD_LINKS_MAX + 10 {
            links.cache_dead_link(&link(&format!("ZT{number}")), "expired", at(0), at(1_000));
        }
        assert!((0..10).all(|number| !known(number)) && (10..DEAD_LINKS_MAX + 10).all(known));
        // A link that is cached again has the age of its newest entry.
        links.cache_dead_link(&link("ZT10"), "expired", at(0), at(2_000));
        links.cache_dead_link(&link("ZT11"), "expired", at(1_000), at(2_000));
        assert!(known(10) && known(11) && !known(12));
        let state = links.lock();
        assert_eq!((state.dead.len(), state.dead_by_age.len()), (2, 2));
    }

    #[tokio::test]
    async fn short_link_disconnected_caller_keeps_resolution_running() {
        let fixture = fixture();
        let mut first = Box::pin(fixture.resolve("ZTalive"));
        tokio::select! {
            biased;
            answer = &mut first => panic!("{answer:?}"),
            () = fixture.wait_for_requests(1) => {}
        }
        let second = async {
            drop(first);
            fixture.platform.permits.add_permits(1);
            fixture.resolve("ZTalive").await
        };
        assert_eq!(second.await, Ok(ResolveOutcome::Video(video(Platform::TikTok, "20"))));
        assert_eq!(fixture.requests(), 1);
        // Without waiters the link is resolved all the same, and closing waits for it.
        tokio::select! {
            biased;
            answer = fixture.resolve("ZTother") => panic!("{answer:?}"),
            () = fixture.wait_for_requests(2) => {}
        }
        fixture.platform.permits.add_permits(1);
        fixture.engine.close().await;
        let known = fixture.engine.resolve(&link("ZTother"), false).await;
        assert_eq!(known, Ok(Some(ResolveOutcome::Video(video(Platform::TikTok, "20")))));
    }

    #[tokio::test]
    async fn short_link_panic_or_timeout_releases_waiters() {
        let fixture = fixture();
        let answers = fixture.resolve_concurrently("ZTpanic", 3).await;
        for answer in answers {
            assert_eq!(answer.unwrap_err().reason(), &SupplyReason::Cancelled);
        }
        tokio::time::pause();
        let silent = tokio::time::timeout(Duration::from_secs(26), fixture.resolve("ZTsilent")).await;
        assert_eq!(silent.unwrap().unwrap_err().reason(), &SupplyReason::Timeout);
        assert!(fixture.engine.inner.links.lock().resolving.is_empty());
    }
}
