//! Suppliers whose turn comes when others have used up the time.

use std::{
    sync::{
        Mutex,
        atomic::{AtomicU32, AtomicU64, Ordering},
    },
    time::Duration,
};

use async_trait::async_trait;

use super::*;
use crate::{
    memory::MemoryArchive,
    supplier::{Ask, Supplied, Supplier, SupplierCard, SupplierKind, Watcher},
    time::Timestamp,
};

/// A clock that suppliers set forward.
#[derive(Debug, Default)]
struct Hands(AtomicU64);

impl Clock for Hands {
    fn now(&self) -> Timestamp {
        Timestamp::from_millis(0).plus(Duration::from_millis(self.0.load(Ordering::Relaxed)))
    }
}

/// Counts up, so that every name is fresh.
#[derive(Debug, Default)]
struct Counting(AtomicU32);

impl Random for Counting {
    fn bytes(&self, count: u32) -> Vec<u8> {
        let number = self.0.fetch_add(1, Ordering::Relaxed).to_be_bytes();
        number.into_iter().cycle().take(count as usize).collect()
    }
}

/// Takes so long, and fails.
#[derive(Debug)]
struct Failing {
    name: &'static str,
    takes: Duration,
    clock: Arc<Hands>,
    failure: Mutex<SupplyError>,
    asked: AtomicU32,
}

#[async_trait]
impl Supplier for Failing {
    fn card(&self) -> SupplierCard {
        let platforms = vec![Platform::VideoSite];
        SupplierCard { name: self.name.to_owned(), platforms, kind: SupplierKind::Captions }
    }

    async fn supply(&self, _: Ask, _: Arc<dyn Watcher>) -> Result<Supplied, SupplyError> {
        self.asked.fetch_add(1, Ordering::Relaxed);
        self.clock.0.fetch_add(u64::try_from(self.takes.as_millis()).unwrap(), Ordering::Relaxed);
        Err(self.failure.lock().unwrap().clone())
    }
}

struct Pair {
    first: Arc<Failing>,
    second: Arc<Failing>,
    transcripts: Transcripts,
}

/// Two suppliers, of which the first takes this part of the time in percent. One failure begins a long rest.
fn pair(percent: u32, first: SupplyError, second: SupplyError) -> Pair {
    let clock = Arc::new(Hands::default());
    let long = Duration::from_secs(24 * 3_600);
    let health = HealthPolicy { failures: 1, rest: long, rest_max: long };
    let options = EngineOptions { health, ..EngineOptions::default() };
    let of = |name, takes, failure| {
        let (clock, failure) = (Arc::clone(&clock), Mutex::new(failure));
        Arc::new(Failing { name, takes, clock, failure, asked: AtomicU32::new(0) })
    };
    let first = of("first", options.work * percent / 100, first);
    let second = of("second", Duration::ZERO, second);
    let random = Arc::new(Counting::default());
    let archive = Arc::new(MemoryArchive::default());
    let transcripts = Transcripts::builder(archive, Arc::clone(&clock) as _, random, Handle::current())
        .options(options)
        .supplier(Platform::VideoSite, Arc::clone(&first) as _)
        .supplier(Platform::VideoSite, Arc::clone(&second) as _)
        .build();
    Pair { first, second, transcripts }
}

impl Pair {
    /// What is told of a video, and how often the two were asked until then.
    async fn fails(&self, number: u32) -> (SupplyError, u32, u32) {
        let video = VideoId::new(Platform::VideoSite, &format!("video-{number:05}")).unwrap();
        let fetch = Fetch { video, wish: Wish::Default, payment: None };
        let asked = |supplier: &Failing| supplier.asked.load(Ordering::Relaxed);
        match self.transcripts.get(fetch).await {
            Outcome::Failed(failure) => (failure, asked(&self.first), asked(&self.second)),
            other => panic!("{other:?}"),
        }
    }
}

#[tokio::test(start_paused = true)]
async fn who_had_hardly_any_time_left_does_not_rest_for_it() {
    let none = SupplyError::new(SupplyReason::NoCaptions, "None.");
    let slow = SupplyError::new(SupplyReason::Timeout, "It took too long.");
    let late = pair(80, none.clone(), slow.clone());
    for number in 1..=3 {
        let (failure, _, asked) = late.fails(number).await;
        assert_eq!((failure.reason(), asked), (&SupplyReason::Timeout, number));
    }
    // Who had the time rests.
    let early = pair(10, none, slow);
    early.fails(1).await;
    let (failure, first, second) = early.fails(2).await;
    assert!(failure.message().contains("left alone"), "{failure}");
    assert_eq!((first, second), (2, 1));
}

#[tokio::test(start_paused = true)]
async fn what_nobody_was_asked_for_is_told_as_such_when_the_time_is_over() {
    let alone = SupplyError::unasked(SupplyReason::NoCaptions, "It is left alone.");
    let late = pair(100, alone.clone(), alone);
    let (failure, first, second) = late.fails(1).await;
    assert_eq!((failure.reason(), first, second), (&SupplyReason::Timeout, 1, 0));
    assert!(!failure.was_asked());
    let asked = SupplyError::new(SupplyReason::NoCaptions, "None.");
    let (failure, _, second) = pair(100, asked.clone(), asked).fails(1).await;
    assert!(failure.was_asked() && second == 0);
}
