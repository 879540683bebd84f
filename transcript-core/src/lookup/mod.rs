//! The lookup API: permissions, payment and failure reasons of a lookup (specification 3, 4.1, 11).
//!
//! An archived transcript is free for everyone. A new transcript needs one of these:
//!
//! - an API key: it costs 1 of the key's allowance and 1 of the service's daily cap;
//! - a visitor of the watch page whose browser has passed a check: it costs 1 of the visitor's allowance and 1 of their
//!   network's, and 1 of the daily cap.
//!
//! A caller without a transcript gets a failure reason, a message and the watch URL.

mod archived_response;
mod challenge;
mod entitlement;
mod flow;
mod keys;
mod languages;
mod limits;
mod listing;
mod options;
mod payment;
mod plan;
mod question;
mod request;
pub(crate) mod request_counter;
mod response;
mod visitor;

use std::{net::IpAddr, sync::Arc};

use limits::LookupLimits;
use payment::LookupPayments;
use request_counter::RequestCounter;

pub use archived_response::ArchivedResponse;
pub use challenge::{ChallengeClaims, ChallengeProvider};
pub use entitlement::{Entitlement, EntitlementProof, EntitlementVerifier};
pub use keys::{
    CreateKeyOutcome, CreateKeyRequest, IssuedLookupKey, KeyOrigin, KeyRequestError, KeyStatus, KeyUsage,
    LookupKeys,
};
pub use listing::{KeyRequestUsage, KeyWithUsage};
pub use options::LookupOptions;
pub use plan::KeyPlan;
pub use question::{AdmittedQuestion, QuestionLimit, QuestionOutcome, QuestionRequest};
pub use request::{AttributionTag, LookupRequest, ReferenceError, VideoReference};
pub use response::{Availability, LookupResponse, ResolvedRequest};
pub use visitor::{AdmittedVisitor, VisitorOutcome, VisitorRequest, Visitors, WaitMode};

pub use crate::engine::FailureReason;
use crate::{
    directory::{Directory, SecretStore},
    engine::{EngineOptions, Transcripts},
    error::Result,
    keyed_digest::KeyedDigest,
    ledger::{HoldManager, HoldTimes, Ledger},
    limits::{RateLimiter, network_hasher::NetworkHasher},
    time::{Clock, Random},
};

/// Dependencies of the lookup API.
#[derive(Clone, Debug)]
pub struct LookupDeps {
    /// The engine.
    pub transcripts: Transcripts,
    /// The ledger.
    pub ledger: Arc<dyn Ledger>,
    /// The directory of keys.
    pub directory: Arc<dyn Directory>,
    /// Limits of misses, tool calls, failed attempts and new keys.
    pub limiter: Arc<dyn RateLimiter>,
    /// The clock.
    pub clock: Arc<dyn Clock>,
    /// Randomness for new keys.
    pub random: Arc<dyn Random>,
    /// Verifies proofs of paid plans; `None` if no proof is accepted.
    pub entitlements: Option<Arc<dyn EntitlementVerifier>>,
    /// The settings.
    pub options: LookupOptions,
}

/// Lookups of transcripts. A clone is a handle to the same state.
///
/// [`LookupKeys`] are the keys, [`Visitors`] the lookups of people without a key.
#[derive(Clone, Debug)]
pub struct Lookup {
    transcripts: Transcripts,
    clock: Arc<dyn Clock>,
    options: Arc<LookupOptions>,
    keys: LookupKeys,
    limits: LookupLimits,
    /// Pays for new transcripts.
    payments: LookupPayments,
    /// Signs visitors' names and challenges.
    keyed_digest: KeyedDigest,
}

/// The length of the server's secret in bytes.
const SECRET_LENGTH: u32 = 32;

/// Whether a search of the archive may run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SearchAdmission {
    /// It may.
    Admitted,
    /// It needs a key, and there is none or an unknown one.
    KeyNeeded {
        /// Whether there is one.
        is_unknown: bool,
    },
    /// Too many searches.
    Limited {
        /// Time until a retry is admitted.
        retry_after_ms: u64,
    },
}

/// Refusal of a call of a free assistant tool: there were too many within a minute.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ToolCallRefusal {
    /// Whether they were counted for a key or its account; otherwise for the network.
    pub has_key: bool,
    /// Time until a retry is admitted, in milliseconds.
    pub retry_after_ms: u64,
}

impl Lookup {
    /// Opens the lookup API. Reads the server's secret, or creates it at the first start.
    ///
    /// # Errors
    /// As [`SecretStore::get_or_create`].
    pub async fn open(deps: LookupDeps, secrets: &dyn SecretStore) -> Result<Self> {
        let LookupDeps { transcripts, ledger, directory, limiter, clock, random, entitlements, options } =
            deps;
        let secret = secrets.get_or_create("server", random.bytes(SECRET_LENGTH)).await?;
        let networks = NetworkHasher::new(secret.clone());
        let options = Arc::new(options);
        let EngineOptions { hold: lifetime, hold_heartbeat: heartbeat, store_timeout, .. } =
            *transcripts.options();
        let times = HoldTimes { lifetime, heartbeat, store_timeout };
        let holds = HoldManager::new(&ledger, &clock, times, transcripts.background());
        let limits = LookupLimits::new(limiter, networks, Arc::clone(&options), store_timeout);
        let keys = LookupKeys {
            transcripts: transcripts.clone(),
            requests: RequestCounter::new(Arc::clone(&directory), store_timeout),
            directory,
            ledger,
            limits: limits.clone(),
            clock: Arc::clone(&clock),
            random: Arc::clone(&random),
            entitlements,
            options: Arc::clone(&options),
        };
        let payments = LookupPayments {
            keys: keys.clone(),
            limits: limits.clone(),
            holds,
            clock: Arc::clone(&clock),
            random,
            options: Arc::clone(&options),
        };
        let keyed_digest = KeyedDigest::new(secret);
        Ok(Self { transcripts, clock, options, keys, limits, payments, keyed_digest })
    }

    /// The same API with other settings and entitlements: the stores and the running fetches are shared.
    ///
    /// A request that began with the old settings ends with them.
    pub fn with_options(
        &self,
        options: LookupOptions,
        entitlements: Option<Arc<dyn EntitlementVerifier>>,
    ) -> Self {
        let options = Arc::new(options);
        let shared = || Arc::clone(&options);
        let limits = self.limits.with_options(shared());
        let keys =
            LookupKeys { limits: limits.clone(), entitlements, options: shared(), ..self.keys.clone() };
        let payments = LookupPayments {
            keys: keys.clone(),
            limits: limits.clone(),
            options: shared(),
            ..self.payments.clone()
        };
        Self { options: shared(), keys, limits, payments, ..self.clone() }
    }

    /// Admits a call of a free assistant tool, or returns its refusal.
    ///
    /// Counts it for the key's owner or, without a key of this server, for the network: an invalid key evades no limit.
    ///
    /// # Errors
    /// [`crate::ErrorKind::Unavailable`] if the directory or the limiter cannot be reached.
    pub async fn admit_tool_call(
        &self,
        key: Option<String>,
        client: Option<IpAddr>,
    ) -> Result<Option<ToolCallRefusal>> {
        let lookup = self.clone();
        let work = async move {
            let owner = lookup.keys.owner_name(key.as_deref()).await?;
            let now = lookup.clock.now();
            let limits = lookup.limits.tool_call(owner.as_deref(), client, now);
            let limited = lookup.limits.check(limits, now).await?;
            Ok(limited.map(|retry_after_ms| ToolCallRefusal { has_key: owner.is_some(), retry_after_ms }))
        };
        self.transcripts.task(work).await?
    }

    /// Admits a document that is made of a transcript without a key; returns the time until a retry in milliseconds if
    /// it is refused.
    ///
    /// `bytes` is the length of the words: 64 KiB count as one call of a free assistant tool of the network.
    ///
    /// # Errors
    /// [`crate::ErrorKind::Unavailable`] if the limiter cannot be reached.
    pub async fn admit_document(&self, bytes: usize, client: Option<IpAddr>) -> Result<Option<u64>> {
        let lookup = self.clone();
        let work = async move {
            let now = lookup.clock.now();
            lookup.limits.check(lookup.limits.document(bytes, client, now), now).await
        };
        self.transcripts.task(work).await?
    }

    /// Admits a search of the archive: counts it for the key or, without a valid one, for the network.
    ///
    /// # Errors
    /// [`crate::ErrorKind::Unavailable`] if the directory or the limiter cannot be reached.
    pub async fn admit_search(
        &self,
        key: Option<String>,
        client: Option<IpAddr>,
        needs_key: bool,
    ) -> Result<SearchAdmission> {
        let lookup = self.clone();
        let work = async move {
            let owner = lookup.keys.owner_name(key.as_deref()).await?;
            if needs_key && owner.is_none() {
                return Ok(SearchAdmission::KeyNeeded { is_unknown: key.is_some() });
            }
            let now = lookup.clock.now();
            let limits = lookup.limits.search(owner.as_deref(), client, now);
            Ok(match lookup.limits.check(limits, now).await? {
                None => SearchAdmission::Admitted,
                Some(retry_after_ms) => SearchAdmission::Limited { retry_after_ms },
            })
        };
        self.transcripts.task(work).await?
    }

    /// The engine.
    pub fn transcripts(&self) -> &Transcripts {
        &self.transcripts
    }

    /// The settings.
    pub fn options(&self) -> &LookupOptions {
        &self.options
    }

    /// The keys of the lookup API.
    pub fn keys(&self) -> &LookupKeys {
        &self.keys
    }
}
