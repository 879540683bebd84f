//! Conformance cases of `put`: the first transcript stays, refreshes add revisions.

use super::*;
use crate::{
    error::ErrorKind,
    testing::{call_concurrently, expect_error},
};

/// Without `replace` the first transcript stays and is returned.
pub async fn put_without_replace_keeps_first_transcript(store: ArchiveStore) {
    let first = put(&store, put_request(1, "en", "first", &[DEFAULT])).await;
    let second = PutRequest { now: at(5), parser_version: 8, ..put_request(1, "en", "second", &[DEFAULT]) };
    let returned = put(&store, second).await;
    assert_eq!(returned, first, "the first transcript stays and is returned");
    assert_eq!(find_stored(&store, 1, &DEFAULT).await, first, "the first transcript stays");
    assert_eq!(expect_ok(store.stats().await).transcripts, 1, "the second is not stored");
}

/// One transcript is stored once for all its selectors.
pub async fn put_for_several_selectors_stores_once(store: ArchiveStore) {
    let selectors = [selector("en"), DEFAULT, selector("en-US"), selector("en")];
    let returned = put(&store, put_request(1, "en", "text", &selectors)).await;
    for selector in &selectors {
        assert_eq!(
            find_stored(&store, 1, selector).await,
            returned,
            "every selector has the same transcript"
        );
    }
    assert_eq!(expect_ok(store.stats().await).transcripts, 1, "a transcript is stored once");
}

/// Selectors without a transcript get the new one; the others keep theirs.
pub async fn put_fills_selectors_without_transcript(store: ArchiveStore) {
    put(&store, put_request(1, "en", "first", &[DEFAULT])).await;
    let returned = put(&store, put_request(1, "en", "second", &[DEFAULT, selector("en")])).await;
    assert_eq!(
        returned.transcript.segments[0].text, "first",
        "the transcript of the first selector is returned"
    );
    assert_eq!(first_text(&store, 1, &DEFAULT).await, ("first".to_owned(), 1), "the first transcript stays");
    assert_eq!(
        first_text(&store, 1, &selector("en")).await,
        ("second".to_owned(), 1),
        "the other selector gets the new one"
    );
    let returned = put(&store, put_request(1, "en", "third", &[selector("en"), DEFAULT])).await;
    assert_eq!(returned.transcript.segments[0].text, "second", "the order of the selectors decides");
    assert_eq!(expect_ok(store.stats().await).transcripts, 2);
}

/// A selector gets the stored transcript with the same content, not a second copy.
pub async fn same_content_is_stored_once(store: ArchiveStore) {
    let first = put(&store, put_request(1, "en", "text", &[DEFAULT])).await;
    let again = PutRequest { now: at(5), ..put_request(1, "en", "text", &[selector("en")]) };
    assert_eq!(put(&store, again).await, first, "the stored transcript serves the new selector");
    let replacing = refresh_request(1, "en", "text", &[selector("en-US"), selector("en")]);
    assert_eq!(put(&store, replacing).await, first, "also in a refresh without changes");
    assert_eq!(expect_ok(store.stats().await).transcripts, 1, "a transcript is stored once");
    put(&store, put_request(2, "en", "text", &[DEFAULT])).await;
    assert_eq!(expect_ok(store.stats().await).transcripts, 2, "another video has its own");
}

/// A refresh with other content is a new revision, and the earlier one stays stored.
pub async fn refresh_adds_revision(store: ArchiveStore) {
    put(&store, put_request(1, "en", "first", &[DEFAULT, selector("en")])).await;
    let request =
        PutRequest { parser_version: 8, ..refresh_request(1, "en", "second", &[DEFAULT, selector("en")]) };
    let returned = put(&store, request).await;
    assert_eq!((returned.revision, returned.stored_at), (2, at(100)), "a refresh is the next revision");
    assert_eq!(returned.parser_version, 8, "with its own parser version");
    assert_eq!(returned.content_sha256, content_digest(&transcript(1, "en", "second")));
    for selector in [DEFAULT, selector("en")] {
        assert_eq!(find_stored(&store, 1, &selector).await, returned, "the newest revision is found");
    }
    let stats = expect_ok(store.stats().await);
    assert_eq!((stats.videos, stats.transcripts), (1, 2), "earlier revisions are never deleted");
    let returned = put(&store, refresh_request(2, "en", "new", &[DEFAULT])).await;
    assert_eq!(returned.revision, 1, "a refresh of an unknown video is the first revision");
}

/// The revision of a refresh is one above the highest of its selectors.
pub async fn refresh_exceeds_highest_revision_of_selectors(store: ArchiveStore) {
    put(&store, put_request(1, "en", "a", &[DEFAULT])).await;
    for text in ["b", "c"] {
        put(&store, refresh_request(1, "en", text, &[selector("en")])).await;
    }
    assert_eq!(
        first_text(&store, 1, &selector("en")).await,
        ("c".to_owned(), 2),
        "each selector counts its own revisions"
    );
    let selectors = [DEFAULT, selector("de"), selector("en")];
    let returned = put(&store, refresh_request(1, "en", "d", &selectors)).await;
    assert_eq!(returned.revision, 3, "one above the highest of its selectors");
    for selector in &selectors {
        assert_eq!(
            first_text(&store, 1, selector).await,
            ("d".to_owned(), 3),
            "every selector gets the new one"
        );
    }
    put(&store, put_request(1, "fr", "x", &[selector("fr")])).await;
    let returned = put(&store, refresh_request(1, "en", "a", &[DEFAULT, selector("fr")])).await;
    assert_eq!(returned.revision, 4, "a difference in one selector replaces all");
    assert_eq!(first_text(&store, 1, &selector("fr")).await, ("a".to_owned(), 4));
    assert_eq!(
        first_text(&store, 1, &selector("en")).await,
        ("d".to_owned(), 3),
        "other selectors keep theirs"
    );
}

/// A refresh with unchanged content keeps the stored transcript and its time.
pub async fn refresh_unchanged_adds_no_revision(store: ArchiveStore) {
    let first = put(&store, put_request(1, "en", "text", &[DEFAULT, selector("en")])).await;
    let request = PutRequest { parser_version: 9, ..refresh_request(1, "en", "text", &[DEFAULT]) };
    assert_eq!(put(&store, request).await, first, "unchanged content stays as it is");
    let mut retitled = refresh_request(1, "en", "text", &[DEFAULT]);
    Arc::make_mut(&mut retitled.transcript).title = None;
    let returned = put(&store, retitled).await;
    assert_eq!(returned.revision, 2, "the title is part of the content");
    assert_eq!(
        find_stored(&store, 1, &selector("en")).await,
        first,
        "a selector that was not refreshed keeps its own"
    );
}

/// Content that returns after a change is a new revision.
pub async fn returning_content_is_new_revision(store: ArchiveStore) {
    put(&store, put_request(1, "en", "a", &[DEFAULT])).await;
    put(&store, refresh_request(1, "en", "b", &[DEFAULT])).await;
    let returned = put(&store, refresh_request(1, "en", "a", &[DEFAULT])).await;
    assert_eq!(returned.revision, 3, "revisions continue");
    assert_eq!(first_text(&store, 1, &DEFAULT).await, ("a".to_owned(), 3));
    let linked = put(&store, put_request(1, "en", "a", &[selector("en")])).await;
    assert_eq!(linked.revision, 3, "a selector gets the newest transcript with the same content");
}

/// A request outside the bounds is invalid and stores nothing.
pub async fn put_out_of_bounds_stores_nothing(store: ArchiveStore) {
    let mut empty = put_request(1, "en", "text", &[DEFAULT]);
    Arc::make_mut(&mut empty.transcript).segments.clear();
    let mut other = put_request(1, "en", "text", &[DEFAULT]);
    Arc::make_mut(&mut other.transcript).video = video(2);
    for (what, wrong) in
        [("no selector", put_request(1, "en", "text", &[])), ("no segment", empty), ("another video", other)]
    {
        expect_error(store.put(wrong.clone()).await, ErrorKind::Invalid, what);
        expect_error(store.put(PutRequest { replace: true, ..wrong }).await, ErrorKind::Invalid, what);
    }
    for number in [1, 2] {
        assert_eq!(tracks(&store, number).await, [], "an invalid request stores no track");
    }
    assert_eq!(expect_ok(store.stats().await).transcripts, 0, "an invalid request stores nothing");
}

/// Of concurrent puts the first stays, and every call returns it.
pub async fn concurrent_puts_store_one(store: ArchiveStore) {
    let returned = call_concurrently(&store, 0..12, |store, n| async move {
        let request = put_request(1, "en", &format!("text {n}"), &[DEFAULT, selector("en")]);
        put(&store, request).await
    })
    .await;
    let stored = find_stored(&store, 1, &DEFAULT).await;
    assert!(returned.iter().all(|one| *one == stored), "all calls return the transcript that stayed");
    assert_eq!(find_stored(&store, 1, &selector("en")).await, stored, "for every selector");
    assert_eq!(expect_ok(store.stats().await).transcripts, 1, "one is stored");
}

/// Concurrent refreshes become consecutive revisions.
pub async fn concurrent_refreshes_lose_no_revision(store: ArchiveStore) {
    let returned = call_concurrently(&store, 0..10, |store, n| async move {
        let request = refresh_request(1, "en", &format!("text {n}"), &[DEFAULT]);
        put(&store, request).await.revision
    })
    .await;
    let mut revisions = returned.clone();
    revisions.sort_unstable();
    assert_eq!(revisions, (1..=10).collect::<Vec<_>>(), "every refresh is a separate revision");
    let stored = find_stored(&store, 1, &DEFAULT).await;
    assert_eq!(stored.revision, 10, "the newest revision is found");
    let last = returned.iter().position(|revision| *revision == 10).expect("there is a last one");
    let expect = format!("text {last}");
    assert_eq!(stored.transcript.segments[0].text, expect, "the newest revision is what its call stored");
}
