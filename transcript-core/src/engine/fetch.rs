//! Requests to the engine, and their outcomes.

use std::{sync::Arc, time::Duration};

use super::{NoTranscript, Payer, WorkInProgress};
use crate::{
    archive::{Absence, StoredTranscript, TrackSelector},
    error::Error,
    supplier::SupplyError,
    video::VideoId,
};

/// A request for a transcript, with the payer of a fetch if one is needed.
#[derive(Clone, Debug)]
pub struct FetchRequest {
    /// The video.
    pub video: VideoId,
    /// Which of its tracks.
    pub selector: TrackSelector,
    /// Who pays for a fetch; `None` if it is free. An archived transcript is always free.
    pub payer: Option<Arc<dyn Payer>>,
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
    /// The payer cannot pay.
    Refused(NoTranscript),
    /// No supplier is configured for the platform.
    NoSupplier,
    /// The work goes on, but the caller's wait has ended: retry later.
    ///
    /// The same request joins the same flight, free of charge.
    InProgress(WorkInProgress),
    /// Too many fetches wait for a supplier: retry after this time. Nothing was charged.
    Busy(Duration),
    /// A store failed; nothing was charged without delivery.
    StoreFailed(Error),
}
