//! Conformance cases of entries, wallets and the audit: balances can always be recomputed.

use super::*;
use crate::{
    error::ErrorKind,
    ids::Cursor,
    page::PageRequest,
    testing::{SeededRng, expect_error},
};

/// Entries are in the order in which the wallet changed, with increasing numbers.
pub async fn entries_record_every_operation_in_order(store: LedgerStore) {
    grant(&store, "g", "w", 10).await;
    let pools = terms(&[bucket("month/1", 2), Pool::Purchased]);
    hold(&store, request("h", &[leg("w", pools.clone(), 4), leg("v", day_terms(1), 1)])).await;
    settle(&store, "h", &[1, 1]).await;
    hold(&store, request("i", &[leg("w", pools, 1)])).await;
    expect_ok(store.expire(at(60), 1).await);
    let _ = expect_ok(store.revoke(revoke_request("r", "g", 3)).await);
    let entries = entries(&store, "w").await;
    assert!(entries.windows(2).all(|pair| pair[0].seq < pair[1].seq), "entry numbers increase");
    assert!(entries.iter().all(|entry| entry.wallet.as_str() == "w"), "all entries belong to the wallet");
    let month = |entry: &Entry| entry.pool.bucket() == Some("month/1");
    let of = |wanted: bool| -> Vec<(EntryKind, u64)> {
        let these = entries.iter().filter(|entry| month(entry) == wanted);
        these.map(|entry| (entry.kind, entry.amount)).collect()
    };
    let expect = [
        (EntryKind::Held, 2),
        (EntryKind::Spent, 1),
        (EntryKind::Returned, 1),
        (EntryKind::Held, 1),
        (EntryKind::Expired, 1),
    ];
    assert_eq!(of(true), expect, "every operation on the allowance");
    let expect = [
        (EntryKind::Granted, 10),
        (EntryKind::Held, 2),
        (EntryKind::Returned, 2),
        (EntryKind::Revoked { shortfall: 0 }, 3),
    ];
    assert_eq!(of(false), expect, "every operation on the purchased credits");
    check_audit(&store).await;
}

/// Entries are paged: each one once, in order, new entries at the end.
pub async fn entries_are_paged_in_order(store: LedgerStore) {
    let wallet = WalletId::new("w");
    for n in 0..10 {
        grant(&store, &format!("g{n}"), "w", 1).await;
        grant(&store, &format!("other{n}"), "v", 1).await;
    }
    let all: Vec<String> = entries(&store, "w").await.into_iter().map(|entry| entry.cause).collect();
    assert_eq!(all, (0..10).map(|n| format!("g{n}")).collect::<Vec<_>>(), "oldest first");
    for limit in [1, 3, 5, 9, 10, 11, PAGE_LIMIT, u32::MAX] {
        let paged = read_pages(limit, async |page| store.entries(&wallet, page).await).await;
        let paged: Vec<String> = paged.into_iter().map(|entry| entry.cause).collect();
        assert_eq!(paged, all, "pages of {limit} give every entry once and in order");
    }
    let request = |after, limit| PageRequest { after, limit };
    let page = expect_ok(store.entries(&wallet, request(None, 10)).await);
    assert!(page.next.is_none(), "a full page with nothing after it is the last");
    let page = expect_ok(store.entries(&wallet, request(None, 0)).await);
    assert_eq!(page.items.len(), 1, "a page has at least one item, even with limit 0");
    let page = expect_ok(store.entries(&wallet, request(None, 6)).await);
    grant(&store, "new", "w", 1).await;
    let rest = expect_ok(store.entries(&wallet, request(page.next, 100)).await);
    let causes: Vec<_> = rest.items.iter().map(|entry| entry.cause.as_str()).collect();
    assert_eq!(causes, ["g6", "g7", "g8", "g9", "new"], "a cursor continues after its page");
}

/// Entries are paged newest first: each one once; new entries do not move the next page.
pub async fn recent_entries_are_paged_newest_first(store: LedgerStore) {
    let wallet = WalletId::new("w");
    for n in 0..10 {
        grant(&store, &format!("g{n}"), "w", 1).await;
        grant(&store, &format!("other{n}"), "v", 1).await;
    }
    let mut all = entries(&store, "w").await;
    all.reverse();
    for limit in [1, 3, 9, 10, 11, u32::MAX] {
        let paged = read_pages(limit, async |page| store.recent_entries(&wallet, page).await).await;
        assert_eq!(paged, all, "pages of {limit}");
    }
    let request = |after, limit| PageRequest { after, limit };
    let page = expect_ok(store.recent_entries(&wallet, request(None, 6)).await);
    grant(&store, "new", "w", 1).await;
    let rest = expect_ok(store.recent_entries(&wallet, request(page.next, 100)).await);
    let causes: Vec<_> = rest.items.iter().map(|entry| entry.cause.as_str()).collect();
    assert_eq!(causes, ["g3", "g2", "g1", "g0"], "a cursor continues after its page");
    let unknown = expect_ok(store.recent_entries(&WalletId::new("unknown"), request(None, 5)).await);
    assert!(unknown.items.is_empty() && unknown.next.is_none());
}

/// A page has at most 1,000 entries, whatever the requested limit.
pub async fn entry_pages_never_exceed_limit(store: LedgerStore) {
    for n in 0..126 {
        let pools: Vec<Pool> = (0..8).map(|pool| bucket(&format!("{n}/{pool}"), 1)).collect();
        let _ = expect_ok(store.spend(request(&format!("s{n}"), &[leg("w", terms(&pools), 8)])).await);
    }
    let wallet = WalletId::new("w");
    let page = PageRequest { after: None, limit: u32::MAX };
    let page = expect_ok(store.entries(&wallet, page).await);
    assert_eq!(page.items.len(), PAGE_LIMIT as usize, "larger requests are cut to the largest page");
    assert!(page.next.is_some(), "more entries follow");
    assert_eq!(entries(&store, "w").await.len(), 126 * 8, "the following pages contain all of them");
    check_audit(&store).await;
}

/// Wallets are paged, each one once.
pub async fn wallets_are_paged_once_each(store: LedgerStore) {
    let mut names: Vec<String> = (0..25).map(|n| format!("w{n}é")).collect();
    for name in &names {
        grant(&store, name, name, 1).await;
    }
    let page = expect_ok(store.wallets(PageRequest { after: None, limit: 25 }).await);
    assert!(page.next.is_none(), "a full page with nothing after it is the last");
    names.sort();
    for limit in [1, 7, 24, 25, 26, u32::MAX] {
        let paged = read_pages(limit, async |page| store.wallets(page).await).await;
        let mut paged: Vec<String> = paged.iter().map(|balance| balance.wallet.as_str().to_owned()).collect();
        paged.sort();
        assert_eq!(paged, names, "pages of {limit} give every wallet once");
    }
}

/// A wallet lists every pool that it has used, with the limit of the last hold in that pool.
pub async fn wallets_show_last_held_limit(store: LedgerStore) {
    hold(&store, request("h", &[leg("w", day_terms(5), 1)])).await;
    hold(&store, request("i", &[leg("w", day_terms(7), 1)])).await;
    expect_ok(store.balance(&WalletId::new("w"), &day_terms(99)).await);
    let _ = expect_ok(store.hold(request("j", &[leg("w", day_terms(8), 50)])).await);
    let tomorrow = terms(&[bucket("day/2026-11-21", 3), bucket("unused", 1)]);
    hold(&store, request("k", &[leg("w", tomorrow, 2)])).await;
    grant(&store, "g", "w", 4).await;
    let balances = settle(&store, "h", &[1]).await;
    let today = bucket("day/2026-11-20", 7);
    assert_eq!(balances[0].pools[0].pool, today, "a settle shows the limit of the last hold in its bucket");

    let all = wallets(&store).await;
    assert_eq!(all.len(), 1);
    let mut pools: Vec<_> =
        all[0].pools.iter().map(|pool| (pool.pool.clone(), pool.spent, pool.held, pool.granted)).collect();
    pools.sort_by_key(|(pool, ..)| pool.bucket().map(str::to_owned));
    let expect =
        [(Pool::Purchased, 0, 0, 4), (today.clone(), 1, 1, 0), (bucket("day/2026-11-21", 3), 0, 2, 0)];
    assert_eq!(pools, expect, "all used pools, and no others");
    let spent = entries(&store, "w").await.into_iter().find(|entry| entry.kind == EntryKind::Spent);
    let spent = spent.expect("a settlement leaves an entry");
    assert_eq!(spent.pool, today, "an entry shows the last held limit at its time");
    check_audit(&store).await;
}

/// A foreign cursor is invalid or starts at some position; it never causes a store error.
pub async fn foreign_cursor_is_never_store_error(store: LedgerStore) {
    grant(&store, "g", "w", 1).await;
    for text in ["", "nonsense", "-1", "18446744073709551616", "é", "' OR 1=1 --"] {
        let page = || PageRequest { after: Some(Cursor::new(text)), limit: 10 };
        if let Err(error) = store.entries(&WalletId::new("w"), page()).await {
            expect_error::<()>(Err(error), ErrorKind::Invalid, "a foreign cursor is a caller error");
        }
        if let Err(error) = store.wallets(page()).await {
            expect_error::<()>(Err(error), ErrorKind::Invalid, "a foreign cursor is a caller error");
        }
    }
}

/// After any sequence of calls every balance equals the sum of its entries and none is overdrawn.
pub async fn balances_equal_sum_of_entries(store: LedgerStore) {
    for seed in 0..3 {
        let mut rng = SeededRng::new(seed);
        for step in 0..150 {
            any_call(&store, &mut rng, &format!("{seed}/{step}"), step).await;
        }
        check_audit(&store).await;
    }
    for balance in wallets(&store).await {
        for pool in balance.pools {
            let below = pool.pool.bucket().is_some() || pool.used() <= pool.granted;
            assert!(below, "no more purchased credits are used than were granted: {pool:?}");
        }
    }
}

/// Makes one random call with an id that may already exist.
async fn any_call(store: &LedgerStore, rng: &mut SeededRng, new: &str, step: i64) {
    let seed = new.split('/').next().unwrap_or_default().to_owned();
    let mut earlier = |count: u64| format!("{seed}/{}", rng.below(count));
    let old = earlier(step.unsigned_abs() + 1);
    let id = if rng.below(5) == 0 { old.clone() } else { new.to_owned() };
    let pools = [
        terms(&[bucket("a", 6), Pool::Purchased]),
        terms(&[Pool::Purchased, bucket("b", 3)]),
        terms(&[bucket("a", 2), bucket("b", 9)]),
        purchased_terms(),
    ];
    let mut some_legs = || -> Vec<Leg> {
        let first = rng.below(4);
        (0..=rng.below(3))
            .map(|n| {
                let pools = pools[rng.below(4) as usize].clone();
                leg(&format!("w{}", (first + n) % 4), pools, rng.below(5))
            })
            .collect()
    };
    let legs = some_legs();
    let figures: Vec<u64> = legs.iter().map(|leg| leg.amount.min(rng.below(4))).collect();
    let now = at(step * 2);
    match rng.below(12) {
        0..=3 => {
            let hold_request = HoldRequest { now, expires_at: at(step * 2 + 30), ..request(&id, &legs) };
            let _ = expect_ok(store.hold(hold_request).await);
        }
        4 => {
            let _ = expect_ok(store.spend(HoldRequest { now, ..request(&id, &legs) }).await);
        }
        // The amounts are random: most settles of several legs are invalid and must change nothing.
        5..=7 => {
            if let Err(error) = store.settle(SettleRequest { now, ..settle_request(&old, &figures) }).await {
                expect_error::<()>(
                    Err(error),
                    ErrorKind::Invalid,
                    "a settle fails only because of its amounts",
                );
            }
        }
        8 => {
            if let Err(error) = store.extend(&HoldId::new(old), at(step * 2 + 10)).await {
                expect_error::<()>(Err(error), ErrorKind::NotFound, "only an existing hold can be extended");
            }
        }
        9 => {
            let wallet = format!("w{}", rng.below(4));
            let _ = expect_ok(
                store.grant(GrantRequest { now, ..grant_request(&id, &wallet, rng.below(9) + 1) }).await,
            );
        }
        10 => {
            let _ = expect_ok(
                store.revoke(RevokeRequest { now, ..revoke_request(&id, &old, rng.below(9) + 1) }).await,
            );
        }
        _ => {
            expect_ok(store.expire(now, 2).await);
        }
    }
}
