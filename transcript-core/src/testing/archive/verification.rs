//! Conformance case of verification: nothing sound is reported or deleted.

use super::*;
use crate::{
    archive::{CompactRequest, VerifyArchiveRequest},
    page::PageRequest,
};

/// Verifies the whole archive in pages of `limit`; returns the number of checked transcripts.
async fn verify(store: &ArchiveStore, limit: u32, delete_damaged: bool) -> u64 {
    let (mut scanned, mut after) = (0, None);
    for _ in 0..10_000 {
        let page = PageRequest { after, limit };
        let outcome = expect_ok(store.verify(VerifyArchiveRequest { page, delete_damaged }).await);
        assert!(outcome.scanned <= u64::from(limit), "no more are scanned than requested");
        assert_eq!(outcome.damaged, [], "sound transcripts are not reported as damaged");
        scanned += outcome.scanned;
        after = outcome.next;
        if after.is_none() {
            return scanned;
        }
    }
    panic!("verification terminates");
}

/// A sound archive has no damaged transcripts, in any form, and stays unchanged.
pub async fn verification_of_sound_archive_changes_nothing(store: ArchiveStore) {
    assert_eq!(verify(&store, 10, true).await, 0, "an empty archive has no transcripts");
    for number in 1..=5 {
        let selectors = [TrackSelector::Default, selector("en")];
        expect_ok(store.put(put_request(number, "en", &format!("text {number}"), &selectors)).await);
    }
    let page = PageRequest::first();
    expect_ok(store.compact(CompactRequest { stored_before: at(1_000), page }).await);
    for number in 6..=9 {
        expect_ok(store.put(put_request(number, "de", "wörtlich", &[TrackSelector::Default])).await);
    }
    expect_ok(store.put_absence(absence(10, TrackSelector::Default, 100)).await);
    expect_ok(store.withdraw(&video(3), true, at(1)).await);
    let before = (expect_ok(store.stats().await), expect_ok(store.change_counter().await));
    for (limit, delete_damaged) in [(1, false), (2, true), (1_000, true)] {
        assert_eq!(verify(&store, limit, delete_damaged).await, 9, "every transcript is checked once");
    }
    let after = (expect_ok(store.stats().await), expect_ok(store.change_counter().await));
    assert_eq!(after, before, "verification changes nothing");
    expect_ok(store.withdraw(&video(3), false, at(2)).await);
    for number in 1..=5 {
        let (text, _) = first_text(&store, number, &TrackSelector::Default).await;
        assert_eq!(text, format!("text {number}"), "the transcript is still found");
    }
}
