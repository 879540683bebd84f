//! Several servers on one store: each has a clock of its own and a way to the store of its own, and dies and is started
//! anew by itself while the others go on.
//!
//! Ways are bad, or cut for longer than a lease lasts; what was sent before may still take effect long afterwards.
//! Clocks differ by as much as servers let them (design: they go by the database's), and in some worlds one is wrong by
//! minutes, as where nothing sets it: then two may fetch the same, and money must be right all the same.

use std::{
    collections::BTreeSet,
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
    thread,
    time::{Duration, Instant},
};

use tokio::task::JoinSet;
use transcript_core::video::Platform;

use super::{
    accounts::{AccountOp, SimAccount},
    clock::VirtualClock,
    dice::Dice,
    gate::Gate,
    mutation::Mutation,
    ops::{Caller, Op, videos},
    run::{Report, end, plan},
    supplier::Script,
    wanted_seeds,
    weather::{Climate, Weather},
    world::{Life, Plan, SimKey, World},
};

/// How many seeds every test run has.
const SEEDS: std::ops::Range<u64> = 0..250;
/// How many steps a world has; each is one thing that somebody does, or several at once.
const STEPS: u64 = 60;
/// By how many milliseconds clocks differ that are set by the database's.
const APART: [i64; 5] = [0, 0, 400, -900, 1_900];
/// By how many one is wrong that nothing sets.
const WRONG: [i64; 4] = [-300_000, -61_000, 65_000, 600_000];
/// For how many milliseconds a server's way to the store is cut.
const CUTS: [u64; 5] = [400, 4_000, 21_000, 75_000, 200_000];
/// How many milliseconds it takes until a server is started anew.
const STARTS: [u64; 4] = [0, 900, 30_000, 95_000];

/// A server, or its place while there is none.
#[derive(Debug)]
struct Place {
    clock: Arc<VirtualClock>,
    gate: Arc<Gate>,
    life: Life,
}

/// One world while its servers run.
struct Stage<'a> {
    world: &'a Arc<World>,
    dice: &'a Dice,
    keys: &'a [SimKey],
    accounts: &'a [SimAccount],
    places: Vec<Place>,
    doing: JoinSet<()>,
    operations: u64,
}

/// Runs one seed.
fn run(seed: u64, mutation: Option<Mutation>, traced: bool) -> (Report, u64, u64) {
    let (dice, fate) = (Dice::new(seed, 8), Dice::new(seed, 9));
    // A world is longer here, and so are its months.
    let mut plan = Plan { traced, at_once: None, ..plan(seed, &dice, &fate) };
    plan.lookup.free_per_month *= 3;
    let world = World::new(mutation.map_or(plan.clone(), |mutation| mutation.plan(plan)));
    world.has_speech.store(dice.chance(500), Ordering::Relaxed);
    let slow = dice.chance(300);
    for (supplier, stream) in [(&world.captions, 10), (&world.speech, 11)] {
        supplier.set_script(Script::Seeded { dice: Box::new(Dice::new(seed, stream)), slow });
    }
    let people = world.live(1, None, |life| async move {
        let (mut keys, mut accounts) = (Vec::new(), Vec::new());
        for number in 0..3 {
            keys.push(life.world.make_key(&life.lookups[0]).await);
            accounts.push(SimAccount::made(&life, &format!("a{number}@example.org")).await);
        }
        (keys, accounts)
    });
    let (keys, accounts) = people.expect("nobody dies while the keys are made");
    let operations = world.stage(|clock| {
        let (world, dice, keys, accounts) = (&world, &dice, &keys, &accounts);
        async move {
            let mut stage = Stage {
                world,
                dice,
                keys,
                accounts,
                places: Vec::new(),
                doing: JoinSet::new(),
                operations: 0,
            };
            stage.open(&clock, seed).await;
            stage.play(seed).await;
            stage.operations
        }
    });
    world.live(1, None, |life| async {
        // Whatever a clock that was ahead has put off is over.
        tokio::time::sleep(Duration::from_secs(900)).await;
        end(life, &accounts, false).await;
    });
    let (oracle, trace) = (&world.oracle, world.gate.take_trace());
    let report = Report { wrongs: oracle.wrongs(), trace, reached: oracle.reached() };
    (report, operations, world.gate.calls())
}

impl Stage<'_> {
    /// Starts two to four servers.
    async fn open(&mut self, clock: &Arc<VirtualClock>, seed: u64) {
        let count = 2 + self.dice.below(3);
        let is_wrong = self.dice.chance(200);
        for number in 0..count {
            let mut ahead = *self.dice.pick(&APART);
            if is_wrong && number == 0 {
                ahead = *self.dice.pick(&WRONG);
                self.world.oracle.clocks_part();
                self.world.oracle.reach("a clock is wrong");
            }
            let clock = Arc::new(clock.ahead(ahead));
            let place = self.server(clock, seed * 100 + number).await;
            self.places.push(place);
        }
    }

    async fn server(&self, clock: Arc<VirtualClock>, seed: u64) -> Place {
        let gate = Arc::new(self.world.gate.beside(Weather::Calm));
        let life = self.world.server(&clock, &gate).await;
        gate.set_weather(Weather::Seeded(Box::new(Climate::drawn(seed))));
        Place { clock, gate, life }
    }

    async fn play(&mut self, seed: u64) {
        // Often all is about one video.
        let one = self.dice.chance(400).then(|| self.dice.pick(&videos()[..3]).clone());
        for step in 0..STEPS {
            let place = self.dice.below(self.places.len() as u64) as usize;
            match self.dice.below(100) {
                0..=4 => self.cut(place, seed * 10_000 + step),
                5..=8 => self.restart(place, seed * 10_000 + step).await,
                9..=39 => self.account(place, one.as_ref(), step),
                _ => self.caller(place, one.as_ref()),
            }
            tokio::time::sleep(self.pause()).await;
        }
        while let Some(done) = self.doing.join_next().await {
            if let Err(error) = done {
                self.world.oracle.wrong(format_args!("somebody panicked: {error}"));
            }
        }
        // All die; what they had begun ends by itself.
        for place in &self.places {
            place.gate.end();
        }
    }

    fn pause(&self) -> Duration {
        Duration::from_millis(match self.dice.below(12) {
            0..=4 => 0,
            5..=9 => self.dice.below(2_500),
            10 => self.dice.below(40_000),
            _ => *self.dice.pick(&[62_000, 900_000, 3_600_000]),
        })
    }

    /// Somebody with a key, or without one, asks a server, often several at once, and others other servers.
    fn caller(&mut self, place: usize, one: Option<&transcript_core::video::VideoId>) {
        let op = Op::drawn(self.dice, self.keys, one);
        if let Op::LookUp { target, peek: false, .. } = &op
            && self.dice.chance(350)
        {
            for _ in 0..2 + self.dice.below(5) {
                let caller = Caller::Key(self.dice.pick(self.keys).clone());
                let elsewhere = self.dice.below(self.places.len() as u64) as usize;
                let (target, give_up) = (target.clone(), None);
                self.spawn(elsewhere, |life| {
                    Op::LookUp { caller, target, peek: false, give_up }.act(life, 0, false)
                });
            }
        }
        self.world.gate.trace(|| format!("server {place}: {op:?}"));
        self.spawn(place, |life| op.act(life, 0, false));
    }

    /// The owner of an account does something, on one server or on several at once.
    fn account(&mut self, place: usize, one: Option<&transcript_core::video::VideoId>, step: u64) {
        let video = one.filter(|one| one.platform() == Platform::VideoSite);
        let video = video.unwrap_or(&videos()[0]).clone();
        let now = self.places[place].clock.ahead(0);
        let millis = transcript_core::Clock::now(&now).as_millis();
        let op = AccountOp::drawn(self.dice, &video, millis / 3_600_000);
        let many = matches!(op, AccountOp::Transcript { .. } | AccountOp::Rotate) && self.dice.chance(300);
        for copy in 0..if many { 2 + self.dice.below(4) } else { 1 } {
            let account = self.dice.pick(self.accounts).clone();
            let place = self.dice.below(self.places.len() as u64) as usize;
            self.world.gate.trace(|| format!("server {place}: {} {op:?}", account.email));
            let (op, number) = (op.clone(), step * 10 + copy);
            self.spawn(place, move |life| op.act(life, 0, account, number));
        }
    }

    /// Somebody does something with a server, as long as that lives.
    fn spawn<F: Future<Output = ()> + Send + 'static>(&mut self, place: usize, act: impl FnOnce(Life) -> F) {
        self.operations += 1;
        let Place { gate, life, .. } = &self.places[place];
        let (gate, act) = (Arc::clone(gate), act(life.clone()));
        self.doing.spawn(async move {
            tokio::select! {
                biased;
                () = gate.ended() => {}
                () = act => {}
            }
        });
    }

    /// Cuts the way of a server for a while.
    fn cut(&mut self, place: usize, seed: u64) {
        let (hangs, lasting) = (self.dice.chance(500), Duration::from_millis(*self.dice.pick(&CUTS)));
        self.world.gate.trace(|| format!("server {place} is cut off for {lasting:?}, hanging: {hangs}"));
        self.world.oracle.reach(if hangs { "a way hangs" } else { "a way is cut" });
        let gate = Arc::clone(&self.places[place].gate);
        gate.set_weather(Weather::Cut { hangs });
        self.doing.spawn(async move {
            tokio::time::sleep(lasting).await;
            gate.set_weather(Weather::Seeded(Box::new(Climate::drawn(seed))));
        });
    }

    /// Kills a server and starts another one in its place.
    async fn restart(&mut self, place: usize, seed: u64) {
        self.world.gate.trace(|| format!("server {place} dies"));
        self.world.oracle.reach("a server dies");
        self.places[place].gate.end();
        tokio::time::sleep(Duration::from_millis(*self.dice.pick(&STARTS))).await;
        let clock = Arc::clone(&self.places[place].clock);
        self.places[place] = self.server(clock, seed).await;
    }
}

/// What many seeds came to.
#[derive(Debug, Default)]
struct Figures {
    seeds: AtomicU64,
    operations: AtomicU64,
    calls: AtomicU64,
}

/// The first seed of a range, over all threads, whose run the oracle finds wrong.
fn first_wrong(seeds: std::ops::Range<u64>, mutation: Option<Mutation>, figures: &Figures) -> Option<u64> {
    let (next, wrong) = (AtomicU64::new(seeds.start), AtomicU64::new(u64::MAX));
    let threads = thread::available_parallelism().map_or(2, usize::from).min(4);
    thread::scope(|scope| {
        for _ in 0..threads {
            scope.spawn(|| {
                loop {
                    let seed = next.fetch_add(1, Ordering::Relaxed);
                    if seed >= seeds.end.min(wrong.load(Ordering::Relaxed)) {
                        return;
                    }
                    let (report, operations, calls) = run(seed, mutation, false);
                    figures.seeds.fetch_add(1, Ordering::Relaxed);
                    figures.operations.fetch_add(operations, Ordering::Relaxed);
                    figures.calls.fetch_add(calls, Ordering::Relaxed);
                    if !report.wrongs.is_empty() {
                        wrong.fetch_min(seed, Ordering::Relaxed);
                    }
                }
            });
        }
    });
    Some(wrong.into_inner()).filter(|seed| *seed != u64::MAX)
}

#[test]
fn several_servers_on_one_store_end_well() {
    let (seeds, begun, figures) = (wanted_seeds().unwrap_or(SEEDS), Instant::now(), Figures::default());
    let replay = seeds.end - seeds.start == 1;
    let wrong = if replay { Some(seeds.start) } else { first_wrong(seeds, None, &figures) };
    let Figures { seeds, operations, calls } = figures;
    eprintln!(
        "{seeds:?} seeds, {operations:?} operations, {calls:?} calls of a store, {:?}",
        begun.elapsed()
    );
    let Some(seed) = wrong else { return };
    let (report, _, _) = run(seed, None, true);
    if replay || !report.wrongs.is_empty() {
        eprintln!("{}", report.trace.join("\n"));
    }
    let wrongs = report.wrongs.join("\n");
    assert!(report.wrongs.is_empty(), "seed {seed}: {wrongs}\nreplay it with VERBATIM_SEED={seed}");
}

#[test]
fn servers_run_the_same_with_the_same_seed() {
    for seed in 0..20 {
        let ((first, ..), (second, ..)) = (run(seed, None, true), run(seed, None, true));
        assert!(first.trace.len() > 50, "seed {seed} does nothing");
        for (place, (one, other)) in first.trace.iter().zip(&second.trace).enumerate() {
            assert_eq!(one, other, "seed {seed}, line {place}");
        }
        assert_eq!(first, second, "seed {seed}");
    }
}

#[test]
fn servers_come_to_everything() {
    let what = [
        "a clock is wrong",
        "a way hangs",
        "a way is cut",
        "a server dies",
        "new",
        "archived",
        "replayed",
        "charged at hand",
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
    let mut missing: BTreeSet<_> = what.into_iter().map(str::to_owned).collect();
    for seed in 0..250 {
        let reached = run(seed, None, false).0.reached;
        missing.retain(|what| !reached.contains(what));
        if missing.is_empty() {
            return;
        }
    }
    panic!("no seed comes to {missing:?}");
}

#[test]
fn the_oracle_catches_what_goes_wrong_among_servers() {
    use Mutation::{
        BlindLease, DoubleCharge, EternalLease, ForgetReply, LoseGift, LoseTranscript, NeverSettle,
        SpendTwice,
    };
    let among = [
        BlindLease,
        DoubleCharge,
        EternalLease,
        ForgetReply,
        LoseGift,
        LoseTranscript,
        NeverSettle,
        SpendTwice,
    ];
    for mutation in among {
        let caught = first_wrong(0..600, Some(mutation), &Figures::default());
        assert!(caught.is_some(), "{mutation:?} was not caught");
    }
}
