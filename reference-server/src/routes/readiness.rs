//! Readiness of the server for requests.

use std::{
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering::Relaxed},
    },
    time::{Duration, Instant},
};

use axum::{Router, extract::State, response::Response, routing::get};
use http::{
    HeaderName, HeaderValue, StatusCode,
    header::{ALLOW, CACHE_CONTROL},
};
use serde::Serialize;
use tokio::sync::Mutex;
use transcript_core::Result;
use verbatim::{StoreHealth, Verbatim};

use super::health::health;
use crate::api::{ProblemResponse, json};

/// Timeout of a store.
const TIMEOUT: Duration = Duration::from_secs(2);
/// How long a result is reused, so that frequent probes do not reach the stores.
const CACHE_TTL: Duration = Duration::from_millis(500);

/// Readiness probe: the stores respond and the server is not stopping.
#[derive(Debug)]
pub(crate) struct Readiness {
    verbatim: Verbatim,
    is_stopping: AtomicBool,
    /// The last result; locked while the stores are checked.
    last: Mutex<Option<(Instant, StoreHealth)>>,
}

/// Result of a readiness check.
#[derive(Clone, Debug)]
pub(crate) struct ReadinessState {
    /// Whether the store of keys, accounts and the ledger responds.
    pub(crate) main: Result<()>,
    /// Whether the archive responds.
    pub(crate) archive: Result<()>,
    /// Whether the server is stopping.
    pub(crate) is_stopping: bool,
}

impl ReadinessState {
    /// Whether the server is ready.
    pub(crate) fn is_ready(&self) -> bool {
        !self.is_stopping && self.main.is_ok() && self.archive.is_ok()
    }
}

/// Response body. The probe is public, so details of an error are only logged.
#[derive(Debug, Serialize)]
struct ReadinessBody {
    status: &'static str,
    main: &'static str,
    archive: &'static str,
    stopping: bool,
}

impl Readiness {
    /// Creates the probe over these stores.
    pub(crate) fn new(verbatim: Verbatim) -> Arc<Self> {
        Arc::new(Self { verbatim, is_stopping: AtomicBool::new(false), last: Mutex::default() })
    }

    /// Marks the server as stopping.
    pub(crate) fn stop(&self) {
        self.is_stopping.store(true, Relaxed);
    }

    /// Returns the readiness of at most half a second ago.
    pub(crate) async fn state(&self) -> ReadinessState {
        let mut last = self.last.lock().await;
        let is_stopping = self.is_stopping.load(Relaxed);
        let ready = match &*last {
            // Stopping closes the stores, which is not an error.
            Some((checked_at, ready)) if is_stopping || checked_at.elapsed() < CACHE_TTL => ready.clone(),
            None if is_stopping => StoreHealth { main: Ok(()), archive: Ok(()) },
            _ => {
                let ready = self.verbatim.ready(TIMEOUT).await;
                for (store, result) in [("main", &ready.main), ("archive", &ready.archive)] {
                    if let Err(error) = result {
                        tracing::warn!(store, %error, "readiness check failed");
                    }
                }
                *last = Some((Instant::now(), ready.clone()));
                ready
            }
        };
        ReadinessState { main: ready.main, archive: ready.archive, is_stopping }
    }
}

/// `GET /healthz` and `GET /readyz`
pub(crate) fn router(readiness: Arc<Readiness>) -> Router {
    Router::new()
        .route("/healthz", get(health).fallback(method_not_allowed))
        .route("/readyz", get(readyz).fallback(method_not_allowed))
        .with_state(readiness)
}

/// The response to other methods than GET and HEAD, here and at the metrics.
pub(crate) async fn method_not_allowed() -> ([(HeaderName, &'static str); 1], ProblemResponse) {
    let problem = ProblemResponse::new(StatusCode::METHOD_NOT_ALLOWED, "This address takes GET, HEAD only.");
    ([(ALLOW, "GET, HEAD")], problem)
}

async fn readyz(State(readiness): State<Arc<Readiness>>) -> Response {
    let state = readiness.state().await;
    let word = |result: &Result<()>| if result.is_ok() { "ok" } else { "unavailable" };
    let (status, text) = match state.is_ready() {
        true => (StatusCode::OK, "ready"),
        false => (StatusCode::SERVICE_UNAVAILABLE, "not ready"),
    };
    let body = ReadinessBody {
        status: text,
        main: word(&state.main),
        archive: word(&state.archive),
        stopping: state.is_stopping,
    };
    let mut response = json(status, &body);
    response.headers_mut().insert(CACHE_CONTROL, HeaderValue::from_static("no-store"));
    response
}
