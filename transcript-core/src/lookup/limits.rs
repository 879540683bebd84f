//! Rate limits of the lookup API: misses, tool calls, failed attempts and new keys.

use std::{net::IpAddr, sync::Arc, time::Duration};

use super::LookupOptions;
use crate::{
    directory::LookupKey,
    error::Result,
    ids::WalletId,
    ledger::terms::AllowancePeriod,
    limits::{
        self, DAY_MS, HOUR_MS, LimitOutcome, LimitRequest, MINUTE_MS, RateLimiter,
        network_hasher::NetworkHasher,
    },
    time::Timestamp,
};

/// Bytes of words of which a document counts as one tool call: about 30 ms of CPU time as PDF.
const DOCUMENT_PART_BYTES: usize = 64 * 1024;
/// Calls of free assistant tools per key or account and minute, unless a network has more.
const TOOL_CALLS_PER_OWNER: u32 = 600;

/// The rate limits of callers and their networks.
#[derive(Clone, Debug)]
pub(super) struct LookupLimits {
    limiter: Arc<dyn RateLimiter>,
    /// Digests networks, so that no address is stored.
    networks: NetworkHasher,
    options: Arc<LookupOptions>,
    store_timeout: Duration,
}

impl LookupLimits {
    pub(super) fn new(
        limiter: Arc<dyn RateLimiter>,
        networks: NetworkHasher,
        options: Arc<LookupOptions>,
        store_timeout: Duration,
    ) -> Self {
        Self { limiter, networks, options, store_timeout }
    }

    /// The same limits with other maximums.
    pub(super) fn with_options(&self, options: Arc<LookupOptions>) -> Self {
        Self { options, ..self.clone() }
    }

    /// Acquires rate limits: all of them, or none; see [`limits::acquire`].
    pub(super) async fn acquire(&self, requests: Vec<LimitRequest>, now: Timestamp) -> Result<LimitOutcome> {
        limits::acquire(self.limiter.as_ref(), requests, now, self.store_timeout).await
    }

    /// Acquires rate limits: all of them, or none; see [`limits::acquire_all`].
    pub(super) async fn check(&self, requests: Vec<LimitRequest>, now: Timestamp) -> Result<Option<u64>> {
        limits::acquire_all(self.limiter.as_ref(), requests, now, self.store_timeout).await
    }

    /// Time until a retry of a key with too many failed attempts within an hour, in milliseconds.
    ///
    /// Counts nothing: waiters of a running flight, and callers whose fetch succeeds, make no failed attempt.
    pub(super) async fn check_failed_attempts(&self, key: &LookupKey, now: Timestamp) -> Result<Option<u64>> {
        limits::wait_for_unit(self.limiter.as_ref(), self.attempt(key), now, self.store_timeout).await
    }

    /// The rate limit of failed attempts of a key.
    pub(super) fn attempt(&self, key: &LookupKey) -> LimitRequest {
        let max = self.options.attempts_per_key_per_hour;
        LimitRequest::one(format!("attempt/{}", key.key.id), max, HOUR_MS)
    }

    /// The rate limits of a miss of a network.
    pub(super) fn miss(&self, client: Option<IpAddr>, now: Timestamp) -> Vec<LimitRequest> {
        let limit = self.options.misses_per_network_per_minute;
        self.networks.limit_requests("miss", client, limit, MINUTE_MS, now)
    }

    /// The rate limits of a tool call: of a key's or account's owner name, or else of a network.
    pub(super) fn tool_call(
        &self,
        owner: Option<&str>,
        client: Option<IpAddr>,
        now: Timestamp,
    ) -> Vec<LimitRequest> {
        let limit = self.options.tool_calls_per_network_per_minute;
        match owner {
            Some(owner) => {
                let limit = limit.max(TOOL_CALLS_PER_OWNER);
                vec![LimitRequest::one(format!("tool/{owner}"), limit, MINUTE_MS)]
            }
            None => self.networks.limit_requests("tool", client, limit, MINUTE_MS, now),
        }
    }

    /// The rate limits of a document from words of this many bytes, made without a key: those of tool calls.
    pub(super) fn document(&self, bytes: usize, client: Option<IpAddr>, now: Timestamp) -> Vec<LimitRequest> {
        let calls = u32::try_from(bytes.div_ceil(DOCUMENT_PART_BYTES)).unwrap_or(u32::MAX).max(1);
        let mut requests = self.tool_call(None, client, now);
        for request in &mut requests {
            request.cost = calls.min(request.max);
        }
        requests
    }

    /// The rate limits of a search: of a key, or else of a network.
    pub(super) fn search(
        &self,
        key: Option<&str>,
        client: Option<IpAddr>,
        now: Timestamp,
    ) -> Vec<LimitRequest> {
        let limit = self.options.searches_per_minute;
        match key {
            Some(key) => vec![LimitRequest::one(format!("search/{key}"), limit, MINUTE_MS)],
            None => self.networks.limit_requests("search", client, limit, MINUTE_MS, now),
        }
    }

    /// The rate limit of a question of a visitor. It is another limit each day: its name contains the day.
    pub(super) fn question_of_visitor(&self, visitor: &str, now: Timestamp) -> LimitRequest {
        let bucket = format!("ask/{visitor}/{}", AllowancePeriod::Day.bucket(now));
        LimitRequest::one(bucket, self.options.questions_per_visitor_per_day, DAY_MS)
    }

    /// The rate limits of a question of a visitor for their network.
    pub(super) fn question_of_network(&self, client: Option<IpAddr>, now: Timestamp) -> Vec<LimitRequest> {
        let limit = self.options.questions_per_network_per_day;
        self.networks.limit_requests("ask", client, limit, DAY_MS, now)
    }

    /// The rate limit of a question that may use the chat model, for the whole service.
    pub(super) fn question_of_service(&self, now: Timestamp) -> LimitRequest {
        let bucket = format!("ask/{}", AllowancePeriod::Day.bucket(now));
        LimitRequest::one(bucket, self.options.questions_per_service_per_day, DAY_MS)
    }

    /// The rate limits of a new key for a network.
    pub(super) fn new_key(&self, client: Option<IpAddr>, now: Timestamp) -> Vec<LimitRequest> {
        let limit = self.options.mint_per_network_per_day;
        self.networks.limit_requests("mint", client, limit, DAY_MS, now)
    }

    /// The wallets of a network, with the daily limit of new transcripts of each.
    pub(super) fn network_wallets(&self, client: Option<IpAddr>, now: Timestamp) -> Vec<(WalletId, u64)> {
        let limit = self.options.visitor_per_network_per_day;
        let names = self.networks.digests(client, now).into_iter();
        names
            .map(|(name, times)| {
                (WalletId::new(format!("network-{name}")), limit.saturating_mul(times.into()))
            })
            .collect()
    }
}
