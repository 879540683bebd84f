//! Several stores on one database, and cancelled callers.

use transcript_core::{
    archive::{Archive, FindOutcome, TrackSelector},
    ids::Holder,
    ledger::Ledger,
};

use verbatim_tests_postgres::TestDatabase;

use crate::{
    common::{self, grant, poll_without_runtime, purchased, timestamp},
    opening::foreign_connection,
};

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn ledger_two_stores_drain_wallet_to_zero() {
    let (one, database) = crate::store().await;
    common::drain_wallet(one, crate::store_in(&database).await).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn ledger_cancelled_callers_leave_no_partial_write() {
    let (store, database) = crate::store().await;
    common::check_cancelled_callers(store, async || crate::store_in(&database).await as _).await;
}

#[tokio::test]
async fn postgres_now_returns_database_time() {
    let (store, database) = crate::store().await;
    let archive = crate::archive_in(&database).await;
    let (before, between, after) =
        (store.now().await.unwrap(), archive.now().await.unwrap(), store.now().await.unwrap());
    assert!(before <= between && between <= after);
}

#[tokio::test]
async fn leader_lease_of_corrected_clock_is_free() {
    let (store, _database) = crate::store().await;
    for (holder, now, leads) in
        [("a", 86_400_000, true), ("b", 86_400_000, false), ("b", 0, true), ("a", 0, false)]
    {
        let (now, end) = (timestamp(now), timestamp(now + 60_000));
        let outcome = store.try_lead("sweep", &Holder::new(holder), now, end).await.unwrap();
        assert_eq!(outcome, leads, "{holder} at {now}");
    }
}

#[tokio::test]
async fn ledger_special_characters_are_stored_unchanged() {
    let (store, _database) = crate::store().await;
    common::check_texts_stored(&*store).await;
}

#[tokio::test]
async fn store_special_characters_are_stored_unchanged() {
    let (store, _database) = crate::store().await;
    common::check_names_stored(&*store).await;
}

#[test]
fn store_futures_complete_without_runtime() {
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(1).enable_all().build().unwrap();
    let database = crate::database();
    let store = runtime.block_on(crate::store_in(&database));
    let archive = runtime.block_on(crate::archive_in(&database));
    poll_without_runtime(async {
        grant(&*store, "bought", "w", 5).await;
        let wallet = transcript_core::ids::WalletId::new("w");
        assert_eq!(store.balance(&wallet, &purchased()).await.unwrap().available(), 5);
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
async fn changed_videos_are_listed_until_deleted() {
    let (archive, _database) = crate::archive().await;
    common::changed::check_changed_videos(&*archive).await;
    let (archive, _unindexed) = crate::archive().await;
    common::changed::check_unindexed_videos(&*archive).await;
}

/// Runs a statement on a separate connection to the database.
async fn run(database: &TestDatabase<'_>, statement: &'static str) {
    sqlx::raw_sql(statement).execute(&mut foreign_connection(database).await).await.unwrap();
}

#[tokio::test]
async fn damaged_transcript_deleted_is_unindexed() {
    let (archive, database) = crate::archive().await;
    common::changed::check_deleted_damage_is_unindexed(&*archive, async |damage| {
        run(&database, damage).await
    })
    .await;
}

#[cfg(feature = "search")]
#[tokio::test]
async fn undecodable_track_is_indexed_for_search() {
    let (index, (archive, database)) = crate::search_index().await;
    common::changed::check_undecodable_track_is_indexed(archive, index, async |damage| {
        run(&database, damage).await;
    })
    .await;
}
