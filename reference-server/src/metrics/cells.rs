//! What is counted with every answer: numbers that are added to, and nothing else. Nobody ever waits for another.

use std::{
    sync::{
        OnceLock,
        atomic::{AtomicU64, Ordering::Relaxed},
    },
    time::Duration,
};

use http::StatusCode;

/// The upper bounds of a histogram's buckets, in microseconds; what took longer is in one more.
pub(super) const BOUNDS: [u64; 15] = [
    50, 100, 250, 500, 1_000, 2_500, 5_000, 10_000, 25_000, 50_000, 100_000, 250_000, 1_000_000, 5_000_000,
    30_000_000,
];
/// The statuses that the server answers with; others are counted as one.
const STATUSES: [u16; 22] = [
    200, 304, 400, 401, 402, 404, 429, 500, 201, 202, 204, 303, 405, 406, 408, 409, 413, 415, 422, 431, 502,
    503,
];
/// How many routes are told apart, beside those that have a place of their own.
const ROUTES_MAX: usize = 64;

/// The answers of one route.
#[derive(Debug)]
pub(crate) struct Route {
    name: Box<str>,
    statuses: [AtomicU64; STATUSES.len() + 1],
    buckets: [AtomicU64; BOUNDS.len() + 1],
    micros: AtomicU64,
}

impl Route {
    pub(super) fn new(name: &str) -> Self {
        Self {
            name: name.into(),
            statuses: std::array::from_fn(|_| AtomicU64::new(0)),
            buckets: std::array::from_fn(|_| AtomicU64::new(0)),
            micros: AtomicU64::new(0),
        }
    }

    /// Counts an answer that began after so long.
    pub(super) fn count(&self, status: StatusCode, took: Duration) {
        let place = STATUSES.iter().position(|known| *known == status.as_u16()).unwrap_or(STATUSES.len());
        let micros = u64::try_from(took.as_micros()).unwrap_or(u64::MAX);
        let bucket = BOUNDS.iter().position(|bound| micros <= *bound).unwrap_or(BOUNDS.len());
        add(self.statuses.get(place), 1);
        add(self.buckets.get(bucket), 1);
        add(Some(&self.micros), micros);
    }

    pub(super) fn name(&self) -> &str {
        &self.name
    }

    /// How many answers there were of each status that was answered with.
    pub(super) fn statuses(&self) -> impl Iterator<Item = (String, u64)> {
        let name = |place: usize| {
            STATUSES.get(place).map_or_else(|| "other".to_owned(), |status: &u16| status.to_string())
        };
        let counts = self.statuses.iter().map(|count| count.load(Relaxed)).enumerate();
        counts.filter(|(_, count)| *count > 0).map(move |(place, count)| (name(place), count))
    }

    /// Seconds altogether, how many there were, and how many of them in each bucket, which has its bound in seconds.
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

/// Routes by the pattern that the router knows them by, found without a lock. There are as many as there is room for;
/// further ones are none of them.
#[derive(Debug)]
pub(super) struct Routes([OnceLock<Route>; ROUTES_MAX]);

impl Routes {
    pub(super) fn new() -> Self {
        Self(std::array::from_fn(|_| OnceLock::new()))
    }

    /// The route of a pattern. Its place is the first one that is its own or nobody's.
    pub(super) fn of(&self, pattern: &str) -> Option<&Route> {
        self.0.iter().map(|place| place.get_or_init(|| Route::new(pattern))).find(|one| *one.name == *pattern)
    }

    pub(super) fn iter(&self) -> impl Iterator<Item = &Route> {
        self.0.iter().map_while(OnceLock::get)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_answer_is_in_the_first_bucket_that_has_room() {
        let route = Route::new("/x");
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
    fn statuses_are_told_apart_within_bounds() {
        let route = Route::new("/x");
        for status in [200, 200, 404, 418, 599] {
            route.count(StatusCode::from_u16(status).unwrap(), Duration::ZERO);
        }
        let counts: Vec<_> = route.statuses().collect();
        assert_eq!(counts, [("200".to_owned(), 2), ("404".to_owned(), 1), ("other".to_owned(), 2)]);
    }

    #[test]
    fn routes_are_as_many_as_there_is_room_for() {
        let routes = Routes::new();
        for number in 0..ROUTES_MAX {
            let name = format!("/{number}");
            assert_eq!(routes.of(&name).unwrap().name(), name);
        }
        assert!(routes.of("/one-too-many").is_none());
        assert_eq!(routes.of("/7").unwrap().name(), "/7");
        assert_eq!(routes.iter().count(), ROUTES_MAX);
    }
}
