//! For each story the n-th storage call goes wrong, for n = 1, 2, …, until the story passes untouched;
//! and each time nothing is lost, nothing is charged twice or for nothing, and nobody waits for ever.

use std::{sync::Arc, time::Duration};

use futures_util::future::{BoxFuture, FutureExt};
use tokio::time::timeout;
use transcript_core::{
    archive::Wish,
    engine::{Fetch, Outcome},
    lookup::{CreateKey, CreateKeyOutcome, Origin},
    supplier::SupplyReason,
    transcript::LanguageTag,
};

use super::{End, captions_do, check, end, other_video, pass, script, video};
use crate::simulation::{
    ops::{Asking, Caller, Target},
    run::end_all,
    supplier::Act,
    weather::{Trouble, Weather},
    world::{Life, Plan, SimKey, World, linked_video},
};

/// No story makes as many storage calls as this.
const CALLS_MAX: u64 = 3_000;

/// What is there when a story begins: two keys that may have one transcript each, a third that may have
/// none any more, and an archived video.
#[derive(Clone, Debug)]
struct Stage {
    life: Life,
    one: SimKey,
    two: SimKey,
    poor: SimKey,
}

impl Stage {
    async fn set(life: Life) -> Self {
        let world = Arc::clone(&life.world);
        let lookup = &life.lookups[0];
        let mut keys = Vec::new();
        for _ in 0..3 {
            keys.push(world.make_key(lookup).await);
        }
        let [one, two, poor] = keys.try_into().unwrap();
        let stage = Self { one, two, poor, life };
        let answer = stage.ask(&stage.poor, other_video()).await;
        check(&answer.unwrap(), End::New);
        stage
    }

    async fn ask(
        &self,
        key: &SimKey,
        video: transcript_core::video::VideoId,
    ) -> Option<transcript_core::lookup::LookupAnswer> {
        self.look(Caller::Key(key.clone()), Target::of(video)).await
    }

    async fn look(&self, caller: Caller, target: Target) -> Option<transcript_core::lookup::LookupAnswer> {
        self.look_from(0, caller, target).await
    }

    async fn look_from(
        &self,
        engine: usize,
        caller: Caller,
        target: Target,
    ) -> Option<transcript_core::lookup::LookupAnswer> {
        let life = &self.life;
        let asking = Asking { life, lookup: &life.lookups[engine], caller, target, peek: false, fair: false };
        asking.ask(None).await
    }
}

type Story = for<'a> fn(&'a Stage) -> BoxFuture<'a, ()>;

/// Plays a story with the n-th storage call going wrong; whether it did.
fn play(story: Story, n: u64, trouble: Trouble) -> bool {
    let mut plan = Plan::default();
    plan.lookup.free_per_month = 1;
    // Fewer calls of those who wait, and so fewer to go wrong.
    plan.engine.poll = Duration::from_secs(2);
    let world = World::new(plan);
    let troubled = world.live(2, None, |life| async move {
        let stage = Stage::set(life).await;
        world_of(&stage).gate.set_weather(Weather::Nth { n, trouble });
        story(&stage).await;
        let troubled = world_of(&stage).gate.troubled();
        world_of(&stage).gate.set_weather(Weather::Calm);
        end_all(&stage.life).await;
        works_again(&stage).await;
        troubled
    });
    let wrongs = world.oracle.wrongs();
    assert!(wrongs.is_empty(), "call {n}, {trouble:?}:\n{}", wrongs.join("\n"));
    troubled.expect("nobody dies")
}

fn world_of(stage: &Stage) -> &World {
    &stage.life.world
}

/// After all: whatever has a transcript can be had, and is free once it is archived.
async fn works_again(stage: &Stage) {
    let life = &stage.life;
    captions_do(life, &[Act::give(&["en"])]);
    // Absences end.
    pass(25 * 3_600).await;
    life.world.archive.withdraw(&video(), false, life.now()).await.unwrap();
    let fresh = life.world.make_key(&life.lookups[0]).await;
    for video in [video(), linked_video()] {
        let answer = stage.ask(&fresh, video.clone()).await.unwrap();
        assert_ne!(end(&answer), End::None(transcript_core::lookup::FailureReason::FetchError));
        let key = life.world.make_key(&life.lookups[0]).await;
        let answer = stage.ask(&key, video.clone()).await.unwrap();
        assert!(matches!(end(&answer), End::New | End::Archived));
        check(&stage.look(Caller::Nobody(None), Target::of(video)).await.unwrap(), End::Archived);
    }
    check(&stage.look(Caller::Nobody(None), Target::of(other_video())).await.unwrap(), End::Archived);
    end_all(life).await;
}

/// Plays a story again and again, until the trouble comes too late.
fn check_story(story: Story) {
    for trouble in Trouble::ALL {
        let calls = (1..CALLS_MAX).find(|n| !play(story, *n, trouble));
        let calls = calls.expect("a story ends");
        assert!(calls > 1, "the story makes no storage call");
    }
}

#[test]
fn a_new_transcript() {
    check_story(|stage| {
        async {
            stage.ask(&stage.one, video()).await;
        }
        .boxed()
    });
}

#[test]
fn two_keys_at_once() {
    check_story(|stage| {
        async {
            tokio::join!(stage.ask(&stage.one, video()), stage.ask(&stage.two, video()));
        }
        .boxed()
    });
}

#[test]
fn a_refused_key_and_then_the_next() {
    check_story(|stage| {
        async {
            tokio::join!(stage.ask(&stage.poor, video()), stage.ask(&stage.one, video()));
        }
        .boxed()
    });
}

#[test]
fn an_absence() {
    check_story(|stage| {
        async {
            captions_do(&stage.life, &[Act::fail(SupplyReason::NoCaptions)]);
            stage.ask(&stage.one, video()).await;
            stage.ask(&stage.one, video()).await;
        }
        .boxed()
    });
}

#[test]
fn a_failure_and_a_second_try() {
    check_story(|stage| {
        async {
            stage
                .life
                .world
                .captions
                .set_script(script(&[Act::fail(SupplyReason::Timeout), Act::give(&["en", "fr"])]));
            stage.ask(&stage.one, video()).await;
            stage.ask(&stage.one, video()).await;
        }
        .boxed()
    });
}

#[test]
fn a_withdrawal_under_way() {
    check_story(|stage| {
        async {
            captions_do(&stage.life, &[Act::give(&["en"]).after(Duration::from_secs(5))]);
            let archive = &stage.life.world.archive;
            let withdraw = async {
                pass(2).await;
                let _ =
                    timeout(Duration::from_secs(5), archive.withdraw(&video(), true, stage.life.now())).await;
            };
            tokio::join!(stage.ask(&stage.one, video()), withdraw);
            let _ =
                timeout(Duration::from_secs(5), archive.withdraw(&video(), false, stage.life.now())).await;
        }
        .boxed()
    });
}

#[test]
fn long_work_that_must_renew_its_lease() {
    check_story(|stage| {
        async {
            captions_do(&stage.life, &[Act::give(&["en"]).after(Duration::from_secs(100))]);
            stage.ask(&stage.one, video()).await;
            pass(90).await;
            stage.ask(&stage.two, video()).await;
        }
        .boxed()
    });
}

#[test]
fn long_work_that_another_machine_waits_for() {
    check_story(|stage| {
        async {
            captions_do(&stage.life, &[Act::give(&["en"]).after(Duration::from_secs(130))]);
            let patient = async {
                for _ in 0..6 {
                    let caller = Caller::Key(stage.two.clone());
                    stage.look_from(1, caller, Target::of(video())).await;
                }
            };
            tokio::join!(stage.ask(&stage.one, video()), patient);
        }
        .boxed()
    });
}

/// The one who cannot pay leaves, so that the lease is given back while the next one takes over.
#[test]
fn a_caller_who_leaves_and_one_who_comes() {
    check_story(|stage| {
        async {
            captions_do(&stage.life, &[Act::give(&["en"]).after(Duration::from_secs(90))]);
            stage.ask(&stage.poor, video()).await;
            stage.ask(&stage.one, video()).await;
            for _ in 0..3 {
                let caller = Caller::Key(stage.two.clone());
                stage.look_from(1, caller, Target::of(video())).await;
            }
        }
        .boxed()
    });
}

#[test]
fn a_language() {
    check_story(|stage| {
        async {
            captions_do(&stage.life, &[Act::give(&["fr", "en"])]);
            let wish = Wish::Language(LanguageTag::from_canonical("fr"));
            let transcripts = stage.life.lookups[0].transcripts();
            let outcome = transcripts.get(Fetch { video: video(), wish: wish.clone(), payment: None }).await;
            if let Outcome::Fetched(stored) = outcome {
                assert_eq!(stored.transcript.track.language.as_str(), "fr");
            }
            stage.ask(&stage.one, video()).await;
        }
        .boxed()
    });
}

#[test]
fn a_short_link() {
    check_story(|stage| {
        async {
            stage.look(Caller::Nobody(None), Target::short("ZMplain1")).await;
            stage.look(Caller::Key(stage.one.clone()), Target::short("ZMplain1")).await;
        }
        .boxed()
    });
}

#[test]
fn a_new_key_and_its_status() {
    check_story(|stage| {
        async {
            let lookup = &stage.life.lookups[0];
            let ask = CreateKey { label: None, email: None, proof: None, origin: Origin::Network(None) };
            let Ok(CreateKeyOutcome::Created(created)) = lookup.create_key(ask).await else { return };
            let status = lookup.key_status(created.key.reveal(), None).await;
            assert!(!matches!(status, Ok(None)), "a key that was shown is live");
        }
        .boxed()
    });
}

#[test]
fn what_is_archived() {
    check_story(|stage| {
        async {
            for _ in 0..2 {
                let answer = stage.ask(&stage.one, other_video()).await.unwrap();
                assert_ne!(end(&answer), End::New);
            }
            stage.look(Caller::Nobody(None), Target::of(other_video())).await;
        }
        .boxed()
    });
}
