use std::{
    sync::{
        Arc,
        atomic::{AtomicU32, Ordering},
    },
    time::Duration,
};

use async_trait::async_trait;
use tokio::time::Instant;
use transcript_core::{
    Error, Result, Timestamp,
    accounts::{
        Order, OrderItem, OrderState, OrderStore, PlanTable,
        payments::{
            CheckoutRequest, CheckoutSession, PaymentAmounts, PaymentDeps, PaymentProgress, PaymentProvider,
            PaymentSnapshot, PaymentState, ProviderObject, WebhookOutcome, WebhookRequest,
        },
    },
    ids::{AccountId, OrderId},
    memory::{MemoryDirectory, MemoryLedger, MemoryOrders, MemoryOutbox, MemoryRateLimiter},
    test_doubles::ManualClock,
};

use super::*;
use crate::{Options, PaymentOptions, Verbatim};

/// Response mode of the provider.
#[derive(Clone, Copy, Debug)]
enum ProviderMode {
    Open,
    Cancelled,
    Unavailable,
    Hanging,
    Panicking,
}

#[derive(Debug)]
struct FakeProvider {
    mode: ProviderMode,
    calls: Arc<AtomicU32>,
}

#[async_trait]
impl PaymentProvider for FakeProvider {
    async fn create_checkout(&self, _: CheckoutRequest) -> Result<CheckoutSession> {
        Err(Error::unavailable("create_checkout is unused"))
    }

    async fn parse_webhook(&self, _: WebhookRequest, _: Timestamp) -> Result<WebhookOutcome> {
        Err(Error::unavailable("parse_webhook is unused"))
    }

    async fn snapshots(&self, _: &ProviderObject) -> Result<Vec<PaymentSnapshot>> {
        self.calls.fetch_add(1, Ordering::SeqCst);
        let progress = match self.mode {
            ProviderMode::Open => PaymentProgress::Pending,
            ProviderMode::Cancelled => PaymentProgress::Ended,
            ProviderMode::Unavailable => return Err(Error::unavailable("unavailable")),
            ProviderMode::Hanging => std::future::pending().await,
            ProviderMode::Panicking => panic!("provider panic"),
        };
        let money = PaymentAmounts {
            amount_minor: 1_200,
            currency: "usd".to_owned(),
            paid_minor: 0,
            returned_minor: 0,
            disputed: false,
        };
        let order = OrderId::new("order");
        Ok(vec![PaymentSnapshot::Payment(PaymentState { order, session: None, progress, money })])
    }

    async fn cancel_at_period_end(&self, _: &str) -> Result<()> {
        Err(Error::unavailable("cancel_at_period_end is unused"))
    }

    async fn expire_checkout(&self, _: &str) -> Result<()> {
        Err(Error::unavailable("expire_checkout is unused"))
    }

    fn owns(&self, _: &str) -> bool {
        true
    }
}

/// Payments with one open order at a provider in this mode, with its call counter.
async fn payments(mode: ProviderMode) -> (Payments, Arc<AtomicU32>, Arc<MemoryOrders>) {
    payments_with_order_of(Timestamp::from_millis(0), mode).await
}

/// As [`payments`], with an order that was created at this time.
async fn payments_with_order_of(
    created_at: Timestamp,
    mode: ProviderMode,
) -> (Payments, Arc<AtomicU32>, Arc<MemoryOrders>) {
    let (calls, orders) = (Arc::new(AtomicU32::new(0)), Arc::new(MemoryOrders::default()));
    let order = Order {
        id: OrderId::new("order"),
        version: 1,
        account: AccountId::new("ann"),
        item: OrderItem::Pack("1k".to_owned()),
        credits: 1_000,
        amount_minor: 1_200,
        currency: "usd".to_owned(),
        state: OrderState::Open,
        payment: Some("cs_1".to_owned()),
        refunded_credits: Vec::new(),
        returned_minor: 0,
        paid_minor: None,
        language: None,
        created_at,
    };
    orders.open(order).await.unwrap();
    let parts = PaymentDeps {
        orders: Arc::clone(&orders) as _,
        directory: Arc::new(MemoryDirectory::default()),
        ledger: Arc::new(MemoryLedger::default()),
        outbox: Arc::new(MemoryOutbox::default()),
        limiter: Arc::new(MemoryRateLimiter::default()),
        provider: Some(Arc::new(FakeProvider { mode, calls: Arc::clone(&calls) })),
        // One hour after the order was created.
        clock: Arc::new(ManualClock::new(Timestamp::from_millis(3_600_000))),
        plans: PlanTable::default(),
    };
    (Payments::new(parts), calls, orders)
}

/// Number of provider calls within `seconds`; then the sweep is stopped immediately.
async fn calls_within(mode: ProviderMode, seconds: u64) -> u32 {
    let (payments, calls, _) = payments(mode).await;
    let sweep = start(payments);
    tokio::time::sleep(Duration::from_secs(seconds)).await;
    let count = calls.load(Ordering::SeqCst);
    let before = Instant::now();
    sweep.stop().await;
    assert_eq!(before.elapsed(), Duration::ZERO, "{mode:?}");
    tokio::time::sleep(3 * SWEEP_EVERY).await;
    assert_eq!(calls.load(Ordering::SeqCst), count, "{mode:?}: called after stop");
    count
}

/// Starts a sweep of payments that never change.
fn start(payments: Payments) -> JobHandle {
    super::start(&Handle::current(), watch::channel(payments).1, single_server())
}

/// A server with its own storage.
fn single_server() -> SweepLeader {
    let random = crate::SystemRandom::open().unwrap();
    SweepLeader { servers: ServerGroup::single_server(&random), clock: Arc::default() }
}

#[tokio::test(start_paused = true)]
async fn sweep_runs_at_once_and_every_half_hour() {
    assert_eq!(calls_within(ProviderMode::Open, 1).await, 1);
    assert_eq!(calls_within(ProviderMode::Open, 3_599).await, 2);
    assert_eq!(calls_within(ProviderMode::Open, 3_601).await, 3);
}

#[tokio::test(start_paused = true)]
async fn sweep_applies_provider_state() {
    let (payments, _, orders) = payments(ProviderMode::Cancelled).await;
    let sweep = start(payments);
    tokio::time::sleep(Duration::from_secs(1)).await;
    let order = orders.order(&OrderId::new("order")).await.unwrap().unwrap();
    assert_eq!(order.state, OrderState::Expired);
    sweep.stop().await;
}

#[tokio::test(start_paused = true)]
async fn sweep_checks_order_of_corrected_clock() {
    for (minutes, checks) in [(0, 1), (55, 0), (75, 0), (76, 1), (60 * 24 * 365, 1)] {
        let created_at = Timestamp::from_millis(minutes * 60_000);
        let (payments, calls, _) = payments_with_order_of(created_at, ProviderMode::Open).await;
        let sweep = start(payments);
        tokio::time::sleep(Duration::from_secs(1)).await;
        assert_eq!(calls.load(Ordering::SeqCst), checks, "{minutes}");
        sweep.stop().await;
    }
}

#[tokio::test(start_paused = true)]
async fn sweep_failing_provider_keeps_interval_and_stops() {
    assert_eq!(calls_within(ProviderMode::Unavailable, 3_599).await, 2);
    // A call without a response times out, and the usual pause follows.
    assert_eq!(calls_within(ProviderMode::Hanging, 10).await, 1);
    assert!(calls_within(ProviderMode::Hanging, 3_599).await <= 2);
    assert_eq!(calls_within(ProviderMode::Panicking, 3_599).await, 2);
}

#[tokio::test(start_paused = true)]
async fn sweep_after_change_of_plans_uses_newest_payments() {
    let (old, old_calls, _) = payments(ProviderMode::Open).await;
    let (new, new_calls, _) = payments(ProviderMode::Open).await;
    let (newest, current) = watch::channel(old);
    let sweep = super::start(&Handle::current(), current, single_server());
    tokio::time::sleep(Duration::from_secs(1)).await;
    newest.send_replace(new);
    tokio::time::sleep(SWEEP_EVERY).await;
    assert_eq!([&old_calls, &new_calls].map(|calls| calls.load(Ordering::SeqCst)), [1, 1]);
    sweep.stop().await;
}

#[tokio::test]
async fn sweep_without_payments_does_not_start() {
    let verbatim = Verbatim::open(Options::default()).await.unwrap();
    assert!(verbatim.start_sweep().is_none() && verbatim.sandbox().is_none());
    let options = Options { checkout: PaymentOptions::Sandbox, ..Options::default() };
    let verbatim = Verbatim::open(options).await.unwrap();
    assert!(verbatim.sandbox().is_some());
    verbatim.start_sweep().unwrap().stop().await;
    verbatim.close().await;
}
