//! The facade: ports and services, assembled from options.

use std::sync::Arc;

use tokio::runtime::Handle;
use transcript_core::{
    Clock, Result,
    accounts::{Accounts, AccountsDeps, AccountsOptions, Outbox},
    archive::Archive,
    chat::Chat,
    engine::{EngineOptions, Transcripts},
    ledger::Ledger,
    lookup::{EntitlementVerifier, Lookup, LookupDeps},
};

#[cfg(feature = "mail")]
use transcript_core::accounts::mail::{NotifyingOutbox, OutboxNotifier};
#[cfg(feature = "payments")]
use transcript_core::accounts::payments::{Payments, Sandbox};

use crate::{
    chat::chat,
    housekeeping::Housekeeping,
    options::Options,
    storage::Stores,
    suppliers::{SharedTransports, add_suppliers},
    system::{SystemClock, SystemRandom},
};
#[cfg(feature = "payments")]
use crate::{payments::payments, server_group::ServerGroup};

/// Timestamped transcripts of videos. A clone is a handle to the same parts.
#[derive(Clone, Debug)]
pub struct Verbatim {
    stores: Arc<Stores>,
    clock: Arc<SystemClock>,
    lookup: Lookup,
    accounts: Accounts,
    chat: Chat,
    #[cfg(feature = "payments")]
    pub(crate) payments: Payments,
    #[cfg(feature = "payments")]
    pub(crate) sandbox: Option<Sandbox>,
    /// State that suppliers and front ends share.
    #[cfg(feature = "service")]
    shared: SharedTransports,
    /// The servers that share the database.
    #[cfg(feature = "payments")]
    pub(crate) servers: ServerGroup,
    /// Wakes the mail sender.
    #[cfg(feature = "mail")]
    pub(crate) outbox_notifier: OutboxNotifier,
    /// Stops with the last handle.
    _housekeeping: Arc<Housekeeping>,
}

impl Verbatim {
    /// Opens the storage and assembles all parts.
    ///
    /// Must be called inside a Tokio runtime; all work runs on that runtime.
    ///
    /// # Errors
    /// Errors of the storage, which name the file: locked or unreachable ([`transcript_core::ErrorKind::Unavailable`]),
    /// damaged (`Corrupt`), read-only or of a newer version (`Unsupported`); `Invalid` if an option is invalid.
    pub async fn open(options: Options) -> Result<Self> {
        let clock = Arc::new(SystemClock::default());
        let random = Arc::new(SystemRandom::open()?);
        let entitlements = entitlements(&options)?;
        let stores = Stores::open(&options.storage).await?.with_custom(&options.custom);
        let stores = Arc::new(stores.with_observer(options.observer.as_ref()));
        let servers = stores.servers(random.as_ref(), &clock).await?;
        let shared = SharedTransports::default();
        let transcripts = build_engine(&options, &stores, &clock, &random, &shared)?;
        #[cfg(feature = "payments")]
        let (payments, sandbox) =
            payments(&options, &stores, Arc::clone(&clock) as _, random.as_ref()).await?;
        let chat = chat(&options, Handle::current())?;
        #[cfg(feature = "payments")]
        let sells = payments.is_configured();
        #[cfg(not(feature = "payments"))]
        let sells = false;
        let outbox: Arc<dyn Outbox> = Arc::clone(&stores.outbox);
        #[cfg(feature = "mail")]
        let outbox_notifier = OutboxNotifier::default();
        #[cfg(feature = "mail")]
        let outbox: Arc<dyn Outbox> = Arc::new(NotifyingOutbox::new(outbox, outbox_notifier.clone()));
        let accounts = AccountsDeps {
            transcripts: transcripts.clone(),
            ledger: Arc::clone(&stores.ledger),
            directory: Arc::clone(&stores.directory),
            charges: Arc::clone(&stores.charges),
            orders: Arc::clone(&stores.orders),
            outbox,
            replies: Arc::clone(&stores.replies),
            limiter: Arc::clone(&stores.limiter),
            clock: Arc::clone(&clock) as _,
            random: Arc::clone(&random) as _,
            options: AccountsOptions { sells, ..options.accounts },
        };
        let accounts = Accounts::open(accounts, stores.secrets.as_ref()).await?;
        let parts = LookupDeps {
            transcripts,
            ledger: Arc::clone(&stores.ledger),
            directory: Arc::clone(&stores.directory),
            limiter: Arc::clone(&stores.limiter),
            clock: Arc::clone(&clock) as _,
            random,
            options: options.lookup,
        };
        let lookup = with_entitlements(Lookup::open(parts, stores.secrets.as_ref()).await?, entitlements);
        let housekeeping =
            Housekeeping::start(Arc::clone(&stores.ledger), Arc::clone(&clock), servers.clone());
        Ok(Self {
            stores,
            clock,
            lookup,
            accounts,
            chat,
            #[cfg(feature = "payments")]
            payments,
            #[cfg(feature = "payments")]
            sandbox,
            #[cfg(feature = "service")]
            shared,
            #[cfg(feature = "payments")]
            servers,
            #[cfg(feature = "mail")]
            outbox_notifier,
            _housekeeping: Arc::new(housekeeping),
        })
    }

    /// Clock of all parts.
    #[cfg(feature = "payments")]
    pub(crate) fn system_clock(&self) -> Arc<SystemClock> {
        Arc::clone(&self.clock)
    }

    /// The lookup API: keys with allowances.
    pub fn lookup(&self) -> &Lookup {
        &self.lookup
    }

    /// The v1 API: accounts with credits.
    pub fn accounts(&self) -> &Accounts {
        &self.accounts
    }

    /// Answers to questions about videos.
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

    /// Registry of the videos that other servers request, so that no server waits for itself.
    #[cfg(feature = "service")]
    pub fn peer_requests(&self) -> &crate::service::PeerRequests {
        &self.shared.peer_requests
    }

    /// Waits for running work, then closes the storage.
    pub async fn close(&self) {
        self.transcripts().close().await;
        self.stores.close().await;
    }

    /// Number of unsent mails, counted up to [`transcript_core::accounts::WAITING_MAX`].
    ///
    /// # Errors
    /// Errors of the storage.
    pub async fn waiting_mails(&self) -> Result<u64> {
        self.stores.outbox.count_waiting().await
    }

    pub(crate) fn ledger(&self) -> &Arc<dyn Ledger> {
        &self.stores.ledger
    }

    pub(crate) fn now(&self) -> transcript_core::Timestamp {
        self.clock.now()
    }
}

fn with_entitlements(lookup: Lookup, entitlements: Option<Arc<dyn EntitlementVerifier>>) -> Lookup {
    match entitlements {
        Some(entitlements) => lookup.with_entitlements(entitlements),
        None => lookup,
    }
}

/// The engine with its suppliers.
fn build_engine(
    options: &Options,
    stores: &Stores,
    clock: &Arc<SystemClock>,
    random: &Arc<SystemRandom>,
    shared: &SharedTransports,
) -> Result<Transcripts> {
    let engine = Transcripts::builder(
        Arc::clone(&stores.archive),
        Arc::clone(clock) as _,
        Arc::clone(random) as _,
        Handle::current(),
    )
    .options(engine_options(options));
    let engine = match &options.observer {
        Some(observer) => engine.observer(Arc::clone(observer)),
        None => engine,
    };
    let engine = match &options.custom.caller_runtime {
        Some(runtime) => engine.caller_runtime(runtime.clone()),
        None => engine,
    };
    Ok(add_suppliers(engine, options, Arc::clone(clock) as _, shared)?.build())
}

/// Timeouts and limits of the engine.
fn engine_options(options: &Options) -> EngineOptions {
    EngineOptions {
        wait_timeout: options.wait,
        absence: options.absence,
        breaker: options.breaker,
        detach_unpaid: options.detach_unpaid,
        ..EngineOptions::default()
    }
}

/// Verifier of entitlements.
#[cfg(feature = "entitlement")]
pub(crate) fn entitlements(options: &Options) -> Result<Option<Arc<dyn EntitlementVerifier>>> {
    let verifier = options.entitlement.as_ref().map(crate::TokenEntitlements::new).transpose()?;
    Ok(verifier.map(|verifier| Arc::new(verifier) as _))
}

/// Verifier of entitlements: `None` in this build.
#[cfg(not(feature = "entitlement"))]
pub(crate) fn entitlements(options: &Options) -> Result<Option<Arc<dyn EntitlementVerifier>>> {
    match options.entitlement {
        None => Ok(None),
        Some(_) => Err(transcript_core::Error::new(
            transcript_core::ErrorKind::Unsupported,
            transcript_core::Retry::Never,
            "this build cannot verify entitlements: it lacks the feature entitlement",
        )),
    }
}
