//! Metrics of the engine and the ledger.

use std::sync::{
    Mutex, PoisonError,
    atomic::{AtomicU64, Ordering::Relaxed},
};

use prometheus_client::{
    metrics::{
        counter::Counter,
        family::Family,
        gauge::Gauge,
        histogram::{Histogram, exponential_buckets},
    },
    registry::{Registry, Unit},
};
use transcript_core::{
    engine::{BreakerEvent, EngineObserver, FetchStage, SupplierCall},
    ledger::{LedgerOperation, LedgerOperationKind, LedgerOperationResult},
    video::Platform,
};

use super::Metrics;

type SupplierLabels = [(&'static str, String); 1];
/// Labels of a supplier and a platform.
type PlatformLabels = [(&'static str, String); 2];
/// Labels of a supplier, a platform, and an outcome or reason.
type OutcomeLabels = [(&'static str, String); 3];

/// Metrics from engine events. All label values are names of configured suppliers or names in the code.
#[derive(Debug, smart_default::SmartDefault)]
pub(super) struct MetricsObserver {
    fetches: Family<OutcomeLabels, Counter>,
    #[default(Family::new_with_constructor(fetch_buckets))]
    fetch_seconds: Family<SupplierLabels, Histogram, fn() -> Histogram>,
    breaker_open: Family<PlatformLabels, Gauge>,
    breaker_opened: Family<OutcomeLabels, Counter>,
    #[default(std::array::from_fn(|_| std::array::from_fn(|_| AtomicU64::new(0))))]
    operations: [[AtomicU64; LedgerOperationResult::ALL.len()]; LedgerOperationKind::ALL.len()],
    #[default(std::array::from_fn(|_| AtomicU64::new(0)))]
    amounts: [AtomicU64; LedgerOperationKind::ALL.len()],
    /// Held while the breaker gauge changes, so that it shows the last event.
    breaker_order: Mutex<()>,
}

/// 16 buckets from 50 ms to 27 minutes, each twice the one before.
fn fetch_buckets() -> Histogram {
    Histogram::new(exponential_buckets(0.05, 2.0, 16))
}

fn platform_labels(supplier: &str, platform: Platform) -> PlatformLabels {
    [("supplier", supplier.to_owned()), ("platform", platform.as_str().to_owned())]
}

fn outcome_labels(supplier: &str, platform: Platform, (name, value): (&'static str, &str)) -> OutcomeLabels {
    let [supplier, platform] = platform_labels(supplier, platform);
    [supplier, platform, (name, value.to_owned())]
}

impl Metrics {
    /// Registers a supplier of a platform with a closed breaker, so that the gauge exists from the start.
    pub(crate) fn expect(&self, supplier: &str, platform: Platform) {
        self.observer.breaker_open.get_or_create(&platform_labels(supplier, platform)).set(0);
    }
}

impl EngineObserver for Metrics {
    fn on_stage(&self, _: FetchStage) {}

    fn on_breaker(&self, event: BreakerEvent) {
        let BreakerEvent { supplier, platform, cooldown } = event;
        let _order = self.observer.breaker_order.lock().unwrap_or_else(PoisonError::into_inner);
        self.observer
            .breaker_open
            .get_or_create(&platform_labels(&supplier, platform))
            .set(i64::from(cooldown.is_some()));
        if let Some(cooldown) = cooldown {
            let reason = ("reason", cooldown.reason.as_str());
            self.observer.breaker_opened.get_or_create(&outcome_labels(&supplier, platform, reason)).inc();
        }
    }

    fn on_supplier_call(&self, call: SupplierCall) {
        let SupplierCall { supplier, platform, failure, attempted, elapsed } = call;
        let outcome = match &failure {
            None => "transcript",
            Some(_) if !attempted => "not_asked",
            Some(reason) => reason.as_str(),
        };
        self.observer.fetches.get_or_create(&outcome_labels(&supplier, platform, ("outcome", outcome))).inc();
        if attempted {
            self.observer
                .fetch_seconds
                .get_or_create(&[("supplier", supplier)])
                .observe(elapsed.as_secs_f64());
        }
    }

    fn on_ledger_operation(&self, operation: LedgerOperation) {
        let of = self.observer.operations.get(operation.kind as usize);
        if let Some(cell) = of.and_then(|of| of.get(operation.result as usize)) {
            cell.fetch_add(1, Relaxed);
        }
        if let Some(cell) = self.observer.amounts.get(operation.kind as usize) {
            cell.fetch_add(operation.amount, Relaxed);
        }
    }
}

impl MetricsObserver {
    /// Registers the metric families.
    pub(super) fn show(&self, registry: &mut Registry) {
        registry.register("verbatim_supplier_fetches", "Supplier calls, by outcome", self.fetches.clone());
        registry.register_with_unit(
            "verbatim_supplier_fetch",
            "Duration of supplier calls",
            Unit::Seconds,
            self.fetch_seconds.clone(),
        );
        let breaker_open = "Whether a supplier's circuit breaker is open for a platform";
        registry.register("verbatim_supplier_breaker_open", breaker_open, self.breaker_open.clone());
        registry.register(
            "verbatim_supplier_breaker_opened",
            "Times that a supplier's circuit breaker opened, by reason",
            self.breaker_opened.clone(),
        );
    }

    /// Number of ledger operations, by kind and result.
    pub(super) fn operations(
        &self,
    ) -> impl Iterator<Item = (LedgerOperationKind, LedgerOperationResult, u64)> {
        LedgerOperationKind::ALL.into_iter().zip(&self.operations).flat_map(|(kind, counts)| {
            LedgerOperationResult::ALL
                .into_iter()
                .zip(counts)
                .map(move |(result, count)| (kind, result, count.load(Relaxed)))
        })
    }

    /// Amount moved by each kind of operation.
    pub(super) fn amounts(&self) -> impl Iterator<Item = (LedgerOperationKind, u64)> {
        LedgerOperationKind::ALL
            .into_iter()
            .zip(&self.amounts)
            .map(|(kind, amount)| (kind, amount.load(Relaxed)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ledger_operation_indices_match_all() {
        for (index, kind) in LedgerOperationKind::ALL.into_iter().enumerate() {
            assert_eq!(kind as usize, index, "{}", kind.as_str());
        }
        for (index, result) in LedgerOperationResult::ALL.into_iter().enumerate() {
            assert_eq!(result as usize, index, "{}", result.as_str());
        }
    }
}
