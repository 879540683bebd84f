//! What a model writes, piece by piece, on its way to the check.

use std::sync::atomic::{AtomicUsize, Ordering};

use tokio::sync::mpsc;

use super::{Deltas, check::TEXT_BYTES_MAX};

/// Takes pieces from a model, up to what is looked at.
#[derive(Debug)]
pub(super) struct Feed {
    pieces: mpsc::UnboundedSender<String>,
    taken: AtomicUsize,
}

impl Feed {
    pub(super) fn new() -> (Self, mpsc::UnboundedReceiver<String>) {
        let (pieces, taken) = mpsc::unbounded_channel();
        (Self { pieces, taken: AtomicUsize::new(0) }, taken)
    }
}

impl Deltas for Feed {
    fn push(&self, text: &str) -> bool {
        let before = self.taken.fetch_add(text.len(), Ordering::Relaxed);
        let mut end = text.len().min(TEXT_BYTES_MAX.saturating_sub(before));
        while !text.is_char_boundary(end) {
            end -= 1;
        }
        let piece = text.get(..end).unwrap_or_default();
        let is_heard = piece.is_empty() || self.pieces.send(piece.to_owned()).is_ok();
        is_heard && before.saturating_add(text.len()) < TEXT_BYTES_MAX
    }
}
