//! Limits of misses, attempts and keys.

use std::{net::IpAddr, time::Duration};

use transcript_core::{
    lookup::{CreateKeyOutcome, FailureReason, KeyOrigin},
    supplier::SupplyReason,
    video::{Platform, VideoId},
};

use crate::{
    scenarios::{
        ScenarioResult, advance, check, check_message, fetch_count, keyed, look_up_as, new_key, other_video,
        run_scenario, script_captions, service_spent, spent, video,
    },
    simulation::{
        ops::{SimCaller, SimRequest, Target},
        supplier::SupplierStep,
        world::{WorldConfig, key_request},
    },
};

fn address(text: &str) -> Option<IpAddr> {
    Some(text.parse().unwrap())
}

#[test]
fn misses_per_network_are_limited_per_minute() {
    let mut config = WorldConfig::default();
    config.lookup.misses_per_network_per_minute = 3;
    run_scenario(config, |life| async move {
        let key = new_key(&life).await;
        check(&keyed(&life, &key, other_video()).await, ScenarioResult::New);
        let miss = async |client: &str| {
            look_up_as(&life, SimCaller::Anonymous(address(client)), Target::new(video())).await
        };
        for _ in 0..3 {
            check(&miss("192.0.2.1").await, ScenarioResult::None(FailureReason::NeedsVerification));
        }
        advance(20).await;
        let refused = miss("192.0.2.1").await;
        check(&refused, ScenarioResult::None(FailureReason::FairUse));
        check_message(&refused, "Try again in 40 seconds");
        check(&miss("192.0.2.2").await, ScenarioResult::None(FailureReason::NeedsVerification));
        // Archived transcripts and lookups with a key do not count.
        let archived = Target::new(other_video());
        check(
            &look_up_as(&life, SimCaller::Anonymous(address("192.0.2.1")), archived).await,
            ScenarioResult::Archived,
        );
        check(&keyed(&life, &key, video()).await, ScenarioResult::New);
        advance(60).await;
        let third = Target::new(VideoId::new(video().platform(), "third-video").unwrap());
        let caller = SimCaller::Anonymous(address("192.0.2.1"));
        check(
            &look_up_as(&life, caller, third).await,
            ScenarioResult::None(FailureReason::NeedsVerification),
        );
    });
}

#[test]
fn failed_attempts_per_key_are_limited_per_hour() {
    let mut config = WorldConfig::default();
    config.lookup.attempts_per_key_per_hour = 3;
    run_scenario(config, |life| async move {
        let key = new_key(&life).await;
        // A success is no failed attempt.
        check(&keyed(&life, &key, other_video()).await, ScenarioResult::New);
        script_captions(&life, &[SupplierStep::fail(SupplyReason::Timeout)]);
        for _ in 0..3 {
            check(&keyed(&life, &key, video()).await, ScenarioResult::None(FailureReason::FetchError));
            advance(600).await;
        }
        // The first attempt was 30 minutes ago. The message names the time when it no longer counts; rejected
        // lookups do not extend it.
        for (reported, wait) in [("Try again in 30 minutes", 1_000), ("Try again in 14 minutes", 800)] {
            let refused = keyed(&life, &key, video()).await;
            check(&refused, ScenarioResult::None(FailureReason::FairUse));
            check_message(&refused, reported);
            advance(wait).await;
        }
        assert_eq!((fetch_count(&life, &video()), service_spent(&life)), (3, 4));
        check(&keyed(&life, &key, other_video()).await, ScenarioResult::Archived);
        check(&keyed(&life, &key, video()).await, ScenarioResult::None(FailureReason::FetchError));
        check(&keyed(&life, &key, video()).await, ScenarioResult::None(FailureReason::FairUse));
    });
}

/// One of many videos.
fn clip(number: u32) -> VideoId {
    VideoId::new(Platform::YouTube, &format!("clip-{number:06}")).unwrap()
}

#[test]
fn disconnected_lookup_counts_as_failed_attempt() {
    let mut config = WorldConfig::default();
    config.lookup.attempts_per_key_per_hour = 3;
    run_scenario(config, |life| async move {
        let key = new_key(&life).await;
        script_captions(&life, &[SupplierStep::fail(SupplyReason::Timeout).after(Duration::from_secs(5))]);
        for number in 0..3 {
            let (caller, target) = (SimCaller::Key(key.clone()), Target::new(clip(number)));
            let lookup = &life.lookups[0];
            let request = SimRequest { life: &life, lookup, caller, target, peek: false, fair: true };
            assert!(request.send(Some(Duration::from_secs(1))).await.is_none());
            advance(10).await;
        }
        check(&keyed(&life, &key, clip(3)).await, ScenarioResult::None(FailureReason::FairUse));
        assert_eq!((spent(&life, &key), service_spent(&life), fetch_count(&life, &clip(3))), (0, 3, 0));
    });
}

#[test]
fn failure_after_wait_timeout_counts_once() {
    let mut config = WorldConfig::default();
    config.lookup.attempts_per_key_per_hour = 2;
    run_scenario(config, |life| async move {
        let key = new_key(&life).await;
        script_captions(&life, &[SupplierStep::fail(SupplyReason::Timeout).after(Duration::from_secs(30))]);
        for number in 0..2 {
            let answer = keyed(&life, &key, clip(number)).await;
            check_message(&answer, "still being transcribed");
            // A repeated lookup joins the same work and receives its result.
            check(&keyed(&life, &key, clip(number)).await, ScenarioResult::None(FailureReason::FetchError));
            advance(10).await;
        }
        check(&keyed(&life, &key, clip(2)).await, ScenarioResult::None(FailureReason::FairUse));
        assert_eq!((spent(&life, &key), service_spent(&life), fetch_count(&life, &clip(2))), (0, 2, 0));
    });
}

#[test]
fn keys_per_network_are_limited_per_day() {
    let mut config = WorldConfig::default();
    config.lookup.mint_per_network_per_day = 2;
    run_scenario(config, |life| async move {
        let make = async |client| {
            let request = key_request(KeyOrigin::Network(address(client)));
            life.lookups[0].keys().create(request).await.unwrap()
        };
        for _ in 0..2 {
            assert!(matches!(make("192.0.2.1").await, CreateKeyOutcome::Created(_)));
        }
        let CreateKeyOutcome::Limited { retry_after_ms } = make("192.0.2.1").await else {
            panic!("a third key on one day was created");
        };
        assert!(matches!(make("192.0.2.2").await, CreateKeyOutcome::Created(_)));
        tokio::time::sleep(Duration::from_millis(retry_after_ms)).await;
        assert!(matches!(make("192.0.2.1").await, CreateKeyOutcome::Created(_)));
    });
}
