//! Several stores on one database, and callers who go away.

use transcript_core::{
    archive::{Archive, Found, Wish},
    ledger::Ledger,
};

use crate::common::{self, grant, moment, poll_alone, purchased};

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn two_stores_drain_a_wallet_to_exactly_nothing() {
    let (one, database) = crate::store().await;
    common::drain(one, crate::store_in(&database).await).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn callers_who_go_away_leave_nothing_half_done() {
    let (store, database) = crate::store().await;
    common::go_away(store, async || crate::store_in(&database).await as _).await;
}

#[tokio::test]
async fn store_and_archive_have_the_time_of_their_database() {
    let (store, database) = crate::store().await;
    let archive = crate::archive_in(&database).await;
    let (before, between, after) =
        (store.now().await.unwrap(), archive.now().await.unwrap(), store.now().await.unwrap());
    assert!(before <= between && between <= after);
}

#[tokio::test]
async fn any_text_is_kept_letter_by_letter() {
    let (store, _database) = crate::store().await;
    common::keep_texts(&*store).await;
}

#[test]
fn any_executor_may_poll() {
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(1).enable_all().build().unwrap();
    let database = crate::database();
    let store = runtime.block_on(crate::store_in(&database));
    let archive = runtime.block_on(crate::archive_in(&database));
    poll_alone(async {
        grant(&*store, "bought", "w", 5).await;
        let wallet = transcript_core::ids::WalletId::new("w");
        assert_eq!(store.balance(&wallet, &purchased()).await.unwrap().available(), 5);
        let kept = archive.keep(common::keep("aaaaaaaaaaa", "words")).await.unwrap();
        let found = archive.find(&kept.transcript.video, &Wish::Default, moment(0)).await.unwrap();
        let body = archive.body(&kept.transcript.video, &Wish::Default).await.unwrap().unwrap();
        assert_eq!(body.content_sha256, kept.content_sha256);
        assert_eq!(found, Found::Transcript(kept));
    });
}
