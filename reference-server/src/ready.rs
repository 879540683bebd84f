//! Whether the server wants requests.

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
use verbatim::{Ready, Verbatim};

use crate::{
    http::{Refusal, json},
    routes::health::health,
};

/// How long a store may take to answer.
const WITHIN: Duration = Duration::from_secs(2);
/// For how long an answer of the stores serves others: whoever asks more often asks nobody.
const REMEMBERED: Duration = Duration::from_millis(500);

/// Whether the server wants requests: its stores answer, and nobody has told it to stop.
#[derive(Debug)]
pub(crate) struct Readiness {
    verbatim: Verbatim,
    is_stopping: AtomicBool,
    /// Held by whoever asks the stores while others wait.
    last: Mutex<Option<(Instant, Ready)>>,
}

/// Whether the server wants requests, and why not.
#[derive(Clone, Debug)]
pub(crate) struct Readyz {
    /// Whether the store of keys, accounts and the ledger answers.
    pub(crate) main: Result<()>,
    /// Whether the archive answers.
    pub(crate) archive: Result<()>,
    /// Whether the server was told to stop.
    pub(crate) is_stopping: bool,
}

impl Readyz {
    /// Whether it does.
    pub(crate) fn is_ready(&self) -> bool {
        !self.is_stopping && self.main.is_ok() && self.archive.is_ok()
    }
}

/// What whoever asks is told. Details of a fault are in the log alone: anybody may ask.
#[derive(Debug, Serialize)]
struct Told {
    status: &'static str,
    main: &'static str,
    archive: &'static str,
    stopping: bool,
}

impl Readiness {
    /// Of these working parts.
    pub(crate) fn new(verbatim: Verbatim) -> Arc<Self> {
        Arc::new(Self { verbatim, is_stopping: AtomicBool::new(false), last: Mutex::default() })
    }

    /// From now on it is not ready.
    pub(crate) fn stop(&self) {
        self.is_stopping.store(true, Relaxed);
    }

    /// How it stands, at most half a second ago.
    pub(crate) async fn state(&self) -> Readyz {
        let mut last = self.last.lock().await;
        let is_stopping = self.is_stopping.load(Relaxed);
        let ready = match &*last {
            // Who stops closes the stores at some point, which is no fault of theirs.
            Some((asked, ready)) if is_stopping || asked.elapsed() < REMEMBERED => ready.clone(),
            None if is_stopping => Ready { main: Ok(()), archive: Ok(()) },
            _ => {
                let ready = self.verbatim.ready(WITHIN).await;
                for (store, answer) in [("main", &ready.main), ("archive", &ready.archive)] {
                    if let Err(error) = answer {
                        tracing::warn!(store, %error, "a store does not answer: the server is not ready");
                    }
                }
                *last = Some((Instant::now(), ready.clone()));
                ready
            }
        };
        Readyz { main: ready.main, archive: ready.archive, is_stopping }
    }
}

/// `GET /healthz` and `GET /readyz`
pub(crate) fn router(readiness: Arc<Readiness>) -> Router {
    Router::new()
        .route("/healthz", get(health).fallback(wrong_method))
        .route("/readyz", get(readyz).fallback(wrong_method))
        .with_state(readiness)
}

/// What is told to whoever does more than to read, here and where figures are.
pub(crate) async fn wrong_method() -> ([(HeaderName, &'static str); 1], Refusal) {
    let refusal = Refusal::new(StatusCode::METHOD_NOT_ALLOWED, "This address takes GET, HEAD only.");
    ([(ALLOW, "GET, HEAD")], refusal)
}

async fn readyz(State(readiness): State<Arc<Readiness>>) -> Response {
    let state = readiness.state().await;
    let word = |answer: &Result<()>| if answer.is_ok() { "ok" } else { "unavailable" };
    let (status, text) = match state.is_ready() {
        true => (StatusCode::OK, "ready"),
        false => (StatusCode::SERVICE_UNAVAILABLE, "not ready"),
    };
    let told = Told {
        status: text,
        main: word(&state.main),
        archive: word(&state.archive),
        stopping: state.is_stopping,
    };
    let mut response = json(status, &told);
    response.headers_mut().insert(CACHE_CONTROL, HeaderValue::from_static("no-store"));
    response
}
