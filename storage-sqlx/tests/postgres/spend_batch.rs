//! Spends that wait in the batch queue and share a statement.

use std::{sync::Arc, time::Duration};

use sqlx::{ConnectOptions, Row, postgres::PgConnectOptions};
use storage_sqlx::{PostgresOptions, PostgresStore};
use transcript_core::{
    ids::{GrantId, HoldId, WalletId},
    ledger::{Balance, GrantRequest, HoldOutcome, HoldRequest, HoldState, Ledger, Leg, Pool, Terms},
};
use verbatim_tests_postgres::TestDatabase;

use crate::common::{check_audit, grant, timestamp};

mod conformance {
    transcript_core::ledger_conformance!(super::store().await);
}

/// A store without separate spends while others are running.
pub(crate) async fn store_in(database: &TestDatabase<'_>) -> Arc<PostgresStore> {
    let options = PostgresOptions { batch_threshold: 0, ..crate::options(database) };
    Arc::new(PostgresStore::open(options).await.unwrap())
}

/// Such a store in its own database.
pub(crate) async fn store() -> (Arc<PostgresStore>, TestDatabase<'static>) {
    let database = crate::database();
    (store_in(&database).await, database)
}

fn terms(bucket: &str, limit: u64) -> Terms {
    let allowance = Pool::Allowance { bucket: bucket.to_owned(), limit };
    Terms { pools: vec![allowance, Pool::Purchased], resets_at: None }
}

fn request(id: impl Into<String>, wallet: &str, terms: Terms) -> HoldRequest {
    HoldRequest {
        id: HoldId::new(id),
        legs: vec![Leg { wallet: WalletId::new(wallet), terms, amount: 1 }],
        now: timestamp(0),
        expires_at: timestamp(60_000),
        memo: "together".to_owned(),
    }
}

/// Runs these spends concurrently and returns their outcomes.
async fn all(store: &Arc<PostgresStore>, spends: Vec<HoldRequest>) -> Vec<HoldOutcome> {
    let tasks: Vec<_> = spends
        .into_iter()
        .map(|spend| {
            let store = Arc::clone(store);
            tokio::spawn(async move { store.spend(spend).await.unwrap() })
        })
        .collect();
    let mut outcomes = Vec::new();
    for task in tasks {
        outcomes.push(task.await.unwrap());
    }
    outcomes
}

/// The wallet's balance after a spend. `None` if it was not held.
fn held(outcome: &HoldOutcome) -> Option<&Balance> {
    match outcome {
        HoldOutcome::Held { balances } => balances.first(),
        _ => None,
    }
}

/// Number of holds, and of the transactions that created them.
async fn stored(database: &TestDatabase<'_>) -> (i64, i64) {
    let options: PgConnectOptions = database.url.parse().unwrap();
    let mut foreign_connection = options.connect().await.unwrap();
    let count = "SELECT count(*), count(DISTINCT xmin::TEXT) FROM ledger_holds";
    let row = sqlx::query(count).fetch_one(&mut foreign_connection).await.unwrap();
    (row.get(0), row.get(1))
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn spend_batch_shares_transaction_with_outcome_each() {
    let (store, database) = store().await;
    let wallets = ["a", "b", "c", "d"];
    let spends = (0..160).map(|n| request(format!("{n}"), wallets[n % 4], terms("month", 100))).collect();
    let outcomes = all(&store, spends).await;
    for wallet in wallets {
        let balances = outcomes.iter().filter_map(held).filter(|balance| balance.wallet.as_str() == wallet);
        // Each balance includes those before it: no two are the same.
        let mut spent: Vec<u64> = balances.map(|balance| balance.pools[0].spent).collect();
        spent.sort_unstable();
        assert_eq!(spent, (1..=40).collect::<Vec<_>>(), "{wallet}");
    }
    let (holds, transactions) = stored(&database).await;
    assert_eq!(holds, 160);
    assert!(transactions < 80, "{transactions} transactions for 160 spends in the queue");
    check_audit(&*store).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn spend_batch_uses_allowance_before_purchased() {
    let (one, database) = store().await;
    let other = store_in(&database).await;
    grant(&*one, "pack", "w", 7).await;
    for round in 0..4 {
        let spends = |from: u64| {
            (from..from + 10).map(|n| request(format!("{round}-{n}"), "w", terms("month", 25))).collect()
        };
        let (mine, theirs) = tokio::join!(all(&one, spends(0)), all(&other, spends(10)));
        let taken = mine.iter().chain(&theirs).filter(|outcome| held(outcome).is_some()).count();
        assert_eq!(taken, [20, 12, 0, 0][round], "in round {round}");
    }
    let balance = one.balance(&WalletId::new("w"), &terms("month", 25)).await.unwrap();
    assert_eq!((balance.pools[0].spent, balance.pools[1].spent, balance.available()), (25, 7, 0));
    check_audit(&*one).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn spend_batch_concurrent_same_id_spends_once() {
    let (store, _database) = store().await;
    for round in 0..3 {
        let spends = (0..60).map(|n| request(format!("{}", n % 20), ["a", "b"][n % 2], terms("month", 100)));
        let outcomes = all(&store, spends.collect()).await;
        let taken = outcomes.iter().filter(|outcome| held(outcome).is_some()).count();
        let is_known = |outcome: &&HoldOutcome| matches!(outcome, HoldOutcome::Exists { state: HoldState::Settled { spent }, .. } if spent == &[1]);
        let known = outcomes.iter().filter(is_known).count();
        assert_eq!((taken, known), [(20, 40), (0, 60), (0, 60)][round], "in round {round}");
    }
    for wallet in ["a", "b"] {
        let balance = store.balance(&WalletId::new(wallet), &terms("month", 100)).await.unwrap();
        assert_eq!(balance.pools[0].spent, 10, "{wallet}");
    }
    check_audit(&*store).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn spend_batch_unusual_spends_run_separately() {
    let (store, _database) = store().await;
    grant(&*store, "pack", "buyer", 10).await;
    // A hold becomes overdue before the others, and the next spend of its wallet expires it.
    let overdue =
        HoldRequest { expires_at: timestamp(1), ..request("overdue", "holder", terms("month", 10)) };
    assert!(held(&store.hold(overdue).await.unwrap()).is_some());
    let later = |spend: HoldRequest| HoldRequest { now: timestamp(10), ..spend };
    let purchased = Terms { pools: vec![Pool::Purchased], resets_at: None };
    let two = HoldRequest {
        legs: ["x", "y"]
            .map(|wallet| Leg { wallet: WalletId::new(wallet), terms: terms("month", 10), amount: 1 })
            .into(),
        ..request("two", "x", terms("month", 10))
    };
    let mut spends = vec![
        request("purchased", "buyer", purchased.clone()),
        request("holding", "holder", terms("month", 10)),
        request("next month", "turner", terms("next month", 10)),
        request("this month", "turner", terms("month", 10)),
        request("raised", "turner", terms("month", 20)),
        request("none", "poor", terms("month", 0)),
        two,
    ];
    spends.extend((0..20).map(|n| request(format!("plain {n}"), "plain", terms("month", 100))));
    let outcomes = all(&store, spends.into_iter().map(later).collect()).await;
    let refused: Vec<usize> = (0..outcomes.len()).filter(|index| held(&outcomes[*index]).is_none()).collect();
    assert_eq!(refused, [5], "{outcomes:?}");
    for (wallet, bucket, spent) in [
        ("holder", "month", 1),
        ("turner", "month", 2),
        ("turner", "next month", 1),
        ("plain", "month", 20),
        ("x", "month", 1),
        ("y", "month", 1),
    ] {
        let balance = store.balance(&WalletId::new(wallet), &terms(bucket, 100)).await.unwrap();
        assert_eq!((balance.pools[0].spent, balance.pools[0].held), (spent, 0), "{wallet}: {bucket}");
    }
    check_audit(&*store).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn spend_batch_two_servers_do_not_deadlock() {
    let (one, database) = store().await;
    let two = store_in(&database).await;
    let began = std::time::Instant::now();
    for round in 0..10 {
        // In opposite orders: the server would detect a deadlock only after a second.
        let spend = |server: &str, n: usize| {
            request(format!("{server}-{round}-{n}"), &format!("wallet {}", n % 16), terms("month", 10_000))
        };
        let forth = (0..48).map(|n| spend("one", n)).collect();
        let back = (0..48).rev().map(|n| spend("two", n)).collect();
        let (forth, back) = tokio::join!(all(&one, forth), all(&two, back));
        assert!(forth.iter().chain(&back).all(|outcome| held(outcome).is_some()));
    }
    let balance = one.balance(&WalletId::new("wallet 3"), &terms("month", 10_000)).await.unwrap();
    assert_eq!(balance.pools[0].spent, 60);
    assert!(began.elapsed() < Duration::from_secs(60), "{:?}", began.elapsed());
    check_audit(&*one).await;
}

/// The causes of a wallet's entries, in order: the ids of grants and holds.
async fn causes(database: &TestDatabase<'_>, wallet: &str) -> Vec<String> {
    let options: PgConnectOptions = database.url.parse().unwrap();
    let mut foreign_connection = options.connect().await.unwrap();
    let entries = sqlx::query("SELECT cause FROM ledger_entries WHERE wallet = $1 ORDER BY seq");
    let rows = entries.bind(wallet.to_owned()).fetch_all(&mut foreign_connection).await.unwrap();
    rows.iter().map(|row| row.get(0)).collect()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn spend_batch_entry_order_ignores_server_clocks() {
    let (ahead, database) = store().await;
    let together = store_in(&database).await;
    let alone = PostgresStore::open(crate::options(&database)).await.unwrap();
    let (bought, turned) = (["bought 0", "bought 1", "bought 2"], ["turned 0", "turned 1", "turned 2"]);
    for wallet in bought {
        let (id, wallet) = (GrantId::new("first ".to_owned() + wallet), WalletId::new(wallet));
        let grant_request =
            GrantRequest { id, wallet, amount: 5, now: timestamp(3_600_000), memo: "pack".to_owned() };
        let _ = ahead.grant(grant_request).await.unwrap();
    }
    for wallet in turned {
        let spend = request("first ".to_owned() + wallet, wallet, terms("next month", 10));
        let spend = HoldRequest { now: timestamp(3_600_000), expires_at: timestamp(3_660_000), ..spend };
        assert!(held(&ahead.spend(spend).await.unwrap()).is_some());
    }
    for round in 0..3 {
        for wallets in [bought, turned] {
            let spend = |n: usize| request(format!("{round} {}", wallets[n]), wallets[n], terms("month", 10));
            assert!(held(&alone.spend(spend(0)).await.unwrap()).is_some());
            assert!(held(&alone.hold(spend(1)).await.unwrap()).is_some());
            let other = |n| request(format!("{n} {round} {}", wallets[0]), "other", terms("month", 100));
            let outcomes = all(&together, (0..8).map(other).chain([spend(2)]).collect()).await;
            assert!(outcomes.iter().all(|outcome| held(outcome).is_some()), "{outcomes:?}");
        }
    }
    for wallet in bought.into_iter().chain(turned) {
        let expected = ["first", "0", "1", "2"].map(|when| format!("{when} {wallet}"));
        assert_eq!(causes(&database, wallet).await, expected);
    }
    check_audit(&alone).await;
}
