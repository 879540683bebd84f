//! Replies to repeat: what an `Idempotency-Key` was answered with.

use std::fmt;

use async_trait::async_trait;

use crate::{error::Result, ids::Holder, time::Timestamp};

/// An answer that was given.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Reply {
    /// The HTTP status.
    pub status: u16,
    /// Headers to repeat, in order.
    pub headers: Vec<Header>,
    /// The body.
    pub body: Vec<u8>,
}

/// One header of a reply.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Header {
    /// Its name, in lower case.
    pub name: String,
    /// Its value.
    pub value: String,
}

/// An attempt at a request that carries an idempotency key.
#[derive(Clone, Debug)]
pub struct Attempt {
    /// The key, bound by the caller to account and route.
    pub key: String,
    /// The digest of the request's body.
    pub fingerprint: Vec<u8>,
    /// Who works on it.
    pub holder: Holder,
    /// The present moment.
    pub now: Timestamp,
    /// When the work is taken to have died.
    pub lease_until: Timestamp,
    /// Until when a reply is kept.
    pub keep_until: Timestamp,
}

/// What is known of an attempt's key.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Begun {
    /// Nothing: the caller works on it now. An attempt whose lease ended is fresh again.
    Fresh,
    /// It was answered with this.
    Done(Reply),
    /// Another works on it.
    InFlight,
    /// It was used with another body.
    Mismatch,
}

/// The store of replies. Each method is one transaction, durable once acknowledged.
///
/// Every method fails with [`crate::ErrorKind::Unavailable`] when the store cannot be reached.
#[async_trait]
pub trait Replies: fmt::Debug + Send + Sync + 'static {
    /// Begins an attempt.
    ///
    /// **Behaviour**
    /// - A key whose `keep_until` is at or before `now` is forgotten, answered or not.
    /// - The body is compared first: another body is [`Begun::Mismatch`] also while in flight, or when the
    ///   lease has ended.
    /// - The same holder begins again: [`Begun::Fresh`], with the new lease. A lease ends at its
    ///   `lease_until`. Whoever begins sets how long the key is kept.
    async fn begin(&self, attempt: Attempt) -> Result<Begun>;

    /// Stores the reply of the attempt that `holder` works on.
    ///
    /// **Behaviour**: the first reply stays; finishing again is success. A holder whose lease has ended
    /// may finish as long as nobody else began.
    ///
    /// # Errors
    /// [`crate::ErrorKind::Conflict`] when another works on it by now, or has answered it, or nobody works
    /// on it.
    async fn finish(&self, key: &str, holder: &Holder, reply: Reply) -> Result<()>;

    /// Gives an attempt up, so that it may be made again at once. One that is finished, or held by
    /// another, is left as it is.
    async fn abandon(&self, key: &str, holder: &Holder) -> Result<()>;
}
