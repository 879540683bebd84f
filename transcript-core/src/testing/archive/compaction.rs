//! Conformance cases of compaction: it changes no result. A store without cold storage passes.

use super::*;
use crate::{
    archive::{CompactOutcome, CompactRequest, StoredBody},
    page::PageRequest,
    testing::run_concurrently,
};

/// Compacts everything stored before a time, in pages of `limit`.
async fn compact(store: &ArchiveStore, before: i64, limit: u32) -> CompactOutcome {
    let mut all = CompactOutcome::default();
    let mut after = None;
    for _ in 0..10_000 {
        let page = PageRequest { after, limit };
        let page_outcome = expect_ok(store.compact(CompactRequest { stored_before: at(before), page }).await);
        assert!(page_outcome.scanned <= u64::from(limit), "no more are scanned than requested");
        assert!(page_outcome.compacted <= page_outcome.scanned, "compacted transcripts were scanned");
        assert!(page_outcome.bytes_after <= page_outcome.bytes_before, "the compact form is no larger");
        all.scanned += page_outcome.scanned;
        all.compacted += page_outcome.compacted;
        all.bytes_before += page_outcome.bytes_before;
        all.bytes_after += page_outcome.bytes_after;
        all.damaged.extend(page_outcome.damaged);
        after = page_outcome.next;
        if after.is_none() {
            assert_eq!(all.damaged, [], "sound transcripts are not reported as damaged");
            return all;
        }
    }
    panic!("compaction terminates");
}

/// All results for some videos.
async fn all_results(
    store: &ArchiveStore,
    numbers: std::ops::Range<u32>,
) -> Vec<(FindOutcome, Option<StoredBody>, Vec<ArchivedTrack>)> {
    let mut all = Vec::new();
    for number in numbers {
        for selector in [DEFAULT, selector("en"), selector("de")] {
            let body = body(store, number, &selector).await;
            all.push((find(store, number, &selector).await, body, tracks(store, number).await));
        }
    }
    all
}

/// Everything found and sent is the same after compaction.
pub async fn compaction_changes_no_result(store: ArchiveStore) {
    let segment = |n: u64| Segment::new(format!("and then we said it {n} times"), n * 1_500, 2_999);
    put(&store, put_request(1, "en", "Hello, «World» \u{1F980}\0\u{1A}.", &[DEFAULT, selector("en")])).await;
    let long = Transcript { segments: (0..20_000).map(segment).collect(), ..transcript(2, "en", "") };
    let long = PutRequest { transcript: Arc::new(long), ..put_request(2, "en", "", &[DEFAULT]) };
    put(&store, long).await;
    put(&store, put_request(3, "de", "eins", &[DEFAULT, selector("de")])).await;
    put(&store, refresh_request(3, "de", "zwei", &[DEFAULT])).await;
    put(&store, put_request(4, "en", "taken down", &[DEFAULT])).await;
    expect_ok(store.withdraw(&video(4), true, at(1)).await);
    expect_ok(store.put_absence(absence(5, DEFAULT, 100)).await);
    let bare = Transcript { title: None, author: None, duration_ms: None, ..transcript(6, "en", "bare") };
    let bare = PutRequest { transcript: Arc::new(bare), ..put_request(6, "en", "", &[DEFAULT]) };
    put(&store, bare).await;
    let (before, changes) = (all_results(&store, 1..8).await, expect_ok(store.change_counter().await));
    let stats_before = expect_ok(store.stats().await);

    let compacted = compact(&store, 1_000, 2).await;
    assert_eq!(all_results(&store, 1..8).await, before, "every result is unchanged");
    assert_eq!(expect_ok(store.change_counter().await), changes, "the change counter is unchanged");
    let after = expect_ok(store.stats().await);
    assert_eq!(after.compact, compacted.compacted, "the statistics count compact transcripts");
    let bytes = stats_before.bytes - compacted.bytes_before + compacted.bytes_after;
    assert_eq!(
        after,
        ArchiveStats { compact: after.compact, bytes, ..stats_before },
        "all other statistics are unchanged"
    );

    expect_ok(store.withdraw(&video(4), false, at(2)).await);
    assert_eq!(first_text(&store, 4, &DEFAULT).await.0, "taken down", "a restored video is found");
    expect_ok(store.delete(&video(2)).await);
    assert_eq!(find(&store, 2, &DEFAULT).await, NotFound, "a deleted video is not found");
    assert_eq!(body(&store, 2, &DEFAULT).await, None, "a deleted video has no stored body");
    let after_delete = expect_ok(store.stats().await);
    assert_eq!(after_delete.transcripts, stats_before.transcripts - 1, "a deleted video is not counted");
    assert!(
        after_delete.compact <= after.compact && after_delete.bytes < after.bytes,
        "a deleted video takes no space"
    );
}

/// Only transcripts stored before the given time are compacted, each once.
pub async fn compaction_compacts_old_transcripts_once(store: ArchiveStore) {
    for number in 1..=12 {
        put(&store, put_request(number, "en", &format!("old {number}"), &[DEFAULT])).await;
        put(&store, PutRequest { now: at(50), ..put_request(number, "de", "new", &[selector("de")]) }).await;
    }
    assert_eq!(compact(&store, 0, 5).await.compacted, 0, "nothing was stored before time 0");
    let old = compact(&store, 50, 5).await.compacted;
    assert!(
        old == 12 || old == 0,
        "all old transcripts are compacted, or the store has no compact form: {old}"
    );
    assert_eq!(compact(&store, 50, 1_000).await.compacted, 0, "compact transcripts are not compacted again");
    let new = compact(&store, 51, 7).await.compacted;
    assert_eq!(new, old, "transcripts that became old are compacted");
    assert_eq!(expect_ok(store.stats().await).compact, old + new, "compact transcripts are counted");
}

/// A refresh of a compact transcript is stored and found like any other.
pub async fn compact_transcript_can_be_refreshed(store: ArchiveStore) {
    put(&store, put_request(1, "en", "first", &[DEFAULT, selector("en")])).await;
    compact(&store, 1_000, 100).await;
    let returned = put(&store, put_request(1, "en", "another", &[DEFAULT])).await;
    assert_eq!(returned.transcript.segments[0].text, "first", "the first transcript stays");
    let same = put(&store, refresh_request(1, "en", "first", &[DEFAULT])).await;
    assert_eq!((same.revision, same.stored_at), (1, at(0)), "unchanged content adds no revision");
    put(&store, refresh_request(1, "en", "second", &[DEFAULT])).await;
    assert_eq!(first_text(&store, 1, &DEFAULT).await, ("second".to_owned(), 2), "the refresh is found");
    assert_eq!(
        first_text(&store, 1, &selector("en")).await,
        ("first".to_owned(), 1),
        "the other selector keeps its transcript"
    );
    let selectors = [selector("de")];
    let joined = put(
        &store,
        PutRequest { selectors: selectors.to_vec(), ..put_request(1, "en", "first", &selectors) },
    )
    .await;
    assert_eq!(joined.revision, 1, "the same content is stored once, compact or not");
    expect_ok(store.delete(&video(1)).await);
    put(&store, put_request(1, "en", "third", &[DEFAULT])).await;
    assert_eq!(first_text(&store, 1, &DEFAULT).await, ("third".to_owned(), 1), "revisions start at 1 again");
    compact(&store, 1_000, 100).await;
    assert_eq!(first_text(&store, 1, &DEFAULT).await, ("third".to_owned(), 1));
}

/// Concurrent compaction loses no put, refresh, delete or lookup: the latest transcript is found.
pub async fn concurrent_compaction_loses_nothing(store: ArchiveStore) {
    for number in 1..=60 {
        put(&store, put_request(number, "en", &format!("text {number}"), &[DEFAULT])).await;
    }
    let compacting = (0..2_u32).map(|_| {
        let store = Arc::clone(&store);
        let work: std::pin::Pin<Box<dyn Future<Output = ()> + Send>> = Box::pin(async move {
            for _ in 0..3 {
                compact(&store, 1_000, 7).await;
            }
        });
        work
    });
    let others = (1..=60_u32).map(|number| {
        let store = Arc::clone(&store);
        let work: std::pin::Pin<Box<dyn Future<Output = ()> + Send>> = Box::pin(async move {
            let mut expect = format!("text {number}");
            if number % 3 == 0 {
                expect_ok(store.delete(&video(number)).await);
                put(&store, put_request(number, "en", &expect, &[DEFAULT])).await;
            }
            if number % 2 == 0 {
                expect = format!("refreshed {number}");
                put(&store, refresh_request(number, "en", &expect, &[DEFAULT])).await;
            }
            if number % 5 == 0 {
                expect_ok(store.put(refresh_request(number, "en", &expect, &[TrackSelector::Default])).await);
            }
            for _ in 0..5 {
                assert_eq!(
                    first_text(&store, number, &DEFAULT).await.0,
                    expect,
                    "the latest transcript is found"
                );
                body(&store, number, &DEFAULT).await;
            }
        });
        work
    });
    run_concurrently(compacting.chain(others)).await;
    compact(&store, 1_000, 1_000).await;
    for number in 1..=60 {
        let expect = if number % 2 == 0 { format!("refreshed {number}") } else { format!("text {number}") };
        assert_eq!(
            first_text(&store, number, &DEFAULT).await.0,
            expect,
            "the latest transcript is still found"
        );
    }
}
