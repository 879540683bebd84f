//! The v1 API: accounts with credits (specification 2.5 to 2.8, 4.4 to 4.12, 5, 7.2 and 8).
//!
//! Redeeming the token of a verification mail creates an account. An account has a plan, whose credits renew
//! each month, and purchased credits. A transcript costs credits only when it is delivered.
//! This module also defines the ports for orders, outgoing mail and stored replies.

mod admin;
mod admission;
mod authenticate;
mod billing_month;
mod cached_charge;
mod charge;
pub mod charge_batch;
mod charges;
#[cfg(feature = "chat")]
mod chat;
#[cfg(feature = "chat")]
mod chat_stream;
mod effective_plan;
mod email;
mod erase;
mod error;
mod idempotency;
mod keys;
#[cfg(feature = "mail")]
pub mod mail;
mod options;
mod orders;
mod outbox;
mod paid_periods;
#[cfg(feature = "payments")]
pub mod payments;
#[cfg(test)]
mod period_tests;
mod rate_limit;
mod register;
mod reply_metadata;
mod request_guard;
mod transcript;
mod usage;

use std::sync::Arc;

pub use admin::{AccountExport, AccountView};
pub use admission::{V1Admission, V1Endpoint, V1Request};
pub use authenticate::AccountPrincipal;
pub(crate) use authenticate::BLOCKED;
pub use billing_month::BillingMonth;
pub use cached_charge::CachedCharge;
pub use charges::{ChargeOutcome, ChargeRequest, ChargeStore, SequentialCharges};
#[cfg(feature = "chat")]
pub use chat::{ChatCredits, ChatParams, PreparedChat};
#[cfg(feature = "chat")]
pub use chat_stream::{ChatStream, ChatStreamEvent};
pub use effective_plan::{EffectivePlan, PlanState};
pub use email::{Email, EmailError};
pub use erase::ProviderRefs;
pub use error::V1Error;
pub use idempotency::{IdempotencyAttempt, IdempotencyState, IdempotencyStore, StoredHeader, StoredResponse};
pub use keys::{IssuedAccountKey, VerifyOutcome};
pub use options::{AccountsOptions, PlanTable, PlanTerms};
pub use orders::{Order, OrderItem, OrderState, OrderStore};
pub use outbox::{MailIntent, MailKind, Outbox, WAITING_MAX};
pub use paid_periods::{PlanPayment, apply_payments};
pub use rate_limit::RateLimitStatus;
pub use request_guard::RequestGuard;
pub use transcript::{PreparedTranscript, TranscriptParams};
pub use usage::{CreditBalance, Profile};

use quick_cache::sync::Cache;

use crate::{
    directory::{Directory, SecretStore},
    engine::{EngineOptions, Transcripts},
    error::Result,
    ledger::{HoldManager, HoldTimes, Ledger},
    limits::{RateLimiter, network::NetworkHasher},
    retry::{retry_store, with_timeout},
    time::{Clock, Random},
};

/// Dependencies of [`Accounts`].
#[derive(Clone, Debug)]
pub struct AccountsDeps {
    /// The engine.
    pub transcripts: Transcripts,
    /// The ledger of the credits.
    pub ledger: Arc<dyn Ledger>,
    /// The accounts and their keys.
    pub directory: Arc<dyn Directory>,
    /// Charges for cached answers, on the same credits, keys and limits.
    /// [`SequentialCharges`], or the stores' own implementation.
    pub charges: Arc<dyn ChargeStore>,
    /// The orders: an account with orders that may still be paid is not erased.
    pub orders: Arc<dyn OrderStore>,
    /// The mail queue.
    pub outbox: Arc<dyn Outbox>,
    /// Stored replies for `Idempotency-Key`.
    pub replies: Arc<dyn IdempotencyStore>,
    /// The rate limits of accounts and networks.
    pub limiter: Arc<dyn RateLimiter>,
    /// The clock.
    pub clock: Arc<dyn Clock>,
    /// Randomness for keys, tokens and ids.
    pub random: Arc<dyn Random>,
    /// The settings.
    pub options: AccountsOptions,
}

/// The v1 API. Clones share one instance.
#[derive(Clone, Debug)]
pub struct Accounts {
    deps: Arc<AccountsDeps>,
    state: Arc<AccountsState>,
}

/// Internal state of [`Accounts`].
#[derive(Debug)]
struct AccountsState {
    /// Digests networks and addresses for their rate limits, so that neither is stored.
    networks: NetworkHasher,
    /// Recently charged keys: digest to principal. A cache; the store verifies each entry on use.
    principals: Cache<[u8; 32], Arc<AccountPrincipal>>,
    /// Holds credits.
    holds: HoldManager,
}

/// The largest number of cached principals, about 512 bytes each.
const PRINCIPALS_MAX: usize = 8_192;
/// The length of the server's secret in bytes.
const SECRET_LENGTH: u32 = 32;

impl Accounts {
    /// Opens the v1 API; reads the server's secret, or creates it at the first start.
    ///
    /// # Errors
    /// As [`SecretStore::get_or_create`].
    pub async fn open(deps: AccountsDeps, secrets: &dyn SecretStore) -> Result<Self> {
        let secret = secrets.get_or_create("server", deps.random.bytes(SECRET_LENGTH)).await?;
        let EngineOptions { lease: lifetime, heartbeat, store_timeout, .. } = *deps.transcripts.options();
        let times = HoldTimes { lifetime, heartbeat, store_timeout };
        let holds = HoldManager::new(&deps.ledger, &deps.clock, times, deps.transcripts.background());
        let (networks, principals) = (NetworkHasher::new(secret), Cache::new(PRINCIPALS_MAX));
        let state = AccountsState { networks, principals, holds };
        Ok(Self { deps: Arc::new(deps), state: Arc::new(state) })
    }

    /// The settings.
    pub fn options(&self) -> &AccountsOptions {
        &self.deps.options
    }

    /// The dependencies.
    pub fn deps(&self) -> &AccountsDeps {
        &self.deps
    }

    /// Runs `work` on the engine's runtime, so that any executor may await it. A store error becomes
    /// [`V1Error::Internal`].
    ///
    /// # Cancellation
    /// Dropping the future stops the work at its next await.
    async fn task<T: Send + 'static>(
        &self,
        work: impl Future<Output = Result<T, V1Error>> + Send + 'static,
    ) -> Result<T, V1Error> {
        match self.deps.transcripts.task(work).await {
            Ok(outcome) => outcome,
            Err(error) => Err(V1Error::from_store_error(&error)),
        }
    }

    /// Makes one store call, limited by the store timeout.
    async fn call_store<T>(&self, call: impl Future<Output = Result<T>>) -> Result<T, V1Error> {
        let timeout = self.deps.transcripts.options().store_timeout;
        with_timeout(timeout, call).await.map_err(|error| V1Error::from_store_error(&error))
    }

    /// Makes an idempotent store call, with the retries of calls that a caller waits for.
    async fn retry_store<T, F>(&self, call: impl FnMut() -> F) -> Result<T, V1Error>
    where
        F: Future<Output = Result<T>>,
    {
        let policy = self.deps.transcripts.options().request_policy();
        retry_store(policy, call).await.map_err(|error| V1Error::from_store_error(&error))
    }
}
