//! Entries, wallets and the audit: balances can always be recomputed.

use super::*;
use crate::{
    error::ErrorKind,
    ids::Cursor,
    page::PageRequest,
    testing::{Choices, refused},
};

/// Entries come in the order in which the wallet changed, with growing numbers.
pub async fn entries_tell_every_step_in_order(store: Store) {
    grant(&store, "g", "w", 10).await;
    let pools = terms(&[bucket("month/1", 2), Pool::Purchased]);
    hold(&store, request("h", &[leg("w", pools.clone(), 4), leg("v", day(1), 1)])).await;
    settle(&store, "h", &[1, 1]).await;
    hold(&store, request("i", &[leg("w", pools, 1)])).await;
    done(store.expire(at(60), 1).await);
    done(store.revoke(taking("r", "g", 3)).await);
    let entries = entries(&store, "w").await;
    assert!(entries.windows(2).all(|pair| pair[0].seq < pair[1].seq), "the numbers of entries grow");
    assert!(entries.iter().all(|entry| entry.wallet.as_str() == "w"), "entries are the wallet's own");
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
    assert_eq!(of(true), expect, "every step of the allowance");
    let expect = [
        (EntryKind::Granted, 10),
        (EntryKind::Held, 2),
        (EntryKind::Returned, 2),
        (EntryKind::Revoked { shortfall: 0 }, 3),
    ];
    assert_eq!(of(false), expect, "every step of the purchased credits");
    audited(&store).await;
}

/// Entries come page by page: each once, in order, and new ones at the end.
pub async fn entries_come_in_pages(store: Store) {
    let wallet = WalletId::new("w");
    for n in 0..10 {
        grant(&store, &format!("g{n}"), "w", 1).await;
        grant(&store, &format!("other{n}"), "v", 1).await;
    }
    let all: Vec<String> = entries(&store, "w").await.into_iter().map(|entry| entry.cause).collect();
    assert_eq!(all, (0..10).map(|n| format!("g{n}")).collect::<Vec<_>>(), "oldest first");
    for limit in [1, 3, 5, 9, 10, 11, PAGE_LIMIT, u32::MAX] {
        let paged = pages(limit, async |page| store.entries(&wallet, page).await).await;
        let paged: Vec<String> = paged.into_iter().map(|entry| entry.cause).collect();
        assert_eq!(paged, all, "pages of {limit} give every entry once and in order");
    }
    let request = |after, limit| PageRequest { after, limit };
    let page = done(store.entries(&wallet, request(None, 10)).await);
    assert!(page.next.is_none(), "a full page with nothing after it is the last");
    let page = done(store.entries(&wallet, request(None, 0)).await);
    assert_eq!(page.items.len(), 1, "a page has at least one item, whatever was asked");
    let page = done(store.entries(&wallet, request(None, 6)).await);
    grant(&store, "new", "w", 1).await;
    let rest = done(store.entries(&wallet, request(page.next, 100)).await);
    let causes: Vec<_> = rest.items.iter().map(|entry| entry.cause.as_str()).collect();
    assert_eq!(causes, ["g6", "g7", "g8", "g9", "new"], "a cursor goes on where its page ended");
}

/// A page is cut to a thousand entries, however many are asked for.
pub async fn a_page_is_never_larger_than_the_limit(store: Store) {
    for n in 0..126 {
        let pools: Vec<Pool> = (0..8).map(|pool| bucket(&format!("{n}/{pool}"), 1)).collect();
        done(store.spend(request(&format!("s{n}"), &[leg("w", terms(&pools), 8)])).await);
    }
    let wallet = WalletId::new("w");
    let page = PageRequest { after: None, limit: u32::MAX };
    let page = done(store.entries(&wallet, page).await);
    assert_eq!(page.items.len(), PAGE_LIMIT as usize, "larger requests are cut to the largest page");
    assert!(page.next.is_some(), "and there is more");
    assert_eq!(entries(&store, "w").await.len(), 126 * 8, "all of which is on the pages after it");
    audited(&store).await;
}

/// Wallets come page by page, each once.
pub async fn wallets_come_in_pages(store: Store) {
    let mut names: Vec<String> = (0..25).map(|n| format!("w{n}é")).collect();
    for name in &names {
        grant(&store, name, name, 1).await;
    }
    let page = done(store.wallets(PageRequest { after: None, limit: 25 }).await);
    assert!(page.next.is_none(), "a full page with nothing after it is the last");
    names.sort();
    for limit in [1, 7, 24, 25, 26, u32::MAX] {
        let paged = pages(limit, async |page| store.wallets(page).await).await;
        let mut paged: Vec<String> = paged.iter().map(|balance| balance.wallet.as_str().to_owned()).collect();
        paged.sort();
        assert_eq!(paged, names, "pages of {limit} give every wallet once");
    }
}

/// A wallet lists all pools that it ever used, each with the limit under which it was last held.
pub async fn wallets_show_the_limit_last_seen(store: Store) {
    hold(&store, request("h", &[leg("w", day(5), 1)])).await;
    hold(&store, request("i", &[leg("w", day(7), 1)])).await;
    done(store.balance(&WalletId::new("w"), &day(99)).await);
    done(store.hold(request("j", &[leg("w", day(8), 50)])).await);
    let tomorrow = terms(&[bucket("day/2026-11-21", 3), bucket("unused", 1)]);
    hold(&store, request("k", &[leg("w", tomorrow, 2)])).await;
    grant(&store, "g", "w", 4).await;
    let balances = settle(&store, "h", &[1]).await;
    let today = bucket("day/2026-11-20", 7);
    assert_eq!(
        balances[0].pools[0].pool, today,
        "a settlement shows the limit of the last hold in its bucket"
    );

    let all = wallets(&store).await;
    assert_eq!(all.len(), 1);
    let mut pools: Vec<_> =
        all[0].pools.iter().map(|pool| (pool.pool.clone(), pool.spent, pool.held, pool.granted)).collect();
    pools.sort_by_key(|(pool, ..)| pool.bucket().map(str::to_owned));
    let expect =
        [(Pool::Purchased, 0, 0, 4), (today.clone(), 1, 1, 0), (bucket("day/2026-11-21", 3), 0, 2, 0)];
    assert_eq!(pools, expect, "all pools of which something was ever used, and no others");
    let spent = entries(&store, "w").await.into_iter().find(|entry| entry.kind == EntryKind::Spent);
    let spent = spent.expect("a settlement leaves an entry");
    assert_eq!(spent.pool, today, "an entry shows the limit that was last seen when it was written");
    audited(&store).await;
}

/// A cursor that the store did not make is invalid, or begins somewhere; it is never a fault.
pub async fn a_strange_cursor_is_no_fault_of_the_store(store: Store) {
    grant(&store, "g", "w", 1).await;
    for text in ["", "nonsense", "-1", "18446744073709551616", "é", "' OR 1=1 --"] {
        let page = || PageRequest { after: Some(Cursor::new(text)), limit: 10 };
        if let Err(error) = store.entries(&WalletId::new("w"), page()).await {
            refused::<()>(Err(error), ErrorKind::Invalid, "a strange cursor is the caller's fault");
        }
        if let Err(error) = store.wallets(page()).await {
            refused::<()>(Err(error), ErrorKind::Invalid, "a strange cursor is the caller's fault");
        }
    }
}

/// After any sequence of calls every balance is what its entries add up to, and none is overdrawn.
pub async fn balances_are_what_the_entries_add_up_to(store: Store) {
    for seed in 0..3 {
        let mut choices = Choices::new(seed);
        for step in 0..150 {
            any_call(&store, &mut choices, &format!("{seed}/{step}"), step).await;
        }
        audited(&store).await;
    }
    for balance in wallets(&store).await {
        for pool in balance.pools {
            let below = pool.pool.bucket().is_some() || pool.used() <= pool.granted;
            assert!(below, "no more purchased credits are used than were granted: {pool:?}");
        }
    }
}

/// Makes one call with an id that may have been used before.
async fn any_call(store: &Store, choices: &mut Choices, new: &str, step: i64) {
    let seed = new.split('/').next().unwrap_or_default().to_owned();
    let mut earlier = |count: u64| format!("{seed}/{}", choices.below(count));
    let old = earlier(step.unsigned_abs() + 1);
    let id = if choices.below(5) == 0 { old.clone() } else { new.to_owned() };
    let pools = [
        terms(&[bucket("a", 6), Pool::Purchased]),
        terms(&[Pool::Purchased, bucket("b", 3)]),
        terms(&[bucket("a", 2), bucket("b", 9)]),
        bought(),
    ];
    let mut some_legs = || -> Vec<Leg> {
        let first = choices.below(4);
        (0..=choices.below(3))
            .map(|n| {
                let pools = pools[choices.below(4) as usize].clone();
                leg(&format!("w{}", (first + n) % 4), pools, choices.below(5))
            })
            .collect()
    };
    let legs = some_legs();
    let figures: Vec<u64> = legs.iter().map(|leg| leg.amount.min(choices.below(4))).collect();
    let now = at(step * 2);
    match choices.below(12) {
        0..=3 => {
            let ask = HoldRequest { now, expires_at: at(step * 2 + 30), ..request(&id, &legs) };
            done(store.hold(ask).await);
        }
        4 => {
            done(store.spend(HoldRequest { now, ..request(&id, &legs) }).await);
        }
        // The figures are a guess: most settlements of several legs are invalid, and must change nothing.
        5..=7 => {
            if let Err(error) = store.settle(Settle { now, ..settlement(&old, &figures) }).await {
                refused::<()>(Err(error), ErrorKind::Invalid, "a settlement fails only by its figures");
            }
        }
        8 => {
            if let Err(error) = store.extend(&HoldId::new(old), at(step * 2 + 10)).await {
                refused::<()>(Err(error), ErrorKind::NotFound, "only a hold that was made can be extended");
            }
        }
        9 => {
            let wallet = format!("w{}", choices.below(4));
            done(store.grant(Grant { now, ..credits(&id, &wallet, choices.below(9) + 1) }).await);
        }
        10 => {
            done(store.revoke(Revoke { now, ..taking(&id, &old, choices.below(9) + 1) }).await);
        }
        _ => {
            done(store.expire(now, 2).await);
        }
    }
}
