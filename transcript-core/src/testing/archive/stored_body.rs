//! Conformance cases of stored bodies.
//!
//! A store without lazy transcripts passes by returning `None` each time.

use super::*;
use crate::{
    archive::StoredBody,
    body::{segments, zstd_frame::ZstdFrame},
    testing::call_concurrently,
};

/// Stored body of a lazy transcript, if the store has one; it must load as the found transcript.
async fn body(store: &ArchiveStore, number: u32, selector: &TrackSelector) -> Option<StoredBody> {
    let sent = expect_ok(store.stored_body(&video(number), selector).await);
    let lazy = expect_ok(store.find_lazy(&video(number), selector).await);
    let body = lazy.as_ref().map(|lazy| expect_ok(lazy.body()));
    assert_eq!(sent, body, "the stored body is that of the lazy transcript");
    let lazy = lazy?;
    let FindOutcome::Transcript(stored) = expect_ok(store.find(&video(number), selector, at(0)).await) else {
        panic!("a missing transcript has no lazy transcript");
    };
    assert_eq!(lazy.revision(), stored.revision, "the lazy transcript has the found revision");
    assert_eq!(
        lazy.change_counter(),
        expect_ok(store.change_counter().await),
        "the lazy transcript has the current change counter"
    );
    assert!(lazy.memory_bytes() > 0, "the lazy transcript uses memory");
    assert_eq!(
        expect_ok(lazy.track_kind()),
        stored.transcript.track.kind,
        "the lazy transcript has the kind of the found transcript"
    );
    assert!(expect_ok(lazy.load()) == stored, "the lazy transcript loads as the found transcript");
    body
}

/// A stored body, if there is one, must match the found transcript.
async fn check(store: &ArchiveStore, number: u32, selector: &TrackSelector) -> Option<StoredBody> {
    let stored = find_stored(store, number, selector).await;
    let body = body(store, number, selector).await?;
    assert_eq!(body.content_sha256, stored.content_sha256, "a body belongs to the found transcript");
    assert_eq!(body.source, stored.transcript.source, "a body has the supplier of its transcript");
    let frame = ZstdFrame::read(&body.segments).expect("a body is one zstd frame that can be extended");
    assert!(
        frame.length().is_none_or(|length| length == body.length),
        "a frame states the length of its content"
    );
    let capacity = usize::try_from(body.length).expect("a body fits into memory");
    let json = zstd::bulk::decompress(&body.segments, capacity).expect("a body decompresses");
    assert_eq!(json.len(), capacity, "a body has the stated length");
    assert!(
        json == expect_ok(segments::write(&stored.transcript.segments)),
        "a body contains the segments as sent"
    );
    Some(body)
}

/// A stored transcript has a stored body for each of its selectors.
pub async fn stored_body_matches_found_transcript(store: ArchiveStore) {
    let selectors = [DEFAULT, selector("en")];
    put(&store, put_request(1, "en", "Hello, «World» \u{1F980}\0.", &selectors)).await;
    let first = check(&store, 1, &DEFAULT).await;
    assert_eq!(check(&store, 1, &selector("en")).await, first, "every selector has the same body");
    let segments = (0..20_000).map(|n| Segment::new(format!("segment {n} ü"), n * 500, 499)).collect();
    let long = Transcript { segments, ..transcript(2, "en", "") };
    put(&store, PutRequest { transcript: Arc::new(long), ..put_request(2, "en", "", &[DEFAULT]) }).await;
    let long = check(&store, 2, &DEFAULT).await;
    assert!(first.is_none_or(|first| long.is_some_and(|long| long.checksum != first.checksum)));
}

/// Concurrent reads return the body of the requested video.
pub async fn concurrent_body_reads_return_own_video(store: ArchiveStore) {
    for number in 1..=40 {
        put(&store, put_request(number, "en", &format!("text {number}"), &[DEFAULT])).await;
    }
    call_concurrently(&store, 0..80, |store, number| async move {
        if (1..=40).contains(&number) {
            check(&store, number, &DEFAULT).await;
        } else {
            assert_eq!(body(&store, number, &DEFAULT).await, None, "video {number} is unknown");
        }
    })
    .await;
}

/// A transcript that is not found has no body: unknown, absent, withdrawn or deleted.
pub async fn missing_transcript_has_no_stored_body(store: ArchiveStore) {
    assert_eq!(body(&store, 1, &DEFAULT).await, None, "an unknown video has no body");
    expect_ok(store.put_absence(absence(1, DEFAULT, 100)).await);
    assert_eq!(body(&store, 1, &DEFAULT).await, None, "an absence has no body");
    put(&store, put_request(1, "en", "here", &[selector("en")])).await;
    assert_eq!(body(&store, 1, &DEFAULT).await, None, "another selector's body is not returned");
    let before = check(&store, 1, &selector("en")).await;
    expect_ok(store.withdraw(&video(1), true, at(1)).await);
    assert_eq!(body(&store, 1, &selector("en")).await, None, "a withdrawn video has no body");
    expect_ok(store.withdraw(&video(1), false, at(2)).await);
    assert_eq!(check(&store, 1, &selector("en")).await, before, "a restored video has its body again");
    expect_ok(store.delete(&video(1)).await);
    assert_eq!(body(&store, 1, &selector("en")).await, None, "a deleted video has no body");
}

/// A refresh replaces the body together with the transcript.
pub async fn refreshed_transcript_has_new_stored_body(store: ArchiveStore) {
    put(&store, put_request(1, "en", "first", &[DEFAULT])).await;
    let first = check(&store, 1, &DEFAULT).await;
    put(&store, refresh_request(1, "en", "second", &[DEFAULT])).await;
    let second = check(&store, 1, &DEFAULT).await;
    let is_new = |second: StoredBody| first.is_some_and(|first| first.checksum != second.checksum);
    assert!(second.is_none_or(is_new), "other content has another checksum");
    expect_ok(store.delete(&video(1)).await);
    put(&store, put_request(1, "en", "third", &[DEFAULT])).await;
    check(&store, 1, &DEFAULT).await;
}
