//! The history of a client: its requests and their responses.

use std::collections::BTreeMap;

/// Bounds of the charges of a wallet for a video.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct CallTally {
    /// Responses that were delivered as charged.
    pub(super) certain: u64,
    /// Requests that may have been charged: their server was killed, or reported an unknown result.
    pub(super) possible: u64,
}

/// A completed request with an idempotency key.
#[derive(Clone, Debug)]
pub(super) struct RepeatableCall {
    pub(super) path: String,
    pub(super) key: String,
    /// The body, to the byte.
    pub(super) body: Vec<u8>,
}

/// Requests and responses of one client.
#[derive(Debug, Default)]
pub(super) struct CallHistory {
    /// Index of the client.
    pub(super) client: usize,
    /// Charges of credits, by video.
    pub(super) credits: BTreeMap<String, CallTally>,
    /// Charges of the lookup allowance, by video.
    pub(super) lookups: BTreeMap<String, CallTally>,
    /// Completed requests, which can be replayed.
    pub(super) repeatable: Vec<RepeatableCall>,
    /// The number of paid requests without a response: each may hold a credit for a while.
    pub(super) unanswered: u64,
    /// The number of interrupted requests.
    pub(super) interrupted: u64,
    /// The number of replayed responses.
    pub(super) replayed: u64,
    /// The videos whose transcripts were delivered.
    pub(super) delivered_videos: std::collections::BTreeSet<String>,
    /// Remaining credits and used lookups at the end, when no request was running.
    pub(super) final_state: (u64, u64),
}

impl CallHistory {
    /// The number of delivered, charged responses.
    pub(super) fn delivered(&self) -> u64 {
        self.credits.values().chain(self.lookups.values()).map(|tally| tally.certain).sum()
    }

    /// Lower and upper bound of the spent credits.
    pub(super) fn spent_bounds(&self) -> (u64, u64) {
        let sure: u64 = self.credits.values().map(|tally| tally.certain).sum();
        let perhaps: u64 = self.credits.values().map(|tally| tally.possible).sum();
        (sure, sure + perhaps)
    }

    /// The tally of a video that was paid for with credits.
    pub(super) fn credit(&mut self, video: &str) -> &mut CallTally {
        self.credits.entry(video.to_owned()).or_default()
    }

    /// The tally of a video that was looked up.
    pub(super) fn lookup(&mut self, video: &str) -> &mut CallTally {
        self.lookups.entry(video.to_owned()).or_default()
    }
}
