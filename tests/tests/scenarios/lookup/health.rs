//! Circuit breakers of suppliers.

use std::{sync::atomic::Ordering, time::Duration};

use transcript_core::{
    engine::BreakerEvent,
    lookup::{Availability, FailureReason, LookupResponse},
    supplier::SupplyReason,
    video::{Platform, VideoId},
};

use crate::{
    scenarios::{
        ScenarioResult, advance, check, check_message, fetch_count, keyed, new_key, retry_after_s,
        run_scenario, run_scenario_with, script, script_captions, service_spent, spent,
    },
    simulation::{
        supplier::{SupplierAction, SupplierStep},
        world::{ProcessLife, SimKey, SimWorld, WorldConfig},
    },
};

/// One of many videos.
fn clip(number: u32) -> VideoId {
    VideoId::new(Platform::YouTube, &format!("clip-{number:06}")).unwrap()
}

/// Lets the captions fail for these videos, one after another.
async fn fail_with(life: &ProcessLife, key: &SimKey, numbers: std::ops::Range<u32>, reason: &SupplyReason) {
    script_captions(life, &[SupplierStep::fail(reason.clone())]);
    for number in numbers {
        keyed(life, key, clip(number)).await;
    }
}

/// Recorded breaker events; a closed breaker has the reason `works`.
fn breaker_events(life: &ProcessLife) -> Vec<(String, Platform, &'static str, u32)> {
    let to_row = |BreakerEvent { supplier, platform, cooldown }| {
        let (reason, in_a_row) =
            cooldown.map_or(("works", 0), |cooldown| (cooldown.reason.as_str(), cooldown.consecutive));
        (supplier, platform, reason, in_a_row)
    };
    life.world.listener.events().into_iter().map(to_row).collect()
}

fn event_row(
    platform: Platform,
    reason: &'static str,
    in_a_row: u32,
) -> (String, Platform, &'static str, u32) {
    ("captions".to_owned(), platform, reason, in_a_row)
}

#[test]
fn breaker_opens_after_repeated_failures_and_closes_again() {
    run_scenario(WorldConfig::default(), |life| async move {
        let key = new_key(&life).await;
        fail_with(&life, &key, 0..5, &SupplyReason::BotCheck).await;
        script_captions(&life, &[SupplierStep::give(&["en"])]);
        let (before, at) = (service_spent(&life), life.now());
        for _ in 0..3 {
            let answer = keyed(&life, &key, clip(5)).await;
            check(&answer, ScenarioResult::None(FailureReason::RateLimited));
            check_message(&answer, "proof that the client is not a bot");
            check_message(&answer, "Try again in 30 seconds");
            assert_eq!(retry_after_s(&answer), Some(30));
        }
        // Immediate, without a fetch, a charge or a counted attempt.
        assert_eq!((life.now(), fetch_count(&life, &clip(5))), (at, 0));
        assert_eq!((spent(&life, &key), service_spent(&life)), (0, before));
        // The breaker of another platform stays closed.
        let post = VideoId::new(Platform::TikTok, "7000000000000000009").unwrap();
        check(&keyed(&life, &key, post).await, ScenarioResult::New);
        assert_eq!(breaker_events(&life), [event_row(Platform::YouTube, "bot_check", 1)]);
        advance(31).await;
        check(&keyed(&life, &key, clip(5)).await, ScenarioResult::New);
        assert_eq!(breaker_events(&life)[1..], [event_row(Platform::YouTube, "works", 0)]);
        check(&keyed(&life, &key, clip(6)).await, ScenarioResult::New);
    });
}

#[test]
fn breaker_facts_about_videos_do_not_open_it() {
    for reason in [SupplyReason::NoCaptions, SupplyReason::Private, SupplyReason::Removed] {
        run_scenario(WorldConfig::default(), |life| async move {
            let key = new_key(&life).await;
            fail_with(&life, &key, 0..20, &reason).await;
            script_captions(&life, &[SupplierStep::give(&["en"])]);
            check(&keyed(&life, &key, clip(20)).await, ScenarioResult::New);
            assert!(breaker_events(&life).is_empty());
        });
    }
}

#[test]
fn breaker_panics_of_supplier_do_not_open_it() {
    run_scenario(WorldConfig::default(), |life| async move {
        let key = new_key(&life).await;
        let panic = SupplierStep { takes: Duration::ZERO, action: SupplierAction::Panic };
        script_captions(&life, &[panic]);
        for number in 0..8 {
            let Availability::Unavailable(none) = keyed(&life, &key, clip(number)).await.availability else {
                panic!("no supplier returned a transcript");
            };
            let cause = none.cause.as_ref().map(|cause| cause.error().to_string()).unwrap_or_default();
            assert!(none.is_defect() && cause.contains("the supplier panicked"), "{none:?}: {cause}");
        }
        script_captions(&life, &[SupplierStep::give(&["en"])]);
        check(&keyed(&life, &key, clip(8)).await, ScenarioResult::New);
        assert!(breaker_events(&life).is_empty());
    });
}

#[test]
fn breaker_single_failing_video_stays_closed() {
    run_scenario(WorldConfig::default(), |life| async move {
        let key = new_key(&life).await;
        script_captions(&life, &[SupplierStep::fail(SupplyReason::Unreadable)]);
        for _ in 0..20 {
            check(&keyed(&life, &key, clip(0)).await, ScenarioResult::None(FailureReason::FetchError));
        }
        assert_eq!((fetch_count(&life, &clip(0)), breaker_events(&life).len()), (20, 0));
    });
}

#[test]
fn breaker_open_next_supplier_is_called() {
    let world = SimWorld::new(WorldConfig::default());
    world.has_speech.store(true, Ordering::Relaxed);
    run_scenario_with(&world, 1, |life| async move {
        let key = new_key(&life).await;
        fail_with(&life, &key, 0..5, &SupplyReason::Timeout).await;
        let answer = keyed(&life, &key, clip(5)).await;
        check(&answer, ScenarioResult::New);
        let Availability::Available { stored, .. } = &answer.availability else { panic!("no transcript") };
        assert_eq!((stored.transcript.source.as_str(), fetch_count(&life, &clip(5))), ("speech", 1));
        // An absence at one supplier is not final while the other is not called: it is not stored.
        life.world.speech.set_script(script(&[SupplierStep::fail(SupplyReason::NoCaptions)]));
        for _ in 0..2 {
            let answer = keyed(&life, &key, clip(6)).await;
            check(&answer, ScenarioResult::None(FailureReason::FetchError));
            check_message(&answer, "The source captions failed for several YouTube videos in a row");
        }
        assert_eq!(fetch_count(&life, &clip(6)), 2);
        // A final reason is stored whichever supplier reports it.
        life.world.speech.set_script(script(&[SupplierStep::fail(SupplyReason::Private)]));
        check(&keyed(&life, &key, clip(7)).await, ScenarioResult::None(FailureReason::NoCaptions));
        check(&keyed(&life, &key, clip(7)).await, ScenarioResult::None(FailureReason::NoCaptions));
        assert_eq!(fetch_count(&life, &clip(7)), 1);
    });
}

/// Responses of concurrent lookups of these videos.
async fn all(life: &ProcessLife, key: &SimKey, numbers: std::ops::Range<u32>) -> Vec<LookupResponse> {
    let mut answers = tokio::task::JoinSet::new();
    for number in numbers {
        let (life, key) = (life.clone(), key.clone());
        answers.spawn(async move { keyed(&life, &key, clip(number)).await });
    }
    answers.join_all().await
}

#[test]
fn breaker_half_open_single_trial_decides_for_all() {
    run_scenario(WorldConfig::default(), |life| async move {
        let key = new_key(&life).await;
        fail_with(&life, &key, 0..5, &SupplyReason::Timeout).await;
        let total_fetches = |life: &ProcessLife, numbers: std::ops::Range<u32>| -> u64 {
            numbers.map(|number| fetch_count(life, &clip(number))).sum()
        };
        // Two failed trials: each cooldown is longer.
        for (in_a_row, again) in [(2, "60 seconds"), (3, "2 minutes")] {
            advance(if in_a_row == 2 { 30 } else { 60 }).await;
            let from = in_a_row * 100;
            for answer in all(&life, &key, from..from + 10).await {
                check(&answer, ScenarioResult::None(FailureReason::FetchError));
            }
            assert_eq!(total_fetches(&life, from..from + 10), 1);
            assert_eq!(
                breaker_events(&life).last(),
                Some(&event_row(Platform::YouTube, "timeout", in_a_row))
            );
            check_message(&keyed(&life, &key, clip(0)).await, again);
        }
        script_captions(&life, &[SupplierStep::give(&["en"])]);
        advance(120).await;
        let answers = all(&life, &key, 500..510).await;
        let new =
            answers.iter().filter(|answer| crate::scenarios::end(answer) == ScenarioResult::New).count();
        assert_eq!((new, total_fetches(&life, 500..510)), (1, 1));
        // The breaker is closed: all lookups fetch again.
        for answer in all(&life, &key, 600..610).await {
            check(&answer, ScenarioResult::New);
        }
    });
}

#[test]
fn breaker_cancelled_trial_counts_as_failure() {
    let mut config = WorldConfig::default();
    config.engine.work_timeout = Duration::from_secs(20);
    run_scenario(config, |life| async move {
        let key = new_key(&life).await;
        fail_with(&life, &key, 0..5, &SupplyReason::Timeout).await;
        advance(30).await;
        // The trial is cancelled at its timeout.
        script_captions(
            &life,
            &[SupplierStep::give(&["en"]).after(Duration::from_secs(500)), SupplierStep::give(&["en"])],
        );
        check(&keyed(&life, &key, clip(9)).await, ScenarioResult::None(FailureReason::FetchError));
        assert_eq!(breaker_events(&life).last(), Some(&event_row(Platform::YouTube, "timeout", 2)));
        advance(60).await;
        check(&keyed(&life, &key, clip(9)).await, ScenarioResult::New);
    });
}

#[test]
fn breaker_cooldown_respects_retry_after() {
    run_scenario(WorldConfig::default(), |life| async move {
        let key = new_key(&life).await;
        let named = SupplyReason::Throttled(Some(Duration::from_secs(300)));
        fail_with(&life, &key, 0..5, &named).await;
        advance(290).await;
        let answer = keyed(&life, &key, clip(6)).await;
        check(&answer, ScenarioResult::None(FailureReason::RateLimited));
        check_message(&answer, "10 seconds");
        assert_eq!(fetch_count(&life, &clip(6)), 0);
        script_captions(&life, &[SupplierStep::give(&["en"])]);
        advance(10).await;
        check(&keyed(&life, &key, clip(6)).await, ScenarioResult::New);
    });
}
