//! Runs each story with a fault at the n-th storage call, for n = 1, 2, …, until no fault is injected.
//!
//! Each time nothing is lost, nothing is charged twice or for nothing, and every call ends.

use std::{sync::Arc, time::Duration};

use futures_util::future::{BoxFuture, FutureExt};
use tokio::time::timeout;
use transcript_core::{
    archive::TrackSelector,
    engine::{FetchOutcome, FetchRequest},
    lookup::{CreateKeyOutcome, KeyOrigin},
    supplier::SupplyReason,
    transcript::LanguageTag,
};

use super::{ScenarioResult, advance, check, end, other_video, script, script_captions, video};
use crate::simulation::{
    fault_plan::{FaultKind, FaultPlan},
    ops::{SimCaller, SimRequest, Target},
    run::end_all,
    supplier::SupplierStep,
    world::{ProcessLife, SimKey, SimWorld, WorldConfig, key_request, linked_video},
};

/// Upper bound of the storage calls of a story.
const CALLS_MAX: u64 = 3_000;

/// State at the start of a story: two keys with one transcript each, one without allowance, and an archived
/// video.
#[derive(Clone, Debug)]
struct LookupFixture {
    life: ProcessLife,
    one: SimKey,
    two: SimKey,
    poor: SimKey,
}

impl LookupFixture {
    async fn set_up(life: ProcessLife) -> Self {
        let world = Arc::clone(&life.world);
        let lookup = &life.lookups[0];
        let mut keys = Vec::new();
        for _ in 0..3 {
            keys.push(world.make_key(lookup).await);
        }
        let [one, two, poor] = keys.try_into().unwrap();
        let fixture = Self { one, two, poor, life };
        let answer = fixture.look_up(&fixture.poor, other_video()).await;
        check(&answer.unwrap(), ScenarioResult::New);
        fixture
    }

    async fn look_up(
        &self,
        key: &SimKey,
        video: transcript_core::video::VideoId,
    ) -> Option<transcript_core::lookup::LookupResponse> {
        self.look_up_as(SimCaller::Key(key.clone()), Target::new(video)).await
    }

    async fn look_up_as(
        &self,
        caller: SimCaller,
        target: Target,
    ) -> Option<transcript_core::lookup::LookupResponse> {
        self.look_up_on(0, caller, target).await
    }

    async fn look_up_on(
        &self,
        engine: usize,
        caller: SimCaller,
        target: Target,
    ) -> Option<transcript_core::lookup::LookupResponse> {
        let life = &self.life;
        let request =
            SimRequest { life, lookup: &life.lookups[engine], caller, target, peek: false, fair: false };
        request.send(None).await
    }
}

type LookupStory = for<'a> fn(&'a LookupFixture) -> BoxFuture<'a, ()>;

/// Runs a story with a fault at the n-th storage call; returns whether the fault was injected.
fn run_story(story: LookupStory, n: u64, fault: FaultKind) -> bool {
    let mut config = WorldConfig::default();
    config.lookup.free_per_month = 1;
    // Fewer lease polls, and so fewer calls to fail.
    config.engine.lease_poll = Duration::from_secs(2);
    let world = SimWorld::new(config);
    let fault_injected = world.run_process(2, None, |life| async move {
        let fixture = LookupFixture::set_up(life).await;
        world_of(&fixture).gate.set_faults(FaultPlan::Nth { n, fault });
        story(&fixture).await;
        let fault_injected = world_of(&fixture).gate.fault_injected();
        world_of(&fixture).gate.set_faults(FaultPlan::NoFaults);
        end_all(&fixture.life).await;
        check_service_works(&fixture).await;
        fault_injected
    });
    let violations = world.oracle.violations();
    assert!(violations.is_empty(), "call {n}, {fault:?}:\n{}", violations.join("\n"));
    fault_injected.expect("the run must not crash")
}

fn world_of(fixture: &LookupFixture) -> &SimWorld {
    &fixture.life.world
}

/// Final check: every transcript is available, and free once archived.
async fn check_service_works(fixture: &LookupFixture) {
    let life = &fixture.life;
    script_captions(life, &[SupplierStep::give(&["en"])]);
    // Absences expire.
    advance(25 * 3_600).await;
    life.world.archive.withdraw(&video(), false, life.now()).await.unwrap();
    let fresh = life.world.make_key(&life.lookups[0]).await;
    for video in [video(), linked_video()] {
        let answer = fixture.look_up(&fresh, video.clone()).await.unwrap();
        assert_ne!(end(&answer), ScenarioResult::None(transcript_core::lookup::FailureReason::FetchError));
        let key = life.world.make_key(&life.lookups[0]).await;
        let answer = fixture.look_up(&key, video.clone()).await.unwrap();
        assert!(matches!(end(&answer), ScenarioResult::New | ScenarioResult::Archived));
        check(
            &fixture.look_up_as(SimCaller::Anonymous(None), Target::new(video)).await.unwrap(),
            ScenarioResult::Archived,
        );
    }
    check(
        &fixture.look_up_as(SimCaller::Anonymous(None), Target::new(other_video())).await.unwrap(),
        ScenarioResult::Archived,
    );
    end_all(life).await;
}

/// Runs a story with later and later faults, until the fault comes after the last call.
fn check_story(story: LookupStory) {
    for fault in FaultKind::ALL {
        let calls = (1..CALLS_MAX).find(|n| !run_story(story, *n, fault));
        let calls = calls.expect("a story must end");
        assert!(calls > 1, "the story makes no storage call");
    }
}

#[test]
fn new_transcript_survives_each_fault() {
    check_story(|fixture| {
        async {
            fixture.look_up(&fixture.one, video()).await;
        }
        .boxed()
    });
}

#[test]
fn two_concurrent_keys_survive_each_fault() {
    check_story(|fixture| {
        async {
            tokio::join!(fixture.look_up(&fixture.one, video()), fixture.look_up(&fixture.two, video()));
        }
        .boxed()
    });
}

#[test]
fn rejected_key_then_next_survives_each_fault() {
    check_story(|fixture| {
        async {
            tokio::join!(fixture.look_up(&fixture.poor, video()), fixture.look_up(&fixture.one, video()));
        }
        .boxed()
    });
}

#[test]
fn absence_survives_each_fault() {
    check_story(|fixture| {
        async {
            script_captions(&fixture.life, &[SupplierStep::fail(SupplyReason::NoCaptions)]);
            fixture.look_up(&fixture.one, video()).await;
            fixture.look_up(&fixture.one, video()).await;
        }
        .boxed()
    });
}

#[test]
fn failure_and_retry_survive_each_fault() {
    check_story(|fixture| {
        async {
            fixture.life.world.captions.set_script(script(&[
                SupplierStep::fail(SupplyReason::Timeout),
                SupplierStep::give(&["en", "fr"]),
            ]));
            fixture.look_up(&fixture.one, video()).await;
            fixture.look_up(&fixture.one, video()).await;
        }
        .boxed()
    });
}

#[test]
fn withdrawal_during_fetch_survives_each_fault() {
    check_story(|fixture| {
        async {
            script_captions(&fixture.life, &[SupplierStep::give(&["en"]).after(Duration::from_secs(5))]);
            let archive = &fixture.life.world.archive;
            let withdraw = async {
                advance(2).await;
                let _ = timeout(Duration::from_secs(5), archive.withdraw(&video(), true, fixture.life.now()))
                    .await;
            };
            tokio::join!(fixture.look_up(&fixture.one, video()), withdraw);
            let _ =
                timeout(Duration::from_secs(5), archive.withdraw(&video(), false, fixture.life.now())).await;
        }
        .boxed()
    });
}

#[test]
fn long_fetch_with_renewals_survives_each_fault() {
    check_story(|fixture| {
        async {
            script_captions(&fixture.life, &[SupplierStep::give(&["en"]).after(Duration::from_secs(100))]);
            fixture.look_up(&fixture.one, video()).await;
            advance(90).await;
            fixture.look_up(&fixture.two, video()).await;
        }
        .boxed()
    });
}

#[test]
fn long_fetch_awaited_by_other_server_survives_each_fault() {
    check_story(|fixture| {
        async {
            script_captions(&fixture.life, &[SupplierStep::give(&["en"]).after(Duration::from_secs(130))]);
            let repeated_lookups = async {
                for _ in 0..6 {
                    let caller = SimCaller::Key(fixture.two.clone());
                    fixture.look_up_on(1, caller, Target::new(video())).await;
                }
            };
            tokio::join!(fixture.look_up(&fixture.one, video()), repeated_lookups);
        }
        .boxed()
    });
}

/// The caller that cannot pay leaves, so the lease is released while the next caller starts.
#[test]
fn replaced_caller_survives_each_fault() {
    check_story(|fixture| {
        async {
            script_captions(&fixture.life, &[SupplierStep::give(&["en"]).after(Duration::from_secs(90))]);
            fixture.look_up(&fixture.poor, video()).await;
            fixture.look_up(&fixture.one, video()).await;
            for _ in 0..3 {
                let caller = SimCaller::Key(fixture.two.clone());
                fixture.look_up_on(1, caller, Target::new(video())).await;
            }
        }
        .boxed()
    });
}

#[test]
fn language_fetch_survives_each_fault() {
    check_story(|fixture| {
        async {
            script_captions(&fixture.life, &[SupplierStep::give(&["fr", "en"])]);
            let selector = TrackSelector::Language(LanguageTag::from_canonical("fr"));
            let transcripts = fixture.life.lookups[0].transcripts();
            let outcome = transcripts
                .get(FetchRequest { video: video(), selector: selector.clone(), payer: None })
                .await;
            if let FetchOutcome::Fetched(stored) = outcome {
                assert_eq!(stored.transcript.track.language.as_str(), "fr");
            }
            fixture.look_up(&fixture.one, video()).await;
        }
        .boxed()
    });
}

#[test]
fn short_link_survives_each_fault() {
    check_story(|fixture| {
        async {
            fixture.look_up_as(SimCaller::Anonymous(None), Target::short("ZMplain1")).await;
            fixture.look_up_as(SimCaller::Key(fixture.one.clone()), Target::short("ZMplain1")).await;
        }
        .boxed()
    });
}

#[test]
fn new_key_and_status_survive_each_fault() {
    check_story(|fixture| {
        async {
            let lookup = &fixture.life.lookups[0];
            let request = key_request(KeyOrigin::Network(None));
            let Ok(CreateKeyOutcome::Created(created)) = lookup.keys().create(request).await else { return };
            let status = lookup.keys().status(created.key.reveal(), None).await;
            assert!(!matches!(status, Ok(None)), "an issued key is not live");
        }
        .boxed()
    });
}

#[test]
fn archived_transcript_survives_each_fault() {
    check_story(|fixture| {
        async {
            for _ in 0..2 {
                let answer = fixture.look_up(&fixture.one, other_video()).await.unwrap();
                assert_ne!(end(&answer), ScenarioResult::New);
            }
            fixture.look_up_as(SimCaller::Anonymous(None), Target::new(other_video())).await;
        }
        .boxed()
    });
}
