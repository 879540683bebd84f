//! Conformance cases of fetch leases and short links.

use super::*;
use crate::{
    archive::{FetchLease, LeaseOutcome},
    error::ErrorKind,
    ids::Holder,
    testing::{call_concurrently, expect_error},
    video::ShortLink,
};

/// Lease request at a time, for 60 seconds.
fn lease(holder: &str, now: i64) -> FetchLease {
    let (now, until) = (at(now), at(now + 60));
    FetchLease { video: video(1), selector: DEFAULT, holder: Holder::new(holder), now, until }
}

fn busy(until: i64) -> LeaseOutcome {
    LeaseOutcome::Busy { until: at(until) }
}

fn short(code: &str) -> ShortLink {
    ShortLink::new(Platform::TikTok, format!("https://vm.tiktok.com/{code}/"), code.to_owned())
}

/// While one holder has the lease, other holders get its expiry.
pub async fn lease_is_held_by_one_holder(store: ArchiveStore) {
    assert_eq!(acquire(&store, lease("a", 0)).await, Acquired, "a free selector is leased");
    assert_eq!(acquire(&store, lease("b", 10)).await, busy(60), "another holder gets the expiry");
    assert_eq!(
        acquire(&store, lease("b", 59)).await,
        busy(60),
        "a rejected request does not change the expiry"
    );
    assert_eq!(find(&store, 1, &DEFAULT).await, NotFound, "a lease is not an archive result");
}

/// The holder renews its lease; a late earlier renewal changes nothing.
pub async fn lease_is_renewed_by_its_holder(store: ArchiveStore) {
    acquire(&store, lease("a", 0)).await;
    assert_eq!(acquire(&store, lease("a", 30)).await, Acquired, "the holder renews");
    assert_eq!(acquire(&store, lease("b", 89)).await, busy(90), "until the new expiry");
    assert_eq!(acquire(&store, lease("a", 10)).await, Acquired);
    assert_eq!(acquire(&store, lease("b", 89)).await, busy(90), "a renewal never shortens the lease");
}

/// A lease ends at its expiry; then another holder can acquire it.
pub async fn lease_ends_at_expiry(store: ArchiveStore) {
    acquire(&store, lease("a", 0)).await;
    assert_eq!(acquire(&store, lease("b", 60)).await, Acquired, "a lease ends at its expiry");
    assert_eq!(acquire(&store, lease("a", 61)).await, busy(120), "the new holder has the lease");
}

/// A lease of a clock that was ahead ends with the lease that another holder asks for, unless its holder renews it.
pub async fn lease_of_corrected_clock_is_shortened(store: ArchiveStore) {
    assert_eq!(acquire(&store, lease("a", 86_400)).await, Acquired);
    assert_eq!(acquire(&store, lease("b", 0)).await, busy(60), "as long as a new lease");
    assert_eq!(acquire(&store, lease("b", 59)).await, busy(60), "it is shortened once");
    assert_eq!(acquire(&store, lease("a", 59)).await, Acquired, "its holder renews it");
    assert_eq!(acquire(&store, lease("b", 60)).await, busy(119));
    assert_eq!(acquire(&store, lease("b", 119)).await, Acquired);
}

/// A lease is released by its holder only.
pub async fn lease_is_released_by_its_holder_only(store: ArchiveStore) {
    let release = async |holder: &str| {
        expect_ok(store.release_lease(&video(1), &DEFAULT, &Holder::new(holder)).await);
    };
    release("a").await;
    acquire(&store, lease("a", 0)).await;
    release("b").await;
    assert_eq!(
        acquire(&store, lease("b", 1)).await,
        busy(60),
        "a holder cannot release another holder's lease"
    );
    release("a").await;
    release("a").await;
    assert_eq!(acquire(&store, lease("b", 2)).await, Acquired, "a released lease is free");
    release("a").await;
    assert_eq!(acquire(&store, lease("c", 3)).await, busy(62), "a former holder releases nothing");
}

/// A put that releases ends the holder's lease of its first selector, and no other lease. A failed put ends none.
pub async fn lease_is_released_with_put_of_its_holder(store: ArchiveStore) {
    let german = FetchLease { selector: selector("de"), ..lease("a", 0) };
    for lease in [lease("a", 0), german.clone()] {
        assert_eq!(acquire(&store, lease).await, Acquired);
    }
    let selectors = [DEFAULT, selector("de")];
    let put = async |holder: &str| {
        store.put_and_release(put_request(1, "de", "text", &selectors), &Holder::new(holder)).await
    };
    expect_ok(store.withdraw(&video(1), true, at(0)).await);
    expect_error(put("a").await, ErrorKind::Conflict, "a withdrawn video");
    assert_eq!(acquire(&store, lease("b", 1)).await, busy(60), "a failed put releases no lease");
    expect_ok(store.withdraw(&video(1), false, at(0)).await);

    expect_ok(put("b").await);
    assert_eq!(
        acquire(&store, lease("b", 1)).await,
        busy(60),
        "a put does not release another holder's lease"
    );
    let stored = expect_ok(put("a").await);
    assert_eq!(stored, find_stored(&store, 1, &DEFAULT).await, "the result is that of a put");
    assert_eq!(
        acquire(&store, lease("b", 1)).await,
        Acquired,
        "the lease of the first selector is free, also if the transcript was stored before"
    );
    let german = FetchLease { holder: Holder::new("b"), ..german };
    assert_eq!(acquire(&store, german).await, busy(60), "leases of other selectors stay");
}

/// Each selector of each video has its own lease, and a put does not end a lease.
pub async fn leases_of_other_selectors_are_separate(store: ArchiveStore) {
    acquire(&store, lease("a", 0)).await;
    let german = FetchLease { selector: selector("de"), ..lease("b", 0) };
    assert_eq!(acquire(&store, german).await, Acquired, "another selector is another lease");
    let other = FetchLease { video: video(2), ..lease("b", 0) };
    assert_eq!(acquire(&store, other).await, Acquired, "another video is another lease");
    expect_ok(store.release_lease(&video(1), &selector("de"), &Holder::new("b")).await);
    put(&store, put_request(1, "en", "text", &[DEFAULT])).await;
    assert_eq!(acquire(&store, lease("b", 1)).await, busy(60), "a lease ends by its holder or at its expiry");
}

/// Of concurrent lease requests exactly one succeeds.
pub async fn concurrent_lease_requests_acquire_one(store: ArchiveStore) {
    for start in [0, 60, 200] {
        let claims = call_concurrently(&store, 0..16, |store, n| async move {
            let lease = lease(&format!("{start}/{n}"), start);
            acquire(&store, lease).await
        })
        .await;
        let claimed = claims.iter().filter(|claim| **claim == Acquired).count();
        assert_eq!(claimed, 1, "exactly one holder at a time may fetch");
        let others = claims.iter().filter(|claim| **claim == busy(start + 60)).count();
        assert_eq!(others, 15, "the others get the expiry of the lease: {claims:?}");
    }
}

/// A short link is stored with its video.
pub async fn short_link_is_stored(store: ArchiveStore) {
    assert_eq!(expect_ok(store.short_link(&short("ZM1")).await), None, "a new link is unknown");
    let clip = VideoId::new(Platform::TikTok, "7300000000000000001").expect("digits are a valid id");
    expect_ok(store.put_short_link(&short("ZM1"), &clip).await);
    expect_ok(store.put_short_link(&short("zm1"), &video(2)).await);
    assert_eq!(expect_ok(store.short_link(&short("ZM1")).await), Some(clip), "the link is stored");
    assert_eq!(
        expect_ok(store.short_link(&short("zm1")).await),
        Some(video(2)),
        "short links are case-sensitive"
    );
    assert_eq!(expect_ok(store.short_link(&short("ZM2")).await), None, "other links stay unknown");
}

/// The first video stored for a short link stays.
pub async fn first_video_of_short_link_stays(store: ArchiveStore) {
    expect_ok(store.put_short_link(&short("ZM1"), &video(1)).await);
    expect_ok(store.put_short_link(&short("ZM1"), &video(2)).await);
    assert_eq!(expect_ok(store.short_link(&short("ZM1")).await), Some(video(1)), "the first video stays");
    assert_eq!(expect_ok(store.stats().await).links, 1, "the link is counted once");
}

/// Of concurrently stored videos of one link one stays, for every caller.
pub async fn concurrent_short_link_puts_agree(store: ArchiveStore) {
    let results = call_concurrently(&store, 0..12, |store, n| async move {
        expect_ok(store.put_short_link(&short("ZM1"), &video(n)).await);
        expect_ok(store.short_link(&short("ZM1")).await)
    })
    .await;
    assert!(
        results.iter().all(|one| one.is_some() && *one == results[0]),
        "every caller gets the same video: {results:?}"
    );
}
