//! Concurrent charges of several servers to the same accounts.

use std::sync::Arc;

use futures_util::future::join_all;
use sqlx::{AssertSqlSafe, ConnectOptions, postgres::PgConnectOptions};
use transcript_core::{
    ErrorKind, Result,
    accounts::{ChargeOutcome, ChargeRequest, ChargeStore, SequentialCharges},
    ids::HoldId,
    ledger::{HoldOutcome, HoldRequest, Ledger, Pool},
    limits::LimitRequest,
};

use crate::{
    common::{
        charging::{account, charge_request, charged},
        check_audit, purchased, timestamp,
    },
    opening::foreign_connection,
};

/// The kind of an error after which nothing is charged.
fn not_charged<T: std::fmt::Debug>(outcome: Result<T>) -> ErrorKind {
    let error = outcome.unwrap_err();
    assert!(error.has_no_effect(), "{error:?}");
    error.kind()
}

/// Waiting charges have the outcomes of single calls in the same order, with repeated ids, used-up limits and credits,
/// stale keys and overdue holds.
#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn charge_groups_match_sequential_calls() {
    let ((store, _database), (single, _other_database)) = (crate::store().await, crate::store().await);
    let steps = SequentialCharges {
        directory: Arc::clone(&single) as _,
        limiter: Arc::clone(&single) as _,
        ledger: Arc::clone(&single) as _,
    };
    let mut accounts = Vec::new();
    for name in ["a", "b", "c"] {
        account(&*single, name).await;
        accounts.push(account(&*store, name).await);
    }
    let mut state = 7_u64;
    let mut below = |bound: u64| {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (state >> 33) % bound
    };
    for round in 0..25_i64 {
        let requests = (0..16).map(|_| {
            let account = &accounts[usize::try_from(below(3)).unwrap()];
            let mut request = charge_request(account, &format!("{}-{}", account.id, below(200)));
            request.limit_request.cost = u32::from(below(8) > 0);
            request.version += u64::from(below(16) == 0);
            (request.spend.now, request.spend.expires_at) = (timestamp(round * 400), timestamp(100_000));
            let leg = &mut request.spend.legs[0];
            let limit = u64::try_from(round).unwrap() + 4;
            leg.terms.pools.insert(0, Pool::Allowance { bucket: "month".to_owned(), limit });
            leg.amount = below(3);
            request
        });
        let requests: Vec<ChargeRequest> = requests.collect();
        let mut hold = requests[0].spend.clone();
        (hold.id, hold.expires_at) = (HoldId::new(format!("hold {round}")), timestamp(round * 400 + 500));
        for store in [&store, &single] {
            let _ = store.hold(hold.clone()).await.unwrap();
        }
        let outcomes = join_all(requests.iter().map(|request| store.charge(request.clone()))).await;
        for (request, outcome) in requests.into_iter().zip(outcomes) {
            let expected = steps.charge(request.clone()).await;
            assert_eq!(format!("{outcome:?}"), format!("{expected:?}"), "round {round}: {request:?}");
        }
    }
    for store in [&store, &single] {
        check_audit(&**store).await;
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn charge_several_servers_spend_exact_credits() {
    let (one, database) = crate::store().await;
    let stores = [Arc::clone(&one), crate::store_in(&database).await, crate::store_in(&database).await];
    let mut accounts = Vec::new();
    for name in ["a", "b", "c", "d", "e"] {
        accounts.push(account(&*one, name).await);
    }
    // Each account has ten credits and receives fifteen charges, from all servers concurrently.
    let mut calls = Vec::new();
    for (account, n) in accounts.iter().flat_map(|account| (0..15).map(move |n| (account, n))) {
        let charge_request = charge_request(account, &format!("{}-{n}", account.id));
        let limit_request = LimitRequest { max: 100, ..charge_request.limit_request.clone() };
        let (store, charge_request) =
            (Arc::clone(&stores[n % 3]), ChargeRequest { limit_request, ..charge_request });
        calls.push(tokio::spawn(async move { store.charge(charge_request).await.unwrap() }));
    }
    let (mut paid, mut refused) = (0, 0);
    for call in calls {
        match call.await.unwrap() {
            ChargeOutcome::Accepted { spent: HoldOutcome::Held { .. }, .. } => paid += 1,
            ChargeOutcome::Accepted { spent: HoldOutcome::Insufficient { .. }, .. } => refused += 1,
            other => panic!("{other:?}"),
        }
    }
    assert_eq!((paid, refused), (50, 25));
    for account in &accounts {
        let balance = one.balance(&account.wallet, &purchased()).await.unwrap();
        assert_eq!((balance.available(), balance.pools[0].spent), (0, 10), "{}", account.id);
    }
    check_audit(&*stores[2]).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn charge_damaged_limit_row_fails_only_its_charge() {
    let (store, database) = crate::store().await;
    let mut accounts = Vec::new();
    for name in ["a", "b", "c", "d", "e", "f", "g", "h"] {
        accounts.push(account(&*store, name).await);
    }
    let options: PgConnectOptions = database.url.parse().unwrap();
    let mut foreign_connection = options.connect().await.unwrap();
    let damage =
        "INSERT INTO limits (bucket, version, ends_at, taken) VALUES ('api/b', 1, 9000000000000, 'none')";
    sqlx::raw_sql(damage).execute(&mut foreign_connection).await.unwrap();
    let calls: Vec<_> = (0..4)
        .flat_map(|n| accounts.iter().map(move |account| (n, account)))
        .map(|(n, account)| {
            let (store, charge_request) =
                (Arc::clone(&store), charge_request(account, &format!("{}-{n}", account.id)));
            (account.id.clone(), tokio::spawn(async move { store.charge(charge_request).await }))
        })
        .collect();
    for (account, call) in calls {
        let outcome = call.await.unwrap();
        if account.as_str() == "b" {
            assert_eq!(not_charged(outcome), ErrorKind::Corrupt);
        } else {
            assert!(charged(&outcome), "{account}: {outcome:?}");
        }
    }
    check_audit(&*store).await;
}

#[tokio::test]
async fn charge_closed_store_is_not_charged() {
    let (store, _database) = crate::store().await;
    let account = account(&*store, "a").await;
    store.close().await;
    let outcome = store.charge(charge_request(&account, "h1")).await;
    assert_eq!(not_charged(outcome), ErrorKind::Unavailable);
}

/// A statement that the server refuses stores nothing, on each path of a spend.
#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn spend_refused_by_server_is_not_charged() {
    let (store, database) = crate::store().await;
    let account = account(&*store, "a").await;
    let mut other = foreign_connection(&database).await;
    let batched = crate::spend_batch::store_in(&database).await;
    for code in ["42501", "XX001"] {
        let refuse = format!(
            "CREATE OR REPLACE FUNCTION refuse() RETURNS trigger LANGUAGE plpgsql AS
                'BEGIN RAISE EXCEPTION ''refused'' USING ERRCODE = ''{code}''; END';
            DROP TRIGGER IF EXISTS refused ON ledger_entries;
            CREATE TRIGGER refused BEFORE INSERT ON ledger_entries FOR EACH ROW EXECUTE FUNCTION refuse()"
        );
        sqlx::raw_sql(AssertSqlSafe(refuse)).execute(&mut other).await.unwrap();
        for store in [&store, &batched] {
            let ChargeRequest { spend, .. } = charge_request(&account, "general");
            not_charged(store.spend(spend.clone()).await);
            let mut quick = HoldRequest { id: HoldId::new("quick"), ..spend };
            let month = Pool::Allowance { bucket: "month".to_owned(), limit: 5 };
            quick.legs[0].terms.pools.insert(0, month);
            not_charged(store.spend(quick).await);
            not_charged(store.charge(charge_request(&account, "charge")).await);
            assert_eq!(store.monitor().is_damaged(), code == "XX001");
        }
    }
    sqlx::raw_sql("DROP TRIGGER refused ON ledger_entries").execute(&mut other).await.unwrap();
    let balance = store.balance(&account.wallet, &purchased()).await.unwrap();
    assert_eq!(balance.available(), 10);
    assert!(charged(&store.charge(charge_request(&account, "charge")).await), "its id is unused");
    check_audit(&*store).await;
}
