//! What a client writes down: what it has sent, and what it has got.

use std::collections::BTreeMap;

/// How often a wallet is charged for a video: so often for certain, and up to so many times more.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Tally {
    /// Answers that were delivered as charged ones.
    pub(super) sure: u64,
    /// Requests of which nobody knows what became of them: their server died, or told that it does not know.
    pub(super) perhaps: u64,
}

/// A request with an idempotency key that was answered.
#[derive(Clone, Debug)]
pub(super) struct Repeatable {
    pub(super) path: String,
    pub(super) key: String,
    /// The body, to the byte.
    pub(super) body: Vec<u8>,
}

/// All that a client has seen.
#[derive(Debug, Default)]
pub(super) struct Record {
    /// Its place among the clients.
    pub(super) client: usize,
    /// For credits, by video.
    pub(super) credits: BTreeMap<String, Tally>,
    /// For its allowance of look-ups, by video.
    pub(super) lookups: BTreeMap<String, Tally>,
    /// Answered, so they can be repeated.
    pub(super) repeatable: Vec<Repeatable>,
    /// How many requests for credits ended without an answer: each may hold a credit for a while.
    pub(super) loose: u64,
    /// How many requests were cut off.
    pub(super) cut: u64,
    /// How many answers were the repeat of an earlier one.
    pub(super) replayed: u64,
    /// The videos whose words it was given.
    pub(super) told: std::collections::BTreeSet<String>,
    /// What the server said at the end, when nothing was under way any more: credits left, look-ups used.
    pub(super) at_the_end: (u64, u64),
}

impl Record {
    /// How many charged answers were delivered.
    pub(super) fn delivered(&self) -> u64 {
        self.credits.values().chain(self.lookups.values()).map(|tally| tally.sure).sum()
    }

    /// The credits that were spent: at least, and at most.
    pub(super) fn spent(&self) -> (u64, u64) {
        let sure: u64 = self.credits.values().map(|tally| tally.sure).sum();
        let perhaps: u64 = self.credits.values().map(|tally| tally.perhaps).sum();
        (sure, sure + perhaps)
    }

    /// The tally of a video that was paid for with credits.
    pub(super) fn credit(&mut self, video: &str) -> &mut Tally {
        self.credits.entry(video.to_owned()).or_default()
    }

    /// The tally of a video that was looked up.
    pub(super) fn lookup(&mut self, video: &str) -> &mut Tally {
        self.lookups.entry(video.to_owned()).or_default()
    }
}
