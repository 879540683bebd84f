//! Surface B: accounts with credits (specification 2.5 to 2.8, 4 "Surface B", 7, 8; design 4).
//!
//! An account is made by redeeming the token of a verification mail. It has a plan, whose credits come back
//! each month, and credits that were bought. A transcript costs credits when it is delivered, never else.
//! Its stores beside directory and ledger are here too: orders, outgoing mail, and replies to repeat.

mod at_hand;
mod authenticate;
#[cfg(test)]
mod boundaries;
mod call;
mod charge;
mod charges;
mod chat;
mod email;
mod erase;
mod keys;
pub mod mail;
mod months;
mod notes;
mod operate;
mod options;
mod orders;
mod outbox;
pub mod payments;
mod plans;
mod rate;
mod refused;
mod register;
mod replies;
mod standing;
mod telling;
mod transcript;
mod usage;
mod visit;

use std::sync::Arc;

pub use at_hand::AtHand;
pub(crate) use authenticate::BLOCKED;
pub use authenticate::Caller;
pub use call::{Call, Entry, Route};
pub use charges::{ChargeOutcome, ChargeRequest, Charges, StepByStep};
pub use chat::{ChatAsk, ChatCredits, ChatReady};
pub use email::{Email, NoEmail};
pub use erase::Ties;
pub use keys::{NewAccountKey, Verification};
pub use months::Month;
pub use operate::{AccountExport, AccountView};
pub use options::{AccountsOptions, PlanTable, PlanTerms};
pub use orders::{Item, Order, OrderState, Orders};
pub use outbox::{MailIntent, Outbox, WAITING_MAX};
pub use plans::{PlanPayment, after_payments};
pub use rate::RateState;
pub use refused::Refused;
pub use replies::{Attempt, Begun, Header, Replies, Reply};
pub use standing::{PlanState, Standing};
pub use telling::{Telling, Told};
pub use transcript::{TranscriptAsk, TranscriptReady};
pub use usage::{Credits, Profile};
pub use visit::Visit;

use quick_cache::sync::Cache;

use crate::{
    directory::{Directory, Secrets},
    engine::{
        Transcripts,
        retry::{bounded, persistently},
    },
    error::Result,
    ledger::Ledger,
    limits::RateLimiter,
    lookup::network::Networks,
    time::{Clock, Random},
};

/// What Surface B works with.
#[derive(Clone, Debug)]
pub struct AccountsParts {
    /// The engine.
    pub transcripts: Transcripts,
    /// The credits.
    pub ledger: Arc<dyn Ledger>,
    /// The accounts and their keys.
    pub directory: Arc<dyn Directory>,
    /// Charges for what is at hand, on the same credits, keys and limits: [`StepByStep`], or the stores' own.
    pub charges: Arc<dyn Charges>,
    /// What was sold: whoever may still pay is not erased.
    pub orders: Arc<dyn Orders>,
    /// Mail to be sent.
    pub outbox: Arc<dyn Outbox>,
    /// Replies to repeat.
    pub replies: Arc<dyn Replies>,
    /// The limits of accounts and networks.
    pub limiter: Arc<dyn RateLimiter>,
    /// The clock.
    pub clock: Arc<dyn Clock>,
    /// Randomness for keys, tokens and ids.
    pub random: Arc<dyn Random>,
    /// The settings.
    pub options: AccountsOptions,
}

/// Surface B. A clone is a handle to the same one.
#[derive(Clone, Debug)]
pub struct Accounts {
    parts: Arc<AccountsParts>,
    own: Arc<Own>,
}

/// What it has beside the parts.
#[derive(Debug)]
struct Own {
    /// Digests networks and addresses for their limits, so that neither is stored.
    networks: Networks,
    /// Whose keys they were, by the digests of those that were charged lately. Nothing rests on it.
    callers: Cache<[u8; 32], Arc<Caller>>,
}

/// How many callers are remembered, each in about half a kilobyte.
const CALLERS_MAX: usize = 8_192;
/// The length of the server's secret in bytes.
const SECRET_LENGTH: u32 = 32;

impl Accounts {
    /// Puts Surface B together; fetches the server's secret, or makes it at the first start.
    ///
    /// # Errors
    /// As [`Secrets::secret`].
    pub async fn open(parts: AccountsParts, secrets: &dyn Secrets) -> Result<Self> {
        let secret = secrets.secret("server", parts.random.bytes(SECRET_LENGTH)).await?;
        let own = Own { networks: Networks::new(secret), callers: Cache::new(CALLERS_MAX) };
        Ok(Self { parts: Arc::new(parts), own: Arc::new(own) })
    }

    /// The settings.
    pub fn options(&self) -> &AccountsOptions {
        &self.parts.options
    }

    /// The parts that it was put together from.
    pub fn parts(&self) -> &AccountsParts {
        &self.parts
    }

    /// Does something on the engine's runtime, so that any executor may wait for it. A fault of a store is
    /// told as one.
    ///
    /// # Cancellation
    /// Dropping the future ends the work at its next await.
    async fn task<T: Send + 'static>(
        &self,
        work: impl Future<Output = Result<T, Refused>> + Send + 'static,
    ) -> Result<T, Refused> {
        match self.parts.transcripts.task(work).await {
            Ok(outcome) => outcome,
            Err(error) => Err(Refused::store(&error)),
        }
    }

    /// Makes one call of a store, and waits as long as a store may take.
    async fn once<T>(&self, call: impl Future<Output = Result<T>>) -> Result<T, Refused> {
        let limit = self.parts.transcripts.options().store;
        bounded(limit, call).await.map_err(|error| Refused::store(&error))
    }

    /// Makes a call of a store that is idempotent by its ids until its outcome is known, while a caller
    /// listens.
    async fn surely<T, F>(&self, call: impl FnMut() -> F) -> Result<T, Refused>
    where
        F: Future<Output = Result<T>>,
    {
        let patience = self.parts.transcripts.patience();
        persistently(patience, call).await.map_err(|error| Refused::store(&error))
    }
}
