//! Several stores on one file, and callers who go away.

use std::{
    sync::Arc,
    task::{Context, Poll, Waker},
    time::Duration,
};

use storage_sqlx::SqliteStore;
use transcript_core::{
    PageRequest, Timestamp,
    archive::{Archive, Found, Wish},
    ids::{GrantId, HoldId, WalletId},
    ledger::{Grant, HoldOutcome, HoldRequest, Ledger, Leg, Pool, Settle, SettleOutcome, Terms, audit},
};

pub(crate) const NOW: i64 = 1_795_132_800_000;

pub(crate) fn moment(millis: i64) -> Timestamp {
    Timestamp::from_millis(NOW + millis)
}

pub(crate) fn purchased() -> Terms {
    Terms { pools: vec![Pool::Purchased], resets_at: None }
}

pub(crate) fn request(id: String, wallet: &str, amount: u64) -> HoldRequest {
    HoldRequest {
        id: HoldId::new(id),
        legs: vec![Leg { wallet: WalletId::new(wallet), terms: purchased(), amount }],
        now: moment(0),
        expires_at: moment(60_000),
        memo: "test".to_owned(),
    }
}

pub(crate) async fn grant(store: &dyn Ledger, id: &str, wallet: &str, amount: u64) {
    let grant = Grant {
        id: GrantId::new(id),
        wallet: WalletId::new(wallet),
        amount,
        now: moment(0),
        memo: "test".to_owned(),
    };
    store.grant(grant).await.unwrap();
}

/// Every balance is what its entries add up to.
pub(crate) async fn check_audit(store: &dyn Ledger) {
    let mut request = PageRequest::first();
    loop {
        let page = store.wallets(request).await.unwrap();
        for balance in page.items {
            let mut entries = Vec::new();
            let mut request = PageRequest::first();
            loop {
                let page = store.entries(&balance.wallet, request).await.unwrap();
                entries.extend(page.items);
                let Some(next) = page.next else { break };
                request = PageRequest { after: Some(next), ..PageRequest::first() };
            }
            assert_eq!(audit::compare(&balance, &entries), Ok(Vec::new()), "{}", balance.wallet);
        }
        let Some(next) = page.next else { return };
        request = PageRequest { after: Some(next), ..PageRequest::first() };
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn two_stores_drain_a_wallet_to_exactly_nothing() {
    let (one, folder) = crate::store().await;
    let two = crate::store_in(folder.path()).await;
    grant(&*one, "bought", "w", 300).await;
    let spend = |store: &Arc<SqliteStore>, name: &str, n: u64| {
        let (store, ask) = (Arc::clone(store), request(format!("{name}{n}"), "w", 1 + n % 3));
        tokio::spawn(async move {
            let amount = ask.legs[0].amount;
            match store.spend(ask).await.unwrap() {
                HoldOutcome::Held { .. } => amount,
                _ => 0,
            }
        })
    };
    let spending: Vec<_> = (0..200).flat_map(|n| [spend(&one, "one", n), spend(&two, "two", n)]).collect();
    let mut spent = 0;
    for task in spending {
        spent += task.await.unwrap();
    }
    // Whatever is left is less than the largest request that was refused, so single credits drain it.
    let left = 300 - spent;
    assert!(left < 3, "{left}");
    for n in 0..left {
        let store = if n % 2 == 0 { &one } else { &two };
        let ask = request(format!("last{n}"), "w", 1);
        assert!(matches!(store.spend(ask).await.unwrap(), HoldOutcome::Held { .. }));
    }
    for store in [&one, &two] {
        let balance = store.balance(&WalletId::new("w"), &purchased()).await.unwrap();
        assert_eq!((balance.available(), balance.pools[0].spent, balance.pools[0].held), (0, 300, 0));
        assert!(matches!(
            store.spend(request("more".to_owned(), "w", 1)).await.unwrap(),
            HoldOutcome::Refused { .. }
        ));
        check_audit(&**store).await;
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn callers_who_go_away_leave_nothing_half_done() {
    let (store, folder) = crate::store().await;
    grant(&*store, "bought", "w", 1_000_000).await;
    let mut calls = Vec::new();
    for n in 0..400_u64 {
        let store = Arc::clone(&store);
        calls.push(tokio::spawn(async move {
            store.hold(request(format!("h{n}"), "w", 3)).await.unwrap();
            let settle = Settle { id: HoldId::new(format!("h{n}")), spent: vec![2], now: moment(1) };
            store.settle(settle).await.unwrap();
            store.balance(&WalletId::new("w"), &purchased()).await.unwrap();
        }));
        if n % 3 == 0 {
            tokio::time::sleep(Duration::from_micros(50 * (n % 11))).await;
        }
        // Some go at once, some in the middle, some not at all.
        if n % 4 != 0 {
            calls[usize::try_from(n / 2).unwrap()].abort();
        }
    }
    for call in calls {
        if let Err(error) = call.await {
            assert!(error.is_cancelled(), "{error}");
        }
    }
    // The stores still write, also from another connection: no transaction was left open.
    let other = crate::store_in(folder.path()).await;
    grant(&*other, "later", "w", 1).await;
    grant(&*store, "latest", "w", 1).await;
    check_audit(&*store).await;
    for n in 0..400 {
        let settle = Settle { id: HoldId::new(format!("h{n}")), spent: vec![2], now: moment(1) };
        // Made whole or not at all; where it was held only, it settles now.
        let outcome = other.settle(settle).await.unwrap();
        assert!(!matches!(outcome, SettleOutcome::Settled { ref balances } if balances.len() != 1));
    }
    check_audit(&*other).await;
    let balance = other.balance(&WalletId::new("w"), &purchased()).await.unwrap();
    assert_eq!(balance.pools[0].held, 0);
    assert_eq!(balance.pools[0].spent % 2, 0);
}

#[test]
fn a_runtime_that_stops_leaves_nothing_half_done() {
    let folder = tempfile::tempdir().unwrap();
    let runtime =
        || tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build().unwrap();
    for round in 0..5 {
        let runtime = runtime();
        let store = runtime.block_on(crate::store_in(folder.path()));
        runtime.block_on(grant(&*store, &format!("bought{round}"), "w", 1_000));
        for n in 0..100 {
            let store = Arc::clone(&store);
            runtime.spawn(async move {
                store.spend(request(format!("s{round}-{n}"), "w", 2)).await.ok();
            });
        }
        std::thread::sleep(Duration::from_millis(2 * round));
        // The task that writes is dropped wherever it is.
        runtime.shutdown_background();
    }
    let runtime = runtime();
    let store = runtime.block_on(crate::store_in(folder.path()));
    runtime.block_on(async {
        grant(&*store, "last", "w", 1).await;
        check_audit(&*store).await;
    });
}

/// Polls a future with no runtime around it.
fn poll_alone<T>(future: impl Future<Output = T>) -> T {
    let mut future = std::pin::pin!(future);
    let mut context = Context::from_waker(Waker::noop());
    loop {
        if let Poll::Ready(outcome) = future.as_mut().poll(&mut context) {
            return outcome;
        }
        std::thread::sleep(Duration::from_millis(1));
    }
}

#[test]
fn any_executor_may_poll() {
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(1).enable_all().build().unwrap();
    let folder = tempfile::tempdir().unwrap();
    let store = runtime.block_on(crate::store_in(folder.path()));
    let archive = runtime.block_on(crate::archive_in(folder.path()));
    poll_alone(async {
        grant(&*store, "bought", "w", 5).await;
        assert_eq!(store.balance(&WalletId::new("w"), &purchased()).await.unwrap().available(), 5);
        let kept = archive.keep(crate::keep("aaaaaaaaaaa", "words")).await.unwrap();
        let found = archive.find(&kept.transcript.video, &Wish::Default, moment(0)).await.unwrap();
        let body = archive.body(&kept.transcript.video, &Wish::Default).await.unwrap().unwrap();
        assert_eq!(body.content_sha256, kept.content_sha256);
        assert_eq!(found, Found::Transcript(kept));
    });
}

#[tokio::test]
async fn any_text_is_kept_letter_by_letter() {
    let (store, _folder) = crate::store().await;
    for (place, text) in ["\0", "a\0b", "\"'\\", "\u{1F600}\u{FFFF}", "$.x", "null"].into_iter().enumerate() {
        grant(&*store, text, text, 2).await;
        let ask = HoldRequest { memo: text.to_owned(), ..request(text.to_owned(), text, 2) };
        assert!(matches!(store.spend(ask.clone()).await.unwrap(), HoldOutcome::Held { .. }), "{text:?}");
        assert!(matches!(store.spend(ask).await.unwrap(), HoldOutcome::Known { .. }), "{text:?}");
        let entries = store.entries(&WalletId::new(text), PageRequest::first()).await.unwrap().items;
        assert_eq!(entries.len(), 3, "{text:?}");
        assert!(entries.iter().all(|entry| entry.cause == text && entry.wallet.as_str() == text));
        assert_eq!(entries[2].memo, text);
        assert_eq!(store.wallets(PageRequest::first()).await.unwrap().items.len(), place + 1);
    }
}

#[tokio::test]
async fn entries_can_neither_be_changed_nor_deleted() {
    use sqlx::ConnectOptions;
    let (store, folder) = crate::store().await;
    grant(&*store, "bought", "w", 5).await;
    let options = sqlx::sqlite::SqliteConnectOptions::new().filename(folder.path().join("verbatim.db"));
    let mut stranger = options.connect().await.unwrap();
    for statement in [
        "UPDATE ledger_entries SET amount = 50",
        "DELETE FROM ledger_entries",
        "INSERT OR REPLACE INTO ledger_entries SELECT seq, at, wallet, bucket, cap, kind, 50, 0, cause, memo
            FROM ledger_entries",
    ] {
        sqlx::raw_sql(statement).execute(&mut stranger).await.unwrap_err();
    }
    sqlx::raw_sql("UPDATE ledger_pools SET spent = 6").execute(&mut stranger).await.unwrap_err();
    check_audit(&*store).await;
}
