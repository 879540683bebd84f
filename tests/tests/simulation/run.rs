//! Runs one seed.

use std::{
    collections::BTreeSet,
    sync::{Arc, atomic::Ordering},
    time::Duration,
};

use tokio::{task::JoinSet, time::timeout};
use transcript_core::{Timestamp, directory::Plan as AccountPlan, lookup::Availability, video::Platform};

use super::{
    accounts::{AccountOp, SimAccount, check_final},
    fault_plan::{FaultPlan, FaultRates},
    mutation::Mutation,
    ops::{Op, SimCaller, SimRequest, Target, summary, videos},
    seeded_rng::SeededRng,
    store_gate::CrashPoint,
    supplier::{SupplierScript, SupplierStep},
    world::{CrashPlan, NOON_MS, ProcessLife, SimKey, SimWorld, WorldConfig},
};

/// Result of a seed.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct SimReport {
    pub(crate) violations: Vec<String>,
    pub(crate) trace: Vec<String>,
    /// The covered cases.
    pub(crate) reached: BTreeSet<String>,
}

pub(crate) fn run(seed: u64, mutation: Option<Mutation>, traced: bool) -> SimReport {
    let rng = SeededRng::new(seed, 0);
    // Account operations have their own random stream, so that the others do not depend on them.
    let account_rng = SeededRng::new(seed, 6);
    let config = WorldConfig { traced, ..random_config(seed, &rng, &account_rng) };
    let world = SimWorld::new(mutation.map_or(config.clone(), |mutation| mutation.apply(config)));
    world.has_speech.store(rng.chance(500), Ordering::Relaxed);
    let hot_video = rng.chance(150);
    let slow = hot_video || rng.chance(200);
    let share = if hot_video { 0 } else { *account_rng.pick(&[0, 200, 700, 900]) };
    for (supplier, stream) in [(&world.captions, 4), (&world.speech, 5)] {
        supplier.set_script(SupplierScript::Seeded { rng: Box::new(SeededRng::new(seed, stream)), slow });
    }
    let fixtures = world
        .run_process(1, None, |life| async move {
            let (mut keys, mut accounts) = (Vec::new(), Vec::new());
            for number in 0..3 {
                keys.push(life.world.make_key(&life.lookups[0]).await);
                if share > 0 && number < 2 {
                    accounts.push(SimAccount::create(&life, &format!("a{number}@example.org")).await);
                }
            }
            (keys, accounts)
        })
        .expect("the creation of keys must not crash");
    let (keys, accounts) = fixtures;
    let crashes = if rng.chance(400) { 1 + rng.below(2) } else { 0 };
    let rates = if hot_video { FaultRates::late(seed) } else { FaultRates::random(seed) };
    let fair = rates.is_fair() && crashes == 0;
    world.gate.set_faults(FaultPlan::Seeded(Box::new(rates)));
    let cast =
        SimCast { rng: &rng, keys: &keys, account_rng: &account_rng, accounts: &accounts, share, hot_video };
    for _ in 0..crashes {
        let crash = match rng.chance(600) {
            true => CrashPlan::AtCall(CrashPoint { call: 1 + rng.below(120), after_effect: rng.chance(500) }),
            false => CrashPlan::After(Duration::from_millis(rng.below(90_000))),
        };
        let engines = 1 + rng.below(3) as usize;
        if world.run_process(engines, Some(crash), |life| run_life(life, &cast, fair)).is_none() {
            world.oracle.reach("crash");
        }
    }
    let engines = 1 + rng.below(3) as usize;
    world.run_process(engines, None, |life| async {
        run_life(life.clone(), &cast, fair).await;
        end(life, &accounts, fair).await;
    });
    let (oracle, trace) = (&world.oracle, world.gate.take_trace());
    SimReport { violations: oracle.violations(), trace, reached: oracle.reached() }
}

pub(super) fn random_config(seed: u64, rng: &SeededRng, account_rng: &SeededRng) -> WorldConfig {
    let mut config = WorldConfig { seed, ..WorldConfig::default() };
    let half_a_day = 43_200_000;
    let midnight = NOON_MS + half_a_day;
    let month_end = NOON_MS + half_a_day + 10 * 2 * half_a_day;
    let before = rng.below(40_000) as i64;
    config.start = Timestamp::from_millis(*rng.pick(&[NOON_MS, midnight - before, month_end - before]));
    config.engine.wait_timeout = Duration::from_secs(*rng.pick(&[25, 25, 8]));
    config.engine.work_timeout = Duration::from_secs(*rng.pick(&[300, 1_800]));
    // Supplier limits have their own random stream, so that the other draws do not depend on them.
    let supplier_rng = SeededRng::new(seed, 7);
    config.engine.breaker.failures = *supplier_rng.pick(&[1, 2, 5]) as u32;
    config.concurrency = *supplier_rng.pick(&[None, Some(1), Some(2)]);
    config.lookup.free_per_month = 1 + rng.below(8);
    config.lookup.service_per_day = *rng.pick(&[3, 3, 20]);
    config.lookup.misses_per_network_per_minute = *rng.pick(&[2, 60]);
    config.lookup.attempts_per_key_per_hour = *rng.pick(&[4, 60]);
    for (name, credits) in AccountPlan::ALL.into_iter().zip([4, 5, 6, 7]) {
        let terms = config.accounts.plans.terms_mut(name);
        terms.credits = 1 + account_rng.below(credits);
        terms.requests_per_minute = 1_000;
    }
    config
}

/// Actors and parameters of the lives of a seed.
struct SimCast<'a> {
    rng: &'a SeededRng,
    keys: &'a [SimKey],
    account_rng: &'a SeededRng,
    accounts: &'a [SimAccount],
    /// Share of account operations, in permille.
    share: u64,
    /// Whether all callers request one video repeatedly while its fetch is slow.
    hot_video: bool,
}

async fn run_life(
    life: ProcessLife,
    &SimCast { rng, keys, account_rng, accounts, share, hot_video }: &SimCast<'_>,
    fair: bool,
) {
    let mut tasks = JoinSet::new();
    let mut account_tasks = JoinSet::new();
    let mut act = |op: Op| {
        let engine = rng.below(8) as usize;
        life.world.gate.trace(|| format!("engine {engine}: {op:?}"));
        tasks.spawn(op.act(life.clone(), engine, fair));
    };
    // Often all operations use one video.
    let one = (hot_video || rng.chance(400)).then(|| rng.pick(&videos()[..3]).clone());
    let steps = if hot_video { 20 } else { 4 + rng.below(8) };
    for step in 0..steps {
        if account_rng.chance(share) {
            let video = one.as_ref().filter(|one| one.platform() == Platform::YouTube);
            let video = video.unwrap_or(&videos()[0]).clone();
            let op = AccountOp::random(account_rng, &video, life.now().as_millis() / 3_600_000);
            let many =
                matches!(op, AccountOp::Transcript { .. } | AccountOp::Rotate) && account_rng.chance(250);
            for copy in 0..if many { 2 + account_rng.below(4) } else { 1 } {
                let (account, engine) = (account_rng.pick(accounts), account_rng.below(8) as usize);
                life.world.gate.trace(|| format!("engine {engine}: {} {op:?}", account.email));
                let number = life.now().as_millis() as u64 * 1_000 + step * 10 + copy;
                account_tasks.spawn(op.clone().act(life.clone(), engine, account.clone(), number));
            }
        }
        let op = Op::random(rng, keys, one.as_ref());
        if let Op::LookUp { target, peek: false, .. } = &op
            && rng.chance(300)
        {
            // Several concurrent lookups of one video.
            for _ in 0..2 + rng.below(5) {
                let caller = SimCaller::Key(rng.pick(keys).clone());
                act(Op::LookUp { caller, target: target.clone(), peek: false, give_up: None });
            }
        }
        act(op);
        let pause = if hot_video { Duration::from_millis(rng.below(25_000)) } else { pause(rng) };
        tokio::time::sleep(pause).await;
    }
    while let Some(done) = account_tasks.join_next().await {
        if let Err(error) = done {
            life.world.oracle.report(format_args!("an account operation panicked: {error}"));
        }
    }
    while let Some(done) = tasks.join_next().await {
        if let Err(error) = done {
            life.world.oracle.report(format_args!("an operation panicked: {error}"));
        }
    }
}

fn pause(rng: &SeededRng) -> Duration {
    Duration::from_millis(match rng.below(12) {
        0..=3 => 0,
        4..=8 => rng.below(2_000),
        9 | 10 => rng.below(40_000),
        _ => *rng.pick(&[70_000, 900_000, 3_600_000, 25_000_000, 90_000_000]),
    })
}

/// Ends a run without faults: all work must end, nothing may be left, and the service must work.
pub(super) async fn end(life: ProcessLife, accounts: &[SimAccount], fair: bool) {
    let (world, oracle) = (&life.world, Arc::clone(&life.world.oracle));
    world.gate.set_faults(FaultPlan::NoFaults);
    for supplier in [&world.captions, &world.speech] {
        supplier.set_script(SupplierScript::Steps { next: [].into(), then: SupplierStep::give(&["en"]) });
    }
    end_all(&life).await;
    if fair {
        oracle.check_all_paid();
    }
    for account in accounts {
        check_final(&life, account, &videos()[0]).await;
    }
    // All absences expire, and every period is replaced.
    tokio::time::sleep(Duration::from_secs(32 * 24 * 3_600)).await;
    for video in videos() {
        let lookup = &life.lookups[0];
        let key = world.make_key(lookup).await;
        let supplied = video.platform() != Platform::Instagram;
        let caller = SimCaller::Key(key);
        let request =
            SimRequest { life: &life, lookup, caller, target: Target::new(video), peek: false, fair: true };
        let Some(answer) = request.send(None).await else { continue };
        if matches!(answer.availability, Availability::Available { .. }) != supplied {
            oracle.report(format_args!("final lookup: {}", summary(&answer)));
        }
    }
    close(&life).await;
    oracle.check_nothing_held(life.now());
}

/// Waits until all work has ended; then checks that no hold, lease or fetch is left.
pub(crate) async fn end_all(life: &ProcessLife) {
    let oracle = &life.world.oracle;
    close(life).await;
    tokio::time::sleep(life.world.config.engine.hold + Duration::from_secs(1)).await;
    oracle.check_nothing_held(life.now());
    oracle.check_nothing_open(&videos(), life.now());
}

/// Waits until the engines' work has ended.
async fn close(life: &ProcessLife) {
    let engine = &life.world.config.engine;
    let limit = engine.work_timeout + engine.hold + engine.store_timeout * 60;
    for lookup in &life.lookups {
        if timeout(limit, lookup.transcripts().close()).await.is_err() {
            life.world.oracle.report("work did not end");
        }
    }
}
