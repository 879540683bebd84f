//! Fetch leases and short links.

use super::*;
use crate::{
    archive::{Claim, Lease},
    ids::Holder,
    testing::together,
    video::ShortLink,
};

/// A claim of a moment, for 60 seconds.
fn lease(holder: &str, now: i64) -> Lease {
    let (now, until) = (at(now), at(now + 60));
    Lease { video: video(1), wish: Wish::Default, holder: Holder::new(holder), now, until }
}

fn busy(until: i64) -> Claim {
    Claim::Busy { until: at(until) }
}

fn short(code: &str) -> ShortLink {
    ShortLink::new(Platform::ShortVideo, format!("https://vm.tiktok.com/{code}/"), code.to_owned())
}

/// While one holds a wish, another is told until when.
pub async fn a_wish_is_claimed_by_one(store: Store) {
    assert_eq!(done(store.claim(lease("a", 0)).await), Claim::Claimed, "a free wish is claimed");
    assert_eq!(done(store.claim(lease("b", 10)).await), busy(60), "another is told when the lease ends");
    assert_eq!(done(store.claim(lease("b", 59)).await), busy(60), "asking does not change that");
    assert_eq!(find(&store, 1, &Wish::Default).await, Found::Nothing, "a claim is no knowledge");
}

/// The holder of a claim renews it, and an old renewal that comes late changes nothing.
pub async fn a_claim_is_renewed_by_its_holder(store: Store) {
    done(store.claim(lease("a", 0)).await);
    assert_eq!(done(store.claim(lease("a", 30)).await), Claim::Claimed, "the holder renews");
    assert_eq!(done(store.claim(lease("b", 89)).await), busy(90), "to the new end");
    assert_eq!(done(store.claim(lease("a", 10)).await), Claim::Claimed);
    assert_eq!(done(store.claim(lease("b", 89)).await), busy(90), "a renewal never brings the end forward");
}

/// A claim ends at its moment, and the next one is another's.
pub async fn a_claim_ends_at_its_moment(store: Store) {
    done(store.claim(lease("a", 0)).await);
    assert_eq!(done(store.claim(lease("b", 60)).await), Claim::Claimed, "a lease that ends now has ended");
    assert_eq!(done(store.claim(lease("a", 61)).await), busy(120), "the earlier holder is another now");
}

/// A claim is given back by its holder only.
pub async fn only_the_holder_gives_a_claim_back(store: Store) {
    let unclaim = async |holder: &str| {
        done(store.unclaim(&video(1), &Wish::Default, &Holder::new(holder)).await);
    };
    unclaim("a").await;
    done(store.claim(lease("a", 0)).await);
    unclaim("b").await;
    assert_eq!(done(store.claim(lease("b", 1)).await), busy(60), "nobody gives back another's claim");
    unclaim("a").await;
    unclaim("a").await;
    assert_eq!(done(store.claim(lease("b", 2)).await), Claim::Claimed, "what was given back is free");
    unclaim("a").await;
    assert_eq!(done(store.claim(lease("c", 3)).await), busy(62), "an earlier holder gives nothing back");
}

/// Each wish of each video is claimed for itself, and keeping does not end a claim.
pub async fn claims_of_other_wishes_are_apart(store: Store) {
    done(store.claim(lease("a", 0)).await);
    let german = Lease { wish: wish("de"), ..lease("b", 0) };
    assert_eq!(done(store.claim(german).await), Claim::Claimed, "another wish is another claim");
    let other = Lease { video: video(2), ..lease("b", 0) };
    assert_eq!(done(store.claim(other).await), Claim::Claimed, "another video is another claim");
    done(store.unclaim(&video(1), &wish("de"), &Holder::new("b")).await);
    done(store.keep(keep(1, "en", "text", &[Wish::Default])).await);
    assert_eq!(done(store.claim(lease("b", 1)).await), busy(60), "a claim ends by its holder or its moment");
}

/// Of many claims at once exactly one is granted.
pub async fn claiming_at_once_gives_it_to_one(store: Store) {
    for start in [0, 60, 200] {
        let claims = together((0..16).map(|n| {
            let (store, lease) = (Arc::clone(&store), lease(&format!("{start}/{n}"), start));
            async move { done(store.claim(lease).await) }
        }))
        .await;
        let claimed = claims.iter().filter(|claim| **claim == Claim::Claimed).count();
        assert_eq!(claimed, 1, "exactly one worker at a time may fetch");
        let others = claims.iter().filter(|claim| **claim == busy(start + 60)).count();
        assert_eq!(others, 15, "the others are told when its lease ends: {claims:?}");
    }
}

/// A short link is remembered with the video that it means.
pub async fn a_link_is_remembered(store: Store) {
    assert_eq!(done(store.link(&short("ZM1")).await), None, "a new link is unknown");
    let clip = VideoId::new(Platform::ShortVideo, "7300000000000000001").expect("digits are an id");
    done(store.keep_link(&short("ZM1"), &clip).await);
    done(store.keep_link(&short("zm1"), &video(2)).await);
    assert_eq!(done(store.link(&short("ZM1")).await), Some(clip), "it is remembered");
    assert_eq!(done(store.link(&short("zm1")).await), Some(video(2)), "letter case tells links apart");
    assert_eq!(done(store.link(&short("ZM2")).await), None, "other links stay unknown");
}

/// What a link meant first it means for ever.
pub async fn the_first_answer_to_a_link_stays(store: Store) {
    done(store.keep_link(&short("ZM1"), &video(1)).await);
    done(store.keep_link(&short("ZM1"), &video(2)).await);
    assert_eq!(done(store.link(&short("ZM1")).await), Some(video(1)), "the first answer stays");
    assert_eq!(done(store.stats().await).links, 1, "and is counted once");
}

/// Of several answers at once one stays, for everyone.
pub async fn links_at_once_agree_on_one(store: Store) {
    let seen = together((0..12).map(|n| {
        let store = Arc::clone(&store);
        async move {
            done(store.keep_link(&short("ZM1"), &video(n)).await);
            done(store.link(&short("ZM1")).await)
        }
    }))
    .await;
    assert!(seen.iter().all(|one| one.is_some() && *one == seen[0]), "everyone sees the same one: {seen:?}");
}
