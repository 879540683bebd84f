//! A supplier works on so many videos at once; the others wait in line.

use std::{sync::atomic::Ordering, time::Duration};

use transcript_core::{
    lookup::{FailureReason, LookupAnswer},
    supplier::SupplyReason,
    video::{Platform, VideoId},
};

use crate::{
    scenarios::{
        End, asks, captions_do, check, check_message, end, keyed, new_key, pass, play, play_with, script,
        service_spent, spent, unkeyed,
    },
    simulation::{
        supplier::{Act, Deed},
        weather::Weather,
        world::{Life, Plan, SimKey, World},
    },
};

/// One of many videos.
fn clip(number: u32) -> VideoId {
    VideoId::new(Platform::VideoSite, &format!("clip-{number:06}")).unwrap()
}

fn plan(at_once: u32) -> Plan {
    Plan { at_once: Some(at_once), ..Plan::default() }
}

/// The answers of look-ups of these videos, one begun after the other, each with the seconds that it took.
async fn all(life: &Life, key: &SimKey, numbers: std::ops::Range<u32>) -> Vec<(LookupAnswer, u64)> {
    let began = life.now();
    let mut answers = Vec::new();
    for number in numbers {
        let (life, key) = (life.clone(), key.clone());
        answers.push(tokio::spawn(async move {
            let answer = keyed(&life, &key, clip(number)).await;
            (answer, life.now().since(began).as_secs())
        }));
        // Whoever came first stands in line first.
        tokio::time::sleep(Duration::from_millis(1)).await;
    }
    let mut ended = Vec::new();
    for answer in answers {
        ended.push(answer.await.unwrap());
    }
    ended
}

#[test]
fn the_others_wait_in_order() {
    play(plan(2), |life| async move {
        let key = new_key(&life).await;
        captions_do(&life, &[Act::give(&["en"]).after(Duration::from_secs(10))]);
        let answers = all(&life, &key, 0..6).await;
        let took: Vec<_> = answers.iter().map(|(_, seconds)| *seconds).collect();
        assert_eq!(took, [10, 10, 20, 20, 25, 25]);
        for (answer, _) in &answers[..4] {
            check(answer, End::New);
        }
        for (answer, _) in &answers[4..] {
            check_message(answer, "still being transcribed");
        }
        assert_eq!(life.world.captions.most(), 2);
        // Whoever was told to ask again is served from the archive: the work went on in its turn.
        pass(5).await;
        for number in 0..6 {
            check(&unkeyed(&life, clip(number)).await, End::Archived);
        }
        assert_eq!((spent(&life, &key), service_spent(&life)), (6, 6));
    });
}

#[test]
fn one_bound_holds_for_all_platforms_of_a_supplier() {
    play(plan(1), |life| async move {
        let key = new_key(&life).await;
        captions_do(&life, &[Act::give(&["en"]).after(Duration::from_secs(10))]);
        let post = VideoId::new(Platform::ShortVideo, "7000000000000000009").unwrap();
        let began = life.now();
        let (one, other) = tokio::join!(keyed(&life, &key, clip(0)), keyed(&life, &key, post));
        assert_eq!((end(&one), end(&other)), (End::New, End::New));
        assert_eq!((life.now().since(began).as_secs(), life.world.captions.most()), (20, 1));
    });
}

#[test]
fn who_waits_for_one_supplier_is_not_held_up_by_another() {
    let world = World::new(plan(1));
    world.has_speech.store(true, Ordering::Relaxed);
    play_with(&world, 1, |life| async move {
        let key = new_key(&life).await;
        // Listening takes long; captions are there at once for all but the first.
        captions_do(&life, &[Act::fail(SupplyReason::NoCaptions), Act::give(&["en"])]);
        life.world.speech.set_script(script(&[Act::give(&["en"]).after(Duration::from_secs(100))]));
        let answers = all(&life, &key, 0..5).await;
        check_message(&answers[0].0, "still being transcribed");
        for (answer, seconds) in &answers[1..] {
            check(answer, End::New);
            assert!(*seconds < 5);
        }
    });
}

#[test]
fn who_waits_in_vain_costs_nobody_anything() {
    let mut plan = plan(1);
    plan.engine.work = Duration::from_secs(20);
    play(plan, |life| async move {
        let key = new_key(&life).await;
        let never = Act { takes: Duration::ZERO, deed: Deed::Never };
        captions_do(&life, &[never.clone(), never, Act::give(&["en"])]);
        let answers = all(&life, &key, 0..2).await;
        assert_eq!((answers[0].1, answers[1].1), (20, 10));
        check_message(&answers[0].0, "took too long");
        check(&answers[1].0, End::None(FailureReason::FetchError));
        check_message(&answers[1].0, "busy with other videos");
        assert_eq!(asks(&life, &clip(1)), 0);
        // Only the one that was asked counts, and only for the service.
        assert_eq!((spent(&life, &key), service_spent(&life)), (0, 1));
        assert!(life.world.listener.heard().is_empty());
    });
}

#[test]
fn a_place_is_free_again_however_the_work_ended() {
    let mut plan = plan(1);
    plan.engine.work = Duration::from_secs(20);
    plan.engine.health.failures = 0;
    play(plan, |life| async move {
        let key = new_key(&life).await;
        let act = |deed| Act { takes: Duration::ZERO, deed };
        let bad = [act(Deed::Panic), act(Deed::Never), act(Deed::NoTracks), Act::fail(SupplyReason::Timeout)];
        captions_do(&life, &[bad.as_slice(), &[Act::give(&["en"])]].concat());
        for number in 0..4 {
            keyed(&life, &key, clip(number)).await;
        }
        check(&keyed(&life, &key, clip(4)).await, End::New);
    });
}

#[test]
fn while_a_supplier_rests_nobody_stands_in_its_line() {
    play(plan(1), |life| async move {
        let key = new_key(&life).await;
        captions_do(&life, &[Act::fail(SupplyReason::BotCheck).after(Duration::from_secs(2))]);
        // The first five fail one after the other; the rest began then, and the others leave the line at once.
        let answers = all(&life, &key, 0..9).await;
        let took: Vec<_> = answers.iter().map(|(_, seconds)| *seconds).collect();
        assert_eq!(took, [2, 4, 6, 8, 10, 10, 10, 10, 10]);
        for (answer, _) in &answers[5..] {
            check(answer, End::None(FailureReason::RateLimited));
            check_message(answer, "left alone for now");
        }
        assert_eq!(service_spent(&life), 5);
    });
}

#[test]
fn who_is_interrupted_in_line_costs_nobody_anything() {
    let mut plan = plan(1);
    plan.engine.work = Duration::from_secs(1_000);
    play(plan, |life| async move {
        let key = new_key(&life).await;
        let never = Act { takes: Duration::ZERO, deed: Deed::Never };
        captions_do(&life, &[never, Act::give(&["en"])]);
        // The leases are renewed at 20 and 40 seconds, and at 30 and 50: of the two, the one in line ends first.
        let later = async {
            tokio::time::sleep(Duration::from_secs(10)).await;
            keyed(&life, &key, clip(1)).await
        };
        let away = async {
            tokio::time::sleep(Duration::from_secs(45)).await;
            life.world.gate.set_weather(Weather::Away { stores: "archive.claim" });
        };
        let (first, second, ()) = tokio::join!(keyed(&life, &key, clip(0)), later, away);
        for answer in [first, second] {
            check_message(&answer, "still being transcribed");
        }
        // Without a lease another server may be at it: both are called off.
        pass(600).await;
        life.world.gate.set_weather(Weather::Calm);
        assert_eq!((asks(&life, &clip(0)), asks(&life, &clip(1))), (1, 0));
        assert_eq!((spent(&life, &key), service_spent(&life)), (0, 1));
        check(&keyed(&life, &key, clip(1)).await, End::New);
    });
}
