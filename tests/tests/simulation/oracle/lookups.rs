//! Ends of lookups with a key, which bound the charges of the key.

use std::sync::Arc;

use transcript_core::{ids::WalletId, video::VideoId};

use super::Oracle;

/// Lookups of one video with one key.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct LookupTally {
    /// Lookups that returned a new transcript.
    pub(super) new: u64,
    /// Lookups whose caller disconnected, whose process crashed, or whose work continued.
    pub(super) open_ended: u64,
    /// Lookups without a response so far.
    pub(super) running: u64,
}

/// End of a lookup, as far as its charge is concerned.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum LookupEnd {
    /// A new transcript: charged.
    New,
    /// From the archive, or no transcript: free.
    Free,
    /// Unknown: it may still be charged, once, if the transcript is archived.
    OpenEnded,
}

/// A lookup of a video with a key. Drop without an end counts as open-ended.
#[derive(Debug)]
pub(crate) struct LookupCall {
    oracle: Arc<Oracle>,
    key: (WalletId, VideoId),
    end: LookupEnd,
}

impl LookupCall {
    pub(crate) fn begin(oracle: &Arc<Oracle>, wallet: &WalletId, video: &VideoId) -> Self {
        let key = (wallet.clone(), video.clone());
        oracle.facts().lookups.entry(key.clone()).or_default().running += 1;
        Self { oracle: Arc::clone(oracle), key, end: LookupEnd::OpenEnded }
    }

    pub(crate) fn end(mut self, end: LookupEnd) {
        self.end = end;
    }
}

impl Drop for LookupCall {
    fn drop(&mut self) {
        let mut facts = self.oracle.facts();
        let tally = facts.lookups.entry(self.key.clone()).or_default();
        tally.running -= 1;
        match self.end {
            LookupEnd::New => tally.new += 1,
            LookupEnd::Free => {}
            LookupEnd::OpenEnded => tally.open_ended += 1,
        }
        drop(facts);
        // A free response leaves one lookup fewer to pay for, so a wrong charge becomes visible now.
        self.oracle.step("ledger.settle");
    }
}
