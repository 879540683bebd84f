//! A supplier fetches a limited number of videos in parallel; the others wait in a queue.

use std::{sync::atomic::Ordering, time::Duration};

use transcript_core::{
    lookup::{FailureReason, LookupResponse},
    supplier::SupplyReason,
    video::{Platform, VideoId},
};

use crate::{
    scenarios::{
        ScenarioResult, advance, check, check_message, end, fetch_count, keyed, new_key, run_scenario,
        run_scenario_with, script, script_captions, service_spent, spent, unkeyed,
    },
    simulation::{
        fault_plan::FaultPlan,
        supplier::{SupplierAction, SupplierStep},
        world::{ProcessLife, SimKey, SimWorld, WorldConfig},
    },
};

/// One of many videos.
fn clip(number: u32) -> VideoId {
    VideoId::new(Platform::YouTube, &format!("clip-{number:06}")).unwrap()
}

fn with_concurrency(concurrency: u32) -> WorldConfig {
    WorldConfig { concurrency: Some(concurrency), ..WorldConfig::default() }
}

/// Starts lookups of these videos one after another; returns responses with their durations in seconds.
async fn all(life: &ProcessLife, key: &SimKey, numbers: std::ops::Range<u32>) -> Vec<(LookupResponse, u64)> {
    let started = life.now();
    let mut answers = Vec::new();
    for number in numbers {
        let (life, key) = (life.clone(), key.clone());
        answers.push(tokio::spawn(async move {
            let answer = keyed(&life, &key, clip(number)).await;
            (answer, life.now().since(started).as_secs())
        }));
        // Fixes the order in the queue.
        tokio::time::sleep(Duration::from_millis(1)).await;
    }
    let mut ended = Vec::new();
    for answer in answers {
        ended.push(answer.await.unwrap());
    }
    ended
}

#[test]
fn queued_lookups_run_in_order() {
    run_scenario(with_concurrency(2), |life| async move {
        let key = new_key(&life).await;
        script_captions(&life, &[SupplierStep::give(&["en"]).after(Duration::from_secs(10))]);
        let answers = all(&life, &key, 0..6).await;
        let took: Vec<_> = answers.iter().map(|(_, seconds)| *seconds).collect();
        assert_eq!(took, [10, 10, 20, 20, 25, 25]);
        for (answer, _) in &answers[..4] {
            check(answer, ScenarioResult::New);
        }
        for (answer, _) in &answers[4..] {
            check_message(answer, "still being transcribed");
        }
        assert_eq!(life.world.captions.max_running(), 2);
        // The work continued in its order, so later lookups are served from the archive.
        advance(5).await;
        for number in 0..6 {
            check(&unkeyed(&life, clip(number)).await, ScenarioResult::Archived);
        }
        assert_eq!((spent(&life, &key), service_spent(&life)), (6, 6));
    });
}

#[test]
fn concurrency_limit_is_shared_by_platforms_of_supplier() {
    run_scenario(with_concurrency(1), |life| async move {
        let key = new_key(&life).await;
        script_captions(&life, &[SupplierStep::give(&["en"]).after(Duration::from_secs(10))]);
        let post = VideoId::new(Platform::TikTok, "7000000000000000009").unwrap();
        let started = life.now();
        let (one, other) = tokio::join!(keyed(&life, &key, clip(0)), keyed(&life, &key, post));
        assert_eq!((end(&one), end(&other)), (ScenarioResult::New, ScenarioResult::New));
        assert_eq!((life.now().since(started).as_secs(), life.world.captions.max_running()), (20, 1));
    });
}

#[test]
fn queue_of_one_supplier_does_not_delay_other() {
    let world = SimWorld::new(with_concurrency(1));
    world.has_speech.store(true, Ordering::Relaxed);
    run_scenario_with(&world, 1, |life| async move {
        let key = new_key(&life).await;
        // Speech recognition is slow; all videos but the first have captions immediately.
        script_captions(&life, &[SupplierStep::fail(SupplyReason::NoCaptions), SupplierStep::give(&["en"])]);
        life.world.speech.set_script(script(&[SupplierStep::give(&["en"]).after(Duration::from_secs(100))]));
        let answers = all(&life, &key, 0..5).await;
        check_message(&answers[0].0, "still being transcribed");
        for (answer, seconds) in &answers[1..] {
            check(answer, ScenarioResult::New);
            assert!(*seconds < 5);
        }
    });
}

#[test]
fn queued_lookup_at_timeout_is_free() {
    let mut config = with_concurrency(1);
    config.engine.work_timeout = Duration::from_secs(20);
    run_scenario(config, |life| async move {
        let key = new_key(&life).await;
        let never = SupplierStep { takes: Duration::ZERO, action: SupplierAction::Never };
        script_captions(&life, &[never.clone(), never, SupplierStep::give(&["en"])]);
        let answers = all(&life, &key, 0..2).await;
        assert_eq!((answers[0].1, answers[1].1), (20, 10));
        check_message(&answers[0].0, "took too long");
        check(&answers[1].0, ScenarioResult::None(FailureReason::FetchError));
        check_message(&answers[1].0, "busy with other videos");
        assert_eq!(fetch_count(&life, &clip(1)), 0);
        // Only the request that reached the supplier counts, and only for the service.
        assert_eq!((spent(&life, &key), service_spent(&life)), (0, 1));
        assert!(life.world.listener.events().is_empty());
    });
}

#[test]
fn permit_is_returned_after_any_end() {
    let mut config = with_concurrency(1);
    config.engine.work_timeout = Duration::from_secs(20);
    config.engine.breaker.failures = 0;
    run_scenario(config, |life| async move {
        let key = new_key(&life).await;
        let step = |action| SupplierStep { takes: Duration::ZERO, action };
        let bad = [
            step(SupplierAction::Panic),
            step(SupplierAction::Never),
            step(SupplierAction::NoTracks),
            SupplierStep::fail(SupplyReason::Timeout),
        ];
        script_captions(&life, &[bad.as_slice(), &[SupplierStep::give(&["en"])]].concat());
        for number in 0..4 {
            keyed(&life, &key, clip(number)).await;
        }
        check(&keyed(&life, &key, clip(4)).await, ScenarioResult::New);
    });
}

#[test]
fn open_breaker_empties_queue() {
    run_scenario(with_concurrency(1), |life| async move {
        let key = new_key(&life).await;
        script_captions(&life, &[SupplierStep::fail(SupplyReason::BotCheck).after(Duration::from_secs(2))]);
        // The first five fail one after another; then the breaker opens and the others leave the queue.
        let answers = all(&life, &key, 0..9).await;
        let took: Vec<_> = answers.iter().map(|(_, seconds)| *seconds).collect();
        assert_eq!(took, [2, 4, 6, 8, 10, 10, 10, 10, 10]);
        for (answer, _) in &answers[5..] {
            check(answer, ScenarioResult::None(FailureReason::RateLimited));
            check_message(answer, "is paused");
        }
        assert_eq!(service_spent(&life), 5);
    });
}

#[test]
fn queued_lookup_with_lost_lease_is_free() {
    let mut config = with_concurrency(1);
    config.engine.work_timeout = Duration::from_secs(1_000);
    run_scenario(config, |life| async move {
        let key = new_key(&life).await;
        let never = SupplierStep { takes: Duration::ZERO, action: SupplierAction::Never };
        script_captions(&life, &[never, SupplierStep::give(&["en"])]);
        // Leases are last renewed at 45 seconds, and that of the queued one at 42: it loses its lease first.
        let later = async {
            tokio::time::sleep(Duration::from_secs(12)).await;
            keyed(&life, &key, clip(1)).await
        };
        let away = async {
            tokio::time::sleep(Duration::from_secs(46)).await;
            life.world.gate.set_faults(FaultPlan::StoreDown { stores: "archive.acquire_lease" });
        };
        let (first, second, ()) = tokio::join!(keyed(&life, &key, clip(0)), later, away);
        for answer in [first, second] {
            check_message(&answer, "still being transcribed");
        }
        // Without a lease another server may fetch the video: both are cancelled.
        advance(600).await;
        life.world.gate.set_faults(FaultPlan::NoFaults);
        assert_eq!((fetch_count(&life, &clip(0)), fetch_count(&life, &clip(1))), (1, 0));
        assert_eq!((spent(&life, &key), service_spent(&life)), (0, 1));
        check(&keyed(&life, &key, clip(1)).await, ScenarioResult::New);
    });
}
