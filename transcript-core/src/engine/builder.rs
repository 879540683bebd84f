//! Construction of the engine.

use std::{collections::HashMap, sync::Arc};

use tokio::runtime::Handle;

use super::{
    EngineInner, EngineObserver, EngineOptions, Transcripts, language_memory::LanguageMemory,
    single_flight::FlightTable, supplier_pool::SupplierPool,
};
use crate::{
    archive::Archive,
    supplier::{LinkResolver, Supplier, VideoLister},
    tasks::BackgroundTasks,
    time::{Clock, Random},
    video::Platform,
};

/// Builds an engine; see [`Transcripts::builder`].
#[derive(Debug)]
pub struct EngineBuilder {
    archive: Arc<dyn Archive>,
    suppliers: Vec<(Platform, Arc<dyn Supplier>)>,
    concurrency: HashMap<String, u32>,
    resolvers: HashMap<Platform, Arc<dyn LinkResolver>>,
    listers: HashMap<Platform, Arc<dyn VideoLister>>,
    observer: Option<Arc<dyn EngineObserver>>,
    clock: Arc<dyn Clock>,
    random: Arc<dyn Random>,
    options: EngineOptions,
    runtime: Handle,
    caller_runtime: Option<Handle>,
}

impl Transcripts {
    /// Starts an engine over an archive, with its tasks and timers on `runtime`.
    pub fn builder(
        archive: Arc<dyn Archive>,
        clock: Arc<dyn Clock>,
        random: Arc<dyn Random>,
        runtime: Handle,
    ) -> EngineBuilder {
        EngineBuilder {
            archive,
            suppliers: Vec::new(),
            concurrency: HashMap::new(),
            resolvers: HashMap::new(),
            listers: HashMap::new(),
            observer: None,
            clock,
            random,
            options: EngineOptions::default(),
            runtime,
            caller_runtime: None,
        }
    }
}

impl EngineBuilder {
    /// Adds a supplier for a platform, tried after those added before.
    #[must_use]
    pub fn supplier(mut self, platform: Platform, supplier: Arc<dyn Supplier>) -> Self {
        self.suppliers.push((platform, supplier));
        self
    }

    /// Limits the number of videos that the supplier of this name works on at once; at least 1.
    ///
    /// The limit covers all its platforms. Further fetches wait for fair turns, at most
    /// [`EngineOptions::waiting_fetches`] of them. Without this there is no limit.
    #[must_use]
    pub fn concurrency(mut self, supplier: &str, videos: u32) -> Self {
        self.concurrency.insert(supplier.to_owned(), videos.max(1));
        self
    }

    /// Sets the resolver of a platform's short links.
    #[must_use]
    pub fn link_resolver(mut self, platform: Platform, resolver: Arc<dyn LinkResolver>) -> Self {
        self.resolvers.insert(platform, resolver);
        self
    }

    /// Sets the lister of a platform's lists of videos.
    #[must_use]
    pub fn video_lister(mut self, platform: Platform, lister: Arc<dyn VideoLister>) -> Self {
        self.listers.insert(platform, lister);
        self
    }

    /// Sets the observer of fetch stages, supplier health and ledger operations.
    #[must_use]
    pub fn observer(mut self, observer: Arc<dyn EngineObserver>) -> Self {
        self.observer = Some(observer);
        self
    }

    /// Sets a second runtime: calls from within it run on it, with their tasks and timers.
    ///
    /// It must live as long as the engine. A single-threaded runtime is faster for a single caller, since no thread
    /// wakes another.
    #[must_use]
    pub fn caller_runtime(mut self, runtime: Handle) -> Self {
        self.caller_runtime = Some(runtime);
        self
    }

    /// Sets the timeouts and retry limits.
    #[must_use]
    pub fn options(mut self, options: EngineOptions) -> Self {
        self.options = options;
        self
    }

    /// Builds the engine.
    pub fn build(self) -> Transcripts {
        let tasks = BackgroundTasks::new(self.runtime);
        Transcripts {
            inner: Arc::new(EngineInner {
                archive: self.archive,
                suppliers: SupplierPool::new(self.suppliers, &self.concurrency, &self.options),
                resolvers: self.resolvers,
                listers: self.listers,
                observer: self.observer,
                clock: self.clock,
                random: self.random,
                options: self.options,
                caller_runtime: self.caller_runtime,
                flights: FlightTable::new(tasks.clone()),
                tasks,
                links: Arc::default(),
                languages: LanguageMemory::default(),
            }),
        }
    }
}
