//! The payment rules over memory stores, with our Stripe client and the fake.

use std::{
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
    time::Duration,
};

use transcript_core::{
    Clock, Timestamp,
    accounts::{
        Order, OrderStore, PlanTable,
        payments::{
            BuyOutcome, Pack, PaymentDeps, Payments, SubscribeOutcome, WebhookOutcome, WebhookRequest,
        },
    },
    directory::{Account, AccountRef, Directory, Plan},
    ids::{AccountId, OrderId, WalletId},
    ledger::{Ledger, Pool, Terms},
    memory::{MemoryDirectory, MemoryLedger, MemoryOrders, MemoryRateLimiter},
};
use upstream_reqwest::{StripeOptions, StripeProvider};
use verbatim::SystemClock;

use super::fake::{FakeEvent, FakeStripe, KEY, SECRET};
pub(crate) use crate::payments::fixture::plans;
use crate::payments::fixture::{queued_mails, register};

/// Our client for a Stripe at this URL.
pub(crate) fn checkout(url: &str) -> StripeProvider {
    checkout_with(url, plans())
}

fn checkout_with(url: &str, plans: PlanTable) -> StripeProvider {
    let options = StripeOptions {
        secret_key: KEY.to_owned(),
        webhook_secrets: vec!["whsec_old".to_owned(), SECRET.to_owned()],
        api_url: Some(url.to_owned()),
        base_url: "https://v.example".to_owned(),
        plans,
        ..StripeOptions::default()
    };
    StripeProvider::new(options).unwrap()
}

/// One account with its own fake Stripe.
pub(crate) struct StripeFixture {
    pub(crate) stripe: FakeStripe,
    pub(crate) payments: Payments,
    orders: Arc<MemoryOrders>,
    directory: Arc<MemoryDirectory>,
    ledger: Arc<MemoryLedger>,
    /// Dependencies of each process.
    deps: PaymentDeps,
    clock: Arc<OffsetClock>,
}

/// The system clock plus a manual offset in seconds.
#[derive(Debug, Default)]
struct OffsetClock {
    system: SystemClock,
    seconds: AtomicU64,
}

impl Clock for OffsetClock {
    fn now(&self) -> Timestamp {
        self.system.now().plus(Duration::from_secs(self.seconds.load(Ordering::Relaxed)))
    }
}

impl StripeFixture {
    pub(crate) async fn start() -> Self {
        let stripe = FakeStripe::start().await.unwrap();
        let clock = Arc::<OffsetClock>::default();
        let (orders, directory, ledger) = (
            Arc::<MemoryOrders>::default(),
            Arc::<MemoryDirectory>::default(),
            Arc::<MemoryLedger>::default(),
        );
        register(&directory, "account-ann", clock.now()).await;
        let deps = PaymentDeps {
            orders: Arc::clone(&orders) as _,
            directory: Arc::clone(&directory) as _,
            ledger: Arc::clone(&ledger) as _,
            outbox: Arc::new(transcript_core::memory::MemoryOutbox::default()),
            limiter: Arc::<MemoryRateLimiter>::default(),
            provider: Some(Arc::new(checkout(stripe.url()))),
            clock: Arc::clone(&clock) as _,
            plans: plans(),
        };
        let payments = Payments::new(deps.clone());
        Self { stripe, payments, deps, orders, directory, ledger, clock }
    }

    /// Another process over the same stores, with these plans.
    pub(crate) fn process(&self, plans: PlanTable) -> Payments {
        let checkout = checkout_with(self.stripe.url(), plans);
        Payments::new(PaymentDeps { provider: Some(Arc::new(checkout)), plans, ..self.deps.clone() })
    }

    /// Advances the clock. Signatures made before get older by that.
    pub(crate) fn advance(&self, seconds: u64) {
        self.clock.seconds.fetch_add(seconds, Ordering::Relaxed);
    }

    /// Blocks the account, as the operator does.
    pub(crate) async fn block(&self) {
        let blocked = Account { blocked: true, ..self.account().await };
        self.directory.update_account(blocked).await.unwrap();
    }

    pub(crate) async fn account(&self) -> Account {
        let account_ref = AccountRef::Id(AccountId::new("account-ann"));
        self.directory.account(&account_ref).await.unwrap().unwrap()
    }

    pub(crate) async fn order(&self, id: &str) -> Order {
        self.orders.order(&OrderId::new(id)).await.unwrap().unwrap()
    }

    /// Buys a pack; returns the checkout URL.
    pub(crate) async fn buy(&self, id: &str, pack: &str) -> String {
        let pack = Pack::from_wire(pack).unwrap();
        match self.payments.buy(&self.account().await, pack, OrderId::new(id)).await.unwrap() {
            BuyOutcome::Opened(sold) => sold.checkout_url,
            other => panic!("{other:?}"),
        }
    }

    /// Subscribes to a plan; returns the checkout URL.
    pub(crate) async fn subscribe(&self, id: &str, plan: Plan) -> String {
        match self.payments.subscribe(&self.account().await, plan, OrderId::new(id)).await.unwrap() {
            SubscribeOutcome::Opened(sold) => sold.checkout_url,
            other => panic!("{other:?}"),
        }
    }

    /// Delivers events, each twice.
    pub(crate) async fn deliver(&self, events: Vec<FakeEvent>) {
        for event in events {
            for _ in 0..2 {
                let signature = Some(event.signature());
                let call = WebhookRequest { signature, body: event.body.clone().into_bytes() };
                let outcome = self.payments.handle_webhook(call).await.unwrap();
                assert!(matches!(outcome, WebhookOutcome::Events(_)), "{}: {outcome:?}", event.kind);
            }
        }
    }

    /// The sorted ids of the receipts that were queued.
    pub(crate) async fn receipts(&self) -> Vec<String> {
        queued_mails(&*self.deps.outbox).await
    }

    /// The remaining purchased credits.
    pub(crate) async fn purchased(&self) -> u64 {
        let terms = Terms { pools: vec![Pool::Purchased], resets_at: None };
        self.ledger.balance(&WalletId::new("purse"), &terms).await.unwrap().pools[0].granted
    }
}
