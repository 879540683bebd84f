//! What the engine is asked, and what it answers.

use std::{fmt, sync::Arc};

use async_trait::async_trait;

use super::StillWorking;
use crate::{
    archive::{Absence, StoredTranscript, Wish},
    error::Error,
    ledger::{Balance, Leg},
    supplier::SupplyError,
    video::VideoId,
};

/// A wish for a transcript, and how its fetch is paid for if it comes to one.
#[derive(Clone, Debug)]
pub struct Fetch {
    /// The video.
    pub video: VideoId,
    /// Which of its transcripts.
    pub wish: Wish,
    /// What a fetch costs whom; none for a free one. An archived transcript never costs anything.
    pub payment: Option<Payment>,
}

/// What a fetch costs, in one or several wallets at once.
#[derive(Clone, Debug)]
pub struct Payment {
    /// The legs, in the order in which they are refused.
    pub legs: Vec<PaymentLeg>,
    /// What it is for, for statements.
    pub memo: String,
    /// Who hears when the suppliers were asked in vain; none where nobody counts that.
    pub in_vain: Option<Arc<dyn InVain>>,
}

/// Hears that the suppliers were asked in vain for a payment, whether or not the payer still waits.
#[async_trait]
pub trait InVain: fmt::Debug + Send + Sync {
    /// Somebody was asked, and there is no transcript. Told once for a payment, before the payer is answered;
    /// the answer waits for this no longer than for a store.
    async fn asked_in_vain(&self);
}

/// One wallet's part in a payment.
#[derive(Clone, Debug)]
pub struct PaymentLeg {
    /// The wallet, what it may spend, and how much the fetch costs it.
    pub leg: Leg,
    /// What becomes of it when there is no transcript.
    pub on_failure: OnFailure,
}

/// What becomes of a held amount when a fetch fails.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum OnFailure {
    /// It is returned.
    Return,
    /// It is spent once a supplier was really asked, so that failures cannot be driven for free.
    SpendOnceAsked,
}

/// What came of a fetch.
#[derive(Clone, Debug)]
pub enum Outcome {
    /// The archive had it, or another caller's work brought it. Nothing was charged to this caller.
    Archived(StoredTranscript),
    /// This caller's own fetch brought it; it is archived, and the payment is settled.
    Fetched(StoredTranscript),
    /// It is remembered that there is nothing.
    Absent(Absence),
    /// The operator took the video down.
    Withdrawn,
    /// The suppliers failed just now.
    Failed(SupplyError),
    /// A leg of the payment cannot be covered.
    Refused {
        /// The place of the first leg that is too small.
        leg: u32,
        /// That wallet's balance.
        balance: Balance,
    },
    /// No supplier is configured for the platform.
    Unsupplied,
    /// The work goes on, but the caller waited long enough: ask again. Whoever asks the same joins the same work,
    /// and pays nothing for that.
    StillWorking(StillWorking),
    /// A store failed; nothing was charged without delivery.
    Broken(Error),
}
