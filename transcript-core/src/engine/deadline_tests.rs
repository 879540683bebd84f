//! Tests of suppliers that are called after others have used up the time, and of a clock that steps forward.

use std::{
    collections::BTreeMap,
    sync::{
        Mutex,
        atomic::{AtomicU32, Ordering},
    },
    time::Duration,
};

use async_trait::async_trait;

use super::{
    refresh_tests::{transcript, video},
    *,
};
use crate::{
    archive::{FetchLease, KeyValueArchive, KeyValueChange, KeyValueStore, LeaseOutcome},
    ids::Holder,
    memory::MemoryArchive,
    supplier::{Supplier, SupplierInfo, SupplierKind, SupplyMonitor, SupplyOutput, SupplyRequest},
    test_doubles::{ManualClock, SequentialRandom},
    transcript::{LanguageTag, TrackInfo, TrackKind},
};

/// Advances the clock by `duration`, then fails.
#[derive(Debug)]
struct FailingSupplier {
    name: &'static str,
    kind: SupplierKind,
    duration: Duration,
    clock: Arc<ManualClock>,
    failure: Mutex<SupplyError>,
    calls: AtomicU32,
}

#[async_trait]
impl Supplier for FailingSupplier {
    fn info(&self) -> SupplierInfo {
        let platforms = vec![Platform::YouTube];
        SupplierInfo { name: self.name.to_owned(), platforms, kind: self.kind }
    }

    async fn supply(&self, _: SupplyRequest, _: Arc<dyn SupplyMonitor>) -> Result<SupplyOutput, SupplyError> {
        self.calls.fetch_add(1, Ordering::Relaxed);
        self.clock.advance(self.duration);
        Err(self.failure.lock().unwrap().clone())
    }
}

struct DeadlineFixture {
    first: Arc<FailingSupplier>,
    second: Arc<FailingSupplier>,
    transcripts: Transcripts,
}

/// Suppliers of captions and of speech-to-text; the first takes `percent` of the work timeout.
///
/// One failure starts a long cooldown.
fn fixture(percent: u32, first: SupplyError, second: SupplyError) -> DeadlineFixture {
    let clock = Arc::new(ManualClock::default());
    let long = Duration::from_secs(24 * 3_600);
    let breaker_policy = BreakerPolicy { failures: 1, cooldown: long, cooldown_max: long };
    let options = EngineOptions { breaker: breaker_policy, ..EngineOptions::default() };
    let new_supplier = |name, kind, duration, failure| {
        let (clock, failure) = (Arc::clone(&clock), Mutex::new(failure));
        Arc::new(FailingSupplier { name, kind, duration, clock, failure, calls: AtomicU32::new(0) })
    };
    let first = new_supplier("first", SupplierKind::Captions, options.work_timeout * percent / 100, first);
    let second = new_supplier("second", SupplierKind::Speech, Duration::ZERO, second);
    let random = Arc::new(SequentialRandom::default());
    let archive = Arc::new(MemoryArchive::default());
    let transcripts = Transcripts::builder(archive, Arc::clone(&clock) as _, random, Handle::current())
        .options(options)
        .supplier(Platform::YouTube, Arc::clone(&first) as _)
        .supplier(Platform::YouTube, Arc::clone(&second) as _)
        .build();
    DeadlineFixture { first, second, transcripts }
}

impl DeadlineFixture {
    /// The failure for a video, and how often each supplier was called until then.
    async fn fetch_failure(&self, number: u32) -> (SupplyError, u32, u32) {
        self.fetch_failure_for(number, TrackSelector::Default).await
    }

    /// As [`Self::fetch_failure`], for a track.
    async fn fetch_failure_for(&self, number: u32, selector: TrackSelector) -> (SupplyError, u32, u32) {
        let video = VideoId::new(Platform::YouTube, &format!("video-{number:05}")).unwrap();
        let fetch = FetchRequest { video, selector, payer: None };
        let calls = |supplier: &FailingSupplier| supplier.calls.load(Ordering::Relaxed);
        match self.transcripts.get(fetch).await {
            FetchOutcome::SupplyFailed(failure) => (failure, calls(&self.first), calls(&self.second)),
            other => panic!("{other:?}"),
        }
    }
}

#[tokio::test(start_paused = true)]
async fn supplier_timeout_after_short_remainder_keeps_breaker_closed() {
    let none = SupplyError::new(SupplyReason::NoCaptions, "None.");
    let slow = SupplyError::new(SupplyReason::Timeout, "It took too long.");
    let late = fixture(80, none.clone(), slow.clone());
    for number in 1..=3 {
        let (failure, _, calls) = late.fetch_failure(number).await;
        assert_eq!((failure.reason(), calls), (&SupplyReason::Timeout, number));
    }
    // With enough time the timeout opens the breaker.
    let early = fixture(10, none, slow);
    early.fetch_failure(1).await;
    let (failure, first, second) = early.fetch_failure(2).await;
    assert!(failure.message().contains("is paused"), "{failure}");
    assert_eq!((first, second), (2, 1));
}

#[tokio::test(start_paused = true)]
async fn supplier_failure_calls_next_supplier_unless_final() {
    for (reason, next) in [(SupplyReason::PlatformFault, 1), (SupplyReason::Removed, 0)] {
        let failure = SupplyError::new(reason.clone(), "It failed.").ambiguous();
        let both = fixture(10, failure, SupplyError::new(SupplyReason::NoCaptions, "None."));
        let (failure, first, second) = both.fetch_failure(1).await;
        assert_eq!((failure.reason(), first, second), (&reason, 1, next));
    }
}

#[tokio::test(start_paused = true)]
async fn speech_in_known_other_language_is_not_called() {
    let track = |tag: &str, original| {
        let info = TrackInfo::new(LanguageTag::from_canonical(tag), TrackKind::Generated);
        TrackInfo { original, ..info }
    };
    let german = TrackSelector::Language(LanguageTag::from_canonical("de"));
    for (tracks, selector, calls) in [
        (vec![track("en", true)], german.clone(), 0),
        (vec![track("fr", false), track("en", true)], german.clone(), 0),
        (vec![track("en", false)], german.clone(), 1),
        (vec![track("de-AT", true)], german.clone(), 1),
        (vec![track("en", true), track("de", true)], german.clone(), 1),
        (vec![track("und", true)], german, 1),
        (vec![track("en", true)], TrackSelector::Default, 1),
    ] {
        let known = SupplyError::new(SupplyReason::NoLanguage(tracks.clone()), "There is no such language.");
        let both = fixture(10, known, SupplyError::new(SupplyReason::NoCaptions, "None."));
        let (failure, first, second) = both.fetch_failure_for(1, selector.clone()).await;
        assert_eq!((failure.reason().as_str(), first, second), ("no_language", 1, calls), "{tracks:?}");
        // The absence is valid for both suppliers.
        let video = VideoId::new(Platform::YouTube, "video-00001").unwrap();
        let fetch = FetchRequest { video, selector, payer: None };
        assert!(matches!(both.transcripts.get(fetch).await, FetchOutcome::Absent(_)), "{tracks:?}");
    }
}

#[tokio::test(start_paused = true)]
async fn fetch_deadline_without_attempt_is_not_attempted() {
    let skipped = SupplyError::before_request(SupplyReason::NoCaptions, "It is paused.");
    let late = fixture(100, skipped.clone(), skipped);
    let (failure, first, second) = late.fetch_failure(1).await;
    assert_eq!((failure.reason(), first, second), (&SupplyReason::Timeout, 1, 0));
    assert!(!failure.was_attempted());
    let attempted = SupplyError::new(SupplyReason::NoCaptions, "None.");
    let (failure, _, second) = fixture(100, attempted.clone(), attempted).fetch_failure(1).await;
    assert!(failure.was_attempted() && second == 0);
}

/// A store whose reads take a millisecond, as those of a server do.
#[derive(Debug, Default)]
struct SlowStore(Mutex<BTreeMap<String, Vec<u8>>>);

#[async_trait]
impl KeyValueStore for SlowStore {
    async fn get(&self, key: &str) -> Result<Option<Vec<u8>>> {
        tokio::time::sleep(Duration::from_millis(1)).await;
        Ok(self.0.lock().unwrap().get(key).cloned())
    }

    async fn write(&self, changes: Vec<KeyValueChange>) -> Result<()> {
        let mut map = self.0.lock().unwrap();
        for KeyValueChange { key, value } in changes {
            match value {
                Some(value) => map.insert(key, value),
                None => map.remove(&key),
            };
        }
        Ok(())
    }

    async fn list(&self, prefix: &str, after: &str, limit: usize) -> Result<Vec<(String, Vec<u8>)>> {
        let map = self.0.lock().unwrap();
        let keys = map.iter().filter(|(key, _)| key.starts_with(prefix) && key.as_str() > after);
        Ok(keys.take(limit).map(|(key, value)| (key.clone(), value.clone())).collect())
    }
}

/// Takes 30 seconds for a transcript. After the first one, the clock steps forward by 20.
#[derive(Debug)]
struct SteppingSupplier(Arc<ManualClock>);

#[async_trait]
impl Supplier for SteppingSupplier {
    fn info(&self) -> SupplierInfo {
        SupplierInfo::captions("words", &[Platform::YouTube])
    }

    async fn supply(&self, _: SupplyRequest, _: Arc<dyn SupplyMonitor>) -> Result<SupplyOutput, SupplyError> {
        tokio::time::sleep(Duration::from_secs(1)).await;
        self.0.advance(Duration::from_secs(20));
        tokio::time::sleep(Duration::from_secs(29)).await;
        Ok(SupplyOutput { transcripts: vec![transcript("words")], ..SupplyOutput::default() })
    }
}

#[tokio::test(start_paused = true)]
async fn fetch_after_clock_step_is_cancelled_only_if_lease_was_taken() {
    for is_taken in [false, true] {
        let clock = Arc::new(ManualClock::default());
        let archive = Arc::new(KeyValueArchive::new(Arc::new(SlowStore::default())));
        let random = Arc::new(SequentialRandom::default());
        let options = EngineOptions { wait_timeout: Duration::from_secs(60), ..EngineOptions::default() };
        let transcripts = Transcripts::builder(
            Arc::clone(&archive) as _,
            Arc::clone(&clock) as _,
            random,
            Handle::current(),
        )
        .options(options)
        .supplier(Platform::YouTube, Arc::new(SteppingSupplier(Arc::clone(&clock))))
        .build();
        let other_worker = async {
            tokio::time::sleep(Duration::from_secs(2)).await;
            let now = clock.now();
            let (holder, until) = (Holder::new("another worker"), now.plus(Duration::from_secs(15)));
            let lease = FetchLease { video: video(), selector: TrackSelector::Default, holder, now, until };
            if is_taken {
                assert_eq!(archive.acquire_lease(lease).await.unwrap(), LeaseOutcome::Acquired);
            }
        };
        let fetch = FetchRequest { video: video(), selector: TrackSelector::Default, payer: None };
        let (outcome, ()) = tokio::join!(transcripts.get(fetch), other_worker);
        match outcome {
            FetchOutcome::Fetched(_) => assert!(!is_taken, "two workers fetched the video"),
            FetchOutcome::SupplyFailed(failure) => {
                assert!(is_taken && *failure.reason() == SupplyReason::Cancelled, "{failure}");
            }
            other => panic!("{other:?}"),
        }
    }
}
