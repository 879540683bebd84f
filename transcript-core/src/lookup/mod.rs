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
mod listing;
mod options;
mod payment;
mod plan;
mod request;
mod response;
mod visitor;

use std::sync::Arc;

pub use archived_response::ArchivedResponse;
pub use challenge::{ChallengeClaims, ChallengeProvider};
pub use entitlement::{Entitlement, EntitlementProof, EntitlementVerifier};
pub use keys::{
    CreateKeyOutcome, CreateKeyRequest, IssuedLookupKey, KeyOrigin, KeyRequestError, KeyStatus, KeyUsage,
};
pub use listing::KeyWithUsage;
pub use options::LookupOptions;
pub use plan::KeyPlan;
pub use request::{AttributionTag, LookupRequest, ReferenceError, VideoReference};
pub use response::{Availability, LookupResponse};
pub use visitor::{AdmittedVisitor, VisitorOutcome, VisitorRequest, WaitMode};

pub use crate::engine::FailureReason;
use crate::{
    directory::{Directory, SecretStore},
    engine::{EngineOptions, Transcripts},
    error::Result,
    ledger::{HoldManager, HoldTimes, Ledger},
    limits::{LimitOutcome, LimitRequest, RateLimiter, network::NetworkHasher},
    retry::with_timeout,
    time::{Clock, Random, Timestamp},
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
    /// Limits of misses, failed attempts and new keys.
    pub limiter: Arc<dyn RateLimiter>,
    /// The clock.
    pub clock: Arc<dyn Clock>,
    /// Randomness for new keys.
    pub random: Arc<dyn Random>,
    /// The settings.
    pub options: LookupOptions,
}

/// The lookup API. A clone is a handle to the same one.
#[derive(Clone, Debug)]
pub struct Lookup {
    deps: Arc<LookupDeps>,
    /// Holds the cost of new transcripts.
    holds: HoldManager,
    /// Digests networks, so that no address is stored.
    networks: NetworkHasher,
    /// Signs visitors' names and challenges.
    keyed_digest: visitor::KeyedDigest,
    /// Browser challenges; without it, visitors get archived transcripts only.
    challenges: Option<Arc<dyn ChallengeProvider>>,
    /// Verifies proofs of paid plans; `None` if no proof is accepted.
    entitlements: Option<Arc<dyn EntitlementVerifier>>,
}

/// The length of the server's secret in bytes.
const SECRET_LENGTH: u32 = 32;

impl Lookup {
    /// Opens the lookup API. Reads the server's secret, or creates it at the first start.
    ///
    /// # Errors
    /// As [`SecretStore::get_or_create`].
    pub async fn open(parts: LookupDeps, secrets: &dyn SecretStore) -> Result<Self> {
        let secret = secrets.get_or_create("server", parts.random.bytes(SECRET_LENGTH)).await?;
        let (networks, keyed_digest) =
            (NetworkHasher::new(secret.clone()), visitor::KeyedDigest::new(secret));
        let EngineOptions { lease: lifetime, heartbeat, store_timeout, .. } = *parts.transcripts.options();
        let times = HoldTimes { lifetime, heartbeat, store_timeout };
        let holds = HoldManager::new(&parts.ledger, &parts.clock, times, parts.transcripts.background());
        Ok(Self {
            deps: Arc::new(parts),
            holds,
            networks,
            keyed_digest,
            challenges: None,
            entitlements: None,
        })
    }

    /// The engine.
    pub fn transcripts(&self) -> &Transcripts {
        &self.deps.transcripts
    }

    /// The settings.
    pub fn options(&self) -> &LookupOptions {
        &self.deps.options
    }

    /// Acquires rate limits. If one refuses, returns the time until a retry in milliseconds.
    ///
    /// A limit of 0 refuses without a store call.
    async fn check_limits(&self, requests: Vec<LimitRequest>, now: Timestamp) -> Result<Option<u64>> {
        if let Some(refusing) = requests.iter().find(|request| request.max == 0) {
            return Ok(Some(refusing.window_ms));
        }
        Ok(match self.with_store_timeout(self.deps.limiter.acquire(requests, now)).await? {
            LimitOutcome::Allowed { .. } => None,
            LimitOutcome::Limited { retry_after_ms, .. } => Some(retry_after_ms),
        })
    }

    /// Awaits a store call, with the store timeout.
    async fn with_store_timeout<T>(&self, call: impl Future<Output = Result<T>>) -> Result<T> {
        with_timeout(self.deps.transcripts.options().store_timeout, call).await
    }
}
