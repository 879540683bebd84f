//! A rate limiter behind the gate.

use std::sync::Arc;

use async_trait::async_trait;
use transcript_core::{
    Result, Timestamp,
    limits::{LimitOutcome, LimitRequest, RateLimiter},
};

use super::nothing;
use crate::simulation::store_gate::StoreGate;

#[derive(Debug)]
pub(crate) struct FaultyLimiter {
    pub(crate) inner: Arc<dyn RateLimiter>,
    pub(crate) gate: Arc<StoreGate>,
}

#[async_trait]
impl RateLimiter for FaultyLimiter {
    async fn acquire(&self, takes: Vec<LimitRequest>, now: Timestamp) -> Result<LimitOutcome> {
        let what = takes.iter().map(|take| take.bucket.as_str()).collect::<Vec<_>>().join(" ");
        let inner = Arc::clone(&self.inner);
        self.gate
            .pass("limiter.acquire", || what, async move { inner.acquire(takes, now).await }, nothing)
            .await
    }
}
