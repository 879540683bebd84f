//! Groups of charges: isolation of errors, and the outcome of failed charges.

use std::{sync::Arc, time::Duration};

use rusqlite::Connection;
use storage_sqlx::{SqliteOptions, SqliteStore};
use tempfile::TempDir;
use tokio::task::JoinHandle;
use transcript_core::{
    ErrorKind, Result,
    accounts::{ChargeOutcome, ChargeRequest, ChargeStore},
    directory::Account,
    ids::{HoldId, WalletId},
    ledger::{HoldOutcome, HoldRequest, Ledger, Leg, Pool, SettleOutcome, SettleRequest, Terms},
};

use crate::common::{
    charging::{account, charge_request, charged},
    check_audit, purchased, timestamp,
};
use crate::opening::{foreign_connection, value};

fn not_charged(outcome: &Result<ChargeOutcome>) -> Option<ErrorKind> {
    match outcome {
        Err(error) if error.has_no_effect() => Some(error.kind()),
        _ => None,
    }
}

/// A connection of another process.
fn other(folder: &TempDir) -> Connection {
    foreign_connection(&folder.path().join("verbatim.db"))
}

fn charge(store: &Arc<SqliteStore>, charge_request: ChargeRequest) -> JoinHandle<Result<ChargeOutcome>> {
    let store = Arc::clone(store);
    tokio::spawn(async move { store.charge(charge_request).await })
}

async fn available(store: &SqliteStore, account: &Account) -> u64 {
    store.balance(&account.wallet, &purchased()).await.unwrap().available()
}

#[tokio::test]
async fn charge_damaged_limit_row_fails_only_its_charge() {
    let (store, folder) = crate::store().await;
    let mut accounts = Vec::new();
    for name in ["a", "b", "c"] {
        accounts.push(account(&*store, name).await);
    }
    let other = other(&folder);
    let damage = "INSERT INTO limits VALUES ('api/b', 9000000000000, 'no moments')";
    other.execute_batch(damage).unwrap();
    // They queue up while another process writes.
    other.execute_batch("BEGIN IMMEDIATE").unwrap();
    let calls = [0, 1, 2, 0].map(|n| charge(&store, charge_request(&accounts[n], &format!("h{n}"))));
    tokio::task::yield_now().await;
    other.execute_batch("ROLLBACK").unwrap();
    let mut outcomes = Vec::new();
    for call in calls {
        outcomes.push(call.await.unwrap());
    }
    assert!(charged(&outcomes[0]) && charged(&outcomes[2]), "{outcomes:?}");
    assert_eq!(not_charged(&outcomes[1]), Some(ErrorKind::Corrupt), "{outcomes:?}");
    let is_known =
        matches!(outcomes[3], Ok(ChargeOutcome::Accepted { spent: HoldOutcome::Exists { .. }, .. }));
    assert!(is_known, "the same id again: {outcomes:?}");
    for (account, credits) in accounts.iter().zip([9, 10, 9]) {
        assert_eq!(available(&store, account).await, credits, "{}", account.id);
    }
    check_audit(&*store).await;
}

#[tokio::test]
async fn charge_rejected_store_is_undone() {
    let (store, folder) = crate::store().await;
    let accounts = [account(&*store, "a").await, account(&*store, "b").await];
    let other = other(&folder);
    // The last statement before the commit rejects it.
    let refuse = "CREATE TRIGGER refused BEFORE INSERT ON ledger_entries WHEN NEW.wallet = 'b'
        BEGIN SELECT RAISE(ABORT, 'refused'); END";
    other.execute_batch(refuse).unwrap();
    assert!(charged(&store.charge(charge_request(&accounts[0], "h0")).await));
    assert_eq!(
        not_charged(&store.charge(charge_request(&accounts[1], "h1")).await),
        Some(ErrorKind::Unexpected)
    );
    assert!(charged(&store.charge(charge_request(&accounts[0], "h2")).await));
    other.execute_batch("DROP TRIGGER refused").unwrap();
    assert_eq!([available(&store, &accounts[0]).await, available(&store, &accounts[1]).await], [8, 10]);
    assert!(charged(&store.charge(charge_request(&accounts[1], "h1")).await), "its id is unused");
    check_audit(&*store).await;
}

#[tokio::test]
async fn spend_on_damaged_page_is_not_charged() {
    const PAGE_SIZE: usize = 4_096;
    let (store, folder) = crate::store().await;
    let account = account(&*store, "a").await;
    store.close().await;
    let file = folder.path().join("verbatim.db");
    let page: u32 = value(&other(&folder), "SELECT rootpage FROM sqlite_schema WHERE name = 'ledger_pools'");
    let end = usize::try_from(page).unwrap() * PAGE_SIZE;
    let mut bytes = std::fs::read(&file).unwrap();
    bytes[end - PAGE_SIZE..end].iter_mut().step_by(7).for_each(|byte| *byte ^= 0x55);
    std::fs::write(&file, bytes).unwrap();
    let store = crate::store_in(folder.path()).await;
    let ChargeRequest { spend, .. } = charge_request(&account, "h1");
    let error = store.spend(spend).await.unwrap_err();
    assert!(error.has_no_effect() && error.kind() == ErrorKind::Corrupt, "{error:?}");
    assert_eq!(not_charged(&store.charge(charge_request(&account, "h2")).await), Some(ErrorKind::Corrupt));
    assert!(store.monitor().is_damaged());
}

#[tokio::test]
async fn charge_locked_file_is_not_charged() {
    let folder = tempfile::tempdir().unwrap();
    let mut options = SqliteOptions::new(folder.path().join("verbatim.db"));
    options.busy_timeout = Duration::from_millis(100);
    let store = Arc::new(SqliteStore::open(options).await.unwrap());
    let account = account(&*store, "a").await;
    let other = other(&folder);
    other.execute_batch("BEGIN IMMEDIATE").unwrap();
    let calls = ["h1", "h2"].map(|id| charge(&store, charge_request(&account, id)));
    for call in calls {
        assert_eq!(not_charged(&call.await.unwrap()), Some(ErrorKind::Unavailable));
    }
    other.execute_batch("ROLLBACK").unwrap();
    assert_eq!(available(&store, &account).await, 10);
    assert!(charged(&store.charge(charge_request(&account, "h1")).await), "its id is unused");
    store.close().await;
    assert_eq!(
        not_charged(&store.charge(charge_request(&account, "h3")).await),
        Some(ErrorKind::Unavailable)
    );
}

#[tokio::test]
async fn charge_group_mixes_spends_and_charges() {
    let (store, folder) = crate::store().await;
    let account = account(&*store, "a").await;
    let other = other(&folder);
    other.execute_batch("BEGIN IMMEDIATE").unwrap();
    let spend = |id: &str| {
        let (store, charge_request) = (Arc::clone(&store), charge_request(&account, id).spend);
        tokio::spawn(async move { store.spend(charge_request).await })
    };
    let charged_first = charge(&store, charge_request(&account, "h0"));
    let spent: Vec<_> = ["h1", "h2", "h1", "h0"].map(spend).into();
    let charged_last = charge(&store, charge_request(&account, "h1"));
    tokio::task::yield_now().await;
    other.execute_batch("ROLLBACK").unwrap();
    assert!(charged(&charged_first.await.unwrap()));
    for (index, spent) in spent.into_iter().enumerate() {
        let outcome = spent.await.unwrap().unwrap();
        let is_first = matches!(outcome, HoldOutcome::Held { .. });
        assert!(is_first || matches!(outcome, HoldOutcome::Exists { .. }), "{outcome:?}");
        assert_eq!(is_first, index < 2);
    }
    let known = charged_last.await.unwrap();
    assert!(
        matches!(known, Ok(ChargeOutcome::Accepted { spent: HoldOutcome::Exists { .. }, .. })),
        "{known:?}"
    );
    // Three ids, each charged once, independent of the call and its repetitions.
    assert_eq!(available(&store, &account).await, 7);
    for n in 0..10 {
        let outcome = spend(&format!("more{n}")).await.unwrap().unwrap();
        assert_eq!(matches!(outcome, HoldOutcome::Held { .. }), n < 7, "{n}: {outcome:?}");
    }
    assert_eq!(available(&store, &account).await, 0);
    check_audit(&*store).await;
}

#[tokio::test]
async fn charge_cancelled_while_queued_is_not_charged() {
    let (store, folder) = crate::store().await;
    let account = account(&*store, "a").await;
    let other = other(&folder);
    other.execute_batch("BEGIN IMMEDIATE").unwrap();
    let (stays, leaves) =
        (charge(&store, charge_request(&account, "h1")), charge(&store, charge_request(&account, "h2")));
    tokio::task::yield_now().await;
    leaves.abort();
    assert!(leaves.await.unwrap_err().is_cancelled());
    other.execute_batch("ROLLBACK").unwrap();
    assert!(charged(&stays.await.unwrap()));
    assert_eq!(available(&store, &account).await, 9);
    assert!(is_unknown(&store, "h2").await);
}

async fn is_unknown(store: &SqliteStore, id: &str) -> bool {
    let settle = SettleRequest { id: HoldId::new(id), spent: vec![0], now: timestamp(1) };
    store.settle(settle).await.unwrap() == SettleOutcome::HoldNotFound
}

/// Spends from a wallet's allowance.
fn spend(store: &Arc<SqliteStore>, id: &str, wallet: &str) -> JoinHandle<Result<HoldOutcome>> {
    let month = Pool::Allowance { bucket: "month".to_owned(), limit: 10 };
    let terms = Terms { pools: vec![month, Pool::Purchased], resets_at: None };
    let hold_request = HoldRequest {
        id: HoldId::new(id),
        legs: vec![Leg { wallet: WalletId::new(wallet), terms, amount: 3 }],
        now: timestamp(0),
        expires_at: timestamp(60_000),
        memo: "spend".to_owned(),
    };
    let store = Arc::clone(store);
    tokio::spawn(async move { store.spend(hold_request).await })
}

#[tokio::test]
async fn spend_cancelled_during_lock_wait_is_not_charged() {
    let (store, folder) = crate::store().await;
    assert!(spend(&store, "s1", "a").await.unwrap().is_ok());
    let other = other(&folder);
    other.execute_batch("BEGIN IMMEDIATE").unwrap();
    let leaves = spend(&store, "s2", "a");
    // The spend itself now waits for the lock.
    tokio::time::sleep(Duration::from_millis(100)).await;
    leaves.abort();
    assert!(leaves.await.unwrap_err().is_cancelled());
    other.execute_batch("ROLLBACK").unwrap();
    let HoldOutcome::Held { balances } = spend(&store, "s3", "a").await.unwrap().unwrap() else {
        panic!("the allowance must have room")
    };
    assert_eq!(balances[0].pools[0].spent, 6);
    assert!(is_unknown(&store, "s2").await);
    check_audit(&*store).await;
}

#[tokio::test]
async fn single_spend_rows_equal_batched_rows() {
    let (store, folder) = crate::store().await;
    let mut outcomes = Vec::new();
    for id in ["alone 1", "alone 2"] {
        outcomes.push(spend(&store, id, "w1").await.unwrap().unwrap());
    }
    let other = other(&folder);
    for round in [1, 2] {
        // They queue up while another process writes.
        other.execute_batch("BEGIN IMMEDIATE").unwrap();
        let calls = ["w2", "w3"].map(|wallet| spend(&store, &format!("{wallet} {round}"), wallet));
        tokio::time::sleep(Duration::from_millis(100)).await;
        other.execute_batch("ROLLBACK").unwrap();
        for call in calls {
            outcomes.push(call.await.unwrap().unwrap());
        }
    }
    let spent = |outcome: &HoldOutcome| match outcome {
        HoldOutcome::Held { balances } => balances[0].pools.clone(),
        other => panic!("{other:?}"),
    };
    let pools: Vec<_> = outcomes.iter().map(spent).collect();
    assert_eq!([&pools[2], &pools[3], &pools[4], &pools[5]], [&pools[0], &pools[0], &pools[1], &pools[1]]);
    let rows = "SELECT p.cap || '/' || p.spent || '/' || p.held || '/' || p.granted || p.bucket
            || h.state || h.expires_at || h.memo || replace(h.legs, p.wallet, '')
            || e.at || e.bucket || e.cap || e.kind || e.amount || e.shortfall || e.memo
        FROM ledger_pools p JOIN ledger_entries e USING (wallet) JOIN ledger_holds h ON h.id = e.cause ORDER BY e.seq";
    let mut rows = other.prepare(rows).unwrap();
    let rows = rows.query_map([], |row| row.get(0)).unwrap();
    let rows: Vec<String> = rows.collect::<rusqlite::Result<_>>().unwrap();
    assert_eq!(rows.len(), 6);
    assert!(rows.iter().all(|row| row == &rows[0] && row.contains("charged")), "{rows:#?}");
    check_audit(&*store).await;
}
