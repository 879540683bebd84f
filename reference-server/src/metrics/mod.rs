//! Figures for operators, as Prometheus reads them.
//!
//! What is counted with every answer is counted in [`cells`], which are a few additions. What happens less often (a
//! fetch, a step of the ledger) is counted by the library's families, whose locks are held for a moment. What is read
//! (queues, caches, memory) is looked up when somebody asks ([`scrape`]). No label has a value from outside: routes are the
//! router's own patterns, suppliers those that are configured, reasons and steps names of the code.

mod cells;
mod hear;
mod process;
mod scrape;
mod serve;

use std::{
    sync::{
        Arc,
        atomic::{AtomicI64, AtomicU64, Ordering::Relaxed},
    },
    time::Duration,
};

use axum::{
    extract::{MatchedPath, Request},
    middleware::Next,
    response::Response,
};
use http::{HeaderMap, StatusCode};

use crate::{bodies, routes::v1};
use cells::{Route, Routes};
use hear::Heard;

pub(crate) use process::began;
pub(crate) use scrape::Sources;
pub(crate) use serve::{router, serve};

/// Where the answer of a look-up came from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum CameFrom {
    /// From the cache of ready bodies.
    Ready,
    /// It was put around what the archive stores.
    Stored,
    /// It was made of what is archived.
    Archive,
    /// It was fetched for this caller, or while they waited.
    Fetched,
    /// There is none.
    Nothing,
}

impl CameFrom {
    const ALL: [Self; 5] = [Self::Ready, Self::Stored, Self::Archive, Self::Fetched, Self::Nothing];

    fn as_str(self) -> &'static str {
        match self {
            Self::Ready => "ready",
            Self::Stored => "stored",
            Self::Archive => "archive",
            Self::Fetched => "fetched",
            Self::Nothing => "nothing",
        }
    }
}

/// The two interfaces by which transcripts are had.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Surface {
    /// `/api/transcript`
    Lookup,
    /// `/api/v1/transcript`
    V1,
}

impl Surface {
    const ALL: [Self; 2] = [Self::Lookup, Self::V1];

    fn as_str(self) -> &'static str {
        match self {
            Self::Lookup => "lookup",
            Self::V1 => "v1",
        }
    }
}

/// What is counted in one server.
#[derive(Debug)]
pub(crate) struct Metrics {
    lookup: Route,
    v1_transcript: Route,
    others: Routes,
    /// Addresses that no route has.
    nowhere: Route,
    answers: [[AtomicU64; CameFrom::ALL.len()]; Surface::ALL.len()],
    connections: AtomicI64,
    heard: Heard,
}

impl Default for Metrics {
    fn default() -> Self {
        Self {
            lookup: Route::new(bodies::PATH),
            v1_transcript: Route::new(v1::TRANSCRIPT),
            others: Routes::new(),
            nowhere: Route::new("none"),
            answers: std::array::from_fn(|_| std::array::from_fn(|_| AtomicU64::new(0))),
            connections: AtomicI64::new(0),
            heard: Heard::default(),
        }
    }
}

/// The two addresses that are asked for the most often, known before any router is asked.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Hot {
    /// Surface A's transcripts.
    Lookup,
    /// Surface B's transcripts.
    V1Transcript,
    /// Another one.
    Other,
}

impl Hot {
    /// Which one this path is.
    pub(crate) fn of(path: &str) -> Self {
        match path {
            bodies::PATH => Self::Lookup,
            v1::TRANSCRIPT => Self::V1Transcript,
            _ => Self::Other,
        }
    }
}

impl Metrics {
    /// Counts an answer that began after so long, and came from there where that is known before it is looked into.
    pub(crate) fn count<B>(
        &self,
        hot: Hot,
        from: Option<CameFrom>,
        response: &http::Response<B>,
        took: Duration,
    ) {
        let status = response.status();
        let extensions = response.extensions();
        let route = match hot {
            Hot::Lookup => {
                if let Some(from) = from.or_else(|| extensions.get().copied()) {
                    self.came_from(Surface::Lookup, from);
                }
                &self.lookup
            }
            Hot::V1Transcript => {
                if let Some(from) = charged_from(status, response.headers(), from) {
                    self.came_from(Surface::V1, from);
                }
                &self.v1_transcript
            }
            Hot::Other => {
                let pattern = extensions.get::<MatchedPath>();
                pattern.and_then(|pattern| self.others.of(pattern.as_str())).unwrap_or(&self.nowhere)
            }
        };
        route.count(status, took);
    }

    fn came_from(&self, surface: Surface, from: CameFrom) {
        if let Some(cell) = self.answers.get(surface as usize).and_then(|of| of.get(from as usize)) {
            cell.fetch_add(1, Relaxed);
        }
    }

    /// Counts a connection for as long as what is returned is kept.
    pub(crate) fn connection(self: &Arc<Self>) -> Connection {
        self.connections.fetch_add(1, Relaxed);
        Connection(Arc::clone(self))
    }
}

/// A connection that is open.
#[derive(Debug)]
pub(crate) struct Connection(Arc<Metrics>);

impl Drop for Connection {
    fn drop(&mut self) {
        self.0.connections.fetch_sub(1, Relaxed);
    }
}

/// Where a transcript for credits came from, as its answer says; none where it was refused before anybody looked.
fn charged_from(status: StatusCode, headers: &HeaderMap, known: Option<CameFrom>) -> Option<CameFrom> {
    match headers.get(v1::X_CACHE).map(|cache| cache.as_bytes()) {
        Some(b"HIT") => Some(known.unwrap_or(CameFrom::Archive)),
        Some(_) => Some(CameFrom::Fetched),
        None => (status == StatusCode::NOT_FOUND || status.is_server_error()).then_some(CameFrom::Nothing),
    }
}

/// Has the answer know the pattern of its route.
pub(crate) async fn matched(request: Request, next: Next) -> Response {
    let pattern = request.extensions().get::<MatchedPath>().cloned();
    let mut response = next.run(request).await;
    if let Some(pattern) = pattern {
        response.extensions_mut().insert(pattern);
    }
    response
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_and_places_agree() {
        for (place, from) in CameFrom::ALL.into_iter().enumerate() {
            assert_eq!(from as usize, place, "{}", from.as_str());
        }
        for (place, surface) in Surface::ALL.into_iter().enumerate() {
            assert_eq!(surface as usize, place, "{}", surface.as_str());
        }
        assert_eq!(
            [Hot::of("/api/transcript"), Hot::of("/api/v1/transcript")],
            [Hot::Lookup, Hot::V1Transcript]
        );
        assert_eq!(Hot::of("/api/transcript/"), Hot::Other);
    }

    #[test]
    fn a_refused_call_for_credits_looked_nowhere() {
        let none = HeaderMap::new();
        let cache = |value: &'static str| HeaderMap::from_iter([(v1::X_CACHE, value.parse().unwrap())]);
        let ready = Some(CameFrom::Ready);
        assert_eq!(charged_from(StatusCode::OK, &cache("HIT"), None), Some(CameFrom::Archive));
        assert_eq!(charged_from(StatusCode::OK, &cache("HIT"), ready), Some(CameFrom::Ready));
        assert_eq!(charged_from(StatusCode::OK, &cache("MISS"), None), Some(CameFrom::Fetched));
        for status in [StatusCode::NOT_FOUND, StatusCode::INTERNAL_SERVER_ERROR] {
            assert_eq!(charged_from(status, &none, None), Some(CameFrom::Nothing));
        }
        for status in [StatusCode::UNAUTHORIZED, StatusCode::PAYMENT_REQUIRED, StatusCode::TOO_MANY_REQUESTS]
        {
            assert_eq!(charged_from(status, &none, ready), None);
        }
    }
}
