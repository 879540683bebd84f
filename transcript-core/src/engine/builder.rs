//! Putting an engine together.

use std::{collections::HashMap, sync::Arc};

use tokio::runtime::Handle;

use super::{EngineOptions, Inner, Observer, Transcripts, errands::Errands, suppliers::Suppliers};
use crate::{
    archive::Archive,
    ledger::Ledger,
    supplier::{LinkResolver, Supplier},
    time::{Clock, Random},
    video::Platform,
};

/// Puts an engine together; see [`Transcripts::builder`].
#[derive(Debug)]
pub struct Builder {
    archive: Arc<dyn Archive>,
    ledger: Option<Arc<dyn Ledger>>,
    suppliers: Vec<(Platform, Arc<dyn Supplier>)>,
    at_once: HashMap<String, u32>,
    resolvers: HashMap<Platform, Arc<dyn LinkResolver>>,
    observer: Option<Arc<dyn Observer>>,
    clock: Arc<dyn Clock>,
    random: Arc<dyn Random>,
    options: EngineOptions,
    runtime: Handle,
    beside: Option<Handle>,
}

impl Transcripts {
    /// Begins an engine over an archive, whose tasks and timers run on `runtime`.
    pub fn builder(
        archive: Arc<dyn Archive>,
        clock: Arc<dyn Clock>,
        random: Arc<dyn Random>,
        runtime: Handle,
    ) -> Builder {
        Builder {
            archive,
            ledger: None,
            suppliers: Vec::new(),
            at_once: HashMap::new(),
            resolvers: HashMap::new(),
            observer: None,
            clock,
            random,
            options: EngineOptions::default(),
            runtime,
            beside: None,
        }
    }
}

impl Builder {
    /// The ledger in which payments are held and settled. Without one every fetch is free.
    #[must_use]
    pub fn ledger(mut self, ledger: Arc<dyn Ledger>) -> Self {
        self.ledger = Some(ledger);
        self
    }

    /// Adds a supplier for a platform, asked after those added before.
    #[must_use]
    pub fn supplier(mut self, platform: Platform, supplier: Arc<dyn Supplier>) -> Self {
        self.suppliers.push((platform, supplier));
        self
    }

    /// At how many videos at once the supplier of this name works, of all its platforms together; at least 1. The
    /// others wait in order. Without this there is no bound.
    #[must_use]
    pub fn at_once(mut self, supplier: &str, videos: u32) -> Self {
        self.at_once.insert(supplier.to_owned(), videos.max(1));
        self
    }

    /// Who follows a platform's short links.
    #[must_use]
    pub fn resolver(mut self, platform: Platform, resolver: Arc<dyn LinkResolver>) -> Self {
        self.resolvers.insert(platform, resolver);
        self
    }

    /// Who hears how far fetches are, and how well suppliers are.
    #[must_use]
    pub fn observer(mut self, observer: Arc<dyn Observer>) -> Self {
        self.observer = Some(observer);
        self
    }

    /// A runtime beside the engine's own: what is asked for from within it runs there, with its tasks and timers. It
    /// must live as long. One with a single thread takes less for a caller who is alone, since no thread wakes another.
    #[must_use]
    pub fn beside(mut self, runtime: Handle) -> Self {
        self.beside = Some(runtime);
        self
    }

    /// How patient the engine is.
    #[must_use]
    pub fn options(mut self, options: EngineOptions) -> Self {
        self.options = options;
        self
    }

    /// The engine.
    pub fn build(self) -> Transcripts {
        Transcripts {
            inner: Arc::new(Inner {
                archive: self.archive,
                ledger: self.ledger,
                suppliers: Suppliers::new(self.suppliers, &self.at_once, self.options.health),
                resolvers: self.resolvers,
                observer: self.observer,
                clock: self.clock,
                random: self.random,
                options: self.options,
                runtime: self.runtime,
                beside: self.beside,
                errands: Errands::new(),
                links: Arc::default(),
            }),
        }
    }
}
