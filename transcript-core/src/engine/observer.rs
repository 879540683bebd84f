//! Who hears how far fetches are, how well suppliers are, and what the ledger did.

use std::{fmt, time::Duration};

use super::SupplierHealth;
use crate::{
    ledger::Step,
    supplier::SupplyReason,
    video::{Platform, VideoId},
};

/// How far the fetch of a video is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Stage {
    /// The video.
    pub video: VideoId,
    /// The name of the supplier that is at work.
    pub supplier: String,
    /// The stage, as the supplier names it: `tracks`, `captions`, `audio`, `transcribing`, …
    pub name: String,
    /// How much of the stage is done.
    pub done: u64,
    /// How much there is to do; 0 when nobody knows.
    pub of: u64,
}

/// What came of turning to a supplier for a video.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Asked {
    /// The supplier's name.
    pub supplier: String,
    /// The video's platform.
    pub platform: Platform,
    /// Why it gave no transcript; none when it gave one.
    pub failure: Option<SupplyReason>,
    /// Whether anybody was asked: not by a supplier that rests, was busy for too long, or declined.
    pub was_asked: bool,
    /// How long it worked; 0 where it was not asked. The wait for a place is not in it.
    pub took: Duration,
}

/// Hears how far fetches are and how well suppliers are, from the tasks that do the work: it must not hold them up.
pub trait Observer: fmt::Debug + Send + Sync + 'static {
    /// A fetch has come so far.
    fn stage(&self, stage: Stage);

    /// A supplier that kept failing began to rest, or works again. By itself it does nothing.
    fn health(&self, health: SupplierHealth) {
        let _ = health;
    }

    /// A supplier was turned to for a video. By itself it does nothing.
    fn asked(&self, asked: Asked) {
        let _ = asked;
    }

    /// A step of the ledger was taken, or could not be. Whoever puts the parts together tells it. By itself it does
    /// nothing.
    fn ledger(&self, step: Step) {
        let _ = step;
    }
}
