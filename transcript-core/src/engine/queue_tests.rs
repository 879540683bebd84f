//! Tests of fetches that wait for a supplier: fair turns, the bound, and payments of refused fetches.

use std::{
    any::Any,
    sync::{
        Mutex,
        atomic::{AtomicBool, AtomicU64, Ordering},
    },
    time::Duration,
};

use async_trait::async_trait;
use tokio::task::JoinHandle;

use super::*;
use crate::{
    ids::{AccountId, KeyId},
    memory::MemoryArchive,
    supplier::{Supplier, SupplierInfo, SupplyMonitor, SupplyOutput, SupplyRequest},
    test_doubles::{ManualClock, SequentialRandom},
};

/// Finds no captions after a second, and records the order of the videos.
#[derive(Debug)]
struct SlowSupplier {
    name: &'static str,
    calls: Mutex<Vec<String>>,
}

#[async_trait]
impl Supplier for SlowSupplier {
    fn info(&self) -> SupplierInfo {
        SupplierInfo::captions(self.name, &[Platform::YouTube])
    }

    async fn supply(
        &self,
        request: SupplyRequest,
        _: Arc<dyn SupplyMonitor>,
    ) -> Result<SupplyOutput, SupplyError> {
        self.calls.lock().unwrap().push(request.video.id().to_owned());
        tokio::time::sleep(Duration::from_secs(1)).await;
        Err(SupplyError::new(SupplyReason::NoCaptions, "None."))
    }
}

/// Counts the payments that it holds, and those that ended without an attempt.
#[derive(Debug)]
struct CountingPayer {
    owner: QueueOwner,
    held: AtomicU64,
    returned: Arc<AtomicU64>,
    attempted: Arc<AtomicU64>,
}

#[derive(Debug)]
struct CountedPayment {
    returned: Arc<AtomicU64>,
    attempted: Arc<AtomicU64>,
}

#[async_trait]
impl Payer for CountingPayer {
    async fn hold(&self) -> Result<PaymentHold> {
        self.held.fetch_add(1, Ordering::Relaxed);
        let (returned, attempted) = (Arc::clone(&self.returned), Arc::clone(&self.attempted));
        Ok(PaymentHold::Held(Box::new(CountedPayment { returned, attempted })))
    }

    fn queue_owner(&self) -> QueueOwner {
        self.owner.clone()
    }
}

#[async_trait]
impl HeldPayment for CountedPayment {
    async fn end(self: Box<Self>, result: WorkResult) {
        let count = if result == WorkResult::NotAttempted { &self.returned } else { &self.attempted };
        count.fetch_add(1, Ordering::Relaxed);
    }
}

fn account(name: &str) -> Arc<CountingPayer> {
    payer(QueueOwner { id: QueueOwnerId::Account(AccountId::new(name)), pays: true })
}

fn free_key(name: &str) -> Arc<CountingPayer> {
    payer(QueueOwner { id: QueueOwnerId::Key(KeyId::new(name)), pays: false })
}

fn payer(owner: QueueOwner) -> Arc<CountingPayer> {
    let (held, returned, attempted) = (AtomicU64::new(0), Arc::default(), Arc::default());
    Arc::new(CountingPayer { owner, held, returned, attempted })
}

impl CountingPayer {
    /// Payments that were held, that ended without an attempt, and that ended after one.
    fn counts(&self) -> (u64, u64, u64) {
        let [held, returned, attempted] =
            [&self.held, &self.returned, &self.attempted].map(|count| count.load(Ordering::Relaxed));
        (held, returned, attempted)
    }
}

/// An engine whose suppliers work on one video each.
struct QueueFixture {
    suppliers: Vec<Arc<SlowSupplier>>,
    transcripts: Transcripts,
}

fn fixture(names: &[&'static str], waiting_fetches: u32) -> QueueFixture {
    let breaker = BreakerPolicy { failures: 0, ..BreakerPolicy::default() };
    let wait_timeout = Duration::from_secs(600);
    let options = EngineOptions { waiting_fetches, breaker, wait_timeout, ..EngineOptions::default() };
    let (clock, random) = (Arc::new(ManualClock::default()), Arc::new(SequentialRandom::default()));
    let archive = Arc::new(MemoryArchive::default());
    let mut builder = Transcripts::builder(archive, clock, random, Handle::current()).options(options);
    let mut suppliers = Vec::new();
    for name in names {
        let supplier = Arc::new(SlowSupplier { name, calls: Mutex::default() });
        builder = builder.supplier(Platform::YouTube, Arc::clone(&supplier) as _).concurrency(name, 1);
        suppliers.push(supplier);
    }
    QueueFixture { suppliers, transcripts: builder.build() }
}

impl QueueFixture {
    /// Starts a fetch, and lets it reach the queue.
    async fn start<P: Payer + 'static>(&self, video: &str, payer: &Arc<P>) -> JoinHandle<FetchOutcome> {
        let (transcripts, payer) = (self.transcripts.clone(), Some(Arc::clone(payer) as Arc<dyn Payer>));
        let video = VideoId::new(Platform::YouTube, video).unwrap();
        let fetch = FetchRequest { video, selector: TrackSelector::Default, payer };
        let started = tokio::spawn(async move { transcripts.get(fetch).await });
        tokio::time::sleep(Duration::from_micros(100)).await;
        started
    }

    fn calls(&self) -> Vec<String> {
        self.suppliers[0].calls.lock().unwrap().clone()
    }

    fn refused(&self) -> u64 {
        self.transcripts.load().suppliers.iter().map(|load| load.refused).sum()
    }
}

fn is_busy(outcome: &FetchOutcome) -> bool {
    matches!(outcome, FetchOutcome::Busy(_))
}

#[tokio::test(start_paused = true)]
async fn queue_of_one_owner_delays_other_by_one_turn() {
    let fixture = fixture(&["captions"], 1_000);
    let (many, one) = (account("many"), account("one"));
    let mut started = Vec::new();
    for number in 0..200 {
        started.push(fixture.start(&format!("many-{number:06}"), &many).await);
    }
    let single = fixture.start("single-0000", &one).await;
    assert!(matches!(single.await.unwrap(), FetchOutcome::SupplyFailed(_)));
    // The first was running, the second had the turn before.
    assert_eq!(fixture.calls()[..3], ["many-000000", "many-000001", "single-0000"]);
    for fetch in started {
        assert!(matches!(fetch.await.unwrap(), FetchOutcome::SupplyFailed(_)));
    }
    assert_eq!((fixture.calls().len(), fixture.refused()), (201, 0));
    assert_eq!(many.counts(), (200, 0, 200));
}

#[tokio::test(start_paused = true)]
async fn queue_full_refuses_fetch_without_charge() {
    let fixture = fixture(&["captions"], 2);
    let (many, other) = (account("many"), account("other"));
    let mut started = Vec::new();
    for number in 0..3 {
        started.push(fixture.start(&format!("many-{number:06}"), &many).await);
    }
    let refused = fixture.start("refused-000", &many).await;
    // It does not wait for a turn.
    let outcome = tokio::time::timeout(Duration::from_millis(1), refused).await.unwrap().unwrap();
    assert!(is_busy(&outcome), "{outcome:?}");
    assert_eq!((many.counts(), fixture.refused()), ((3, 0, 0), 1));
    // The place goes to an owner that has none.
    let single = fixture.start("single-0000", &other).await;
    let last = started.pop().unwrap();
    let outcome = tokio::time::timeout(Duration::from_millis(1), last).await.unwrap().unwrap();
    assert!(is_busy(&outcome), "{outcome:?}");
    assert_eq!((many.counts(), fixture.refused()), ((3, 1, 0), 2));
    started.push(single);
    for fetch in started {
        assert!(matches!(fetch.await.unwrap(), FetchOutcome::SupplyFailed(_)));
    }
    assert_eq!(fixture.calls(), ["many-000000", "many-000001", "single-0000"]);
    assert_eq!((many.counts(), other.counts()), ((3, 1, 2), (1, 0, 1)));
    // The refused video can be fetched later.
    let again = fixture.start("refused-000", &many).await;
    assert!(matches!(again.await.unwrap(), FetchOutcome::SupplyFailed(_)));
}

#[tokio::test(start_paused = true)]
async fn queue_full_gives_next_waiter_of_refused_flight_its_turn() {
    let fixture = fixture(&["captions"], 2);
    let (free, other, paying) = (free_key("free"), free_key("other"), account("paying"));
    let running = fixture.start("running-000", &paying).await;
    let older = fixture.start("older-00000", &other).await;
    let shared = fixture.start("shared-0000", &free).await;
    let joined = fixture.start("shared-0000", &paying).await;
    // It takes the newest place of a free owner; then the next waiter of that flight takes the other one.
    let newcomer = fixture.start("newcomer-00", &account("newcomer")).await;
    assert!(is_busy(&shared.await.unwrap()) && is_busy(&older.await.unwrap()));
    for fetch in [running, newcomer, joined] {
        assert!(matches!(fetch.await.unwrap(), FetchOutcome::SupplyFailed(_)));
    }
    assert_eq!(fixture.calls(), ["running-000", "newcomer-00", "shared-0000"]);
    assert_eq!((free.counts(), other.counts(), paying.counts()), ((1, 1, 0), (1, 1, 0), (2, 0, 2)));
}

#[tokio::test(start_paused = true)]
async fn queue_full_retry_time_follows_depth_and_duration() {
    let retry_after = |outcome: FetchOutcome| match outcome {
        FetchOutcome::Busy(retry_after) => retry_after.as_secs(),
        outcome => panic!("{outcome:?}"),
    };
    for (waiting, expected) in [(2, 3), (9, 10), (400, 120)] {
        let fixture = fixture(&["captions"], waiting);
        let many = account("many");
        let mut started = Vec::new();
        for number in 0..=waiting {
            started.push(fixture.start(&format!("many-{number:06}"), &many).await);
        }
        // No call has ended, so their duration is unknown.
        assert_eq!(retry_after(fixture.start("refused-000", &many).await.await.unwrap()), 10);
        // The first call takes a second, and another fetch gets the free place.
        started.remove(0).await.unwrap();
        started.push(fixture.start("next-000000", &many).await);
        assert_eq!(retry_after(fixture.start("refused-000", &many).await.await.unwrap()), expected);
    }
}

/// Overload does not move to the next supplier, which is slower or costs more.
#[tokio::test(start_paused = true)]
async fn queue_full_does_not_call_next_supplier() {
    let fixture = fixture(&["captions", "speech"], 1);
    let many = account("many");
    let mut started = Vec::new();
    for number in 0..3 {
        started.push(fixture.start(&format!("many-{number:06}"), &many).await);
    }
    assert!(is_busy(&started.pop().unwrap().await.unwrap()));
    for fetch in started {
        assert!(matches!(fetch.await.unwrap(), FetchOutcome::SupplyFailed(_)));
    }
    assert_eq!(fixture.suppliers[1].calls.lock().unwrap().len(), 2);
}

#[tokio::test(start_paused = true)]
async fn queue_of_fetches_without_payer_has_one_owner() {
    let owner = QueueOwner::for_payer(None);
    assert_eq!(owner, QueueOwner { id: QueueOwnerId::System, pays: false });
    let paying = account("paying");
    assert_eq!(QueueOwner::for_payer(Some(paying.as_ref())), paying.owner);
}

/// Is slow to hold, and cannot pay while its allowance is spent.
#[derive(Debug)]
struct SpentPayer {
    payment: Option<&'static str>,
    is_spent: AtomicBool,
    holds: AtomicU64,
    paid: Arc<CountingPayer>,
}

fn spent(payment: Option<&'static str>) -> Arc<SpentPayer> {
    let (is_spent, holds, paid) = (AtomicBool::new(true), AtomicU64::new(0), free_key("spent"));
    Arc::new(SpentPayer { payment, is_spent, holds, paid })
}

#[async_trait]
impl Payer for SpentPayer {
    async fn hold(&self) -> Result<PaymentHold> {
        self.holds.fetch_add(1, Ordering::Relaxed);
        let is_spent = self.is_spent.load(Ordering::Relaxed);
        tokio::time::sleep(Duration::from_millis(10)).await;
        if is_spent {
            return Ok(PaymentHold::Refused(NoTranscript::new(FailureReason::KeyAllowance, "Spent.")));
        }
        self.paid.hold().await
    }

    fn queue_owner(&self) -> QueueOwner {
        self.paid.queue_owner()
    }

    fn has_same_payment(&self, other: &dyn Payer) -> bool {
        let other = (other as &dyn Any).downcast_ref::<Self>();
        self.payment.is_some() && other.is_some_and(|other| other.payment == self.payment)
    }
}

#[tokio::test(start_paused = true)]
async fn flight_refused_payment_costs_one_turn_of_its_line() {
    let fixture = fixture(&["captions"], 1_000);
    let (refused, other) = (spent(Some("key")), spent(None));
    let mut started = Vec::new();
    for number in 0..2_000 {
        started.push(fixture.start("shared-0000", &refused).await);
        if number % 1_000 == 0 {
            started.push(fixture.start("shared-0000", &other).await);
        }
    }
    let paying = fixture.start("shared-0000", &account("paying")).await;
    let outcome = tokio::time::timeout(Duration::from_secs(5), paying).await.unwrap().unwrap();
    assert!(matches!(outcome, FetchOutcome::SupplyFailed(_)), "{outcome:?}");
    for fetch in started {
        let outcome = fetch.await.unwrap();
        assert!(matches!(outcome, FetchOutcome::Refused(_)), "{outcome:?}");
    }
    // A payment that is like no other has its own turns.
    assert_eq!(other.holds.load(Ordering::Relaxed), 2);
    let holds = refused.holds.load(Ordering::Relaxed);
    assert!(holds < 500, "{holds}");
}

#[tokio::test(start_paused = true)]
async fn flight_payment_raised_during_refused_hold_pays() {
    let fixture = fixture(&["captions"], 1_000);
    let payer = spent(Some("key"));
    let first = fixture.start("shared-0000", &payer).await;
    payer.is_spent.store(false, Ordering::Relaxed);
    let retry = fixture.start("shared-0000", &payer).await;
    assert!(matches!(first.await.unwrap(), FetchOutcome::Refused(_)));
    assert!(matches!(retry.await.unwrap(), FetchOutcome::SupplyFailed(_)));
    assert_eq!((payer.holds.load(Ordering::Relaxed), payer.paid.counts()), (2, (1, 0, 1)));
}
