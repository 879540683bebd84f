//! Compacting: nobody can tell. A store that has no smaller form passes, since it does nothing.

use super::*;
use crate::{
    archive::{Compact, Compacted, StoredBody},
    page::PageRequest,
    testing::together,
};

/// Compacts what was stored before a moment, so many at a time.
async fn compact(store: &Store, before: i64, limit: u32) -> Compacted {
    let mut all = Compacted::default();
    let mut after = None;
    for _ in 0..10_000 {
        let page = PageRequest { after, limit };
        let some = done(store.compact(Compact { stored_before: at(before), page }).await);
        assert!(some.looked_at <= u64::from(limit), "no more are looked at than were asked for");
        assert!(some.compacted <= some.looked_at, "what is compacted was looked at");
        assert!(some.bytes_after <= some.bytes_before, "the smaller form is no larger");
        all.looked_at += some.looked_at;
        all.compacted += some.compacted;
        all.bytes_before += some.bytes_before;
        all.bytes_after += some.bytes_after;
        all.damaged.extend(some.damaged);
        after = some.next;
        if after.is_none() {
            assert_eq!(all.damaged, [], "what is sound is not taken for damaged");
            return all;
        }
    }
    panic!("compacting comes to an end");
}

/// All that can be found of some videos.
async fn all_of(
    store: &Store,
    numbers: std::ops::Range<u32>,
) -> Vec<(Found, Option<StoredBody>, Vec<ArchivedTrack>)> {
    let mut all = Vec::new();
    for number in numbers {
        for wish in [Wish::Default, wish("en"), wish("de")] {
            let body = done(store.body(&video(number), &wish).await);
            all.push((find(store, number, &wish).await, body, tracks(store, number).await));
        }
    }
    all
}

/// Whatever is found, and whatever is sent, is the same afterwards.
pub async fn compacting_changes_nothing_that_is_found(store: Store) {
    let speech = |n: u64| Segment::new(format!("and then we said it {n} times"), n * 1_500, 2_999);
    done(store.keep(keep(1, "en", "Hello, «World» \u{1F980}\0\u{1A}.", &[Wish::Default, wish("en")])).await);
    let long = Transcript { segments: (0..20_000).map(speech).collect(), ..transcript(2, "en", "") };
    done(store.keep(Keep { transcript: Arc::new(long), ..keep(2, "en", "", &[Wish::Default]) }).await);
    done(store.keep(keep(3, "de", "eins", &[Wish::Default, wish("de")])).await);
    done(store.keep(refresh(3, "de", "zwei", &[Wish::Default])).await);
    done(store.keep(keep(4, "en", "taken down", &[Wish::Default])).await);
    done(store.withdraw(&video(4), true, at(1)).await);
    done(store.keep_absence(absence(5, Wish::Default, 100)).await);
    let bare = Transcript { title: None, author: None, duration_ms: None, ..transcript(6, "en", "bare") };
    done(store.keep(Keep { transcript: Arc::new(bare), ..keep(6, "en", "", &[Wish::Default]) }).await);
    let (before, changes) = (all_of(&store, 1..8).await, done(store.changes().await));
    let figures = done(store.stats().await);

    let compacted = compact(&store, 1_000, 2).await;
    assert_eq!(all_of(&store, 1..8).await, before, "nothing that is found is another");
    assert_eq!(done(store.changes().await), changes, "nothing that was found is untrue");
    let after = done(store.stats().await);
    assert_eq!(after.compact, compacted.compacted, "the figures tell what is compact");
    let bytes = figures.bytes - compacted.bytes_before + compacted.bytes_after;
    assert_eq!(after, Stats { compact: after.compact, bytes, ..figures }, "and all else is as it was");

    done(store.withdraw(&video(4), false, at(2)).await);
    assert_eq!(text(&store, 4, &Wish::Default).await.0, "taken down", "what is put back is found");
    done(store.forget(&video(2)).await);
    assert_eq!(find(&store, 2, &Wish::Default).await, Found::Nothing, "what is forgotten is not found");
    assert_eq!(done(store.body(&video(2), &Wish::Default).await), None, "nor sent");
    let forgotten = done(store.stats().await);
    assert_eq!(forgotten.transcripts, figures.transcripts - 1, "nor counted");
    assert!(forgotten.compact <= after.compact && forgotten.bytes < after.bytes, "nor does it take room");
}

/// Only what was stored before the moment that is named is compacted, and that once.
pub async fn what_is_old_is_compacted_once(store: Store) {
    for number in 1..=12 {
        done(store.keep(keep(number, "en", &format!("old {number}"), &[Wish::Default])).await);
        done(store.keep(Keep { now: at(50), ..keep(number, "de", "new", &[wish("de")]) }).await);
    }
    assert_eq!(compact(&store, 0, 5).await.compacted, 0, "nothing was stored before the first moment");
    let old = compact(&store, 50, 5).await.compacted;
    assert!(old == 12 || old == 0, "all that is old is compacted, or the store has no smaller form: {old}");
    assert_eq!(compact(&store, 50, 1_000).await.compacted, 0, "what is compact is not compacted again");
    let new = compact(&store, 51, 7).await.compacted;
    assert_eq!(new, old, "what has become old is compacted then");
    assert_eq!(done(store.stats().await).compact, old + new, "and it is counted");
}

/// A refresh of what is compact is stored and found as any other.
pub async fn what_is_compact_is_refreshed(store: Store) {
    done(store.keep(keep(1, "en", "first", &[Wish::Default, wish("en")])).await);
    compact(&store, 1_000, 100).await;
    let kept = done(store.keep(keep(1, "en", "another", &[Wish::Default])).await);
    assert_eq!(kept.transcript.segments[0].text, "first", "the first transcript stays");
    let same = done(store.keep(refresh(1, "en", "first", &[Wish::Default])).await);
    assert_eq!((same.revision, same.stored_at), (1, at(0)), "unchanged content adds no revision");
    done(store.keep(refresh(1, "en", "second", &[Wish::Default])).await);
    assert_eq!(text(&store, 1, &Wish::Default).await, ("second".to_owned(), 2), "the refresh is found");
    assert_eq!(text(&store, 1, &wish("en")).await, ("first".to_owned(), 1), "the other wish has what it had");
    let wishes = [wish("de")];
    let joined = done(store.keep(Keep { wishes: wishes.to_vec(), ..keep(1, "en", "first", &wishes) }).await);
    assert_eq!(joined.revision, 1, "the same content is stored once, compact or not");
    done(store.forget(&video(1)).await);
    done(store.keep(keep(1, "en", "third", &[Wish::Default])).await);
    assert_eq!(text(&store, 1, &Wish::Default).await, ("third".to_owned(), 1), "revisions begin at 1 again");
    compact(&store, 1_000, 100).await;
    assert_eq!(text(&store, 1, &Wish::Default).await, ("third".to_owned(), 1));
}

/// While some compact, others keep, refresh, forget and look up: everybody finds what was kept last.
pub async fn compacting_beside_others_loses_nothing(store: Store) {
    for number in 1..=60 {
        done(store.keep(keep(number, "en", &format!("text {number}"), &[Wish::Default])).await);
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
                done(store.forget(&video(number)).await);
                done(store.keep(keep(number, "en", &expect, &[Wish::Default])).await);
            }
            if number % 2 == 0 {
                expect = format!("refreshed {number}");
                done(store.keep(refresh(number, "en", &expect, &[Wish::Default])).await);
            }
            for _ in 0..5 {
                assert_eq!(
                    text(&store, number, &Wish::Default).await.0,
                    expect,
                    "what was kept last is found"
                );
                done(store.body(&video(number), &Wish::Default).await);
            }
        });
        work
    });
    together(compacting.chain(others)).await;
    compact(&store, 1_000, 1_000).await;
    for number in 1..=60 {
        let expect = if number % 2 == 0 { format!("refreshed {number}") } else { format!("text {number}") };
        assert_eq!(text(&store, number, &Wish::Default).await.0, expect, "and still is");
    }
}
