//! Who hears how far fetches are, and how well suppliers are.

use std::fmt;

use super::SupplierHealth;
use crate::video::VideoId;

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

/// Hears how far fetches are and how well suppliers are, from the tasks that do the work: it must not hold them up.
pub trait Observer: fmt::Debug + Send + Sync + 'static {
    /// A fetch has come so far.
    fn stage(&self, stage: Stage);

    /// A supplier that kept failing began to rest, or works again. By itself it does nothing.
    fn health(&self, health: SupplierHealth) {
        let _ = health;
    }
}
