//! Several stores on one file, and callers who go away.

use std::{sync::Arc, time::Duration};

use transcript_core::{
    archive::{Archive, Found, Wish},
    ids::WalletId,
    ledger::Ledger,
};

use crate::common::moment;
use crate::common::{self, check_audit, grant, poll_alone, purchased, request};

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn two_stores_drain_a_wallet_to_exactly_nothing() {
    let (one, folder) = crate::store().await;
    common::drain(one, crate::store_in(folder.path()).await).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn callers_who_go_away_leave_nothing_half_done() {
    let (store, folder) = crate::store().await;
    common::go_away(store, async || crate::store_in(folder.path()).await as _).await;
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

#[test]
fn nobody_waits_for_a_runtime_that_is_gone() {
    let folder = tempfile::tempdir().unwrap();
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(1).enable_all().build().unwrap();
    let store = runtime.block_on(crate::store_in(folder.path()));
    runtime.block_on(grant(&*store, "bought", "w", 5));
    drop(runtime);
    for n in 0..3 {
        let spent = poll_alone(store.spend(request(format!("s{n}"), "w", 1)));
        let error = spent.unwrap_err();
        assert!(error.message().contains("closed"), "{error}");
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
        let kept = archive.keep(common::keep("aaaaaaaaaaa", "words")).await.unwrap();
        let found = archive.find(&kept.transcript.video, &Wish::Default, moment(0)).await.unwrap();
        let body = archive.body(&kept.transcript.video, &Wish::Default).await.unwrap().unwrap();
        assert_eq!(body.content_sha256, kept.content_sha256);
        assert_eq!(found, Found::Transcript(kept));
    });
}

#[tokio::test]
async fn any_text_is_kept_letter_by_letter() {
    let (store, _folder) = crate::store().await;
    common::keep_texts(&*store).await;
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
