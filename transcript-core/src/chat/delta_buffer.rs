//! Buffer between a model's output deltas and the verifier.

use std::sync::atomic::{AtomicUsize, Ordering};

use tokio::sync::mpsc;

use super::{DeltaSink, verify::TEXT_BYTES_MAX};
use crate::text::head;

/// Receives deltas from a model, up to [`TEXT_BYTES_MAX`] bytes.
#[derive(Debug)]
pub(super) struct DeltaBuffer {
    pieces: mpsc::UnboundedSender<String>,
    received_bytes: AtomicUsize,
}

impl DeltaBuffer {
    pub(super) fn new() -> (Self, mpsc::UnboundedReceiver<String>) {
        let (pieces, receiver) = mpsc::unbounded_channel();
        (Self { pieces, received_bytes: AtomicUsize::new(0) }, receiver)
    }
}

impl DeltaSink for DeltaBuffer {
    fn push(&self, text: &str) -> bool {
        let before = self.received_bytes.fetch_add(text.len(), Ordering::Relaxed);
        let piece = head(text, TEXT_BYTES_MAX.saturating_sub(before));
        let is_open = piece.is_empty() || self.pieces.send(piece.to_owned()).is_ok();
        is_open && before.saturating_add(text.len()) < TEXT_BYTES_MAX
    }
}
