//! Charging a call whose answer is cached: admission, rate limit and credits in one store call.
//!
//! The principal of a key is cached from earlier calls. The cache is not trusted: the store charges only if
//! the key still belongs to the cached version of the account, and otherwise returns [`ChargeOutcome::Stale`].

use std::sync::Arc;

use sha2::{Digest, Sha256};

use super::{
    AccountPrincipal, Accounts, ChargeOutcome, ChargeRequest, EffectivePlan, RateLimitStatus, V1Endpoint,
    V1Error,
    authenticate::parse_key,
    charge::{credits_left, hold_error},
};
use crate::{
    directory::api_key::ApiKey,
    error::{ErrorKind, Result as StoreResult, Retry},
    ids::{HoldId, random_id},
    ledger::{HoldOutcome, HoldState},
    retry::retry_store,
    video::VideoId,
};

/// How often a key is looked up before the call fails.
/// Each retry means that its account changed in between.
const LOOKUPS_MAX: u32 = 4;

/// Result of a counted call for a cached answer.
#[derive(Debug)]
pub struct CachedCharge {
    /// The account's rate limit after this call.
    pub rate: RateLimitStatus,
    /// The credits left, if known; an error means that the answer must not be sent.
    pub paid: Result<Option<u64>, V1Error>,
}

impl Accounts {
    /// Admits, counts and charges a call for an archived transcript that is ready to be sent.
    ///
    /// After success the answer is sent. For calls without an `Idempotency-Key`. The checks have the order of
    /// [`Accounts::admit`] and [`Accounts::transcript`], and the prices are the same.
    ///
    /// Unlike other methods it does not use the engine's runtime unless a store call must be retried or a key
    /// looked up: it runs where it is awaited.
    ///
    /// # Errors
    /// [`V1Error::Unauthorized`], [`V1Error::RateLimited`], [`V1Error::Internal`]: the call was not counted.
    ///
    /// # Cancellation
    /// Dropping the future leaves the call charged or not charged. As in [`Accounts::transcript`], a cached
    /// answer counts as delivered when it is requested.
    pub async fn charge_cached(
        &self,
        bearer: Option<&str>,
        video: &VideoId,
    ) -> Result<CachedCharge, V1Error> {
        let key = parse_key(bearer)?;
        let digest: [u8; 32] = Sha256::digest(key.reveal().as_bytes()).into();
        let memo = format!("transcript {video}");
        for _ in 0..LOOKUPS_MAX {
            let principal = match self.state.principals.get(&digest) {
                Some(principal) => principal,
                None => self.cache_principal(&key, digest).await?,
            };
            match self.charge_principal(&principal, &memo).await? {
                Some(charge) => return Ok(charge),
                None => self.state.principals.remove(&digest),
            };
        }
        Err(V1Error::Internal(
            "The account changed during every attempt. Nothing was charged; retry in a few seconds."
                .to_owned(),
        ))
    }

    /// Looks up the principal of a key and caches it.
    async fn cache_principal(
        &self,
        key: &ApiKey,
        digest: [u8; 32],
    ) -> Result<Arc<AccountPrincipal>, V1Error> {
        let (accounts, key) = (self.clone(), key.clone());
        let principal = self.task(async move { accounts.principal(&key).await }).await?;
        let principal = Arc::new(principal);
        self.state.principals.insert(digest, Arc::clone(&principal));
        Ok(principal)
    }

    /// Counts and charges a call; `None` if the account has changed.
    async fn charge_principal(
        &self,
        principal: &AccountPrincipal,
        memo: &str,
    ) -> Result<Option<CachedCharge>, V1Error> {
        let request = self.charge_request(principal, memo);
        let limit = self.rate_limit(&request.limit_request)?;
        let attempt = self.deps.transcripts.options().store_timeout / 2;
        let first_try =
            self.deps.transcripts.with_timeout(attempt, self.deps.charges.charge(request.clone())).await;
        let is_outcome_known = first_try.is_ok();
        let outcome = match first_try {
            Err(error) if error.kind() == ErrorKind::Invalid => {
                return Err(V1Error::from_store_error(&error));
            }
            Err(error) if error.retry() == Retry::Never => Err(error),
            Err(_) => self.charge_with_retries(request.clone()).await,
            Ok(outcome) => Ok(outcome),
        };
        match outcome {
            Ok(ChargeOutcome::Accepted { remaining, reset_ms, spent }) => {
                let paid = match spent {
                    HoldOutcome::Held { balances }
                    | HoldOutcome::Exists { state: HoldState::Settled { .. }, balances } => {
                        Ok(Some(credits_left(&balances)))
                    }
                    // The first try failed, but may still take effect in a slow store.
                    _ if !is_outcome_known => Ok(None),
                    outcome => Err(hold_error(&request.spend, outcome, self.options().sells)),
                };
                Ok(Some(CachedCharge { rate: limit.state(remaining, reset_ms), paid }))
            }
            Ok(ChargeOutcome::Limited { retry_after_ms }) if is_outcome_known => {
                Err(limit.to_error(retry_after_ms))
            }
            Ok(ChargeOutcome::Stale) if is_outcome_known => Ok(None),
            Ok(ChargeOutcome::NotCharged(error)) if is_outcome_known => {
                Err(V1Error::from_store_error(&error))
            }
            // It is unknown whether a try took effect: the answer is sent, as in `Accounts::spend`.
            outcome => {
                tracing::error!(hold = %request.spend.id, ?outcome, "credit spend outcome unknown");
                Ok(Some(CachedCharge { rate: limit.state(0, 0), paid: Ok(None) }))
            }
        }
    }

    fn charge_request(&self, principal: &AccountPrincipal, memo: &str) -> ChargeRequest {
        let (account, cost) = (&principal.account, self.options().credits_per_transcript);
        let now = self.deps.clock.now();
        // Ids that grow with time are adjacent in a store's index. There is only ever one attempt at this work.
        let work_id = format!("{}-{:012x}", V1Endpoint::Transcript.as_str(), now.as_millis());
        let id = HoldId::new(random_id(self.deps.random.as_ref(), &work_id) + "-once");
        let effective_plan = EffectivePlan::new(account, self.options(), now);
        let spend = self.hold_request_at(now, account, &effective_plan, id, cost, memo);
        ChargeRequest {
            key_digest: principal.key_digest.clone(),
            account: account.id.clone(),
            version: account.version,
            limit_request: Self::call_limit_request(account, &effective_plan),
            spend,
        }
    }

    /// Retries the charge until its outcome is known or the time of a request is over.
    async fn charge_with_retries(&self, request: ChargeRequest) -> StoreResult<ChargeOutcome> {
        let (policy, charges) =
            (self.deps.transcripts.options().request_policy(), Arc::clone(&self.deps.charges));
        let retry = move || {
            let (charges, request) = (Arc::clone(&charges), request.clone());
            async move {
                match charges.charge(request).await? {
                    // This try had no effect; the one before it may have had.
                    ChargeOutcome::NotCharged(error) => Err(error),
                    outcome => Ok(outcome),
                }
            }
        };
        self.deps.transcripts.task(async move { retry_store(policy, retry).await }).await?
    }
}
