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
    Clock, Error, Result, Timestamp,
    accounts::{
        Item, Order, OrderState, Orders, PlanTable,
        payments::{
            Checkout, CheckoutPage, Heard, Money, PaymentFact, PaymentParts, PaymentState, Progress, Sale,
            Subject, WebhookCall,
        },
    },
    ids::{AccountId, OrderId},
    memory::{MemoryDirectory, MemoryLedger, MemoryOrders, MemoryRateLimiter},
};

use super::*;
use crate::{CheckoutOptions, Options};

/// How the provider answers.
#[derive(Clone, Copy, Debug)]
enum Mood {
    Open,
    Cancelled,
    Away,
    Silent,
    Defect,
}

#[derive(Debug)]
struct Provider {
    mood: Mood,
    asked: Arc<AtomicU32>,
}

#[async_trait]
impl Checkout for Provider {
    async fn open(&self, _: Sale) -> Result<CheckoutPage> {
        Err(Error::unavailable("nobody buys here"))
    }

    async fn hear(&self, _: WebhookCall, _: Timestamp) -> Result<Heard> {
        Err(Error::unavailable("nobody calls here"))
    }

    async fn facts(&self, _: &Subject) -> Result<Vec<PaymentFact>> {
        self.asked.fetch_add(1, Ordering::SeqCst);
        let progress = match self.mood {
            Mood::Open => Progress::Pending,
            Mood::Cancelled => Progress::Ended,
            Mood::Away => return Err(Error::unavailable("away")),
            Mood::Silent => std::future::pending().await,
            Mood::Defect => panic!("a provider's defect"),
        };
        let money = Money {
            amount_minor: 1_200,
            currency: "usd".to_owned(),
            paid_minor: 0,
            returned_minor: 0,
            disputed: false,
        };
        Ok(vec![PaymentFact::Payment(PaymentState { order: OrderId::new("order"), progress, money })])
    }

    async fn stop(&self, _: &str) -> Result<()> {
        Err(Error::unavailable("nobody subscribes here"))
    }

    async fn close(&self, _: &str) -> Result<()> {
        Err(Error::unavailable("nobody opens a page here"))
    }

    fn knows(&self, _: &str) -> bool {
        true
    }
}

/// An hour after the order was written.
#[derive(Debug)]
struct Later;

impl Clock for Later {
    fn now(&self) -> Timestamp {
        Timestamp::from_millis(3_600_000)
    }
}

/// Payments with one open order at a provider of this mood, and how often that was asked.
async fn payments(mood: Mood) -> (Payments, Arc<AtomicU32>, Arc<MemoryOrders>) {
    let (asked, orders) = (Arc::new(AtomicU32::new(0)), Arc::new(MemoryOrders::default()));
    let order = Order {
        id: OrderId::new("order"),
        version: 1,
        account: AccountId::new("ann"),
        item: Item::Pack("1k".to_owned()),
        credits: 1_000,
        amount_minor: 1_200,
        currency: "usd".to_owned(),
        state: OrderState::Open,
        payment: Some("cs_1".to_owned()),
        taken_back: Vec::new(),
        created_at: Timestamp::from_millis(0),
    };
    orders.open(order).await.unwrap();
    let parts = PaymentParts {
        orders: Arc::clone(&orders) as _,
        directory: Arc::new(MemoryDirectory::default()),
        ledger: Arc::new(MemoryLedger::default()),
        limiter: Arc::new(MemoryRateLimiter::default()),
        checkout: Some(Arc::new(Provider { mood, asked: Arc::clone(&asked) })),
        clock: Arc::new(Later),
        plans: PlanTable::default(),
    };
    (Payments::new(parts), asked, orders)
}

/// How often a provider of this mood is asked within so many seconds; then the sweep is stopped, at once.
async fn asked_within(mood: Mood, seconds: u64) -> u32 {
    let (payments, asked, _) = payments(mood).await;
    let sweep = RunningSweep::start(&Handle::current(), payments, alone());
    tokio::time::sleep(Duration::from_secs(seconds)).await;
    let count = asked.load(Ordering::SeqCst);
    let before = Instant::now();
    sweep.stop().await;
    assert_eq!(before.elapsed(), Duration::ZERO, "{mood:?}");
    tokio::time::sleep(3 * SWEEP_EVERY).await;
    assert_eq!(asked.load(Ordering::SeqCst), count, "{mood:?}: it goes on after its end");
    count
}

/// A server that has its storage for itself.
fn alone() -> Among {
    let random = crate::SystemRandom::open().unwrap();
    Among { servers: Servers::alone(&random), clock: Arc::default() }
}

#[tokio::test(start_paused = true)]
async fn open_orders_are_asked_about_at_once_and_every_half_hour() {
    assert_eq!(asked_within(Mood::Open, 1).await, 1);
    assert_eq!(asked_within(Mood::Open, 3_599).await, 2);
    assert_eq!(asked_within(Mood::Open, 3_601).await, 3);
}

#[tokio::test(start_paused = true)]
async fn what_was_found_is_done() {
    let (payments, _, orders) = payments(Mood::Cancelled).await;
    let sweep = RunningSweep::start(&Handle::current(), payments, alone());
    tokio::time::sleep(Duration::from_secs(1)).await;
    let order = orders.order(&OrderId::new("order")).await.unwrap().unwrap();
    assert_eq!(order.state, OrderState::Expired);
    sweep.stop().await;
}

#[tokio::test(start_paused = true)]
async fn a_failing_provider_is_not_asked_more_often_and_holds_up_no_stop() {
    assert_eq!(asked_within(Mood::Away, 3_599).await, 2);
    // One that never answers is given up after a while, and then there is a pause, too.
    assert_eq!(asked_within(Mood::Silent, 10).await, 1);
    assert!(asked_within(Mood::Silent, 3_599).await <= 2);
    assert_eq!(asked_within(Mood::Defect, 3_599).await, 2);
}

#[tokio::test]
async fn where_nothing_is_sold_nothing_is_asked() {
    let verbatim = Verbatim::open(Options::default()).await.unwrap();
    assert!(verbatim.start_sweep().is_none() && verbatim.sandbox().is_none());
    let options = Options { checkout: CheckoutOptions::Sandbox, ..Options::default() };
    let verbatim = Verbatim::open(options).await.unwrap();
    assert!(verbatim.sandbox().is_some());
    verbatim.start_sweep().unwrap().stop().await;
    verbatim.close().await;
}
