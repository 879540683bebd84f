//! How look-ups with a key ended, and so how often the key may have been charged.

use std::sync::Arc;

use transcript_core::{ids::WalletId, video::VideoId};

use super::Oracle;

/// Look-ups of one video with one key.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Tally {
    /// They brought a new transcript.
    pub(super) new: u64,
    /// Their caller left, their process died, or the work went on after them.
    pub(super) open_ended: u64,
    /// They are not answered yet.
    pub(super) under_way: u64,
}

/// How a look-up ended, as far as a charge is concerned.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum VisitEnd {
    /// A new transcript: charged.
    New,
    /// From the archive, or none at all: free.
    Free,
    /// Nobody knows yet: it may still be charged, once, if the transcript is archived.
    OpenEnded,
}

/// A look-up of a video with a key. Dropped without an end, it is open-ended.
#[derive(Debug)]
pub(crate) struct Visit {
    oracle: Arc<Oracle>,
    key: (WalletId, VideoId),
    end: VisitEnd,
}

impl Visit {
    pub(crate) fn begin(oracle: &Arc<Oracle>, wallet: &WalletId, video: &VideoId) -> Self {
        let key = (wallet.clone(), video.clone());
        oracle.facts().visits.entry(key.clone()).or_default().under_way += 1;
        Self { oracle: Arc::clone(oracle), key, end: VisitEnd::OpenEnded }
    }

    pub(crate) fn end(mut self, end: VisitEnd) {
        self.end = end;
    }
}

impl Drop for Visit {
    fn drop(&mut self) {
        let mut facts = self.oracle.facts();
        let tally = facts.visits.entry(self.key.clone()).or_default();
        tally.under_way -= 1;
        match self.end {
            VisitEnd::New => tally.new += 1,
            VisitEnd::Free => {}
            VisitEnd::OpenEnded => tally.open_ended += 1,
        }
        drop(facts);
        // A free answer leaves one look-up fewer to pay for: whoever was charged for it shows now.
        self.oracle.step("ledger.settle");
    }
}
