//! Visitors of the watch page: let in once, on whichever server, and paying with their own legs.

use std::{sync::Arc, time::Duration};

use transcript_core::{
    Result, Timestamp,
    engine::Progress,
    ids::WalletId,
    lookup::{
        Admission, Admitted, Challenged, FailureReason, HumanCheck, Lookup, LookupAnswer, Patience,
        VisitorAsk,
    },
    video::{VideoId, VideoLink},
};

use crate::{
    scenarios::{
        End, asks, captions_do, check, check_message, other_video, pass, play, play_with, service_spent,
        video,
    },
    simulation::{
        supplier::Act,
        world::{Life, Plan, World},
    },
};

/// A check whose challenges are their own solutions: what is tried here is what the look-up makes of them.
#[derive(Debug)]
struct Trusting;

impl HumanCheck for Trusting {
    fn challenge(&self, key: &str, challenged: &Challenged) -> Result<String> {
        let Challenged { id, page, until } = challenged;
        Ok(format!("{key} {id} {page} {}", until.as_millis()))
    }

    fn solved(&self, key: &str, solution: &str) -> Option<Challenged> {
        let mut parts = solution.strip_prefix(key)?.split_whitespace();
        let (id, page, until) = (parts.next()?, parts.next()?, parts.next()?.parse().ok()?);
        Some(Challenged { id: id.to_owned(), page: page.to_owned(), until: Timestamp::from_millis(until) })
    }
}

/// A server that serves visitors.
fn serving(life: &Life, place: usize) -> Lookup {
    life.lookups[place].clone().with_human_check(Arc::new(Trusting))
}

fn solution(lookup: &Lookup, video: &VideoId) -> String {
    lookup.challenge(&VideoLink::Video(video.clone())).unwrap().unwrap()
}

async fn come(lookup: &Lookup, video: &VideoId, solution: &str, cookie: Option<String>) -> Admission {
    let ask = VisitorAsk {
        link: VideoLink::Video(video.clone()),
        src: None,
        solution: solution.to_owned(),
        cookie,
        client: Some("2001:db8:1:2::3".parse().unwrap()),
    };
    lookup.admit(ask).await
}

/// A visitor who has passed the check just now.
async fn admitted(lookup: &Lookup, video: &VideoId, cookie: Option<String>) -> Box<Admitted> {
    match come(lookup, video, &solution(lookup, video), cookie).await {
        Admission::Admitted(admitted) => admitted,
        Admission::Answered(answer) => panic!("not let in: {answer:?}"),
    }
}

async fn transcribed(admitted: Box<Admitted>, patience: Patience) -> LookupAnswer {
    admitted.transcribe(patience).await.unwrap()
}

/// What the wallet in a cookie has spent.
fn spent(life: &Life, cookie: &str) -> u64 {
    let (name, _) = cookie.rsplit_once('.').unwrap();
    life.world.oracle.sums(&WalletId::new(name)).spent
}

#[test]
fn a_challenge_of_one_server_is_good_once_on_all() {
    let world = World::new(Plan::default());
    play_with(&world, 2, |life| async move {
        let (one, other) = (serving(&life, 0), serving(&life, 1));
        let challenge = solution(&one, &video());
        let Admission::Admitted(first) = come(&other, &video(), &challenge, None).await else {
            panic!("the other server's challenge was refused");
        };
        for lookup in [&one, &other] {
            let Admission::Answered(again) = come(lookup, &video(), &challenge, None).await else {
                panic!("let in twice");
            };
            check(&again, End::None(FailureReason::NeedsVerification));
            check_message(&again, "used already");
        }
        let cookie = first.cookie();
        check(&transcribed(first, Patience::Usual).await, End::New);
        assert_eq!((spent(&life, &cookie), service_spent(&life)), (1, 1));
        // The name in the cookie is known on both, and one that was made up on none.
        assert_eq!(admitted(&one, &other_video(), Some(cookie.clone())).await.cookie(), cookie);
        let made_up = format!("visitor-0{}", &cookie["visitor-0".len()..]);
        assert_ne!(admitted(&other, &other_video(), Some(made_up.clone())).await.cookie(), made_up);
    });
}

#[test]
fn who_waits_to_the_end_hears_how_far_it_is() {
    play(Plan::default(), |life| async move {
        let lookup = serving(&life, 0);
        captions_do(&life, &[Act::give(&["en"]).after(Duration::from_secs(100))]);
        let hurried = admitted(&lookup, &video(), None).await;
        let cookie = hurried.cookie();
        let answer = transcribed(hurried, Patience::Usual).await;
        check(&answer, End::None(FailureReason::FetchError));
        check_message(&answer, "still being transcribed");
        assert!(matches!(lookup.progress(&video()), Some(Progress::AtWork { .. })));
        // Another one joins the work, and pays nothing for what the first one has fetched.
        let patient = admitted(&lookup, &video(), None).await;
        let other = patient.cookie();
        check(&transcribed(patient, Patience::ToTheEnd).await, End::Archived);
        assert_eq!(lookup.progress(&video()), None);
        assert_eq!((spent(&life, &cookie), spent(&life, &other)), (1, 0));
        assert_eq!((asks(&life, &video()), service_spent(&life)), (1, 1));
    });
}

#[test]
fn a_visitor_who_leaves_has_the_work_go_on() {
    play(Plan::default(), |life| async move {
        let lookup = serving(&life, 0);
        captions_do(&life, &[Act::give(&["en"]).after(Duration::from_secs(5))]);
        let leaving = admitted(&lookup, &video(), None).await;
        let cookie = leaving.cookie();
        let left = tokio::time::timeout(Duration::from_secs(1), leaving.transcribe(Patience::ToTheEnd)).await;
        assert!(left.is_err());
        pass(10).await;
        let Admission::Answered(archived) = come(&lookup, &video(), "", None).await else {
            panic!("what is archived needs no check");
        };
        check(&archived, End::Archived);
        assert_eq!((spent(&life, &cookie), service_spent(&life), asks(&life, &video())), (1, 1, 1));
    });
}

#[test]
fn a_visitors_work_that_was_in_vain_is_the_networks() {
    let mut plan = Plan::default();
    plan.lookup.visitor_per_network_per_day = 2;
    play(plan, |life| async move {
        let lookup = serving(&life, 0);
        captions_do(&life, &[Act::fail(transcript_core::supplier::SupplyReason::Timeout)]);
        let mut cookie = None;
        for _ in 0..2 {
            let visitor = admitted(&lookup, &video(), cookie.take()).await;
            cookie = Some(visitor.cookie());
            check(&transcribed(visitor, Patience::Usual).await, End::None(FailureReason::FetchError));
        }
        assert_eq!((spent(&life, cookie.as_deref().unwrap()), service_spent(&life)), (0, 2));
        // The /64 has had its two, whoever asks; its /48 would have eight.
        let answer = transcribed(admitted(&lookup, &video(), None).await, Patience::Usual).await;
        check(&answer, End::None(FailureReason::FairUse));
        check_message(&answer, "Your network has asked for as many");
        assert_eq!((asks(&life, &video()), service_spent(&life)), (2, 2));
    });
}
