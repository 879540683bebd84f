//! Straight stories about the look-up, each of one rule, in the simulation's world; the oracle listens.

#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

mod accounts;
mod lookup;
mod nth_call;

use std::{sync::Arc, time::Duration};

use transcript_core::{
    lookup::{Availability, FailureReason, LookupAnswer},
    video::{Platform, VideoId},
};

use crate::simulation::{
    ops::{Asking, Caller, Target, summary},
    run::end_all,
    supplier::{Act, Script},
    world::{Life, Plan, SimKey, World},
};

/// Plays a scene in a world of one process, and then looks whether all ended well.
fn play<F: Future<Output = ()>>(plan: Plan, scene: impl FnOnce(Life) -> F) {
    play_with(&World::new(plan), 1, scene);
}

/// Plays a scene with this many engines side by side.
fn play_with<F: Future<Output = ()>>(world: &Arc<World>, engines: usize, scene: impl FnOnce(Life) -> F) {
    world.live(engines, None, |life| async move {
        scene(life.clone()).await;
        end_all(&life).await;
        world.oracle.check_all_paid();
    });
    let wrongs = world.oracle.wrongs();
    assert!(wrongs.is_empty(), "{}", wrongs.join("\n"));
}

/// A video on the long-form site.
fn video() -> VideoId {
    VideoId::new(Platform::VideoSite, "videoNumber").unwrap()
}

/// Another one.
fn other_video() -> VideoId {
    VideoId::new(Platform::VideoSite, "other-video").unwrap()
}

/// The captions supplier does these, one by one, then always the last.
fn captions_do(life: &Life, acts: &[Act]) {
    life.world.captions.set_script(script(acts));
}

fn script(acts: &[Act]) -> Script {
    let then = acts.last().cloned().expect("a script has at least one act");
    Script::Acts { next: acts.to_vec().into(), then }
}

/// A new key.
async fn new_key(life: &Life) -> SimKey {
    life.world.make_key(&life.lookups[0]).await
}

/// A look-up of a video with a key.
async fn keyed(life: &Life, key: &SimKey, video: VideoId) -> LookupAnswer {
    ask(life, Caller::Key(key.clone()), Target::of(video)).await
}

/// A look-up of a video without a key.
async fn unkeyed(life: &Life, video: VideoId) -> LookupAnswer {
    ask(life, Caller::Nobody(None), Target::of(video)).await
}

async fn ask(life: &Life, caller: Caller, target: Target) -> LookupAnswer {
    ask_engine(life, 0, caller, target).await
}

async fn ask_engine(life: &Life, engine: usize, caller: Caller, target: Target) -> LookupAnswer {
    let lookup = &life.lookups[engine];
    let asking = Asking { life, lookup, caller, target, peek: false, fair: false };
    asking.ask(None).await.expect("an answer in time")
}

/// How a look-up ended, without what it said.
#[derive(Debug, PartialEq, Eq)]
enum End {
    New,
    Archived,
    None(FailureReason),
}

fn end(answer: &LookupAnswer) -> End {
    match &answer.availability {
        Availability::Available { from_cache: false, .. } => End::New,
        Availability::Available { from_cache: true, .. } => End::Archived,
        Availability::Unavailable { reason, .. } => End::None(*reason),
    }
}

#[track_caller]
fn check(answer: &LookupAnswer, expect: End) {
    assert_eq!(end(answer), expect, "{}", summary(answer));
}

#[track_caller]
fn check_message(answer: &LookupAnswer, part: &str) {
    let Availability::Unavailable { message, .. } = &answer.availability else {
        panic!("there is a transcript: {}", summary(answer));
    };
    assert!(message.contains(part), "{message:?} does not say {part:?}");
}

/// After how many seconds an answer says that it may be of use to ask again.
#[track_caller]
fn again_after(answer: &LookupAnswer) -> Option<u64> {
    let Availability::Unavailable { retry_after, .. } = &answer.availability else {
        panic!("there is a transcript: {}", summary(answer));
    };
    retry_after.map(|wait| wait.as_secs())
}

/// What a key has spent, over all periods, when nothing of it is held.
fn spent(life: &Life, key: &SimKey) -> u64 {
    let sums = life.world.oracle.sums(&key.wallet);
    assert_eq!(sums.held, sums.spent + sums.returned + sums.expired, "something is still held");
    sums.spent
}

/// What the service has spent, over all days.
fn service_spent(life: &Life) -> u64 {
    let service = transcript_core::ids::WalletId::new("service");
    life.world.oracle.sums(&service).spent
}

/// How often suppliers were asked for a video.
fn asks(life: &Life, video: &VideoId) -> u64 {
    life.world.oracle.asks(video)
}

async fn pass(seconds: u64) {
    tokio::time::sleep(Duration::from_secs(seconds)).await;
}
