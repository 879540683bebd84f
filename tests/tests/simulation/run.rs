//! One seed from its beginning to its end.

use std::{
    collections::BTreeSet,
    sync::{Arc, atomic::Ordering},
    time::Duration,
};

use tokio::{task::JoinSet, time::timeout};
use transcript_core::{Timestamp, lookup::Availability, video::Platform};

use super::{
    dice::Dice,
    gate::CrashPoint,
    mutation::Mutation,
    ops::{Asking, Caller, Op, Target, summary, videos},
    supplier::{Act, Script},
    weather::{Climate, Weather},
    world::{Death, Life, NOON_MS, Plan, SimKey, World},
};

/// What came of a seed.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Report {
    pub(crate) wrongs: Vec<String>,
    pub(crate) trace: Vec<String>,
    /// What the run came to.
    pub(crate) reached: BTreeSet<String>,
}

/// Runs one seed.
pub(crate) fn run(seed: u64, mutation: Option<Mutation>, traced: bool) -> Report {
    let dice = Dice::new(seed, 0);
    let plan = Plan { traced, ..plan(seed, &dice) };
    let world = World::new(mutation.map_or(plan.clone(), |mutation| mutation.plan(plan)));
    world.has_speech.store(dice.chance(500), Ordering::Relaxed);
    let siege = dice.chance(150);
    let slow = siege || dice.chance(200);
    for (supplier, stream) in [(&world.captions, 4), (&world.speech, 5)] {
        supplier.set_script(Script::Seeded { dice: Box::new(Dice::new(seed, stream)), slow });
    }
    let keys = world
        .live(1, None, |life| async move {
            let mut keys = Vec::new();
            for _ in 0..3 {
                keys.push(life.world.make_key(&life.lookups[0]).await);
            }
            keys
        })
        .expect("nobody dies while the keys are made");
    let deaths = if dice.chance(400) { 1 + dice.below(2) } else { 0 };
    let climate = if siege { Climate::late(seed) } else { Climate::drawn(seed) };
    let fair = climate.is_fair() && deaths == 0;
    world.gate.set_weather(Weather::Seeded(Box::new(climate)));
    let cast = Cast { dice: &dice, keys: &keys, siege };
    for _ in 0..deaths {
        let death = match dice.chance(600) {
            true => Death::AtCall(CrashPoint { call: 1 + dice.below(120), after_effect: dice.chance(500) }),
            false => Death::After(Duration::from_millis(dice.below(90_000))),
        };
        let engines = 1 + dice.below(3) as usize;
        if world.live(engines, Some(death), |life| live(life, &cast, fair)).is_none() {
            world.oracle.reach("death");
        }
    }
    let engines = 1 + dice.below(3) as usize;
    world.live(engines, None, |life| async {
        live(life.clone(), &cast, fair).await;
        end(life, fair).await;
    });
    let (oracle, trace) = (&world.oracle, world.gate.take_trace());
    Report { wrongs: oracle.wrongs(), trace, reached: oracle.reached() }
}

fn plan(seed: u64, dice: &Dice) -> Plan {
    let mut plan = Plan { seed, ..Plan::default() };
    let half_a_day = 43_200_000;
    let midnight = NOON_MS + half_a_day;
    let month_end = NOON_MS + half_a_day + 10 * 2 * half_a_day;
    let before = dice.below(40_000) as i64;
    plan.start = Timestamp::from_millis(*dice.pick(&[NOON_MS, midnight - before, month_end - before]));
    plan.engine.wait = Duration::from_secs(*dice.pick(&[25, 25, 8]));
    plan.engine.work = Duration::from_secs(*dice.pick(&[300, 1_800]));
    plan.lookup.free_per_month = 1 + dice.below(8);
    plan.lookup.service_per_day = *dice.pick(&[3, 3, 20]);
    plan.lookup.misses_per_network_per_minute = *dice.pick(&[2, 60]);
    plan.lookup.attempts_per_key_per_hour = *dice.pick(&[4, 60]);
    plan
}

/// Who does what in the lives of a seed.
struct Cast<'a> {
    dice: &'a Dice,
    keys: &'a [SimKey],
    /// Whether all ask for one video, again and again, while its transcript is long in coming.
    siege: bool,
}

/// What happens in one life.
async fn live(life: Life, &Cast { dice, keys, siege }: &Cast<'_>, fair: bool) {
    let mut doing = JoinSet::new();
    let mut act = |op: Op| {
        let engine = dice.below(8) as usize;
        life.world.gate.trace(|| format!("engine {engine}: {op:?}"));
        doing.spawn(op.act(life.clone(), engine, fair));
    };
    // Often all is about one video.
    let one = (siege || dice.chance(400)).then(|| dice.pick(&videos()[..3]).clone());
    let steps = if siege { 20 } else { 4 + dice.below(8) };
    for _ in 0..steps {
        let op = Op::drawn(dice, keys, one.as_ref());
        if let Op::LookUp { target, peek: false, .. } = &op
            && dice.chance(300)
        {
            // Many at once for one video.
            for _ in 0..2 + dice.below(5) {
                let caller = Caller::Key(dice.pick(keys).clone());
                act(Op::LookUp { caller, target: target.clone(), peek: false, give_up: None });
            }
        }
        act(op);
        let pause = if siege { Duration::from_millis(dice.below(25_000)) } else { pause(dice) };
        tokio::time::sleep(pause).await;
    }
    while let Some(done) = doing.join_next().await {
        if let Err(error) = done {
            life.world.oracle.wrong(format_args!("a caller panicked: {error}"));
        }
    }
}

fn pause(dice: &Dice) -> Duration {
    Duration::from_millis(match dice.below(12) {
        0..=3 => 0,
        4..=8 => dice.below(2_000),
        9 | 10 => dice.below(40_000),
        _ => *dice.pick(&[70_000, 900_000, 3_600_000, 25_000_000, 90_000_000]),
    })
}

/// The weather clears: all work ends, nothing is left, and the service works as on its first day.
async fn end(life: Life, fair: bool) {
    let (world, oracle) = (&life.world, Arc::clone(&life.world.oracle));
    world.gate.set_weather(Weather::Calm);
    for supplier in [&world.captions, &world.speech] {
        supplier.set_script(Script::Acts { next: [].into(), then: Act::give(&["en"]) });
    }
    end_all(&life).await;
    if fair {
        oracle.check_all_paid();
    }
    // All absences end, and every period is replaced.
    tokio::time::sleep(Duration::from_secs(32 * 24 * 3_600)).await;
    for video in videos() {
        let lookup = &life.lookups[0];
        let key = world.make_key(lookup).await;
        let supplied = video.platform() != Platform::Reels;
        let caller = Caller::Key(key);
        let asking =
            Asking { life: &life, lookup, caller, target: Target::of(video), peek: false, fair: true };
        let Some(answer) = asking.ask(None).await else { continue };
        if matches!(answer.availability, Availability::Available { .. }) != supplied {
            oracle.wrong(format_args!("after all: {}", summary(&answer)));
        }
    }
    close(&life).await;
    oracle.check_nothing_held(life.now());
}

/// All work ends by itself; then nothing is held, claimed or under way.
pub(crate) async fn end_all(life: &Life) {
    let oracle = &life.world.oracle;
    close(life).await;
    tokio::time::sleep(life.world.plan.engine.lease + Duration::from_secs(1)).await;
    oracle.check_nothing_held(life.now());
    oracle.check_nothing_open(&videos(), life.now());
}

/// Waits for the engines' work, which ends by itself.
async fn close(life: &Life) {
    let engine = &life.world.plan.engine;
    let most = engine.work + engine.lease + engine.store * 60;
    for lookup in &life.lookups {
        if timeout(most, lookup.transcripts().close()).await.is_err() {
            life.world.oracle.wrong("there is work that does not end");
        }
    }
}
