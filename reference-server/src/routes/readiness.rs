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
use transcript_core::{FailureLog, Result, Retry};
use verbatim::Verbatim;

use super::health::health;
use crate::api::{ProblemResponse, json};

/// Timeout of a store.
const TIMEOUT: Duration = Duration::from_secs(2);
/// How long the result of reads is reused, so that frequent probes do not reach the stores.
const READ_TTL: Duration = Duration::from_millis(500);
/// How long the result of writes is reused: each waits for the disk.
const WRITE_TTL: Duration = Duration::from_secs(5);

/// Readiness probe: the stores can be read and written, and the server is not stopping.
#[derive(Debug)]
pub(crate) struct Readiness {
    verbatim: Verbatim,
    is_stopping: AtomicBool,
    /// The last results; locked while the stores are checked.
    checks: Mutex<StoreChecks>,
}

/// Result of the checks of one store.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum StoreState {
    /// Reads and writes succeed.
    #[default]
    Ok,
    /// Reads succeed, and writes fail.
    ReadOnly,
    /// Reads fail.
    Unavailable,
}

impl StoreState {
    /// Whether the store can be read.
    pub(crate) fn is_readable(self) -> bool {
        self != Self::Unavailable
    }

    /// Whether the store can be written.
    pub(crate) fn is_writable(self) -> bool {
        self == Self::Ok
    }

    fn as_str(self) -> &'static str {
        match self {
            Self::Ok => "ok",
            Self::ReadOnly => "read-only",
            Self::Unavailable => "unavailable",
        }
    }
}

/// Result of a readiness check.
#[derive(Clone, Copy, Debug)]
pub(crate) struct ReadinessState {
    /// The store of keys, accounts and the ledger.
    pub(crate) main: StoreState,
    pub(crate) archive: StoreState,
    /// Whether the server is stopping.
    pub(crate) is_stopping: bool,
}

impl ReadinessState {
    /// Whether the server is ready.
    pub(crate) fn is_ready(&self) -> bool {
        !self.is_stopping && self.main.is_writable() && self.archive.is_writable()
    }
}

/// The last checks of both stores.
#[derive(Debug, Default)]
struct StoreChecks {
    read_at: Option<Instant>,
    written_at: Option<Instant>,
    main: StoreCheck,
    archive: StoreCheck,
}

/// The last checks of one store.
#[derive(Debug, Default)]
struct StoreCheck {
    reads_fail: bool,
    writes_fail: bool,
    /// Whether the last write failed in a way that may pass.
    is_late: bool,
    failures: FailureLog,
}

impl StoreChecks {
    /// Runs the checks whose results are too old.
    async fn refresh(&mut self, verbatim: &Verbatim) {
        let is_due = |at: Option<Instant>, ttl| at.is_none_or(|at| at.elapsed() >= ttl);
        let (reads_due, writes_due) = (is_due(self.read_at, READ_TTL), is_due(self.written_at, WRITE_TTL));
        if !reads_due && !writes_due {
            return;
        }
        let reads = async { if reads_due { Some(verbatim.ready(TIMEOUT).await) } else { None } };
        let writes = async { if writes_due { Some(verbatim.check_writes(TIMEOUT).await) } else { None } };
        let (reads, writes) = tokio::join!(reads, writes);
        if let Some(reads) = reads {
            self.read_at = Some(Instant::now());
            self.main.record_read("main", &reads.main);
            self.archive.record_read("archive", &reads.archive);
        }
        if let Some(writes) = writes {
            self.written_at = Some(Instant::now());
            self.main.record_write("main", &writes.main);
            self.archive.record_write("archive", &writes.archive);
        }
    }
}

impl StoreCheck {
    fn record_read(&mut self, store: &str, result: &Result<()>) {
        self.reads_fail = result.is_err();
        self.log(store, "read", result);
    }

    /// A failure that may pass, such as a long write of another process, counts if it comes twice in a row.
    fn record_write(&mut self, store: &str, result: &Result<()>) {
        let was_late = self.is_late;
        self.is_late = matches!(result, Err(error) if error.retry() != Retry::Never);
        self.writes_fail = result.is_err() && (was_late || !self.is_late);
        self.log(store, "write", result);
    }

    fn state(&self) -> StoreState {
        match (self.reads_fail, self.writes_fail) {
            (true, _) => StoreState::Unavailable,
            (false, true) => StoreState::ReadOnly,
            (false, false) => StoreState::Ok,
        }
    }

    /// Logs the beginning and the end of failures. A read that succeeds does not end those of writes.
    fn log(&self, store: &str, operation: &str, result: &Result<()>) {
        match result {
            Err(error) => {
                if let Some(failures) = self.failures.failed() {
                    tracing::warn!(store, operation, %error, failures, "readiness check failed");
                }
            }
            Ok(()) if self.state() != StoreState::Ok || self.is_late => {}
            Ok(()) => {
                if let Some(failures) = self.failures.succeeded() {
                    tracing::info!(store, failures, "readiness check succeeded");
                }
            }
        }
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
        Arc::new(Self { verbatim, is_stopping: AtomicBool::new(false), checks: Mutex::default() })
    }

    /// Marks the server as stopping.
    pub(crate) fn stop(&self) {
        self.is_stopping.store(true, Relaxed);
    }

    /// Returns the readiness: reads of at most half a second ago, and writes of at most five seconds ago.
    pub(crate) async fn state(&self) -> ReadinessState {
        let mut checks = self.checks.lock().await;
        let is_stopping = self.is_stopping.load(Relaxed);
        // Stopping closes the stores, which is not an error.
        if !is_stopping {
            checks.refresh(&self.verbatim).await;
        }
        ReadinessState { main: checks.main.state(), archive: checks.archive.state(), is_stopping }
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
    let (status, text) = match state.is_ready() {
        true => (StatusCode::OK, "ready"),
        false => (StatusCode::SERVICE_UNAVAILABLE, "not ready"),
    };
    let body = ReadinessBody {
        status: text,
        main: state.main.as_str(),
        archive: state.archive.as_str(),
        stopping: state.is_stopping,
    };
    let mut response = json(status, &body);
    response.headers_mut().insert(CACHE_CONTROL, HeaderValue::from_static("no-store"));
    response
}

#[cfg(test)]
mod tests {
    use transcript_core::{Error, ErrorKind};

    use super::*;

    #[test]
    fn store_state_write_failure_counts_at_once_or_twice_in_a_row() {
        let permanent = || Err(Error::new(ErrorKind::Unavailable, Retry::Never, "the disk is full"));
        let passing = || Err(Error::unavailable("the store did not respond in time"));
        let mut check = StoreCheck::default();
        for (result, expect) in [
            (Ok(()), StoreState::Ok),
            (permanent(), StoreState::ReadOnly),
            (Ok(()), StoreState::Ok),
            (passing(), StoreState::Ok),
            (passing(), StoreState::ReadOnly),
            (Ok(()), StoreState::Ok),
        ] {
            check.record_write("main", &result);
            assert_eq!(check.state(), expect, "{result:?}");
        }
        check.record_read("main", &passing());
        assert_eq!(check.state(), StoreState::Unavailable);
    }
}
