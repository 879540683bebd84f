//! Charges that wait together: whose fault is whose, and what is known of a charge that failed.

use std::{sync::Arc, time::Duration};

use sqlx::{ConnectOptions, Connection, Row, SqliteConnection, sqlite::SqliteConnectOptions};
use storage_sqlx::{SqliteOptions, SqliteStore};
use tempfile::TempDir;
use tokio::task::JoinHandle;
use transcript_core::{
    ErrorKind, Result,
    accounts::{ChargeOutcome, ChargeRequest, Charges},
    directory::Account,
    ids::{HoldId, WalletId},
    ledger::{HoldOutcome, HoldRequest, Ledger, Leg, Pool, Settle, SettleOutcome, Terms},
};

use crate::common::{
    charging::{account, ask, charged},
    check_audit, moment, purchased,
};

fn undone(outcome: &Result<ChargeOutcome>) -> Option<ErrorKind> {
    match outcome {
        Ok(ChargeOutcome::Undone(error)) => Some(error.kind()),
        _ => None,
    }
}

/// Another process that has the file open.
async fn other(folder: &TempDir) -> SqliteConnection {
    let options = SqliteConnectOptions::new().filename(folder.path().join("verbatim.db"));
    options.connect().await.unwrap()
}

fn charge(store: &Arc<SqliteStore>, ask: ChargeRequest) -> JoinHandle<Result<ChargeOutcome>> {
    let store = Arc::clone(store);
    tokio::spawn(async move { store.charge(ask).await })
}

async fn left(store: &SqliteStore, account: &Account) -> u64 {
    store.balance(&account.wallet, &purchased()).await.unwrap().available()
}

#[tokio::test]
async fn a_damaged_row_is_its_own_charges_fault_only() {
    let (store, folder) = crate::store().await;
    let mut accounts = Vec::new();
    for name in ["a", "b", "c"] {
        accounts.push(account(&*store, name).await);
    }
    let mut other = other(&folder).await;
    let damage = "INSERT INTO limits VALUES ('api/b', 9000000000000, 'no moments')";
    sqlx::raw_sql(damage).execute(&mut other).await.unwrap();
    // While another writes, they gather.
    let lock = other.begin_with("BEGIN IMMEDIATE").await.unwrap();
    let calls = [0, 1, 2, 0].map(|n| charge(&store, ask(&accounts[n], &format!("h{n}"))));
    tokio::task::yield_now().await;
    lock.rollback().await.unwrap();
    let mut outcomes = Vec::new();
    for call in calls {
        outcomes.push(call.await.unwrap());
    }
    assert!(charged(&outcomes[0]) && charged(&outcomes[2]), "{outcomes:?}");
    assert_eq!(undone(&outcomes[1]), Some(ErrorKind::Corrupt), "{outcomes:?}");
    let is_known = matches!(outcomes[3], Ok(ChargeOutcome::Counted { spent: HoldOutcome::Known { .. }, .. }));
    assert!(is_known, "the same id once more: {outcomes:?}");
    for (account, credits) in accounts.iter().zip([9, 10, 9]) {
        assert_eq!(left(&store, account).await, credits, "{}", account.id);
    }
    check_audit(&*store).await;
}

#[tokio::test]
async fn what_cannot_be_stored_is_undone() {
    let (store, folder) = crate::store().await;
    let accounts = [account(&*store, "a").await, account(&*store, "b").await];
    let mut other = other(&folder).await;
    // It is refused by the last statement before the commit.
    let refuse = "CREATE TRIGGER refused BEFORE INSERT ON ledger_entries WHEN NEW.wallet = 'b'
        BEGIN SELECT RAISE(ABORT, 'refused'); END";
    sqlx::raw_sql(refuse).execute(&mut other).await.unwrap();
    assert!(charged(&store.charge(ask(&accounts[0], "h0")).await));
    assert_eq!(undone(&store.charge(ask(&accounts[1], "h1")).await), Some(ErrorKind::Unexpected));
    assert!(charged(&store.charge(ask(&accounts[0], "h2")).await));
    sqlx::raw_sql("DROP TRIGGER refused").execute(&mut other).await.unwrap();
    assert_eq!([left(&store, &accounts[0]).await, left(&store, &accounts[1]).await], [8, 10]);
    assert!(charged(&store.charge(ask(&accounts[1], "h1")).await), "its id is fresh");
    check_audit(&*store).await;
}

#[tokio::test]
async fn what_cannot_begin_is_undone() {
    let folder = tempfile::tempdir().unwrap();
    let mut options = SqliteOptions::new(folder.path().join("verbatim.db"));
    options.busy_timeout = Duration::from_millis(100);
    let store = Arc::new(SqliteStore::open(options).await.unwrap());
    let account = account(&*store, "a").await;
    let mut other = other(&folder).await;
    let lock = other.begin_with("BEGIN IMMEDIATE").await.unwrap();
    let calls = ["h1", "h2"].map(|id| charge(&store, ask(&account, id)));
    for call in calls {
        assert_eq!(undone(&call.await.unwrap()), Some(ErrorKind::Unavailable));
    }
    lock.rollback().await.unwrap();
    assert_eq!(left(&store, &account).await, 10);
    assert!(charged(&store.charge(ask(&account, "h1")).await), "its id is fresh");
    store.close().await;
    assert_eq!(undone(&store.charge(ask(&account, "h3")).await), Some(ErrorKind::Unavailable));
}

#[tokio::test]
async fn spends_and_charges_share_a_group_and_keep_to_themselves() {
    let (store, folder) = crate::store().await;
    let account = account(&*store, "a").await;
    let mut other = other(&folder).await;
    let lock = other.begin_with("BEGIN IMMEDIATE").await.unwrap();
    let spend = |id: &str| {
        let (store, ask) = (Arc::clone(&store), ask(&account, id).spend);
        tokio::spawn(async move { store.spend(ask).await })
    };
    let charged_first = charge(&store, ask(&account, "h0"));
    let spent: Vec<_> = ["h1", "h2", "h1", "h0"].map(spend).into();
    let charged_last = charge(&store, ask(&account, "h1"));
    tokio::task::yield_now().await;
    lock.rollback().await.unwrap();
    assert!(charged(&charged_first.await.unwrap()));
    for (place, spent) in spent.into_iter().enumerate() {
        let outcome = spent.await.unwrap().unwrap();
        let is_first = matches!(outcome, HoldOutcome::Held { .. });
        assert!(is_first || matches!(outcome, HoldOutcome::Known { .. }), "{outcome:?}");
        assert_eq!(is_first, place < 2);
    }
    let known = charged_last.await.unwrap();
    assert!(
        matches!(known, Ok(ChargeOutcome::Counted { spent: HoldOutcome::Known { .. }, .. })),
        "{known:?}"
    );
    // Three ids, each paid once, by whoever asked and however often.
    assert_eq!(left(&store, &account).await, 7);
    for n in 0..10 {
        let outcome = spend(&format!("more{n}")).await.unwrap().unwrap();
        assert_eq!(matches!(outcome, HoldOutcome::Held { .. }), n < 7, "{n}: {outcome:?}");
    }
    assert_eq!(left(&store, &account).await, 0);
    check_audit(&*store).await;
}

#[tokio::test]
async fn whoever_leaves_before_the_turn_is_not_charged() {
    let (store, folder) = crate::store().await;
    let account = account(&*store, "a").await;
    let mut other = other(&folder).await;
    let lock = other.begin_with("BEGIN IMMEDIATE").await.unwrap();
    let (stays, leaves) = (charge(&store, ask(&account, "h1")), charge(&store, ask(&account, "h2")));
    tokio::task::yield_now().await;
    leaves.abort();
    assert!(leaves.await.unwrap_err().is_cancelled());
    lock.rollback().await.unwrap();
    assert!(charged(&stays.await.unwrap()));
    assert_eq!(left(&store, &account).await, 9);
    assert!(is_unknown(&store, "h2").await);
}

async fn is_unknown(store: &SqliteStore, id: &str) -> bool {
    let settle = Settle { id: HoldId::new(id), spent: vec![0], now: moment(1) };
    store.settle(settle).await.unwrap() == SettleOutcome::Unknown
}

/// A spend of a wallet's allowance.
fn spend(store: &Arc<SqliteStore>, id: &str, wallet: &str) -> JoinHandle<Result<HoldOutcome>> {
    let month = Pool::Allowance { bucket: "month".to_owned(), limit: 10 };
    let terms = Terms { pools: vec![month, Pool::Purchased], resets_at: None };
    let ask = HoldRequest {
        id: HoldId::new(id),
        legs: vec![Leg { wallet: WalletId::new(wallet), terms, amount: 3 }],
        now: moment(0),
        expires_at: moment(60_000),
        memo: "spend".to_owned(),
    };
    let store = Arc::clone(store);
    tokio::spawn(async move { store.spend(ask).await })
}

#[tokio::test]
async fn whoever_leaves_while_another_process_writes_does_not_pay_for_a_spend() {
    let (store, folder) = crate::store().await;
    assert!(spend(&store, "s1", "a").await.unwrap().is_ok());
    let mut other = other(&folder).await;
    let lock = other.begin_with("BEGIN IMMEDIATE").await.unwrap();
    let leaves = spend(&store, "s2", "a");
    // Now it waits for the lock itself.
    tokio::time::sleep(Duration::from_millis(100)).await;
    leaves.abort();
    assert!(leaves.await.unwrap_err().is_cancelled());
    lock.rollback().await.unwrap();
    let HoldOutcome::Held { balances } = spend(&store, "s3", "a").await.unwrap().unwrap() else {
        panic!("there is room")
    };
    assert_eq!(balances[0].pools[0].spent, 6);
    assert!(is_unknown(&store, "s2").await);
    check_audit(&*store).await;
}

#[tokio::test]
async fn a_spend_alone_leaves_what_one_of_a_group_leaves() {
    let (store, folder) = crate::store().await;
    let mut outcomes = Vec::new();
    for id in ["alone 1", "alone 2"] {
        outcomes.push(spend(&store, id, "w1").await.unwrap().unwrap());
    }
    let mut other = other(&folder).await;
    for round in [1, 2] {
        // While another writes, they gather.
        let lock = other.begin_with("BEGIN IMMEDIATE").await.unwrap();
        let calls = ["w2", "w3"].map(|wallet| spend(&store, &format!("{wallet} {round}"), wallet));
        tokio::time::sleep(Duration::from_millis(100)).await;
        lock.rollback().await.unwrap();
        for call in calls {
            outcomes.push(call.await.unwrap().unwrap());
        }
    }
    let spent = |outcome: &HoldOutcome| match outcome {
        HoldOutcome::Held { balances } => balances[0].pools.clone(),
        other => panic!("{other:?}"),
    };
    let told: Vec<_> = outcomes.iter().map(spent).collect();
    assert_eq!([&told[2], &told[3], &told[4], &told[5]], [&told[0], &told[0], &told[1], &told[1]]);
    let rows = "SELECT p.cap || '/' || p.spent || '/' || p.held || '/' || p.granted || p.bucket
            || h.state || h.expires_at || h.memo || replace(h.legs, p.wallet, '')
            || e.at || e.bucket || e.cap || e.kind || e.amount || e.shortfall || e.memo
        FROM ledger_pools p JOIN ledger_entries e USING (wallet) JOIN ledger_holds h ON h.id = e.cause ORDER BY e.seq";
    let rows = sqlx::query(rows).fetch_all(&mut other).await.unwrap();
    let rows: Vec<String> = rows.iter().map(|row| row.get(0)).collect();
    assert_eq!(rows.len(), 6);
    assert!(rows.iter().all(|row| row == &rows[0] && row.contains("charged")), "{rows:#?}");
    check_audit(&*store).await;
}
