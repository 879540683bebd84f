//! Who hears how well suppliers are.

use std::sync::{Arc, Mutex, PoisonError};

use transcript_core::engine::{Observer, Stage, SupplierHealth};

use super::{gate::Gate, oracle::Oracle};

/// Takes note of what it hears.
#[derive(Debug)]
pub(crate) struct Listener {
    heard: Mutex<Vec<SupplierHealth>>,
    gate: Arc<Gate>,
    oracle: Arc<Oracle>,
}

impl Listener {
    pub(crate) fn new(gate: Arc<Gate>, oracle: Arc<Oracle>) -> Self {
        Self { heard: Mutex::default(), gate, oracle }
    }

    /// What it heard so far, in order.
    pub(crate) fn heard(&self) -> Vec<SupplierHealth> {
        self.heard.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }
}

impl Observer for Listener {
    fn stage(&self, _: Stage) {}

    fn health(&self, health: SupplierHealth) {
        self.gate.trace(|| format!("{health:?}"));
        self.oracle.reach(if health.rest.is_some() { "a supplier rests" } else { "a supplier recovers" });
        self.heard.lock().unwrap_or_else(PoisonError::into_inner).push(health);
    }
}
