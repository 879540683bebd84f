//! Scenarios of lookups, one per rule, in the simulated world with its oracle.

#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

mod accounts;
mod lookup;
mod nth_call;

use std::{sync::Arc, time::Duration};

use transcript_core::{
    engine::NoTranscript,
    lookup::{Availability, FailureReason, LookupResponse},
    video::{Platform, VideoId},
};

use crate::simulation::{
    ops::{SimCaller, SimRequest, Target, summary},
    run::end_all,
    supplier::{SupplierScript, SupplierStep},
    world::{ProcessLife, SimKey, SimWorld, WorldConfig},
};

/// Runs a scenario in a world of one process, and then checks all invariants.
fn run_scenario<F: Future<Output = ()>>(config: WorldConfig, scenario: impl FnOnce(ProcessLife) -> F) {
    run_scenario_with(&SimWorld::new(config), 1, scenario);
}

/// Runs a scenario with this many parallel engines.
fn run_scenario_with<F: Future<Output = ()>>(
    world: &Arc<SimWorld>,
    engines: usize,
    scenario: impl FnOnce(ProcessLife) -> F,
) {
    world.run_process(engines, None, |life| async move {
        scenario(life.clone()).await;
        end_all(&life).await;
        world.oracle.check_all_paid();
    });
    let violations = world.oracle.violations();
    assert!(violations.is_empty(), "{}", violations.join("\n"));
}

/// A YouTube video.
fn video() -> VideoId {
    VideoId::new(Platform::YouTube, "videoNumber").unwrap()
}

/// Another YouTube video.
fn other_video() -> VideoId {
    VideoId::new(Platform::YouTube, "other-video").unwrap()
}

/// Scripts the captions supplier: these steps, then the last one repeatedly.
fn script_captions(life: &ProcessLife, steps: &[SupplierStep]) {
    life.world.captions.set_script(script(steps));
}

fn script(steps: &[SupplierStep]) -> SupplierScript {
    let then = steps.last().cloned().expect("a script needs at least one step");
    SupplierScript::Steps { next: steps.to_vec().into(), then }
}

async fn new_key(life: &ProcessLife) -> SimKey {
    life.world.make_key(&life.lookups[0]).await
}

/// Looks up a video with a key.
async fn keyed(life: &ProcessLife, key: &SimKey, video: VideoId) -> LookupResponse {
    look_up_as(life, SimCaller::Key(key.clone()), Target::new(video)).await
}

/// Looks up a video without a key.
async fn unkeyed(life: &ProcessLife, video: VideoId) -> LookupResponse {
    look_up_as(life, SimCaller::Anonymous(None), Target::new(video)).await
}

async fn look_up_as(life: &ProcessLife, caller: SimCaller, target: Target) -> LookupResponse {
    look_up_on(life, 0, caller, target).await
}

async fn look_up_on(life: &ProcessLife, engine: usize, caller: SimCaller, target: Target) -> LookupResponse {
    let lookup = &life.lookups[engine];
    let request = SimRequest { life, lookup, caller, target, peek: false, fair: false };
    request.send(None).await.expect("the lookup must end in time")
}

/// Result of a lookup, without its message.
#[derive(Debug, PartialEq, Eq)]
enum ScenarioResult {
    New,
    Archived,
    None(FailureReason),
}

fn end(answer: &LookupResponse) -> ScenarioResult {
    match &answer.availability {
        Availability::Available { from_cache: false, .. } => ScenarioResult::New,
        Availability::Available { from_cache: true, .. } => ScenarioResult::Archived,
        Availability::Unavailable(NoTranscript { reason, .. }) => ScenarioResult::None(*reason),
    }
}

#[track_caller]
fn check(answer: &LookupResponse, expect: ScenarioResult) {
    assert_eq!(end(answer), expect, "{}", summary(answer));
}

#[track_caller]
fn check_message(answer: &LookupResponse, part: &str) {
    let Availability::Unavailable(NoTranscript { message, .. }) = &answer.availability else {
        panic!("unexpected transcript: {}", summary(answer));
    };
    assert!(message.contains(part), "{message:?} does not contain {part:?}");
}

/// The retry time of a response, in seconds.
#[track_caller]
fn retry_after_s(answer: &LookupResponse) -> Option<u64> {
    let Availability::Unavailable(NoTranscript { retry_after, .. }) = &answer.availability else {
        panic!("unexpected transcript: {}", summary(answer));
    };
    retry_after.map(|wait| wait.as_secs())
}

/// The spent amount of a key over all periods; no amount may be held.
fn spent(life: &ProcessLife, key: &SimKey) -> u64 {
    let sums = life.world.oracle.sums(&key.wallet);
    assert_eq!(sums.held, sums.spent + sums.returned + sums.expired, "an amount is still held");
    sums.spent
}

/// The spent amount of the service over all days.
fn service_spent(life: &ProcessLife) -> u64 {
    let service = transcript_core::ids::WalletId::new("service");
    life.world.oracle.sums(&service).spent
}

/// Number of fetches of a video.
fn fetch_count(life: &ProcessLife, video: &VideoId) -> u64 {
    life.world.oracle.fetch_count(video)
}

async fn advance(seconds: u64) {
    tokio::time::sleep(Duration::from_secs(seconds)).await;
}
