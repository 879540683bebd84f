//! A world: stores that outlive every process, and processes that start and crash over them.

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
        Accounts, AccountsDeps, AccountsOptions, IdempotencyStore, OrderStore, Outbox, SequentialCharges,
        payments::{PaymentDeps, Payments},
    },
    archive::Archive,
    directory::{Directory, KeyAccess, KeyOwner, SecretStore, api_key::ApiKey},
    engine::{EngineOptions, Transcripts},
    ids::WalletId,
    ledger::Ledger,
    limits::RateLimiter,
    lookup::{CreateKeyOutcome, CreateKeyRequest, KeyOrigin, Lookup, LookupDeps, LookupOptions},
    memory::{
        MemoryArchive, MemoryDirectory, MemoryIdempotencyStore, MemoryJobs, MemoryLedger, MemoryOrders,
        MemoryOutbox, MemoryRateLimiter,
    },
    supplier::Supplier,
    test_doubles::PausedClock,
    video::{Platform, VideoId},
};

use super::{
    fault_plan::FaultPlan,
    faulty::{
        FaultyArchive, FaultyDirectory, FaultyIdempotencyStore, FaultyLedger, FaultyLimiter, FaultyOrders,
        FaultyOutbox,
    },
    listener::Listener,
    mutation::Mutation,
    oracle::{Oracle, OracleLimits},
    seeded_rng::SeededRng,
    store_gate::{CrashPoint, StoreGate},
    supplier::{CrashableSupplier, SimResolver, SimSupplier, SupplierScript, SupplierStep},
};
use crate::payments::provider::FakeProvider;

/// 2026-11-20T12:00:00Z, in milliseconds: far from the end of any period.
pub(crate) const NOON_MS: i64 = 1_795_176_000_000;

/// Configuration of a world.
#[derive(Clone, Debug)]
pub(crate) struct WorldConfig {
    pub(crate) seed: u64,
    /// Start of the first life.
    pub(crate) start: Timestamp,
    pub(crate) engine: EngineOptions,
    /// Limit of concurrent fetches of each supplier in each engine.
    pub(crate) concurrency: Option<u32>,
    pub(crate) lookup: LookupOptions,
    pub(crate) accounts: AccountsOptions,
    /// The injected defect, if any.
    pub(crate) mutation: Option<Mutation>,
    /// Whether events are recorded in the trace.
    pub(crate) traced: bool,
}

impl Default for WorldConfig {
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
            concurrency: None,
            lookup: LookupOptions { base_url, ..LookupOptions::default() },
            accounts,
            mutation: None,
            traced: false,
        }
    }
}

/// Crash of a life before its work is done.
#[derive(Clone, Copy, Debug)]
pub(crate) enum CrashPlan {
    /// At a storage call.
    AtCall(CrashPoint),
    /// After this time.
    After(Duration),
}

/// A lookup key of the simulation, with its wallet.
#[derive(Clone, Debug)]
pub(crate) struct SimKey {
    pub(crate) text: String,
    pub(crate) wallet: WalletId,
}

/// The stores, and all state that outlives a process.
#[derive(Debug)]
pub(crate) struct SimWorld {
    pub(crate) config: WorldConfig,
    pub(crate) gate: Arc<StoreGate>,
    pub(crate) oracle: Arc<Oracle>,
    /// The stores themselves.
    stores: Stores,
    /// The same stores behind the gate.
    gated: Stores,
    /// The stores for the operator's tools: behind the same gate.
    pub(crate) archive: Arc<dyn Archive>,
    pub(crate) ledger: Arc<dyn Ledger>,
    pub(crate) directory: Arc<dyn Directory>,
    pub(crate) outbox: Arc<dyn Outbox>,
    pub(crate) orders: Arc<dyn OrderStore>,
    /// The payment provider.
    pub(crate) provider: FakeProvider,
    /// The captions supplier, for both platforms.
    pub(crate) captions: Arc<SimSupplier>,
    /// The speech supplier, for YouTube only, and only if configured.
    pub(crate) speech: Arc<SimSupplier>,
    pub(crate) has_speech: AtomicBool,
    /// The observer of supplier health.
    pub(crate) listener: Arc<Listener>,
    pub(crate) random: Arc<SeededRng>,
    /// Start of the next life.
    time: Mutex<Timestamp>,
}

/// All stores: direct, or behind a gate.
#[derive(Clone, Debug)]
pub(crate) struct Stores {
    archive: Arc<dyn Archive>,
    ledger: Arc<dyn Ledger>,
    directory: Arc<dyn Directory>,
    limiter: Arc<dyn RateLimiter>,
    replies: Arc<dyn IdempotencyStore>,
    outbox: Arc<dyn Outbox>,
    orders: Arc<dyn OrderStore>,
}

impl Stores {
    /// The same stores behind a gate.
    fn behind(&self, gate: &Arc<StoreGate>) -> Self {
        let gate = || Arc::clone(gate);
        Self {
            archive: Arc::new(FaultyArchive { inner: Arc::clone(&self.archive), gate: gate() }),
            ledger: Arc::new(FaultyLedger { inner: Arc::clone(&self.ledger), gate: gate() }),
            directory: Arc::new(FaultyDirectory { inner: Arc::clone(&self.directory), gate: gate() }),
            limiter: Arc::new(FaultyLimiter { inner: Arc::clone(&self.limiter), gate: gate() }),
            replies: Arc::new(FaultyIdempotencyStore { inner: Arc::clone(&self.replies), gate: gate() }),
            outbox: Arc::new(FaultyOutbox { inner: Arc::clone(&self.outbox), gate: gate() }),
            orders: Arc::new(FaultyOrders { inner: Arc::clone(&self.orders), gate: gate() }),
        }
    }
}

/// One life: the engines of one process, or of several in parallel.
#[derive(Clone, Debug)]
pub(crate) struct ProcessLife {
    pub(crate) world: Arc<SimWorld>,
    pub(crate) clock: Arc<PausedClock>,
    pub(crate) lookups: Vec<Lookup>,
    /// The v1 API of the same processes, in the same order.
    pub(crate) accounts: Vec<Accounts>,
    /// The payments of the same processes, in the same order.
    pub(crate) payments: Vec<Payments>,
}

/// A secret store with a fixed secret.
#[derive(Debug)]
struct KnownSecret;

#[async_trait]
impl SecretStore for KnownSecret {
    async fn get_or_create(&self, _: &str, _: Vec<u8>) -> Result<Vec<u8>> {
        Ok(vec![42; 32])
    }
}

/// The target of every short link of a simulation.
pub(crate) fn linked_video() -> VideoId {
    VideoId::new(Platform::TikTok, "7000000000000000001").unwrap()
}

impl SimWorld {
    pub(crate) fn new(config: WorldConfig) -> Arc<Self> {
        let mutation = config.mutation;
        let (memory_ledger, memory_archive) =
            (Arc::new(MemoryLedger::default()), Arc::new(MemoryArchive::default()));
        let limits = OracleLimits {
            key: config.lookup.free_per_month,
            service: config.lookup.service_per_day,
            accounts: config.accounts.fetches_per_day,
            free_account: config.accounts.plans.free.credits,
        };
        let memory_directory = Arc::new(MemoryDirectory::default());
        let stores = (
            Arc::clone(&memory_archive) as _,
            Arc::clone(&memory_ledger) as _,
            Arc::clone(&memory_directory) as _,
        );
        let oracle = Arc::new(Oracle::new(stores, limits));
        let gate = Arc::new(StoreGate::new(Arc::clone(&oracle), FaultPlan::NoFaults, config.traced));
        let stores = Stores {
            archive: Mutation::wrap_archive(mutation, memory_archive),
            ledger: Mutation::wrap_ledger(mutation, memory_ledger),
            directory: memory_directory,
            limiter: Arc::new(MemoryRateLimiter::default()),
            replies: Mutation::wrap_idempotency_store(mutation, Arc::new(MemoryIdempotencyStore::default())),
            outbox: Arc::new(MemoryOutbox::default()),
            orders: Arc::new(MemoryOrders::default()),
        };
        let gated = stores.behind(&gate);
        let supplier = |name| {
            let script = SupplierScript::Steps { next: [].into(), then: SupplierStep::give(&["en"]) };
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
            provider: FakeProvider::new(Arc::clone(&gate)),
            captions: supplier("captions"),
            speech: supplier("speech"),
            has_speech: AtomicBool::new(false),
            listener: Arc::new(Listener::new(Arc::clone(&gate), Arc::clone(&oracle))),
            random: Arc::new(SeededRng::new(config.seed, 2)),
            time: Mutex::new(config.start),
            config,
            gate,
            oracle,
        })
    }

    /// Runs one process life with this many engines; `None` when it crashed before its work was done.
    ///
    /// A life is a runtime: its end drops every task at its current await.
    pub(crate) fn run_process<T, F>(
        self: &Arc<Self>,
        engines: usize,
        crash: Option<CrashPlan>,
        work: impl FnOnce(ProcessLife) -> F,
    ) -> Option<T>
    where
        F: Future<Output = T>,
    {
        let runtime = Builder::new_current_thread().enable_time().start_paused(true).build().unwrap();
        let start = *self.time.lock().unwrap_or_else(PoisonError::into_inner);
        let (outcome, end) = runtime.block_on(async {
            let clock = Arc::new(PausedClock::new(start));
            let (crash, time) = match crash {
                Some(CrashPlan::AtCall(point)) => (Some(point), Duration::MAX),
                Some(CrashPlan::After(time)) => (None, time),
                None => (None, Duration::MAX),
            };
            self.gate.begin_life(crash);
            for supplier in [&self.captions, &self.speech] {
                supplier.begin_life(self.config.concurrency.map(|videos| videos as usize * engines));
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
        self.oracle.check_no_fetches();
        *self.time.lock().unwrap_or_else(PoisonError::into_inner) = end;
        outcome
    }

    /// Runs `work` with a clock, in its own runtime, so that servers can start and stop in it.
    pub(crate) fn run_servers<T, F>(self: &Arc<Self>, work: impl FnOnce(Arc<PausedClock>) -> F) -> T
    where
        F: Future<Output = T>,
    {
        let runtime = Builder::new_current_thread().enable_time().start_paused(true).build().unwrap();
        let start = *self.time.lock().unwrap_or_else(PoisonError::into_inner);
        let (outcome, end) = runtime.block_on(async {
            let clock = Arc::new(PausedClock::new(start));
            self.gate.begin_life(None);
            for supplier in [&self.captions, &self.speech] {
                supplier.begin_life(None);
            }
            let outcome = work(Arc::clone(&clock)).await;
            (outcome, clock.now())
        });
        drop(runtime);
        self.gate.end_life();
        self.oracle.check_no_fetches();
        *self.time.lock().unwrap_or_else(PoisonError::into_inner) = end;
        outcome
    }

    async fn begin(self: &Arc<Self>, clock: &Arc<PausedClock>, engines: usize) -> ProcessLife {
        let mut life = ProcessLife {
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

    /// Starts one server with its own gate and its own clock.
    pub(crate) async fn server(
        self: &Arc<Self>,
        clock: &Arc<PausedClock>,
        gate: &Arc<StoreGate>,
    ) -> ProcessLife {
        let (clock, stores) = (Arc::clone(clock), self.stores.behind(gate));
        let (lookups, accounts, payments) = (Vec::new(), Vec::new(), Vec::new());
        let mut life = ProcessLife { world: Arc::clone(self), clock, lookups, accounts, payments };
        let suppliers = [&self.captions, &self.speech].map(|supplier| {
            Arc::new(CrashableSupplier { inner: Arc::clone(supplier), gate: Arc::clone(gate) })
                as Arc<dyn Supplier>
        });
        self.open(&mut life, &stores, self.provider.with_gate(Arc::clone(gate)), suppliers, gate).await;
        life
    }

    /// Adds the components of one more process to a life.
    async fn open(
        self: &Arc<Self>,
        life: &mut ProcessLife,
        stores: &Stores,
        provider: FakeProvider,
        suppliers: [Arc<dyn Supplier>; 2],
        gate: &Arc<StoreGate>,
    ) {
        let clock = || Arc::clone(&life.clock) as Arc<dyn Clock>;
        let random = || Arc::clone(&self.random) as Arc<dyn Random>;
        let Stores { archive, ledger, directory, limiter, replies, outbox, orders } = stores.clone();
        let payments = Payments::new(PaymentDeps {
            orders: Arc::clone(&orders),
            directory: Arc::clone(&directory),
            ledger: Arc::clone(&ledger),
            outbox: Arc::clone(&outbox),
            limiter: Arc::clone(&limiter),
            provider: Some(Arc::new(provider)),
            clock: clock(),
            plans: self.config.accounts.plans,
        });
        let transcripts = self.engine(archive, clock(), suppliers, gate);
        let charges = Arc::new(SequentialCharges {
            directory: Arc::clone(&directory),
            limiter: Arc::clone(&limiter),
            ledger: Arc::clone(&ledger),
        });
        let jobs = MemoryJobs::default();
        let deps = AccountsDeps {
            transcripts: transcripts.clone(),
            ledger: Arc::clone(&ledger),
            directory: Arc::clone(&directory),
            charges,
            outbox,
            orders,
            sessions: Arc::new(transcript_core::memory::MemorySessions::default()),
            replies,
            jobs: Arc::new(jobs.clone()),
            webhooks: Arc::new(jobs),
            limiter: Arc::clone(&limiter),
            clock: clock(),
            random: random(),
            options: self.config.accounts.clone(),
        };
        let accounts = Accounts::open(deps, &KnownSecret).await.unwrap();
        let (clock, random, options) = (clock(), random(), self.config.lookup.clone());
        let entitlements = None;
        let deps =
            LookupDeps { transcripts, ledger, directory, limiter, clock, random, entitlements, options };
        let lookup = Lookup::open(deps, &KnownSecret).await.unwrap();
        life.payments.push(payments);
        life.accounts.push(accounts);
        life.lookups.push(lookup);
    }

    fn engine(
        &self,
        archive: Arc<dyn Archive>,
        clock: Arc<dyn Clock>,
        [captions, speech]: [Arc<dyn Supplier>; 2],
        gate: &Arc<StoreGate>,
    ) -> Transcripts {
        let random = Arc::clone(&self.random) as Arc<dyn Random>;
        let resolver = SimResolver {
            video: linked_video(),
            script: SeededRng::new(self.config.seed, 3),
            gate: Arc::clone(gate),
        };
        let mut builder = Transcripts::builder(archive, clock, random, Handle::current())
            .observer(Arc::clone(&self.listener) as _)
            .options(self.config.engine.clone())
            .link_resolver(Platform::TikTok, Arc::new(resolver))
            .supplier(Platform::YouTube, Arc::clone(&captions))
            .supplier(Platform::TikTok, captions);
        if self.has_speech.load(Ordering::Relaxed) {
            builder = builder.supplier(Platform::YouTube, speech);
        }
        if let Some(videos) = self.config.concurrency {
            builder = builder.concurrency("captions", videos).concurrency("speech", videos);
        }
        builder.build()
    }

    /// Creates a key as the operator. Requires a fault-free plan.
    pub(crate) async fn make_key(&self, lookup: &Lookup) -> SimKey {
        let outcome = lookup.keys().create(key_request(KeyOrigin::Operator)).await.unwrap();
        let CreateKeyOutcome::Created(created) = outcome else { panic!("no key: {outcome:?}") };
        self.sim_key(&created.key).await
    }

    /// A key with its wallet, read from the directory.
    pub(crate) async fn sim_key(&self, key: &ApiKey) -> SimKey {
        let Ok(Some(KeyOwner::Lookup(record))) = self.directory.key_owner(&key.digest()).await else {
            panic!("a new key is missing in the directory");
        };
        SimKey { text: key.reveal().to_owned(), wallet: record.wallet }
    }
}

/// A request for a key without limits.
pub(crate) fn key_request(origin: KeyOrigin) -> CreateKeyRequest {
    CreateKeyRequest { label: None, email: None, proof: None, access: KeyAccess::default(), origin }
}

impl ProcessLife {
    pub(crate) fn now(&self) -> Timestamp {
        self.clock.now()
    }

    /// Longest duration of a lookup.
    pub(crate) fn call_timeout(&self) -> Duration {
        self.world.config.engine.wait_timeout
            + EngineOptions::default().store_timeout * 3
            + Duration::from_secs(1)
    }
}
