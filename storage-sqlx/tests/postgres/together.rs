//! Spends that wait for each other and are committed together.

use std::{sync::Arc, time::Duration};

use sqlx::{ConnectOptions, Row, postgres::PgConnectOptions};
use storage_sqlx::{PostgresOptions, PostgresStore};
use transcript_core::{
    ids::{GrantId, HoldId, WalletId},
    ledger::{Balance, Grant, HoldOutcome, HoldRequest, HoldState, Ledger, Leg, Pool, Terms},
};
use verbatim_tests_postgres::Database;

use crate::common::{check_audit, grant, moment};

/// A store of whose spends none goes by itself, as long as others ask at the same time.
pub(crate) async fn store_in(database: &Database<'_>) -> Arc<PostgresStore> {
    let options = PostgresOptions { spends_alone: 0, ..crate::options(database) };
    Arc::new(PostgresStore::open(options).await.unwrap())
}

/// Such a store in a database of its own.
pub(crate) async fn store() -> (Arc<PostgresStore>, Database<'static>) {
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
        now: moment(0),
        expires_at: moment(60_000),
        memo: "together".to_owned(),
    }
}

/// What all of these are answered, asked for at the same time.
async fn all(store: &Arc<PostgresStore>, asks: Vec<HoldRequest>) -> Vec<HoldOutcome> {
    let asked: Vec<_> = asks
        .into_iter()
        .map(|ask| {
            let store = Arc::clone(store);
            tokio::spawn(async move { store.spend(ask).await.unwrap() })
        })
        .collect();
    let mut outcomes = Vec::new();
    for answer in asked {
        outcomes.push(answer.await.unwrap());
    }
    outcomes
}

/// The wallet's balance after a spend; none where it was refused.
fn held(outcome: &HoldOutcome) -> Option<&Balance> {
    match outcome {
        HoldOutcome::Held { balances } => balances.first(),
        _ => None,
    }
}

/// How many holds there are, and how many transactions have made them.
async fn stored(database: &Database<'_>) -> (i64, i64) {
    let options: PgConnectOptions = database.url.parse().unwrap();
    let mut stranger = options.connect().await.unwrap();
    let count = "SELECT count(*), count(DISTINCT xmin::TEXT) FROM ledger_holds";
    let row = sqlx::query(count).fetch_one(&mut stranger).await.unwrap();
    (row.get(0), row.get(1))
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn those_who_wait_share_a_transaction_and_each_has_an_outcome() {
    let (store, database) = store().await;
    let wallets = ["a", "b", "c", "d"];
    let asks = (0..160).map(|n| request(format!("{n}"), wallets[n % 4], terms("month", 100))).collect();
    let outcomes = all(&store, asks).await;
    for wallet in wallets {
        let balances = outcomes.iter().filter_map(held).filter(|balance| balance.wallet.as_str() == wallet);
        // Each sees what those before it have left: nobody is told the same twice.
        let mut spent: Vec<u64> = balances.map(|balance| balance.pools[0].spent).collect();
        spent.sort_unstable();
        assert_eq!(spent, (1..=40).collect::<Vec<_>>(), "{wallet}");
    }
    let (holds, transactions) = stored(&database).await;
    assert_eq!(holds, 160);
    assert!(transactions < 80, "{transactions} transactions for 160 spends that waited for each other");
    check_audit(&*store).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn an_allowance_is_spent_to_its_end_and_then_what_was_bought() {
    let (one, database) = store().await;
    let other = store_in(&database).await;
    grant(&*one, "pack", "w", 7).await;
    for round in 0..4 {
        let asks = |from: u64| {
            (from..from + 10).map(|n| request(format!("{round}-{n}"), "w", terms("month", 25))).collect()
        };
        let (mine, theirs) = tokio::join!(all(&one, asks(0)), all(&other, asks(10)));
        let taken = mine.iter().chain(&theirs).filter(|outcome| held(outcome).is_some()).count();
        assert_eq!(taken, [20, 12, 0, 0][round], "in round {round}");
    }
    let balance = one.balance(&WalletId::new("w"), &terms("month", 25)).await.unwrap();
    assert_eq!((balance.pools[0].spent, balance.pools[1].spent, balance.available()), (25, 7, 0));
    check_audit(&*one).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn an_id_is_spent_once_however_often_it_is_asked_for_at_the_same_time() {
    let (store, _database) = store().await;
    for round in 0..3 {
        let asks = (0..60).map(|n| request(format!("{}", n % 20), ["a", "b"][n % 2], terms("month", 100)));
        let outcomes = all(&store, asks.collect()).await;
        let taken = outcomes.iter().filter(|outcome| held(outcome).is_some()).count();
        let is_known = |outcome: &&HoldOutcome| matches!(outcome, HoldOutcome::Known { state: HoldState::Closed { spent }, .. } if spent == &[1]);
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
async fn what_is_out_of_the_ordinary_goes_its_own_way_beside_others() {
    let (store, _database) = store().await;
    grant(&*store, "pack", "buyer", 10).await;
    // A hold that nobody ends is overdue when the others come, and given back by whoever spends of its wallet.
    let overdue = HoldRequest { expires_at: moment(1), ..request("overdue", "holder", terms("month", 10)) };
    assert!(held(&store.hold(overdue).await.unwrap()).is_some());
    let later = |ask: HoldRequest| HoldRequest { now: moment(10), ..ask };
    let purchased = Terms { pools: vec![Pool::Purchased], resets_at: None };
    let two = HoldRequest {
        legs: ["x", "y"]
            .map(|wallet| Leg { wallet: WalletId::new(wallet), terms: terms("month", 10), amount: 1 })
            .into(),
        ..request("two", "x", terms("month", 10))
    };
    let mut asks = vec![
        request("purchased", "buyer", purchased.clone()),
        request("holding", "holder", terms("month", 10)),
        request("next month", "turner", terms("next month", 10)),
        request("this month", "turner", terms("month", 10)),
        request("raised", "turner", terms("month", 20)),
        request("none", "poor", terms("month", 0)),
        two,
    ];
    asks.extend((0..20).map(|n| request(format!("plain {n}"), "plain", terms("month", 100))));
    let outcomes = all(&store, asks.into_iter().map(later).collect()).await;
    let refused: Vec<usize> = (0..outcomes.len()).filter(|place| held(&outcomes[*place]).is_none()).collect();
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
async fn several_servers_that_spend_of_the_same_wallets_do_not_wait_for_each_other_in_a_circle() {
    let (one, database) = store().await;
    let two = store_in(&database).await;
    let began = std::time::Instant::now();
    for round in 0..10 {
        // In opposite orders: a circle would be found by the server only after a second.
        let ask = |server: &str, n: usize| {
            request(format!("{server}-{round}-{n}"), &format!("wallet {}", n % 16), terms("month", 10_000))
        };
        let forth = (0..48).map(|n| ask("one", n)).collect();
        let back = (0..48).rev().map(|n| ask("two", n)).collect();
        let (forth, back) = tokio::join!(all(&one, forth), all(&two, back));
        assert!(forth.iter().chain(&back).all(|outcome| held(outcome).is_some()));
    }
    let balance = one.balance(&WalletId::new("wallet 3"), &terms("month", 10_000)).await.unwrap();
    assert_eq!(balance.pools[0].spent, 60);
    assert!(began.elapsed() < Duration::from_secs(60), "{:?}", began.elapsed());
    check_audit(&*one).await;
}

/// What happened to a wallet, in the order of its entries: the ids of grants and holds.
async fn causes(database: &Database<'_>, wallet: &str) -> Vec<String> {
    let options: PgConnectOptions = database.url.parse().unwrap();
    let mut stranger = options.connect().await.unwrap();
    let entries = sqlx::query("SELECT cause FROM ledger_entries WHERE wallet = $1 ORDER BY seq");
    let rows = entries.bind(wallet.to_owned()).fetch_all(&mut stranger).await.unwrap();
    rows.iter().map(|row| row.get(0)).collect()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn an_entry_is_the_newest_of_its_wallet_whatever_the_clocks_of_servers_say() {
    let (ahead, database) = store().await;
    let together = store_in(&database).await;
    let alone = PostgresStore::open(crate::options(&database)).await.unwrap();
    let (bought, turned) = (["bought 0", "bought 1", "bought 2"], ["turned 0", "turned 1", "turned 2"]);
    for wallet in bought {
        let (id, wallet) = (GrantId::new("first ".to_owned() + wallet), WalletId::new(wallet));
        let ask = Grant { id, wallet, amount: 5, now: moment(3_600_000), memo: "pack".to_owned() };
        ahead.grant(ask).await.unwrap();
    }
    for wallet in turned {
        let ask = request("first ".to_owned() + wallet, wallet, terms("next month", 10));
        let ask = HoldRequest { now: moment(3_600_000), expires_at: moment(3_660_000), ..ask };
        assert!(held(&ahead.spend(ask).await.unwrap()).is_some());
    }
    for round in 0..3 {
        for wallets in [bought, turned] {
            let ask = |n: usize| request(format!("{round} {}", wallets[n]), wallets[n], terms("month", 10));
            assert!(held(&alone.spend(ask(0)).await.unwrap()).is_some());
            assert!(held(&alone.hold(ask(1)).await.unwrap()).is_some());
            let other = |n| request(format!("{n} {round} {}", wallets[0]), "other", terms("month", 100));
            let outcomes = all(&together, (0..8).map(other).chain([ask(2)]).collect()).await;
            assert!(outcomes.iter().all(|outcome| held(outcome).is_some()), "{outcomes:?}");
        }
    }
    for wallet in bought.into_iter().chain(turned) {
        let expected = ["first", "0", "1", "2"].map(|when| format!("{when} {wallet}"));
        assert_eq!(causes(&database, wallet).await, expected);
    }
    check_audit(&alone).await;
}
