//! Tests of the sandbox provider with in-memory stores.

use std::time::Duration;

use super::*;
use crate::{
    accounts::{
        OrderItem, OrderState, PlanTable,
        payments::{BuyOutcome, BuyerStatus, OrderResolution, Pack, PaymentDeps, Payments, SubscribeOutcome},
    },
    directory::{Account, AccountRef, Directory, NewKeyRecord, Plan, RedeemRequest, VerificationToken},
    ids::{AccountId, KeyId, WalletId},
    ledger::{Ledger, Pool, Terms},
    memory::{MemoryDirectory, MemoryLedger, MemoryOrders, MemoryOutbox, MemoryRateLimiter, MemorySecrets},
    test_doubles::{ManualClock, SequentialRandom},
};

const DAY: Duration = Duration::from_secs(86_400);

struct SandboxFixture {
    sandbox: Sandbox,
    payments: Payments,
    orders: Arc<MemoryOrders>,
    directory: Arc<MemoryDirectory>,
    ledger: Arc<MemoryLedger>,
    clock: Arc<ManualClock>,
}

impl SandboxFixture {
    async fn open() -> Self {
        let clock = Arc::new(ManualClock::new(Timestamp::from_millis(1_795_176_000_000)));
        let orders = Arc::new(MemoryOrders::default());
        let deps = SandboxDeps {
            orders: Arc::clone(&orders) as _,
            clock: Arc::clone(&clock) as _,
            base_url: "http://127.0.0.1:8080".to_owned(),
        };
        let sandbox =
            Sandbox::open(deps, &MemorySecrets::default(), &SequentialRandom::default()).await.unwrap();
        let (directory, ledger) = (Arc::new(MemoryDirectory::default()), Arc::new(MemoryLedger::default()));
        let mut plans = PlanTable::default();
        plans.starter.price_cents = Some(900);
        plans.pro.price_cents = Some(2_900);
        let payments = Payments::new(PaymentDeps {
            orders: Arc::clone(&orders) as _,
            directory: Arc::clone(&directory) as _,
            ledger: Arc::clone(&ledger) as _,
            outbox: Arc::new(MemoryOutbox::default()),
            limiter: Arc::new(MemoryRateLimiter::default()),
            provider: Some(Arc::new(sandbox.clone())),
            clock: Arc::clone(&clock) as _,
            plans,
        });
        let now = clock.now();
        let expires_at = now.plus(Duration::from_secs(60));
        let token =
            VerificationToken { digest: vec![1; 32], email: "ann@example.org".to_owned(), expires_at, now };
        directory.put_token(token).await.unwrap();
        let redeem = RedeemRequest {
            digest: vec![1; 32],
            confirmed: true,
            new_account: AccountId::new("ann"),
            new_wallet: WalletId::new("purse"),
            key: NewKeyRecord { id: KeyId::new("key"), digest: vec![2; 32], hint: String::new(), now },
        };
        directory.redeem(redeem).await.unwrap();
        Self { sandbox, payments, orders, directory, ledger, clock }
    }

    async fn account(&self) -> Account {
        let account_ref = AccountRef::Id(AccountId::new("ann"));
        self.directory.account(&account_ref).await.unwrap().unwrap()
    }

    async fn buy(&self, id: &str) -> OrderId {
        let pack = Pack::from_wire("1k").unwrap();
        match self.payments.buy(&self.account().await, pack, OrderId::new(id)).await.unwrap() {
            BuyOutcome::Opened(sold) => sold.order,
            other => panic!("{other:?}"),
        }
    }

    async fn subscribe(&self, id: &str, plan: Plan) -> OrderId {
        match self.payments.subscribe(&self.account().await, plan, OrderId::new(id)).await.unwrap() {
            SubscribeOutcome::Opened(sold) => sold.order,
            other => panic!("{other:?}"),
        }
    }

    async fn apply_action(&self, order: &OrderId, action: SandboxAction) {
        let token = self.sandbox.token(order);
        let subject = self.sandbox.apply(order, &token, action).await.unwrap().unwrap();
        self.payments.reconcile(&subject).await.unwrap();
    }

    async fn purchased_credits(&self) -> u64 {
        let terms = Terms { pools: vec![Pool::Purchased], resets_at: None };
        self.ledger.balance(&WalletId::new("purse"), &terms).await.unwrap().pools[0].granted
    }

    async fn state(&self, order: &OrderId) -> (OrderState, SandboxStatus) {
        let shown = self.sandbox.show(order, &self.sandbox.token(order)).await.unwrap().unwrap();
        (shown.order.state, shown.status)
    }
}

#[tokio::test]
async fn sandbox_pack_is_paid_once_and_refunded() {
    let fixture = SandboxFixture::open().await;
    let order = fixture.buy("order-1").await;
    assert_eq!(fixture.state(&order).await, (OrderState::Open, SandboxStatus::Open));
    for _ in 0..3 {
        fixture.apply_action(&order, SandboxAction::Pay).await;
    }
    assert_eq!(fixture.state(&order).await, (OrderState::Fulfilled, SandboxStatus::Paid));
    assert_eq!(fixture.purchased_credits().await, 1_000);
    fixture.apply_action(&order, SandboxAction::Cancel).await;
    assert_eq!(fixture.purchased_credits().await, 1_000, "a paid order cannot be cancelled");
    for (minor, left) in [(0, 1_000), (400, 667), (801, 667), (800, 0), (1, 0)] {
        fixture.apply_action(&order, SandboxAction::Refund(minor)).await;
        assert_eq!(fixture.purchased_credits().await, left, "{minor}");
    }
    assert_eq!(fixture.state(&order).await, (OrderState::Refunded, SandboxStatus::Paid));
}

#[tokio::test]
async fn sandbox_late_payment_is_granted_on_arrival() {
    let fixture = SandboxFixture::open().await;
    let (one, two) = (fixture.buy("order-1").await, fixture.buy("order-2").await);
    for order in [&one, &two] {
        fixture.apply_action(order, SandboxAction::PayLater).await;
        fixture.apply_action(order, SandboxAction::Pay).await;
        assert_eq!(fixture.state(order).await, (OrderState::Open, SandboxStatus::Pending));
    }
    assert_eq!(fixture.purchased_credits().await, 0);
    fixture.apply_action(&one, SandboxAction::Complete).await;
    fixture.apply_action(&two, SandboxAction::Fail).await;
    assert_eq!(fixture.purchased_credits().await, 1_000);
    assert_eq!(fixture.state(&two).await, (OrderState::Expired, SandboxStatus::Ended));
    fixture.apply_action(&two, SandboxAction::Pay).await;
    assert_eq!(fixture.purchased_credits().await, 1_000, "a closed page stays closed");
}

#[tokio::test]
async fn sandbox_plan_lasts_one_month_and_is_replaced() {
    let fixture = SandboxFixture::open().await;
    let order = fixture.subscribe("order-1", Plan::Starter).await;
    fixture.apply_action(&order, SandboxAction::Pay).await;
    let account = fixture.account().await;
    let paid = account.paid.unwrap();
    assert_eq!(
        (account.plan, paid.from, paid.through.since(paid.from).as_secs() / 86_400),
        (Plan::Starter, fixture.clock.now(), 30)
    );
    fixture.clock.advance(15 * DAY);
    let order = fixture.subscribe("order-2", Plan::Pro).await;
    fixture.apply_action(&order, SandboxAction::Pay).await;
    let account = fixture.account().await;
    let paid = account.paid.unwrap();
    // Half a month of the smaller plan plus a whole one of the larger: one period, so no credit counts twice.
    assert_eq!((account.plan, paid.credits), (Plan::Pro, 11_000));
    // The old order is reconciled again and changes nothing.
    fixture.payments.reconcile(&ProviderObject::new("sandbox-order-1")).await.unwrap();
    assert_eq!(fixture.account().await, account);
    fixture.apply_action(&order, SandboxAction::Refund(2_900)).await;
    let account = fixture.account().await;
    assert_eq!((account.plan, account.paid.unwrap().credits), (Plan::Starter, 2_000), "the month below it");
    fixture.clock.advance(40 * DAY);
    fixture.payments.reconcile(&ProviderObject::new("sandbox-order-2")).await.unwrap();
    assert_eq!(fixture.account().await.subscription, None);
}

#[tokio::test]
async fn sandbox_page_needs_token_of_order() {
    let fixture = SandboxFixture::open().await;
    let (one, two) = (fixture.buy("order-1").await, fixture.buy("order-2").await);
    let token = fixture.sandbox.token(&one);
    assert_eq!(token.len(), 64);
    assert_eq!(
        fixture.sandbox.page_url(&one),
        format!("http://127.0.0.1:8080/checkout/order-1/sandbox?token={token}")
    );
    let mut forged =
        vec![fixture.sandbox.token(&two), String::new(), token[1..].to_owned(), format!("{token}00")];
    forged.extend([
        "é".to_owned(),
        format!("+{}", &token[1..]),
        "0".repeat(64),
        token.replace(&token[..1], "g"),
    ]);
    for forged in forged {
        assert_eq!(fixture.sandbox.show(&one, &forged).await.unwrap(), None, "{forged}");
        assert_eq!(fixture.sandbox.apply(&one, &forged, SandboxAction::Pay).await.unwrap(), None, "{forged}");
    }
    assert_eq!(fixture.state(&one).await.1, SandboxStatus::Open);
    let unknown = OrderId::new("order-3");
    assert_eq!(fixture.sandbox.show(&unknown, &fixture.sandbox.token(&unknown)).await.unwrap(), None);
    let call = WebhookRequest { signature: None, body: b"{}".to_vec() };
    assert!(matches!(fixture.payments.handle_webhook(call).await.unwrap(), WebhookOutcome::Rejected { .. }));
}

#[tokio::test]
async fn sandbox_page_has_language_of_order() {
    let fixture = SandboxFixture::open().await;
    let id = fixture.buy("order-1").await;
    let shown = fixture.sandbox.show(&id, &fixture.sandbox.token(&id)).await.unwrap().unwrap();
    for (language, query) in [(None, ""), (Some("pt-BR"), "&hl=pt-BR"), (Some("a b"), ""), (Some(""), "")] {
        let order = Order { language: language.map(str::to_owned), ..shown.order.clone() };
        let email = "ann@example.org".to_owned();
        let request = CheckoutRequest { order, email, customer: None, subscription: None };
        let session = fixture.sandbox.create_checkout(request).await.unwrap();
        assert_eq!(session.url, format!("{}{query}", fixture.sandbox.page_url(&id)));
    }
}

#[tokio::test]
async fn sandbox_ignores_orders_of_other_providers() {
    let fixture = SandboxFixture::open().await;
    let order = Order {
        id: OrderId::new("order-1"),
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
        created_at: fixture.clock.now(),
    };
    fixture.orders.open(order.clone()).await.unwrap();
    let token = fixture.sandbox.token(&order.id);
    assert_eq!(fixture.sandbox.apply(&order.id, &token, SandboxAction::Pay).await.unwrap(), None);
    assert_eq!(fixture.orders.order(&order.id).await.unwrap(), Some(order));
    assert!(fixture.sandbox.owns("sandbox-order-1 {}") && !fixture.sandbox.owns("cs_1"));
}

#[tokio::test]
async fn sandbox_reopened_page_keeps_status() {
    let fixture = SandboxFixture::open().await;
    let order = fixture.buy("order-1").await;
    fixture.apply_action(&order, SandboxAction::PayLater).await;
    assert_eq!(fixture.buy("order-1").await, order);
    assert_eq!(fixture.state(&order).await.1, SandboxStatus::Pending);
}

#[tokio::test]
async fn sandbox_only_one_plan_page_is_open() {
    let fixture = SandboxFixture::open().await;
    let (pack, starter) = (fixture.buy("pack").await, fixture.subscribe("starter", Plan::Starter).await);
    let pro = fixture.subscribe("pro", Plan::Pro).await;
    fixture.apply_action(&starter, SandboxAction::Pay).await;
    assert_eq!(fixture.state(&starter).await, (OrderState::Expired, SandboxStatus::Ended));
    assert_eq!(fixture.account().await.plan, Plan::Free);
    assert_eq!(fixture.state(&pack).await, (OrderState::Open, SandboxStatus::Open));
    fixture.apply_action(&pro, SandboxAction::Pay).await;
    assert_eq!(fixture.account().await.plan, Plan::Pro);
}

#[tokio::test]
async fn order_status_of_plan_shows_resolution() {
    let fixture = SandboxFixture::open().await;
    let resolution =
        async |id: &OrderId| fixture.payments.refreshed_status(id).await.unwrap().unwrap().resolution;
    let starter = fixture.subscribe("starter", Plan::Starter).await;
    fixture.apply_action(&starter, SandboxAction::PayLater).await;
    let pro = fixture.subscribe("pro", Plan::Pro).await;
    fixture.apply_action(&pro, SandboxAction::Pay).await;
    assert_eq!(
        (resolution(&starter).await, resolution(&pro).await),
        (OrderResolution::Unchanged, OrderResolution::Active)
    );
    fixture.apply_action(&starter, SandboxAction::Complete).await;
    assert_eq!(
        (resolution(&starter).await, resolution(&pro).await),
        (OrderResolution::GrantedAsCredits, OrderResolution::Active)
    );
    assert_eq!(fixture.purchased_credits().await, 2_000);
    fixture.clock.advance(40 * DAY);
    assert_eq!(resolution(&pro).await, OrderResolution::Unchanged, "its month is over");
}

#[tokio::test]
async fn order_status_payment_for_deleted_account_is_unfulfilled() {
    let fixture = SandboxFixture::open().await;
    let item = [OrderItem::Pack("1k".to_owned()), OrderItem::Plan(Plan::Pro)];
    for (index, item) in item.into_iter().enumerate() {
        let ids = (fixture.buy(&format!("like-{index}")).await, OrderId::new(format!("gone-{index}")));
        let template = fixture.orders.order(&ids.0).await.unwrap().unwrap();
        let payment = Some(SandboxRecord::new(fixture.clock.now(), None).encode(&ids.1));
        let account = AccountId::new("deleted");
        let order = Order { id: ids.1.clone(), account, item, version: 1, payment, ..template };
        fixture.orders.open(order).await.unwrap();
        let status = async || {
            let status = fixture.payments.refreshed_status(&ids.1).await.unwrap().unwrap();
            (status.order.state, status.resolution, status.buyer)
        };
        assert_eq!(status().await, (OrderState::Open, OrderResolution::Unchanged, BuyerStatus::Deleted));
        fixture.apply_action(&ids.1, SandboxAction::Pay).await;
        let unfulfilled = |is_returned| {
            (OrderState::Open, OrderResolution::Unfulfilled { is_returned }, BuyerStatus::Deleted)
        };
        assert_eq!(status().await, unfulfilled(false));
        fixture.apply_action(&ids.1, SandboxAction::Refund(1_200)).await;
        assert_eq!(status().await, unfulfilled(true));
    }
}

#[tokio::test]
async fn sandbox_closed_page_cannot_be_paid() {
    let fixture = SandboxFixture::open().await;
    let (one, two) = (fixture.buy("order-1").await, fixture.subscribe("order-2", Plan::Starter).await);
    let pending = fixture.buy("order-3").await;
    fixture.apply_action(&pending, SandboxAction::PayLater).await;
    let account = fixture.account().await;
    assert_eq!(fixture.payments.close(&account).await.unwrap(), account);
    for order in [&one, &two] {
        fixture.apply_action(order, SandboxAction::Pay).await;
        assert_eq!(fixture.state(order).await, (OrderState::Expired, SandboxStatus::Ended), "{order}");
    }
    assert_eq!(fixture.state(&pending).await, (OrderState::Open, SandboxStatus::Pending));
    fixture.apply_action(&pending, SandboxAction::Complete).await;
    assert_eq!((fixture.purchased_credits().await, fixture.account().await), (1_000, account));
}

#[tokio::test]
async fn close_refunded_subscription_is_cancelled() {
    let fixture = SandboxFixture::open().await;
    let order = fixture.subscribe("order-1", Plan::Starter).await;
    fixture.apply_action(&order, SandboxAction::Pay).await;
    let account = fixture.account().await;
    assert_eq!(fixture.payments.close(&account).await.unwrap(), account, "its month continues");
    fixture.apply_action(&order, SandboxAction::Refund(900)).await;
    let account = fixture.account().await;
    assert!(account.subscription.is_some());
    assert_eq!(fixture.payments.close(&account).await.unwrap().subscription, None);
}
