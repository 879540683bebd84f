//! The oracle: knows what must hold (design 6), and looks after every step whether it does.
//!
//! It reads the stores behind the gate, so nothing that it does fails or takes time. What it finds wrong
//! it writes down, since it speaks inside tasks whose panics nobody would hear.

mod accounts;
mod books;
mod shelves;
mod visits;

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
    archive::{Archive, StoredTranscript, Wish},
    directory::Directory,
    ids::WalletId,
    ledger::{Balance, Entry, Ledger},
    transcript::Transcript,
    video::VideoId,
};

pub(crate) use accounts::{CallEnd, PaidCall};
pub(crate) use shelves::wishes;
pub(crate) use visits::{Visit, VisitEnd};

/// What the oracle knows.
#[derive(Debug)]
pub(crate) struct Oracle {
    archive: Arc<dyn Archive>,
    ledger: Arc<dyn Ledger>,
    directory: Arc<dyn Directory>,
    limits: Limits,
    facts: Mutex<Facts>,
    /// Whether clocks are so wrong that a lease ends for one server while it lasts for another.
    clocks_part: AtomicBool,
}

/// What may be spent in one bucket.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Limits {
    pub(crate) key: u64,
    pub(crate) service: u64,
    /// Of an account on the free plan, in a month.
    pub(crate) free_account: u64,
}

#[derive(Debug, Default)]
struct Facts {
    wrongs: Vec<String>,
    /// How many transcripts suppliers gave in all.
    supplies: u64,
    /// What suppliers gave for a video.
    given: BTreeMap<VideoId, Vec<Transcript>>,
    /// How often suppliers were asked, and how often they gave something, for a video.
    asks: BTreeMap<VideoId, u64>,
    gifts: BTreeMap<VideoId, u64>,
    /// Who fetches now.
    flights: BTreeMap<(VideoId, Wish), u64>,
    /// Everything that was ever archived.
    kept: Vec<StoredTranscript>,
    /// What of it was not forgotten since, and so must be there.
    shelved: Vec<StoredTranscript>,
    /// What was done, and what was answered, at least once.
    reached: BTreeSet<String>,
    /// The wallets as they were looked through last.
    books: BTreeMap<WalletId, (Balance, Arc<[Entry]>)>,
    /// How the look-ups with a key ended, by wallet and video.
    visits: BTreeMap<(WalletId, VideoId), visits::Tally>,
    /// What is known of each account, by its wallet.
    accounts: BTreeMap<WalletId, accounts::Known>,
}

/// A fetch under way; it ends when this is dropped.
#[derive(Debug)]
pub(crate) struct Flying {
    oracle: Arc<Oracle>,
    key: (VideoId, Wish),
}

impl Drop for Flying {
    fn drop(&mut self) {
        let mut facts = self.oracle.facts();
        if let Some(count) = facts.flights.get_mut(&self.key) {
            *count -= 1;
        }
    }
}

/// What a call to an in-memory store answers: at once.
fn now<T>(call: impl Future<Output = transcript_core::Result<T>>) -> T {
    call.now_or_never().expect("a store in memory answers at once").expect("a store in memory does not fail")
}

impl Oracle {
    pub(crate) fn new(
        (archive, ledger, directory): (Arc<dyn Archive>, Arc<dyn Ledger>, Arc<dyn Directory>),
        limits: Limits,
    ) -> Self {
        Self {
            archive,
            ledger,
            directory,
            limits,
            facts: Mutex::default(),
            clocks_part: AtomicBool::new(false),
        }
    }

    /// From now on some clock is wrong by more than a lease can bear: several may fetch the same at a time. For money
    /// that is no excuse.
    pub(crate) fn clocks_part(&self) {
        self.clocks_part.store(true, Ordering::Relaxed);
    }

    fn facts(&self) -> MutexGuard<'_, Facts> {
        self.facts.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Notes something that must not be.
    pub(crate) fn wrong(&self, what: impl fmt::Display) {
        let mut facts = self.facts();
        // The first ones tell; the rest only repeat them.
        if facts.wrongs.len() < 20 {
            facts.wrongs.push(what.to_string());
        }
    }

    /// Everything that was wrong.
    pub(crate) fn wrongs(&self) -> Vec<String> {
        self.facts().wrongs.clone()
    }

    /// Checks what must hold after a step of this name.
    pub(crate) fn step(&self, call: &str) {
        match call {
            "ledger.hold" | "ledger.spend" | "ledger.extend" | "ledger.settle" | "ledger.expire"
            | "ledger.grant" => {
                self.check_books();
            }
            "archive.keep" | "archive.keep_absence" | "archive.forget" | "archive.withdraw" => {
                self.check_shelves();
            }
            _ => {}
        }
    }

    /// A number for the next transcript that a supplier makes.
    pub(crate) fn next_supply(&self) -> u64 {
        let mut facts = self.facts();
        facts.supplies += 1;
        facts.supplies
    }

    /// A supplier is asked: by one worker at a time.
    pub(crate) fn asked(self: &Arc<Self>, video: &VideoId, wish: &Wish) -> Flying {
        let key = (video.clone(), wish.clone());
        let mut facts = self.facts();
        *facts.asks.entry(video.clone()).or_default() += 1;
        let flying = facts.flights.entry(key.clone()).or_default();
        *flying += 1;
        let count = *flying;
        drop(facts);
        if count > 1 && !self.clocks_part.load(Ordering::Relaxed) {
            self.wrong(format_args!("{count} fetches of {video} {wish} at a time"));
        }
        Flying { oracle: Arc::clone(self), key }
    }

    /// A supplier gave this.
    pub(crate) fn supplied(&self, video: &VideoId, tracks: &[Transcript]) {
        let mut facts = self.facts();
        if !tracks.is_empty() {
            *facts.gifts.entry(video.clone()).or_default() += 1;
        }
        facts.given.entry(video.clone()).or_default().extend_from_slice(tracks);
    }

    /// Notes that a simulation comes this way.
    pub(crate) fn reach(&self, what: impl fmt::Display) {
        self.facts().reached.insert(what.to_string());
    }

    /// Everything that a simulation came to.
    pub(crate) fn reached(&self) -> BTreeSet<String> {
        self.facts().reached.clone()
    }

    /// How often suppliers were asked for a video.
    pub(crate) fn asks(&self, video: &VideoId) -> u64 {
        self.facts().asks.get(video).copied().unwrap_or(0)
    }
}
