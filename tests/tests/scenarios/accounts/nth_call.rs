//! For each story the n-th storage call goes wrong, or the process dies there, for n = 1, 2, …; and each time
//! nobody is charged twice nor for nothing, no credit is lost, each account has one key, and all works again.

use std::sync::Arc;

use futures_util::future::{BoxFuture, FutureExt};
use transcript_core::{accounts::Route, directory::Plan as AccountPlan, ids::GrantId};

use super::*;
use crate::simulation::{
    accounts::{AccountOp, check_after_all},
    gate::CrashPoint,
    weather::Trouble,
    world::Death,
};

/// No story makes as many storage calls as this.
const CALLS_MAX: u64 = 2_000;

/// How the n-th call goes wrong.
#[derive(Clone, Copy, Debug)]
enum Ill {
    Trouble(Trouble),
    Death { after_effect: bool },
}

/// What is there when a story begins: an account with two credits, one with none, and an archived video.
#[derive(Clone, Debug)]
struct Stage {
    rich: SimAccount,
    poor: SimAccount,
}

/// One scene of a story.
#[derive(Clone, Debug)]
struct Scene {
    life: Life,
    stage: Stage,
}

type Story = for<'a> fn(&'a Scene) -> BoxFuture<'a, ()>;

impl Scene {
    async fn asks(&self, account: &SimAccount, video: VideoId, repeat: Option<&str>) -> Option<Answer> {
        let (life, accounts) = (&self.life, &self.life.accounts[0]);
        let repeat = repeat.map(str::to_owned);
        PaidAsking { life, accounts, account, video, lang: None, repeat }.ask(None).await
    }

    async fn does(&self, op: AccountOp) {
        op.act(self.life.clone(), 0, self.stage.rich.clone(), 1).await;
    }
}

/// Plays a story with the n-th storage call going wrong; whether it did.
fn play(story: Story, n: u64, ill: Ill) -> bool {
    let mut plan = plan([2, 3, 4, 5]);
    plan.engine.poll = Duration::from_secs(2);
    let world = World::new(plan);
    let stage = world.live(1, None, set).expect("nobody dies while the stage is set");
    let (troubled, staged) = (Arc::clone(&world), stage.clone());
    let scene = |life: Life| async move {
        story(&Scene { life, stage: staged }).await;
        troubled.gate.troubled()
    };
    let went_wrong = match ill {
        Ill::Trouble(trouble) => {
            world.gate.set_weather(Weather::Nth { n, trouble });
            world.live(2, None, scene).expect("nobody dies")
        }
        Ill::Death { after_effect } => {
            let death = Death::AtCall(CrashPoint { call: n, after_effect });
            world.live(2, Some(death), scene).is_none()
        }
    };
    world.gate.set_weather(Weather::Calm);
    world.live(1, None, |life| async move {
        end_all(&life).await;
        captions_do(&life, &[Act::give(&["en"])]);
        for account in [&stage.rich, &stage.poor] {
            check_after_all(&life, account, &other_video()).await;
        }
        end_all(&life).await;
    });
    let wrongs = world.oracle.wrongs();
    assert!(wrongs.is_empty(), "call {n}, {ill:?}:\n{}", wrongs.join("\n"));
    went_wrong
}

async fn set(life: Life) -> Stage {
    let rich = SimAccount::made(&life, "rich@example.org").await;
    let poor = SimAccount::made(&life, "poor@example.org").await;
    for left in [1, 0] {
        let answer = call(&life, &poor, other_video()).await;
        assert!(matches!(answer, Answer::New { left: Some(n), .. } if n == left));
    }
    Stage { rich, poor }
}

/// Plays a story again and again, until the trouble comes too late.
fn check_story(story: Story) {
    let troubles = Trouble::ALL.map(Ill::Trouble);
    let deaths = [false, true].map(|after_effect| Ill::Death { after_effect });
    for ill in troubles.into_iter().chain(deaths) {
        let calls = (1..CALLS_MAX).find(|n| !play(story, *n, ill));
        assert!(calls.expect("a story ends") > 1, "the story makes no storage call");
    }
}

#[test]
fn a_new_transcript() {
    check_story(|scene| {
        async {
            scene.asks(&scene.stage.rich, video(), None).await;
        }
        .boxed()
    });
}

#[test]
fn an_archived_transcript() {
    check_story(|scene| {
        async {
            scene.asks(&scene.stage.rich, other_video(), None).await;
        }
        .boxed()
    });
}

#[test]
fn a_new_transcript_and_its_repeat() {
    check_story(|scene| {
        async {
            scene.asks(&scene.stage.rich, video(), Some("k")).await;
            scene.asks(&scene.stage.rich, video(), Some("k")).await;
        }
        .boxed()
    });
}

#[test]
fn an_archived_transcript_and_its_repeat() {
    check_story(|scene| {
        async {
            scene.asks(&scene.stage.rich, other_video(), Some("k")).await;
            scene.asks(&scene.stage.rich, other_video(), Some("k")).await;
        }
        .boxed()
    });
}

#[test]
fn a_failure_and_its_repeat() {
    check_story(|scene| {
        async {
            let timeout = Act::fail(transcript_core::supplier::SupplyReason::Timeout);
            captions_do(&scene.life, &[timeout, Act::give(&["en"])]);
            scene.asks(&scene.stage.rich, video(), Some("k")).await;
            scene.asks(&scene.stage.rich, video(), Some("k")).await;
        }
        .boxed()
    });
}

#[test]
fn more_calls_than_credits() {
    check_story(|scene| {
        async {
            let (rich, poor) = (&scene.stage.rich, &scene.stage.poor);
            tokio::join!(
                scene.asks(rich, video(), None),
                scene.asks(rich, other_video(), None),
                scene.asks(rich, video(), Some("k")),
                scene.asks(poor, video(), None),
            );
        }
        .boxed()
    });
}

#[test]
fn a_caller_who_leaves() {
    check_story(|scene| {
        async {
            let (life, accounts) = (&scene.life, &scene.life.accounts[0]);
            let (account, repeat) = (&scene.stage.rich, Some("k".to_owned()));
            let asking = PaidAsking { life, accounts, account, video: video(), lang: None, repeat };
            asking.ask(Some(Duration::from_millis(500))).await;
            pass(5).await;
            asking.ask(None).await;
        }
        .boxed()
    });
}

#[test]
fn the_next_key_and_the_way_back() {
    check_story(|scene| {
        async {
            scene.does(AccountOp::Rotate).await;
            scene.does(AccountOp::Register).await;
            scene.does(AccountOp::Recover { confirmed: false }).await;
            scene.does(AccountOp::Recover { confirmed: true }).await;
            scene.does(AccountOp::Rotate).await;
        }
        .boxed()
    });
}

#[test]
fn a_plan_a_gift_and_what_they_come_to() {
    check_story(|scene| {
        async {
            scene.does(AccountOp::Pay { plan: AccountPlan::Starter }).await;
            scene.does(AccountOp::Grant { amount: 2 }).await;
            scene.does(AccountOp::Pay { plan: AccountPlan::Scale }).await;
            scene.does(AccountOp::Me).await;
            scene.asks(&scene.stage.rich, other_video(), None).await;
        }
        .boxed()
    });
}

/// A page to pay at, which costs no credits.
#[test]
fn a_call_without_a_charge_and_its_repeat() {
    check_story(|scene| {
        async {
            for _ in 0..2 {
                let rich = &scene.stage.rich;
                let entry = rich.enter(&scene.life.accounts[0], Route::BuyCredits, Some("k"), "1k").await;
                if let Ok(transcript_core::accounts::Entry::Admitted(visit)) = entry {
                    let _ = visit.deliver(reply("page")).await;
                }
            }
        }
        .boxed()
    });
}

/// The same grant again and again is one grant.
#[test]
fn a_gift_that_is_made_again_because_nobody_answered() {
    check_story(|scene| {
        async {
            let rich = &scene.stage.rich;
            for _ in 0..3 {
                let granted = scene.life.accounts[0].grant(&rich.email, GrantId::new("gift"), 2, "").await;
                if let Ok(view) = granted {
                    assert_eq!(view.credits.remaining, 4);
                }
            }
        }
        .boxed()
    });
}
