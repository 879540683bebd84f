//! How much anyone may try.

use std::{net::IpAddr, time::Duration};

use transcript_core::{
    lookup::{CreateKey, CreateKeyOutcome, FailureReason, Origin},
    supplier::SupplyReason,
    video::{Platform, VideoId},
};

use crate::{
    scenarios::{
        End, ask, asks, captions_do, check, check_message, keyed, new_key, other_video, pass, play,
        service_spent, spent, video,
    },
    simulation::{
        ops::{Asking, Caller, Target},
        supplier::Act,
        world::Plan,
    },
};

fn address(text: &str) -> Option<IpAddr> {
    Some(text.parse().unwrap())
}

#[test]
fn a_network_has_so_many_misses_a_minute() {
    let mut plan = Plan::default();
    plan.lookup.misses_per_network_per_minute = 3;
    play(plan, |life| async move {
        let key = new_key(&life).await;
        check(&keyed(&life, &key, other_video()).await, End::New);
        let miss =
            async |client: &str| ask(&life, Caller::Nobody(address(client)), Target::of(video())).await;
        for _ in 0..3 {
            check(&miss("192.0.2.1").await, End::None(FailureReason::NeedsVerification));
        }
        pass(20).await;
        let refused = miss("192.0.2.1").await;
        check(&refused, End::None(FailureReason::FairUse));
        check_message(&refused, "try again in 40 seconds");
        check(&miss("192.0.2.2").await, End::None(FailureReason::NeedsVerification));
        // Never for what is archived, and never for a key.
        let archived = Target::of(other_video());
        check(&ask(&life, Caller::Nobody(address("192.0.2.1")), archived).await, End::Archived);
        check(&keyed(&life, &key, video()).await, End::New);
        pass(60).await;
        let third = Target::of(VideoId::new(video().platform(), "third-video").unwrap());
        let caller = Caller::Nobody(address("192.0.2.1"));
        check(&ask(&life, caller, third).await, End::None(FailureReason::NeedsVerification));
    });
}

#[test]
fn a_key_has_so_many_attempts_in_vain_an_hour() {
    let mut plan = Plan::default();
    plan.lookup.attempts_per_key_per_hour = 3;
    play(plan, |life| async move {
        let key = new_key(&life).await;
        // What succeeds is no attempt in vain.
        check(&keyed(&life, &key, other_video()).await, End::New);
        captions_do(&life, &[Act::fail(SupplyReason::Timeout)]);
        for _ in 0..3 {
            check(&keyed(&life, &key, video()).await, End::None(FailureReason::FetchError));
            pass(600).await;
        }
        // The first one is 30 minutes ago: what is told is when that one no longer counts, however often the
        // key asks meanwhile.
        for (told, wait) in [("try again in 30 minutes", 1_000), ("try again in 14 minutes", 800)] {
            let refused = keyed(&life, &key, video()).await;
            check(&refused, End::None(FailureReason::FairUse));
            check_message(&refused, told);
            pass(wait).await;
        }
        assert_eq!((asks(&life, &video()), service_spent(&life)), (3, 4));
        check(&keyed(&life, &key, other_video()).await, End::Archived);
        check(&keyed(&life, &key, video()).await, End::None(FailureReason::FetchError));
        check(&keyed(&life, &key, video()).await, End::None(FailureReason::FairUse));
    });
}

/// A video of many.
fn clip(number: u32) -> VideoId {
    VideoId::new(Platform::VideoSite, &format!("clip-{number:06}")).unwrap()
}

#[test]
fn who_hangs_up_has_asked_in_vain_all_the_same() {
    let mut plan = Plan::default();
    plan.lookup.attempts_per_key_per_hour = 3;
    play(plan, |life| async move {
        let key = new_key(&life).await;
        captions_do(&life, &[Act::fail(SupplyReason::Timeout).after(Duration::from_secs(5))]);
        for number in 0..3 {
            let (caller, target) = (Caller::Key(key.clone()), Target::of(clip(number)));
            let lookup = &life.lookups[0];
            let asking = Asking { life: &life, lookup, caller, target, peek: false, fair: true };
            assert!(asking.ask(Some(Duration::from_secs(1))).await.is_none());
            pass(10).await;
        }
        check(&keyed(&life, &key, clip(3)).await, End::None(FailureReason::FairUse));
        assert_eq!((spent(&life, &key), service_spent(&life), asks(&life, &clip(3))), (0, 3, 0));
    });
}

#[test]
fn work_in_vain_that_outlasts_the_wait_counts_once() {
    let mut plan = Plan::default();
    plan.lookup.attempts_per_key_per_hour = 2;
    play(plan, |life| async move {
        let key = new_key(&life).await;
        captions_do(&life, &[Act::fail(SupplyReason::Timeout).after(Duration::from_secs(30))]);
        for number in 0..2 {
            let answer = keyed(&life, &key, clip(number)).await;
            check_message(&answer, "still being transcribed");
            // Whoever asks again joins the same work, and hears of its end.
            check(&keyed(&life, &key, clip(number)).await, End::None(FailureReason::FetchError));
            pass(10).await;
        }
        check(&keyed(&life, &key, clip(2)).await, End::None(FailureReason::FairUse));
        assert_eq!((spent(&life, &key), service_spent(&life), asks(&life, &clip(2))), (0, 2, 0));
    });
}

#[test]
fn a_network_makes_so_many_keys_a_day() {
    let mut plan = Plan::default();
    plan.lookup.mint_per_network_per_day = 2;
    play(plan, |life| async move {
        let make = async |client| {
            let origin = Origin::Network(address(client));
            life.lookups[0]
                .create_key(CreateKey { label: None, email: None, proof: None, origin })
                .await
                .unwrap()
        };
        for _ in 0..2 {
            assert!(matches!(make("192.0.2.1").await, CreateKeyOutcome::Created(_)));
        }
        let CreateKeyOutcome::Limited { retry_after_ms } = make("192.0.2.1").await else {
            panic!("a third key on one day");
        };
        assert!(matches!(make("192.0.2.2").await, CreateKeyOutcome::Created(_)));
        tokio::time::sleep(Duration::from_millis(retry_after_ms)).await;
        assert!(matches!(make("192.0.2.1").await, CreateKeyOutcome::Created(_)));
    });
}
