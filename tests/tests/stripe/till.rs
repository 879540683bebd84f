//! The rules of payments over stores in memory, with our client and the stand-in for Stripe.

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
        Order, Orders, PlanTable,
        payments::{BuyOutcome, Heard, Pack, PaymentParts, Payments, SubscribeOutcome, WebhookCall},
    },
    directory::{Account, AccountRef, Directory, NewKey, Plan, Redeem, Redeemed, Token},
    ids::{AccountId, KeyId, OrderId, WalletId},
    ledger::{Ledger, Pool, Terms},
    memory::{MemoryDirectory, MemoryLedger, MemoryOrders, MemoryRateLimiter},
};
use upstream_reqwest::{StripeCheckout, StripeOptions};
use verbatim::SystemClock;

use super::fake::{Event, KEY, SECRET, Stripe};

/// The plans that are sold here.
pub(crate) fn plans() -> PlanTable {
    let mut plans = PlanTable::default();
    plans.starter.price_cents = Some(900);
    plans.pro.price_cents = Some(2_900);
    plans
}

/// Our client of a Stripe at this address.
pub(crate) fn checkout(url: &str) -> StripeCheckout {
    checkout_with(url, plans())
}

fn checkout_with(url: &str, plans: PlanTable) -> StripeCheckout {
    let options = StripeOptions {
        secret_key: KEY.to_owned(),
        webhook_secrets: vec!["whsec_old".to_owned(), SECRET.to_owned()],
        api_url: Some(url.to_owned()),
        base_url: "https://v.example".to_owned(),
        plans,
        ..StripeOptions::default()
    };
    StripeCheckout::new(options).unwrap()
}

/// A till: one account, and a Stripe of its own.
pub(crate) struct Till {
    pub(crate) stripe: Stripe,
    pub(crate) payments: Payments,
    orders: Arc<MemoryOrders>,
    directory: Arc<MemoryDirectory>,
    ledger: Arc<MemoryLedger>,
    /// What each process works with.
    parts: PaymentParts,
    clock: Arc<Ahead>,
}

/// The system's clock, and how much it was put forward, in seconds.
#[derive(Debug, Default)]
struct Ahead {
    system: SystemClock,
    seconds: AtomicU64,
}

impl Clock for Ahead {
    fn now(&self) -> Timestamp {
        self.system.now().plus(Duration::from_secs(self.seconds.load(Ordering::Relaxed)))
    }
}

impl Till {
    pub(crate) async fn open() -> Self {
        let stripe = Stripe::start().await.unwrap();
        let clock = Arc::<Ahead>::default();
        let (orders, directory, ledger) = (
            Arc::<MemoryOrders>::default(),
            Arc::<MemoryDirectory>::default(),
            Arc::<MemoryLedger>::default(),
        );
        register(&directory, clock.now()).await;
        let parts = PaymentParts {
            orders: Arc::clone(&orders) as _,
            directory: Arc::clone(&directory) as _,
            ledger: Arc::clone(&ledger) as _,
            limiter: Arc::<MemoryRateLimiter>::default(),
            checkout: Some(Arc::new(checkout(stripe.url()))),
            clock: Arc::clone(&clock) as _,
            plans: plans(),
        };
        let payments = Payments::new(parts.clone());
        Self { stripe, payments, parts, orders, directory, ledger, clock }
    }

    /// Another process over the same stores, with these plans.
    pub(crate) fn process(&self, plans: PlanTable) -> Payments {
        let checkout = checkout_with(self.stripe.url(), plans);
        Payments::new(PaymentParts { checkout: Some(Arc::new(checkout)), plans, ..self.parts.clone() })
    }

    /// Puts the clock forward. What is signed then is as old as that.
    pub(crate) fn pass(&self, seconds: u64) {
        self.clock.seconds.fetch_add(seconds, Ordering::Relaxed);
    }

    /// The operator blocks the account.
    pub(crate) async fn block(&self) {
        let blocked = Account { blocked: true, ..self.account().await };
        self.directory.change_account(blocked).await.unwrap();
    }

    pub(crate) async fn account(&self) -> Account {
        let who = AccountRef::Id(AccountId::new("account-ann"));
        self.directory.account(&who).await.unwrap().unwrap()
    }

    pub(crate) async fn order(&self, id: &str) -> Order {
        self.orders.order(&OrderId::new(id)).await.unwrap().unwrap()
    }

    /// Buys a pack; returns where it is paid.
    pub(crate) async fn buy(&self, id: &str, pack: &str) -> String {
        let pack = Pack::from_wire(pack).unwrap();
        match self.payments.buy(&self.account().await, pack, OrderId::new(id)).await.unwrap() {
            BuyOutcome::Opened(sold) => sold.checkout_url,
            other => panic!("{other:?}"),
        }
    }

    /// Subscribes to a plan; returns where it is paid.
    pub(crate) async fn subscribe(&self, id: &str, plan: Plan) -> String {
        match self.payments.subscribe(&self.account().await, plan, OrderId::new(id)).await.unwrap() {
            SubscribeOutcome::Opened(sold) => sold.checkout_url,
            other => panic!("{other:?}"),
        }
    }

    /// Delivers events, each twice.
    pub(crate) async fn deliver(&self, events: Vec<Event>) {
        for event in events {
            for _ in 0..2 {
                let signature = Some(event.signature());
                let call = WebhookCall { signature, body: event.body.clone().into_bytes() };
                let heard = self.payments.hear(call).await.unwrap();
                assert!(matches!(heard, Heard::About(_)), "{}: {heard:?}", event.kind);
            }
        }
    }

    /// The bought credits that are there.
    pub(crate) async fn purchased(&self) -> u64 {
        let terms = Terms { pools: vec![Pool::Purchased], resets_at: None };
        self.ledger.balance(&WalletId::new("purse"), &terms).await.unwrap().pools[0].granted
    }
}

async fn register(directory: &MemoryDirectory, now: Timestamp) {
    let expires_at = now.plus(Duration::from_secs(60));
    let token = Token { digest: vec![1; 32], email: "ann@example.org".to_owned(), expires_at, now };
    directory.put_token(token).await.unwrap();
    let redeem = Redeem {
        digest: vec![1; 32],
        confirmed: true,
        new_account: AccountId::new("account-ann"),
        new_wallet: WalletId::new("purse"),
        key: NewKey { id: KeyId::new("key"), digest: vec![2; 32], hint: "vba_".to_owned(), now },
    };
    assert!(matches!(directory.redeem(redeem).await.unwrap(), Redeemed::Issued { first: true, .. }));
}
