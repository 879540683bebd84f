//! Holds whose rows cannot be read.

use transcript_core::{
    ErrorKind,
    ids::HoldId,
    ledger::{HoldOutcome, HoldRequest, Ledger, SettleRequest},
};

use super::{grant, request, timestamp};

/// A hold that cannot be read delays the expiry of no other one. What names it or its wallet fails.
#[tokio::test]
async fn unreadable_hold_delays_no_other_expiry() {
    let (store, place) = crate::store().await;
    let store: &dyn Ledger = &*store;
    for (id, wallet) in [("a", "one"), ("b", "two"), ("c", "three")] {
        grant(store, id, wallet, 2).await;
        let held = store.hold(request(id.to_owned(), wallet, 1)).await.unwrap();
        assert!(matches!(held, HoldOutcome::Held { .. }), "{held:?}");
    }
    crate::run_on_store(&place, &format!("UPDATE ledger_holds SET {} WHERE id = 'a'", crate::DAMAGED_HOLD))
        .await;
    let now = timestamp(60_000);
    assert_eq!(store.expire(now, 1).await.unwrap(), 1, "the next one is expired");
    assert_eq!(store.expire(now, 9).await.unwrap(), 1);
    assert_eq!(store.expire(now, 9).await.unwrap(), 0);
    let settle = SettleRequest { id: HoldId::new("a"), spent: vec![1], now };
    assert_eq!(store.settle(settle).await.unwrap_err().kind(), ErrorKind::Corrupt);
    let another = HoldRequest { now, expires_at: timestamp(120_000), ..request("d".to_owned(), "one", 1) };
    assert_eq!(store.hold(another).await.unwrap_err().kind(), ErrorKind::Corrupt);
}
