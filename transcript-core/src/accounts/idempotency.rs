//! The idempotency store: the first response of each `Idempotency-Key`.

use std::fmt;

use async_trait::async_trait;

use crate::{
    error::Result,
    headers::{X_CACHE, X_CREDITS_REMAINING},
    ids::Holder,
    time::{LEASE_MAX, Timestamp},
};

/// A response that was sent.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StoredResponse {
    /// The HTTP status.
    pub status: u16,
    /// The headers to replay, in order.
    pub headers: Vec<StoredHeader>,
    /// The body.
    pub body: Vec<u8>,
}

impl StoredResponse {
    /// Media type of the JSON of both APIs.
    pub const JSON: &'static str = "application/json; charset=utf-8";

    /// A response with a body of JSON.
    pub fn json(status: u16, body: Vec<u8>) -> Self {
        let mut response = Self { status, headers: Vec::new(), body };
        response.push("content-type", Self::JSON);
        response
    }

    /// Adds whether the transcript is from the archive, and the remaining credits.
    #[must_use]
    pub fn with_origin(mut self, from_cache: bool, credits_remaining: Option<u64>) -> Self {
        self.push(X_CACHE, if from_cache { "HIT" } else { "MISS" });
        if let Some(credits) = credits_remaining {
            self.push(X_CREDITS_REMAINING, &credits.to_string());
        }
        self
    }

    /// Adds a header.
    pub(super) fn push(&mut self, name: &str, value: &str) {
        self.headers.push(StoredHeader { name: name.to_ascii_lowercase(), value: value.to_owned() });
    }

    /// The value of a header, by its name in any case.
    pub fn header(&self, name: &str) -> Option<&str> {
        let found = self.headers.iter().find(|header| header.name.eq_ignore_ascii_case(name));
        found.map(|header| header.value.as_str())
    }
}

/// A header of a response.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StoredHeader {
    /// The name, in lower case.
    pub name: String,
    /// The value.
    pub value: String,
}

/// An attempt at a request that carries an idempotency key.
#[derive(Clone, Debug)]
pub struct IdempotencyAttempt {
    /// The key, bound by the caller to account and endpoint.
    pub key: String,
    /// The digest of the request's body.
    pub fingerprint: Vec<u8>,
    /// The worker that makes the attempt.
    pub holder: Holder,
    /// The current time.
    pub now: Timestamp,
    /// When the lease expires, and the worker counts as dead; at most [`LEASE_MAX`] after `now`.
    pub lease_until: Timestamp,
    /// Until when the response is stored.
    pub keep_until: Timestamp,
}

impl IdempotencyAttempt {
    /// When the lease of another worker ends, which is stored with the end `until`.
    ///
    /// It is the end of this lease if `until` is more than [`LEASE_MAX`] after `now`: a clock that was ahead and was
    /// corrected since acquired it, and its worker renews it if it is alive. The store stores the earlier end.
    pub fn end_of_other(&self, until: Timestamp) -> Timestamp {
        if until > self.now.plus(LEASE_MAX) { until.min(self.lease_until) } else { until }
    }
}

/// State of an attempt's key.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum IdempotencyState {
    /// The key is unused, or its lease has expired: the caller has the lease now.
    New,
    /// The stored response of the key.
    Completed(StoredResponse),
    /// Another worker has the lease.
    InProgress,
    /// The key was used with another body.
    Mismatch,
}

/// The store of responses for replays. Each method is one transaction, durable once acknowledged.
///
/// Every method fails with [`crate::ErrorKind::Unavailable`] if the store cannot be reached.
#[async_trait]
pub trait IdempotencyStore: fmt::Debug + Send + Sync + 'static {
    /// Starts or renews an attempt.
    ///
    /// **Behaviour**
    /// - A key whose `keep_until` is at or before `now` is deleted, completed or not.
    /// - The body is compared first: another body is [`IdempotencyState::Mismatch`], also while the attempt is in
    ///   progress or after its lease has expired.
    /// - The same holder starts again: [`IdempotencyState::New`], with the new lease. A lease expires at its
    ///   `lease_until`. Each start sets how long the key is kept.
    /// - The lease of another worker that ends too late is shortened: [`IdempotencyAttempt::end_of_other`].
    async fn begin(&self, attempt: IdempotencyAttempt) -> Result<IdempotencyState>;

    /// Stores the response of the attempt of `holder`.
    ///
    /// **Behaviour**: the first response stays; completing again is success. A holder whose lease has expired
    /// may complete as long as no other worker has started.
    ///
    /// # Errors
    /// [`crate::ErrorKind::Conflict`] if another worker has the lease or has completed the attempt, or there
    /// is no such attempt.
    async fn complete(&self, key: &str, holder: &Holder, reply: StoredResponse) -> Result<()>;

    /// Releases an attempt, so that it may be repeated at once. A completed attempt, or one of another
    /// holder, is unchanged.
    async fn release(&self, key: &str, holder: &Holder) -> Result<()>;
}
