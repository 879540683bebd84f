//! The stores, the provider, and processes that come and go over them.

use std::{
    collections::BTreeMap,
    sync::{
        Arc, Mutex, PoisonError,
        atomic::{AtomicU32, Ordering},
    },
    time::Duration,
};

use transcript_core::{
    Clock, PageRequest, Timestamp,
    accounts::{
        Order, OrderState, Orders, PlanTable,
        payments::{
            BuyOutcome, Heard, Pack, PaymentParts, Payments, Sold, Subject, SubscribeOutcome, WebhookCall,
        },
    },
    directory::{Account, AccountRef, Directory, NewKey, PaidPeriod, Plan, Redeem, Redeemed, Token},
    ids::{AccountId, KeyId, OrderId, WalletId},
    ledger::{Ledger, Pool, Terms, audit},
    memory::{MemoryArchive, MemoryDirectory, MemoryLedger, MemoryOrders, MemoryRateLimiter},
};

use super::provider::{Provider, SIGNATURE};
use crate::simulation::{
    clock::VirtualClock,
    faulty::{FaultyDirectory, FaultyLedger, FaultyOrders},
    gate::Gate,
    oracle::{Limits, Oracle},
    weather::Weather,
};

/// When every story begins: 2026-11-20T12:00:00Z.
pub(crate) const BEGIN_MS: i64 = 1_795_176_000_000;
/// How often an event is delivered before its provider gives up. No story needs as many.
const DELIVERIES_MAX: u32 = 50;

/// The plans that are sold here: two of the three.
fn plans() -> PlanTable {
    let mut plans = PlanTable::default();
    plans.starter.price_cents = Some(900);
    plans.pro.price_cents = Some(2_900);
    plans
}

/// The shop.
#[derive(Debug)]
pub(crate) struct Shop {
    pub(crate) gate: Arc<Gate>,
    pub(crate) provider: Provider,
    pub(crate) clock: Arc<VirtualClock>,
    orders: Arc<MemoryOrders>,
    directory: Arc<MemoryDirectory>,
    ledger: Arc<MemoryLedger>,
    limiter: MemoryRateLimiter,
    /// The process that runs now.
    payments: Mutex<Option<Payments>>,
    /// How many processes there were.
    lives: AtomicU32,
}

impl End {
    /// Until when a plan is paid.
    pub(crate) fn paid_through(&self) -> Option<Timestamp> {
        self.paid.map(|paid| paid.through)
    }
}

/// All that matters at the end of a story.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct End {
    pub(crate) plan: Plan,
    pub(crate) paid: Option<PaidPeriod>,
    pub(crate) anchor: Timestamp,
    pub(crate) blocked: bool,
    pub(crate) purchased: u64,
    pub(crate) spent: u64,
    pub(crate) orders: BTreeMap<String, (OrderState, Vec<u64>)>,
}

impl Shop {
    /// A shop with one account, in a runtime whose time is paused.
    pub(crate) async fn open() -> Self {
        let ledger = Arc::new(MemoryLedger::default());
        let limits = Limits { key: 0, service: 0, free_account: 0 };
        let directory = Arc::new(MemoryDirectory::default());
        let archive = Arc::new(MemoryArchive::default());
        let oracle = Oracle::new((archive, Arc::clone(&ledger) as _, Arc::clone(&directory) as _), limits);
        let gate = Arc::new(Gate::new(Arc::new(oracle), Weather::Calm, false));
        let orders = Arc::default();
        let clock = Arc::new(VirtualClock::starting_at(Timestamp::from_millis(BEGIN_MS)));
        let provider = Provider::new(Arc::clone(&gate));
        let (payments, lives) = (Mutex::default(), AtomicU32::new(0));
        let shop = Self {
            gate,
            provider,
            clock,
            orders,
            directory,
            ledger,
            limiter: MemoryRateLimiter::default(),
            payments,
            lives,
        };
        shop.restart();
        shop.register().await;
        shop
    }

    async fn register(&self) {
        let now = self.clock.now();
        let token = Token {
            digest: vec![1; 32],
            email: "ann@example.org".to_owned(),
            expires_at: now.plus(Duration::from_secs(60)),
            now,
        };
        self.directory.put_token(token).await.unwrap();
        let redeem = Redeem {
            digest: vec![1; 32],
            confirmed: true,
            new_account: AccountId::new("ann"),
            new_wallet: WalletId::new("purse"),
            key: NewKey { id: KeyId::new("key"), digest: vec![2; 32], hint: "vba_".to_owned(), now },
        };
        let redeemed = self.directory.redeem(redeem).await.unwrap();
        assert!(matches!(redeemed, Redeemed::Issued { first: true, .. }));
    }

    /// The process that runs now.
    pub(crate) fn payments(&self) -> Payments {
        self.payments.lock().unwrap_or_else(PoisonError::into_inner).clone().unwrap()
    }

    /// A new process takes the place of the present one.
    pub(crate) fn restart(&self) {
        let gate = || Arc::clone(&self.gate);
        let parts = PaymentParts {
            orders: Arc::new(FaultyOrders { inner: Arc::clone(&self.orders) as _, gate: gate() }),
            directory: Arc::new(FaultyDirectory { inner: Arc::clone(&self.directory) as _, gate: gate() }),
            ledger: Arc::new(FaultyLedger { inner: Arc::clone(&self.ledger) as _, gate: gate() }),
            limiter: Arc::new(self.limiter.clone()),
            checkout: Some(Arc::new(self.provider.clone())),
            clock: Arc::clone(&self.clock) as _,
            plans: plans(),
        };
        *self.payments.lock().unwrap_or_else(PoisonError::into_inner) = Some(Payments::new(parts));
        self.gate.begin_life(None);
        self.lives.fetch_add(1, Ordering::Relaxed);
    }

    /// How many processes there were.
    pub(crate) fn lives(&self) -> u32 {
        self.lives.load(Ordering::Relaxed)
    }

    /// The account as it is stored.
    pub(crate) async fn account(&self) -> Account {
        let who = AccountRef::Id(AccountId::new("ann"));
        self.directory.account(&who).await.unwrap().unwrap()
    }

    /// Does something until it succeeds, in a new process whenever the present one dies.
    async fn persist<T, F>(&self, what: &str, work: impl Fn(Payments) -> F) -> T
    where
        F: Future<Output = transcript_core::Result<T>>,
    {
        for _ in 0..DELIVERIES_MAX {
            let outcome = tokio::select! {
                biased;
                () = self.gate.crashed() => None,
                outcome = work(self.payments()) => Some(outcome),
            };
            match outcome {
                Some(Ok(done)) => return done,
                Some(Err(_)) => {}
                None => self.restart(),
            }
            tokio::time::sleep(Duration::from_secs(10)).await;
        }
        panic!("{what} never succeeded");
    }

    /// Buys a pack; a request that fails is repeated.
    pub(crate) async fn buy(&self, id: &str, pack: &str) -> OrderId {
        let (account, pack) = (self.account().await, Pack::from_wire(pack).unwrap());
        let id = OrderId::new(id);
        let buy = |payments: Payments| {
            let (account, id) = (account.clone(), id.clone());
            async move { payments.buy(&account, pack, id).await }
        };
        opened(self.persist("buying", buy).await).order
    }

    /// Subscribes to a plan; a request that fails is repeated.
    pub(crate) async fn subscribe(&self, id: &str, plan: Plan) -> OrderId {
        let (account, id) = (self.account().await, OrderId::new(id));
        let subscribe = |payments: Payments| {
            let (account, id) = (account.clone(), id.clone());
            async move { payments.subscribe(&account, plan, id).await }
        };
        match self.persist("subscribing", subscribe).await {
            SubscribeOutcome::Opened(sold) => sold.order,
            other => panic!("{other:?}"),
        }
    }

    /// Delivers an event again and again until it is acknowledged.
    pub(crate) async fn deliver(&self, subject: &Subject) {
        let heard = |payments: Payments| {
            let call = call(subject);
            async move { payments.hear(call).await }
        };
        let heard = self.persist("an event", heard).await;
        assert_eq!(heard, Heard::About(vec![subject.clone()]));
    }

    /// Buys a pack once, whatever comes of it.
    pub(crate) async fn payments_buy(
        &self,
        account: &Account,
        pack: &str,
        id: &str,
    ) -> transcript_core::Result<Sold> {
        let pack = Pack::from_wire(pack).unwrap();
        Ok(opened(self.payments().buy(account, pack, OrderId::new(id)).await?))
    }

    /// Asks about everything that no event told.
    pub(crate) async fn sweep(&self) {
        self.persist("a sweep", |payments| async move {
            payments.sweep_orders().await?;
            payments.sweep_plans().await
        })
        .await;
    }

    /// Lets time pass.
    pub(crate) async fn pass_hours(&self, hours: u64) {
        tokio::time::sleep(Duration::from_secs(hours * 3_600)).await;
    }

    /// Delivers events one after the other.
    pub(crate) async fn deliver_all(&self, subjects: &[Subject]) {
        for subject in subjects {
            self.deliver(subject).await;
        }
    }

    /// The operator lets a blocked account go on.
    pub(crate) async fn unblock(&self) {
        let account = Account { blocked: false, ..self.account().await };
        self.directory.change_account(account).await.unwrap();
    }

    /// Spends bought credits.
    pub(crate) async fn spend(&self, id: &str, amount: u64) {
        use transcript_core::{
            ids::HoldId,
            ledger::{HoldOutcome, HoldRequest, Leg},
        };
        let leg = Leg { wallet: WalletId::new("purse"), terms: bought(), amount };
        let now = self.clock.now();
        let ask =
            HoldRequest { id: HoldId::new(id), legs: vec![leg], now, expires_at: now, memo: String::new() };
        let outcome = self.ledger.spend(ask).await.unwrap();
        assert!(matches!(outcome, HoldOutcome::Held { .. }), "{outcome:?}");
    }

    /// Everything that matters now; every balance is what its entries add up to.
    pub(crate) async fn end(&self) -> End {
        // What was given up may still take effect.
        tokio::time::sleep(Duration::from_secs(100)).await;
        let account = self.account().await;
        let balance = self.ledger.balance(&account.wallet, &bought()).await.unwrap();
        let pool = &balance.pools[0];
        let entries = self.ledger.entries(&account.wallet, PageRequest::first()).await.unwrap().items;
        let sums = audit::recompute(&entries).unwrap();
        let sum = sums.first().map_or((0, 0), |sum| (sum.granted, sum.spent));
        assert_eq!(sum, (pool.granted, pool.spent), "{entries:?}");
        End {
            plan: account.plan,
            paid: account.paid,
            anchor: account.anchor,
            blocked: account.blocked,
            purchased: pool.granted,
            spent: pool.spent,
            orders: self.stored_orders().await,
        }
    }

    async fn stored_orders(&self) -> BTreeMap<String, (OrderState, Vec<u64>)> {
        let mut found = BTreeMap::new();
        for id in ["one", "two", "three", "in_1", "in_2", "in_3", "in_4"] {
            if let Some(order) = self.order(id).await {
                found.insert(id.to_owned(), (order.state, order.taken_back));
            }
        }
        found
    }

    /// An order as it is stored.
    pub(crate) async fn order(&self, id: &str) -> Option<Order> {
        self.orders.order(&OrderId::new(id)).await.unwrap()
    }
}

fn opened(outcome: BuyOutcome) -> Sold {
    match outcome {
        BuyOutcome::Opened(sold) => sold,
        other => panic!("{other:?}"),
    }
}

/// The call that tells of something.
pub(crate) fn call(subject: &Subject) -> WebhookCall {
    let customer = subject.customer.as_deref().unwrap_or("");
    let body = format!("{} {customer}", subject.object).into_bytes();
    WebhookCall { signature: Some(SIGNATURE.to_owned()), body }
}

fn bought() -> Terms {
    Terms { pools: vec![Pool::Purchased], resets_at: None }
}

/// Runs a story in virtual time.
pub(crate) fn in_virtual_time<F: Future>(story: F) -> F::Output {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_time().start_paused(true).build();
    runtime.unwrap().block_on(story)
}
