//! Callers whose runtime ends, and entries that other programs cannot change.

use std::{sync::Arc, time::Duration};

use transcript_core::{
    PageRequest,
    ids::WalletId,
    ledger::{HoldOutcome, Ledger},
};

use crate::{
    common::{check_audit, grant, poll_without_runtime, purchased, request},
    opening::foreign_connection,
};

#[test]
fn ledger_runtime_shutdown_leaves_no_partial_write() {
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
        // The callers are dropped at any point of the work.
        runtime.shutdown_background();
    }
    let runtime = runtime();
    let store = runtime.block_on(crate::store_in(folder.path()));
    runtime.block_on(async {
        grant(&*store, "last", "w", 1).await;
        check_audit(&*store).await;
    });
}

/// No call waits forever: the writer has its own thread, and lists need a thread of the runtime.
#[test]
fn call_after_runtime_shutdown_ends() {
    let folder = tempfile::tempdir().unwrap();
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(1).enable_all().build().unwrap();
    let store = runtime.block_on(crate::store_in(folder.path()));
    runtime.block_on(grant(&*store, "bought", "w", 5));
    drop(runtime);
    for n in 0..3 {
        let spent = poll_without_runtime(store.spend(request(format!("s{n}"), "w", 1))).unwrap();
        assert!(matches!(spent, HoldOutcome::Held { .. }), "{spent:?}");
    }
    let wallet = WalletId::new("w");
    let balance = poll_without_runtime(store.balance(&wallet, &purchased())).unwrap();
    assert_eq!(balance.available(), 2);
    let error = poll_without_runtime(store.entries(&wallet, PageRequest::first())).unwrap_err();
    assert!(error.message().contains("closed"), "{error}");
}

#[tokio::test]
async fn ledger_entries_reject_update_and_delete() {
    let (store, folder) = crate::store().await;
    grant(&*store, "bought", "w", 5).await;
    let other = foreign_connection(&folder.path().join("verbatim.db"));
    for statement in [
        "UPDATE ledger_entries SET amount = 50",
        "DELETE FROM ledger_entries",
        "INSERT OR REPLACE INTO ledger_entries SELECT seq, at, wallet, bucket, cap, kind, 50, 0, cause, memo
            FROM ledger_entries",
    ] {
        other.execute_batch(statement).unwrap_err();
    }
    other.execute_batch("UPDATE ledger_pools SET spent = 6").unwrap_err();
    check_audit(&*store).await;
}
