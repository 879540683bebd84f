//! The rate limit of an account: requests per 60 seconds, over all authenticated endpoints.
//!
//! A request whose response depends only on its idempotency key (a replay, a key still in use, another body)
//! counts for a separate, higher limit. So a client that lost a response gets it even after it has reached the
//! first limit, and the number of repeats is still bounded.

use std::{sync::Arc, time::Duration};

use super::{EffectivePlan, V1Error, call_context::CallContext};
use crate::{
    directory::Account,
    ids::AccountId,
    limits::{self, HOUR_MS, LimitOutcome, LimitRequest, MINUTE_MS, RateLimiter},
    time::{Timestamp, ceil_seconds, format_wait},
};

/// The window of the rate limit, in milliseconds (specification 8: requests per minute).
const WINDOW_MS: u64 = MINUTE_MS;
/// Repeats per request of the limit.
/// On the free plan one per second, for a client that waits for a request that is still running.
const REPEATS_PER_REQUEST: u32 = 6;

/// The limit of new requests, and of all calls without an idempotency key.
const REQUESTS: RateKind = RateKind { name: "account", bucket: "api", per_request: 1, unit: "requests" };
/// The limit of requests whose response depends only on the idempotency key.
const REPEATS: RateKind = RateKind {
    name: "repeats",
    bucket: "repeat",
    per_request: REPEATS_PER_REQUEST,
    unit: "repeated requests",
};

/// One of an account's rate limits.
#[derive(Clone, Copy, Debug)]
struct RateKind {
    name: &'static str,
    bucket: &'static str,
    per_request: u32,
    unit: &'static str,
}

/// State of a rate limit, as in the `RateLimit` and `RateLimit-Policy` fields.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RateLimitStatus {
    /// The limit's name: `account`, or `repeats` for repeated requests.
    pub name: &'static str,
    /// Requests in any window.
    pub limit: u32,
    /// The window's length in seconds.
    pub window_s: u64,
    /// How many more requests are admitted now.
    pub remaining: u32,
    /// Seconds until more requests are admitted: the whole limit if some are left, else one.
    pub reset_s: u64,
}

/// Counts calls against the limits of accounts, networks and addresses. Uses the rate limiter.
#[derive(Debug)]
pub(super) struct AccountLimits {
    pub(super) context: Arc<CallContext>,
    pub(super) limiter: Arc<dyn RateLimiter>,
}

impl AccountLimits {
    /// Counts against all limits, or none; see [`limits::acquire_all`].
    pub(super) async fn acquire(
        &self,
        requests: Vec<LimitRequest>,
        now: Timestamp,
    ) -> Result<Option<u64>, V1Error> {
        let timeout = self.context.transcripts.options().store_timeout;
        let acquired = limits::acquire_all(self.limiter.as_ref(), requests, now, timeout).await;
        acquired.map_err(V1Error::from_store_error)
    }

    /// Counts one request of an account.
    pub(super) async fn count_request(
        &self,
        account: &Account,
        now: Timestamp,
    ) -> Result<RateLimitStatus, V1Error> {
        self.count(REQUESTS, account, now).await
    }

    /// Counts one request whose response depends only on its idempotency key.
    pub(super) async fn count_repeat(
        &self,
        account: &Account,
        now: Timestamp,
    ) -> Result<RateLimitStatus, V1Error> {
        self.count(REPEATS, account, now).await
    }

    /// Checks the limit of failed attempts of an account. Counts nothing.
    pub(super) async fn check_attempts(&self, account: &AccountId, now: Timestamp) -> Result<(), V1Error> {
        let timeout = self.context.transcripts.options().store_timeout;
        let wait = limits::wait_for_unit(self.limiter.as_ref(), self.attempt(account), now, timeout);
        match wait.await.map_err(V1Error::from_store_error)? {
            None => Ok(()),
            Some(retry_after_ms) => {
                const REASON: &str =
                    "Too many new transcripts or questions of this account failed or were not waited for";
                Err(V1Error::rate_limited(REASON, retry_after_ms))
            }
        }
    }

    /// Counts a failed or abandoned fetch of an account, or a question that the chat model refused or answered
    /// unreadably. It has ended, so an error has no effect.
    pub(super) async fn count_attempt(&self, account: &AccountId, now: Timestamp) {
        let _ = self.acquire(vec![self.attempt(account)], now).await;
    }

    fn attempt(&self, account: &AccountId) -> LimitRequest {
        let max = self.context.options.attempts_per_account_per_hour;
        LimitRequest::one(format!("fetch/{account}"), max, HOUR_MS)
    }

    /// Checks the limits before an idempotency key is looked up.
    /// If the account has no request left, the request counts as a repeat, so that a new key per request
    /// does not bypass the limit. Returns whether it was counted.
    pub(super) async fn count_keyed(&self, account: &Account, now: Timestamp) -> Result<bool, V1Error> {
        let probe = LimitRequest { cost: 0, ..self.limit_request(REQUESTS, account, now) };
        if probe.max > 0
            && let LimitOutcome::Allowed { remaining: 1.., .. } =
                self.context.call_store(self.limiter.acquire(vec![probe], now)).await?
        {
            return Ok(false);
        }
        let Err(as_repeat) = self.count_repeat(account, now).await else { return Ok(true) };
        // It is unknown which of the two it is, so it waits until both are possible.
        let as_request = self.count_request(account, now).await.err();
        Err(as_request
            .filter(|request| request.retry_after_s() > as_repeat.retry_after_s())
            .unwrap_or(as_repeat))
    }

    fn limit_request(&self, kind: RateKind, account: &Account, now: Timestamp) -> LimitRequest {
        build_limit_request(kind, account, &self.context.effective_plan(account, now))
    }

    async fn count(
        &self,
        kind: RateKind,
        account: &Account,
        now: Timestamp,
    ) -> Result<RateLimitStatus, V1Error> {
        let request = self.limit_request(kind, account, now);
        let limit = AccountRateLimit { kind, max: request.max }.check_open()?;
        match self.context.call_store(self.limiter.acquire(vec![request], now)).await? {
            LimitOutcome::Allowed { remaining, reset_ms } => Ok(limit.state(remaining, reset_ms)),
            LimitOutcome::Limited { retry_after_ms, .. } => Err(limit.to_error(retry_after_ms)),
        }
    }
}

pub(super) fn call_limit_request(account: &Account, effective_plan: &EffectivePlan) -> LimitRequest {
    build_limit_request(REQUESTS, account, effective_plan)
}

fn build_limit_request(kind: RateKind, account: &Account, effective_plan: &EffectivePlan) -> LimitRequest {
    let max = effective_plan.requests_per_minute.saturating_mul(kind.per_request);
    LimitRequest::one(format!("{}/{}", kind.bucket, account.id), max, WINDOW_MS)
}

/// One of an account's limits, with its size.
#[derive(Clone, Copy, Debug)]
pub(super) struct AccountRateLimit {
    kind: RateKind,
    max: u32,
}

impl AccountRateLimit {
    /// The rate limit of a call with this limit request.
    ///
    /// # Errors
    /// [`V1Error::RateLimited`] if the limit is 0.
    pub(super) fn for_call(request: &LimitRequest) -> Result<Self, V1Error> {
        Self { kind: REQUESTS, max: request.max }.check_open()
    }

    /// Returns the limit, or the error if it is 0.
    fn check_open(self) -> Result<Self, V1Error> {
        if self.max == 0 { Err(self.to_error(WINDOW_MS)) } else { Ok(self) }
    }

    pub(super) fn state(self, remaining: u32, reset_ms: u64) -> RateLimitStatus {
        RateLimitStatus {
            name: self.kind.name,
            limit: self.max,
            window_s: WINDOW_MS / 1_000,
            remaining,
            reset_s: ceil_seconds(Duration::from_millis(reset_ms)),
        }
    }

    /// The error of a call that exceeds the limit.
    pub(super) fn to_error(self, retry_after_ms: u64) -> V1Error {
        rate_limited(self.kind, self.state(0, retry_after_ms))
    }
}

fn rate_limited(kind: RateKind, rate: RateLimitStatus) -> V1Error {
    let message = format!(
        "Too many {}: this account may make {} in any {} seconds. Please try again in {}.",
        kind.unit,
        rate.limit,
        rate.window_s,
        format_wait(Duration::from_secs(rate.reset_s))
    );
    V1Error::RateLimited { message, retry_after_s: rate.reset_s, rate: Some(rate) }
}
