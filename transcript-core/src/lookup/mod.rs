//! Surface A: who may have what, and every reason why not (specification 2.2, 4; design 3).
//!
//! An archived transcript is free to everyone, however often. A new one needs a key, and costs 1 of the
//! key's allowance and 1 of the service's daily cap; or a visitor of the watch page, whose browser has passed a check,
//! and it costs 1 of the visitor's allowance and of their network's. Whoever gets none is told why, in one sentence,
//! and gets the watch address.

mod answer;
mod ask;
mod entitlement;
mod failure;
mod human;
mod keys;
mod languages;
mod listing;
pub(crate) mod network;
mod options;
mod paying;
mod plan;
mod stored;
mod visitor;
mod way;

use std::sync::Arc;

pub use answer::{Availability, LookupAnswer};
pub use ask::{BadReference, LookupAsk, Reference, SourceTag};
pub use entitlement::{Entitlement, Entitlements, Proof};
pub use failure::FailureReason;
pub use human::{Challenged, HumanCheck};
pub use keys::{BadKeyRequest, CreateKey, CreateKeyOutcome, KeyStatus, KeyUse, NewLookupKey, Origin};
pub use listing::ListedKey;
pub use options::LookupOptions;
pub use plan::KeyPlan;
pub use stored::StoredAnswer;
pub use visitor::{Admission, Admitted, Patience, VisitorAsk};

use crate::{
    directory::{Directory, Secrets},
    engine::{Transcripts, retry::bounded},
    error::Result,
    ledger::Ledger,
    limits::{RateLimiter, Take, Taken},
    time::{Clock, Random, Timestamp},
};

/// What the look-up works with.
#[derive(Clone, Debug)]
pub struct LookupParts {
    /// The engine; it must have the same ledger.
    pub transcripts: Transcripts,
    /// The ledger.
    pub ledger: Arc<dyn Ledger>,
    /// The keys.
    pub directory: Arc<dyn Directory>,
    /// Fair use and mint limits.
    pub limiter: Arc<dyn RateLimiter>,
    /// The clock.
    pub clock: Arc<dyn Clock>,
    /// Randomness for new keys.
    pub random: Arc<dyn Random>,
    /// The settings.
    pub options: LookupOptions,
}

/// Surface A. A clone is a handle to the same one.
#[derive(Clone, Debug)]
pub struct Lookup {
    parts: Arc<LookupParts>,
    /// Digests the networks, so that no address is stored.
    networks: network::Networks,
    /// Signs visitors' names and challenges.
    seal: visitor::Seal,
    /// Who tells people from machines; without it, visitors only read.
    human: Option<Arc<dyn HumanCheck>>,
    /// Who proves paid plans; none when no proof is believed.
    entitlements: Option<Arc<dyn Entitlements>>,
}

/// The length of the server's secret in bytes.
const SECRET_LENGTH: u32 = 32;

impl Lookup {
    /// Puts Surface A together; fetches the server's secret, or makes it at the first start.
    ///
    /// # Errors
    /// As [`Secrets::secret`].
    pub async fn open(parts: LookupParts, secrets: &dyn Secrets) -> Result<Self> {
        let secret = secrets.secret("server", parts.random.bytes(SECRET_LENGTH)).await?;
        let (networks, seal) = (network::Networks::new(secret.clone()), visitor::Seal::new(secret));
        Ok(Self { parts: Arc::new(parts), networks, seal, human: None, entitlements: None })
    }

    /// The engine behind it.
    pub fn transcripts(&self) -> &Transcripts {
        &self.parts.transcripts
    }

    /// The settings.
    pub fn options(&self) -> &LookupOptions {
        &self.parts.options
    }

    /// Takes from limits; when that is refused, returns after how many milliseconds it may be tried again.
    /// A limit of 0 refuses without asking.
    async fn limited(&self, takes: Vec<Take>, now: Timestamp) -> Result<Option<u64>> {
        if let Some(closed) = takes.iter().find(|take| take.count == 0) {
            return Ok(Some(closed.per_ms));
        }
        Ok(match self.bounded(self.parts.limiter.take(takes, now)).await? {
            Taken::Allowed { .. } => None,
            Taken::Limited { retry_after_ms, .. } => Some(retry_after_ms),
        })
    }

    /// Waits for one call of a store, as long as a store may take.
    async fn bounded<T>(&self, call: impl Future<Output = Result<T>>) -> Result<T> {
        bounded(self.parts.transcripts.options().store, call).await
    }
}
