//! The stores, the provider, and processes that start and crash over them.

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
        Order, OrderItem, OrderState, OrderStore, Outbox, PlanTable,
        payments::{
            BuyOutcome, OpenedCheckout, Pack, PaymentDeps, Payments, ProviderObject, SubscribeOutcome,
            WebhookOutcome, WebhookRequest,
        },
    },
    directory::{
        Account, AccountRef, Directory, EraseOutcome, NewKeyRecord, PaidPeriod, Plan, RedeemOutcome,
        RedeemRequest, VerificationToken,
    },
    ids::{AccountId, KeyId, OrderId, WalletId},
    ledger::{Ledger, Pool, Terms, audit},
    memory::{MemoryArchive, MemoryDirectory, MemoryLedger, MemoryOrders, MemoryOutbox, MemoryRateLimiter},
    test_doubles::PausedClock,
};

use super::provider::{FakeProvider, SIGNATURE};
use crate::simulation::{
    fault_plan::FaultPlan,
    faulty::{FaultyDirectory, FaultyLedger, FaultyOrders, FaultyOutbox},
    oracle::{Oracle, OracleLimits},
    store_gate::StoreGate,
};

/// Start of every story: 2026-11-20T12:00:00Z.
pub(crate) const BEGIN_MS: i64 = 1_795_176_000_000;
/// Upper bound of the deliveries of an event. No story needs as many.
const DELIVERIES_MAX: u32 = 50;

/// Prices of the plans for sale: two of the three.
pub(crate) fn plans() -> PlanTable {
    let mut plans = PlanTable::default();
    plans.starter.price_cents = Some(900);
    plans.pro.price_cents = Some(2_900);
    plans
}

/// Creates an account with this id and the wallet `purse`.
pub(crate) async fn register(directory: &MemoryDirectory, account: &str, now: Timestamp) {
    let expires_at = now.plus(Duration::from_secs(60));
    let token =
        VerificationToken { digest: vec![1; 32], email: "ann@example.org".to_owned(), expires_at, now };
    directory.put_token(token).await.unwrap();
    let redeem = RedeemRequest {
        digest: vec![1; 32],
        confirmed: true,
        new_account: AccountId::new(account),
        new_wallet: WalletId::new("purse"),
        key: NewKeyRecord { id: KeyId::new("key"), digest: vec![2; 32], hint: "vba_".to_owned(), now },
    };
    assert!(matches!(directory.redeem(redeem).await.unwrap(), RedeemOutcome::Issued { first: true, .. }));
}

/// An unpaid order of a pack.
pub(crate) fn open_order(id: &str, account: AccountId, created_at: Timestamp) -> Order {
    Order {
        id: OrderId::new(id),
        version: 1,
        account,
        item: OrderItem::Pack("1k".to_owned()),
        credits: 1_000,
        amount_minor: 1_200,
        currency: "usd".to_owned(),
        state: OrderState::Open,
        payment: None,
        refunded_credits: Vec::new(),
        returned_minor: 0,
        paid_minor: None,
        language: None,
        created_at,
    }
}

/// Stores, a provider and a current process.
#[derive(Debug)]
pub(crate) struct PaymentFixture {
    pub(crate) gate: Arc<StoreGate>,
    pub(crate) provider: FakeProvider,
    pub(crate) clock: Arc<PausedClock>,
    orders: Arc<MemoryOrders>,
    directory: Arc<MemoryDirectory>,
    ledger: Arc<MemoryLedger>,
    pub(crate) outbox: Arc<MemoryOutbox>,
    limiter: MemoryRateLimiter,
    /// The current process.
    payments: Mutex<Option<Payments>>,
    /// Number of processes so far.
    process_count: AtomicU32,
}

impl PaymentResult {
    /// End of the paid period.
    pub(crate) fn paid_through(&self) -> Option<Timestamp> {
        self.paid.map(|paid| paid.through)
    }
}

/// State at the end of a story.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct PaymentResult {
    pub(crate) plan: Plan,
    pub(crate) paid: Option<PaidPeriod>,
    pub(crate) anchor: Timestamp,
    pub(crate) blocked: bool,
    pub(crate) purchased: u64,
    pub(crate) spent: u64,
    pub(crate) orders: BTreeMap<String, (OrderState, Vec<u64>)>,
    /// Ids of the receipts that were queued.
    pub(crate) receipts: Vec<String>,
}

impl PaymentFixture {
    /// Creates the fixture with one account, in a runtime with paused time.
    pub(crate) async fn start() -> Self {
        let ledger = Arc::new(MemoryLedger::default());
        let limits = OracleLimits { key: 0, service: 0, accounts: 0, free_account: 0 };
        let directory = Arc::new(MemoryDirectory::default());
        let archive = Arc::new(MemoryArchive::default());
        let oracle = Oracle::new((archive, Arc::clone(&ledger) as _, Arc::clone(&directory) as _), limits);
        let gate = Arc::new(StoreGate::new(Arc::new(oracle), FaultPlan::NoFaults, false));
        let orders = Arc::default();
        let clock = Arc::new(PausedClock::new(Timestamp::from_millis(BEGIN_MS)));
        let provider = FakeProvider::new(Arc::clone(&gate));
        let (payments, process_count) = (Mutex::default(), AtomicU32::new(0));
        let fixture = Self {
            gate,
            provider,
            clock,
            orders,
            directory,
            ledger,
            outbox: Arc::new(MemoryOutbox::default()),
            limiter: MemoryRateLimiter::default(),
            payments,
            process_count,
        };
        fixture.restart();
        register(&fixture.directory, "ann", fixture.clock.now()).await;
        fixture
    }

    /// The current process.
    pub(crate) fn payments(&self) -> Payments {
        self.payments.lock().unwrap_or_else(PoisonError::into_inner).clone().unwrap()
    }

    /// Replaces the current process by a new one.
    pub(crate) fn restart(&self) {
        let gate = || Arc::clone(&self.gate);
        let deps = PaymentDeps {
            orders: Arc::new(FaultyOrders { inner: Arc::clone(&self.orders) as _, gate: gate() }),
            directory: Arc::new(FaultyDirectory { inner: Arc::clone(&self.directory) as _, gate: gate() }),
            ledger: Arc::new(FaultyLedger { inner: Arc::clone(&self.ledger) as _, gate: gate() }),
            outbox: Arc::new(FaultyOutbox { inner: Arc::clone(&self.outbox) as _, gate: gate() }),
            limiter: Arc::new(self.limiter.clone()),
            provider: Some(Arc::new(self.provider.clone())),
            clock: Arc::clone(&self.clock) as _,
            plans: plans(),
        };
        *self.payments.lock().unwrap_or_else(PoisonError::into_inner) = Some(Payments::new(deps));
        self.gate.begin_life(None);
        self.process_count.fetch_add(1, Ordering::Relaxed);
    }

    /// Number of processes so far.
    pub(crate) fn process_count(&self) -> u32 {
        self.process_count.load(Ordering::Relaxed)
    }

    /// The stored account.
    pub(crate) async fn account(&self) -> Account {
        let account_ref = AccountRef::Id(AccountId::new("ann"));
        self.directory.account(&account_ref).await.unwrap().unwrap()
    }

    /// Repeats an operation until it succeeds, with a new process after each crash.
    async fn retry_until_ok<T, F>(&self, what: &str, work: impl Fn(Payments) -> F) -> T
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
        panic!("{what} did not succeed in {DELIVERIES_MAX} attempts");
    }

    /// Buys a pack; a failed request is repeated.
    pub(crate) async fn buy(&self, id: &str, pack: &str) -> OrderId {
        let (account, pack) = (self.account().await, Pack::from_wire(pack).unwrap());
        let id = OrderId::new(id);
        let buy = |payments: Payments| {
            let (account, id) = (account.clone(), id.clone());
            async move { payments.buy(&account, pack, id).await }
        };
        opened(self.retry_until_ok("buying", buy).await).order
    }

    /// Subscribes to a plan; a failed request is repeated.
    pub(crate) async fn subscribe(&self, id: &str, plan: Plan) -> OrderId {
        let (account, id) = (self.account().await, OrderId::new(id));
        let subscribe = |payments: Payments| {
            let (account, id) = (account.clone(), id.clone());
            async move { payments.subscribe(&account, plan, id).await }
        };
        match self.retry_until_ok("subscribing", subscribe).await {
            SubscribeOutcome::Opened(sold) => sold.order,
            other => panic!("{other:?}"),
        }
    }

    /// Delivers an event repeatedly until it is acknowledged.
    pub(crate) async fn deliver(&self, subject: &ProviderObject) {
        let handle = |payments: Payments| {
            let call = call(subject);
            async move { payments.handle_webhook(call).await }
        };
        let outcome = self.retry_until_ok("an event", handle).await;
        assert_eq!(outcome, WebhookOutcome::Events(vec![subject.clone()]));
    }

    /// Buys a pack with a single request.
    pub(crate) async fn buy_once(
        &self,
        account: &Account,
        pack: &str,
        id: &str,
    ) -> transcript_core::Result<OpenedCheckout> {
        let pack = Pack::from_wire(pack).unwrap();
        Ok(opened(self.payments().buy(account, pack, OrderId::new(id)).await?))
    }

    /// Reconciles orders and renewals whose events were not delivered.
    pub(crate) async fn sweep(&self) {
        self.retry_until_ok("a sweep", |payments| async move {
            payments.reconcile_orders().await?;
            payments.reconcile_renewals().await
        })
        .await;
    }

    /// Advances virtual time.
    pub(crate) async fn advance_hours(&self, hours: u64) {
        tokio::time::sleep(Duration::from_secs(hours * 3_600)).await;
    }

    /// Delivers events one after another.
    pub(crate) async fn deliver_all(&self, subjects: &[ProviderObject]) {
        for subject in subjects {
            self.deliver(subject).await;
        }
    }

    /// Unblocks the account, as the operator does.
    pub(crate) async fn unblock(&self) {
        let account = Account { blocked: false, ..self.account().await };
        self.directory.update_account(account).await.unwrap();
    }

    /// Erases the account, as the operator does.
    pub(crate) async fn erase(&self) {
        let account = self.account().await;
        let erased = self.directory.erase_account(&account.id, account.version, self.clock.now()).await;
        assert_eq!(erased.unwrap(), EraseOutcome::Erased);
    }

    /// Spends purchased credits.
    pub(crate) async fn spend(&self, id: &str, amount: u64) {
        use transcript_core::{
            ids::HoldId,
            ledger::{HoldOutcome, HoldRequest, Leg},
        };
        let leg = Leg { wallet: WalletId::new("purse"), terms: purchased_terms(), amount };
        let now = self.clock.now();
        let request =
            HoldRequest { id: HoldId::new(id), legs: vec![leg], now, expires_at: now, memo: String::new() };
        let outcome = self.ledger.spend(request).await.unwrap();
        assert!(matches!(outcome, HoldOutcome::Held { .. }), "{outcome:?}");
    }

    /// Returns the end state, after a check that each balance is the sum of its entries.
    pub(crate) async fn end(&self) -> PaymentResult {
        // Abandoned calls may still take effect.
        tokio::time::sleep(Duration::from_secs(100)).await;
        let account = self.account().await;
        let balance = self.ledger.balance(&account.wallet, &purchased_terms()).await.unwrap();
        let pool = &balance.pools[0];
        let entries = self.ledger.entries(&account.wallet, PageRequest::first()).await.unwrap().items;
        assert_eq!(audit::compare(&balance, &entries), Ok(Vec::new()), "{entries:?}");
        PaymentResult {
            plan: account.plan,
            paid: account.paid,
            anchor: account.anchor,
            blocked: account.blocked,
            purchased: pool.granted,
            spent: pool.spent,
            orders: self.stored_orders().await,
            receipts: self.receipts().await,
        }
    }

    async fn receipts(&self) -> Vec<String> {
        queued_mails(&*self.outbox).await
    }

    async fn stored_orders(&self) -> BTreeMap<String, (OrderState, Vec<u64>)> {
        let mut found = BTreeMap::new();
        for id in ["one", "two", "three", "in_1", "in_2", "in_3", "in_4"] {
            if let Some(order) = self.order(id).await {
                found.insert(id.to_owned(), (order.state, order.refunded_credits));
            }
        }
        found
    }

    /// A stored order.
    pub(crate) async fn order(&self, id: &str) -> Option<Order> {
        self.orders.order(&OrderId::new(id)).await.unwrap()
    }
}

/// The sorted ids of the mails that were queued.
pub(crate) async fn queued_mails(outbox: &dyn Outbox) -> Vec<String> {
    let never = Timestamp::from_millis(i64::MAX / 2);
    let mails = outbox.lease_due(never, never, 100).await.unwrap();
    let mut ids: Vec<_> = mails.into_iter().map(|mail| mail.id).collect();
    ids.sort();
    ids
}

fn opened(outcome: BuyOutcome) -> OpenedCheckout {
    match outcome {
        BuyOutcome::Opened(sold) => sold,
        other => panic!("{other:?}"),
    }
}

/// A signed webhook request with this object.
pub(crate) fn call(subject: &ProviderObject) -> WebhookRequest {
    let customer = subject.customer.as_deref().unwrap_or("");
    let body = format!("{} {customer}", subject.object).into_bytes();
    WebhookRequest { signature: Some(SIGNATURE.to_owned()), body }
}

fn purchased_terms() -> Terms {
    Terms { pools: vec![Pool::Purchased], resets_at: None }
}

pub(crate) fn run_in_virtual_time<F: Future>(story: F) -> F::Output {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_time().start_paused(true).build();
    runtime.unwrap().block_on(story)
}
