//! The log of the proxy's requests and tunnels.

use std::{
    sync::{Mutex, MutexGuard, PoisonError},
    time::{Duration, Instant},
};

use bytes::Bytes;
use http::HeaderMap;
use serde_json::Value;

/// Maximum of recorded requests and tunnels: a bound for benches; tests make a few dozen.
const ENTRIES_MAX: usize = 100_000;

/// A request that reached the proxy.
#[derive(Clone, Debug)]
pub struct SeenRequest {
    /// Time from the proxy's start to the arrival of the whole request.
    pub at: Duration,
    /// `https` through a tunnel; `http` for a plain request to the proxy.
    pub scheme: &'static str,
    /// The host: that of the tunnel, or of the plain request's address.
    pub host: String,
    /// The method, in capitals.
    pub method: String,
    /// The path as it was sent, without the query.
    pub path: String,
    /// The query's parameters, decoded, in order.
    pub query: Vec<(String, String)>,
    /// The headers.
    pub headers: HeaderMap,
    /// The body, at most 1 MiB of it.
    pub body: Bytes,
    /// Whether a rule of the script matched it.
    pub expected: bool,
}

impl SeenRequest {
    /// The first value of a parameter of the query.
    pub fn parameter(&self, name: &str) -> Option<&str> {
        self.query.iter().find(|(key, _)| key == name).map(|(_, value)| value.as_str())
    }

    /// A header's value, if it is text.
    pub fn header(&self, name: &str) -> Option<&str> {
        self.headers.get(name)?.to_str().ok()
    }

    /// The value at an RFC 6901 pointer in a JSON body.
    pub fn json(&self, pointer: &str) -> Option<Value> {
        serde_json::from_slice::<Value>(&self.body).ok()?.pointer(pointer).cloned()
    }
}

/// A tunnel that a client requested with CONNECT.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SeenTunnel {
    /// The host.
    pub host: String,
    /// The port.
    pub port: u16,
    /// Whether the tunnel was granted.
    pub granted: bool,
    /// The `Proxy-Authorization` header, if one was sent.
    pub authorization: Option<String>,
}

/// A mutex that ignores poisoning: its value is valid after every single step.
#[derive(Debug, Default)]
pub(super) struct RequestLogState<T>(Mutex<T>);

impl<T> RequestLogState<T> {
    pub(super) fn lock(&self) -> MutexGuard<'_, T> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The requests and tunnels of one proxy, shared between its tasks and the test.
#[derive(Debug)]
pub(super) struct RequestLog {
    started: Instant,
    requests: RequestLogState<Vec<SeenRequest>>,
    tunnels: RequestLogState<Vec<SeenTunnel>>,
}

impl Default for RequestLog {
    fn default() -> Self {
        Self {
            started: Instant::now(),
            requests: RequestLogState::default(),
            tunnels: RequestLogState::default(),
        }
    }
}

impl RequestLog {
    pub(super) fn elapsed(&self) -> Duration {
        self.started.elapsed()
    }

    pub(super) fn add_request(&self, request: SeenRequest) {
        let mut requests = self.requests.lock();
        if requests.len() < ENTRIES_MAX {
            requests.push(request);
        }
    }

    pub(super) fn add_tunnel(&self, tunnel: SeenTunnel) {
        let mut tunnels = self.tunnels.lock();
        if tunnels.len() < ENTRIES_MAX {
            tunnels.push(tunnel);
        }
    }

    pub(super) fn requests(&self) -> Vec<SeenRequest> {
        self.requests.lock().clone()
    }

    pub(super) fn count(&self, predicate: impl Fn(&SeenRequest) -> bool) -> usize {
        self.requests.lock().iter().filter(|request| predicate(request)).count()
    }

    pub(super) fn tunnels(&self) -> Vec<SeenTunnel> {
        self.tunnels.lock().clone()
    }
}
