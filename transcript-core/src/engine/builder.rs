//! Putting an engine together.

use std::{collections::HashMap, fmt, sync::Arc};

use tokio::runtime::Handle;

use super::{EngineOptions, Inner, Observer, Transcripts, errands::Errands};
use crate::{
    archive::{Absence, Archive},
    ledger::Ledger,
    supplier::{LinkResolver, Supplier},
    time::{Clock, Random},
    video::Platform,
};

/// The suppliers of each platform, in the order in which they are asked.
#[derive(Clone, Default)]
pub(super) struct Suppliers {
    platforms: HashMap<Platform, Vec<Arc<dyn Supplier>>>,
}

impl Suppliers {
    /// Adds a supplier behind those that the platform has.
    pub(super) fn add(&mut self, platform: Platform, supplier: Arc<dyn Supplier>) {
        self.platforms.entry(platform).or_default().push(supplier);
    }

    /// The suppliers of a platform, in order.
    pub(super) fn of(&self, platform: Platform) -> &[Arc<dyn Supplier>] {
        self.platforms.get(&platform).map_or(&[], Vec::as_slice)
    }

    /// The names of a platform's suppliers, in order.
    pub(super) fn names(&self, platform: Platform) -> Vec<String> {
        self.of(platform).iter().map(|supplier| supplier.card().name).collect()
    }

    /// Whether a supplier of the platform was not configured yet when an absence was learnt.
    pub(super) fn void(&self, absence: &Absence) -> bool {
        self.names(absence.video.platform()).iter().any(|name| !absence.asked.contains(name))
    }
}

impl fmt::Debug for Suppliers {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let names = |suppliers: &Vec<Arc<dyn Supplier>>| {
            suppliers.iter().map(|supplier| supplier.card().name).collect::<Vec<_>>()
        };
        f.debug_map().entries(self.platforms.iter().map(|(platform, list)| (platform, names(list)))).finish()
    }
}

/// Puts an engine together; see [`Transcripts::builder`].
#[derive(Debug)]
pub struct Builder {
    archive: Arc<dyn Archive>,
    ledger: Option<Arc<dyn Ledger>>,
    suppliers: Suppliers,
    resolvers: HashMap<Platform, Arc<dyn LinkResolver>>,
    observer: Option<Arc<dyn Observer>>,
    clock: Arc<dyn Clock>,
    random: Arc<dyn Random>,
    options: EngineOptions,
    runtime: Handle,
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
            suppliers: Suppliers::default(),
            resolvers: HashMap::new(),
            observer: None,
            clock,
            random,
            options: EngineOptions::default(),
            runtime,
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
        self.suppliers.add(platform, supplier);
        self
    }

    /// Who follows a platform's short links.
    #[must_use]
    pub fn resolver(mut self, platform: Platform, resolver: Arc<dyn LinkResolver>) -> Self {
        self.resolvers.insert(platform, resolver);
        self
    }

    /// Who hears how far fetches are.
    #[must_use]
    pub fn observer(mut self, observer: Arc<dyn Observer>) -> Self {
        self.observer = Some(observer);
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
                suppliers: self.suppliers,
                resolvers: self.resolvers,
                observer: self.observer,
                clock: self.clock,
                random: self.random,
                options: self.options,
                runtime: self.runtime,
                errands: Errands::new(),
                links: Arc::default(),
            }),
        }
    }
}
