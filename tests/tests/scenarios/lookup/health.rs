//! Suppliers that keep failing rest, and come back.

use std::{sync::atomic::Ordering, time::Duration};

use transcript_core::{
    engine::SupplierHealth,
    lookup::{Availability, FailureReason, LookupAnswer},
    supplier::SupplyReason,
    video::{Platform, VideoId},
};

use crate::{
    scenarios::{
        End, again_after, asks, captions_do, check, check_message, keyed, new_key, pass, play, play_with,
        script, service_spent, spent,
    },
    simulation::{
        supplier::Act,
        world::{Life, Plan, SimKey, World},
    },
};

/// One of many videos.
fn clip(number: u32) -> VideoId {
    VideoId::new(Platform::VideoSite, &format!("clip-{number:06}")).unwrap()
}

/// The captions fail with so many videos, one after the other.
async fn fail_with(life: &Life, key: &SimKey, numbers: std::ops::Range<u32>, reason: &SupplyReason) {
    captions_do(life, &[Act::fail(reason.clone())]);
    for number in numbers {
        keyed(life, key, clip(number)).await;
    }
}

/// What was heard of health: the supplier, and why it rests, or that it works.
fn heard(life: &Life) -> Vec<(String, Platform, &'static str, u32)> {
    let said = |SupplierHealth { supplier, platform, rest }| {
        let (reason, in_a_row) = rest.map_or(("works", 0), |rest| (rest.reason.as_str(), rest.in_a_row));
        (supplier, platform, reason, in_a_row)
    };
    life.world.listener.heard().into_iter().map(said).collect()
}

fn rests(platform: Platform, reason: &'static str, in_a_row: u32) -> (String, Platform, &'static str, u32) {
    ("captions".to_owned(), platform, reason, in_a_row)
}

#[test]
fn a_supplier_that_keeps_failing_is_not_asked_for_a_while() {
    play(Plan::default(), |life| async move {
        let key = new_key(&life).await;
        fail_with(&life, &key, 0..5, &SupplyReason::BotCheck).await;
        captions_do(&life, &[Act::give(&["en"])]);
        let (before, at) = (service_spent(&life), life.now());
        for _ in 0..3 {
            let answer = keyed(&life, &key, clip(5)).await;
            check(&answer, End::None(FailureReason::RateLimited));
            check_message(&answer, "a proof that no bot is asking");
            check_message(&answer, "please ask again in 30 seconds");
            assert_eq!(again_after(&answer), Some(30));
        }
        // At once, without asking anybody or costing anything: no attempt either.
        assert_eq!((life.now(), asks(&life, &clip(5))), (at, 0));
        assert_eq!((spent(&life, &key), service_spent(&life)), (0, before));
        // Another platform is asked as ever.
        let post = VideoId::new(Platform::ShortVideo, "7000000000000000009").unwrap();
        check(&keyed(&life, &key, post).await, End::New);
        assert_eq!(heard(&life), [rests(Platform::VideoSite, "bot_check", 1)]);
        pass(31).await;
        check(&keyed(&life, &key, clip(5)).await, End::New);
        assert_eq!(heard(&life)[1..], [rests(Platform::VideoSite, "works", 0)]);
        check(&keyed(&life, &key, clip(6)).await, End::New);
    });
}

#[test]
fn true_answers_about_videos_let_nobody_rest() {
    for reason in [SupplyReason::NoCaptions, SupplyReason::Private, SupplyReason::Removed] {
        play(Plan::default(), |life| async move {
            let key = new_key(&life).await;
            fail_with(&life, &key, 0..20, &reason).await;
            captions_do(&life, &[Act::give(&["en"])]);
            check(&keyed(&life, &key, clip(20)).await, End::New);
            assert!(heard(&life).is_empty());
        });
    }
}

#[test]
fn one_video_that_fails_takes_the_supplier_from_nobody() {
    play(Plan::default(), |life| async move {
        let key = new_key(&life).await;
        captions_do(&life, &[Act::fail(SupplyReason::Unreadable)]);
        for _ in 0..20 {
            check(&keyed(&life, &key, clip(0)).await, End::None(FailureReason::FetchError));
        }
        assert_eq!((asks(&life, &clip(0)), heard(&life).len()), (20, 0));
    });
}

#[test]
fn while_one_rests_the_next_one_is_asked() {
    let world = World::new(Plan::default());
    world.has_speech.store(true, Ordering::Relaxed);
    play_with(&world, 1, |life| async move {
        let key = new_key(&life).await;
        fail_with(&life, &key, 0..5, &SupplyReason::Timeout).await;
        let answer = keyed(&life, &key, clip(5)).await;
        check(&answer, End::New);
        let Availability::Available { stored, .. } = &answer.availability else { panic!("no transcript") };
        assert_eq!((stored.transcript.source.as_str(), asks(&life, &clip(5))), ("speech", 1));
        // What the other one has not does not mean that there is nothing: nothing is remembered.
        life.world.speech.set_script(script(&[Act::fail(SupplyReason::NoCaptions)]));
        for _ in 0..2 {
            let answer = keyed(&life, &key, clip(6)).await;
            check(&answer, End::None(FailureReason::FetchError));
            check_message(&answer, "The source captions failed with several videos of YouTube in a row");
        }
        assert_eq!(asks(&life, &clip(6)), 2);
        // What is final is, whoever says so.
        life.world.speech.set_script(script(&[Act::fail(SupplyReason::Private)]));
        check(&keyed(&life, &key, clip(7)).await, End::None(FailureReason::NoCaptions));
        check(&keyed(&life, &key, clip(7)).await, End::None(FailureReason::NoCaptions));
        assert_eq!(asks(&life, &clip(7)), 1);
    });
}

/// The ends of look-ups of these videos at the same time.
async fn all(life: &Life, key: &SimKey, numbers: std::ops::Range<u32>) -> Vec<LookupAnswer> {
    let mut answers = tokio::task::JoinSet::new();
    for number in numbers {
        let (life, key) = (life.clone(), key.clone());
        answers.spawn(async move { keyed(&life, &key, clip(number)).await });
    }
    answers.join_all().await
}

#[test]
fn after_the_rest_one_alone_tries_and_what_comes_of_it_is_for_all() {
    play(Plan::default(), |life| async move {
        let key = new_key(&life).await;
        fail_with(&life, &key, 0..5, &SupplyReason::Timeout).await;
        let most = |life: &Life, numbers: std::ops::Range<u32>| -> u64 {
            numbers.map(|number| asks(life, &clip(number))).sum()
        };
        // In vain twice: each rest is longer.
        for (in_a_row, again) in [(2, "60 seconds"), (3, "2 minutes")] {
            pass(if in_a_row == 2 { 30 } else { 60 }).await;
            let from = in_a_row * 100;
            for answer in all(&life, &key, from..from + 10).await {
                check(&answer, End::None(FailureReason::FetchError));
            }
            assert_eq!(most(&life, from..from + 10), 1);
            assert_eq!(heard(&life).last(), Some(&rests(Platform::VideoSite, "timeout", in_a_row)));
            check_message(&keyed(&life, &key, clip(0)).await, again);
        }
        captions_do(&life, &[Act::give(&["en"])]);
        pass(120).await;
        let answers = all(&life, &key, 500..510).await;
        let new = answers.iter().filter(|answer| crate::scenarios::end(answer) == End::New).count();
        assert_eq!((new, most(&life, 500..510)), (1, 1));
        // It works: everybody may ask again.
        for answer in all(&life, &key, 600..610).await {
            check(&answer, End::New);
        }
    });
}

#[test]
fn a_trial_that_is_called_off_is_one_in_vain() {
    let mut plan = Plan::default();
    plan.engine.work = Duration::from_secs(20);
    play(plan, |life| async move {
        let key = new_key(&life).await;
        fail_with(&life, &key, 0..5, &SupplyReason::Timeout).await;
        pass(30).await;
        // It is called off when its time is over.
        captions_do(&life, &[Act::give(&["en"]).after(Duration::from_secs(500)), Act::give(&["en"])]);
        check(&keyed(&life, &key, clip(9)).await, End::None(FailureReason::FetchError));
        assert_eq!(heard(&life).last(), Some(&rests(Platform::VideoSite, "timeout", 2)));
        pass(60).await;
        check(&keyed(&life, &key, clip(9)).await, End::New);
    });
}

#[test]
fn a_wait_that_the_platform_names_is_kept() {
    play(Plan::default(), |life| async move {
        let key = new_key(&life).await;
        let named = SupplyReason::Throttled(Some(Duration::from_secs(300)));
        fail_with(&life, &key, 0..5, &named).await;
        pass(290).await;
        let answer = keyed(&life, &key, clip(6)).await;
        check(&answer, End::None(FailureReason::RateLimited));
        check_message(&answer, "10 seconds");
        assert_eq!(asks(&life, &clip(6)), 0);
        captions_do(&life, &[Act::give(&["en"])]);
        pass(10).await;
        check(&keyed(&life, &key, clip(6)).await, End::New);
    });
}
