//! The cases of the orders.

use std::sync::Arc;

use super::{at, done, refused, together};
use crate::{
    accounts::{Item, Order, OrderState, Orders},
    directory::Plan,
    error::ErrorKind,
    ids::{AccountId, OrderId},
    page::PageRequest,
};

/// Makes a test of every case of [`Orders`]; see [`crate::testing`].
#[macro_export]
macro_rules! orders_conformance {
    ($make:expr) => {
        $crate::conformance_cases! { $make; $crate::accounts::Orders; [$crate::testing::orders];
            an_order_comes_back_as_it_was_opened
            the_same_order_again_is_success
            the_id_of_another_order_is_a_conflict
            an_order_is_opened_with_version_one
            an_order_is_updated_by_who_read_it_last
            what_was_sold_never_changes
            updating_at_once_is_won_by_one
            what_was_taken_back_is_kept
            unsettled_orders_come_oldest_first
            the_orders_of_an_account_come_oldest_first
        }
    };
}

type Store = Arc<dyn Orders>;

fn order(id: &str) -> Order {
    Order {
        id: OrderId::new(id),
        version: 1,
        account: AccountId::new("account"),
        item: Item::Pack("small".to_owned()),
        credits: 1_000,
        amount_minor: 990,
        currency: "usd".to_owned(),
        state: OrderState::Open,
        payment: None,
        taken_back: Vec::new(),
        created_at: at(0),
    }
}

async fn stored(store: &Store, id: &str) -> Option<Order> {
    done(store.order(&OrderId::new(id)).await)
}

/// An order comes back as it was opened.
pub async fn an_order_comes_back_as_it_was_opened(store: Store) {
    assert_eq!(stored(&store, "a").await, None, "an unknown order is none");
    let pack =
        Order {
            item: Item::Pack("größe «L»".to_owned()), payment: Some("cs_1".to_owned()), ..order("a")
        };
    let plan = Order { item: Item::Plan(Plan::Pro), credits: 0, amount_minor: 1 << 40, ..order("b") };
    for opened in [pack, plan] {
        done(store.open(opened.clone()).await);
        let id = opened.id.as_str().to_owned();
        assert_eq!(stored(&store, &id).await, Some(opened), "an order comes back as it was opened");
    }
    for (n, plan) in Plan::ALL.into_iter().enumerate() {
        let id = format!("plan {n}");
        done(store.open(Order { item: Item::Plan(plan), ..order(&id) }).await);
        let item = stored(&store, &id).await.map(|order| order.item);
        assert_eq!(item, Some(Item::Plan(plan)), "every plan can be sold");
    }
    let named = Order { item: Item::Pack("pro".to_owned()), ..order("c") };
    done(store.open(named.clone()).await);
    assert_eq!(stored(&store, "c").await, Some(named), "a pack with a plan's name is no plan");
}

/// The same order again is success and changes nothing, also when it was updated since.
pub async fn the_same_order_again_is_success(store: Store) {
    for _ in 0..2 {
        done(store.open(order("a")).await);
    }
    let paid = Order { state: OrderState::Fulfilled, payment: Some("pi_1".to_owned()), ..order("a") };
    assert!(done(store.update(paid.clone(), 1).await));
    done(store.open(order("a")).await);
    let expect = Order { version: 2, ..paid };
    assert_eq!(stored(&store, "a").await, Some(expect), "opening again changes nothing");
}

/// An id is one order's only.
pub async fn the_id_of_another_order_is_a_conflict(store: Store) {
    done(store.open(order("a")).await);
    for other in [
        Order { account: AccountId::new("another"), ..order("a") },
        Order { item: Item::Plan(Plan::Starter), ..order("a") },
        Order { item: Item::Pack("large".to_owned()), ..order("a") },
        Order { credits: 1_001, ..order("a") },
        Order { amount_minor: 991, ..order("a") },
        Order { currency: "eur".to_owned(), ..order("a") },
        Order { created_at: at(1), ..order("a") },
    ] {
        refused(store.open(other).await, ErrorKind::Conflict, "the id is another order's");
    }
    assert_eq!(stored(&store, "a").await, Some(order("a")), "a conflict changes nothing");
}

/// A new order has version 1.
pub async fn an_order_is_opened_with_version_one(store: Store) {
    for version in [0, 2] {
        let wrong = Order { version, ..order("a") };
        refused(store.open(wrong).await, ErrorKind::Invalid, "an order is opened with version 1");
    }
    assert_eq!(stored(&store, "a").await, None, "an invalid order is not stored");
}

/// An order is updated by whoever read its latest version.
pub async fn an_order_is_updated_by_who_read_it_last(store: Store) {
    done(store.open(order("a")).await);
    done(store.open(order("b")).await);
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
        assert!(!done(store.update(changed.clone(), version + 1).await), "a version that is not stored");
        assert!(done(store.update(changed.clone(), version).await), "the version that is stored");
        assert!(!done(store.update(changed.clone(), version).await), "a version that was replaced");
        let expect = Order { version: version + 1, ..changed };
        assert_eq!(stored(&store, "a").await, Some(expect), "its version is one more");
    }
    assert!(!done(store.update(order("nobody's"), 1).await), "an unknown order is not updated");
    assert_eq!(stored(&store, "nobody's").await, None, "nor made");
    assert_eq!(stored(&store, "b").await, Some(order("b")), "others stay");
}

/// What was sold, to whom and at what price stays as it was opened.
pub async fn what_was_sold_never_changes(store: Store) {
    done(store.open(order("a")).await);
    let other = Order {
        account: AccountId::new("another"),
        item: Item::Plan(Plan::Scale),
        credits: 9_999_999,
        amount_minor: 1,
        currency: "xxx".to_owned(),
        state: OrderState::Fulfilled,
        created_at: at(99),
        ..order("a")
    };
    assert!(done(store.update(other, 1).await));
    let expect = Order { version: 2, state: OrderState::Fulfilled, ..order("a") };
    assert_eq!(stored(&store, "a").await, Some(expect), "only state and payment change");
}

/// Of many updates of one version exactly one takes effect.
pub async fn updating_at_once_is_won_by_one(store: Store) {
    done(store.open(order("a")).await);
    let updated = together((0..10).map(|n| {
        let store = Arc::clone(&store);
        let changed = Order { payment: Some(format!("pi_{n}")), ..order("a") };
        async move { done(store.update(changed, 1).await) }
    }))
    .await;
    let winners: Vec<_> = (0..10).filter(|n| updated[*n]).collect();
    assert_eq!(winners.len(), 1, "one wins");
    let payment = stored(&store, "a").await.and_then(|order| order.payment);
    assert_eq!(payment, Some(format!("pi_{}", winners[0])), "what is stored is the winner's");
}

/// What was taken back grows with updates, and opening again leaves it.
pub async fn what_was_taken_back_is_kept(store: Store) {
    done(store.open(order("a")).await);
    for (taken_back, version) in [vec![1], vec![1, 500], vec![1, 500, 1_000]].into_iter().zip(1..) {
        let changed = Order { taken_back: taken_back.clone(), ..order("a") };
        assert!(done(store.update(changed, version).await));
        done(store.open(order("a")).await);
        let found = stored(&store, "a").await.map(|order| order.taken_back);
        assert_eq!(found, Some(taken_back), "what was taken back is kept");
    }
}

/// Only open orders are unsettled; they come oldest first, each once, however many change meanwhile.
pub async fn unsettled_orders_come_oldest_first(store: Store) {
    assert!(done(store.unsettled(PageRequest::first()).await).items.is_empty());
    for (id, moment) in [("c", 1), ("b", 10), ("a", 2), ("d", 10), ("paid", 3), ("late", 4)] {
        done(store.open(Order { created_at: at(moment), ..order(id) }).await);
    }
    let paid = Order { state: OrderState::Fulfilled, ..order("paid") };
    assert!(done(store.update(paid, 1).await));
    let mut found = Vec::new();
    let mut page = PageRequest { after: None, limit: 2 };
    loop {
        let part = done(store.unsettled(page.clone()).await);
        assert!(part.items.len() <= 2, "a page is as large as was asked");
        if found.is_empty() {
            // The last one of the first page, and one of the next, are settled before the next is asked for.
            for id in ["a", "late"] {
                let expired = Order { state: OrderState::Expired, ..order(id) };
                assert!(done(store.update(expired, 1).await));
            }
        }
        found.extend(part.items.into_iter().map(|order| order.id.to_string()));
        match part.next {
            Some(next) => page.after = Some(next),
            None => break,
        }
    }
    assert_eq!(found, ["c", "a", "b", "d"], "oldest first, then by id");
}

/// The orders of an account come whatever became of them, oldest first, each once; those of others do not.
pub async fn the_orders_of_an_account_come_oldest_first(store: Store) {
    let account = AccountId::new("account");
    assert!(done(store.of_account(&account, PageRequest::first()).await).items.is_empty());
    for (id, moment) in [("c", 1), ("b", 10), ("a", 2), ("d", 10), ("paid", 3)] {
        done(store.open(Order { created_at: at(moment), ..order(id) }).await);
    }
    let another = AccountId::new("accounts");
    done(store.open(Order { account: another.clone(), created_at: at(2), ..order("another's") }).await);
    let paid = Order { state: OrderState::Fulfilled, ..order("paid") };
    assert!(done(store.update(paid, 1).await));
    let mut found = Vec::new();
    let mut page = PageRequest { after: None, limit: 2 };
    loop {
        let part = done(store.of_account(&account, page.clone()).await);
        assert!(part.items.len() <= 2, "a page is as large as was asked");
        found.extend(part.items.into_iter().map(|order| order.id.to_string()));
        match part.next {
            Some(next) => page.after = Some(next),
            None => break,
        }
    }
    assert_eq!(found, ["c", "a", "paid", "b", "d"], "oldest first, then by id");
    let others = done(store.of_account(&another, PageRequest::first()).await).items;
    assert_eq!(others.len(), 1, "each account has its own");
}
