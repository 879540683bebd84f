//! One charge for what is at hand: whose key it is, the rate limit and the credits, in one call of a store.

use std::{fmt, sync::Arc};

use async_trait::async_trait;

use crate::{
    directory::{Directory, Owner},
    error::{Error, Result},
    ids::AccountId,
    ledger::{HoldOutcome, HoldRequest, Ledger},
    limits::{RateLimiter, Take, Taken},
};

/// A request to charge an account for an answer that is at hand.
#[derive(Clone, Debug)]
pub struct ChargeRequest {
    /// The digest of the key that came with the call.
    pub key_digest: Vec<u8>,
    /// The account that it opened when it was looked up.
    pub account: AccountId,
    /// The account's version at that time: limit and terms below were computed of it.
    pub version: u64,
    /// The rate limit of the call. Its moment is that of `spend`.
    pub take: Take,
    /// The credits.
    pub spend: HoldRequest,
}

impl ChargeRequest {
    /// Checks the bounds of a request; every implementation calls it first.
    ///
    /// # Errors
    /// As [`HoldRequest::check`] and [`crate::limits::check`].
    pub fn check(&self) -> Result<()> {
        crate::limits::check(std::slice::from_ref(&self.take))?;
        self.spend.check()
    }
}

/// What came of a request to charge.
#[derive(Clone, Debug)]
pub enum ChargeOutcome {
    /// The key opens this version of the account no longer: nothing was done. Whoever asks looks the key up anew.
    Stale,
    /// The rate limit refuses: nothing was done.
    Limited {
        /// As in [`Taken::Limited`].
        retry_after_ms: u64,
    },
    /// The call was counted.
    Counted {
        /// As in [`Taken::Allowed`].
        remaining: u32,
        /// As in [`Taken::Allowed`].
        reset_ms: u64,
        /// What became of the credits. A refusal is counted too.
        spent: HoldOutcome,
    },
    /// The store failed before anything could be charged: certainly no credit was taken.
    Undone(Error),
}

impl ChargeOutcome {
    /// What is left of the limit, and the milliseconds until it is whole again, as in [`Taken::Allowed`].
    ///
    /// # Errors
    /// How the charge ends where the limit refuses.
    pub fn allowed(taken: Taken) -> Result<(u32, u64), Self> {
        match taken {
            Taken::Allowed { remaining, reset_ms } => Ok((remaining, reset_ms)),
            Taken::Limited { retry_after_ms, .. } => Err(Self::Limited { retry_after_ms }),
        }
    }
}

/// Charges for what is at hand: the whole of a call's bookkeeping in one step.
///
/// A directory, a limiter and a ledger do the same in three calls, and [`StepByStep`] makes a `Charges` of any
/// three. A store that has all of them under one roof can do better: one transaction for a call, and one for all
/// calls that wait for the disk at the same time, each with an outcome of its own.
#[async_trait]
pub trait Charges: fmt::Debug + Send + Sync + 'static {
    /// Charges once.
    ///
    /// **Behaviour**, in this order:
    /// - A key that is not live, or whose account is another or another version of it than the request says, is
    ///   [`ChargeOutcome::Stale`]. So what a request was computed of may be remembered from earlier calls: it
    ///   is looked at again by whoever takes the money, in the very transaction where there is one.
    /// - The limit is taken as by [`RateLimiter::take`]; a refusal ends it.
    /// - The credits are taken as by [`Ledger::spend`], whatever comes of it.
    ///
    /// Credits are idempotent by the id of the hold, as in the ledger; a repeat is counted by the limit again.
    /// Charges that are made at the same time have an order, in which each sees those before it.
    ///
    /// Unlike with other methods the future is awaited wherever somebody asks: any executor may poll it.
    ///
    /// # Errors
    /// [`crate::ErrorKind::Invalid`], having done nothing, when a request is outside the bounds that
    /// [`ChargeRequest::check`] names. With any other error nobody knows whether it was charged; a store that
    /// does know says [`ChargeOutcome::Undone`].
    async fn charge(&self, ask: ChargeRequest) -> Result<ChargeOutcome>;
}

/// Charges made of three ports, each step a transaction of its own.
///
/// A crash between two of them has counted a call that was not charged, which a limit may do.
#[derive(Clone, Debug)]
pub struct StepByStep {
    /// Whose keys they are.
    pub directory: Arc<dyn Directory>,
    /// The limits.
    pub limiter: Arc<dyn RateLimiter>,
    /// The credits.
    pub ledger: Arc<dyn Ledger>,
}

impl StepByStep {
    /// What the limiter says of a call whose key opens the account; else how the charge ends.
    async fn count(&self, ask: &ChargeRequest) -> Result<Result<(u32, u64), ChargeOutcome>> {
        match self.directory.owner(&ask.key_digest).await? {
            Some(Owner::Account { account, .. })
                if account.id == ask.account && account.version == ask.version => {}
            _ => return Ok(Err(ChargeOutcome::Stale)),
        }
        Ok(ChargeOutcome::allowed(self.limiter.take(vec![ask.take.clone()], ask.spend.now).await?))
    }
}

#[async_trait]
impl Charges for StepByStep {
    async fn charge(&self, ask: ChargeRequest) -> Result<ChargeOutcome> {
        ask.check()?;
        let (remaining, reset_ms) = match self.count(&ask).await {
            Ok(Ok(counted)) => counted,
            Ok(Err(ended)) => return Ok(ended),
            Err(error) => return Ok(ChargeOutcome::Undone(error)),
        };
        Ok(ChargeOutcome::Counted { remaining, reset_ms, spent: self.ledger.spend(ask.spend).await? })
    }
}
