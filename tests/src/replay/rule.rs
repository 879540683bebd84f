//! Which requests a script expects.

use std::{
    cell::LazyCell,
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
};

use serde_json::Value;
use tokio::sync::Semaphore;

use super::{Answer, SeenRequest};

/// A body that is read when the first rule wants to know, and then once for all rules: a platform in a
/// measurement has a thousand of them.
pub(super) type LazyBody<'a> = LazyCell<Option<Value>, Box<dyn FnOnce() -> Option<Value> + 'a>>;

/// A kind of request and the answers that it gets, in turn; the last one repeats.
#[derive(Clone, Debug)]
pub struct Rule {
    hosts: Vec<String>,
    method: String,
    path: String,
    queries: Vec<(String, Option<String>)>,
    headers: Vec<(String, String)>,
    query_fields: Vec<(String, String, Value)>,
    fields: Vec<(String, Value)>,
    answers: Vec<Answer>,
    // Clones of a script share the count, as the proxy's tasks must.
    used: Arc<AtomicUsize>,
}

impl Rule {
    /// Requests with this method, host and path; a path that ends in `*` stands for all that begin so.
    pub fn new(method: &str, host: &str, path: &str) -> Self {
        Self {
            hosts: vec![host.to_owned()],
            method: method.to_owned(),
            path: path.to_owned(),
            queries: Vec::new(),
            headers: Vec::new(),
            query_fields: Vec::new(),
            fields: Vec::new(),
            answers: Vec::new(),
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

    /// The same for one more host.
    #[must_use]
    pub fn or_host(mut self, host: &str) -> Self {
        self.hosts.push(host.to_owned());
        self
    }

    /// Only requests whose query has this parameter with this value.
    #[must_use]
    pub fn query(mut self, name: &str, value: &str) -> Self {
        self.queries.push((name.to_owned(), Some(value.to_owned())));
        self
    }

    /// Only requests whose query does not have this parameter.
    #[must_use]
    pub fn without_query(mut self, name: &str) -> Self {
        self.queries.push((name.to_owned(), None));
        self
    }

    /// Only requests whose query has this parameter, and in it JSON with this value at this RFC 6901 pointer.
    #[must_use]
    pub fn query_json(mut self, name: &str, pointer: &str, value: impl Into<Value>) -> Self {
        self.query_fields.push((name.to_owned(), pointer.to_owned(), value.into()));
        self
    }

    /// Only requests with this header.
    #[must_use]
    pub fn header(mut self, name: &str, value: &str) -> Self {
        self.headers.push((name.to_owned(), value.to_owned()));
        self
    }

    /// Only requests whose body is JSON with this value at this RFC 6901 pointer.
    #[must_use]
    pub fn json(mut self, pointer: &str, value: impl Into<Value>) -> Self {
        self.fields.push((pointer.to_owned(), value.into()));
        self
    }

    /// One more answer. A rule without any answers an empty 200.
    #[must_use]
    pub fn answer(mut self, answer: Answer) -> Self {
        self.answers.push(answer);
        self
    }

    /// The same, all of whose answers wait for this gate.
    #[must_use]
    pub fn held(mut self, gate: &Arc<Semaphore>) -> Self {
        self.answers = self.answers.into_iter().map(|answer| answer.held(gate)).collect();
        self
    }

    pub(super) fn hosts(&self) -> &[String] {
        &self.hosts
    }

    /// Whether it is such a request; `body` is its body, where that is JSON.
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

    /// The answer whose turn it is.
    pub(super) fn next_answer(&self) -> Answer {
        let turn = self.used.fetch_add(1, Ordering::Relaxed);
        let last = self.answers.len().saturating_sub(1);
        self.answers.get(turn.min(last)).cloned().unwrap_or_else(|| Answer::status(200))
    }
}
