//! Charging a call whose answer is cached: admission, rate limit and credits in one store call.
//!
//! [`CachedCharges::known_caller`] comes first, so that no work is done for an unknown key.
//!
//! The principal of a key is cached from earlier calls. The cache is not trusted: the store charges only if
//! the key still belongs to the cached version of the account, and otherwise returns [`ChargeOutcome::Stale`].

use std::sync::Arc;

use quick_cache::sync::Cache;
use sha2::{Digest, Sha256};

use super::{
    AccountCredits, AccountPrincipal, Authenticator, ChargeOutcome, ChargeRequest, ChargeStore, Memo,
    RateLimitStatus, V1Endpoint, V1Error,
    authenticate::parse_key,
    call_context::CallContext,
    prepaid::has_prepaid,
    rate_limit::{AccountRateLimit, call_limit_request},
};
use crate::{
    directory::api_key::ApiKey,
    error::Result as StoreResult,
    failure_log::log_failure,
    ids::HoldId,
    ledger::SpendResult,
    retry::{EffectFlag, retry_store, retry_uncertain},
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

/// A caller whose key has an owner.
#[derive(Clone, Debug)]
pub struct KnownCaller {
    key: ApiKey,
    digest: [u8; 32],
    principal: Arc<AccountPrincipal>,
}

/// Charges calls for cached answers. Uses the charge store, and the directory where a key is not cached.
#[derive(Debug)]
pub struct CachedCharges {
    pub(super) context: Arc<CallContext>,
    pub(super) authenticator: Arc<Authenticator>,
    pub(super) credits: Arc<AccountCredits>,
    pub(super) charges: Arc<dyn ChargeStore>,
    /// A cache; the store verifies each entry on use.
    pub(super) principals: Arc<PrincipalCache>,
}

/// Recently charged keys: digest to principal.
pub(super) type PrincipalCache = Cache<[u8; 32], Arc<AccountPrincipal>>;

impl CachedCharges {
    /// Returns the caller with this bearer key, for [`Self::charge`].
    ///
    /// The owner may be cached from an earlier call; the charge verifies it.
    ///
    /// # Errors
    /// [`V1Error::Unauthorized`], [`V1Error::Internal`].
    pub async fn known_caller(&self, bearer: Option<&str>) -> Result<KnownCaller, V1Error> {
        let key = parse_key(bearer)?;
        let digest: [u8; 32] = Sha256::digest(key.reveal().as_bytes()).into();
        let principal = self.cached_principal(&key, digest).await?;
        Ok(KnownCaller { key, digest, principal })
    }

    /// Admits, counts and charges a call for an archived transcript that is ready to be sent.
    ///
    /// After success the answer is sent. `None` if the delivery may be prepaid: nothing was counted or charged, and
    /// [`Delivery::transcript`](super::Delivery::transcript) must do the call. For calls without an
    /// `Idempotency-Key`. The checks have the order of [`Admission::admit`](super::Admission::admit) and
    /// [`Delivery::transcript`](super::Delivery::transcript), and the prices are the same.
    ///
    /// Unlike other methods it does not use the engine's runtime unless a store call must be retried or a key
    /// looked up: it runs where it is awaited.
    ///
    /// # Errors
    /// [`V1Error::Unauthorized`], [`V1Error::RateLimited`], [`V1Error::Internal`]: the call was not counted.
    ///
    /// # Cancellation
    /// Dropping the future leaves the call charged or not charged. As in
    /// [`Delivery::transcript`](super::Delivery::transcript), a cached answer counts as delivered when it is
    /// requested.
    pub async fn charge(
        &self,
        caller: KnownCaller,
        video: &VideoId,
    ) -> Result<Option<CachedCharge>, V1Error> {
        let KnownCaller { key, digest, principal } = caller;
        let memo = Memo::Transcript(video.clone()).to_string();
        let mut known = Some(principal);
        for _ in 0..LOOKUPS_MAX {
            let principal = match known.take() {
                Some(principal) => principal,
                None => self.cached_principal(&key, digest).await?,
            };
            if has_prepaid(&principal.account, self.context.now()) {
                return Ok(None);
            }
            match self.charge_principal(&principal, &memo).await? {
                Some(charge) => return Ok(Some(charge)),
                None => self.principals.remove(&digest),
            };
        }
        Err(V1Error::Internal(
            "The account changed during every attempt. Nothing was charged; retry in a few seconds."
                .to_owned(),
        ))
    }

    /// Returns the cached principal of a key, or looks it up and caches it.
    async fn cached_principal(
        &self,
        key: &ApiKey,
        digest: [u8; 32],
    ) -> Result<Arc<AccountPrincipal>, V1Error> {
        if let Some(principal) = self.principals.get(&digest) {
            self.authenticator.count_use(&principal.key);
            return Ok(principal);
        }
        let principal = Arc::new(self.authenticator.authenticate(Some(key.reveal())).await?);
        self.principals.insert(digest, Arc::clone(&principal));
        Ok(principal)
    }

    /// Counts and charges a call; `None` if the account has changed.
    async fn charge_principal(
        &self,
        principal: &AccountPrincipal,
        memo: &str,
    ) -> Result<Option<CachedCharge>, V1Error> {
        let request = self.charge_request(principal, memo);
        let limit = AccountRateLimit::for_call(&request.limit_request)?;
        let transcripts = &self.context.transcripts;
        let timeout = transcripts.options().store_timeout / 2;
        let first_try = transcripts.with_timeout(timeout, self.charges.charge(request.clone()));
        let charged =
            retry_uncertain(first_try, |effect| self.charge_with_retries(request.clone(), effect)).await;
        let (outcome, is_certain) = charged.map_err(V1Error::from_store_error)?;
        match outcome {
            Ok(ChargeOutcome::Accepted { remaining, reset_ms, spent }) => {
                let paid = self.credits.credits_after(&request.spend, SpendResult::new(spent, is_certain));
                Ok(Some(CachedCharge { rate: limit.state(remaining, reset_ms), paid }))
            }
            Ok(ChargeOutcome::Limited { retry_after_ms }) if is_certain => {
                Err(limit.to_error(retry_after_ms))
            }
            Ok(ChargeOutcome::Stale) if is_certain => Ok(None),
            // It is unknown whether a try took effect: the answer is sent, as for a spend.
            outcome => {
                let outcome = match &outcome {
                    Err(error) => error.to_string(),
                    Ok(outcome) => format!("{outcome:?}"),
                };
                log_failure!(error, [hold = %request.spend.id, %outcome], "credit spend outcome unknown");
                Ok(Some(CachedCharge { rate: limit.state(0, 0), paid: Ok(None) }))
            }
        }
    }

    fn charge_request(&self, principal: &AccountPrincipal, memo: &str) -> ChargeRequest {
        let (account, options, now) = (&principal.account, &self.context.options, self.context.now());
        // Ids that grow with time are adjacent in a store's index. There is only ever one attempt at this work.
        let work_id = format!("{}-{:012x}", V1Endpoint::Transcript.as_str(), now.as_millis());
        let id = HoldId::new(self.context.random_id(&work_id) + "-once");
        let (effective_plan, cost) =
            (self.context.effective_plan(account, now), options.credits_per_transcript);
        let spend = self.credits.hold_request_at(now, account, &effective_plan, id, cost, memo);
        ChargeRequest {
            key_digest: principal.key_digest.clone(),
            account: account.id.clone(),
            version: account.version,
            limit_request: call_limit_request(account, &effective_plan),
            spend,
        }
    }

    /// Retries the charge until its outcome is known or the time of a request is over.
    async fn charge_with_retries(
        &self,
        request: ChargeRequest,
        effect: EffectFlag,
    ) -> StoreResult<ChargeOutcome> {
        let transcripts = &self.context.transcripts;
        let (policy, charges) = (transcripts.options().request_policy(), Arc::clone(&self.charges));
        let retry = move || {
            let (charges, request, effect) = (Arc::clone(&charges), request.clone(), effect.clone());
            async move { effect.watch(charges.charge(request)).await }
        };
        transcripts.task(async move { retry_store(policy, retry).await }).await?
    }
}
