//! Scenarios of accounts, one per rule, in the simulated world with its oracle.

mod abandoned;
mod job_failures;
mod jobs;
mod keys;
mod months;
mod nth_call;
mod operators;
mod paying;
mod prepaid;
mod rates;
mod repeats;

use transcript_core::{
    accounts::{PreparedTranscript, RequestGuard, StoredResponse, TranscriptParams, V1Error},
    archive::{PutRequest, TrackSelector},
    transcript::{LanguageTag, Segment, TrackInfo, TrackKind, Transcript},
    video::VideoId,
};

use super::*;
use crate::simulation::{
    accounts::{AccountAnswer, PaidRequest, SimAccount, reply},
    fault_plan::FaultPlan,
    oracle::{CallEnd, PaidCall},
};

/// A configuration whose plans have these credits and practically no rate limit.
fn with_credits(credits: [u64; 4]) -> WorldConfig {
    let mut config = WorldConfig::default();
    for (name, credits) in transcript_core::directory::Plan::ALL.into_iter().zip(credits) {
        let terms = config.accounts.plans.terms_mut(name);
        terms.credits = credits;
        terms.requests_per_minute = 10_000;
    }
    config
}

async fn new_account(life: &ProcessLife) -> SimAccount {
    SimAccount::create(life, "ann@example.org").await
}

/// Requests a video's transcript and delivers it.
async fn call(life: &ProcessLife, account: &SimAccount, video: VideoId) -> AccountAnswer {
    call_with(life, account, video, None).await
}

/// Like [`call`], with an idempotency key.
async fn call_with(
    life: &ProcessLife,
    account: &SimAccount,
    video: VideoId,
    idempotency_key: Option<&str>,
) -> AccountAnswer {
    let (accounts, idempotency_key) = (&life.accounts[0], idempotency_key.map(str::to_owned));
    let request = PaidRequest { life, accounts, account, video, lang: None, idempotency_key };
    request.send(None).await.expect("the call must end in time")
}

/// Archives an imported transcript in a language as the default one.
async fn import_default(life: &ProcessLife, language: &'static str) {
    let transcript = Transcript {
        video: video(),
        title: None,
        author: None,
        duration_ms: None,
        track: TrackInfo::new(LanguageTag::from_canonical(language), TrackKind::Human),
        source: "import".to_owned(),
        segments: vec![Segment::new("imported", 0, 900)],
    };
    life.world.oracle.on_supplied(&video(), std::slice::from_ref(&transcript));
    let request = PutRequest {
        video: video(),
        selectors: vec![TrackSelector::Default],
        transcript: Arc::new(transcript),
        known_tracks: Vec::new(),
        metadata: Default::default(),
        parser_version: 1,
        replace: false,
        now: life.now(),
    };
    life.world.archive.put(request).await.unwrap();
}

/// Begins a request, or the item of a job, that an account may pay for.
fn begin_paid(life: &ProcessLife, account: &SimAccount, video: &VideoId) -> PaidCall {
    let memo = format!("transcript {video}");
    PaidCall::begin(&life.world.oracle, &account.wallet, memo, None)
}

/// Requests the video's transcript without delivering it.
async fn ready(
    life: &ProcessLife,
    account: &SimAccount,
    request: TranscriptParams,
) -> Result<PreparedTranscript, V1Error> {
    // Each scenario decides whether the response is delivered, and so may cost a credit.
    let paid = begin_paid(life, account, &video());
    let ready =
        life.accounts[0].delivery.transcript(admit_transcript_request(life, account).await, request).await;
    if ready.is_err() {
        paid.end(CallEnd::Refused);
    }
    ready
}

async fn admit_transcript_request(life: &ProcessLife, account: &SimAccount) -> RequestGuard {
    account.admit_unkeyed(&life.accounts[0], transcript_core::accounts::V1Endpoint::Transcript).await.unwrap()
}

fn by_id(video: &VideoId) -> TranscriptParams {
    TranscriptParams { video_id: Some(video.id().to_owned()), ..TranscriptParams::default() }
}

async fn remaining(life: &ProcessLife, account: &SimAccount) -> u64 {
    account.credits(life).await.remaining
}

#[track_caller]
fn check_refused<T: std::fmt::Debug>(answer: Result<T, V1Error>, code: u16, part: &str) {
    let refused = answer.expect_err("an error is expected");
    assert_eq!(refused.code(), code, "{refused}");
    assert!(refused.message().contains(part), "{refused:?} does not contain {part:?}");
}

fn answer_of(ready: &PreparedTranscript) -> StoredResponse {
    reply(ready.stored.transcript.video.id())
}
