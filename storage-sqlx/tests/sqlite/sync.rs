//! Writes that are acknowledged without a sync of the disk.

use std::path::Path;

use transcript_core::{
    ErrorKind, Result,
    ids::HoldId,
    ledger::{HoldOutcome, Ledger, SettleRequest},
};

use crate::common::{grant, request, timestamp};

/// Makes every sync of a database fail that has written nothing since it was opened: the path of its log leads nowhere.
fn fail_syncs(folder: &Path) {
    let log = folder.join("verbatim.db-wal");
    std::fs::rename(&log, log.with_extension("renamed")).unwrap();
    std::os::unix::fs::symlink(&log, &log).unwrap();
}

fn check_unsynced<T: std::fmt::Debug>(outcome: Result<T>) {
    let error = outcome.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Unavailable);
    assert!(error.message().contains("cannot sync database"), "{error}");
}

/// A store with 100 credits and the hold `known`, whose syncs fail.
async fn unsynced_store(folder: &Path) -> std::sync::Arc<storage_sqlx::SqliteStore> {
    let files = folder.join("files");
    std::fs::create_dir(&files).unwrap();
    let store = crate::store_in(&files).await;
    grant(&*store, "bought", "w", 100).await;
    let _ = store.hold(request("known".to_owned(), "w", 1)).await.unwrap();
    store.close().await;
    let store = crate::store_in(&files).await;
    fail_syncs(&files);
    store
}

#[tokio::test]
async fn new_hold_needs_no_sync() {
    let folder = tempfile::tempdir().unwrap();
    let store = unsynced_store(folder.path()).await;
    for id in ["one", "two"] {
        let held = store.hold(request(id.to_owned(), "w", 3)).await.unwrap();
        assert!(matches!(held, HoldOutcome::Held { .. }), "{held:?}");
    }
    let settle = SettleRequest { id: HoldId::new("one"), spent: vec![3], now: timestamp(1) };
    check_unsynced(store.settle(settle).await);
    check_unsynced(store.hold(request("three".to_owned(), "w", 3)).await);
}

#[tokio::test]
async fn other_outcomes_of_ledger_need_sync() {
    for (id, amount) in [("known", 1), ("prepaid", 0), ("too much", 1_000)] {
        let folder = tempfile::tempdir().unwrap();
        check_unsynced(unsynced_store(folder.path()).await.hold(request(id.to_owned(), "w", amount)).await);
    }
    let folder = tempfile::tempdir().unwrap();
    check_unsynced(unsynced_store(folder.path()).await.spend(request("spend".to_owned(), "w", 3)).await);
    let folder = tempfile::tempdir().unwrap();
    let store = unsynced_store(folder.path()).await;
    check_unsynced(store.extend(&HoldId::new("known"), timestamp(90_000)).await);
}
