//! Keeping: the first stays, refreshes add revisions.

use super::*;
use crate::{
    error::ErrorKind,
    testing::{refused, together},
};

/// Without `replace` the first transcript stays and is returned.
pub async fn the_first_transcript_stays(store: Store) {
    let first = done(store.keep(keep(1, "en", "first", &[Wish::Default])).await);
    let second = Keep { now: at(5), parser_version: 8, ..keep(1, "en", "second", &[Wish::Default]) };
    let returned = done(store.keep(second).await);
    assert_eq!(returned, first, "the first one stays and is returned");
    assert_eq!(found(&store, 1, &Wish::Default).await, first, "the first one stays");
    assert_eq!(done(store.stats().await).transcripts, 1, "the second is not stored");
}

/// One transcript is stored once for all wishes that it answers.
pub async fn one_transcript_answers_several_wishes(store: Store) {
    let wishes = [wish("en"), Wish::Default, wish("en-US"), wish("en")];
    let returned = done(store.keep(keep(1, "en", "text", &wishes)).await);
    for wish in &wishes {
        assert_eq!(found(&store, 1, wish).await, returned, "every wish is answered by the same transcript");
    }
    assert_eq!(done(store.stats().await).transcripts, 1, "a transcript is stored once");
}

/// Wishes that lack a transcript get the new one; the others keep theirs.
pub async fn wishes_that_lack_a_transcript_get_the_new_one(store: Store) {
    done(store.keep(keep(1, "en", "first", &[Wish::Default])).await);
    let returned = done(store.keep(keep(1, "en", "second", &[Wish::Default, wish("en")])).await);
    assert_eq!(returned.transcript.segments[0].text, "first", "what the first wish has now is returned");
    assert_eq!(text(&store, 1, &Wish::Default).await, ("first".to_owned(), 1), "the first one stays");
    assert_eq!(text(&store, 1, &wish("en")).await, ("second".to_owned(), 1), "the other gets the new one");
    let returned = done(store.keep(keep(1, "en", "third", &[wish("en"), Wish::Default])).await);
    assert_eq!(returned.transcript.segments[0].text, "second", "the order of the wishes decides");
    assert_eq!(done(store.stats().await).transcripts, 2);
}

/// A wish gets the stored transcript with the same content rather than a second copy.
pub async fn the_same_content_is_stored_once(store: Store) {
    let first = done(store.keep(keep(1, "en", "text", &[Wish::Default])).await);
    let again = Keep { now: at(5), ..keep(1, "en", "text", &[wish("en")]) };
    assert_eq!(done(store.keep(again).await), first, "the stored one answers the new wish");
    let replacing = refresh(1, "en", "text", &[wish("en-US"), wish("en")]);
    assert_eq!(done(store.keep(replacing).await), first, "also in a refresh that changes nothing");
    assert_eq!(done(store.stats().await).transcripts, 1, "a transcript is stored once");
    done(store.keep(keep(2, "en", "text", &[Wish::Default])).await);
    assert_eq!(done(store.stats().await).transcripts, 2, "another video has its own");
}

/// A refresh with other content is a new revision, and the earlier one stays stored.
pub async fn replacing_adds_a_revision(store: Store) {
    done(store.keep(keep(1, "en", "first", &[Wish::Default, wish("en")])).await);
    let ask = Keep { parser_version: 8, ..refresh(1, "en", "second", &[Wish::Default, wish("en")]) };
    let returned = done(store.keep(ask).await);
    assert_eq!((returned.revision, returned.stored_at), (2, at(100)), "a refresh is the next revision");
    assert_eq!(returned.parser_version, 8, "with its own parser");
    assert_eq!(returned.content_sha256, content_digest(&transcript(1, "en", "second")));
    for wish in [Wish::Default, wish("en")] {
        assert_eq!(found(&store, 1, &wish).await, returned, "the newest revision is found");
    }
    let stats = done(store.stats().await);
    assert_eq!((stats.videos, stats.transcripts), (1, 2), "earlier revisions are never deleted");
    let returned = done(store.keep(refresh(2, "en", "new", &[Wish::Default])).await);
    assert_eq!(returned.revision, 1, "a refresh of what was never stored is the first revision");
}

/// The revision of a refresh is one above the highest that any of its wishes had.
pub async fn replacing_several_goes_beyond_the_highest_revision(store: Store) {
    done(store.keep(keep(1, "en", "a", &[Wish::Default])).await);
    for text in ["b", "c"] {
        done(store.keep(refresh(1, "en", text, &[wish("en")])).await);
    }
    assert_eq!(text(&store, 1, &wish("en")).await, ("c".to_owned(), 2), "each wish counts for itself");
    let wishes = [Wish::Default, wish("de"), wish("en")];
    let returned = done(store.keep(refresh(1, "en", "d", &wishes)).await);
    assert_eq!(returned.revision, 3, "one above the highest of its wishes");
    for wish in &wishes {
        assert_eq!(text(&store, 1, wish).await, ("d".to_owned(), 3), "every wish gets the new one");
    }
    done(store.keep(keep(1, "fr", "x", &[wish("fr")])).await);
    let returned = done(store.keep(refresh(1, "en", "a", &[Wish::Default, wish("fr")])).await);
    assert_eq!(returned.revision, 4, "what differs in one of the wishes is replaced in all");
    assert_eq!(text(&store, 1, &wish("fr")).await, ("a".to_owned(), 4));
    assert_eq!(text(&store, 1, &wish("en")).await, ("d".to_owned(), 3), "other wishes keep theirs");
}

/// A refresh with unchanged content leaves the stored one, whose moment stays.
pub async fn unchanged_content_adds_no_revision(store: Store) {
    let first = done(store.keep(keep(1, "en", "text", &[Wish::Default, wish("en")])).await);
    let ask = Keep { parser_version: 9, ..refresh(1, "en", "text", &[Wish::Default]) };
    assert_eq!(done(store.keep(ask).await), first, "unchanged content stays as it is");
    let mut retitled = refresh(1, "en", "text", &[Wish::Default]);
    Arc::make_mut(&mut retitled.transcript).title = None;
    let returned = done(store.keep(retitled).await);
    assert_eq!(returned.revision, 2, "the title is part of the content");
    assert_eq!(found(&store, 1, &wish("en")).await, first, "a wish that was not refreshed keeps its own");
}

/// Content that was stored before, but is no longer what the wish has, is a new revision.
pub async fn content_that_returns_is_a_new_revision(store: Store) {
    done(store.keep(keep(1, "en", "a", &[Wish::Default])).await);
    done(store.keep(refresh(1, "en", "b", &[Wish::Default])).await);
    let returned = done(store.keep(refresh(1, "en", "a", &[Wish::Default])).await);
    assert_eq!(returned.revision, 3, "revisions count on");
    assert_eq!(text(&store, 1, &Wish::Default).await, ("a".to_owned(), 3));
    let linked = done(store.keep(keep(1, "en", "a", &[wish("en")])).await);
    assert_eq!(linked.revision, 3, "of stored ones with the same content a wish gets the newest");
}

/// A request outside its bounds is invalid and stores nothing.
pub async fn keeping_out_of_bounds_stores_nothing(store: Store) {
    let mut empty = keep(1, "en", "text", &[Wish::Default]);
    Arc::make_mut(&mut empty.transcript).segments.clear();
    let mut other = keep(1, "en", "text", &[Wish::Default]);
    Arc::make_mut(&mut other.transcript).video = video(2);
    for (what, wrong) in
        [("no wish", keep(1, "en", "text", &[])), ("no segment", empty), ("another video", other)]
    {
        refused(store.keep(wrong.clone()).await, ErrorKind::Invalid, what);
        refused(store.keep(Keep { replace: true, ..wrong }).await, ErrorKind::Invalid, what);
    }
    for number in [1, 2] {
        assert_eq!(tracks(&store, number).await, [], "an invalid request stores no track");
    }
    assert_eq!(done(store.stats().await).transcripts, 0, "an invalid request stores nothing");
}

/// Of several kept at once the first stays, and every call returns that one.
pub async fn keeping_at_once_stores_one(store: Store) {
    let returned = together((0..12).map(|n| {
        let store = Arc::clone(&store);
        let ask = keep(1, "en", &format!("text {n}"), &[Wish::Default, wish("en")]);
        async move { done(store.keep(ask).await) }
    }))
    .await;
    let stored = found(&store, 1, &Wish::Default).await;
    assert!(returned.iter().all(|one| *one == stored), "all calls return the one that stayed");
    assert_eq!(found(&store, 1, &wish("en")).await, stored, "for every wish");
    assert_eq!(done(store.stats().await).transcripts, 1, "one is stored");
}

/// Refreshes at once become revisions one after the other.
pub async fn replacing_at_once_loses_no_revision(store: Store) {
    let returned = together((0..10).map(|n| {
        let store = Arc::clone(&store);
        let ask = refresh(1, "en", &format!("text {n}"), &[Wish::Default]);
        async move { done(store.keep(ask).await).revision }
    }))
    .await;
    let mut revisions = returned.clone();
    revisions.sort_unstable();
    assert_eq!(revisions, (1..=10).collect::<Vec<_>>(), "every refresh is a revision of its own");
    let stored = found(&store, 1, &Wish::Default).await;
    assert_eq!(stored.revision, 10, "the newest revision is found");
    let last = returned.iter().position(|revision| *revision == 10).expect("there is a last one");
    let expect = format!("text {last}");
    assert_eq!(stored.transcript.segments[0].text, expect, "the newest revision is what its call kept");
}
