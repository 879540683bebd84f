//! A combined charge in one store call: authentication, rate limit and credits.

use std::{fmt, sync::Arc};

use async_trait::async_trait;

use crate::{
    directory::{Directory, KeyOwner},
    error::{Error, Result},
    ids::AccountId,
    ledger::{HoldOutcome, HoldRequest, Ledger},
    limits::{LimitOutcome, LimitRequest, RateLimiter},
};

/// A request to charge an account for a cached answer.
#[derive(Clone, Debug)]
pub struct ChargeRequest {
    /// The digest of the call's key.
    pub key_digest: Vec<u8>,
    /// The account that the key belonged to when it was looked up.
    pub account: AccountId,
    /// The account's version at that time; limit and terms below were computed from it.
    pub version: u64,
    /// The rate limit of the call. Its time is the `now` of `spend`.
    pub limit_request: LimitRequest,
    /// The credits.
    pub spend: HoldRequest,
}

impl ChargeRequest {
    /// Checks the limits of a request; every implementation calls it first.
    ///
    /// # Errors
    /// As [`HoldRequest::check`] and [`crate::limits::check`].
    pub fn check(&self) -> Result<()> {
        crate::limits::check(std::slice::from_ref(&self.limit_request))?;
        self.spend.check()
    }
}

/// Outcome of a charge request.
#[derive(Clone, Debug)]
pub enum ChargeOutcome {
    /// The key no longer belongs to this version of the account: nothing was done.
    /// The caller looks the key up again.
    Stale,
    /// The rate limit refused the call: nothing was done.
    Limited {
        /// As in [`LimitOutcome::Limited`].
        retry_after_ms: u64,
    },
    /// The call was counted.
    Accepted {
        /// As in [`LimitOutcome::Allowed`].
        remaining: u32,
        /// As in [`LimitOutcome::Allowed`].
        reset_ms: u64,
        /// The outcome for the credits. A refused spend is counted by the limit, too.
        spent: HoldOutcome,
    },
}

impl ChargeOutcome {
    /// The remaining requests and the milliseconds until the limit is full: [`LimitOutcome::Allowed`].
    ///
    /// # Errors
    /// [`ChargeOutcome::Limited`] if the limit refuses the call.
    pub fn allowed(outcome: LimitOutcome) -> Result<(u32, u64), Self> {
        match outcome {
            LimitOutcome::Allowed { remaining, reset_ms } => Ok((remaining, reset_ms)),
            LimitOutcome::Limited { retry_after_ms, .. } => Err(Self::Limited { retry_after_ms }),
        }
    }
}

/// Charges for cached answers: authentication, rate limit and credits in one call.
///
/// [`SequentialCharges`] implements it with three calls, for any directory, limiter and ledger. A store that
/// contains all three can do better: one transaction for a call, and a group commit for all calls that wait
/// for the disk at the same time, each with its own outcome.
#[async_trait]
pub trait ChargeStore: fmt::Debug + Send + Sync + 'static {
    /// Charges one call.
    ///
    /// **Behaviour**, in this order:
    /// - A key that is not live, or belongs to another account or another version of it than the request
    ///   names, is [`ChargeOutcome::Stale`]. So callers may cache what a request was computed from: the store
    ///   verifies it when it charges, in the same transaction if there is one.
    /// - The limit is acquired as by [`RateLimiter::acquire`]; a refusal ends the charge.
    /// - The credits are spent as by [`Ledger::spend`], with any of its outcomes.
    ///
    /// Credits are idempotent by the id of the hold, as in the ledger; the limit counts a repeat again.
    /// Concurrent charges are serialized: each sees those before it.
    ///
    /// Unlike the futures of other methods, this one may be polled on any executor.
    ///
    /// # Errors
    /// [`crate::ErrorKind::Invalid`], without any effect, for a request that [`ChargeRequest::check`] rejects.
    /// After any other error it is unknown whether the call was charged, unless
    /// [`Error::has_no_effect`]: then no credit was taken.
    async fn charge(&self, request: ChargeRequest) -> Result<ChargeOutcome>;
}

/// Charges made of three ports, with a separate transaction for each step.
///
/// A crash between two steps leaves a call counted but not charged, which a limit permits.
#[derive(Clone, Debug)]
pub struct SequentialCharges {
    /// The directory of keys and accounts.
    pub directory: Arc<dyn Directory>,
    /// The rate limits.
    pub limiter: Arc<dyn RateLimiter>,
    /// The ledger of the credits.
    pub ledger: Arc<dyn Ledger>,
}

impl SequentialCharges {
    /// Verifies the key and counts the call; the inner `Err` is the outcome that ends the charge.
    async fn authenticate_and_count(
        &self,
        request: &ChargeRequest,
    ) -> Result<Result<(u32, u64), ChargeOutcome>> {
        match self.directory.key_owner(&request.key_digest).await? {
            Some(KeyOwner::Account { account, .. })
                if account.id == request.account && account.version == request.version => {}
            _ => return Ok(Err(ChargeOutcome::Stale)),
        }
        Ok(ChargeOutcome::allowed(
            self.limiter.acquire(vec![request.limit_request.clone()], request.spend.now).await?,
        ))
    }
}

#[async_trait]
impl ChargeStore for SequentialCharges {
    async fn charge(&self, request: ChargeRequest) -> Result<ChargeOutcome> {
        request.check()?;
        let counted = self.authenticate_and_count(&request).await;
        let (remaining, reset_ms) = match counted.map_err(Error::without_effect)? {
            Ok(counted) => counted,
            Err(outcome) => return Ok(outcome),
        };
        Ok(ChargeOutcome::Accepted { remaining, reset_ms, spent: self.ledger.spend(request.spend).await? })
    }
}
