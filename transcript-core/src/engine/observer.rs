//! Observer of fetch stages, supplier health and ledger operations.

use std::{fmt, time::Duration};

use super::BreakerEvent;
use crate::{
    ledger::LedgerOperation,
    supplier::SupplyReason,
    video::{Platform, VideoId},
};

/// Progress of a fetch.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FetchStage {
    /// The video.
    pub video: VideoId,
    /// The name of the working supplier.
    pub supplier: String,
    /// The stage, as the supplier names it: `tracks`, `captions`, `audio`, `transcribing`, …
    pub name: String,
    /// The finished amount of the stage.
    pub done: u64,
    /// The total amount; 0 if unknown.
    pub total: u64,
}

/// Record of one supplier call, or of a call that was not made.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SupplierCall {
    /// The supplier's name.
    pub supplier: String,
    /// The video's platform.
    pub platform: Platform,
    /// Why there is no transcript; `None` on success.
    pub failure: Option<SupplyReason>,
    /// Whether the call reached an upstream.
    ///
    /// `false` if the breaker was open, no permit was free, or the supplier declined.
    pub attempted: bool,
    /// Duration of the call; 0 if the supplier was not called. Excludes the wait for a permit.
    pub elapsed: Duration,
}

/// Receives engine events on the tasks that do the work: an implementation must not block.
pub trait EngineObserver: fmt::Debug + Send + Sync + 'static {
    /// A supplier reported progress.
    fn on_stage(&self, stage: FetchStage);

    /// A circuit breaker opened or closed. The default implementation does nothing.
    fn on_breaker(&self, health: BreakerEvent) {
        let _ = health;
    }

    /// A supplier was called or skipped for a video. The default implementation does nothing.
    fn on_supplier_call(&self, call: SupplierCall) {
        let _ = call;
    }

    /// A ledger operation succeeded or failed.
    ///
    /// The engine never calls this: the code that wraps the ledger does. The default implementation does nothing.
    fn on_ledger_operation(&self, step: LedgerOperation) {
        let _ = step;
    }
}
