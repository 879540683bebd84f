//! A supplier and a link resolver with scripted or random behavior.

use std::{
    collections::VecDeque,
    fmt,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::Duration,
};

use async_trait::async_trait;
use transcript_core::{
    Timestamp,
    archive::TrackSelector,
    supplier::{
        LinkResolver, ResolveOutcome, Supplier, SupplierInfo, SupplyError, SupplyMonitor, SupplyOutput,
        SupplyReason, SupplyRequest,
    },
    transcript::{LanguageTag, Segment, TrackInfo, TrackKind, Transcript},
    video::{Platform, ShortLink, VideoId},
};

use super::{oracle::Oracle, seeded_rng::SeededRng, store_gate::StoreGate};

/// The behavior of a supplier in one fetch.
#[derive(Clone, Debug)]
pub(crate) struct SupplierStep {
    /// Duration of the fetch.
    pub(crate) takes: Duration,
    /// Result of the fetch.
    pub(crate) action: SupplierAction,
}

/// Result of a fetch.
#[derive(Clone, Debug)]
pub(crate) enum SupplierAction {
    /// Returns transcripts in these languages, the best for the selector first.
    Give(Vec<&'static str>),
    /// Returns a transcript in the first of these languages and lists all of them as known tracks.
    GiveOneOf(Vec<&'static str>),
    /// Fails for this reason.
    Fail(SupplyReason),
    /// Fails for this reason before any request to an upstream.
    Decline(SupplyReason),
    /// Panics.
    Panic,
    /// Returns the transcript of another video.
    OtherVideo,
    /// Returns success without a track.
    NoTracks,
    /// Returns a transcript without segments.
    NoWords,
    /// Never returns.
    Never,
}

impl SupplierStep {
    pub(crate) fn give(languages: &[&'static str]) -> Self {
        Self { takes: Duration::from_millis(800), action: SupplierAction::Give(languages.to_vec()) }
    }

    /// Returns the first of these languages and lists all of them as known tracks.
    pub(crate) fn give_one_of(languages: &[&'static str]) -> Self {
        Self { takes: Duration::from_millis(800), action: SupplierAction::GiveOneOf(languages.to_vec()) }
    }

    pub(crate) fn fail(reason: SupplyReason) -> Self {
        Self { takes: Duration::from_millis(800), action: SupplierAction::Fail(reason) }
    }

    /// Fails immediately, before any request to an upstream.
    pub(crate) fn decline(reason: SupplyReason) -> Self {
        Self { takes: Duration::ZERO, action: SupplierAction::Decline(reason) }
    }

    pub(crate) fn after(self, takes: Duration) -> Self {
        Self { takes, ..self }
    }
}

/// Source of a supplier's steps.
#[derive(Debug)]
pub(crate) enum SupplierScript {
    /// These steps first, then the last one repeatedly.
    Steps { next: VecDeque<SupplierStep>, then: SupplierStep },
    /// Random steps; with `slow`, most take longer than a lease lasts.
    Seeded { rng: Box<SeededRng>, slow: bool },
}

/// A simulated supplier.
pub(crate) struct SimSupplier {
    name: &'static str,
    script: Mutex<SupplierScript>,
    oracle: Arc<Oracle>,
    gate: Arc<StoreGate>,
    work: Mutex<SupplierWork>,
}

/// Number of concurrent fetches of a supplier.
#[derive(Debug, Default)]
struct SupplierWork {
    now: usize,
    max_running: usize,
    /// The configured limit, if any.
    bound: Option<usize>,
}

/// A running fetch of a supplier; it ends on drop.
struct RunningWork<'a>(&'a SimSupplier);

impl Drop for RunningWork<'_> {
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
    pub(crate) fn new(
        name: &'static str,
        script: SupplierScript,
        oracle: Arc<Oracle>,
        gate: Arc<StoreGate>,
    ) -> Self {
        Self { name, script: Mutex::new(script), oracle, gate, work: Mutex::default() }
    }

    /// Resets the counts for a new life with this limit of concurrent fetches.
    pub(crate) fn begin_life(&self, bound: Option<usize>) {
        *self.work() = SupplierWork { bound, ..SupplierWork::default() };
    }

    /// The largest number of concurrent fetches in this life.
    pub(crate) fn max_running(&self) -> usize {
        self.work().max_running
    }

    fn work(&self) -> MutexGuard<'_, SupplierWork> {
        self.work.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn begin_work(&self) -> RunningWork<'_> {
        let mut work = self.work();
        work.now += 1;
        work.max_running = work.max_running.max(work.now);
        let (now, bound) = (work.now, work.bound);
        drop(work);
        if bound.is_some_and(|bound| now > bound) {
            self.oracle.report(format_args!("{} works on {now} videos at once", self.name));
        }
        if bound == Some(now) {
            self.oracle.reach("all permits taken");
        }
        RunningWork(self)
    }

    /// Replaces the script.
    pub(crate) fn set_script(&self, script: SupplierScript) {
        *self.script.lock().unwrap_or_else(PoisonError::into_inner) = script;
    }

    fn next_step(&self, selector: &TrackSelector) -> SupplierStep {
        match &mut *self.script.lock().unwrap_or_else(PoisonError::into_inner) {
            SupplierScript::Steps { next, then } => next.pop_front().unwrap_or_else(|| then.clone()),
            SupplierScript::Seeded { rng, slow } => random_step(rng, selector, *slow),
        }
    }

    fn give(&self, request: &SupplyRequest, action: SupplierAction) -> Result<SupplyOutput, SupplyError> {
        let languages = match &action {
            SupplierAction::Give(languages) | SupplierAction::GiveOneOf(languages) => languages.as_slice(),
            SupplierAction::NoTracks => &[],
            _ => &["en"],
        };
        let number = self.oracle.next_supply();
        let mut tracks: Vec<Transcript> =
            languages.iter().map(|tag| transcript(&request.video, tag, self.name, number)).collect();
        let known_tracks = tracks.iter().map(|transcript| transcript.track.clone()).collect();
        if matches!(action, SupplierAction::GiveOneOf(_)) {
            tracks.truncate(1);
        }
        match action {
            SupplierAction::OtherVideo => {
                tracks.iter_mut().for_each(|track| track.video = stray(&request.video))
            }
            SupplierAction::NoWords => tracks.iter_mut().for_each(|track| track.segments.clear()),
            _ => self.oracle.on_supplied(&request.video, &tracks),
        }
        Ok(SupplyOutput { transcripts: tracks, known_tracks, ..SupplyOutput::default() })
    }
}

#[async_trait]
impl Supplier for SimSupplier {
    fn info(&self) -> SupplierInfo {
        SupplierInfo::captions(self.name, &[Platform::YouTube, Platform::TikTok])
    }

    async fn supply(
        &self,
        request: SupplyRequest,
        _: Arc<dyn SupplyMonitor>,
    ) -> Result<SupplyOutput, SupplyError> {
        let _flight = self.oracle.begin_fetch(&request.video, &request.selector);
        let _working = self.begin_work();
        let step = self.next_step(&request.selector);
        self.gate.trace(|| format!("{} fetches {} {}: {step:?}", self.name, request.video, request.selector));
        tokio::time::sleep(step.takes).await;
        match step.action {
            SupplierAction::Fail(reason) => {
                let message = format!("The source failed: {}.", reason.as_str());
                Err(SupplyError::new(reason, message))
            }
            SupplierAction::Decline(reason) => Err(SupplyError::before_request(reason, "It is paused.")),
            // Bypasses the panic hook, which would print thousands of reports.
            SupplierAction::Panic => std::panic::resume_unwind(Box::new("the supplier panicked")),
            SupplierAction::Never => std::future::pending().await,
            action => self.give(&request, action),
        }
    }
}

/// A supplier of one server: a kill of the server drops its work.
#[derive(Debug)]
pub(crate) struct CrashableSupplier {
    pub(crate) inner: Arc<SimSupplier>,
    pub(crate) gate: Arc<StoreGate>,
}

#[async_trait]
impl Supplier for CrashableSupplier {
    fn info(&self) -> SupplierInfo {
        self.inner.info()
    }

    async fn supply(
        &self,
        request: SupplyRequest,
        watcher: Arc<dyn SupplyMonitor>,
    ) -> Result<SupplyOutput, SupplyError> {
        tokio::select! {
            biased;
            () = self.gate.killed() => std::future::pending().await,
            outcome = self.inner.supply(request, watcher) => outcome,
        }
    }
}

/// A transcript whose text names its video, language and number, so that a mix-up is visible.
pub(crate) fn transcript(video: &VideoId, tag: &str, source: &str, number: u64) -> Transcript {
    let language = LanguageTag::from_canonical(tag);
    let kind = if number.is_multiple_of(2) { TrackKind::Human } else { TrackKind::Generated };
    let track = TrackInfo { original: tag != "en", ..TrackInfo::new(language, kind) };
    let words = |index: u64| format!("{video} {tag} {number} says {index}");
    Transcript {
        video: video.clone(),
        title: Some(format!("{video}")),
        author: None,
        duration_ms: Some(4_000),
        track,
        source: source.to_owned(),
        segments: (0..3).map(|index| Segment::new(words(index), index * 1_000, 900)).collect(),
    }
}

/// Another video of the same platform, which no caller requests.
fn stray(video: &VideoId) -> VideoId {
    match video.platform() {
        Platform::YouTube => VideoId::new(Platform::YouTube, "strayvideo0").unwrap(),
        platform => VideoId::new(platform, "999").unwrap(),
    }
}

/// Every failure reason of suppliers.
pub(crate) fn every_reason(now: Timestamp) -> Vec<SupplyReason> {
    use SupplyReason::*;
    let soon = now.plus(Duration::from_secs(90));
    let languages = vec![TrackInfo::new(LanguageTag::from_canonical("ja"), TrackKind::Human)];
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

fn random_step(rng: &SeededRng, selector: &TrackSelector, slow: bool) -> SupplierStep {
    let millis = match rng.below(10) {
        3.. if slow => 30_000 + rng.below(200_000),
        0 => *rng.pick(&[0, 26_000, 70_000, 400_000, 2_000_000]),
        1 | 2 => *rng.pick(&[15_000, 24_900, 25_000]),
        _ => 50 + rng.below(4_000),
    };
    let action = match rng.below(20) {
        0..=10 => SupplierAction::Give(match selector {
            TrackSelector::Language(tag) if tag.as_str() == "fr" => {
                rng.pick(&[vec!["fr"], vec!["fr", "en"]]).clone()
            }
            TrackSelector::Language(tag) if tag.as_str() == "en" => vec!["en"],
            _ => rng.pick(&[vec!["en"], vec!["fr"], vec!["en", "fr"], vec!["ja", "fr"]]).clone(),
        }),
        11 => SupplierAction::Panic,
        12 => SupplierAction::OtherVideo,
        13 => rng.pick(&[SupplierAction::NoTracks, SupplierAction::NoWords]).clone(),
        14 if rng.chance(200) => SupplierAction::Never,
        _ => SupplierAction::Fail(rng.pick(&every_reason(Timestamp::from_millis(1_795_132_800_000))).clone()),
    };
    SupplierStep { takes: Duration::from_millis(millis), action }
}

/// A link resolver with a fixed behavior for each code.
#[derive(Debug)]
pub(crate) struct SimResolver {
    pub(crate) video: VideoId,
    pub(crate) script: SeededRng,
    pub(crate) gate: Arc<StoreGate>,
}

#[async_trait]
impl LinkResolver for SimResolver {
    async fn resolve(&self, link: &ShortLink, _: Timestamp) -> Result<ResolveOutcome, SupplyError> {
        self.gate.trace(|| format!("short link {} is resolved", link.code()));
        if link.code().contains("slow") {
            tokio::time::sleep(Duration::from_millis(self.script.below(40_000))).await;
        }
        if link.code().contains("bad") && self.script.chance(500) {
            return Err(SupplyError::new(SupplyReason::Timeout, "The short link took too long."));
        }
        if link.code().contains("gone") {
            return Ok(ResolveOutcome::NotAVideo("This short link has expired.".to_owned()));
        }
        Ok(ResolveOutcome::Video(self.video.clone()))
    }
}
