//! The stores of keys, accounts and the ledger.

use std::sync::Arc;

#[cfg(feature = "accounts")]
use transcript_core::{
    accounts::{
        ChargeStore, IdempotencyStore, OrderStore, Outbox, SequentialCharges, SessionStore, jobs::JobStore,
        webhooks::WebhookStore,
    },
    memory::{MemoryIdempotencyStore, MemoryJobs, MemoryOrders, MemoryOutbox, MemorySessions},
};
use transcript_core::{
    admin::AdminStore,
    directory::{Directory, SecretStore},
    engine::EngineObserver,
    ledger::Ledger,
    limits::RateLimiter,
    memory::{MemoryAdminStore, MemoryDirectory, MemoryLedger, MemoryRateLimiter, MemorySecrets},
};

use crate::{observed_ledger::ObservedLedger, options::CustomPorts};

/// The stores of the lookup API, and those of accounts.
#[derive(Debug)]
pub(crate) struct MainStores {
    pub(crate) ledger: Arc<dyn Ledger>,
    pub(crate) directory: Arc<dyn Directory>,
    pub(crate) limiter: Arc<dyn RateLimiter>,
    pub(crate) secrets: Arc<dyn SecretStore>,
    pub(crate) admin: Arc<dyn AdminStore>,
    #[cfg(feature = "accounts")]
    pub(crate) accounts: AccountStores,
}

/// The stores of the v1 API.
#[cfg(feature = "accounts")]
#[derive(Debug)]
pub(crate) struct AccountStores {
    pub(crate) charges: Arc<dyn ChargeStore>,
    pub(crate) orders: Arc<dyn OrderStore>,
    pub(crate) outbox: Arc<dyn Outbox>,
    pub(crate) replies: Arc<dyn IdempotencyStore>,
    pub(crate) jobs: Arc<dyn JobStore>,
    pub(crate) webhooks: Arc<dyn WebhookStore>,
    pub(crate) sessions: Arc<dyn SessionStore>,
}

impl MainStores {
    /// Stores in memory.
    pub(crate) fn memory() -> Self {
        let ledger: Arc<dyn Ledger> = Arc::new(MemoryLedger::default());
        let directory: Arc<dyn Directory> = Arc::new(MemoryDirectory::default());
        let limiter: Arc<dyn RateLimiter> = Arc::new(MemoryRateLimiter::default());
        #[cfg(feature = "accounts")]
        let jobs = MemoryJobs::default();
        Self {
            #[cfg(feature = "accounts")]
            accounts: AccountStores {
                charges: sequential_charges(&directory, &limiter, &ledger),
                orders: Arc::new(MemoryOrders::default()),
                outbox: Arc::new(MemoryOutbox::default()),
                replies: Arc::new(MemoryIdempotencyStore::default()),
                jobs: Arc::new(jobs.clone()),
                webhooks: Arc::new(jobs),
                sessions: Arc::new(MemorySessions::default()),
            },
            ledger,
            directory,
            limiter,
            secrets: Arc::new(MemorySecrets::default()),
            admin: Arc::new(MemoryAdminStore::default()),
        }
    }

    /// All ports of one store.
    #[cfg(any(feature = "sqlite", feature = "postgres"))]
    pub(crate) fn from_store<M>(main: &Arc<M>) -> Self
    where
        M: Ledger + Directory + RateLimiter + SecretStore + AdminStore + AccountPorts + 'static,
    {
        Self {
            ledger: Arc::clone(main) as _,
            directory: Arc::clone(main) as _,
            limiter: Arc::clone(main) as _,
            secrets: Arc::clone(main) as _,
            admin: Arc::clone(main) as _,
            #[cfg(feature = "accounts")]
            accounts: AccountStores {
                charges: Arc::clone(main) as _,
                orders: Arc::clone(main) as _,
                outbox: Arc::clone(main) as _,
                replies: Arc::clone(main) as _,
                jobs: Arc::clone(main) as _,
                webhooks: Arc::clone(main) as _,
                sessions: Arc::clone(main) as _,
            },
        }
    }

    /// Replaces stores by those of the caller.
    pub(crate) fn with_custom(mut self, custom: &CustomPorts) -> Self {
        if custom.ledger.is_none() && custom.directory.is_none() {
            return self;
        }
        self.ledger = custom.ledger.clone().unwrap_or(self.ledger);
        self.directory = custom.directory.clone().unwrap_or(self.directory);
        // A single-step charge needs directory, limiter and ledger in one store.
        #[cfg(feature = "accounts")]
        {
            self.accounts.charges = sequential_charges(&self.directory, &self.limiter, &self.ledger);
        }
        self
    }

    /// Reports the ledger operations to the observer.
    pub(crate) fn with_observer(mut self, observer: Option<&Arc<dyn EngineObserver>>) -> Self {
        if let Some(observer) = observer {
            self.ledger = ObservedLedger::new(self.ledger, observer);
            #[cfg(feature = "accounts")]
            {
                self.accounts.charges = ObservedLedger::new(self.accounts.charges, observer);
            }
        }
        self
    }
}

/// The ports of the v1 API that one store implements.
#[cfg(all(feature = "accounts", any(feature = "sqlite", feature = "postgres")))]
pub(crate) trait AccountPorts:
    ChargeStore + OrderStore + Outbox + IdempotencyStore + SessionStore + JobStore + WebhookStore
{
}
#[cfg(all(feature = "accounts", any(feature = "sqlite", feature = "postgres")))]
impl<M> AccountPorts for M where
    M: ChargeStore + OrderStore + Outbox + IdempotencyStore + SessionStore + JobStore + WebhookStore
{
}

/// The ports of the v1 API: none in this build.
#[cfg(all(not(feature = "accounts"), any(feature = "sqlite", feature = "postgres")))]
pub(crate) trait AccountPorts {}
#[cfg(all(not(feature = "accounts"), any(feature = "sqlite", feature = "postgres")))]
impl<M> AccountPorts for M {}

#[cfg(feature = "accounts")]
fn sequential_charges(
    directory: &Arc<dyn Directory>,
    limiter: &Arc<dyn RateLimiter>,
    ledger: &Arc<dyn Ledger>,
) -> Arc<dyn ChargeStore> {
    Arc::new(SequentialCharges {
        directory: Arc::clone(directory),
        limiter: Arc::clone(limiter),
        ledger: Arc::clone(ledger),
    })
}
