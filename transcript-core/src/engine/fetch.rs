//! Requests to the engine, and their outcomes.

use std::{fmt, sync::Arc};

use async_trait::async_trait;

use super::WorkInProgress;
use crate::{
    archive::{Absence, StoredTranscript, TrackSelector},
    error::Error,
    ledger::{Balance, Leg},
    supplier::SupplyError,
    video::VideoId,
};

/// A request for a transcript, with the payment of a fetch if one is needed.
#[derive(Clone, Debug)]
pub struct FetchRequest {
    /// The video.
    pub video: VideoId,
    /// Which of its tracks.
    pub selector: TrackSelector,
    /// The cost of a fetch; `None` if it is free. An archived transcript is always free.
    pub payment: Option<FetchPayment>,
}

/// The cost of a fetch, in one or more wallets.
#[derive(Clone, Debug)]
pub struct FetchPayment {
    /// The legs, checked in this order.
    pub legs: Vec<PaymentLeg>,
    /// The purpose, for statements.
    pub memo: String,
    /// Called when the fetch failed after an upstream was reached; `None` if failures are not counted.
    pub failure_hook: Option<Arc<dyn FailedAttemptHook>>,
}

/// Counts failed attempts of a payment, whether or not the payer is still connected.
#[async_trait]
pub trait FailedAttemptHook: fmt::Debug + Send + Sync {
    /// The fetch reached an upstream, and there is no transcript.
    ///
    /// Called once per payment, before the payer gets its outcome, which waits for this at most one store timeout.
    async fn on_failed_attempt(&self);
}

/// One wallet's part of a payment.
#[derive(Clone, Debug)]
pub struct PaymentLeg {
    /// The wallet, what it may spend, and how much the fetch costs it.
    pub leg: Leg,
    /// What happens to the amount when the fetch fails.
    pub on_failure: OnFailure,
}

/// What happens to a held amount when a fetch fails.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum OnFailure {
    /// It is returned.
    Return,
    /// It is spent if the fetch reached an upstream, so that failures have a cost.
    SpendIfAttempted,
}

/// Outcome of a fetch.
#[derive(Clone, Debug)]
pub enum FetchOutcome {
    /// It was archived, or another caller's flight fetched it. This caller was not charged.
    Archived(StoredTranscript),
    /// This caller's flight fetched it; it is archived, and the payment is settled.
    Fetched(StoredTranscript),
    /// An absence is stored.
    Absent(Absence),
    /// The operator took the video down.
    Withdrawn,
    /// The suppliers failed.
    SupplyFailed(SupplyError),
    /// A leg of the payment cannot be covered.
    Refused {
        /// The index of the first such leg.
        leg: u32,
        /// That wallet's balance.
        balance: Balance,
    },
    /// No supplier is configured for the platform.
    NoSupplier,
    /// The work goes on, but the caller's wait has ended: retry later.
    ///
    /// The same request joins the same flight, free of charge.
    InProgress(WorkInProgress),
    /// A store failed; nothing was charged without delivery.
    StoreFailed(Error),
}
