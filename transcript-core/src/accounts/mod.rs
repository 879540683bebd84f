//! The v1 API: accounts with credits (specification 2.5 to 2.8, 4.4 to 4.12, 5, 7.2 and 8).
//!
//! Redeeming the token of a verification email creates an account. An account has a plan, whose credits renew
//! each month, and purchased credits. A transcript costs credits only when it is delivered.
//! This module also defines the ports for orders, outgoing mail and stored replies.

mod admin;
mod admission;
mod authenticate;
mod billing_month;
mod cached_charge;
mod call_context;
mod change_account;
mod charge;
mod charges;
#[cfg(feature = "chat")]
mod chat;
#[cfg(feature = "chat")]
mod chat_stream;
mod effective_plan;
mod email;
mod erase;
mod error;
mod fetch_payment;
mod form_random;
mod holder_keys;
mod idempotency;
mod idempotency_lease;
mod issue_key;
pub mod jobs;
mod keys;
#[cfg(feature = "mail")]
pub mod mail;
mod memo;
mod number_format;
mod options;
mod orders;
mod outbox;
mod paid_periods;
#[cfg(feature = "payments")]
pub mod payments;
#[cfg(test)]
mod period_tests;
mod prepaid;
mod rate_limit;
mod register;
mod reply_metadata;
mod request_guard;
mod session_store;
mod sessions;
mod statement;
mod transcript;
mod usage;
pub mod webhooks;

use std::sync::Arc;

pub use admin::{AccountAdmin, AccountExport, AccountView, RevokedGrant};
pub use admission::{Admission, V1Admission, V1Endpoint, V1Request};
pub(crate) use authenticate::BLOCKED;
pub use authenticate::{AccountPrincipal, Authenticator};
pub use billing_month::BillingMonth;
pub use cached_charge::{CachedCharge, CachedCharges, KnownCaller};
pub use charge::AccountCredits;
pub use charges::{ChargeOutcome, ChargeRequest, ChargeStore, SequentialCharges};
#[cfg(feature = "chat")]
pub use chat::{ChatCredits, ChatParams, PreparedChat};
#[cfg(feature = "chat")]
pub use chat_stream::{ChatStream, ChatStreamEvent};
pub use effective_plan::{EffectivePlan, PlanState};
pub use email::{Email, EmailError};
pub use erase::ProviderRefs;
pub use error::V1Error;
pub use holder_keys::CreateAccountKeyOutcome;
pub use idempotency::{IdempotencyAttempt, IdempotencyState, IdempotencyStore, StoredHeader, StoredResponse};
pub use keys::{AccountKeys, IssuedAccountKey, VerifyOutcome};
pub use memo::Memo;
pub use number_format::NumberFormat;
pub use options::{AccountsOptions, PlanTable, PlanTerms};
pub use orders::{Order, OrderItem, OrderState, OrderStore};
pub(crate) use outbox::limit_due;
pub use outbox::{MailIntent, MailKind, Outbox, RETRY_PAUSE_MAX, WAITING_MAX};
pub use paid_periods::{PlanPayment, apply_payments};
pub use rate_limit::RateLimitStatus;
pub use request_guard::RequestGuard;
pub use session_store::{NewSession, RedeemLinkRequest, Session, SessionStore, SignInLink};
pub use sessions::{AccountSessions, OpenedSession, SessionPrincipal};
pub use statement::DailyUsage;
pub use transcript::{Delivery, PreparedTranscript, TranscriptParams};
pub use usage::{CreditBalance, Profile};

use quick_cache::sync::Cache;
use tokio::sync::Notify;

use cached_charge::PrincipalCache;
use call_context::CallContext;
use fetch_payment::AbandonedFetches;
use jobs::{AccountJobs, JobStore};
use rate_limit::AccountLimits;
use webhooks::{AccountWebhooks, WebhookStore};

use crate::{
    directory::{Directory, SecretStore},
    engine::{EngineOptions, Transcripts},
    error::Result,
    keyed_digest::KeyedDigest,
    ledger::{HoldManager, HoldTimes, Ledger},
    limits::{RateLimiter, network_hasher::NetworkHasher},
    lookup::request_counter::RequestCounter,
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
    /// The jobs.
    pub jobs: Arc<dyn JobStore>,
    /// The events of the jobs; the same store.
    pub webhooks: Arc<dyn WebhookStore>,
    /// The sessions of account holders in browsers.
    pub sessions: Arc<dyn SessionStore>,
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

/// The v1 API: its parts, each with the ports that it uses. Clones share one instance.
#[derive(Clone, Debug)]
pub struct Accounts {
    /// Authenticates keys.
    pub authenticator: Arc<Authenticator>,
    /// Admits requests: key, replay and rate limit.
    pub admission: Arc<Admission>,
    /// Charges calls for cached answers in one step.
    pub cached_charges: Arc<CachedCharges>,
    /// Transcripts and chat answers for admitted requests.
    pub delivery: Arc<Delivery>,
    /// Registration, and the keys of accounts.
    pub keys: Arc<AccountKeys>,
    /// Sessions of account holders in browsers.
    pub sessions: Arc<AccountSessions>,
    /// The credits of accounts.
    pub credits: Arc<AccountCredits>,
    /// Jobs: transcripts of many videos.
    pub jobs: Arc<AccountJobs>,
    /// Webhooks: events of jobs, sent to addresses of the accounts.
    pub webhooks: Arc<AccountWebhooks>,
    /// Operator functions.
    pub admin: Arc<AccountAdmin>,
}

/// What outlives the settings.
#[derive(Debug)]
struct AccountsState {
    networks: NetworkHasher,
    abandoned_fetches: AbandonedFetches,
    requests: RequestCounter,
    principals: Arc<PrincipalCache>,
    jobs_wake: Arc<Notify>,
    digest: KeyedDigest,
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
        let store_timeout = deps.transcripts.options().store_timeout;
        let state = AccountsState {
            networks: NetworkHasher::new(secret.clone()),
            abandoned_fetches: AbandonedFetches::default(),
            requests: RequestCounter::new(Arc::clone(&deps.directory), store_timeout),
            principals: Arc::new(Cache::new(PRINCIPALS_MAX)),
            jobs_wake: Arc::default(),
            digest: KeyedDigest::new(secret),
        };
        Ok(Self::assemble(deps, state))
    }

    /// The same API with other settings: the stores, the running fetches and the caches are shared.
    ///
    /// A request that began with the old settings ends with them.
    pub fn with_options(&self, options: AccountsOptions) -> Self {
        let CallContext { transcripts, clock, random, .. } = &*self.credits.context;
        let deps = AccountsDeps {
            transcripts: transcripts.clone(),
            ledger: Arc::clone(&self.credits.ledger),
            directory: Arc::clone(&self.credits.directory),
            charges: Arc::clone(&self.cached_charges.charges),
            orders: Arc::clone(&self.admin.orders),
            outbox: Arc::clone(&self.keys.outbox),
            jobs: Arc::clone(&self.jobs.store),
            webhooks: Arc::clone(&self.webhooks.store),
            sessions: Arc::clone(&self.sessions.sessions),
            replies: Arc::clone(&self.admission.replies),
            limiter: Arc::clone(&self.credits.limits.limiter),
            clock: Arc::clone(clock),
            random: Arc::clone(random),
            options,
        };
        let state = AccountsState {
            networks: self.keys.networks.clone(),
            abandoned_fetches: self.credits.abandoned_fetches.clone(),
            requests: self.authenticator.requests.clone(),
            principals: Arc::clone(&self.cached_charges.principals),
            jobs_wake: Arc::clone(&self.jobs.wake),
            digest: self.webhooks.digest.clone(),
        };
        Self::assemble(deps, state)
    }

    /// The parts that others use.
    fn shared_parts(
        deps: &AccountsDeps,
        abandoned_fetches: AbandonedFetches,
    ) -> (Arc<CallContext>, Arc<AccountLimits>, Arc<AccountCredits>) {
        let AccountsDeps { transcripts, ledger, directory, limiter, clock, random, options, .. } = deps;
        let EngineOptions { hold: lifetime, hold_heartbeat: heartbeat, store_timeout, .. } =
            *transcripts.options();
        let times = HoldTimes { lifetime, heartbeat, store_timeout };
        let holds = HoldManager::new(ledger, clock, times, transcripts.background());
        let context = Arc::new(CallContext {
            transcripts: transcripts.clone(),
            clock: Arc::clone(clock),
            random: Arc::clone(random),
            options: options.clone(),
        });
        let limits = Arc::new(AccountLimits { context: Arc::clone(&context), limiter: Arc::clone(limiter) });
        let credits = Arc::new(AccountCredits {
            context: Arc::clone(&context),
            ledger: Arc::clone(ledger),
            holds,
            directory: Arc::clone(directory),
            limits: Arc::clone(&limits),
            abandoned_fetches,
        });
        (context, limits, credits)
    }

    fn assemble(deps: AccountsDeps, state: AccountsState) -> Self {
        let (shared, limits, credits) = Self::shared_parts(&deps, state.abandoned_fetches);
        let AccountsDeps { directory, charges, orders, outbox, sessions, jobs, webhooks, replies, .. } = deps;
        let context = || Arc::clone(&shared);
        let (requests, accounts) = (state.requests, Arc::clone(&directory));
        let authenticator = Arc::new(Authenticator { context: context(), directory: accounts, requests });
        let admission = Admission {
            context: context(),
            authenticator: Arc::clone(&authenticator),
            limits: Arc::clone(&limits),
            credits: Arc::clone(&credits),
            replies,
        };
        let cached_charges = CachedCharges {
            context: context(),
            authenticator: Arc::clone(&authenticator),
            credits: Arc::clone(&credits),
            charges,
            principals: state.principals,
        };
        let account_sessions = AccountSessions {
            context: context(),
            limits: Arc::clone(&limits),
            directory: Arc::clone(&directory),
            sessions: Arc::clone(&sessions),
            networks: state.networks.clone(),
            digest: state.digest.clone(),
        };
        let keys = AccountKeys {
            context: context(),
            limits,
            credits: Arc::clone(&credits),
            directory: Arc::clone(&directory),
            outbox: Arc::clone(&outbox),
            orders: Arc::clone(&orders),
            sessions: Arc::clone(&sessions),
            networks: state.networks,
            digest: state.digest.clone(),
        };
        let delivery = Arc::new(Delivery { context: context() });
        let account_jobs = AccountJobs {
            context: context(),
            credits: Arc::clone(&credits),
            delivery: Arc::clone(&delivery),
            directory: Arc::clone(&directory),
            store: Arc::clone(&jobs),
            wake: state.jobs_wake,
        };
        let account_jobs = Arc::new(account_jobs);
        let webhooks = AccountWebhooks::new(context(), &account_jobs, webhooks, state.digest);
        let admin = AccountAdmin {
            context: context(),
            credits: Arc::clone(&credits),
            directory,
            orders,
            outbox,
            jobs,
            sessions,
        };
        Self {
            authenticator,
            admission: Arc::new(admission),
            cached_charges: Arc::new(cached_charges),
            delivery,
            keys: Arc::new(keys),
            sessions: Arc::new(account_sessions),
            credits,
            jobs: account_jobs,
            webhooks: Arc::new(webhooks),
            admin: Arc::new(admin),
        }
    }

    /// The settings.
    pub fn options(&self) -> &AccountsOptions {
        &self.credits.context.options
    }

    /// The engine.
    pub fn transcripts(&self) -> &Transcripts {
        &self.credits.context.transcripts
    }
}
