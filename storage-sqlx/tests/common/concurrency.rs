//! Several stores on one database, cancelled callers, and callers without a runtime.

use transcript_core::{
    archive::{Archive, FindOutcome, TrackSelector},
    ids::WalletId,
    ledger::Ledger,
};

use super::{
    check_cancelled_callers, check_names_stored, check_texts_stored, drain_wallet, grant,
    poll_without_runtime, purchased, put_request, timestamp,
};

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn ledger_two_stores_drain_wallet_to_zero() {
    let (one, place) = crate::store().await;
    drain_wallet(one, crate::store_in(&place).await).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn ledger_cancelled_callers_leave_no_partial_write() {
    let (store, place) = crate::store().await;
    check_cancelled_callers(store, async || crate::store_in(&place).await as _).await;
}

#[test]
fn store_futures_complete_without_runtime() {
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(1).enable_all().build().unwrap();
    let (store, place) = runtime.block_on(crate::store());
    let archive = runtime.block_on(crate::archive_in(&place));
    poll_without_runtime(async {
        grant(&*store, "bought", "w", 5).await;
        assert_eq!(store.balance(&WalletId::new("w"), &purchased()).await.unwrap().available(), 5);
        let kept = archive.put(put_request("aaaaaaaaaaa", "words")).await.unwrap();
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
    let (store, _place) = crate::store().await;
    check_texts_stored(&*store).await;
}

#[tokio::test]
async fn store_special_characters_are_stored_unchanged() {
    let (store, _place) = crate::store().await;
    check_names_stored(&*store).await;
}
