//! What short links mean: remembered, or learnt once for all who ask at the same time.
//!
//! What a link leads to is remembered in the archive, for ever. That it leads nowhere is remembered here, for
//! a while: a link may be made anew, and whoever makes up links must not fill a database with them.

use std::{
    collections::{HashMap, VecDeque},
    sync::{Arc, Mutex, MutexGuard, PoisonError},
};

use tokio::sync::oneshot;

use super::{Inner, errands::Running, retry::bounded};
use crate::{
    error::Error,
    supplier::{LinkResolver, Resolved, SupplyError, SupplyReason},
    time::Timestamp,
    video::ShortLink,
};

/// How many links that lead nowhere are remembered; the oldest ones are forgotten for more.
const DEAD_MAX: usize = 4_096;

type Answer = Result<Resolved, SupplyError>;

/// The links that are being followed, and those that are known to lead nowhere.
#[derive(Debug, Default)]
pub(super) struct Links {
    state: Mutex<State>,
}

#[derive(Debug, Default)]
struct State {
    /// Who waits for each link that is being followed.
    followed: HashMap<ShortLink, Vec<oneshot::Sender<Answer>>>,
    dead: HashMap<ShortLink, Dead>,
    /// The dead ones, the oldest first.
    ages: VecDeque<(ShortLink, Timestamp)>,
}

#[derive(Debug)]
struct Dead {
    message: String,
    until: Timestamp,
}

impl Links {
    /// Why a link leads nowhere, where that is remembered.
    fn dead(&self, link: &ShortLink, now: Timestamp) -> Option<Resolved> {
        let state = self.lock();
        let dead = state.dead.get(link).filter(|dead| now < dead.until)?;
        Some(Resolved::Nowhere(dead.message.clone()))
    }

    /// Remembers that a link leads nowhere.
    fn bury(&self, link: &ShortLink, message: &str, now: Timestamp, until: Timestamp) {
        let mut state = self.lock();
        let State { dead, ages, .. } = &mut *state;
        while let Some((oldest, ends)) = ages.front()
            && (*ends <= now || DEAD_MAX <= ages.len())
        {
            // It may have been buried anew since.
            if dead.get(oldest).is_some_and(|dead| dead.until == *ends) {
                dead.remove(oldest);
            }
            ages.pop_front();
        }
        dead.insert(link.clone(), Dead { message: message.to_owned(), until });
        ages.push_back((link.clone(), until));
    }

    /// Joins those who wait for a link. The first one gets the duty to have it followed.
    fn join(self: &Arc<Self>, link: &ShortLink) -> (oneshot::Receiver<Answer>, Option<Following>) {
        let (reply, answer) = oneshot::channel();
        let mut state = self.lock();
        if let Some(waiting) = state.followed.get_mut(link) {
            // Whoever left need not be remembered: one link would gather them for as long as it takes.
            waiting.retain(|waiter| !waiter.is_closed());
            waiting.push(reply);
            return (answer, None);
        }
        state.followed.insert(link.clone(), vec![reply]);
        (answer, Some(Following { links: Arc::clone(self), link: link.clone() }))
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The duty to follow a link. Whatever happens to it, also a panic or the end of the runtime: once it is
/// dropped nobody waits for the link any more.
#[derive(Debug)]
struct Following {
    links: Arc<Links>,
    link: ShortLink,
}

impl Following {
    fn answer_all(&self, answer: &Answer) {
        for waiter in self.end() {
            // A caller who left needs no answer.
            let _ = waiter.send(answer.clone());
        }
    }

    fn end(&self) -> Vec<oneshot::Sender<Answer>> {
        self.links.lock().followed.remove(&self.link).unwrap_or_default()
    }
}

impl Drop for Following {
    fn drop(&mut self) {
        drop(self.end());
    }
}

impl Inner {
    /// The video that a link means, or that it means none; nothing when that is unknown and nobody is asked.
    pub(super) async fn resolve(
        self: &Arc<Self>,
        link: &ShortLink,
        ask_platform: bool,
    ) -> Result<Option<Resolved>, SupplyError> {
        if let Some(known) = self.known_link(link).await? {
            return Ok(Some(known));
        }
        if !ask_platform {
            return Ok(None);
        }
        let Some(resolver) = self.resolvers.get(&link.platform()) else {
            let message = format!("Short links of {} cannot be followed here.", link.platform().name());
            return Err(SupplyError::new(SupplyReason::Misconfigured, message));
        };
        let (answer, duty) = self.links.join(link);
        if let Some(following) = duty {
            let (inner, resolver) = (Arc::clone(self), Arc::clone(resolver));
            let running = Running::begin(Arc::clone(&self.errands));
            self.here().spawn(async move {
                let answer = inner.learn(&following.link, resolver.as_ref()).await;
                following.answer_all(&answer);
                drop(running);
            });
        }
        let interrupted =
            || SupplyError::new(SupplyReason::Cancelled, "Following the short link was interrupted.");
        answer.await.unwrap_or_else(|_| Err(interrupted())).map(Some)
    }

    /// What is remembered of a link.
    async fn known_link(&self, link: &ShortLink) -> Result<Option<Resolved>, SupplyError> {
        let remembered = bounded(self.options.store, self.archive.link(link)).await;
        let remembered = remembered.map_err(|error| memory_away(&error))?;
        Ok(remembered.map(Resolved::Video).or_else(|| self.links.dead(link, self.clock.now())))
    }

    /// Learns from its platform what a link means, and remembers that.
    async fn learn(&self, link: &ShortLink, resolver: &dyn LinkResolver) -> Answer {
        // Somebody may have learnt it after this caller had looked.
        if let Some(known) = self.known_link(link).await? {
            return Ok(known);
        }
        let deadline = self.clock.now().plus(self.options.wait);
        let Ok(resolved) = tokio::time::timeout(self.options.wait, resolver.resolve(link, deadline)).await
        else {
            return Err(SupplyError::new(SupplyReason::Timeout, "Following the short link took too long."));
        };
        let resolved = match resolved? {
            // Kept for ever: so it must be what the link's own platform can mean by it.
            Resolved::Video(video) if video.platform() != link.platform() => {
                Resolved::Nowhere(format!("this short link leads away from {}", link.platform().name()))
            }
            resolved => resolved,
        };
        match &resolved {
            Resolved::Video(video) => {
                if let Err(error) = bounded(self.options.store, self.archive.keep_link(link, video)).await {
                    // What was learnt is true all the same; the next caller learns it again.
                    tracing::warn!(link = link.code(), %error, "what a short link means could not be remembered");
                }
            }
            Resolved::Nowhere(message) => {
                let now = self.clock.now();
                self.links.bury(link, message, now, now.plus(self.options.absence.no_captions));
            }
        }
        Ok(resolved)
    }
}

/// What callers are told when the memory of short links is away; the details are for the log.
fn memory_away(error: &Error) -> SupplyError {
    tracing::warn!(%error, "the memory of short links could not be read");
    SupplyError::new(
        SupplyReason::Unreachable,
        "The short link could not be looked up: please try again in a moment.",
    )
}

#[cfg(test)]
mod tests {
    use std::{
        sync::atomic::{AtomicI64, AtomicU32, Ordering},
        time::Duration,
    };

    use async_trait::async_trait;
    use tokio::{runtime::Handle, sync::Semaphore, task::JoinSet};

    use super::*;
    use crate::{
        engine::Transcripts,
        memory::MemoryArchive,
        time::{Clock, Random},
        video::{Platform, VideoId, VideoLink},
    };

    const HOUR_MS: i64 = 3_600_000;

    #[derive(Debug, Default)]
    struct Hands(AtomicI64);

    impl Clock for Hands {
        fn now(&self) -> Timestamp {
            Timestamp::from_millis(self.0.load(Ordering::Relaxed))
        }
    }

    #[derive(Debug)]
    struct Sevens;

    impl Random for Sevens {
        fn bytes(&self, count: u32) -> Vec<u8> {
            vec![7; count as usize]
        }
    }

    /// A platform that answers one request for each permit, by what the code says.
    #[derive(Debug)]
    struct Platforms {
        asked: AtomicU32,
        permits: Semaphore,
    }

    #[async_trait]
    impl LinkResolver for Platforms {
        async fn resolve(&self, link: &ShortLink, _: Timestamp) -> Answer {
            self.asked.fetch_add(1, Ordering::Relaxed);
            self.permits.acquire().await.unwrap().forget();
            match link.code() {
                code if code.contains("dead") => Ok(Resolved::Nowhere("it has expired".to_owned())),
                code if code.contains("away") => {
                    Ok(Resolved::Video(video(Platform::VideoSite, "dQw4w9WgXcQ")))
                }
                code if code.contains("fault") => Err(SupplyError::new(SupplyReason::Timeout, "Too slow.")),
                code if code.contains("panic") => panic!("as asked"),
                _ => Ok(Resolved::Video(video(Platform::ShortVideo, "20"))),
            }
        }
    }

    struct Stage {
        engine: Transcripts,
        platform: Arc<Platforms>,
        clock: Arc<Hands>,
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

    fn stage() -> Stage {
        let clock = Arc::<Hands>::default();
        let platform = Arc::new(Platforms { asked: AtomicU32::new(0), permits: Semaphore::new(0) });
        let archive = Arc::new(MemoryArchive::default());
        let engine =
            Transcripts::builder(archive, Arc::clone(&clock) as _, Arc::new(Sevens), Handle::current())
                .resolver(Platform::ShortVideo, Arc::clone(&platform) as _)
                .build();
        Stage { engine, platform, clock }
    }

    impl Stage {
        async fn ask(&self, code: &str) -> Answer {
            self.engine.resolve(&link(code), true).await.map(Option::unwrap)
        }

        fn asked(&self) -> u32 {
            self.platform.asked.load(Ordering::Relaxed)
        }

        /// Some who ask at the same time. Their one request is answered as soon as all of them wait for it.
        async fn crowd(&self, code: &str, size: usize) -> Vec<Answer> {
            let mut crowd = JoinSet::new();
            for _ in 0..size {
                let (engine, link) = (self.engine.clone(), link(code));
                crowd.spawn(async move { engine.resolve(&link, true).await.map(Option::unwrap) });
            }
            let waiting = || self.engine.inner.links.lock().followed.get(&link(code)).map_or(0, Vec::len);
            while waiting() < size {
                tokio::task::yield_now().await;
            }
            self.platform.permits.add_permits(1);
            crowd.join_all().await
        }

        /// Waits until this many requests were made.
        async fn have_asked(&self, requests: u32) {
            while self.asked() < requests {
                tokio::task::yield_now().await;
            }
        }
    }

    #[tokio::test]
    async fn a_crowd_shares_one_request_and_what_comes_of_it() {
        let stage = stage();
        for (number, code) in [(1, "ZTalive"), (2, "ZTdead"), (3, "ZTfault"), (4, "ZTaway")] {
            let answers = stage.crowd(code, 50).await;
            assert_eq!(stage.asked(), number, "{code}");
            assert!(answers.iter().all(|answer| *answer == answers[0]), "{code}: {answers:?}");
            let expect = match code {
                "ZTalive" => matches!(&answers[0], Ok(Resolved::Video(video)) if video.id() == "20"),
                "ZTfault" => matches!(&answers[0], Err(error) if *error.reason() == SupplyReason::Timeout),
                _ => matches!(&answers[0], Ok(Resolved::Nowhere(_))),
            };
            assert!(expect, "{code}: {:?}", answers[0]);
        }
        // All but the failure is remembered.
        for code in ["ZTalive", "ZTdead", "ZTaway"] {
            assert!(stage.engine.resolve(&link(code), false).await.unwrap().is_some(), "{code}");
            stage.ask(code).await.unwrap();
        }
        assert_eq!((stage.engine.resolve(&link("ZTfault"), false).await, stage.asked()), (Ok(None), 4));
        assert!(stage.crowd("ZTfault", 1).await[0].is_err());
        assert_eq!(stage.asked(), 5);
    }

    #[tokio::test]
    async fn that_a_link_leads_nowhere_is_forgotten_in_time() {
        let stage = stage();
        let first = stage.crowd("ZTdead", 1).await.remove(0);
        stage.clock.0.store(6 * HOUR_MS - 1, Ordering::Relaxed);
        assert_eq!((stage.ask("ZTdead").await, stage.asked()), (first, 1));
        stage.clock.0.store(6 * HOUR_MS, Ordering::Relaxed);
        assert_eq!(stage.engine.resolve(&link("ZTdead"), false).await, Ok(None));
        assert!(stage.crowd("ZTdead", 1).await[0].is_ok());
        assert_eq!(stage.asked(), 2);
    }

    #[tokio::test]
    async fn only_so_many_are_remembered() {
        let links = Links::default();
        let at = Timestamp::from_millis;
        let known = |number: usize| links.dead(&link(&format!("ZT{number}")), at(0)).is_some();
        for number in 0..DEAD_MAX + 10 {
            links.bury(&link(&format!("ZT{number}")), "expired", at(0), at(1_000));
        }
        assert!((0..10).all(|number| !known(number)) && (10..DEAD_MAX + 10).all(known));
        // A link that is buried anew is as young as its newest grave.
        links.bury(&link("ZT10"), "expired", at(0), at(2_000));
        links.bury(&link("ZT11"), "expired", at(1_000), at(2_000));
        assert!(known(10) && known(11) && !known(12));
        let state = links.lock();
        assert_eq!((state.dead.len(), state.ages.len()), (2, 2));
    }

    #[tokio::test]
    async fn a_caller_who_leaves_takes_nobody_along() {
        let stage = stage();
        let mut first = Box::pin(stage.ask("ZTalive"));
        tokio::select! {
            biased;
            answer = &mut first => panic!("{answer:?}"),
            () = stage.have_asked(1) => {}
        }
        let second = async {
            drop(first);
            stage.platform.permits.add_permits(1);
            stage.ask("ZTalive").await
        };
        assert_eq!(second.await, Ok(Resolved::Video(video(Platform::ShortVideo, "20"))));
        assert_eq!(stage.asked(), 1);
        // With nobody left it is learnt all the same, and closing waits for it.
        tokio::select! {
            biased;
            answer = stage.ask("ZTother") => panic!("{answer:?}"),
            () = stage.have_asked(2) => {}
        }
        stage.platform.permits.add_permits(1);
        stage.engine.close().await;
        let known = stage.engine.resolve(&link("ZTother"), false).await;
        assert_eq!(known, Ok(Some(Resolved::Video(video(Platform::ShortVideo, "20")))));
    }

    #[tokio::test]
    async fn a_panic_or_silence_holds_up_nobody() {
        let stage = stage();
        let answers = stage.crowd("ZTpanic", 3).await;
        for answer in answers {
            assert_eq!(answer.unwrap_err().reason(), &SupplyReason::Cancelled);
        }
        tokio::time::pause();
        let silent = tokio::time::timeout(Duration::from_secs(26), stage.ask("ZTsilent")).await;
        assert_eq!(silent.unwrap().unwrap_err().reason(), &SupplyReason::Timeout);
        assert!(stage.engine.inner.links.lock().followed.is_empty());
    }
}
