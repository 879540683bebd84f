//! Observer of supplier health.

use std::sync::{Arc, Mutex, PoisonError};

use transcript_core::engine::{BreakerEvent, EngineObserver, FetchStage};

use super::{oracle::Oracle, store_gate::StoreGate};

/// Records breaker events.
#[derive(Debug)]
pub(crate) struct Listener {
    events: Mutex<Vec<BreakerEvent>>,
    gate: Arc<StoreGate>,
    oracle: Arc<Oracle>,
}

impl Listener {
    pub(crate) fn new(gate: Arc<StoreGate>, oracle: Arc<Oracle>) -> Self {
        Self { events: Mutex::default(), gate, oracle }
    }

    /// The recorded events, in order.
    pub(crate) fn events(&self) -> Vec<BreakerEvent> {
        self.events.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }
}

impl EngineObserver for Listener {
    fn on_stage(&self, _: FetchStage) {}

    fn on_breaker(&self, health: BreakerEvent) {
        self.gate.trace(|| format!("{health:?}"));
        self.oracle.reach(if health.cooldown.is_some() { "breaker opened" } else { "breaker closed" });
        self.events.lock().unwrap_or_else(PoisonError::into_inner).push(health);
    }
}
