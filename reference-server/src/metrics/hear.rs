//! What the engine and the ledger tell.

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
    engine::{Asked, Observer, Stage, SupplierHealth},
    ledger::{Step, StepKind, StepResult},
    video::Platform,
};

use super::Metrics;

/// A supplier.
type Supplier = [(&'static str, String); 1];
/// A supplier and a platform.
type Seat = [(&'static str, String); 2];
/// The same with what came of it, or why.
type Told = [(&'static str, String); 3];

/// What was heard so far. All names are of suppliers that are configured, and of the code.
#[derive(Debug)]
pub(super) struct Heard {
    fetches: Family<Told, Counter>,
    fetch_seconds: Family<Supplier, Histogram, fn() -> Histogram>,
    resting: Family<Seat, Gauge>,
    rests: Family<Told, Counter>,
    steps: [[AtomicU64; StepResult::ALL.len()]; StepKind::ALL.len()],
    amounts: [AtomicU64; StepKind::ALL.len()],
    /// Held where who rests changes, so that what is shown last is what was told last.
    health: Mutex<()>,
}

/// From 50 ms, in steps of two, to 27 minutes.
fn fetch_buckets() -> Histogram {
    Histogram::new(exponential_buckets(0.05, 2.0, 16))
}

impl Default for Heard {
    fn default() -> Self {
        let zero = |_: usize| AtomicU64::new(0);
        Self {
            fetches: Family::default(),
            fetch_seconds: Family::new_with_constructor(fetch_buckets),
            resting: Family::default(),
            rests: Family::default(),
            steps: std::array::from_fn(|_| std::array::from_fn(zero)),
            amounts: std::array::from_fn(zero),
            health: Mutex::default(),
        }
    }
}

fn seat(supplier: &str, platform: Platform) -> Seat {
    [("supplier", supplier.to_owned()), ("platform", platform.as_str().to_owned())]
}

fn told(supplier: &str, platform: Platform, (name, value): (&'static str, &str)) -> Told {
    let [supplier, platform] = seat(supplier, platform);
    [supplier, platform, (name, value.to_owned())]
}

impl Metrics {
    /// Shows a supplier of a platform as well from the start.
    pub(crate) fn expect(&self, supplier: &str, platform: Platform) {
        self.heard.resting.get_or_create(&seat(supplier, platform)).set(0);
    }
}

impl Observer for Metrics {
    fn stage(&self, _: Stage) {}

    fn health(&self, health: SupplierHealth) {
        let SupplierHealth { supplier, platform, rest } = health;
        let _order = self.heard.health.lock().unwrap_or_else(PoisonError::into_inner);
        self.heard.resting.get_or_create(&seat(&supplier, platform)).set(i64::from(rest.is_some()));
        if let Some(rest) = rest {
            let reason = ("reason", rest.reason.as_str());
            self.heard.rests.get_or_create(&told(&supplier, platform, reason)).inc();
        }
    }

    fn asked(&self, asked: Asked) {
        let Asked { supplier, platform, failure, was_asked, took } = asked;
        let outcome = match &failure {
            None => "transcript",
            Some(_) if !was_asked => "not_asked",
            Some(reason) => reason.as_str(),
        };
        self.heard.fetches.get_or_create(&told(&supplier, platform, ("outcome", outcome))).inc();
        if was_asked {
            self.heard.fetch_seconds.get_or_create(&[("supplier", supplier)]).observe(took.as_secs_f64());
        }
    }

    fn ledger(&self, step: Step) {
        let of = self.heard.steps.get(step.kind as usize);
        if let Some(cell) = of.and_then(|of| of.get(step.result as usize)) {
            cell.fetch_add(1, Relaxed);
        }
        if let Some(cell) = self.heard.amounts.get(step.kind as usize) {
            cell.fetch_add(step.amount, Relaxed);
        }
    }
}

impl Heard {
    /// Adds what was heard to what is shown.
    pub(super) fn show(&self, registry: &mut Registry) {
        registry.register(
            "verbatim_supplier_fetches",
            "Suppliers that were turned to for a video, by what came of it",
            self.fetches.clone(),
        );
        registry.register_with_unit(
            "verbatim_supplier_fetch",
            "How long suppliers that were asked worked on a video",
            Unit::Seconds,
            self.fetch_seconds.clone(),
        );
        let resting = "Whether a supplier rests, since it kept failing with a platform";
        registry.register("verbatim_supplier_resting", resting, self.resting.clone());
        registry.register(
            "verbatim_supplier_rests",
            "Rests that suppliers began, by reason",
            self.rests.clone(),
        );
    }

    /// The steps of the ledger, by kind and result.
    pub(super) fn steps(&self) -> impl Iterator<Item = (StepKind, StepResult, u64)> {
        StepKind::ALL.into_iter().zip(&self.steps).flat_map(|(kind, counts)| {
            StepResult::ALL
                .into_iter()
                .zip(counts)
                .map(move |(result, count)| (kind, result, count.load(Relaxed)))
        })
    }

    /// What each kind of step moved.
    pub(super) fn amounts(&self) -> impl Iterator<Item = (StepKind, u64)> {
        StepKind::ALL.into_iter().zip(&self.amounts).map(|(kind, amount)| (kind, amount.load(Relaxed)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_and_places_agree() {
        for (place, kind) in StepKind::ALL.into_iter().enumerate() {
            assert_eq!(kind as usize, place, "{}", kind.as_str());
        }
        for (place, result) in StepResult::ALL.into_iter().enumerate() {
            assert_eq!(result as usize, place, "{}", result.as_str());
        }
    }
}
