use std::{
    collections::VecDeque,
    sync::{
        Mutex,
        atomic::{AtomicBool, Ordering},
    },
};

use async_trait::async_trait;
use tokio::runtime::Handle;

use super::*;
use crate::{
    error::Error,
    failure_log::tests::WarningCounter,
    ids::WalletId,
    ledger::{GrantRequest, Leg, Pool, Terms},
    memory::MemoryLedger,
    retry::deadline_after,
    test_doubles::PausedClock,
};

/// A ledger that can be unavailable or silent, and records its calls.
#[derive(Debug, Default)]
struct FaultyLedger {
    inner: MemoryLedger,
    is_down: AtomicBool,
    is_silent: AtomicBool,
    /// The errors of the next calls.
    failures: Mutex<VecDeque<Error>>,
    calls: Mutex<Vec<&'static str>>,
}

impl FaultyLedger {
    async fn enter(&self, call: &'static str) -> Result<()> {
        self.calls.lock().unwrap().push(call);
        if self.is_silent.load(Ordering::Relaxed) {
            std::future::pending::<()>().await;
        }
        if let Some(failure) = self.failures.lock().unwrap().pop_front() {
            return Err(failure);
        }
        match self.is_down.load(Ordering::Relaxed) {
            true => Err(Error::unavailable("the ledger is down")),
            false => Ok(()),
        }
    }

    fn calls(&self, call: &str) -> usize {
        self.calls.lock().unwrap().iter().filter(|made| **made == call).count()
    }
}

#[async_trait]
impl crate::test_doubles::LedgerWrapper for FaultyLedger {
    fn inner(&self) -> &dyn Ledger {
        &self.inner
    }

    async fn hold(&self, request: HoldRequest) -> Result<HoldOutcome> {
        self.enter("hold").await?;
        self.inner.hold(request).await
    }

    async fn spend(&self, request: HoldRequest) -> Result<HoldOutcome> {
        self.enter("spend").await?;
        self.inner.spend(request).await
    }

    async fn extend(&self, id: &HoldId, expires_at: Timestamp) -> Result<HoldState> {
        self.enter("extend").await?;
        self.inner.extend(id, expires_at).await
    }

    async fn settle(&self, request: SettleRequest) -> Result<SettleOutcome> {
        self.enter("settle").await?;
        self.inner.settle(request).await
    }
}

struct HoldFixture {
    ledger: Arc<FaultyLedger>,
    manager: HoldManager,
    clock: Arc<PausedClock>,
}

impl HoldFixture {
    /// A wallet with 10 credits.
    async fn new() -> Self {
        let clock = Arc::new(PausedClock::new(Timestamp::from_millis(1_000_000)));
        let ledger = Arc::new(FaultyLedger::default());
        let grant = GrantRequest {
            id: crate::ids::GrantId::new("g"),
            wallet: WalletId::new("w"),
            amount: 10,
            now: clock.now(),
            memo: String::new(),
        };
        let _ = ledger.grant(grant).await.unwrap();
        let times = HoldTimes {
            lifetime: Duration::from_secs(60),
            heartbeat: Duration::from_secs(20),
            store_timeout: Duration::from_secs(5),
        };
        let tasks = BackgroundTasks::new(Handle::current());
        let manager =
            HoldManager::new(&(Arc::clone(&ledger) as _), &(Arc::clone(&clock) as _), times, &tasks);
        Self { ledger, manager, clock }
    }

    fn request(&self, amount: u64) -> HoldRequest {
        let (now, leg) = (self.clock.now(), Leg { wallet: WalletId::new("w"), terms: terms(), amount });
        let expires_at = self.manager.expires_at(now);
        HoldRequest { id: HoldId::new("h"), legs: vec![leg], now, expires_at, memo: String::new() }
    }

    async fn hold(&self, amount: u64) -> Box<HoldGuard> {
        match self.manager.hold(self.request(amount)).await.unwrap() {
            HoldResult::Held(guard) => guard,
            HoldResult::Refused(outcome) => panic!("{outcome:?}"),
        }
    }

    /// The credits available, held and spent.
    async fn credits(&self) -> [u64; 3] {
        let balance = self.ledger.balance(&WalletId::new("w"), &terms()).await.unwrap();
        [balance.available(), balance.pools[0].held, balance.pools[0].spent]
    }
}

fn terms() -> Terms {
    Terms { pools: vec![Pool::Purchased], resets_at: None }
}

#[tokio::test(start_paused = true)]
async fn hold_guard_extends_hold_until_it_ends() {
    let fixture = HoldFixture::new().await;
    let guard = fixture.hold(3).await;
    tokio::time::sleep(Duration::from_secs(50)).await;
    // A failed extension is repeated soon.
    fixture.ledger.is_down.store(true, Ordering::Relaxed);
    tokio::time::sleep(Duration::from_secs(19)).await;
    fixture.ledger.is_down.store(false, Ordering::Relaxed);
    tokio::time::sleep(Duration::from_secs(3_600)).await;
    assert_eq!(fixture.ledger.expire(fixture.clock.now(), 10).await.unwrap(), 0);
    assert_eq!(fixture.credits().await, [7, 3, 0]);
    guard.settle(vec![2]).await;
    assert_eq!(fixture.credits().await, [8, 0, 2]);
    let extensions = fixture.ledger.calls("extend");
    tokio::time::sleep(Duration::from_secs(3_600)).await;
    assert_eq!((extensions, fixture.ledger.calls("extend")), (187, 187));
    // A settled hold is not released again.
    assert_eq!(fixture.ledger.calls("settle"), 1);
}

#[tokio::test(start_paused = true)]
async fn hold_guard_opened_returns_balances_after_hold() {
    let fixture = HoldFixture::new().await;
    let request = fixture.request(3);
    let mut guard = fixture.manager.prepare(&request);
    let balances = guard.open(&request).await.unwrap().unwrap();
    assert_eq!(balances[0].available(), 7);
    guard.release().await;
    assert_eq!(fixture.credits().await, [10, 0, 0]);
}

#[tokio::test(start_paused = true)]
async fn hold_guard_released_while_unconfirmed_releases_hold_once() {
    let fixture = HoldFixture::new().await;
    let request = fixture.request(3);
    let mut guard = fixture.manager.prepare(&request);
    fixture.ledger.is_silent.store(true, Ordering::Relaxed);
    tokio::time::timeout(Duration::from_secs(1), guard.open(&request)).await.unwrap_err();
    let _ = fixture.ledger.inner.hold(request).await.unwrap();
    fixture.ledger.is_silent.store(false, Ordering::Relaxed);
    guard.release().await;
    assert_eq!(fixture.credits().await, [10, 0, 0]);
    fixture.manager.0.tasks.wait_until_idle().await;
    assert_eq!(fixture.ledger.calls("settle"), 1);
}

#[tokio::test(start_paused = true)]
async fn hold_guard_released_before_ledger_opens_hold_releases_it() {
    let fixture = HoldFixture::new().await;
    let request = fixture.request(3);
    let mut guard = fixture.manager.prepare(&request);
    fixture.ledger.is_silent.store(true, Ordering::Relaxed);
    tokio::time::timeout(Duration::from_secs(1), guard.open(&request)).await.unwrap_err();
    fixture.ledger.is_silent.store(false, Ordering::Relaxed);
    guard.release().await;
    assert!(matches!(fixture.ledger.inner.hold(request).await.unwrap(), HoldOutcome::Held { .. }));
    fixture.manager.0.tasks.wait_until_idle().await;
    assert_eq!(fixture.credits().await, [10, 0, 0]);
}

#[tokio::test(start_paused = true)]
async fn hold_guard_dropped_releases_hold() {
    let fixture = HoldFixture::new().await;
    drop(fixture.hold(3).await);
    fixture.manager.0.tasks.wait_until_idle().await;
    assert_eq!(fixture.credits().await, [10, 0, 0]);
}

#[tokio::test(start_paused = true)]
async fn hold_guard_settle_persists_while_ledger_is_down() {
    let fixture = HoldFixture::new().await;
    let guard = fixture.hold(3).await;
    fixture.ledger.is_down.store(true, Ordering::Relaxed);
    let started = deadline_after(Duration::ZERO);
    guard.settle_in_full().await;
    assert!(started.elapsed() <= Duration::from_secs(5), "{:?}", started.elapsed());
    tokio::time::sleep(Duration::from_secs(40)).await;
    fixture.ledger.is_down.store(false, Ordering::Relaxed);
    fixture.manager.0.tasks.wait_until_idle().await;
    assert_eq!(fixture.credits().await, [7, 0, 3]);
    // A ledger that stays away is given up once the hold has expired.
    let again = HoldRequest { id: HoldId::new("h2"), ..fixture.request(1) };
    let HoldResult::Held(guard) = fixture.manager.hold(again).await.unwrap() else { panic!() };
    fixture.ledger.is_down.store(true, Ordering::Relaxed);
    guard.settle_in_full().await;
    fixture.manager.0.tasks.wait_until_idle().await;
    assert!(started.elapsed() <= Duration::from_secs(120), "{:?}", started.elapsed());
    assert_eq!(fixture.ledger.expire(fixture.clock.now(), 10).await.unwrap(), 1);
    assert_eq!(fixture.credits().await, [7, 0, 3]);
}

#[tokio::test(start_paused = true)]
async fn hold_guard_settle_dropped_midway_is_completed() {
    let fixture = HoldFixture::new().await;
    let guard = fixture.hold(3).await;
    fixture.ledger.is_silent.store(true, Ordering::Relaxed);
    drop(tokio::time::timeout(Duration::from_secs(1), guard.settle(vec![1])).await);
    fixture.ledger.is_silent.store(false, Ordering::Relaxed);
    fixture.manager.0.tasks.wait_until_idle().await;
    assert_eq!(fixture.credits().await, [9, 0, 1]);
}

#[tokio::test(start_paused = true)]
async fn hold_of_unknown_outcome_is_released() {
    let fixture = HoldFixture::new().await;
    // Dropped while the ledger is silent, which opens the hold only after its first release.
    let late = HoldRequest { id: HoldId::new("late"), ..fixture.request(3) };
    fixture.ledger.is_silent.store(true, Ordering::Relaxed);
    drop(tokio::time::timeout(Duration::from_secs(1), fixture.manager.hold(late.clone())).await);
    fixture.ledger.is_silent.store(false, Ordering::Relaxed);
    tokio::time::sleep(Duration::from_secs(1)).await;
    assert!(matches!(fixture.ledger.inner.hold(late).await.unwrap(), HoldOutcome::Held { .. }));
    fixture.manager.0.tasks.wait_until_idle().await;
    assert_eq!((fixture.ledger.calls("hold"), fixture.credits().await), (1, [10, 0, 0]));
    let settles = fixture.ledger.calls("settle");
    // Given up: the caller gets the error after both calls' timeouts. One release, so that callers of a ledger that is
    // down leave no work behind.
    fixture.ledger.is_down.store(true, Ordering::Relaxed);
    let started = deadline_after(Duration::ZERO);
    fixture.manager.hold(fixture.request(3)).await.unwrap_err();
    fixture.manager.0.tasks.wait_until_idle().await;
    assert!(started.elapsed() <= Duration::from_secs(10), "{:?}", started.elapsed());
    assert_eq!(fixture.ledger.calls("settle"), settles + 1);
    fixture.ledger.is_down.store(false, Ordering::Relaxed);
    assert_eq!(fixture.credits().await, [10, 0, 0]);
    // A refused hold has nothing to release.
    let settles = fixture.ledger.calls("settle");
    let refused = fixture.manager.hold(fixture.request(11)).await.unwrap();
    assert!(matches!(refused, HoldResult::Refused(HoldOutcome::Insufficient { .. })));
    fixture.manager.0.tasks.wait_until_idle().await;
    assert_eq!(fixture.ledger.calls("settle"), settles);
}

#[tokio::test(start_paused = true)]
async fn spend_without_confirmation_is_unknown() {
    let fixture = HoldFixture::new().await;
    let spent = fixture.manager.spend(&fixture.request(4)).await.unwrap();
    assert!(matches!(spent, SpendResult::Spent(balances) if balances[0].available() == 6));
    let refused = HoldRequest { id: HoldId::new("h2"), ..fixture.request(7) };
    let refused = fixture.manager.spend(&refused).await.unwrap();
    assert!(matches!(refused, SpendResult::Refused(HoldOutcome::Insufficient { .. })));
    fixture.ledger.is_down.store(true, Ordering::Relaxed);
    assert!(matches!(fixture.manager.spend(&fixture.request(1)).await.unwrap(), SpendResult::Unknown));
}

#[tokio::test(start_paused = true)]
async fn spend_is_unknown_only_if_try_may_have_effect() {
    let fixture = HoldFixture::new().await;
    let busy = || Error::unavailable("the ledger is busy");
    let damaged = || Error::new(ErrorKind::Corrupt, Retry::Never, "the ledger is damaged");
    let (undone_busy, undone) = (busy().without_effect(), damaged().without_effect());
    for (failures, is_unknown) in [
        (vec![undone.clone()], false),
        // More than the tries until the timeout.
        (vec![undone_busy.clone(); 30], false),
        (vec![undone_busy.clone(), undone.clone()], false),
        (vec![damaged()], true),
        (vec![busy(), undone], true),
        (vec![undone_busy.clone(), damaged()], true),
    ] {
        let case = format!("{failures:?}");
        *fixture.ledger.failures.lock().unwrap() = failures.into();
        match fixture.manager.spend(&fixture.request(1)).await {
            Ok(SpendResult::Unknown) => assert!(is_unknown, "{case}"),
            Ok(other) => panic!("{case}: {other:?}"),
            Err(error) => assert!(!is_unknown && error.has_no_effect(), "{case}: {error}"),
        }
    }
    // A refusal after a try that may have an effect is unknown as well.
    fixture.ledger.failures.lock().unwrap().push_back(busy());
    let refused = fixture.manager.spend(&fixture.request(11)).await;
    assert!(matches!(refused, Ok(SpendResult::Unknown)), "{refused:?}");
    assert_eq!(fixture.credits().await, [10, 0, 0]);
    // A failure without effect is retried, and the outcome is certain.
    fixture.ledger.failures.lock().unwrap().push_back(undone_busy.clone());
    let refused = fixture.manager.spend(&fixture.request(11)).await;
    assert!(matches!(refused, Ok(SpendResult::Refused(_))), "{refused:?}");
    fixture.ledger.failures.lock().unwrap().push_back(undone_busy);
    let spent = fixture.manager.spend(&fixture.request(1)).await;
    assert!(matches!(spent, Ok(SpendResult::Spent(_))), "{spent:?}");
    assert_eq!(fixture.credits().await, [9, 0, 1]);
}

#[tokio::test(start_paused = true)]
async fn hold_guard_outage_does_not_fill_log() {
    let fixture = HoldFixture::new().await;
    let guard = fixture.hold(3).await;
    let counter = WarningCounter::default();
    let warnings = Arc::clone(&counter.0);
    let _subscribed = tracing::subscriber::set_default(counter);
    fixture.ledger.is_down.store(true, Ordering::Relaxed);
    tokio::time::sleep(Duration::from_secs(70)).await;
    assert!(fixture.ledger.calls("extend") > 20, "{}", fixture.ledger.calls("extend"));
    assert!(warnings.load(Ordering::Relaxed) <= 1, "{warnings:?} lines about extensions");
    for _ in 0..20 {
        report_end(guard.id(), &[3], Err(Error::unavailable("the ledger is down")));
    }
    assert!(warnings.load(Ordering::Relaxed) <= 2, "{warnings:?} lines about extensions and settlements");
    warnings.store(0, Ordering::Relaxed);
    for _ in 0..8 {
        assert!(matches!(fixture.manager.spend(&fixture.request(1)).await, Ok(SpendResult::Unknown)));
    }
    // The time of these spends is less than a minute; extensions are logged each minute.
    assert!(warnings.load(Ordering::Relaxed) <= 3, "{warnings:?} lines about extensions and spends");
}
