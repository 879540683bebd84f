//! The facade: ports and services, assembled from options.

use std::{sync::Arc, time::Duration};

use tokio::runtime::Handle;
#[cfg(feature = "accounts")]
use tokio::sync::watch;
#[cfg(feature = "accounts")]
use transcript_core::accounts::Accounts;
#[cfg(feature = "payments")]
use transcript_core::accounts::AccountsOptions;
#[cfg(feature = "mail")]
use transcript_core::accounts::mail::{MailObserver, MailTexts, Mailer, OutboxNotifier};
#[cfg(feature = "payments")]
use transcript_core::accounts::payments::{Payments, Sandbox};
#[cfg(feature = "lookup")]
use transcript_core::admin::AdminStore;
#[cfg(feature = "chat")]
use transcript_core::chat::Chat;
#[cfg(feature = "lookup")]
use transcript_core::lookup::Lookup;
use transcript_core::{
    Result, Timestamp,
    archive::Archive,
    engine::{EngineOptions, Transcripts},
};
#[cfg(feature = "lookup")]
use transcript_core::{directory::Directory, ledger::Ledger};

#[cfg(feature = "lookup")]
use crate::AuditReport;
#[cfg(feature = "lookup")]
use crate::JobHandle;
use crate::{
    ArchiveTools, StoreFigures, StoreHealth,
    options::Options,
    runtime::within,
    storage::Stores,
    suppliers::{SharedTransports, add_suppliers},
    system::{SystemClock, SystemRandom},
};
#[cfg(feature = "lookup")]
use crate::{
    api_deps::ApiDeps,
    housekeeping::{Housekeeping, RequestCounts},
    options::entitlements,
    server_group::ServerGroup,
};

/// Timestamped transcripts of videos. A clone is a handle to the same parts.
#[derive(Clone, Debug)]
pub struct Verbatim {
    stores: Arc<Stores>,
    /// The runtime of the engine, and of streams.
    pub(crate) runtime: Handle,
    tools: ArchiveTools,
    #[cfg(feature = "lookup")]
    lookup: Lookup,
    #[cfg(feature = "accounts")]
    accounts: Accounts,
    #[cfg(feature = "chat")]
    chat: Chat,
    #[cfg(feature = "payments")]
    payments: Payments,
    /// The accounts of the newest handle, for the jobs.
    #[cfg(feature = "accounts")]
    newest_accounts: Arc<watch::Sender<Accounts>>,
    /// The payments of the newest handle, for the sweep.
    #[cfg(feature = "payments")]
    newest_payments: Arc<watch::Sender<Payments>>,
    #[cfg(feature = "payments")]
    sandbox: Option<Sandbox>,
    #[cfg(feature = "search")]
    pub(crate) search: crate::SearchService,
    /// State that suppliers and front ends share.
    #[cfg(feature = "service")]
    shared: SharedTransports,
    /// The servers that share the database.
    #[cfg(feature = "lookup")]
    servers: ServerGroup,
    #[cfg(feature = "mail")]
    outbox_notifier: OutboxNotifier,
    /// Stops with the last handle.
    #[cfg(feature = "lookup")]
    housekeeping: Arc<Housekeeping>,
    #[cfg(feature = "lookup")]
    request_counts: RequestCounts,
}

impl Verbatim {
    /// Opens the storage and assembles all parts.
    ///
    /// Must be called inside a Tokio runtime with timers and I/O, as `enable_all` of its builder makes one; all work
    /// runs on that runtime.
    ///
    /// # Errors
    /// Errors of the storage, which name the file: locked or unreachable ([`transcript_core::ErrorKind::Unavailable`]),
    /// damaged (`Corrupt`), read-only or of a newer version (`Unsupported`); `Invalid` if an option is invalid, and
    /// outside a runtime.
    ///
    /// # Panics
    /// If the runtime has no timers or no I/O: this call, or a later one.
    pub async fn open(options: Options) -> Result<Self> {
        let runtime = crate::runtime::current()?;
        options.check_registration()?;
        let (clock, random) = (Arc::new(SystemClock::default()), Arc::new(SystemRandom::open()?));
        #[cfg(feature = "lookup")]
        let entitlements = entitlements(&options)?;
        let stores = Arc::new(Stores::open(&options).await?);
        #[cfg(feature = "lookup")]
        let servers = join_servers(&stores, &clock, random.as_ref()).await?;
        let shared = SharedTransports::default();
        let transcripts = build_engine(&options, &stores, &clock, &random, &shared)?;
        #[cfg(feature = "lookup")]
        let deps = ApiDeps::new(&options, &stores.main, &clock, &random, &transcripts);
        #[cfg(feature = "mail")]
        let outbox_notifier = OutboxNotifier::default();
        #[cfg(feature = "mail")]
        let outbox = deps.outbox(&outbox_notifier);
        #[cfg(all(feature = "accounts", not(feature = "mail")))]
        let outbox = Arc::clone(&stores.main.accounts.outbox);
        #[cfg(feature = "payments")]
        let (payments, sandbox) = deps.open_payments(Arc::clone(&outbox)).await?;
        #[cfg(feature = "chat")]
        let chat = crate::chat::chat(&options, &stores.archive, runtime.clone())?;
        #[cfg(feature = "accounts")]
        let accounts = {
            let sells = cfg!(feature = "payments");
            #[cfg(feature = "payments")]
            let sells = sells && payments.is_configured();
            deps.open_accounts(outbox, sells).await?
        };
        #[cfg(feature = "lookup")]
        let lookup = deps.open_lookup(entitlements).await?;
        #[cfg(feature = "lookup")]
        let request_counts = RequestCounts {
            lookup: lookup.keys().clone(),
            #[cfg(feature = "accounts")]
            accounts: Arc::clone(&accounts.authenticator),
        };
        Ok(Self {
            #[cfg(feature = "search")]
            search: stores.search_service(&clock, servers.clone()),
            #[cfg(feature = "lookup")]
            housekeeping: Arc::new(deps.start_housekeeping(&servers, request_counts.clone())),
            #[cfg(feature = "lookup")]
            request_counts,
            #[cfg(feature = "lookup")]
            lookup,
            tools: ArchiveTools::new(&stores.archive, transcripts, clock, runtime.clone(), options),
            stores,
            runtime,
            #[cfg(feature = "accounts")]
            newest_accounts: Arc::new(watch::Sender::new(accounts.clone())),
            #[cfg(feature = "accounts")]
            accounts,
            #[cfg(feature = "chat")]
            chat,
            #[cfg(feature = "payments")]
            newest_payments: Arc::new(watch::Sender::new(payments.clone())),
            #[cfg(feature = "payments")]
            payments,
            #[cfg(feature = "payments")]
            sandbox,
            #[cfg(feature = "service")]
            shared,
            #[cfg(feature = "lookup")]
            servers,
            #[cfg(feature = "mail")]
            outbox_notifier,
        })
    }

    /// The same service with other limits, plans, prices and entitlement keys.
    ///
    /// These are [`Options::lookup`], [`Options::accounts`], [`Options::entitlement`] and what [`Options::checkout`]
    /// says of plans; other options stay as they are. Stores, engine, caches and counts are shared. Calls of this
    /// handle end with its settings, and a running sweep continues with the new ones.
    ///
    /// # Errors
    /// As [`Verbatim::open`], if an option is invalid: nothing is changed.
    #[cfg(feature = "payments")]
    pub fn with_api_options(&self, options: &Options) -> Result<Self> {
        let payments = crate::payments::change_plans(&self.payments, self.sandbox.as_ref(), options)?;
        let sells = payments.is_configured();
        let changed = Self {
            lookup: self.lookup.with_options(options.lookup.clone(), entitlements(options)?),
            accounts: self.accounts.with_options(AccountsOptions { sells, ..options.accounts.clone() }),
            tools: ArchiveTools { lookup: options.lookup.clone(), ..self.tools.clone() },
            payments,
            ..self.clone()
        };
        self.newest_payments.send_replace(changed.payments.clone());
        self.newest_accounts.send_replace(changed.accounts.clone());
        Ok(changed)
    }

    /// Import, export, search, refresh, and the functions of an operator.
    pub fn tools(&self) -> &ArchiveTools {
        &self.tools
    }

    /// The lookup API: keys with allowances.
    #[cfg(feature = "lookup")]
    pub fn lookup(&self) -> &Lookup {
        &self.lookup
    }

    /// The v1 API: accounts with credits.
    #[cfg(feature = "accounts")]
    pub fn accounts(&self) -> &Accounts {
        &self.accounts
    }

    /// Answers to questions about videos.
    #[cfg(feature = "chat")]
    pub fn chat(&self) -> &Chat {
        &self.chat
    }

    /// Sale of packs and plans, and fulfillment of paid orders.
    #[cfg(feature = "payments")]
    pub fn payments(&self) -> &Payments {
        &self.payments
    }

    /// The sandbox checkout, if it is in use; a server serves its pages.
    #[cfg(feature = "payments")]
    pub fn sandbox(&self) -> Option<&Sandbox> {
        self.sandbox.as_ref()
    }

    /// The engine: archive first, then the suppliers.
    pub fn transcripts(&self) -> &Transcripts {
        &self.tools.transcripts
    }

    /// The archive.
    pub fn archive(&self) -> &Arc<dyn Archive> {
        &self.stores.archive
    }

    /// The ledger: wallets, holds and entries.
    #[cfg(feature = "lookup")]
    pub fn ledger(&self) -> &Arc<dyn Ledger> {
        &self.stores.main.ledger
    }

    /// The keys and accounts.
    #[cfg(feature = "lookup")]
    pub fn directory(&self) -> &Arc<dyn Directory> {
        &self.stores.main.directory
    }

    /// Both APIs with their rules, as one [`Service`](crate::service::Service) within the process.
    #[cfg(feature = "local-service")]
    pub fn service(&self) -> crate::service::LocalService {
        self.into()
    }

    /// The current time; with a shared database, that of the database.
    pub fn now(&self) -> Timestamp {
        self.tools.now()
    }

    /// Admin tokens and the audit log.
    #[cfg(feature = "lookup")]
    pub fn admin_store(&self) -> &Arc<dyn AdminStore> {
        &self.stores.main.admin
    }

    /// Registry of the videos that other servers request, so that no server waits for itself.
    #[cfg(feature = "service")]
    pub fn peer_requests(&self) -> &crate::service::PeerRequests {
        &self.shared.peer_requests
    }

    /// Starts sending the queued mails, and every later one, through `mailer`.
    ///
    /// Without it mails stay queued, so a server of the v1 API calls this once.
    #[cfg(feature = "mail")]
    pub fn start_mail(&self, mailer: Arc<dyn Mailer>) -> JobHandle {
        self.start_mail_in(Vec::new(), mailer, Arc::new(|_| ()))
    }

    /// As [`Verbatim::start_mail`], in these languages: that of each mail, else the first one. `observer` receives the
    /// result of each attempt.
    #[cfg(feature = "mail")]
    pub fn start_mail_in(
        &self,
        languages: Vec<MailTexts>,
        mailer: Arc<dyn Mailer>,
        observer: MailObserver,
    ) -> JobHandle {
        let sender = self.accounts.keys.mail_sender(mailer, self.outbox_notifier.clone(), languages);
        let sender = sender.with_observer(observer);
        JobHandle::start(&self.runtime, |stopped| sender.run(stopped.wait()))
    }

    /// Starts the work on the jobs of accounts, of this process and of others on the same storage.
    ///
    /// Without it jobs stay queued, so a server of the v1 API calls this once.
    #[cfg(feature = "accounts")]
    pub fn start_jobs(&self) -> JobHandle {
        let newest = self.newest_accounts.subscribe();
        JobHandle::start(&self.runtime, |stopped| async move {
            let jobs = move || Arc::clone(&newest.borrow().jobs);
            transcript_core::accounts::jobs::run_jobs(jobs, stopped.wait()).await;
        })
    }

    /// Starts sending the events of jobs to the addresses of accounts, trusting the certificates of a PEM file too.
    ///
    /// Without it events stay stored, so a server of the v1 API calls this once.
    ///
    /// # Errors
    /// The file cannot be read.
    #[cfg(all(feature = "accounts", feature = "upstream"))]
    pub fn start_webhooks(
        &self,
        ca_file: Option<&std::path::Path>,
        observer: transcript_core::accounts::webhooks::WebhookObserver,
    ) -> Result<JobHandle> {
        let client = Arc::new(upstream_reqwest::HttpWebhookClient::new(ca_file)?);
        let body = transcript_core::wire::v1::WebhookEvent::body;
        let deps = transcript_core::accounts::webhooks::WebhookSenderDeps { client, body, observer };
        let newest = self.newest_accounts.subscribe();
        Ok(JobHandle::start(&self.runtime, |stopped| async move {
            let webhooks = move || Arc::clone(&newest.borrow().webhooks);
            transcript_core::accounts::webhooks::send_webhooks(webhooks, deps, stopped.wait()).await;
        }))
    }

    /// Starts the reconciliation of open orders, renewals and refunds whose events may be lost.
    ///
    /// It runs at once and then every half hour. `None` if nothing is sold. Without it a payment whose event is lost is
    /// never fulfilled, so a server of the v1 API calls this once.
    #[cfg(feature = "payments")]
    #[must_use = "dropping it stops the job"]
    pub fn start_sweep(&self) -> Option<JobHandle> {
        let _runtime = self.runtime.enter();
        let clock = Arc::clone(&self.tools.clock);
        crate::payment_sweep::start_if_selling(self.newest_payments.subscribe(), self.servers.clone(), clock)
    }

    /// What the operator should change if the programs on the database may together open more connections than its
    /// server permits. `None` if they fit, for files, and if the server does not report its limit.
    pub async fn connection_warning(&self) -> Option<String> {
        self.stores.connection_warning().await
    }

    /// Starts calling the operator's purge hook with the videos that are withdrawn, restored, deleted or replaced.
    ///
    /// Videos that changed earlier are purged at once.
    ///
    /// # Errors
    /// An option is invalid.
    #[cfg(all(feature = "lookup", feature = "upstream"))]
    pub fn start_purges(
        &self,
        options: &crate::PurgeHookOptions,
        observer: crate::PurgeObserver,
    ) -> Result<JobHandle> {
        let purger = crate::cache_purge::CachePurger {
            archive: Arc::clone(&self.stores.archive),
            hook: upstream_reqwest::PurgeHook::new(options)?,
            observer,
            servers: self.servers.clone(),
            clock: Arc::clone(&self.tools.clock),
        };
        let _runtime = self.runtime.enter();
        Ok(purger.start())
    }

    /// Starts moving transcripts older than this to cold storage in the background, a few at a time.
    ///
    /// Of the servers on one database, one at a time does it.
    #[cfg(feature = "lookup")]
    pub fn start_compaction(&self, age: Duration, observer: crate::CompactionObserver) -> JobHandle {
        let _runtime = self.runtime.enter();
        let (archive, clock) = (Arc::clone(&self.stores.archive), Arc::clone(&self.tools.clock));
        crate::compaction::Compaction { archive, age, observer, servers: self.servers.clone(), clock }.start()
    }

    /// Sends a small read to both stores concurrently, with this timeout for each.
    pub async fn ready(&self, timeout: Duration) -> StoreHealth {
        within(&self.runtime, StoreHealth::check_reads(&self.stores, timeout)).await
    }

    /// Commits a small write that changes no data in both stores concurrently, with this timeout for each.
    ///
    /// Each call waits for the disk, so a probe must not call it for every request.
    pub async fn check_writes(&self, timeout: Duration) -> StoreHealth {
        within(&self.runtime, StoreHealth::check_writes(&self.stores, timeout)).await
    }

    /// The failures and the free space of the stores that this facade opened.
    pub fn store_figures(&self) -> Vec<StoreFigures> {
        self.stores.figures()
    }

    /// Checks that every balance of the ledger equals the sum of its entries.
    ///
    /// Others may write during the audit: a balance is compared only if no entry was added to its wallet since its
    /// entries were read. Wallets created during the audit may be left out.
    ///
    /// # Errors
    /// Errors of the storage.
    #[cfg(feature = "lookup")]
    pub async fn audit(&self) -> Result<AuditReport> {
        within(&self.runtime, crate::audit::audit(self.stores.main.ledger.as_ref())).await
    }

    /// Waits for running work, then closes the storage.
    ///
    /// A fetch runs for at most 30 minutes: a supplier that never returns delays this call for so long. With
    /// [`Options::detach_unpaid`](crate::Options::detach_unpaid) set to `false`, an unpaid fetch ends with its last
    /// waiter, and this call only waits for fetches that still have one.
    ///
    /// A store of the caller is released with the last handle, so that an embedded database can be opened again.
    pub async fn close(&self) {
        // First: waiting for running fetches may take longer than the process has.
        #[cfg(feature = "lookup")]
        self.housekeeping.stop().await;
        #[cfg(feature = "lookup")]
        if let Err(error) = self.request_counts.flush().await {
            tracing::warn!(%error, "the last request counts of keys are lost");
        }
        self.transcripts().close().await;
        #[cfg(feature = "search")]
        self.search.close().await;
        self.stores.close().await;
    }

    /// Number of unsent mails, counted up to [`transcript_core::accounts::WAITING_MAX`].
    ///
    /// # Errors
    /// Errors of the storage.
    #[cfg(feature = "accounts")]
    pub async fn waiting_mails(&self) -> Result<u64> {
        self.stores.main.accounts.outbox.count_waiting().await
    }
}

/// The servers that share these stores. Sets the clock to their time.
#[cfg(feature = "lookup")]
async fn join_servers(stores: &Stores, clock: &SystemClock, random: &SystemRandom) -> Result<ServerGroup> {
    #[cfg(feature = "postgres")]
    let servers = ServerGroup::new(stores.shared_databases(), random);
    #[cfg(not(feature = "postgres"))]
    let servers = ServerGroup::single_server(random);
    let _ = stores;
    servers.sync_clock(clock).await?;
    Ok(servers)
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
        waiting_fetches: options.waiting_fetches,
        detach_unpaid: options.detach_unpaid,
        ..EngineOptions::default()
    }
}
