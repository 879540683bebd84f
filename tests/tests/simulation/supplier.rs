//! A supplier and a resolver of short links that do as they are told, or as chance has it.

use std::{
    collections::VecDeque,
    fmt,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::Duration,
};

use async_trait::async_trait;
use transcript_core::{
    Timestamp,
    archive::Wish,
    supplier::{
        Ask, LinkResolver, Resolved, Supplied, Supplier, SupplierCard, SupplierKind, SupplyError,
        SupplyReason, Watcher,
    },
    transcript::{LanguageTag, Segment, TrackInfo, TrackKind, Transcript},
    video::{Platform, ShortLink, VideoId},
};

use super::{dice::Dice, gate::Gate, oracle::Oracle};

/// What a supplier does when it is asked.
#[derive(Clone, Debug)]
pub(crate) struct Act {
    /// How long it takes.
    pub(crate) takes: Duration,
    /// What it does then.
    pub(crate) deed: Deed,
}

/// What a supplier does after its time.
#[derive(Clone, Debug)]
pub(crate) enum Deed {
    /// Gives transcripts in these languages, the best for the wish first.
    Give(Vec<&'static str>),
    /// Gives a transcript in the first of these languages, and says that the video has all of them.
    GiveOneOf(Vec<&'static str>),
    /// Fails for this reason.
    Fail(SupplyReason),
    /// Fails for this reason without having asked anybody.
    Decline(SupplyReason),
    /// Panics.
    Panic,
    /// Gives another video's transcript.
    OtherVideo,
    /// Gives nothing and calls it a success.
    NoTracks,
    /// Gives a transcript without words.
    NoWords,
    /// Never answers.
    Never,
}

impl Act {
    pub(crate) fn give(languages: &[&'static str]) -> Self {
        Self { takes: Duration::from_millis(800), deed: Deed::Give(languages.to_vec()) }
    }

    /// Gives the first of these languages, and says that the video has all of them.
    pub(crate) fn give_one_of(languages: &[&'static str]) -> Self {
        Self { takes: Duration::from_millis(800), deed: Deed::GiveOneOf(languages.to_vec()) }
    }

    pub(crate) fn fail(reason: SupplyReason) -> Self {
        Self { takes: Duration::from_millis(800), deed: Deed::Fail(reason) }
    }

    /// Fails at once, without having asked anybody.
    pub(crate) fn decline(reason: SupplyReason) -> Self {
        Self { takes: Duration::ZERO, deed: Deed::Decline(reason) }
    }

    pub(crate) fn after(self, takes: Duration) -> Self {
        Self { takes, ..self }
    }
}

/// Where a supplier's acts come from.
#[derive(Debug)]
pub(crate) enum Script {
    /// These first, one by one, then always the last.
    Acts { next: VecDeque<Act>, then: Act },
    /// Chance; a slow one takes longer than a lease lasts, most of the time.
    Seeded { dice: Box<Dice>, slow: bool },
}

/// A simulated supplier.
pub(crate) struct SimSupplier {
    name: &'static str,
    script: Mutex<Script>,
    oracle: Arc<Oracle>,
    gate: Arc<Gate>,
    work: Mutex<Work>,
}

/// On how many videos a supplier works.
#[derive(Debug, Default)]
struct Work {
    now: usize,
    most: usize,
    /// The most that are allowed, where there is a bound.
    bound: Option<usize>,
}

/// A video that a supplier works on, until this is dropped.
struct Working<'a>(&'a SimSupplier);

impl Drop for Working<'_> {
    fn drop(&mut self) {
        self.0.work().now -= 1;
    }
}

impl fmt::Debug for SimSupplier {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name)
    }
}

impl SimSupplier {
    pub(crate) fn new(name: &'static str, script: Script, oracle: Arc<Oracle>, gate: Arc<Gate>) -> Self {
        Self { name, script: Mutex::new(script), oracle, gate, work: Mutex::default() }
    }

    /// A life begins, in which it may work on so many videos at once.
    pub(crate) fn begin_life(&self, bound: Option<usize>) {
        *self.work() = Work { bound, ..Work::default() };
    }

    /// On how many videos at once it worked at most, in this life.
    pub(crate) fn most(&self) -> usize {
        self.work().most
    }

    fn work(&self) -> MutexGuard<'_, Work> {
        self.work.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn begin_work(&self) -> Working<'_> {
        let mut work = self.work();
        work.now += 1;
        work.most = work.most.max(work.now);
        let (now, bound) = (work.now, work.bound);
        drop(work);
        if bound.is_some_and(|bound| now > bound) {
            self.oracle.wrong(format_args!("{} works on {now} videos at once", self.name));
        }
        if bound == Some(now) {
            self.oracle.reach("all places are taken");
        }
        Working(self)
    }

    /// Does as it is told from now on.
    pub(crate) fn set_script(&self, script: Script) {
        *self.script.lock().unwrap_or_else(PoisonError::into_inner) = script;
    }

    fn act(&self, wish: &Wish) -> Act {
        match &mut *self.script.lock().unwrap_or_else(PoisonError::into_inner) {
            Script::Acts { next, then } => next.pop_front().unwrap_or_else(|| then.clone()),
            Script::Seeded { dice, slow } => drawn(dice, wish, *slow),
        }
    }

    fn give(&self, ask: &Ask, deed: Deed) -> Result<Supplied, SupplyError> {
        let languages = match &deed {
            Deed::Give(languages) | Deed::GiveOneOf(languages) => languages.as_slice(),
            Deed::NoTracks => &[],
            _ => &["en"],
        };
        let number = self.oracle.next_supply();
        let mut tracks: Vec<Transcript> =
            languages.iter().map(|tag| transcript(&ask.video, tag, self.name, number)).collect();
        let known_tracks = tracks.iter().map(|transcript| transcript.track.clone()).collect();
        if matches!(deed, Deed::GiveOneOf(_)) {
            tracks.truncate(1);
        }
        match deed {
            Deed::OtherVideo => tracks.iter_mut().for_each(|track| track.video = stray(&ask.video)),
            Deed::NoWords => tracks.iter_mut().for_each(|track| track.segments.clear()),
            _ => self.oracle.supplied(&ask.video, &tracks),
        }
        Ok(Supplied { tracks, known_tracks })
    }
}

#[async_trait]
impl Supplier for SimSupplier {
    fn card(&self) -> SupplierCard {
        let platforms = vec![Platform::VideoSite, Platform::ShortVideo];
        SupplierCard { name: self.name.to_owned(), platforms, kind: SupplierKind::Captions }
    }

    async fn supply(&self, ask: Ask, _: Arc<dyn Watcher>) -> Result<Supplied, SupplyError> {
        let _flight = self.oracle.asked(&ask.video, &ask.wish);
        let _working = self.begin_work();
        let act = self.act(&ask.wish);
        self.gate.trace(|| format!("{} is asked for {} {}: {act:?}", self.name, ask.video, ask.wish));
        tokio::time::sleep(act.takes).await;
        match act.deed {
            Deed::Fail(reason) => {
                let message = format!("The source said: {}.", reason.as_str());
                Err(SupplyError::new(reason, message))
            }
            Deed::Decline(reason) => Err(SupplyError::unasked(reason, "It is left alone for now.")),
            // Without the panic hook, which would print thousands of reports.
            Deed::Panic => std::panic::resume_unwind(Box::new("the supplier broke")),
            Deed::Never => std::future::pending().await,
            deed => self.give(&ask, deed),
        }
    }
}

/// A supplier of one server: when that dies, what it works on is dropped.
#[derive(Debug)]
pub(crate) struct Mortal {
    pub(crate) inner: Arc<SimSupplier>,
    pub(crate) gate: Arc<Gate>,
}

#[async_trait]
impl Supplier for Mortal {
    fn card(&self) -> SupplierCard {
        self.inner.card()
    }

    async fn supply(&self, ask: Ask, watcher: Arc<dyn Watcher>) -> Result<Supplied, SupplyError> {
        tokio::select! {
            biased;
            () = self.gate.ended() => std::future::pending().await,
            supplied = self.inner.supply(ask, watcher) => supplied,
        }
    }
}

/// A transcript whose words say what they are of, so that any mix-up shows.
fn transcript(video: &VideoId, tag: &str, source: &str, number: u64) -> Transcript {
    let language = LanguageTag::from_canonical(tag);
    let kind = if number.is_multiple_of(2) { TrackKind::Human } else { TrackKind::Generated };
    let track = TrackInfo { original: tag != "en", ..TrackInfo::new(language, kind) };
    let words = |place: u64| format!("{video} {tag} {number} says {place}");
    Transcript {
        video: video.clone(),
        title: Some(format!("{video}")),
        author: None,
        duration_ms: Some(4_000),
        track,
        source: source.to_owned(),
        segments: (0..3).map(|place| Segment::new(words(place), place * 1_000, 900)).collect(),
    }
}

/// Another video of the same platform, which nobody asks for.
fn stray(video: &VideoId) -> VideoId {
    match video.platform() {
        Platform::VideoSite => VideoId::new(Platform::VideoSite, "strayvideo0").unwrap(),
        platform => VideoId::new(platform, "999").unwrap(),
    }
}

/// Every way in which a supplier can fail.
pub(crate) fn every_reason(now: Timestamp) -> Vec<SupplyReason> {
    use SupplyReason::*;
    let soon = now.plus(Duration::from_secs(90));
    let languages = vec![LanguageTag::from_canonical("ja")];
    let about_the_video =
        [NoCaptions, NoLanguage(languages), Private, Removed, Region, Age, Members, Payment, Login, Live];
    let passing = [
        Upcoming(None),
        Upcoming(Some(soon)),
        Throttled(None),
        Throttled(Some(Duration::from_secs(7))),
        BotCheck,
        OtherVideo,
        Timeout,
        Unreachable,
        PlatformFault,
        Unreadable,
        Cancelled,
        Stale,
        Misconfigured,
    ];
    about_the_video.into_iter().chain(passing).collect()
}

/// What chance makes a supplier do.
fn drawn(dice: &Dice, wish: &Wish, slow: bool) -> Act {
    let millis = match dice.below(10) {
        3.. if slow => 30_000 + dice.below(200_000),
        0 => *dice.pick(&[0, 26_000, 70_000, 400_000, 2_000_000]),
        1 | 2 => *dice.pick(&[15_000, 24_900, 25_000]),
        _ => 50 + dice.below(4_000),
    };
    let deed = match dice.below(20) {
        0..=10 => Deed::Give(match wish {
            Wish::Language(tag) if tag.as_str() == "fr" => dice.pick(&[vec!["fr"], vec!["fr", "en"]]).clone(),
            Wish::Language(tag) if tag.as_str() == "en" => vec!["en"],
            _ => dice.pick(&[vec!["en"], vec!["fr"], vec!["en", "fr"], vec!["ja", "fr"]]).clone(),
        }),
        11 => Deed::Panic,
        12 => Deed::OtherVideo,
        13 => dice.pick(&[Deed::NoTracks, Deed::NoWords]).clone(),
        14 if dice.chance(200) => Deed::Never,
        _ => Deed::Fail(dice.pick(&every_reason(Timestamp::from_millis(1_795_132_800_000))).clone()),
    };
    Act { takes: Duration::from_millis(millis), deed }
}

/// A resolver of short links that knows one answer for each code.
#[derive(Debug)]
pub(crate) struct SimResolver {
    pub(crate) video: VideoId,
    pub(crate) script: Dice,
    pub(crate) gate: Arc<Gate>,
}

#[async_trait]
impl LinkResolver for SimResolver {
    async fn resolve(&self, link: &ShortLink, _: Timestamp) -> Result<Resolved, SupplyError> {
        self.gate.trace(|| format!("the short link {} is followed", link.code()));
        if link.code().contains("slow") {
            tokio::time::sleep(Duration::from_millis(self.script.below(40_000))).await;
        }
        if link.code().contains("bad") && self.script.chance(500) {
            return Err(SupplyError::new(SupplyReason::Timeout, "The short link took too long."));
        }
        if link.code().contains("gone") {
            return Ok(Resolved::Nowhere("This short link has expired.".to_owned()));
        }
        Ok(Resolved::Video(self.video.clone()))
    }
}
