//! The oracle: checks the invariants of specification 11 and 12 after every step.
//!
//! It reads the stores behind the gate, so its reads neither fail nor take time. It records violations
//! instead of panicking, because a panic inside a task would be lost.

mod accounts;
mod archive;
mod ledger;
mod lookups;

use std::{
    collections::{BTreeMap, BTreeSet},
    fmt,
    sync::{
        Arc, Mutex, MutexGuard, PoisonError,
        atomic::{AtomicBool, Ordering},
    },
};

use futures_util::FutureExt;
use transcript_core::{
    archive::{Archive, StoredTranscript, TrackSelector},
    directory::Directory,
    ids::WalletId,
    ledger::{Balance, Entry, Ledger},
    transcript::Transcript,
    video::VideoId,
};

pub(crate) use accounts::{CallEnd, PaidCall};
pub(crate) use archive::all_selectors;
pub(crate) use lookups::{LookupCall, LookupEnd};

/// Recorded facts and violations of a simulation.
#[derive(Debug)]
pub(crate) struct Oracle {
    archive: Arc<dyn Archive>,
    ledger: Arc<dyn Ledger>,
    directory: Arc<dyn Directory>,
    limits: OracleLimits,
    facts: Mutex<OracleFacts>,
    /// Whether clocks differ enough that a lease expires for one server and is valid for another.
    allow_concurrent_fetches: AtomicBool,
}

/// The limits of one bucket.
#[derive(Clone, Copy, Debug)]
pub(crate) struct OracleLimits {
    pub(crate) key: u64,
    pub(crate) service: u64,
    /// Of all accounts together, per day.
    pub(crate) accounts: u64,
    /// Of an account on the free plan, per month.
    pub(crate) free_account: u64,
}

#[derive(Debug, Default)]
struct OracleFacts {
    violations: Vec<String>,
    /// Number of transcripts that suppliers returned.
    supply_number: u64,
    /// Transcripts that suppliers returned, by video.
    supplied: BTreeMap<VideoId, Vec<Transcript>>,
    /// Number of fetches by video, and number of those that returned a transcript.
    fetches: BTreeMap<VideoId, u64>,
    supply_counts: BTreeMap<VideoId, u64>,
    /// Number of running fetches.
    running_fetches: BTreeMap<(VideoId, TrackSelector), u64>,
    /// Everything that was ever archived.
    archived: Vec<StoredTranscript>,
    /// Archived transcripts that were not deleted, and so must be stored.
    stored_transcripts: Vec<StoredTranscript>,
    /// Covered cases.
    reached: BTreeSet<String>,
    /// The wallets as last checked.
    checked_wallets: BTreeMap<WalletId, (Balance, Arc<[Entry]>)>,
    /// Ends of lookups with a key, by wallet and video.
    lookups: BTreeMap<(WalletId, VideoId), lookups::LookupTally>,
    /// Facts of each account, by wallet.
    accounts: BTreeMap<WalletId, accounts::KnownAccount>,
}

/// A running fetch; it ends on drop.
#[derive(Debug)]
pub(crate) struct PendingWork {
    oracle: Arc<Oracle>,
    key: (VideoId, TrackSelector),
}

impl Drop for PendingWork {
    fn drop(&mut self) {
        let mut facts = self.oracle.facts();
        if let Some(count) = facts.running_fetches.get_mut(&self.key) {
            *count -= 1;
        }
    }
}

/// The result of a call to an in-memory store, which is ready immediately.
fn now<T>(call: impl Future<Output = transcript_core::Result<T>>) -> T {
    call.now_or_never().expect("a memory store must be ready").expect("a memory store must not fail")
}

impl Oracle {
    pub(crate) fn new(
        (archive, ledger, directory): (Arc<dyn Archive>, Arc<dyn Ledger>, Arc<dyn Directory>),
        limits: OracleLimits,
    ) -> Self {
        Self {
            archive,
            ledger,
            directory,
            limits,
            facts: Mutex::default(),
            allow_concurrent_fetches: AtomicBool::new(false),
        }
    }

    /// Permits parallel fetches of one video: some clock is wrong by more than a lease tolerates. Charges
    /// must be right all the same.
    pub(crate) fn allow_concurrent_fetches(&self) {
        self.allow_concurrent_fetches.store(true, Ordering::Relaxed);
    }

    fn facts(&self) -> MutexGuard<'_, OracleFacts> {
        self.facts.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Records a violation.
    pub(crate) fn report(&self, what: impl fmt::Display) {
        let mut facts = self.facts();
        // The first violations identify the defect; later ones only repeat them.
        if facts.violations.len() < 20 {
            facts.violations.push(what.to_string());
        }
    }

    /// All recorded violations.
    pub(crate) fn violations(&self) -> Vec<String> {
        self.facts().violations.clone()
    }

    /// Checks the invariants that a call of this name can break.
    pub(crate) fn step(&self, call: &str) {
        match call {
            "ledger.hold" | "ledger.spend" | "ledger.extend" | "ledger.settle" | "ledger.expire"
            | "ledger.grant" => {
                self.check_ledger();
            }
            "archive.put"
            | "archive.put_and_release"
            | "archive.put_absence"
            | "archive.delete"
            | "archive.withdraw" => {
                self.check_archive();
            }
            _ => {}
        }
    }

    /// The number of the next transcript of a supplier.
    pub(crate) fn next_supply(&self) -> u64 {
        let mut facts = self.facts();
        facts.supply_number += 1;
        facts.supply_number
    }

    /// Records the start of a fetch; only one per video and selector may run.
    pub(crate) fn begin_fetch(self: &Arc<Self>, video: &VideoId, selector: &TrackSelector) -> PendingWork {
        let key = (video.clone(), selector.clone());
        let mut facts = self.facts();
        *facts.fetches.entry(video.clone()).or_default() += 1;
        let running = facts.running_fetches.entry(key.clone()).or_default();
        *running += 1;
        let count = *running;
        drop(facts);
        if count > 1 && !self.allow_concurrent_fetches.load(Ordering::Relaxed) {
            self.report(format_args!("{count} fetches of {video} {selector} at a time"));
        }
        PendingWork { oracle: Arc::clone(self), key }
    }

    /// Records what a supplier returned.
    pub(crate) fn on_supplied(&self, video: &VideoId, tracks: &[Transcript]) {
        let mut facts = self.facts();
        if !tracks.is_empty() {
            *facts.supply_counts.entry(video.clone()).or_default() += 1;
        }
        facts.supplied.entry(video.clone()).or_default().extend_from_slice(tracks);
    }

    /// Records that a simulation covers a case.
    pub(crate) fn reach(&self, what: impl fmt::Display) {
        self.facts().reached.insert(what.to_string());
    }

    /// All covered cases.
    pub(crate) fn reached(&self) -> BTreeSet<String> {
        self.facts().reached.clone()
    }

    /// Number of fetches of a video.
    pub(crate) fn fetch_count(&self, video: &VideoId) -> u64 {
        self.facts().fetches.get(video).copied().unwrap_or(0)
    }
}
