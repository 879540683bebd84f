//! Several servers on one store: each has its own clock and its own connection to the store, and is
//! killed and restarted while the others continue.
//!
//! Connections fail, or are cut for longer than a lease lasts; calls sent before may still take effect long
//! afterwards. Clocks differ by as much as servers permit (they are set by the database's clock). In some
//! worlds one clock is wrong by minutes: then two servers may fetch the same video, and charges must still
//! be right.

use std::{
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
    time::{Duration, Instant},
};

use tokio::task::JoinSet;
use transcript_core::{test_doubles::PausedClock, video::Platform};

use super::{
    accounts::{AccountOp, SimAccount},
    check_reached, check_same_runs, check_seeds,
    fault_plan::{FaultPlan, FaultRates},
    first_failing_seed,
    mutation::Mutation,
    ops::{Op, SimCaller, videos},
    run::{SimReport, end, random_config},
    seeded_rng::SeededRng,
    store_gate::StoreGate,
    supplier::SupplierScript,
    world::{ProcessLife, SimKey, SimWorld, WorldConfig},
};

/// Seeds of every test run.
const SEEDS: std::ops::Range<u64> = 0..250;
/// Steps of a world; each is one operation or several concurrent ones.
const STEPS: u64 = 60;
/// Differences of clocks that are set by the database's, in milliseconds.
const APART: [i64; 5] = [0, 0, 400, -900, 1_900];
/// Errors of a clock that is not set, in milliseconds.
const WRONG: [i64; 4] = [-300_000, -61_000, 65_000, 600_000];
/// Durations of a cut of a server's connection to the store, in milliseconds.
const CUTS: [u64; 5] = [400, 4_000, 21_000, 75_000, 200_000];
/// Delays of a restart, in milliseconds.
const STARTS: [u64; 4] = [0, 900, 30_000, 95_000];

/// A server, running or killed.
#[derive(Debug)]
struct SimServer {
    clock: Arc<PausedClock>,
    gate: Arc<StoreGate>,
    life: ProcessLife,
}

/// One world while its servers run.
struct SimFixture<'a> {
    world: &'a Arc<SimWorld>,
    rng: &'a SeededRng,
    keys: &'a [SimKey],
    accounts: &'a [SimAccount],
    servers: Vec<SimServer>,
    tasks: JoinSet<()>,
    operations: u64,
}

fn run(seed: u64, mutation: Option<Mutation>, traced: bool) -> (SimReport, u64, u64) {
    let (rng, account_rng) = (SeededRng::new(seed, 8), SeededRng::new(seed, 9));
    // A world lasts longer here, and so do its months.
    let mut config = WorldConfig { traced, concurrency: None, ..random_config(seed, &rng, &account_rng) };
    config.lookup.free_per_month *= 3;
    let world = SimWorld::new(mutation.map_or(config.clone(), |mutation| mutation.apply(config)));
    world.has_speech.store(rng.chance(500), Ordering::Relaxed);
    let slow = rng.chance(300);
    for (supplier, stream) in [(&world.captions, 10), (&world.speech, 11)] {
        supplier.set_script(SupplierScript::Seeded { rng: Box::new(SeededRng::new(seed, stream)), slow });
    }
    let fixtures = world.run_process(1, None, |life| async move {
        let (mut keys, mut accounts) = (Vec::new(), Vec::new());
        for number in 0..3 {
            keys.push(life.world.make_key(&life.lookups[0]).await);
            accounts.push(SimAccount::create(&life, &format!("a{number}@example.org")).await);
        }
        (keys, accounts)
    });
    let (keys, accounts) = fixtures.expect("the creation of keys must not crash");
    let operations = world.run_servers(|clock| {
        let (world, rng, keys, accounts) = (&world, &rng, &keys, &accounts);
        async move {
            let mut fixture = SimFixture {
                world,
                rng,
                keys,
                accounts,
                servers: Vec::new(),
                tasks: JoinSet::new(),
                operations: 0,
            };
            fixture.start_servers(&clock, seed).await;
            fixture.run_steps(seed).await;
            fixture.operations
        }
    });
    world.run_process(1, None, |life| async {
        // Every delay set by a clock that was ahead is over.
        tokio::time::sleep(Duration::from_secs(900)).await;
        end(life, &accounts, false).await;
    });
    let (oracle, trace) = (&world.oracle, world.gate.take_trace());
    let report = SimReport { violations: oracle.violations(), trace, reached: oracle.reached() };
    (report, operations, world.gate.calls())
}

impl SimFixture<'_> {
    /// Starts two to four servers.
    async fn start_servers(&mut self, clock: &Arc<PausedClock>, seed: u64) {
        let count = 2 + self.rng.below(3);
        let is_wrong = self.rng.chance(200);
        for number in 0..count {
            let mut ahead = *self.rng.pick(&APART);
            if is_wrong && number == 0 {
                ahead = *self.rng.pick(&WRONG);
                self.world.oracle.allow_concurrent_fetches();
                self.world.oracle.reach("clock wrong");
            }
            let clock = Arc::new(clock.ahead(ahead));
            let server = self.start_server(clock, seed * 100 + number).await;
            self.servers.push(server);
        }
    }

    async fn start_server(&self, clock: Arc<PausedClock>, seed: u64) -> SimServer {
        let gate = Arc::new(self.world.gate.for_server(FaultPlan::NoFaults));
        let life = self.world.server(&clock, &gate).await;
        gate.set_faults(FaultPlan::Seeded(Box::new(FaultRates::random(seed))));
        SimServer { clock, gate, life }
    }

    async fn run_steps(&mut self, seed: u64) {
        // Often all operations use one video.
        let one = self.rng.chance(400).then(|| self.rng.pick(&videos()[..3]).clone());
        for step in 0..STEPS {
            let index = self.rng.below(self.servers.len() as u64) as usize;
            match self.rng.below(100) {
                0..=4 => self.cut(index, seed * 10_000 + step),
                5..=8 => self.restart(index, seed * 10_000 + step).await,
                9..=39 => self.run_account_op(index, one.as_ref(), step),
                _ => self.run_lookups(index, one.as_ref()),
            }
            tokio::time::sleep(self.pause()).await;
        }
        while let Some(done) = self.tasks.join_next().await {
            if let Err(error) = done {
                self.world.oracle.report(format_args!("an operation panicked: {error}"));
            }
        }
        // All servers are killed; their unfinished work must be cleaned up.
        for server in &self.servers {
            server.gate.kill();
        }
    }

    fn pause(&self) -> Duration {
        Duration::from_millis(match self.rng.below(12) {
            0..=4 => 0,
            5..=9 => self.rng.below(2_500),
            10 => self.rng.below(40_000),
            _ => *self.rng.pick(&[62_000, 900_000, 3_600_000]),
        })
    }

    /// Sends lookups to a server, often several concurrent ones, also to other servers.
    fn run_lookups(&mut self, index: usize, one: Option<&transcript_core::video::VideoId>) {
        let op = Op::random(self.rng, self.keys, one);
        if let Op::LookUp { target, peek: false, .. } = &op
            && self.rng.chance(350)
        {
            for _ in 0..2 + self.rng.below(5) {
                let caller = SimCaller::Key(self.rng.pick(self.keys).clone());
                let other = self.rng.below(self.servers.len() as u64) as usize;
                let (target, give_up) = (target.clone(), None);
                self.spawn(other, |life| {
                    Op::LookUp { caller, target, peek: false, give_up }.act(life, 0, false)
                });
            }
        }
        self.world.gate.trace(|| format!("server {index}: {op:?}"));
        self.spawn(index, |life| op.act(life, 0, false));
    }

    /// Performs an account operation on one server, or on several concurrently.
    fn run_account_op(&mut self, index: usize, one: Option<&transcript_core::video::VideoId>, step: u64) {
        let video = one.filter(|one| one.platform() == Platform::YouTube);
        let video = video.unwrap_or(&videos()[0]).clone();
        let now = self.servers[index].clock.ahead(0);
        let millis = transcript_core::Clock::now(&now).as_millis();
        let op = AccountOp::random(self.rng, &video, millis / 3_600_000);
        let many = matches!(op, AccountOp::Transcript { .. } | AccountOp::Rotate) && self.rng.chance(300);
        for copy in 0..if many { 2 + self.rng.below(4) } else { 1 } {
            let account = self.rng.pick(self.accounts).clone();
            let index = self.rng.below(self.servers.len() as u64) as usize;
            self.world.gate.trace(|| format!("server {index}: {} {op:?}", account.email));
            let (op, number) = (op.clone(), step * 10 + copy);
            self.spawn(index, move |life| op.act(life, 0, account, number));
        }
    }

    /// Spawns an operation on a server; it ends when the server is killed.
    fn spawn<F: Future<Output = ()> + Send + 'static>(
        &mut self,
        index: usize,
        act: impl FnOnce(ProcessLife) -> F,
    ) {
        self.operations += 1;
        let SimServer { gate, life, .. } = &self.servers[index];
        let (gate, act) = (Arc::clone(gate), act(life.clone()));
        self.tasks.spawn(async move {
            tokio::select! {
                biased;
                () = gate.killed() => {}
                () = act => {}
            }
        });
    }

    /// Cuts a server's connection to the store temporarily.
    fn cut(&mut self, index: usize, seed: u64) {
        let (hangs, lasting) = (self.rng.chance(500), Duration::from_millis(*self.rng.pick(&CUTS)));
        self.world.gate.trace(|| format!("server {index} is cut off for {lasting:?}, hangs: {hangs}"));
        self.world.oracle.reach(if hangs { "store connection hangs" } else { "store connection cut" });
        let gate = Arc::clone(&self.servers[index].gate);
        gate.set_faults(FaultPlan::Disconnected { hangs });
        self.tasks.spawn(async move {
            tokio::time::sleep(lasting).await;
            gate.set_faults(FaultPlan::Seeded(Box::new(FaultRates::random(seed))));
        });
    }

    /// Kills a server and starts another one with the same clock.
    async fn restart(&mut self, index: usize, seed: u64) {
        self.world.gate.trace(|| format!("server {index} is killed"));
        self.world.oracle.reach("server killed");
        self.servers[index].gate.kill();
        tokio::time::sleep(Duration::from_millis(*self.rng.pick(&STARTS))).await;
        let clock = Arc::clone(&self.servers[index].clock);
        self.servers[index] = self.start_server(clock, seed).await;
    }
}

/// Totals of many seeds.
#[derive(Debug, Default)]
struct SimFigures {
    seeds: AtomicU64,
    operations: AtomicU64,
    calls: AtomicU64,
}

#[test]
fn servers_every_seed_has_no_violation() {
    let (started, figures) = (Instant::now(), SimFigures::default());
    check_seeds(SEEDS, |seed, traced| {
        let (report, operations, calls) = run(seed, None, traced);
        figures.seeds.fetch_add(1, Ordering::Relaxed);
        figures.operations.fetch_add(operations, Ordering::Relaxed);
        figures.calls.fetch_add(calls, Ordering::Relaxed);
        report
    });
    let SimFigures { seeds, operations, calls } = figures;
    eprintln!("{seeds:?} seeds, {operations:?} operations, {calls:?} store calls, {:?}", started.elapsed());
}

#[test]
fn servers_same_seed_same_run() {
    check_same_runs(0..20, 50, |seed| run(seed, None, true).0);
}

#[test]
fn servers_seeds_cover_every_case() {
    let what = [
        "clock wrong",
        "store connection hangs",
        "store connection cut",
        "server killed",
        "new",
        "archived",
        "replayed",
        "charged from cache",
        "Spent",
        "Charged",
        "Returned",
        "Expired",
        "paid a plan",
        "bought a pack",
        "refused 402",
        "refused 409",
        "refused 500",
        "still being transcribed",
    ];
    check_reached(what.map(str::to_owned).into(), 0..250, |seed| run(seed, None, false).0);
}

#[test]
fn oracle_detects_mutations_across_servers() {
    use Mutation::{
        BlindLease, DoubleCharge, EndlessLease, LoseGrant, LoseResponse, LoseTranscript, NeverSettle,
        SpendTwice,
    };
    let mutations = [
        BlindLease,
        DoubleCharge,
        EndlessLease,
        LoseResponse,
        LoseGrant,
        LoseTranscript,
        NeverSettle,
        SpendTwice,
    ];
    for mutation in mutations {
        let caught = first_failing_seed(0..600, |seed| run(seed, Some(mutation), false).0);
        assert!(caught.is_some(), "{mutation:?} was not caught");
    }
}
