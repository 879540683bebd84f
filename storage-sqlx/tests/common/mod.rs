//! Fixtures and tests of all databases. Each test program has the same functions that create a store or an archive.

pub(crate) mod changed;
pub(crate) mod charging;
pub(crate) mod cold;
mod concurrency;
#[macro_use]
mod conformance;
mod holds;
mod jobs;
mod outbox;
pub(crate) mod words;

use std::{
    sync::Arc,
    task::{Context, Poll, Waker},
    time::Duration,
};

use transcript_core::{
    PageRequest, Timestamp,
    accounts::{MailIntent, Outbox},
    archive::{PutRequest, TrackSelector},
    directory::SecretStore,
    ids::{GrantId, HoldId, WalletId},
    ledger::{
        GrantRequest, HoldOutcome, HoldRequest, Ledger, Leg, Pool, SettleOutcome, SettleRequest, Terms, audit,
    },
    limits::{LimitOutcome, LimitRequest, RateLimiter},
    transcript::{LanguageTag, Segment, TrackInfo, TrackKind, Transcript},
    video::{Platform, VideoId},
};

pub(crate) const NOW: i64 = 1_795_132_800_000;

pub(crate) fn timestamp(millis: i64) -> Timestamp {
    Timestamp::from_millis(NOW + millis)
}

pub(crate) fn purchased() -> Terms {
    Terms { pools: vec![Pool::Purchased], resets_at: None }
}

pub(crate) fn request(id: String, wallet: &str, amount: u64) -> HoldRequest {
    HoldRequest {
        id: HoldId::new(id),
        legs: vec![Leg { wallet: WalletId::new(wallet), terms: purchased(), amount }],
        now: timestamp(0),
        expires_at: timestamp(60_000),
        memo: "test".to_owned(),
    }
}

pub(crate) async fn grant(store: &dyn Ledger, id: &str, wallet: &str, amount: u64) {
    let grant = GrantRequest {
        id: GrantId::new(id),
        wallet: WalletId::new(wallet),
        amount,
        now: timestamp(0),
        memo: "test".to_owned(),
    };
    let _ = store.grant(grant).await.unwrap();
}

/// Checks that every balance is the sum of its entries.
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

/// Drains a wallet to exactly zero from two stores on one database.
pub(crate) async fn drain_wallet(one: Arc<dyn Ledger>, two: Arc<dyn Ledger>) {
    grant(&*one, "bought", "w", 300).await;
    let spend = |store: &Arc<dyn Ledger>, name: &str, n: u64| {
        let (store, hold_request) = (Arc::clone(store), request(format!("{name}{n}"), "w", 1 + n % 3));
        tokio::spawn(async move {
            let amount = hold_request.legs[0].amount;
            match store.spend(hold_request).await.unwrap() {
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
    // The rest is less than the largest rejected request, so single credits drain it.
    let left = 300 - spent;
    assert!(left < 3, "{left}");
    for n in 0..left {
        let store = if n % 2 == 0 { &one } else { &two };
        let hold_request = request(format!("last{n}"), "w", 1);
        assert!(matches!(store.spend(hold_request).await.unwrap(), HoldOutcome::Held { .. }));
    }
    for store in [&one, &two] {
        let balance = store.balance(&WalletId::new("w"), &purchased()).await.unwrap();
        assert_eq!((balance.available(), balance.pools[0].spent, balance.pools[0].held), (0, 300, 0));
        assert!(matches!(
            store.spend(request("more".to_owned(), "w", 1)).await.unwrap(),
            HoldOutcome::Insufficient { .. }
        ));
        check_audit(&**store).await;
    }
}

/// Cancels callers and checks that every operation was done completely or not at all.
pub(crate) async fn check_cancelled_callers<F: Future<Output = Arc<dyn Ledger>>>(
    store: Arc<dyn Ledger>,
    another: impl FnOnce() -> F,
) {
    grant(&*store, "bought", "w", 1_000_000).await;
    let mut calls = Vec::new();
    for n in 0..400_u64 {
        let store = Arc::clone(&store);
        calls.push(tokio::spawn(async move {
            let _ = store.hold(request(format!("h{n}"), "w", 3)).await.unwrap();
            let settle =
                SettleRequest { id: HoldId::new(format!("h{n}")), spent: vec![2], now: timestamp(1) };
            let _ = store.settle(settle).await.unwrap();
            store.balance(&WalletId::new("w"), &purchased()).await.unwrap();
        }));
        if n % 3 == 0 {
            tokio::time::sleep(Duration::from_micros(50 * (n % 11))).await;
        }
        // Some are cancelled at once, some in the middle, some not at all.
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
    let other = another().await;
    grant(&*other, "later", "w", 1).await;
    grant(&*store, "latest", "w", 1).await;
    check_audit(&*store).await;
    for n in 0..400 {
        let settle = SettleRequest { id: HoldId::new(format!("h{n}")), spent: vec![2], now: timestamp(1) };
        // Settled completely or not at all; a hold that was only held settles now.
        let outcome = other.settle(settle).await.unwrap();
        assert!(!matches!(outcome, SettleOutcome::Settled { ref balances } if balances.len() != 1));
    }
    check_audit(&*other).await;
    let balance = other.balance(&WalletId::new("w"), &purchased()).await.unwrap();
    assert_eq!(balance.pools[0].held, 0);
    assert_eq!(balance.pools[0].spent % 2, 0);
}

pub(crate) fn poll_without_runtime<T>(future: impl Future<Output = T>) -> T {
    let mut future = std::pin::pin!(future);
    let mut context = Context::from_waker(Waker::noop());
    loop {
        if let Poll::Ready(outcome) = future.as_mut().poll(&mut context) {
            return outcome;
        }
        std::thread::sleep(Duration::from_millis(1));
    }
}

/// Checks that texts with special characters are stored unchanged.
pub(crate) async fn check_texts_stored(store: &dyn Ledger) {
    for (index, text) in ["\0", "a\0b", "\"'\\", "\u{1F600}\u{FFFF}", "$.x", "null"].into_iter().enumerate() {
        grant(store, text, text, 2).await;
        let hold_request = HoldRequest { memo: text.to_owned(), ..request(text.to_owned(), text, 2) };
        assert!(
            matches!(store.spend(hold_request.clone()).await.unwrap(), HoldOutcome::Held { .. }),
            "{text:?}"
        );
        assert!(matches!(store.spend(hold_request).await.unwrap(), HoldOutcome::Exists { .. }), "{text:?}");
        let entries = store.entries(&WalletId::new(text), PageRequest::first()).await.unwrap().items;
        assert_eq!(entries.len(), 2, "{text:?}");
        assert!(entries.iter().all(|entry| entry.cause == text && entry.wallet.as_str() == text));
        assert_eq!(entries[1].memo, text);
        assert_eq!(store.wallets(PageRequest::first()).await.unwrap().items.len(), index + 1);
    }
}

/// Checks that texts with special characters are stored unchanged, alone and in lists.
pub(crate) async fn check_names_stored<S: Outbox + RateLimiter + SecretStore>(store: &S) {
    let names = ["\0", "\u{1A}", "\u{1A}0", "a\0b", "\"'\\", "\u{1F600}\u{FFFF}", "null"];
    for (index, name) in (0_u8..).zip(names) {
        assert_eq!(store.get_or_create(name, vec![index]).await.unwrap(), [index], "{name:?}");
        let text = || name.to_owned();
        store
            .queue(
                MailIntent { id: text(), kind: text(), to: text(), attempts: 0, language: None },
                timestamp(0),
            )
            .await
            .unwrap();
    }
    let mails = store.lease_due(timestamp(1), timestamp(2), 10).await.unwrap();
    let found: Vec<_> =
        mails.iter().map(|mail| (mail.id.as_str(), mail.kind.as_str(), mail.to.as_str())).collect();
    assert_eq!(found, names.map(|name| (name, name, name)));
    let windows =
        names.map(|bucket| LimitRequest { bucket: bucket.to_owned(), max: 2, window_ms: 1_000, cost: 1 });
    for _ in 0..2 {
        let outcome = store.acquire(windows.to_vec(), timestamp(0)).await.unwrap();
        assert!(matches!(outcome, LimitOutcome::Allowed { .. }), "{outcome:?}");
    }
    for window in windows {
        let outcome = store.acquire(vec![window], timestamp(0)).await.unwrap();
        assert!(matches!(outcome, LimitOutcome::Limited { .. }), "{outcome:?}");
    }
}

/// A transcript of one segment, for the default selector.
pub(crate) fn put_request(id: &str, words: &str) -> PutRequest {
    let video = VideoId::new(Platform::YouTube, id).unwrap();
    let track = TrackInfo::new(LanguageTag::english(), TrackKind::Human);
    PutRequest {
        video: video.clone(),
        selectors: vec![TrackSelector::Default],
        transcript: Arc::new(Transcript {
            video,
            title: None,
            author: None,
            duration_ms: None,
            track: track.clone(),
            source: "youtube-captions".to_owned(),
            segments: vec![Segment::new(words, 0, 1_000)],
        }),
        known_tracks: vec![track],
        metadata: Default::default(),
        parser_version: 1,
        replace: false,
        now: Timestamp::from_millis(NOW),
    }
}
