//! What the APIs are assembled from.

use std::sync::Arc;

#[cfg(feature = "mail")]
use transcript_core::accounts::mail::{NotifyingOutbox, OutboxNotifier};
#[cfg(feature = "payments")]
use transcript_core::accounts::payments::{Payments, Sandbox};
#[cfg(feature = "accounts")]
use transcript_core::accounts::{Accounts, AccountsDeps, AccountsOptions, Outbox};
use transcript_core::{
    Result,
    engine::Transcripts,
    lookup::{EntitlementVerifier, Lookup, LookupDeps},
};

use crate::{
    housekeeping::{Housekeeping, RequestCounts},
    main_stores::MainStores,
    options::Options,
    server_group::ServerGroup,
    system::{SystemClock, SystemRandom},
};

/// What the APIs are assembled from.
pub(crate) struct ApiDeps<'a> {
    options: &'a Options,
    stores: &'a MainStores,
    clock: &'a Arc<SystemClock>,
    random: &'a Arc<SystemRandom>,
    transcripts: &'a Transcripts,
}

impl<'a> ApiDeps<'a> {
    pub(crate) fn new(
        options: &'a Options,
        stores: &'a MainStores,
        clock: &'a Arc<SystemClock>,
        random: &'a Arc<SystemRandom>,
        transcripts: &'a Transcripts,
    ) -> Self {
        Self { options, stores, clock, random, transcripts }
    }

    /// The lookup API.
    pub(crate) async fn open_lookup(
        &self,
        entitlements: Option<Arc<dyn EntitlementVerifier>>,
    ) -> Result<Lookup> {
        let main = self.stores;
        let deps = LookupDeps {
            transcripts: self.transcripts.clone(),
            ledger: Arc::clone(&main.ledger),
            directory: Arc::clone(&main.directory),
            limiter: Arc::clone(&main.limiter),
            clock: Arc::clone(self.clock) as _,
            random: Arc::clone(self.random) as _,
            entitlements,
            options: self.options.lookup.clone(),
        };
        Lookup::open(deps, main.secrets.as_ref()).await
    }

    /// The periodic tasks.
    pub(crate) fn start_housekeeping(&self, servers: &ServerGroup, counts: RequestCounts) -> Housekeeping {
        let (ledger, clock) = (Arc::clone(&self.stores.ledger), Arc::clone(self.clock));
        Housekeeping::start(ledger, clock, servers.clone(), counts)
    }

    /// The v1 API.
    #[cfg(feature = "accounts")]
    pub(crate) async fn open_accounts(&self, outbox: Arc<dyn Outbox>, sells: bool) -> Result<Accounts> {
        let main = self.stores;
        let deps = AccountsDeps {
            transcripts: self.transcripts.clone(),
            ledger: Arc::clone(&main.ledger),
            directory: Arc::clone(&main.directory),
            charges: Arc::clone(&main.accounts.charges),
            orders: Arc::clone(&main.accounts.orders),
            outbox,
            replies: Arc::clone(&main.accounts.replies),
            jobs: Arc::clone(&main.accounts.jobs),
            webhooks: Arc::clone(&main.accounts.webhooks),
            sessions: Arc::clone(&main.accounts.sessions),
            limiter: Arc::clone(&main.limiter),
            clock: Arc::clone(self.clock) as _,
            random: Arc::clone(self.random) as _,
            options: AccountsOptions { sells, ..self.options.accounts.clone() },
        };
        Accounts::open(deps, main.secrets.as_ref()).await
    }

    /// The mails of the v1 API. A new one wakes the mail sender.
    #[cfg(feature = "mail")]
    pub(crate) fn outbox(&self, notifier: &OutboxNotifier) -> Arc<dyn Outbox> {
        Arc::new(NotifyingOutbox::new(Arc::clone(&self.stores.accounts.outbox), notifier.clone()))
    }

    /// Sale of packs and plans, and the sandbox if it is in use.
    #[cfg(feature = "payments")]
    pub(crate) async fn open_payments(&self, outbox: Arc<dyn Outbox>) -> Result<(Payments, Option<Sandbox>)> {
        crate::payments::payments(self.options, self.stores, outbox, self.clock, self.random.as_ref()).await
    }
}
