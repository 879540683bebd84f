//! Suppliers that fail: what is told, remembered and asked again.

use std::{sync::atomic::Ordering, time::Duration};

use transcript_core::{
    Timestamp,
    lookup::FailureReason,
    supplier::SupplyReason,
    video::{Platform, VideoId},
};

use crate::{
    scenarios::{
        End, asks, captions_do, check, check_message, keyed, new_key, pass, play, play_with, script,
        service_spent, spent, unkeyed, video,
    },
    simulation::{
        ops::summary,
        supplier::{Act, Deed, every_reason},
        world::{NOON_MS, Plan, World},
    },
};

/// What is told for a supplier's reason, and for how many seconds it is remembered.
fn consequence(reason: &SupplyReason) -> (FailureReason, Option<u64>) {
    use FailureReason::{ConfigError, FetchError, NoCaptions, RateLimited};
    use SupplyReason as R;
    match reason {
        R::NoCaptions | R::NoLanguage(_) => (NoCaptions, Some(6 * 3_600)),
        R::Private | R::Removed | R::Region | R::Payment => (NoCaptions, Some(24 * 3_600)),
        R::Age | R::Members | R::Login | R::Live | R::Upcoming(None) => (NoCaptions, Some(15 * 60)),
        // Until it starts: 90 seconds after the story's beginning, of which its fetch took 0.8.
        R::Upcoming(Some(_)) => (NoCaptions, Some(89)),
        R::Throttled(_) | R::BotCheck | R::OtherVideo => (RateLimited, None),
        R::Timeout | R::Unreachable | R::PlatformFault | R::Unreadable | R::Cancelled => (FetchError, None),
        R::Stale | R::Misconfigured => (ConfigError, None),
        other => panic!("{other:?} has no consequence yet"),
    }
}

#[test]
fn every_reason_of_a_supplier_has_its_consequence() {
    for reason in every_reason(Timestamp::from_millis(NOON_MS)) {
        let (told, remembered) = consequence(&reason);
        play(Plan::default(), |life| async move {
            let key = new_key(&life).await;
            captions_do(&life, &[Act::fail(reason.clone()), Act::give(&["en"])]);
            let answer = keyed(&life, &key, video()).await;
            check(&answer, End::None(told));
            check_message(&answer, reason.as_str());
            assert_eq!((spent(&life, &key), service_spent(&life)), (0, 1), "{reason:?}");
            if let Some(seconds) = remembered {
                pass(seconds - 1).await;
                let again = keyed(&life, &key, video()).await;
                check(&again, End::None(told));
                check_message(&again, reason.as_str());
                assert_eq!((asks(&life, &video()), service_spent(&life)), (1, 1), "{reason:?}");
                pass(2).await;
            }
            let later = keyed(&life, &key, video()).await;
            assert!(matches!(crate::scenarios::end(&later), End::New), "{reason:?}: {}", summary(&later));
        });
    }
}

#[test]
fn a_supplier_that_misbehaves_is_not_believed() {
    let act = |deed| Act { takes: Duration::from_millis(10), deed };
    for (deed, told) in [
        (Deed::Panic, FailureReason::FetchError),
        (Deed::OtherVideo, FailureReason::RateLimited),
        (Deed::NoTracks, FailureReason::FetchError),
        (Deed::NoWords, FailureReason::FetchError),
    ] {
        play(Plan::default(), |life| async move {
            let key = new_key(&life).await;
            captions_do(&life, &[act(deed), act(Deed::Give(vec!["en"]))]);
            check(&keyed(&life, &key, video()).await, End::None(told));
            assert_eq!(spent(&life, &key), 0);
            check(&keyed(&life, &key, video()).await, End::New);
        });
    }
}

#[test]
fn what_nobody_was_asked_for_costs_nobody_anything() {
    let mut plan = Plan::default();
    plan.lookup.attempts_per_key_per_hour = 2;
    plan.lookup.service_per_day = 2;
    let world = World::new(plan);
    world.has_speech.store(true, Ordering::Relaxed);
    play_with(&world, 1, |life| async move {
        let key = new_key(&life).await;
        let left_alone = || Act::decline(SupplyReason::Throttled(None));
        captions_do(&life, &[left_alone()]);
        life.world.speech.set_script(script(&[left_alone()]));
        for _ in 0..5 {
            check(&keyed(&life, &key, video()).await, End::None(FailureReason::RateLimited));
        }
        assert_eq!((spent(&life, &key), service_spent(&life)), (0, 0));
        // One that was asked is enough.
        life.world.speech.set_script(script(&[Act::fail(SupplyReason::Timeout)]));
        check(&keyed(&life, &key, video()).await, End::None(FailureReason::RateLimited));
        assert_eq!((spent(&life, &key), service_spent(&life)), (0, 1));
    });
}

#[test]
fn a_supplier_that_never_answers_is_called_off() {
    let mut plan = Plan::default();
    plan.engine.work = Duration::from_secs(120);
    play(plan, |life| async move {
        let key = new_key(&life).await;
        let never = Act { takes: Duration::ZERO, deed: Deed::Never };
        captions_do(&life, &[never, Act::give(&["en"])]);
        check_message(&keyed(&life, &key, video()).await, "still being transcribed");
        pass(100).await;
        assert_eq!((spent(&life, &key), service_spent(&life)), (0, 1));
        check(&keyed(&life, &key, video()).await, End::New);
    });
}

#[test]
fn the_next_supplier_helps_where_the_first_cannot() {
    let world = World::new(Plan::default());
    world.has_speech.store(true, Ordering::Relaxed);
    play_with(&world, 1, |life| async move {
        let key = new_key(&life).await;
        captions_do(&life, &[Act::fail(SupplyReason::NoCaptions)]);
        let answer = keyed(&life, &key, video()).await;
        check(&answer, End::New);
        let transcript_core::lookup::Availability::Available { stored, .. } = &answer.availability else {
            panic!("no transcript");
        };
        assert_eq!(stored.transcript.source, "speech");
        assert_eq!((spent(&life, &key), asks(&life, &video())), (1, 2));
    });
}

#[test]
fn no_captions_is_true_only_when_every_supplier_says_so() {
    let world = World::new(Plan::default());
    world.has_speech.store(true, Ordering::Relaxed);
    play_with(&world, 1, |life| async move {
        let key = new_key(&life).await;
        captions_do(&life, &[Act::fail(SupplyReason::NoCaptions)]);
        life.world.speech.set_script(script(&[Act::fail(SupplyReason::Timeout)]));
        check(&keyed(&life, &key, video()).await, End::None(FailureReason::FetchError));
        life.world.speech.set_script(script(&[Act::fail(SupplyReason::NoCaptions)]));
        check(&keyed(&life, &key, video()).await, End::None(FailureReason::NoCaptions));
        assert_eq!(asks(&life, &video()), 4);
        check(&keyed(&life, &key, video()).await, End::None(FailureReason::NoCaptions));
        assert_eq!(asks(&life, &video()), 4);
    });
}

#[test]
fn a_final_answer_of_the_first_supplier_is_remembered_for_all() {
    let world = World::new(Plan::default());
    world.has_speech.store(true, Ordering::Relaxed);
    play_with(&world, 1, |life| async move {
        let key = new_key(&life).await;
        captions_do(&life, &[Act::fail(SupplyReason::Private)]);
        for _ in 0..3 {
            check(&keyed(&life, &key, video()).await, End::None(FailureReason::NoCaptions));
        }
        assert_eq!((asks(&life, &video()), service_spent(&life)), (1, 1));
    });
}

#[test]
fn a_newly_configured_supplier_voids_an_absence() {
    let world = World::new(Plan::default());
    let key = world.live(1, None, |life| async move {
        let key = new_key(&life).await;
        captions_do(&life, &[Act::fail(SupplyReason::NoCaptions)]);
        check(&keyed(&life, &key, video()).await, End::None(FailureReason::NoCaptions));
        key
    });
    world.has_speech.store(true, Ordering::Relaxed);
    play_with(&world, 1, |life| async move {
        check(&keyed(&life, &key.unwrap(), video()).await, End::New);
    });
}

#[test]
fn a_platform_without_a_supplier_is_a_matter_of_configuration() {
    let reel = VideoId::new(Platform::Reels, "CReel-0").unwrap();
    play(Plan::default(), |life| async move {
        let key = new_key(&life).await;
        check(&keyed(&life, &key, reel.clone()).await, End::None(FailureReason::ConfigError));
        check(&unkeyed(&life, reel.clone()).await, End::None(FailureReason::NeedsVerification));
        assert_eq!((service_spent(&life), life.world.oracle.sums(&key.wallet).held), (0, 0));
    });
}

#[test]
fn what_is_withdrawn_is_hidden_and_comes_back() {
    play(Plan::default(), |life| async move {
        let key = new_key(&life).await;
        check(&keyed(&life, &key, video()).await, End::New);
        life.world.archive.withdraw(&video(), true, life.now()).await.unwrap();
        for answer in [keyed(&life, &key, video()).await, unkeyed(&life, video()).await] {
            check(&answer, End::None(FailureReason::NoCaptions));
            check_message(&answer, "withdrawn by the operator");
        }
        life.world.archive.withdraw(&video(), false, life.now()).await.unwrap();
        check(&unkeyed(&life, video()).await, End::Archived);
        assert_eq!((spent(&life, &key), asks(&life, &video())), (1, 1));
    });
}
