//! What the engine knows of payment: a payer holds before the work, and the held payment is ended after it.

use std::{any::Any, fmt};

use async_trait::async_trait;

use super::{NoTranscript, fair_queue::TurnOwner};
use crate::{
    error::Result,
    ids::{AccountId, KeyId, WalletId},
};

/// Pays for a fetch, if one is needed.
#[async_trait]
pub trait Payer: Any + fmt::Debug + Send + Sync {
    /// Holds the cost of a fetch that is about to start. Called at most once.
    ///
    /// # Errors
    /// Nothing is held. [`crate::ErrorKind::Unavailable`] fails the flight for all of its waiters, any other error for
    /// this payer only.
    async fn hold(&self) -> Result<PaymentHold>;

    /// The owner of the fetch while it waits for a supplier.
    fn queue_owner(&self) -> QueueOwner;

    /// Whether `other` holds the same payment: at the same time both are refused alike.
    ///
    /// False if a refusal says nothing about other payments.
    fn has_same_payment(&self, _other: &dyn Payer) -> bool {
        false
    }
}

/// Owner of fetches that wait for a supplier: owners take turns.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct QueueOwner {
    /// The owner.
    pub id: QueueOwnerId,
    /// Whether it pays: paying owners come first.
    pub pays: bool,
}

/// The identity of a [`QueueOwner`].
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum QueueOwnerId {
    /// An account of the v1 API.
    Account(AccountId),
    /// A key of the lookup API.
    Key(KeyId),
    /// A network of visitors, by the wallet of its allowance.
    Network(WalletId),
    /// The operator, or the program that embeds the engine: fetches without a payer, and refreshes.
    System,
}

impl QueueOwner {
    /// The owner of a fetch with this payer.
    pub(super) fn for_payer(payer: Option<&dyn Payer>) -> Self {
        payer.map_or(Self { id: QueueOwnerId::System, pays: false }, Payer::queue_owner)
    }
}

impl TurnOwner for QueueOwner {
    fn pays(&self) -> bool {
        self.pays
    }
}

/// Outcome of [`Payer::hold`].
#[derive(Debug)]
pub enum PaymentHold {
    /// The cost is held.
    Held(Box<dyn HeldPayment>),
    /// The payer cannot pay: its own outcome. The next waiter of the flight pays.
    ///
    /// It is also the outcome, at their turn, of the waiters in line with the same payment.
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
