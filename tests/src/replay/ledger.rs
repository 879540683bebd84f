//! What the proxy has seen.

use std::{
    sync::{Mutex, MutexGuard, PoisonError},
    time::{Duration, Instant},
};

use bytes::Bytes;
use http::HeaderMap;
use serde_json::Value;

/// How many requests and tunnels are kept: a bound for benches; tests make a few dozen.
const KEPT_MAX: usize = 100_000;

/// A request that reached the proxy.
#[derive(Clone, Debug)]
pub struct SeenRequest {
    /// How long after the proxy's start it had arrived with its body.
    pub at: Duration,
    /// `https` through a tunnel; `http` when the proxy was asked in the clear.
    pub scheme: &'static str,
    /// The host: that of the tunnel, or of the address in the clear.
    pub host: String,
    /// The method, in capitals.
    pub method: String,
    /// The path, as it was sent, without the query.
    pub path: String,
    /// The query's parameters, decoded, in order.
    pub query: Vec<(String, String)>,
    /// The headers.
    pub headers: HeaderMap,
    /// The body, at most 1 MiB of it.
    pub body: Bytes,
    /// Whether a rule of the script answered it.
    pub expected: bool,
}

impl SeenRequest {
    /// The first value of a parameter of the query.
    pub fn parameter(&self, name: &str) -> Option<&str> {
        self.query.iter().find(|(key, _)| key == name).map(|(_, value)| value.as_str())
    }

    /// A header's value, where it is text.
    pub fn header(&self, name: &str) -> Option<&str> {
        self.headers.get(name)?.to_str().ok()
    }

    /// The value at an RFC 6901 pointer in a body of JSON.
    pub fn json(&self, pointer: &str) -> Option<Value> {
        serde_json::from_slice::<Value>(&self.body).ok()?.pointer(pointer).cloned()
    }
}

/// A tunnel that was asked for with CONNECT.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SeenTunnel {
    /// The host.
    pub host: String,
    /// The port.
    pub port: u16,
    /// Whether the tunnel was granted.
    pub granted: bool,
    /// The `Proxy-Authorization` header, where one was sent.
    pub authorization: Option<String>,
}

/// A mutex whose poison is ignored: what it guards is valid after every single step.
#[derive(Debug, Default)]
pub(super) struct Locked<T>(Mutex<T>);

impl<T> Locked<T> {
    pub(super) fn lock(&self) -> MutexGuard<'_, T> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// What one proxy has seen, shared between its tasks and the test.
#[derive(Debug)]
pub(super) struct Ledger {
    started: Instant,
    requests: Locked<Vec<SeenRequest>>,
    tunnels: Locked<Vec<SeenTunnel>>,
}

impl Default for Ledger {
    fn default() -> Self {
        Self { started: Instant::now(), requests: Locked::default(), tunnels: Locked::default() }
    }
}

impl Ledger {
    pub(super) fn age(&self) -> Duration {
        self.started.elapsed()
    }

    pub(super) fn add_request(&self, request: SeenRequest) {
        let mut requests = self.requests.lock();
        if requests.len() < KEPT_MAX {
            requests.push(request);
        }
    }

    pub(super) fn add_tunnel(&self, tunnel: SeenTunnel) {
        let mut tunnels = self.tunnels.lock();
        if tunnels.len() < KEPT_MAX {
            tunnels.push(tunnel);
        }
    }

    pub(super) fn requests(&self) -> Vec<SeenRequest> {
        self.requests.lock().clone()
    }

    pub(super) fn count(&self, such: impl Fn(&SeenRequest) -> bool) -> usize {
        self.requests.lock().iter().filter(|request| such(request)).count()
    }

    pub(super) fn tunnels(&self) -> Vec<SeenTunnel> {
        self.tunnels.lock().clone()
    }
}
