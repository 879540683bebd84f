//! Supplier failures: reported reason, stored absence and retry.

use std::{sync::atomic::Ordering, time::Duration};

use transcript_core::{
    Timestamp,
    lookup::FailureReason,
    supplier::SupplyReason,
    video::{Platform, VideoId},
};

use crate::{
    scenarios::{
        ScenarioResult, advance, check, check_message, fetch_count, keyed, new_key, retry_after_s,
        run_scenario, run_scenario_with, script, script_captions, service_spent, spent, unkeyed, video,
    },
    simulation::{
        ops::summary,
        supplier::{SupplierAction, SupplierStep, every_reason},
        world::{NOON_MS, SimWorld, WorldConfig},
    },
};

/// The reported reason of a supplier's failure, and for how many seconds the absence is stored.
fn expected_outcome(reason: &SupplyReason) -> (FailureReason, Option<u64>) {
    use FailureReason::{ConfigError, FetchError, NoCaptions, RateLimited};
    use SupplyReason as R;
    match reason {
        R::NoCaptions | R::NoLanguage(_) => (NoCaptions, Some(6 * 3_600)),
        R::Private | R::Removed | R::Region | R::Payment => (NoCaptions, Some(24 * 3_600)),
        R::Age | R::Members | R::Login | R::Live | R::Upcoming(None) => (NoCaptions, Some(15 * 60)),
        // Until the start: 90 seconds after the scenario's start, minus the fetch time of 0.8.
        R::Upcoming(Some(_)) => (NoCaptions, Some(89)),
        R::Throttled(_) | R::BotCheck | R::OtherVideo => (RateLimited, None),
        R::Timeout | R::Unreachable | R::PlatformFault | R::Unreadable | R::Cancelled => (FetchError, None),
        R::Stale | R::Misconfigured => (ConfigError, None),
        other => panic!("{other:?} has no expected outcome yet"),
    }
}

#[test]
fn supplier_reason_has_its_outcome_and_absence() {
    for reason in every_reason(Timestamp::from_millis(NOON_MS)) {
        let (reported, remembered) = expected_outcome(&reason);
        run_scenario(WorldConfig::default(), |life| async move {
            let key = new_key(&life).await;
            script_captions(&life, &[SupplierStep::fail(reason.clone()), SupplierStep::give(&["en"])]);
            let answer = keyed(&life, &key, video()).await;
            check(&answer, ScenarioResult::None(reported));
            check_message(&answer, reason.as_str());
            assert_eq!((spent(&life, &key), service_spent(&life)), (0, 1), "{reason:?}");
            if let Some(seconds) = remembered {
                let wait = retry_after_s(&answer);
                assert!(wait.is_some_and(|wait| wait.abs_diff(seconds) <= 1), "{reason:?}: {wait:?}");
                advance(seconds - 1).await;
                let again = keyed(&life, &key, video()).await;
                check(&again, ScenarioResult::None(reported));
                check_message(&again, reason.as_str());
                assert_eq!((fetch_count(&life, &video()), service_spent(&life)), (1, 1), "{reason:?}");
                advance(2).await;
            }
            let later = keyed(&life, &key, video()).await;
            assert!(
                matches!(crate::scenarios::end(&later), ScenarioResult::New),
                "{reason:?}: {}",
                summary(&later)
            );
        });
    }
}

#[test]
fn invalid_supplier_output_is_failure() {
    let step = |action| SupplierStep { takes: Duration::from_millis(10), action };
    for (action, reported) in [
        (SupplierAction::Panic, FailureReason::FetchError),
        (SupplierAction::OtherVideo, FailureReason::RateLimited),
        (SupplierAction::NoTracks, FailureReason::FetchError),
        (SupplierAction::NoWords, FailureReason::FetchError),
    ] {
        run_scenario(WorldConfig::default(), |life| async move {
            let key = new_key(&life).await;
            script_captions(&life, &[step(action), step(SupplierAction::Give(vec!["en"]))]);
            check(&keyed(&life, &key, video()).await, ScenarioResult::None(reported));
            assert_eq!(spent(&life, &key), 0);
            check(&keyed(&life, &key, video()).await, ScenarioResult::New);
        });
    }
}

#[test]
fn failure_without_upstream_request_is_free() {
    let mut config = WorldConfig::default();
    config.lookup.attempts_per_key_per_hour = 2;
    config.lookup.service_per_day = 2;
    let world = SimWorld::new(config);
    world.has_speech.store(true, Ordering::Relaxed);
    run_scenario_with(&world, 1, |life| async move {
        let key = new_key(&life).await;
        let left_alone = || SupplierStep::decline(SupplyReason::Throttled(None));
        script_captions(&life, &[left_alone()]);
        life.world.speech.set_script(script(&[left_alone()]));
        for _ in 0..5 {
            check(&keyed(&life, &key, video()).await, ScenarioResult::None(FailureReason::RateLimited));
        }
        assert_eq!((spent(&life, &key), service_spent(&life)), (0, 0));
        // One supplier that was called is enough for a charge.
        life.world.speech.set_script(script(&[SupplierStep::fail(SupplyReason::Timeout)]));
        check(&keyed(&life, &key, video()).await, ScenarioResult::None(FailureReason::RateLimited));
        assert_eq!((spent(&life, &key), service_spent(&life)), (0, 1));
    });
}

#[test]
fn silent_supplier_is_cancelled_at_work_timeout() {
    let mut config = WorldConfig::default();
    config.engine.work_timeout = Duration::from_secs(120);
    run_scenario(config, |life| async move {
        let key = new_key(&life).await;
        let never = SupplierStep { takes: Duration::ZERO, action: SupplierAction::Never };
        script_captions(&life, &[never, SupplierStep::give(&["en"])]);
        check_message(&keyed(&life, &key, video()).await, "still being transcribed");
        advance(100).await;
        assert_eq!((spent(&life, &key), service_spent(&life)), (0, 1));
        check(&keyed(&life, &key, video()).await, ScenarioResult::New);
    });
}

#[test]
fn next_supplier_is_called_after_failure() {
    let world = SimWorld::new(WorldConfig::default());
    world.has_speech.store(true, Ordering::Relaxed);
    run_scenario_with(&world, 1, |life| async move {
        let key = new_key(&life).await;
        script_captions(&life, &[SupplierStep::fail(SupplyReason::NoCaptions)]);
        let answer = keyed(&life, &key, video()).await;
        check(&answer, ScenarioResult::New);
        let transcript_core::lookup::Availability::Available { stored, .. } = &answer.availability else {
            panic!("no transcript");
        };
        assert_eq!(stored.transcript.source, "speech");
        assert_eq!((spent(&life, &key), fetch_count(&life, &video())), (1, 2));
    });
}

#[test]
fn no_captions_needs_agreement_of_all_suppliers() {
    let world = SimWorld::new(WorldConfig::default());
    world.has_speech.store(true, Ordering::Relaxed);
    run_scenario_with(&world, 1, |life| async move {
        let key = new_key(&life).await;
        script_captions(&life, &[SupplierStep::fail(SupplyReason::NoCaptions)]);
        life.world.speech.set_script(script(&[SupplierStep::fail(SupplyReason::Timeout)]));
        check(&keyed(&life, &key, video()).await, ScenarioResult::None(FailureReason::FetchError));
        life.world.speech.set_script(script(&[SupplierStep::fail(SupplyReason::NoCaptions)]));
        check(&keyed(&life, &key, video()).await, ScenarioResult::None(FailureReason::NoCaptions));
        assert_eq!(fetch_count(&life, &video()), 4);
        check(&keyed(&life, &key, video()).await, ScenarioResult::None(FailureReason::NoCaptions));
        assert_eq!(fetch_count(&life, &video()), 4);
    });
}

#[test]
fn final_reason_of_first_supplier_is_stored() {
    let world = SimWorld::new(WorldConfig::default());
    world.has_speech.store(true, Ordering::Relaxed);
    run_scenario_with(&world, 1, |life| async move {
        let key = new_key(&life).await;
        script_captions(&life, &[SupplierStep::fail(SupplyReason::Private)]);
        for _ in 0..3 {
            check(&keyed(&life, &key, video()).await, ScenarioResult::None(FailureReason::NoCaptions));
        }
        assert_eq!((fetch_count(&life, &video()), service_spent(&life)), (1, 1));
    });
}

#[test]
fn new_supplier_voids_absence() {
    let world = SimWorld::new(WorldConfig::default());
    let key = world.run_process(1, None, |life| async move {
        let key = new_key(&life).await;
        script_captions(&life, &[SupplierStep::fail(SupplyReason::NoCaptions)]);
        check(&keyed(&life, &key, video()).await, ScenarioResult::None(FailureReason::NoCaptions));
        key
    });
    world.has_speech.store(true, Ordering::Relaxed);
    run_scenario_with(&world, 1, |life| async move {
        check(&keyed(&life, &key.unwrap(), video()).await, ScenarioResult::New);
    });
}

#[test]
fn platform_without_supplier_is_config_error() {
    let reel = VideoId::new(Platform::Instagram, "CReel-0").unwrap();
    run_scenario(WorldConfig::default(), |life| async move {
        let key = new_key(&life).await;
        check(&keyed(&life, &key, reel.clone()).await, ScenarioResult::None(FailureReason::ConfigError));
        check(&unkeyed(&life, reel.clone()).await, ScenarioResult::None(FailureReason::NeedsVerification));
        assert_eq!((service_spent(&life), life.world.oracle.sums(&key.wallet).held), (0, 0));
    });
}

#[test]
fn withdrawn_video_is_hidden_until_restored() {
    run_scenario(WorldConfig::default(), |life| async move {
        let key = new_key(&life).await;
        check(&keyed(&life, &key, video()).await, ScenarioResult::New);
        life.world.archive.withdraw(&video(), true, life.now()).await.unwrap();
        for answer in [keyed(&life, &key, video()).await, unkeyed(&life, video()).await] {
            check(&answer, ScenarioResult::None(FailureReason::NoCaptions));
            check_message(&answer, "withdrawn by the operator");
        }
        life.world.archive.withdraw(&video(), false, life.now()).await.unwrap();
        check(&unkeyed(&life, video()).await, ScenarioResult::Archived);
        assert_eq!((spent(&life, &key), fetch_count(&life, &video())), (1, 1));
    });
}
