//! Several stores on one file, and cancelled callers.

use std::{sync::Arc, time::Duration};

use transcript_core::{
    PageRequest,
    archive::{Archive, FindOutcome, TrackSelector},
    ids::WalletId,
    ledger::{HoldOutcome, Ledger},
};

use crate::{
    common::{self, check_audit, grant, poll_without_runtime, purchased, request, timestamp},
    opening::foreign_connection,
};

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn ledger_two_stores_drain_wallet_to_zero() {
    let (one, folder) = crate::store().await;
    common::drain_wallet(one, crate::store_in(folder.path()).await).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn ledger_cancelled_callers_leave_no_partial_write() {
    let (store, folder) = crate::store().await;
    common::check_cancelled_callers(store, async || crate::store_in(folder.path()).await as _).await;
}

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

#[test]
fn store_futures_complete_without_runtime() {
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(1).enable_all().build().unwrap();
    let folder = tempfile::tempdir().unwrap();
    let store = runtime.block_on(crate::store_in(folder.path()));
    let archive = runtime.block_on(crate::archive_in(folder.path()));
    poll_without_runtime(async {
        grant(&*store, "bought", "w", 5).await;
        assert_eq!(store.balance(&WalletId::new("w"), &purchased()).await.unwrap().available(), 5);
        let kept = archive.put(common::put_request("aaaaaaaaaaa", "words")).await.unwrap();
        let found =
            archive.find(&kept.transcript.video, &TrackSelector::Default, timestamp(0)).await.unwrap();
        let body =
            archive.stored_body(&kept.transcript.video, &TrackSelector::Default).await.unwrap().unwrap();
        assert_eq!(body.content_sha256, kept.content_sha256);
        assert_eq!(found, FindOutcome::Transcript(kept));
    });
}

#[tokio::test]
async fn ledger_special_characters_are_stored_unchanged() {
    let (store, _folder) = crate::store().await;
    common::check_texts_stored(&*store).await;
}

#[tokio::test]
async fn store_special_characters_are_stored_unchanged() {
    let (store, _folder) = crate::store().await;
    common::check_names_stored(&*store).await;
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
