//! Links that must be followed, and references that name no video.

use transcript_core::lookup::{BadReference, FailureReason, LookupAsk, Reference};

use crate::{
    scenarios::{End, ask, asks, check, new_key, play, service_spent},
    simulation::{
        ops::{Caller, Target},
        world::{Life, Plan, linked_video},
    },
};

async fn refused(life: &Life, reference: Reference) -> BadReference {
    let ask = LookupAsk { reference, src: None, key: None, proof: None, client: None, default_only: false };
    life.lookups[0].look_up(ask).await.expect_err("this reference names no video")
}

#[test]
fn a_short_link_is_followed_once_and_remembered() {
    let mut plan = Plan::default();
    plan.lookup.misses_per_network_per_minute = 2;
    play(plan, |life| async move {
        let key = new_key(&life).await;
        // Followed and missed: counted once, not twice.
        let answer = ask(&life, Caller::Nobody(None), Target::short("ZMplain1")).await;
        check(&answer, End::None(FailureReason::NeedsVerification));
        assert_eq!(answer.video_id, linked_video().id());
        check(&ask(&life, Caller::Key(key), Target::short("ZMplain1")).await, End::New);
        // Remembered and archived: never counted.
        for _ in 0..4 {
            check(&ask(&life, Caller::Nobody(None), Target::short("ZMplain1")).await, End::Archived);
        }
        let other = ask(&life, Caller::Nobody(None), Target::short("ZMplain2")).await;
        check(&other, End::Archived);
        // That was the network's second: following a link asks its platform.
        let third = ask(&life, Caller::Nobody(None), Target::short("ZMplain3")).await;
        check(&third, End::None(FailureReason::FairUse));
        assert_eq!(third.video_id, "ZMplain3");
        assert_eq!((asks(&life, &linked_video()), service_spent(&life)), (1, 1));
    });
}

#[test]
fn a_short_link_counts_as_an_attempt_of_a_key() {
    let mut plan = Plan::default();
    plan.lookup.attempts_per_key_per_hour = 1;
    play(plan, |life| async move {
        let key = new_key(&life).await;
        check(&ask(&life, Caller::Key(key.clone()), Target::short("ZMplain1")).await, End::New);
        check(&ask(&life, Caller::Key(key.clone()), Target::short("ZMplain1")).await, End::Archived);
        let answer = ask(&life, Caller::Key(key), Target::short("ZMplain2")).await;
        check(&answer, End::None(FailureReason::FairUse));
    });
}

#[test]
fn a_short_link_that_leads_nowhere_is_refused() {
    play(Plan::default(), |life| async move {
        let bad = refused(&life, Reference::Url("https://vm.tiktok.com/ZMgone11/".to_owned())).await;
        assert_eq!((bad.parameter, bad.message.as_str()), ("url", "This short link has expired."));
    });
}

#[test]
fn a_short_link_that_cannot_be_followed_now_is_a_passing_failure() {
    play(Plan::default(), |life| async move {
        // Every other time, by chance, this link fails.
        let mut failed = 0;
        for _ in 0..10 {
            let answer = ask(&life, Caller::Nobody(None), Target::short("ZMbad111")).await;
            if let End::None(FailureReason::FetchError) = crate::scenarios::end(&answer) {
                assert_eq!(answer.video_id, "ZMbad111");
                assert!(answer.watch_url.contains("/watch/short_video/vm:ZMbad111"));
                failed += 1;
            }
        }
        assert!(failed > 0);
    });
}

#[test]
fn a_bad_reference_names_its_parameter() {
    play(Plan::default(), |life| async move {
        for reference in [
            Reference::Id("too short".to_owned()),
            Reference::Url("https://example.com/watch?v=videoNumber".to_owned()),
            Reference::Url(String::new()),
        ] {
            let parameter = reference.parameter();
            let bad = refused(&life, reference).await;
            assert_eq!(bad.parameter, parameter);
            assert!(!bad.message.is_empty());
        }
    });
}
