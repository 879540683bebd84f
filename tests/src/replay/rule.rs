//! Rules: which requests a script expects, and their responses.

use std::{
    cell::LazyCell,
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
};

use serde_json::Value;
use tokio::sync::Semaphore;

use super::{ReplayResponse, SeenRequest};

/// A request body, parsed on the first use and once for all rules: a platform in a benchmark has a thousand rules.
pub(super) type LazyBody<'a> = LazyCell<Option<Value>, Box<dyn FnOnce() -> Option<Value> + 'a>>;

/// A kind of request and its responses in order; the last one repeats.
#[derive(Clone, Debug)]
pub struct Rule {
    hosts: Vec<String>,
    method: String,
    path: String,
    queries: Vec<(String, Option<String>)>,
    headers: Vec<(String, String)>,
    query_fields: Vec<(String, String, Value)>,
    fields: Vec<(String, Value)>,
    responses: Vec<ReplayResponse>,
    // Clones of a script share the count, because the proxy's tasks do.
    used: Arc<AtomicUsize>,
}

impl Rule {
    /// Requests with this method, host and path; a path that ends in `*` matches every path with that prefix.
    pub fn new(method: &str, host: &str, path: &str) -> Self {
        Self {
            hosts: vec![host.to_owned()],
            method: method.to_owned(),
            path: path.to_owned(),
            queries: Vec::new(),
            headers: Vec::new(),
            query_fields: Vec::new(),
            fields: Vec::new(),
            responses: Vec::new(),
            used: Arc::default(),
        }
    }

    /// `GET` requests to this host and path.
    pub fn get(host: &str, path: &str) -> Self {
        Self::new("GET", host, path)
    }

    /// `POST` requests to this host and path.
    pub fn post(host: &str, path: &str) -> Self {
        Self::new("POST", host, path)
    }

    /// Adds one more host.
    #[must_use]
    pub fn or_host(mut self, host: &str) -> Self {
        self.hosts.push(host.to_owned());
        self
    }

    /// Restricts to requests whose query has this parameter with this value.
    #[must_use]
    pub fn query(mut self, name: &str, value: &str) -> Self {
        self.queries.push((name.to_owned(), Some(value.to_owned())));
        self
    }

    /// Restricts to requests whose query does not have this parameter.
    #[must_use]
    pub fn without_query(mut self, name: &str) -> Self {
        self.queries.push((name.to_owned(), None));
        self
    }

    /// Restricts to requests with JSON in this query parameter, and this value at this RFC 6901 pointer in it.
    #[must_use]
    pub fn query_json(mut self, name: &str, pointer: &str, value: impl Into<Value>) -> Self {
        self.query_fields.push((name.to_owned(), pointer.to_owned(), value.into()));
        self
    }

    /// Restricts to requests with this header.
    #[must_use]
    pub fn header(mut self, name: &str, value: &str) -> Self {
        self.headers.push((name.to_owned(), value.to_owned()));
        self
    }

    /// Restricts to requests with a JSON body that has this value at this RFC 6901 pointer.
    #[must_use]
    pub fn json(mut self, pointer: &str, value: impl Into<Value>) -> Self {
        self.fields.push((pointer.to_owned(), value.into()));
        self
    }

    /// Adds a response. A rule without any responds with an empty 200.
    #[must_use]
    pub fn respond(mut self, response: ReplayResponse) -> Self {
        self.responses.push(response);
        self
    }

    /// Adds responses, in this order.
    #[must_use]
    pub fn respond_all(self, responses: impl IntoIterator<Item = ReplayResponse>) -> Self {
        responses.into_iter().fold(self, Self::respond)
    }

    /// Makes all responses of the rule wait for this gate.
    #[must_use]
    pub fn gated(mut self, gate: &Arc<Semaphore>) -> Self {
        self.responses = self.responses.into_iter().map(|response| response.gated(gate)).collect();
        self
    }

    pub(super) fn hosts(&self) -> &[String] {
        &self.hosts
    }

    /// Whether the rule matches the request; `body` is its parsed body, if that is JSON.
    pub(super) fn matches(&self, request: &SeenRequest, body: &LazyBody<'_>) -> bool {
        let path = match self.path.strip_suffix('*') {
            Some(start) => request.path.starts_with(start),
            None => request.path == self.path,
        };
        path && self.method == request.method
            && self.hosts.contains(&request.host)
            && self.queries.iter().all(|(name, value)| request.parameter(name) == value.as_deref())
            && self.query_fields.iter().all(|(name, pointer, value)| {
                let text = request.parameter(name).unwrap_or("");
                let json: Option<Value> = serde_json::from_str(text).ok();
                json.as_ref().and_then(|json| json.pointer(pointer)) == Some(value)
            })
            && self.headers.iter().all(|(name, value)| request.header(name) == Some(value))
            && self
                .fields
                .iter()
                .all(|(pointer, value)| body.as_ref().and_then(|body| body.pointer(pointer)) == Some(value))
    }

    /// The next response in the rule's order.
    pub(super) fn next_response(&self) -> ReplayResponse {
        let index = self.used.fetch_add(1, Ordering::Relaxed);
        let last = self.responses.len().saturating_sub(1);
        self.responses.get(index.min(last)).cloned().unwrap_or_else(|| ReplayResponse::status(200))
    }
}
