//! A world: stores that outlive every process, and processes that live and die over them.

use std::{
    sync::{
        Arc, Mutex, PoisonError,
        atomic::{AtomicBool, Ordering},
    },
    time::Duration,
};

use async_trait::async_trait;
use tokio::runtime::{Builder, Handle};
use transcript_core::{
    Clock, Random, Result, Timestamp,
    accounts::{
        Accounts, AccountsOptions, AccountsParts, Orders, Outbox, Replies, StepByStep,
        payments::{PaymentParts, Payments},
    },
    archive::Archive,
    directory::{Directory, Owner, Secrets, key::Key},
    engine::{EngineOptions, Transcripts},
    ids::WalletId,
    ledger::Ledger,
    limits::RateLimiter,
    lookup::{CreateKey, CreateKeyOutcome, Lookup, LookupOptions, LookupParts, Origin},
    memory::{
        MemoryArchive, MemoryDirectory, MemoryLedger, MemoryOrders, MemoryOutbox, MemoryRateLimiter,
        MemoryReplies,
    },
    supplier::Supplier,
    video::{Platform, VideoId},
};

use super::{
    clock::VirtualClock,
    dice::Dice,
    faulty::{
        FaultyArchive, FaultyDirectory, FaultyLedger, FaultyLimiter, FaultyOrders, FaultyOutbox,
        FaultyReplies,
    },
    gate::{CrashPoint, Gate},
    listener::Listener,
    mutation::Mutation,
    oracle::{Limits, Oracle},
    supplier::{Act, Mortal, Script, SimResolver, SimSupplier},
    weather::Weather,
};
use crate::payments::provider::Provider;

/// 2026-11-20T12:00:00Z, in milliseconds: far from the end of any period.
pub(crate) const NOON_MS: i64 = 1_795_176_000_000;

/// How a world is made.
#[derive(Clone, Debug)]
pub(crate) struct Plan {
    pub(crate) seed: u64,
    /// When the first life begins.
    pub(crate) start: Timestamp,
    pub(crate) engine: EngineOptions,
    /// With how many videos at once each supplier works in each engine.
    pub(crate) at_once: Option<u32>,
    pub(crate) lookup: LookupOptions,
    pub(crate) accounts: AccountsOptions,
    /// What is broken on purpose.
    pub(crate) mutation: Option<Mutation>,
    /// Whether what happens is written down.
    pub(crate) traced: bool,
}

impl Default for Plan {
    fn default() -> Self {
        let base_url = "https://verbatim.example".to_owned();
        let mut accounts = AccountsOptions { base_url: base_url.clone(), ..AccountsOptions::default() };
        let plans = &mut accounts.plans;
        for (terms, price) in [(&mut plans.starter, 900), (&mut plans.pro, 2_900), (&mut plans.scale, 9_900)]
        {
            terms.price_cents = Some(price);
        }
        Self {
            seed: 0,
            start: Timestamp::from_millis(NOON_MS),
            engine: EngineOptions::default(),
            at_once: None,
            lookup: LookupOptions { base_url, ..LookupOptions::default() },
            accounts,
            mutation: None,
            traced: false,
        }
    }
}

/// How a life ends before its work is done.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Death {
    /// At a storage call.
    AtCall(CrashPoint),
    /// At a moment.
    After(Duration),
}

/// A key of the simulation, with its wallet.
#[derive(Clone, Debug)]
pub(crate) struct SimKey {
    pub(crate) text: String,
    pub(crate) wallet: WalletId,
}

/// The stores, and all that outlives a process.
#[derive(Debug)]
pub(crate) struct World {
    pub(crate) plan: Plan,
    pub(crate) gate: Arc<Gate>,
    pub(crate) oracle: Arc<Oracle>,
    /// The stores themselves.
    stores: Stores,
    /// The same behind the gate.
    gated: Stores,
    /// The stores as the operator's own tools reach them: behind the same gate.
    pub(crate) archive: Arc<dyn Archive>,
    pub(crate) ledger: Arc<dyn Ledger>,
    pub(crate) directory: Arc<dyn Directory>,
    pub(crate) outbox: Arc<dyn Outbox>,
    pub(crate) orders: Arc<dyn Orders>,
    /// Takes the money.
    pub(crate) provider: Provider,
    /// Reads captions, on both platforms.
    pub(crate) captions: Arc<SimSupplier>,
    /// Listens, on the long-form site only, and only where it is configured.
    pub(crate) speech: Arc<SimSupplier>,
    pub(crate) has_speech: AtomicBool,
    /// Hears how well suppliers are.
    pub(crate) listener: Arc<Listener>,
    pub(crate) random: Arc<Dice>,
    /// When the next life begins.
    time: Mutex<Timestamp>,
}

/// All stores: as they are, or behind a gate.
#[derive(Clone, Debug)]
pub(crate) struct Stores {
    archive: Arc<dyn Archive>,
    ledger: Arc<dyn Ledger>,
    directory: Arc<dyn Directory>,
    limiter: Arc<dyn RateLimiter>,
    replies: Arc<dyn Replies>,
    outbox: Arc<dyn Outbox>,
    orders: Arc<dyn Orders>,
}

impl Stores {
    /// The same behind a gate.
    fn behind(&self, gate: &Arc<Gate>) -> Self {
        let gate = || Arc::clone(gate);
        Self {
            archive: Arc::new(FaultyArchive { inner: Arc::clone(&self.archive), gate: gate() }),
            ledger: Arc::new(FaultyLedger { inner: Arc::clone(&self.ledger), gate: gate() }),
            directory: Arc::new(FaultyDirectory { inner: Arc::clone(&self.directory), gate: gate() }),
            limiter: Arc::new(FaultyLimiter { inner: Arc::clone(&self.limiter), gate: gate() }),
            replies: Arc::new(FaultyReplies { inner: Arc::clone(&self.replies), gate: gate() }),
            outbox: Arc::new(FaultyOutbox { inner: Arc::clone(&self.outbox), gate: gate() }),
            orders: Arc::new(FaultyOrders { inner: Arc::clone(&self.orders), gate: gate() }),
        }
    }
}

/// One life: the engines of one process, or of several side by side.
#[derive(Clone, Debug)]
pub(crate) struct Life {
    pub(crate) world: Arc<World>,
    pub(crate) clock: Arc<VirtualClock>,
    pub(crate) lookups: Vec<Lookup>,
    /// Surface B of the same processes, in the same order.
    pub(crate) accounts: Vec<Accounts>,
    /// What they sell, in the same order.
    pub(crate) payments: Vec<Payments>,
}

/// A secret that is there from the beginning.
#[derive(Debug)]
struct KnownSecret;

#[async_trait]
impl Secrets for KnownSecret {
    async fn secret(&self, _: &str, _: Vec<u8>) -> Result<Vec<u8>> {
        Ok(vec![42; 32])
    }
}

/// The video that every short link of a simulation means.
pub(crate) fn linked_video() -> VideoId {
    VideoId::new(Platform::ShortVideo, "7000000000000000001").unwrap()
}

impl World {
    pub(crate) fn new(plan: Plan) -> Arc<Self> {
        let mutation = plan.mutation;
        let (books, shelves) = (Arc::new(MemoryLedger::default()), Arc::new(MemoryArchive::default()));
        let limits = Limits {
            key: plan.lookup.free_per_month,
            service: plan.lookup.service_per_day,
            free_account: plan.accounts.plans.free.credits,
        };
        let register = Arc::new(MemoryDirectory::default());
        let stores = (Arc::clone(&shelves) as _, Arc::clone(&books) as _, Arc::clone(&register) as _);
        let oracle = Arc::new(Oracle::new(stores, limits));
        let gate = Arc::new(Gate::new(Arc::clone(&oracle), Weather::Calm, plan.traced));
        let stores = Stores {
            archive: Mutation::archive(mutation, shelves),
            ledger: Mutation::ledger(mutation, books),
            directory: register,
            limiter: Arc::new(MemoryRateLimiter::default()),
            replies: Mutation::replies(mutation, Arc::new(MemoryReplies::default())),
            outbox: Arc::new(MemoryOutbox::default()),
            orders: Arc::new(MemoryOrders::default()),
        };
        let gated = stores.behind(&gate);
        let supplier = |name| {
            let script = Script::Acts { next: [].into(), then: Act::give(&["en"]) };
            Arc::new(SimSupplier::new(name, script, Arc::clone(&oracle), Arc::clone(&gate)))
        };
        Arc::new(Self {
            archive: Arc::clone(&gated.archive),
            ledger: Arc::clone(&gated.ledger),
            directory: Arc::clone(&gated.directory),
            outbox: Arc::clone(&gated.outbox),
            orders: Arc::clone(&gated.orders),
            stores,
            gated,
            provider: Provider::new(Arc::clone(&gate)),
            captions: supplier("captions"),
            speech: supplier("speech"),
            has_speech: AtomicBool::new(false),
            listener: Arc::new(Listener::new(Arc::clone(&gate), Arc::clone(&oracle))),
            random: Arc::new(Dice::new(plan.seed, 2)),
            time: Mutex::new(plan.start),
            plan,
            gate,
            oracle,
        })
    }

    /// Lives one life with this many engines; none when it died before its work was done.
    ///
    /// A life is a runtime: when it ends, every task is dropped wherever it is.
    pub(crate) fn live<T, F>(
        self: &Arc<Self>,
        engines: usize,
        death: Option<Death>,
        work: impl FnOnce(Life) -> F,
    ) -> Option<T>
    where
        F: Future<Output = T>,
    {
        let runtime = Builder::new_current_thread().enable_time().start_paused(true).build().unwrap();
        let start = *self.time.lock().unwrap_or_else(PoisonError::into_inner);
        let (outcome, end) = runtime.block_on(async {
            let clock = Arc::new(VirtualClock::starting_at(start));
            let (crash, time) = match death {
                Some(Death::AtCall(point)) => (Some(point), Duration::MAX),
                Some(Death::After(time)) => (None, time),
                None => (None, Duration::MAX),
            };
            self.gate.begin_life(crash);
            for supplier in [&self.captions, &self.speech] {
                supplier.begin_life(self.plan.at_once.map(|videos| videos as usize * engines));
            }
            let work = async {
                let life = self.begin(&clock, engines).await;
                work(life).await
            };
            let outcome = tokio::select! {
                biased;
                () = self.gate.crashed() => None,
                outcome = tokio::time::timeout(time, work) => outcome.ok(),
            };
            (outcome, clock.now())
        });
        drop(runtime);
        self.gate.end_life();
        self.oracle.check_nothing_flies();
        *self.time.lock().unwrap_or_else(PoisonError::into_inner) = end;
        outcome
    }

    /// A while in which servers come and go, in a runtime that ends with it. `work` is given the time.
    pub(crate) fn stage<T, F>(self: &Arc<Self>, work: impl FnOnce(Arc<VirtualClock>) -> F) -> T
    where
        F: Future<Output = T>,
    {
        let runtime = Builder::new_current_thread().enable_time().start_paused(true).build().unwrap();
        let start = *self.time.lock().unwrap_or_else(PoisonError::into_inner);
        let (outcome, end) = runtime.block_on(async {
            let clock = Arc::new(VirtualClock::starting_at(start));
            self.gate.begin_life(None);
            for supplier in [&self.captions, &self.speech] {
                supplier.begin_life(None);
            }
            let outcome = work(Arc::clone(&clock)).await;
            (outcome, clock.now())
        });
        drop(runtime);
        self.gate.end_life();
        self.oracle.check_nothing_flies();
        *self.time.lock().unwrap_or_else(PoisonError::into_inner) = end;
        outcome
    }

    async fn begin(self: &Arc<Self>, clock: &Arc<VirtualClock>, engines: usize) -> Life {
        let mut life = Life {
            world: Arc::clone(self),
            clock: Arc::clone(clock),
            lookups: Vec::new(),
            accounts: Vec::new(),
            payments: Vec::new(),
        };
        for _ in 0..engines {
            let suppliers = [&self.captions, &self.speech].map(|supplier| Arc::clone(supplier) as _);
            self.open(&mut life, &self.gated, self.provider.clone(), suppliers, &self.gate).await;
        }
        life
    }

    /// One server by itself, behind a gate of its own, by a clock of its own.
    pub(crate) async fn server(self: &Arc<Self>, clock: &Arc<VirtualClock>, gate: &Arc<Gate>) -> Life {
        let (clock, stores) = (Arc::clone(clock), self.stores.behind(gate));
        let (lookups, accounts, payments) = (Vec::new(), Vec::new(), Vec::new());
        let mut life = Life { world: Arc::clone(self), clock, lookups, accounts, payments };
        let suppliers = [&self.captions, &self.speech].map(|supplier| {
            Arc::new(Mortal { inner: Arc::clone(supplier), gate: Arc::clone(gate) }) as Arc<dyn Supplier>
        });
        self.open(&mut life, &stores, self.provider.by(Arc::clone(gate)), suppliers, gate).await;
        life
    }

    /// Opens the parts of one more process.
    async fn open(
        self: &Arc<Self>,
        life: &mut Life,
        stores: &Stores,
        provider: Provider,
        suppliers: [Arc<dyn Supplier>; 2],
        gate: &Arc<Gate>,
    ) {
        let clock = || Arc::clone(&life.clock) as Arc<dyn Clock>;
        let random = || Arc::clone(&self.random) as Arc<dyn Random>;
        let Stores { archive, ledger, directory, limiter, replies, outbox, orders } = stores.clone();
        let till = Payments::new(PaymentParts {
            orders: Arc::clone(&orders),
            directory: Arc::clone(&directory),
            ledger: Arc::clone(&ledger),
            limiter: Arc::clone(&limiter),
            checkout: Some(Arc::new(provider)),
            clock: clock(),
            plans: self.plan.accounts.plans,
        });
        let transcripts = self.engine((archive, Arc::clone(&ledger)), clock(), suppliers, gate);
        let charges = Arc::new(StepByStep {
            directory: Arc::clone(&directory),
            limiter: Arc::clone(&limiter),
            ledger: Arc::clone(&ledger),
        });
        let parts = AccountsParts {
            transcripts: transcripts.clone(),
            ledger: Arc::clone(&ledger),
            directory: Arc::clone(&directory),
            charges,
            outbox,
            orders,
            replies,
            limiter: Arc::clone(&limiter),
            clock: clock(),
            random: random(),
            options: self.plan.accounts.clone(),
        };
        let accounts = Accounts::open(parts, &KnownSecret).await.unwrap();
        let (clock, random, options) = (clock(), random(), self.plan.lookup.clone());
        let parts = LookupParts { transcripts, ledger, directory, limiter, clock, random, options };
        let lookup = Lookup::open(parts, &KnownSecret).await.unwrap();
        life.payments.push(till);
        life.accounts.push(accounts);
        life.lookups.push(lookup);
    }

    fn engine(
        &self,
        (archive, ledger): (Arc<dyn Archive>, Arc<dyn Ledger>),
        clock: Arc<dyn Clock>,
        [captions, speech]: [Arc<dyn Supplier>; 2],
        gate: &Arc<Gate>,
    ) -> Transcripts {
        let random = Arc::clone(&self.random) as Arc<dyn Random>;
        let resolver = SimResolver {
            video: linked_video(),
            script: Dice::new(self.plan.seed, 3),
            gate: Arc::clone(gate),
        };
        let mut builder = Transcripts::builder(archive, clock, random, Handle::current())
            .ledger(ledger)
            .observer(Arc::clone(&self.listener) as _)
            .options(self.plan.engine.clone())
            .resolver(Platform::ShortVideo, Arc::new(resolver))
            .supplier(Platform::VideoSite, Arc::clone(&captions))
            .supplier(Platform::ShortVideo, captions);
        if self.has_speech.load(Ordering::Relaxed) {
            builder = builder.supplier(Platform::VideoSite, speech);
        }
        if let Some(videos) = self.plan.at_once {
            builder = builder.at_once("captions", videos).at_once("speech", videos);
        }
        builder.build()
    }

    /// Makes a key, as the operator; the weather must be calm.
    pub(crate) async fn make_key(&self, lookup: &Lookup) -> SimKey {
        let ask = CreateKey { label: None, email: None, proof: None, origin: Origin::Operator };
        let outcome = lookup.create_key(ask).await.unwrap();
        let CreateKeyOutcome::Created(created) = outcome else { panic!("no key: {outcome:?}") };
        self.sim_key(&created.key).await
    }

    /// A key with its wallet, as the directory has it.
    pub(crate) async fn sim_key(&self, key: &Key) -> SimKey {
        let Ok(Some(Owner::Lookup(record))) = self.directory.owner(&key.digest()).await else {
            panic!("a new key is not in the directory");
        };
        SimKey { text: key.reveal().to_owned(), wallet: record.wallet }
    }
}

impl Life {
    pub(crate) fn now(&self) -> Timestamp {
        self.clock.now()
    }

    /// How long a look-up may take at most.
    pub(crate) fn patience(&self) -> Duration {
        self.world.plan.engine.wait + EngineOptions::default().store * 3 + Duration::from_secs(1)
    }
}
