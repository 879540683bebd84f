//! One seed from its beginning to its end.

use std::{
    collections::BTreeSet,
    sync::{Arc, atomic::Ordering},
    time::Duration,
};

use tokio::{task::JoinSet, time::timeout};
use transcript_core::{Timestamp, directory::Plan as AccountPlan, lookup::Availability, video::Platform};

use super::{
    accounts::{AccountOp, SimAccount, check_after_all},
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
    // What is done with accounts has its own chance, so that the rest is as it is without them.
    let fate = Dice::new(seed, 6);
    let plan = Plan { traced, ..plan(seed, &dice, &fate) };
    let world = World::new(mutation.map_or(plan.clone(), |mutation| mutation.plan(plan)));
    world.has_speech.store(dice.chance(500), Ordering::Relaxed);
    let siege = dice.chance(150);
    let slow = siege || dice.chance(200);
    let share = if siege { 0 } else { *fate.pick(&[0, 200, 700, 900]) };
    for (supplier, stream) in [(&world.captions, 4), (&world.speech, 5)] {
        supplier.set_script(Script::Seeded { dice: Box::new(Dice::new(seed, stream)), slow });
    }
    let people = world
        .live(1, None, |life| async move {
            let (mut keys, mut accounts) = (Vec::new(), Vec::new());
            for number in 0..3 {
                keys.push(life.world.make_key(&life.lookups[0]).await);
                if share > 0 && number < 2 {
                    accounts.push(SimAccount::made(&life, &format!("a{number}@example.org")).await);
                }
            }
            (keys, accounts)
        })
        .expect("nobody dies while the keys are made");
    let (keys, accounts) = people;
    let deaths = if dice.chance(400) { 1 + dice.below(2) } else { 0 };
    let climate = if siege { Climate::late(seed) } else { Climate::drawn(seed) };
    let fair = climate.is_fair() && deaths == 0;
    world.gate.set_weather(Weather::Seeded(Box::new(climate)));
    let cast = Cast { dice: &dice, keys: &keys, fate: &fate, accounts: &accounts, share, siege };
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
        end(life, &accounts, fair).await;
    });
    let (oracle, trace) = (&world.oracle, world.gate.take_trace());
    Report { wrongs: oracle.wrongs(), trace, reached: oracle.reached() }
}

pub(super) fn plan(seed: u64, dice: &Dice, fate: &Dice) -> Plan {
    let mut plan = Plan { seed, ..Plan::default() };
    let half_a_day = 43_200_000;
    let midnight = NOON_MS + half_a_day;
    let month_end = NOON_MS + half_a_day + 10 * 2 * half_a_day;
    let before = dice.below(40_000) as i64;
    plan.start = Timestamp::from_millis(*dice.pick(&[NOON_MS, midnight - before, month_end - before]));
    plan.engine.wait = Duration::from_secs(*dice.pick(&[25, 25, 8]));
    plan.engine.work = Duration::from_secs(*dice.pick(&[300, 1_800]));
    // How suppliers are treated has its own chance, so that the rest is as it is without it.
    let care = Dice::new(seed, 7);
    plan.engine.health.failures = *care.pick(&[1, 2, 5]) as u32;
    plan.at_once = *care.pick(&[None, Some(1), Some(2)]);
    plan.lookup.free_per_month = 1 + dice.below(8);
    plan.lookup.service_per_day = *dice.pick(&[3, 3, 20]);
    plan.lookup.misses_per_network_per_minute = *dice.pick(&[2, 60]);
    plan.lookup.attempts_per_key_per_hour = *dice.pick(&[4, 60]);
    for (name, credits) in AccountPlan::ALL.into_iter().zip([4, 5, 6, 7]) {
        let terms = plan.accounts.plans.of_mut(name);
        terms.credits = 1 + fate.below(credits);
        terms.requests_per_minute = 1_000;
    }
    plan
}

/// Who does what in the lives of a seed.
struct Cast<'a> {
    dice: &'a Dice,
    keys: &'a [SimKey],
    fate: &'a Dice,
    accounts: &'a [SimAccount],
    /// How much of it is done with accounts, in permille.
    share: u64,
    /// Whether all ask for one video, again and again, while its transcript is long in coming.
    siege: bool,
}

/// What happens in one life.
async fn live(life: Life, &Cast { dice, keys, fate, accounts, share, siege }: &Cast<'_>, fair: bool) {
    let mut doing = JoinSet::new();
    let mut act_for = JoinSet::new();
    let mut act = |op: Op| {
        let engine = dice.below(8) as usize;
        life.world.gate.trace(|| format!("engine {engine}: {op:?}"));
        doing.spawn(op.act(life.clone(), engine, fair));
    };
    // Often all is about one video.
    let one = (siege || dice.chance(400)).then(|| dice.pick(&videos()[..3]).clone());
    let steps = if siege { 20 } else { 4 + dice.below(8) };
    for step in 0..steps {
        if fate.chance(share) {
            let video = one.as_ref().filter(|one| one.platform() == Platform::VideoSite);
            let video = video.unwrap_or(&videos()[0]).clone();
            let op = AccountOp::drawn(fate, &video, life.now().as_millis() / 3_600_000);
            let many = matches!(op, AccountOp::Transcript { .. } | AccountOp::Rotate) && fate.chance(250);
            for copy in 0..if many { 2 + fate.below(4) } else { 1 } {
                let (account, engine) = (fate.pick(accounts), fate.below(8) as usize);
                life.world.gate.trace(|| format!("engine {engine}: {} {op:?}", account.email));
                let number = life.now().as_millis() as u64 * 1_000 + step * 10 + copy;
                act_for.spawn(op.clone().act(life.clone(), engine, account.clone(), number));
            }
        }
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
    while let Some(done) = act_for.join_next().await {
        if let Err(error) = done {
            life.world.oracle.wrong(format_args!("the owner of an account panicked: {error}"));
        }
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
pub(super) async fn end(life: Life, accounts: &[SimAccount], fair: bool) {
    let (world, oracle) = (&life.world, Arc::clone(&life.world.oracle));
    world.gate.set_weather(Weather::Calm);
    for supplier in [&world.captions, &world.speech] {
        supplier.set_script(Script::Acts { next: [].into(), then: Act::give(&["en"]) });
    }
    end_all(&life).await;
    if fair {
        oracle.check_all_paid();
    }
    for account in accounts {
        check_after_all(&life, account, &videos()[0]).await;
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
