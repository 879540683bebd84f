//! Short links, and references that name no video.

use transcript_core::lookup::{FailureReason, LookupRequest, ReferenceError, VideoReference};

use crate::{
    scenarios::{ScenarioResult, check, fetch_count, look_up_as, new_key, run_scenario, service_spent},
    simulation::{
        ops::{SimCaller, Target},
        world::{ProcessLife, WorldConfig, linked_video},
    },
};

async fn refused(life: &ProcessLife, reference: VideoReference) -> ReferenceError {
    let request = LookupRequest::new(reference);
    life.lookups[0].look_up(request).await.expect_err("this reference must be rejected")
}

#[test]
fn short_link_is_resolved_once_and_stored() {
    let mut config = WorldConfig::default();
    config.lookup.misses_per_network_per_minute = 2;
    run_scenario(config, |life| async move {
        let key = new_key(&life).await;
        // Resolved and missed: counted once.
        let answer = look_up_as(&life, SimCaller::Anonymous(None), Target::short("ZMplain1")).await;
        check(&answer, ScenarioResult::None(FailureReason::NeedsVerification));
        assert_eq!(answer.video_id, linked_video().id());
        check(&look_up_as(&life, SimCaller::Key(key), Target::short("ZMplain1")).await, ScenarioResult::New);
        // Stored link and archived transcript: never counted.
        for _ in 0..4 {
            check(
                &look_up_as(&life, SimCaller::Anonymous(None), Target::short("ZMplain1")).await,
                ScenarioResult::Archived,
            );
        }
        let other = look_up_as(&life, SimCaller::Anonymous(None), Target::short("ZMplain2")).await;
        check(&other, ScenarioResult::Archived);
        // That was the network's second: resolving a link sends a request to its platform.
        let third = look_up_as(&life, SimCaller::Anonymous(None), Target::short("ZMplain3")).await;
        check(&third, ScenarioResult::None(FailureReason::FairUse));
        assert_eq!(third.video_id, "ZMplain3");
        assert_eq!((fetch_count(&life, &linked_video()), service_spent(&life)), (1, 1));
    });
}

#[test]
fn short_link_counts_as_attempt_of_key() {
    let mut config = WorldConfig::default();
    config.lookup.attempts_per_key_per_hour = 1;
    run_scenario(config, |life| async move {
        let key = new_key(&life).await;
        check(
            &look_up_as(&life, SimCaller::Key(key.clone()), Target::short("ZMplain1")).await,
            ScenarioResult::New,
        );
        check(
            &look_up_as(&life, SimCaller::Key(key.clone()), Target::short("ZMplain1")).await,
            ScenarioResult::Archived,
        );
        let answer = look_up_as(&life, SimCaller::Key(key), Target::short("ZMplain2")).await;
        check(&answer, ScenarioResult::None(FailureReason::FairUse));
    });
}

#[test]
fn expired_short_link_is_rejected() {
    run_scenario(WorldConfig::default(), |life| async move {
        let bad = refused(&life, VideoReference::Url("https://vm.tiktok.com/ZMgone11/".to_owned())).await;
        assert_eq!((bad.parameter, bad.message.as_str()), ("url", "This short link has expired."));
    });
}

#[test]
fn short_link_resolver_failure_is_fetch_error() {
    run_scenario(WorldConfig::default(), |life| async move {
        // This link fails randomly, half of the time.
        let mut failed = 0;
        for _ in 0..10 {
            let answer = look_up_as(&life, SimCaller::Anonymous(None), Target::short("ZMbad111")).await;
            if let ScenarioResult::None(FailureReason::FetchError) = crate::scenarios::end(&answer) {
                assert_eq!(answer.video_id, "ZMbad111");
                assert!(answer.watch_url.contains("/watch/short_video/vm:ZMbad111"));
                failed += 1;
            }
        }
        assert!(failed > 0);
    });
}

#[test]
fn invalid_reference_names_its_parameter() {
    run_scenario(WorldConfig::default(), |life| async move {
        for reference in [
            VideoReference::Id("too short".to_owned()),
            VideoReference::Url("https://example.com/watch?v=videoNumber".to_owned()),
            VideoReference::Url(String::new()),
        ] {
            let parameter = reference.parameter();
            let bad = refused(&life, reference).await;
            assert_eq!(bad.parameter, parameter);
            assert!(!bad.message.is_empty());
        }
    });
}
