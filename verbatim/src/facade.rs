//! The working parts, put together.

use std::sync::Arc;

use tokio::runtime::Handle;
use transcript_core::{
    Clock, Result,
    accounts::{
        Accounts, AccountsOptions, AccountsParts,
        mail::{Bell, RingingOutbox},
        payments::{Payments, Sandbox},
    },
    archive::Archive,
    chat::Chat,
    engine::{EngineOptions, Transcripts},
    ledger::Ledger,
    lookup::{Entitlements, Lookup, LookupParts},
};

use crate::{
    chat::chat,
    housekeeping::Housekeeping,
    options::Options,
    payments::payments,
    servers::Servers,
    storage::Stores,
    suppliers::{Shared, supply},
    system::{SystemClock, SystemRandom},
};

/// A link in, the words of its video out. A clone is a handle to the same parts.
#[derive(Clone, Debug)]
pub struct Verbatim {
    stores: Arc<Stores>,
    clock: Arc<SystemClock>,
    lookup: Lookup,
    accounts: Accounts,
    chat: Chat,
    pub(crate) payments: Payments,
    pub(crate) sandbox: Option<Sandbox>,
    /// What suppliers and faces tell each other.
    #[cfg(feature = "service")]
    shared: Shared,
    /// Others on the same database.
    pub(crate) servers: Servers,
    /// Wakes whoever sends mails.
    pub(crate) bell: Bell,
    /// Ends with the last handle.
    _housekeeping: Arc<Housekeeping>,
}

impl Verbatim {
    /// Opens the storage and puts everything together.
    ///
    /// It must be called inside a tokio runtime: on that one all work runs, whoever waits for it.
    ///
    /// # Errors
    /// The storage's faults, each naming the file: locked or unreachable
    /// ([`transcript_core::ErrorKind::Unavailable`]), damaged (`Corrupt`), read-only or of a newer version
    /// (`Unsupported`); `Invalid` when an option is wrong.
    pub async fn open(options: Options) -> Result<Self> {
        let clock = Arc::new(SystemClock::default());
        let random = Arc::new(SystemRandom::open()?);
        let entitlements = entitlements(&options)?;
        let stores = Stores::open(&options.storage).await?.with(&options.own);
        let stores = Arc::new(stores.heard_by(options.observer.as_ref()));
        let servers = stores.servers(random.as_ref(), &clock).await?;
        let engine = Transcripts::builder(
            Arc::clone(&stores.archive),
            Arc::clone(&clock) as _,
            Arc::clone(&random) as _,
            Handle::current(),
        )
        .ledger(Arc::clone(&stores.ledger))
        .options(patience(&options));
        let engine = match &options.observer {
            Some(observer) => engine.observer(Arc::clone(observer)),
            None => engine,
        };
        let engine = match &options.own.beside {
            Some(beside) => engine.beside(beside.clone()),
            None => engine,
        };
        let shared = Shared::default();
        let transcripts = supply(engine, &options, Arc::clone(&clock) as _, &shared)?.build();
        let (payments, sandbox) =
            payments(&options, &stores, Arc::clone(&clock) as _, random.as_ref()).await?;
        let chat = chat(&options, Handle::current())?;
        let bell = Bell::default();
        let accounts = AccountsParts {
            transcripts: transcripts.clone(),
            ledger: Arc::clone(&stores.ledger),
            directory: Arc::clone(&stores.directory),
            charges: Arc::clone(&stores.charges),
            orders: Arc::clone(&stores.orders),
            outbox: Arc::new(RingingOutbox::new(Arc::clone(&stores.outbox), bell.clone())),
            replies: Arc::clone(&stores.replies),
            limiter: Arc::clone(&stores.limiter),
            clock: Arc::clone(&clock) as _,
            random: Arc::clone(&random) as _,
            options: AccountsOptions { sells: payments.is_configured(), ..options.accounts },
        };
        let accounts = Accounts::open(accounts, stores.secrets.as_ref()).await?;
        let parts = LookupParts {
            transcripts,
            ledger: Arc::clone(&stores.ledger),
            directory: Arc::clone(&stores.directory),
            limiter: Arc::clone(&stores.limiter),
            clock: Arc::clone(&clock) as _,
            random,
            options: options.lookup,
        };
        let lookup = entitled(Lookup::open(parts, stores.secrets.as_ref()).await?, entitlements);
        let housekeeping =
            Housekeeping::start(Arc::clone(&stores.ledger), Arc::clone(&clock), servers.clone());
        Ok(Self {
            stores,
            clock,
            lookup,
            accounts,
            chat,
            payments,
            sandbox,
            #[cfg(feature = "service")]
            shared,
            servers,
            bell,
            _housekeeping: Arc::new(housekeeping),
        })
    }

    /// The clock that all parts go by.
    pub(crate) fn system_clock(&self) -> Arc<SystemClock> {
        Arc::clone(&self.clock)
    }

    /// Surface A: who may have what.
    pub fn lookup(&self) -> &Lookup {
        &self.lookup
    }

    /// Surface B: accounts with credits.
    pub fn accounts(&self) -> &Accounts {
        &self.accounts
    }

    /// Who answers questions about videos.
    pub fn chat(&self) -> &Chat {
        &self.chat
    }

    /// The engine: archive first, then the suppliers.
    pub fn transcripts(&self) -> &Transcripts {
        self.lookup.transcripts()
    }

    /// The archive.
    pub fn archive(&self) -> &Arc<dyn Archive> {
        &self.stores.archive
    }

    /// Where a face notes that another server asks for a video, so that no server waits for itself.
    #[cfg(feature = "service")]
    pub fn asked_by_servers(&self) -> &crate::service::AskedByServers {
        &self.shared.asked
    }

    /// Waits for the work that is under way, then closes the storage.
    pub async fn close(&self) {
        self.transcripts().close().await;
        self.stores.close().await;
    }

    /// How many mails wait to be sent, counted up to [`transcript_core::accounts::WAITING_MAX`].
    ///
    /// # Errors
    /// The storage's faults.
    pub async fn waiting_mails(&self) -> Result<u64> {
        self.stores.outbox.waiting().await
    }

    pub(crate) fn ledger(&self) -> &Arc<dyn Ledger> {
        &self.stores.ledger
    }

    pub(crate) fn now(&self) -> transcript_core::Timestamp {
        self.clock.now()
    }
}

fn entitled(lookup: Lookup, entitlements: Option<Arc<dyn Entitlements>>) -> Lookup {
    match entitlements {
        Some(entitlements) => lookup.with_entitlements(entitlements),
        None => lookup,
    }
}

/// How patient the engine is.
fn patience(options: &Options) -> EngineOptions {
    EngineOptions {
        wait: options.wait,
        absence: options.absence,
        health: options.health,
        outlives: options.outlives,
        ..EngineOptions::default()
    }
}

/// Whose proofs of paid plans are believed.
#[cfg(feature = "entitlement")]
pub(crate) fn entitlements(options: &Options) -> Result<Option<Arc<dyn Entitlements>>> {
    let believed = options.entitlement.as_ref().map(crate::TokenEntitlements::new).transpose()?;
    Ok(believed.map(|believed| Arc::new(believed) as _))
}

/// Whose proofs of paid plans are believed: nobody's.
#[cfg(not(feature = "entitlement"))]
pub(crate) fn entitlements(options: &Options) -> Result<Option<Arc<dyn Entitlements>>> {
    match options.entitlement {
        None => Ok(None),
        Some(_) => Err(transcript_core::Error::new(
            transcript_core::ErrorKind::Unsupported,
            transcript_core::Retry::Never,
            "this build believes no proofs of paid plans: it lacks the feature entitlement",
        )),
    }
}
