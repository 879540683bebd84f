//! What the engine knows of payment: a payer holds before the work, and the held payment is ended after it.

use std::fmt;

use async_trait::async_trait;

use super::NoTranscript;
use crate::error::Result;

/// Pays for a fetch, if one is needed.
#[async_trait]
pub trait Payer: fmt::Debug + Send + Sync {
    /// Holds the cost of a fetch that is about to start. Called at most once.
    ///
    /// # Errors
    /// Nothing is held. [`crate::ErrorKind::Unavailable`] fails the flight for all of its waiters, any other error for
    /// this payer only.
    async fn hold(&self) -> Result<PaymentHold>;
}

/// Outcome of [`Payer::hold`].
#[derive(Debug)]
pub enum PaymentHold {
    /// The cost is held.
    Held(Box<dyn HeldPayment>),
    /// The payer cannot pay: its own outcome. The next waiter of the flight pays.
    Refused(NoTranscript),
}

/// A payment that is held while the work runs. It stays held until it ends; drop releases it.
#[async_trait]
pub trait HeldPayment: fmt::Debug + Send + Sync {
    /// Ends the payment: what it charges depends on the result of the work.
    ///
    /// The payer gets its outcome afterwards, so this takes at most one store timeout; a slower store is waited for in
    /// a detached task.
    async fn end(self: Box<Self>, result: WorkResult);
}

/// Result of the work, for its payment.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum WorkResult {
    /// The transcript is archived.
    Delivered,
    /// There is no transcript, and a supplier reached an upstream.
    Failed,
    /// A supplier reached an upstream, and its transcript could not be archived.
    NotArchived,
    /// No supplier reached an upstream.
    NotAttempted,
}
