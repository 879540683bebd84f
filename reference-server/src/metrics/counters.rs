//! Counters updated on every response: atomic additions without locks.

use std::{
    sync::{
        OnceLock,
        atomic::{AtomicU64, Ordering::Relaxed},
    },
    time::Duration,
};

use http::StatusCode;

use crate::routes::ENDPOINTS;

/// Upper bounds of the histogram buckets, in microseconds; one more bucket counts slower responses.
pub(super) const BOUNDS: [u64; 15] = [
    50, 100, 250, 500, 1_000, 2_500, 5_000, 10_000, 25_000, 50_000, 100_000, 250_000, 1_000_000, 5_000_000,
    30_000_000,
];
/// HTTP statuses that are counted separately; all others share one counter.
const STATUSES: [u16; 24] = [
    200, 304, 400, 401, 402, 404, 429, 500, 201, 202, 204, 303, 403, 405, 406, 408, 409, 413, 415, 421, 422,
    431, 502, 503,
];
/// Limit of the routes in a [`RouteTable`]: all endpoints, and those of `routes::readiness`.
const ROUTES_MAX: usize = ENDPOINTS.len() + 2;

#[derive(Debug)]
pub(crate) struct RouteCounters {
    name: Box<str>,
    statuses: [AtomicU64; STATUSES.len() + 1],
    buckets: [AtomicU64; BOUNDS.len() + 1],
    micros: AtomicU64,
}

impl RouteCounters {
    pub(super) fn new(name: &str) -> Self {
        Self {
            name: name.into(),
            statuses: std::array::from_fn(|_| AtomicU64::new(0)),
            buckets: std::array::from_fn(|_| AtomicU64::new(0)),
            micros: AtomicU64::new(0),
        }
    }

    /// Counts a response and the time until it began.
    pub(super) fn count(&self, status: StatusCode, took: Duration) {
        let index = STATUSES.iter().position(|known| *known == status.as_u16()).unwrap_or(STATUSES.len());
        let micros = u64::try_from(took.as_micros()).unwrap_or(u64::MAX);
        let bucket = BOUNDS.iter().position(|bound| micros <= *bound).unwrap_or(BOUNDS.len());
        add(self.statuses.get(index), 1);
        add(self.buckets.get(bucket), 1);
        add(Some(&self.micros), micros);
    }

    pub(super) fn name(&self) -> &str {
        &self.name
    }

    /// Number of responses per status; statuses without responses are left out.
    pub(super) fn statuses(&self) -> impl Iterator<Item = (String, u64)> {
        let name = |index: usize| {
            STATUSES.get(index).map_or_else(|| "other".to_owned(), |status: &u16| status.to_string())
        };
        let counts = self.statuses.iter().map(|count| count.load(Relaxed)).enumerate();
        counts.filter(|(_, count)| *count > 0).map(move |(index, count)| (name(index), count))
    }

    /// Sum in seconds, count, and the count of each bucket with its upper bound in seconds.
    pub(super) fn seconds(&self) -> (f64, u64, Vec<(f64, u64)>) {
        let bounds = BOUNDS.iter().map(|bound| *bound as f64 / 1e6).chain([f64::INFINITY]);
        let counts = self.buckets.iter().map(|count| count.load(Relaxed));
        let buckets: Vec<(f64, u64)> = bounds.zip(counts).collect();
        let count = buckets.iter().map(|(_, count)| count).sum();
        (self.micros.load(Relaxed) as f64 / 1e6, count, buckets)
    }
}

fn add(to: Option<&AtomicU64>, amount: u64) {
    if let Some(cell) = to {
        cell.fetch_add(amount, Relaxed);
    }
}

/// Lock-free table of routes by router pattern, up to [`ROUTES_MAX`].
#[derive(Debug)]
pub(super) struct RouteTable([OnceLock<RouteCounters>; ROUTES_MAX]);

impl RouteTable {
    pub(super) fn new() -> Self {
        Self(std::array::from_fn(|_| OnceLock::new()))
    }

    /// Returns the route of a pattern, which takes the first free slot if it is new.
    /// `None` if the table is full.
    pub(super) fn get(&self, pattern: &str) -> Option<&RouteCounters> {
        self.0
            .iter()
            .map(|slot| slot.get_or_init(|| RouteCounters::new(pattern)))
            .find(|one| *one.name == *pattern)
    }

    pub(super) fn iter(&self) -> impl Iterator<Item = &RouteCounters> {
        self.0.iter().map_while(OnceLock::get)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn histogram_counts_in_first_bucket_with_sufficient_bound() {
        let route = RouteCounters::new("/x");
        for (micros, bucket) in
            [(0, 0), (50, 0), (51, 1), (1_000, 4), (1_001, 5), (30_000_000, 14), (30_000_001, 15)]
        {
            let before = route.seconds().2[bucket].1;
            route.count(StatusCode::OK, Duration::from_micros(micros));
            assert_eq!(route.seconds().2[bucket].1, before + 1, "{micros}");
        }
        let (sum, count, buckets) = route.seconds();
        assert_eq!((count, buckets.len()), (7, 16));
        assert!((sum - 60.002_103).abs() < 1e-9, "{sum}");
    }

    #[test]
    fn statuses_outside_list_are_counted_as_other() {
        let route = RouteCounters::new("/x");
        for status in [200, 200, 404, 418, 599] {
            route.count(StatusCode::from_u16(status).unwrap(), Duration::ZERO);
        }
        let counts: Vec<_> = route.statuses().collect();
        assert_eq!(counts, [("200".to_owned(), 2), ("404".to_owned(), 1), ("other".to_owned(), 2)]);
    }

    #[test]
    fn statuses_of_documents_are_counted() {
        for document in
            [include_str!("../../../docs/openapi.json"), include_str!("../../../docs/admin-openapi.json")]
        {
            let document: serde_json::Value = serde_json::from_str(document).unwrap();
            let paths = document["paths"].as_object().unwrap();
            let operations =
                paths.values().filter_map(|path| path.as_object()).flat_map(|path| path.values());
            let statuses: Vec<u16> = operations
                .filter_map(|operation| operation["responses"].as_object())
                .flat_map(|responses| responses.keys().filter_map(|status| status.parse().ok()))
                .collect();
            assert!(statuses.len() > 20, "{statuses:?}");
            for status in statuses {
                assert!(STATUSES.contains(&status), "{status}");
            }
        }
    }

    #[test]
    fn route_table_full_rejects_new_routes() {
        let routes = RouteTable::new();
        for number in 0..ROUTES_MAX {
            let name = format!("/{number}");
            assert_eq!(routes.get(&name).unwrap().name(), name);
        }
        assert!(routes.get("/one-too-many").is_none());
        assert_eq!(routes.get("/7").unwrap().name(), "/7");
        assert_eq!(routes.iter().count(), ROUTES_MAX);
    }
}
