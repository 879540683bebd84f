//! The history of a client: its requests and their responses.

use std::collections::BTreeMap;

use super::{ServerAddresses, fleet::FleetLog};

/// Bounds of the charges of a wallet for a video.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct CallTally {
    /// Responses that were delivered as charged.
    pub(super) certain: u64,
    /// Requests that may have been charged: their server was killed, or reported an unknown result.
    pub(super) possible: u64,
    /// Servers with a fetch that outlasted the wait, each with the certain deliveries before: the next delivery is
    /// prepaid, and free if the server is killed before the fetch ends (decision 0050). The reply that says so may be
    /// lost.
    pub(super) outlasted: BTreeMap<String, u64>,
}

impl CallTally {
    /// Lower and upper bound of the charges.
    pub(super) fn bounds(&self, addresses: &FleetLog) -> (u64, u64) {
        let is_free = |(server, before): &(&String, &u64)| self.certain > **before && !addresses.has(server);
        let free = self.outlasted.iter().filter(is_free).count() as u64;
        (self.certain.saturating_sub(free), self.certain + self.possible)
    }
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
    /// The addresses of the servers; those of killed ones are missing.
    pub(super) addresses: ServerAddresses,
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
        self.credits
            .values()
            .map(|tally| tally.bounds(&self.addresses))
            .fold((0, 0), |sum, one| (sum.0 + one.0, sum.1 + one.1))
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
