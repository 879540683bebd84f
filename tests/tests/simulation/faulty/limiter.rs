//! A rate limiter behind the gate.

use std::sync::Arc;

use async_trait::async_trait;
use transcript_core::{
    Result, Timestamp,
    limits::{RateLimiter, Take, Taken},
};

use super::nothing;
use crate::simulation::gate::Gate;

#[derive(Debug)]
pub(crate) struct FaultyLimiter {
    pub(crate) inner: Arc<dyn RateLimiter>,
    pub(crate) gate: Arc<Gate>,
}

#[async_trait]
impl RateLimiter for FaultyLimiter {
    async fn take(&self, takes: Vec<Take>, now: Timestamp) -> Result<Taken> {
        let what = takes.iter().map(|take| take.bucket.as_str()).collect::<Vec<_>>().join(" ");
        let inner = Arc::clone(&self.inner);
        self.gate.pass("limiter.take", || what, async move { inner.take(takes, now).await }, nothing).await
    }
}
