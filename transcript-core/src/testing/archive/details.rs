//! Conformance cases of what is known besides lines of text: times of words, metadata and tracks.

use super::*;
use crate::{
    archive::{CompactRequest, KNOWN_TRACKS_MAX},
    error::ErrorKind,
    page::PageRequest,
    testing::expect_error,
    transcript::{Chapter, LiveStatus, Word},
};

fn with_words(number: u32) -> Transcript {
    let mut transcript = transcript(number, "en", "so, we go");
    transcript.segments[0].words =
        vec![Word::new("so", 10, 200), Word::new("we", 400, 300), Word::new("go", 700, 33)];
    transcript
}

fn metadata() -> VideoMetadata {
    VideoMetadata {
        author_id: Some("UC-x".to_owned()),
        author_url: Some("https://www.youtube.com/channel/UC-x".to_owned()),
        published_at: Some(at(-5)),
        live: Some(LiveStatus::WasLive),
        description: Some("Two\nlines — «quoted».".to_owned()),
        chapters: vec![Chapter { title: "Start".to_owned(), start_ms: 0 }],
        ..VideoMetadata::default()
    }
}

/// Words are returned with their times; the same text with and without them is different content.
pub async fn words_are_returned_with_their_times(store: ArchiveStore) {
    let expected = Arc::new(with_words(1));
    let request = || PutRequest { transcript: Arc::clone(&expected), ..put_request(1, "en", "", &[DEFAULT]) };
    assert_eq!(put(&store, request()).await.transcript, expected, "put returns the words");
    let stored = find_stored(&store, 1, &DEFAULT).await;
    assert_eq!(stored.transcript, expected, "words are returned unchanged");
    assert_eq!(stored.content_sha256, content_digest(&expected), "the digest covers the words");
    let mut bare = (*expected).clone();
    bare.segments.iter_mut().for_each(|segment| segment.words.clear());
    let bare = Arc::new(bare);
    let replaced = PutRequest { transcript: Arc::clone(&bare), replace: true, ..request() };
    assert_eq!(put(&store, replaced).await.revision, 2, "a transcript without words is another revision");
    assert_eq!(find_stored(&store, 1, &DEFAULT).await.transcript, bare, "the newer revision has no words");
    let compacted = CompactRequest { stored_before: at(1_000_000), page: PageRequest::first() };
    put(&store, PutRequest { transcript: Arc::new(with_words(2)), ..put_request(2, "en", "", &[DEFAULT]) })
        .await;
    match store.compact(compacted).await {
        Err(error) => assert_eq!(error.kind(), ErrorKind::Unsupported, "{error}"),
        Ok(_) => assert_eq!(
            *find_stored(&store, 2, &DEFAULT).await.transcript,
            with_words(2),
            "in cold storage too"
        ),
    }
}

/// Metadata is returned with every transcript of the video; a newer value replaces an earlier one, an unknown one does
/// not.
pub async fn metadata_of_video_is_merged(store: ArchiveStore) {
    let request = PutRequest { metadata: metadata(), ..put_request(1, "en", "text", &[DEFAULT]) };
    assert_eq!(put(&store, request).await.details.metadata, metadata(), "put returns the metadata");
    put(&store, put_request(1, "de", "Text", &[selector("de")])).await;
    for selector in [DEFAULT, selector("de")] {
        let details = find_stored(&store, 1, &selector).await.details;
        assert_eq!(details.metadata, metadata(), "unknown metadata leaves the stored one unchanged");
    }
    let before = expect_ok(store.change_counter().await);
    let newer = VideoMetadata { author_id: Some("UC-y".to_owned()), ..VideoMetadata::default() };
    put(&store, PutRequest { metadata: newer, ..put_request(1, "en", "text", &[DEFAULT]) }).await;
    let merged = VideoMetadata { author_id: Some("UC-y".to_owned()), ..metadata() };
    assert_eq!(find_stored(&store, 1, &DEFAULT).await.details.metadata, merged, "known fields are replaced");
    assert!(expect_ok(store.change_counter().await) > before, "cached responses have the earlier metadata");
    let before = expect_ok(store.change_counter().await);
    put(&store, PutRequest { metadata: merged.clone(), ..put_request(1, "en", "text", &[DEFAULT]) }).await;
    assert_eq!(expect_ok(store.change_counter().await), before, "the same metadata is no change");
    expect_ok(store.delete(&video(1)).await);
    put(&store, put_request(1, "en", "text", &[DEFAULT])).await;
    let details = find_stored(&store, 1, &DEFAULT).await.details;
    assert_eq!(details.metadata, VideoMetadata::default(), "a deleted video has no metadata");
}

/// Tracks without transcript are listed beside those of transcripts, unless the archive stores none.
pub async fn tracks_without_transcript_are_merged(store: ArchiveStore) {
    let reported = [track("de"), track("fr")];
    expect_ok(store.add_known_tracks(&video(1), &reported, at(0)).await);
    assert_eq!(find(&store, 1, &selector("de")).await, NotFound, "a known track is no transcript");
    assert_eq!(expect_ok(store.stats().await).videos, 0, "and no archived video");
    let stores_none = tracks(&store, 1).await.is_empty();
    let before = expect_ok(store.change_counter().await);
    put(&store, put_request(1, "en", "text", &[DEFAULT])).await;
    assert_eq!(expect_ok(store.change_counter().await), before, "earlier responses are still valid");
    expect_ok(store.add_known_tracks(&video(1), &[track("fr"), track("it")], at(1)).await);
    let expect: &[&str] = if stores_none { &["en"] } else { &["de", "fr", "en", "it"] };
    assert_eq!(languages(&store, 1).await, expect, "in the order in which they became known");
    let is_changed = expect_ok(store.change_counter().await) > before;
    assert_eq!(is_changed, !stores_none, "responses of an archived video lack the new track");
    let too_many = vec![track("de"); KNOWN_TRACKS_MAX + 1];
    if !stores_none {
        expect_error(
            store.add_known_tracks(&video(2), &too_many, at(1)).await,
            ErrorKind::Invalid,
            "too many",
        );
    }
    expect_ok(store.delete(&video(1)).await);
    assert_eq!(tracks(&store, 1).await, [], "a deleted video has none");
}

/// Every transcript is returned with the tracks that are known at present.
pub async fn details_list_known_tracks(store: ArchiveStore) {
    let known_tracks = vec![track("de"), track("en")];
    let request =
        PutRequest { known_tracks: known_tracks.clone(), ..put_request(1, "en", "text", &[DEFAULT]) };
    assert_eq!(put(&store, request).await.details.tracks, known_tracks, "put returns the known tracks");
    let before = expect_ok(store.change_counter().await);
    put(&store, put_request(1, "fr", "texte", &[selector("fr")])).await;
    let details = find_stored(&store, 1, &DEFAULT).await.details;
    assert_eq!(details.tracks, [track("de"), track("en"), track("fr")], "a later track is listed");
    assert!(expect_ok(store.change_counter().await) > before, "cached responses lack the new track");
    if let Some(body) = expect_ok(store.stored_body(&video(1), &DEFAULT).await) {
        assert_eq!(body.details, details, "a stored body has the same details");
        assert_eq!(
            body.header,
            transcript(1, "en", "text").without_segments(),
            "and the transcript's header"
        );
    }
}
