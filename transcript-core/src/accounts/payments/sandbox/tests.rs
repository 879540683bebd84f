use std::sync::atomic::{AtomicI64, Ordering};

use super::*;
use crate::{
    accounts::{
        Item, OrderState, PlanTable,
        payments::{BuyOutcome, BuyerSeen, OrderFate, Pack, PaymentParts, Payments, SubscribeOutcome},
    },
    directory::{Account, AccountRef, Directory, NewKey, Plan, Redeem, Token},
    ids::{AccountId, KeyId, WalletId},
    ledger::{Ledger, Pool, Terms},
    memory::{MemoryDirectory, MemoryLedger, MemoryOrders, MemoryRateLimiter, MemorySecrets},
};

#[derive(Debug)]
struct Hands(AtomicI64);

impl Clock for Hands {
    fn now(&self) -> Timestamp {
        Timestamp::from_millis(self.0.load(Ordering::Relaxed))
    }
}

#[derive(Debug)]
struct Same;

impl Random for Same {
    fn bytes(&self, count: u32) -> Vec<u8> {
        vec![7; count as usize]
    }
}

const DAY_MS: i64 = 86_400_000;

struct Shop {
    sandbox: Sandbox,
    payments: Payments,
    orders: Arc<MemoryOrders>,
    directory: Arc<MemoryDirectory>,
    ledger: Arc<MemoryLedger>,
    clock: Arc<Hands>,
}

impl Shop {
    async fn open() -> Self {
        let clock = Arc::new(Hands(AtomicI64::new(1_795_176_000_000)));
        let orders = Arc::new(MemoryOrders::default());
        let parts = SandboxParts {
            orders: Arc::clone(&orders) as _,
            clock: Arc::clone(&clock) as _,
            base_url: "http://127.0.0.1:8080".to_owned(),
        };
        let sandbox = Sandbox::open(parts, &MemorySecrets::default(), &Same).await.unwrap();
        let (directory, ledger) = (Arc::new(MemoryDirectory::default()), Arc::new(MemoryLedger::default()));
        let mut plans = PlanTable::default();
        plans.starter.price_cents = Some(900);
        plans.pro.price_cents = Some(2_900);
        let payments = Payments::new(PaymentParts {
            orders: Arc::clone(&orders) as _,
            directory: Arc::clone(&directory) as _,
            ledger: Arc::clone(&ledger) as _,
            limiter: Arc::new(MemoryRateLimiter::default()),
            checkout: Some(Arc::new(sandbox.clone())),
            clock: Arc::clone(&clock) as _,
            plans,
        });
        let now = clock.now();
        let expires_at = now.plus(std::time::Duration::from_secs(60));
        let token = Token { digest: vec![1; 32], email: "ann@example.org".to_owned(), expires_at, now };
        directory.put_token(token).await.unwrap();
        let redeem = Redeem {
            digest: vec![1; 32],
            confirmed: true,
            new_account: AccountId::new("ann"),
            new_wallet: WalletId::new("purse"),
            key: NewKey { id: KeyId::new("key"), digest: vec![2; 32], hint: String::new(), now },
        };
        directory.redeem(redeem).await.unwrap();
        Self { sandbox, payments, orders, directory, ledger, clock }
    }

    async fn account(&self) -> Account {
        let who = AccountRef::Id(AccountId::new("ann"));
        self.directory.account(&who).await.unwrap().unwrap()
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

    async fn act(&self, order: &OrderId, deed: SandboxDeed) {
        let token = self.sandbox.token(order);
        let subject = self.sandbox.act(order, &token, deed).await.unwrap().unwrap();
        self.payments.follow(&subject).await.unwrap();
    }

    async fn purchased(&self) -> u64 {
        let terms = Terms { pools: vec![Pool::Purchased], resets_at: None };
        self.ledger.balance(&WalletId::new("purse"), &terms).await.unwrap().pools[0].granted
    }

    async fn state(&self, order: &OrderId) -> (OrderState, SandboxStep) {
        let shown = self.sandbox.show(order, &self.sandbox.token(order)).await.unwrap().unwrap();
        (shown.order.state, shown.step)
    }
}

#[tokio::test]
async fn a_pack_is_paid_once_and_refunded() {
    let shop = Shop::open().await;
    let order = shop.buy("order-1").await;
    assert_eq!(shop.state(&order).await, (OrderState::Open, SandboxStep::Open));
    for _ in 0..3 {
        shop.act(&order, SandboxDeed::Pay).await;
    }
    assert_eq!(shop.state(&order).await, (OrderState::Fulfilled, SandboxStep::Paid));
    assert_eq!(shop.purchased().await, 1_000);
    shop.act(&order, SandboxDeed::Cancel).await;
    assert_eq!(shop.purchased().await, 1_000, "what is paid cannot be cancelled");
    for (minor, left) in [(0, 1_000), (400, 667), (801, 667), (800, 0), (1, 0)] {
        shop.act(&order, SandboxDeed::Refund(minor)).await;
        assert_eq!(shop.purchased().await, left, "{minor}");
    }
    assert_eq!(shop.state(&order).await, (OrderState::Refunded, SandboxStep::Paid));
}

#[tokio::test]
async fn money_that_takes_days_is_given_when_it_arrives() {
    let shop = Shop::open().await;
    let (one, two) = (shop.buy("order-1").await, shop.buy("order-2").await);
    for order in [&one, &two] {
        shop.act(order, SandboxDeed::PayLater).await;
        shop.act(order, SandboxDeed::Pay).await;
        assert_eq!(shop.state(order).await, (OrderState::Open, SandboxStep::Pending));
    }
    assert_eq!(shop.purchased().await, 0);
    shop.act(&one, SandboxDeed::Arrive).await;
    shop.act(&two, SandboxDeed::Fail).await;
    assert_eq!(shop.purchased().await, 1_000);
    assert_eq!(shop.state(&two).await, (OrderState::Expired, SandboxStep::Ended));
    shop.act(&two, SandboxDeed::Pay).await;
    assert_eq!(shop.purchased().await, 1_000, "a page that is closed stays closed");
}

#[tokio::test]
async fn a_plan_lasts_a_month_and_another_takes_its_place() {
    let shop = Shop::open().await;
    let order = shop.subscribe("order-1", Plan::Starter).await;
    shop.act(&order, SandboxDeed::Pay).await;
    let account = shop.account().await;
    let paid = account.paid.unwrap();
    assert_eq!(
        (account.plan, paid.from, paid.through.since(paid.from).as_secs() / 86_400),
        (Plan::Starter, shop.clock.now(), 30)
    );
    shop.clock.0.fetch_add(15 * DAY_MS, Ordering::Relaxed);
    let order = shop.subscribe("order-2", Plan::Pro).await;
    shop.act(&order, SandboxDeed::Pay).await;
    let account = shop.account().await;
    let paid = account.paid.unwrap();
    // Half a month of the smaller plan, and a whole one of the larger: one period, so nothing is used twice.
    assert_eq!((account.plan, paid.credits), (Plan::Pro, 11_000));
    // The old order is looked at again: it decides no more.
    shop.payments.follow(&Subject::new("sandbox-order-1")).await.unwrap();
    assert_eq!(shop.account().await, account);
    shop.act(&order, SandboxDeed::Refund(2_900)).await;
    let account = shop.account().await;
    assert_eq!((account.plan, account.paid.unwrap().credits), (Plan::Starter, 2_000), "the month below it");
    shop.clock.0.fetch_add(40 * DAY_MS, Ordering::Relaxed);
    shop.payments.follow(&Subject::new("sandbox-order-2")).await.unwrap();
    assert_eq!(shop.account().await.subscription, None);
}

#[tokio::test]
async fn only_the_orders_own_token_opens_its_page() {
    let shop = Shop::open().await;
    let (one, two) = (shop.buy("order-1").await, shop.buy("order-2").await);
    let token = shop.sandbox.token(&one);
    assert_eq!(token.len(), 64);
    assert_eq!(
        shop.sandbox.address(&one),
        format!("http://127.0.0.1:8080/checkout/order-1/sandbox?token={token}")
    );
    let mut forged =
        vec![shop.sandbox.token(&two), String::new(), token[1..].to_owned(), format!("{token}00")];
    forged.extend([
        "é".to_owned(),
        format!("+{}", &token[1..]),
        "0".repeat(64),
        token.replace(&token[..1], "g"),
    ]);
    for forged in forged {
        assert_eq!(shop.sandbox.show(&one, &forged).await.unwrap(), None, "{forged}");
        assert_eq!(shop.sandbox.act(&one, &forged, SandboxDeed::Pay).await.unwrap(), None, "{forged}");
    }
    assert_eq!(shop.state(&one).await.1, SandboxStep::Open);
    let unknown = OrderId::new("order-3");
    assert_eq!(shop.sandbox.show(&unknown, &shop.sandbox.token(&unknown)).await.unwrap(), None);
    let call = WebhookCall { signature: None, body: b"{}".to_vec() };
    assert!(matches!(shop.payments.hear(call).await.unwrap(), Heard::Refused { .. }));
}

#[tokio::test]
async fn an_order_of_another_provider_is_none_of_the_sandboxes() {
    let shop = Shop::open().await;
    let order = Order {
        id: OrderId::new("order-1"),
        version: 1,
        account: AccountId::new("ann"),
        item: Item::Pack("1k".to_owned()),
        credits: 1_000,
        amount_minor: 1_200,
        currency: "usd".to_owned(),
        state: OrderState::Open,
        payment: Some("cs_1".to_owned()),
        taken_back: Vec::new(),
        created_at: shop.clock.now(),
    };
    shop.orders.open(order.clone()).await.unwrap();
    let token = shop.sandbox.token(&order.id);
    assert_eq!(shop.sandbox.act(&order.id, &token, SandboxDeed::Pay).await.unwrap(), None);
    assert_eq!(shop.orders.order(&order.id).await.unwrap(), Some(order));
    assert!(shop.sandbox.knows("sandbox-order-1 {}") && !shop.sandbox.knows("cs_1"));
}

#[tokio::test]
async fn a_page_that_is_opened_again_is_as_far_as_it_was() {
    let shop = Shop::open().await;
    let order = shop.buy("order-1").await;
    shop.act(&order, SandboxDeed::PayLater).await;
    assert_eq!(shop.buy("order-1").await, order);
    assert_eq!(shop.state(&order).await.1, SandboxStep::Pending);
}

#[tokio::test]
async fn one_page_for_plans_is_open_at_a_time() {
    let shop = Shop::open().await;
    let (pack, starter) = (shop.buy("pack").await, shop.subscribe("starter", Plan::Starter).await);
    let pro = shop.subscribe("pro", Plan::Pro).await;
    shop.act(&starter, SandboxDeed::Pay).await;
    assert_eq!(shop.state(&starter).await, (OrderState::Expired, SandboxStep::Ended));
    assert_eq!(shop.account().await.plan, Plan::Free);
    assert_eq!(shop.state(&pack).await, (OrderState::Open, SandboxStep::Open));
    shop.act(&pro, SandboxDeed::Pay).await;
    assert_eq!(shop.account().await.plan, Plan::Pro);
}

#[tokio::test]
async fn buyers_are_told_what_a_plan_became() {
    let shop = Shop::open().await;
    let fate = async |id: &OrderId| shop.payments.seen(id).await.unwrap().unwrap().fate;
    let starter = shop.subscribe("starter", Plan::Starter).await;
    shop.act(&starter, SandboxDeed::PayLater).await;
    let pro = shop.subscribe("pro", Plan::Pro).await;
    shop.act(&pro, SandboxDeed::Pay).await;
    assert_eq!((fate(&starter).await, fate(&pro).await), (OrderFate::AsStored, OrderFate::Present));
    shop.act(&starter, SandboxDeed::Arrive).await;
    assert_eq!((fate(&starter).await, fate(&pro).await), (OrderFate::Beside, OrderFate::Present));
    assert_eq!(shop.purchased().await, 2_000);
    shop.clock.0.fetch_add(40 * DAY_MS, Ordering::Relaxed);
    assert_eq!(fate(&pro).await, OrderFate::AsStored, "its month is over");
}

#[tokio::test]
async fn money_for_an_account_that_is_gone_is_told_as_such() {
    let shop = Shop::open().await;
    let item = [Item::Pack("1k".to_owned()), Item::Plan(Plan::Pro)];
    for (place, item) in item.into_iter().enumerate() {
        let ids = (shop.buy(&format!("like-{place}")).await, OrderId::new(format!("gone-{place}")));
        let like = shop.orders.order(&ids.0).await.unwrap().unwrap();
        let payment = Some(State::opened(shop.clock.now(), None).kept(&ids.1));
        let account = AccountId::new("nobody");
        let order = Order { id: ids.1.clone(), account, item, version: 1, payment, ..like };
        shop.orders.open(order).await.unwrap();
        let seen = async || {
            let seen = shop.payments.seen(&ids.1).await.unwrap().unwrap();
            (seen.order.state, seen.fate, seen.buyer)
        };
        assert_eq!(seen().await, (OrderState::Open, OrderFate::AsStored, BuyerSeen::Gone));
        shop.act(&ids.1, SandboxDeed::Pay).await;
        let in_vain = |is_returned| (OrderState::Open, OrderFate::InVain { is_returned }, BuyerSeen::Gone);
        assert_eq!(seen().await, in_vain(false));
        shop.act(&ids.1, SandboxDeed::Refund(1_200)).await;
        assert_eq!(seen().await, in_vain(true));
    }
}

#[tokio::test]
async fn a_page_that_was_closed_is_paid_by_nobody() {
    let shop = Shop::open().await;
    let (one, two) = (shop.buy("order-1").await, shop.subscribe("order-2", Plan::Starter).await);
    let under_way = shop.buy("order-3").await;
    shop.act(&under_way, SandboxDeed::PayLater).await;
    let account = shop.account().await;
    assert_eq!(shop.payments.close(&account).await.unwrap(), account);
    for order in [&one, &two] {
        shop.act(order, SandboxDeed::Pay).await;
        assert_eq!(shop.state(order).await, (OrderState::Expired, SandboxStep::Ended), "{order}");
    }
    assert_eq!(shop.state(&under_way).await, (OrderState::Open, SandboxStep::Pending));
    shop.act(&under_way, SandboxDeed::Arrive).await;
    assert_eq!((shop.purchased().await, shop.account().await), (1_000, account));
}

#[tokio::test]
async fn a_subscription_whose_money_went_back_whole_ends_before_its_account_does() {
    let shop = Shop::open().await;
    let order = shop.subscribe("order-1", Plan::Starter).await;
    shop.act(&order, SandboxDeed::Pay).await;
    let account = shop.account().await;
    assert_eq!(shop.payments.close(&account).await.unwrap(), account, "its month goes on");
    shop.act(&order, SandboxDeed::Refund(900)).await;
    let account = shop.account().await;
    assert!(account.subscription.is_some());
    assert_eq!(shop.payments.close(&account).await.unwrap().subscription, None);
}
