//! Visitors of the watch page: admitted once by any server, and charged by their own legs.

use std::{sync::Arc, time::Duration};

use transcript_core::{
    Result, Timestamp,
    archive::TrackSelector,
    engine::FetchProgress,
    ids::WalletId,
    lookup::{
        AdmittedVisitor, ChallengeClaims, ChallengeProvider, FailureReason, LookupResponse, VisitorOutcome,
        VisitorRequest, Visitors, WaitMode,
    },
    video::{VideoId, VideoLink},
};

use crate::{
    scenarios::{
        ScenarioResult, advance, check, check_message, fetch_count, other_video, run_scenario,
        run_scenario_with, script_captions, service_spent, video,
    },
    simulation::{
        supplier::SupplierStep,
        world::{ProcessLife, SimWorld, WorldConfig},
    },
};

/// A challenge provider whose challenges are their own solutions.
#[derive(Debug)]
struct AcceptingProvider;

impl ChallengeProvider for AcceptingProvider {
    fn challenge(&self, key: &str, challenged: &ChallengeClaims) -> Result<String> {
        let ChallengeClaims { id, page, expires_at } = challenged;
        Ok(format!("{key} {id} {page} {}", expires_at.as_millis()))
    }

    fn verify(&self, key: &str, solution: &str) -> Option<ChallengeClaims> {
        let mut parts = solution.strip_prefix(key)?.split_whitespace();
        let (id, page, expires_at) = (parts.next()?, parts.next()?, parts.next()?.parse().ok()?);
        Some(ChallengeClaims {
            id: id.to_owned(),
            page: page.to_owned(),
            expires_at: Timestamp::from_millis(expires_at),
        })
    }
}

/// The visitors of a server with challenges.
fn visitors_of(life: &ProcessLife, index: usize) -> Visitors {
    Visitors::new(life.lookups[index].clone(), Some(Arc::new(AcceptingProvider)))
}

fn solution(visitors: &Visitors, video: &VideoId) -> String {
    visitors.challenge(&VideoLink::Video(video.clone())).unwrap().unwrap()
}

async fn admit_visitor(
    visitors: &Visitors,
    video: &VideoId,
    solution: &str,
    cookie: Option<String>,
) -> VisitorOutcome {
    let request = VisitorRequest {
        link: VideoLink::Video(video.clone()),
        language: None,
        src: None,
        solution: solution.to_owned(),
        cookie,
        client: Some("2001:db8:1:2::3".parse().unwrap()),
    };
    visitors.admit(request).await
}

/// A visitor that has just solved a challenge.
async fn admitted(visitors: &Visitors, video: &VideoId, cookie: Option<String>) -> Box<AdmittedVisitor> {
    match admit_visitor(visitors, video, &solution(visitors, video), cookie).await {
        VisitorOutcome::Admitted(admitted) => admitted,
        VisitorOutcome::Answered(answer) => panic!("not admitted: {answer:?}"),
    }
}

async fn transcribed(admitted: Box<AdmittedVisitor>, wait_mode: WaitMode) -> LookupResponse {
    admitted.transcribe(wait_mode).await.unwrap()
}

/// The spent amount of the wallet in a cookie.
fn spent(life: &ProcessLife, cookie: &str) -> u64 {
    let (name, _) = cookie.rsplit_once('.').unwrap();
    life.world.oracle.sums(&WalletId::new(name)).spent
}

#[test]
fn challenge_is_valid_once_across_servers() {
    let world = SimWorld::new(WorldConfig::default());
    run_scenario_with(&world, 2, |life| async move {
        let (one, other) = (visitors_of(&life, 0), visitors_of(&life, 1));
        let challenge = solution(&one, &video());
        let VisitorOutcome::Admitted(first) = admit_visitor(&other, &video(), &challenge, None).await else {
            panic!("the challenge of another server was rejected");
        };
        for visitors in [&one, &other] {
            let VisitorOutcome::Answered(again) = admit_visitor(visitors, &video(), &challenge, None).await
            else {
                panic!("admitted twice");
            };
            check(&again, ScenarioResult::None(FailureReason::NeedsVerification));
            check_message(&again, "used already");
        }
        let cookie = first.cookie();
        check(&transcribed(first, WaitMode::Bounded).await, ScenarioResult::New);
        assert_eq!((spent(&life, &cookie), service_spent(&life)), (1, 1));
        // Both servers accept the cookie's wallet, and neither accepts a forged one.
        assert_eq!(admitted(&one, &other_video(), Some(cookie.clone())).await.cookie(), cookie);
        let made_up = format!("visitor-0{}", &cookie["visitor-0".len()..]);
        assert_ne!(admitted(&other, &other_video(), Some(made_up.clone())).await.cookie(), made_up);
    });
}

#[test]
fn unbounded_wait_returns_transcript_and_progress() {
    run_scenario(WorldConfig::default(), |life| async move {
        let visitors = visitors_of(&life, 0);
        script_captions(&life, &[SupplierStep::give(&["en"]).after(Duration::from_secs(100))]);
        let bounded = admitted(&visitors, &video(), None).await;
        let cookie = bounded.cookie();
        let answer = transcribed(bounded, WaitMode::Bounded).await;
        check(&answer, ScenarioResult::None(FailureReason::FetchError));
        check_message(&answer, "still being transcribed");
        assert!(matches!(
            visitors.progress(&video(), &TrackSelector::Default),
            Some(FetchProgress::Running { .. })
        ));
        // A second visitor joins the work and pays nothing for the first one's fetch.
        let unbounded = admitted(&visitors, &video(), None).await;
        let other = unbounded.cookie();
        check(&transcribed(unbounded, WaitMode::Unbounded).await, ScenarioResult::Archived);
        assert_eq!(visitors.progress(&video(), &TrackSelector::Default), None);
        assert_eq!((spent(&life, &cookie), spent(&life, &other)), (1, 0));
        assert_eq!((fetch_count(&life, &video()), service_spent(&life)), (1, 1));
    });
}

#[test]
fn fetch_continues_after_visitor_disconnects() {
    run_scenario(WorldConfig::default(), |life| async move {
        let visitors = visitors_of(&life, 0);
        script_captions(&life, &[SupplierStep::give(&["en"]).after(Duration::from_secs(5))]);
        let leaving = admitted(&visitors, &video(), None).await;
        let cookie = leaving.cookie();
        let left =
            tokio::time::timeout(Duration::from_secs(1), leaving.transcribe(WaitMode::Unbounded)).await;
        assert!(left.is_err());
        advance(10).await;
        let VisitorOutcome::Answered(archived) = admit_visitor(&visitors, &video(), "", None).await else {
            panic!("an archived transcript must need no challenge");
        };
        check(&archived, ScenarioResult::Archived);
        assert_eq!((spent(&life, &cookie), service_spent(&life), fetch_count(&life, &video())), (1, 1, 1));
    });
}

#[test]
fn failed_visitor_fetch_is_charged_to_network() {
    let mut config = WorldConfig::default();
    config.lookup.visitor_per_network_per_day = 2;
    run_scenario(config, |life| async move {
        let visitors = visitors_of(&life, 0);
        script_captions(&life, &[SupplierStep::fail(transcript_core::supplier::SupplyReason::Timeout)]);
        let mut cookie = None;
        for _ in 0..2 {
            let visitor = admitted(&visitors, &video(), cookie.take()).await;
            cookie = Some(visitor.cookie());
            check(
                &transcribed(visitor, WaitMode::Bounded).await,
                ScenarioResult::None(FailureReason::FetchError),
            );
        }
        assert_eq!((spent(&life, cookie.as_deref().unwrap()), service_spent(&life)), (0, 2));
        // The /64 has used its two, whichever visitor it is; its /48 would have eight.
        let answer = transcribed(admitted(&visitors, &video(), None).await, WaitMode::Bounded).await;
        check(&answer, ScenarioResult::None(FailureReason::FairUse));
        check_message(&answer, "Your network has used its new transcripts");
        assert_eq!((fetch_count(&life, &video()), service_spent(&life)), (2, 2));
    });
}
