//! Straight stories about accounts, each of one rule, in the simulation's world; the oracle listens.

mod keys;
mod months;
mod nth_call;
mod operators;
mod paying;
mod rates;
mod repeats;

use transcript_core::{
    accounts::{Refused, Reply, TranscriptAsk, TranscriptReady, Visit},
    video::VideoId,
};

use super::*;
use crate::simulation::{
    accounts::{Answer, PaidAsking, SimAccount, reply},
    oracle::{CallEnd, PaidCall},
    weather::Weather,
};

/// A world whose plans have these credits, and whose accounts may ask as often as they like.
fn plan(credits: [u64; 4]) -> Plan {
    let mut plan = Plan::default();
    for (name, credits) in transcript_core::directory::Plan::ALL.into_iter().zip(credits) {
        let terms = plan.accounts.plans.of_mut(name);
        terms.credits = credits;
        terms.requests_per_minute = 10_000;
    }
    plan
}

/// A new account.
async fn new_account(life: &Life) -> SimAccount {
    SimAccount::made(life, "ann@example.org").await
}

/// A call for a video's transcript, from the door to its delivery.
async fn call(life: &Life, account: &SimAccount, video: VideoId) -> Answer {
    call_with(life, account, video, None).await
}

/// The same with an idempotency key.
async fn call_with(life: &Life, account: &SimAccount, video: VideoId, repeat: Option<&str>) -> Answer {
    let (accounts, repeat) = (&life.accounts[0], repeat.map(str::to_owned));
    let asking = PaidAsking { life, accounts, account, video, lang: None, repeat };
    asking.ask(None).await.expect("an answer in time")
}

/// A call for the video up to the point at which its answer is ready.
async fn ready(life: &Life, account: &SimAccount, ask: TranscriptAsk) -> Result<TranscriptReady, Refused> {
    let memo = format!("transcript {}", video());
    // Whether it is delivered, and so may cost something, is seen to by each story.
    let paid = PaidCall::begin(&life.world.oracle, &account.wallet, memo, None);
    let ready = life.accounts[0].transcript(visit(life, account).await, ask).await;
    if ready.is_err() {
        paid.end(CallEnd::Refused);
    }
    ready
}

/// Somebody who came in for a transcript.
async fn visit(life: &Life, account: &SimAccount) -> Visit {
    account.visit(&life.accounts[0], transcript_core::accounts::Route::Transcript).await.unwrap()
}

fn by_id(video: &VideoId) -> TranscriptAsk {
    TranscriptAsk { video_id: Some(video.id().to_owned()), ..TranscriptAsk::default() }
}

async fn remaining(life: &Life, account: &SimAccount) -> u64 {
    account.credits(life).await.remaining
}

#[track_caller]
fn check_refused<T: std::fmt::Debug>(answer: Result<T, Refused>, code: u16, part: &str) {
    let refused = answer.expect_err("a refusal");
    assert_eq!(refused.code(), code, "{refused}");
    assert!(refused.message().contains(part), "{refused:?} does not say {part:?}");
}

fn answer_of(ready: &TranscriptReady) -> Reply {
    reply(ready.stored.transcript.video.id())
}
