//! Conformance cases of the order store.

use std::sync::Arc;

use super::{at, call_concurrently, expect_error, expect_ok, read_pages};
use crate::{
    accounts::{Order, OrderItem, OrderState, OrderStore},
    directory::Plan,
    error::ErrorKind,
    ids::{AccountId, OrderId},
    page::PageRequest,
};

/// Generates one test per case of [`OrderStore`]; see [`crate::testing`].
#[macro_export]
macro_rules! orders_conformance {
    ($make:expr) => {
        $crate::conformance_cases! { $make; $crate::accounts::OrderStore; [$crate::testing::orders];
            opened_order_is_returned_unchanged
            order_opened_again_is_unchanged
            order_id_with_other_body_is_conflict
            new_order_must_have_version_one
            order_update_requires_latest_version
            order_item_and_price_never_change
            concurrent_order_updates_take_effect_once
            revoked_amounts_are_kept
            unsettled_orders_are_listed_oldest_first
            account_orders_are_listed_oldest_first
        }
    };
}

type OrderTestStore = Arc<dyn OrderStore>;

fn order(id: &str) -> Order {
    Order {
        id: OrderId::new(id),
        version: 1,
        account: AccountId::new("account"),
        item: OrderItem::Pack("small".to_owned()),
        credits: 1_000,
        amount_minor: 990,
        currency: "usd".to_owned(),
        state: OrderState::Open,
        payment: None,
        refunded_credits: Vec::new(),
        returned_minor: 0,
        paid_minor: None,
        language: None,
        created_at: at(0),
    }
}

async fn stored(store: &OrderTestStore, id: &str) -> Option<Order> {
    expect_ok(store.order(&OrderId::new(id)).await)
}

/// An order is returned as it was opened.
pub async fn opened_order_is_returned_unchanged(store: OrderTestStore) {
    assert_eq!(stored(&store, "a").await, None, "an unknown order is `None`");
    let pack = Order {
        item: OrderItem::Pack("größe «L»".to_owned()),
        payment: Some("cs_1".to_owned()),
        language: Some("pt-BR".to_owned()),
        ..order("a")
    };
    let plan = Order { item: OrderItem::Plan(Plan::Pro), credits: 0, amount_minor: 1 << 40, ..order("b") };
    for opened in [pack, plan] {
        expect_ok(store.open(opened.clone()).await);
        let id = opened.id.as_str().to_owned();
        assert_eq!(stored(&store, &id).await, Some(opened), "an order is returned as it was opened");
    }
    for (n, plan) in Plan::ALL.into_iter().enumerate() {
        let id = format!("plan {n}");
        expect_ok(store.open(Order { item: OrderItem::Plan(plan), ..order(&id) }).await);
        let item = stored(&store, &id).await.map(|order| order.item);
        assert_eq!(item, Some(OrderItem::Plan(plan)), "every plan can be sold");
    }
    let named = Order { item: OrderItem::Pack("pro".to_owned()), ..order("c") };
    expect_ok(store.open(named.clone()).await);
    assert_eq!(stored(&store, "c").await, Some(named), "a pack may have the name of a plan");
}

/// Opening the same order again succeeds and changes nothing, even after an update.
pub async fn order_opened_again_is_unchanged(store: OrderTestStore) {
    for _ in 0..2 {
        expect_ok(store.open(order("a")).await);
    }
    let paid = Order { state: OrderState::Fulfilled, payment: Some("pi_1".to_owned()), ..order("a") };
    assert!(expect_ok(store.update(paid.clone(), 1).await));
    expect_ok(store.open(order("a")).await);
    let expect = Order { version: 2, ..paid };
    assert_eq!(stored(&store, "a").await, Some(expect), "opening again changes nothing");
}

/// An id belongs to one order only.
pub async fn order_id_with_other_body_is_conflict(store: OrderTestStore) {
    expect_ok(store.open(order("a")).await);
    for other in [
        Order { account: AccountId::new("another"), ..order("a") },
        Order { item: OrderItem::Plan(Plan::Starter), ..order("a") },
        Order { item: OrderItem::Pack("large".to_owned()), ..order("a") },
        Order { credits: 1_001, ..order("a") },
        Order { amount_minor: 991, ..order("a") },
        Order { currency: "eur".to_owned(), ..order("a") },
        Order { created_at: at(1), ..order("a") },
    ] {
        expect_error(store.open(other).await, ErrorKind::Conflict, "the id belongs to another order");
    }
    assert_eq!(stored(&store, "a").await, Some(order("a")), "a conflict changes nothing");
}

/// A new order must have version 1.
pub async fn new_order_must_have_version_one(store: OrderTestStore) {
    for version in [0, 2] {
        let wrong = Order { version, ..order("a") };
        expect_error(store.open(wrong).await, ErrorKind::Invalid, "an order is opened with version 1");
    }
    assert_eq!(stored(&store, "a").await, None, "an invalid order is not stored");
}

/// An update succeeds only with the stored version.
pub async fn order_update_requires_latest_version(store: OrderTestStore) {
    expect_ok(store.open(order("a")).await);
    expect_ok(store.open(order("b")).await);
    let states = [
        OrderState::Fulfilled,
        OrderState::Refunded,
        OrderState::Disputed,
        OrderState::Expired,
        OrderState::Open,
    ];
    for (state, version) in states.into_iter().zip(1..) {
        let payment = (version % 2 == 1).then(|| format!("pi_{version}"));
        let changed = Order { state, payment, version: 77, ..order("a") };
        assert!(!expect_ok(store.update(changed.clone(), version + 1).await), "the version is not stored");
        assert!(expect_ok(store.update(changed.clone(), version).await), "the version is stored");
        assert!(!expect_ok(store.update(changed.clone(), version).await), "the version was replaced");
        let expect = Order { version: version + 1, ..changed };
        assert_eq!(stored(&store, "a").await, Some(expect), "its version increases by one");
    }
    assert!(!expect_ok(store.update(order("unknown"), 1).await), "an unknown order is not updated");
    assert_eq!(stored(&store, "unknown").await, None, "an unknown order is not created");
    assert_eq!(stored(&store, "b").await, Some(order("b")), "other orders stay");
}

/// An update never changes what was sold, to which account and at what price.
pub async fn order_item_and_price_never_change(store: OrderTestStore) {
    expect_ok(store.open(order("a")).await);
    let other = Order {
        account: AccountId::new("another"),
        item: OrderItem::Plan(Plan::Scale),
        credits: 9_999_999,
        amount_minor: 1,
        currency: "xxx".to_owned(),
        state: OrderState::Fulfilled,
        created_at: at(99),
        ..order("a")
    };
    assert!(expect_ok(store.update(other, 1).await));
    let expect = Order { version: 2, state: OrderState::Fulfilled, ..order("a") };
    assert_eq!(stored(&store, "a").await, Some(expect), "only state and payment change");
}

/// Of concurrent updates of one version exactly one takes effect.
pub async fn concurrent_order_updates_take_effect_once(store: OrderTestStore) {
    expect_ok(store.open(order("a")).await);
    let updated = call_concurrently(&store, 0..10, |store, n| async move {
        let changed = Order { payment: Some(format!("pi_{n}")), ..order("a") };
        expect_ok(store.update(changed, 1).await)
    })
    .await;
    let winners: Vec<_> = (0..10).filter(|n| updated[*n]).collect();
    assert_eq!(winners.len(), 1, "one update takes effect");
    let payment = stored(&store, "a").await.and_then(|order| order.payment);
    assert_eq!(payment, Some(format!("pi_{}", winners[0])), "the stored order is that of this update");
}

/// Revoked amounts are kept: updates extend them, and opening again leaves them.
pub async fn revoked_amounts_are_kept(store: OrderTestStore) {
    expect_ok(store.open(order("a")).await);
    for (refunded_credits, version) in [vec![1], vec![1, 500], vec![1, 500, 1_000]].into_iter().zip(1..) {
        let returned_minor = version * 100;
        let paid_minor = (version > 1).then_some(version * 200);
        let changed =
            Order { refunded_credits: refunded_credits.clone(), returned_minor, paid_minor, ..order("a") };
        assert!(expect_ok(store.update(changed, version).await));
        expect_ok(store.open(order("a")).await);
        let found = stored(&store, "a").await;
        let found = found.map(|order| (order.refunded_credits, order.returned_minor, order.paid_minor));
        assert_eq!(found, Some((refunded_credits, returned_minor, paid_minor)), "revoked amounts are kept");
    }
}

/// Only open orders are unsettled; each is listed once, oldest first, also while others change.
pub async fn unsettled_orders_are_listed_oldest_first(store: OrderTestStore) {
    assert!(expect_ok(store.list_open(PageRequest::first()).await).items.is_empty());
    for (id, time) in [("c", 1), ("b", 10), ("a", 2), ("d", 10), ("paid", 3), ("late", 4)] {
        expect_ok(store.open(Order { created_at: at(time), ..order(id) }).await);
    }
    let paid = Order { state: OrderState::Fulfilled, ..order("paid") };
    assert!(expect_ok(store.update(paid, 1).await));
    let found = read_pages(2, async |page| {
        let is_first = page.after.is_none();
        let part = store.list_open(page).await;
        // Settle the last order of the first page and one order of the next page before reading on.
        for id in ["a", "late"].into_iter().filter(|_| is_first) {
            let expired = Order { state: OrderState::Expired, ..order(id) };
            assert!(expect_ok(store.update(expired, 1).await));
        }
        part
    });
    let found: Vec<_> = found.await.into_iter().map(|order| order.id.to_string()).collect();
    assert_eq!(found, ["c", "a", "b", "d"], "oldest first, then by id");
}

/// All orders of an account are listed whatever their state, oldest first, each once.
///
/// Orders of other accounts are not listed.
pub async fn account_orders_are_listed_oldest_first(store: OrderTestStore) {
    let account = AccountId::new("account");
    assert!(expect_ok(store.list_for_account(&account, PageRequest::first()).await).items.is_empty());
    for (id, time) in [("c", 1), ("b", 10), ("a", 2), ("d", 10), ("paid", 3)] {
        expect_ok(store.open(Order { created_at: at(time), ..order(id) }).await);
    }
    let another = AccountId::new("accounts");
    expect_ok(store.open(Order { account: another.clone(), created_at: at(2), ..order("another's") }).await);
    let paid = Order { state: OrderState::Fulfilled, ..order("paid") };
    assert!(expect_ok(store.update(paid, 1).await));
    let found = read_pages(2, async |page| store.list_for_account(&account, page).await).await;
    let found: Vec<_> = found.iter().map(|order| order.id.as_str()).collect();
    assert_eq!(found, ["c", "a", "paid", "b", "d"], "oldest first, then by id");
    let others = expect_ok(store.list_for_account(&another, PageRequest::first()).await).items;
    assert_eq!(others.len(), 1, "each account has its own orders");
}
