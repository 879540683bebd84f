//! Sending: a transcript as it is stored. A store that stores no such form passes, with none each time.

use super::*;
use crate::{
    archive::StoredBody,
    testing::together,
    wire::{frame::Frame, segments},
};

async fn body(store: &Store, number: u32, wish: &Wish) -> Option<StoredBody> {
    check_unread(store, number, wish).await;
    done(store.body(&video(number), wish).await)
}

/// What is left unread, where a store has that, must read as what is found.
async fn check_unread(store: &Store, number: u32, wish: &Wish) {
    let Some(unread) = done(store.unread(&video(number), wish).await) else { return };
    let Found::Transcript(stored) = done(store.find(&video(number), wish, at(0)).await) else {
        panic!("what is not found is not left unread either");
    };
    assert_eq!(unread.revision(), stored.revision, "what is unread is of the revision that is found");
    assert_eq!(unread.changes(), done(store.changes().await), "and as of the changes until then");
    assert!(unread.bytes() > 0, "it takes some room");
    assert!(done(unread.read()) == stored, "and reads as what is found");
}

/// A body, where there is one, must be of the transcript that is found.
async fn check(store: &Store, number: u32, wish: &Wish) -> Option<StoredBody> {
    let stored = found(store, number, wish).await;
    let body = body(store, number, wish).await?;
    assert_eq!(body.content_sha256, stored.content_sha256, "a body is of the transcript that is found");
    assert_eq!(body.source, stored.transcript.source, "with its supplier");
    let frame = Frame::read(&body.segments).expect("a body is one zstd frame that can be built upon");
    assert!(frame.length().is_none_or(|length| length == body.length), "a frame's length is its content's");
    let capacity = usize::try_from(body.length).expect("a body fits into memory");
    let json = zstd::bulk::decompress(&body.segments, capacity).expect("a body decompresses");
    assert_eq!(json.len(), capacity, "a body has the length that it says");
    assert!(json == done(segments::write(&stored.transcript.segments)), "a body has the segments as sent");
    Some(body)
}

/// What is kept can be sent as it is stored, for each of its wishes.
pub async fn a_body_is_of_the_transcript_that_is_found(store: Store) {
    let wishes = [Wish::Default, wish("en")];
    done(store.keep(keep(1, "en", "Hello, «World» \u{1F980}\0.", &wishes)).await);
    let first = check(&store, 1, &Wish::Default).await;
    assert_eq!(check(&store, 1, &wish("en")).await, first, "every wish has the same body");
    let segments = (0..20_000).map(|n| Segment::new(format!("segment {n} ü"), n * 500, 499)).collect();
    let long = Transcript { segments, ..transcript(2, "en", "") };
    done(store.keep(Keep { transcript: Arc::new(long), ..keep(2, "en", "", &[Wish::Default]) }).await);
    let long = check(&store, 2, &Wish::Default).await;
    assert!(first.is_none_or(|first| long.is_some_and(|long| long.checksum != first.checksum)));
}

/// Many that are asked for at once are each their own.
pub async fn bodies_at_once_are_each_their_own(store: Store) {
    for number in 1..=40 {
        done(store.keep(keep(number, "en", &format!("text {number}"), &[Wish::Default])).await);
    }
    together((0..80).map(|number| {
        let store = Arc::clone(&store);
        async move {
            if (1..=40).contains(&number) {
                check(&store, number, &Wish::Default).await;
            } else {
                assert_eq!(body(&store, number, &Wish::Default).await, None, "nothing is known of {number}");
            }
        }
    }))
    .await;
}

/// What is not found has no body: unknown, absent, withdrawn or forgotten.
pub async fn what_is_not_found_has_no_body(store: Store) {
    assert_eq!(body(&store, 1, &Wish::Default).await, None, "an unknown video has no body");
    done(store.keep_absence(absence(1, Wish::Default, 100)).await);
    assert_eq!(body(&store, 1, &Wish::Default).await, None, "an absence has no body");
    done(store.keep(keep(1, "en", "here", &[wish("en")])).await);
    assert_eq!(body(&store, 1, &Wish::Default).await, None, "another wish's body is not this one's");
    let before = check(&store, 1, &wish("en")).await;
    done(store.withdraw(&video(1), true, at(1)).await);
    assert_eq!(body(&store, 1, &wish("en")).await, None, "a withdrawn video has no body");
    done(store.withdraw(&video(1), false, at(2)).await);
    assert_eq!(check(&store, 1, &wish("en")).await, before, "what is put back has its body again");
    done(store.forget(&video(1)).await);
    assert_eq!(body(&store, 1, &wish("en")).await, None, "what is forgotten has no body");
}

/// A refresh replaces the body as it replaces the transcript.
pub async fn a_replaced_transcript_has_its_own_body(store: Store) {
    done(store.keep(keep(1, "en", "first", &[Wish::Default])).await);
    let first = check(&store, 1, &Wish::Default).await;
    done(store.keep(refresh(1, "en", "second", &[Wish::Default])).await);
    let second = check(&store, 1, &Wish::Default).await;
    let is_new = |second: StoredBody| first.is_some_and(|first| first.checksum != second.checksum);
    assert!(second.is_none_or(is_new), "another content has another checksum");
    done(store.forget(&video(1)).await);
    done(store.keep(keep(1, "en", "third", &[Wish::Default])).await);
    check(&store, 1, &Wish::Default).await;
}
