//! Archived transcripts that were asked for a moment ago.

use std::{
    collections::{HashMap, VecDeque},
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::Duration,
};

use tokio::time::Instant;
use transcript_core::{
    Result,
    archive::{self, StoredTranscript},
    transcript::{Segment, Transcript},
    video::VideoLink,
};

use crate::{Found, Get, GetOutcome, Verbatim};

/// For how long the archive's count of changes is believed: as long as another process's change may go unseen.
const FRESH: Duration = Duration::from_millis(50);
/// Longer links than anybody writes are not remembered.
const LINK_MAX: usize = 512;

/// A facade that has at hand what it read from the archive before, for programs that ask for the same again and again.
/// A clone has the same at hand.
///
/// What is at hand holds as long as the archive's count of changes stays as it was, which is read at most 50 ms
/// before it is relied on. Whoever changes the archive through the same facade calls [`AtHand::clear`].
#[derive(Clone, Debug)]
pub struct AtHand {
    parts: Verbatim,
    bytes_max: u64,
    kept: Arc<Mutex<Kept>>,
}

#[derive(Debug, Default)]
struct Kept {
    /// The archive's count of changes, and the moment before it was read.
    under: Option<(u64, Instant)>,
    transcripts: HashMap<Arc<Get>, (StoredTranscript, u64)>,
    /// Oldest first.
    order: VecDeque<Arc<Get>>,
    bytes: u64,
    /// Counts how often all of it was forgotten: what was read before is not kept after.
    times_cleared: u64,
}

impl Kept {
    fn is_fresh(&self) -> bool {
        self.under.is_some_and(|(_, read)| read.elapsed() < FRESH)
    }

    fn clear(&mut self) {
        *self = Self { times_cleared: self.times_cleared + 1, ..Self::default() };
    }

    /// Takes note of the archive's count of changes, which was read after that moment.
    fn look(&mut self, changes: u64, read: Instant) {
        if self.under.is_some_and(|(known, _)| known != changes) {
            self.clear();
        }
        self.under = Some((changes, read));
    }

    fn keep(&mut self, ask: Get, stored: &StoredTranscript, bytes_max: u64) {
        let bytes = room(&stored.transcript);
        if bytes > bytes_max || self.transcripts.contains_key(&ask) {
            return;
        }
        let ask = Arc::new(ask);
        self.transcripts.insert(Arc::clone(&ask), (stored.clone(), bytes));
        self.order.push_back(ask);
        self.bytes += bytes;
        while self.bytes > bytes_max {
            let Some((_, bytes)) = self.order.pop_front().and_then(|oldest| self.transcripts.remove(&oldest))
            else {
                return;
            };
            self.bytes = self.bytes.saturating_sub(bytes);
        }
    }
}

/// How much room a transcript takes, about.
fn room(transcript: &Transcript) -> u64 {
    let each = size_of::<Segment>() as u64 + 16;
    let words = transcript.segments.iter().map(|segment| segment.text.len() as u64 + each);
    words.sum::<u64>() + 1_024
}

impl AtHand {
    /// Nothing is at hand yet; later about this many bytes at most, the oldest out first.
    pub fn new(parts: Verbatim, bytes_max: u64) -> Self {
        Self { parts, bytes_max, kept: Arc::default() }
    }

    /// The facade itself.
    pub fn parts(&self) -> &Verbatim {
        &self.parts
    }

    /// What is at hand and holds for sure, without waiting for anything.
    pub fn peek(&self, ask: &Get) -> Option<StoredTranscript> {
        let kept = self.kept();
        let (stored, _) = kept.transcripts.get(ask).filter(|_| kept.is_fresh())?;
        Some(stored.clone())
    }

    /// As [`Verbatim::get`].
    ///
    /// # Errors
    /// As [`Verbatim::get`].
    pub async fn get(&self, ask: Get) -> Result<GetOutcome> {
        let Some(times_cleared) = self.look().await else { return self.parts.get(ask).await };
        let found = |stored| Ok(GetOutcome::Found(Found { stored, from_cache: true }));
        if let Some(stored) = self.peek(&ask) {
            return found(stored);
        }
        let Some(stored) = self.archived(&ask).await else { return self.parts.get(ask).await };
        self.keep(ask, &stored, times_cleared);
        found(stored)
    }

    /// Keeps what was read when all had been forgotten so often.
    fn keep(&self, ask: Get, stored: &StoredTranscript, times_cleared: u64) {
        let mut kept = self.kept();
        if kept.times_cleared == times_cleared && ask.link.len() <= LINK_MAX {
            kept.keep(ask, stored, self.bytes_max);
        }
    }

    /// Forgets what is at hand: something was changed.
    pub fn clear(&self) {
        self.kept().clear();
    }

    /// Sees to it that the count of changes was read a moment ago; none when it cannot be read.
    async fn look(&self) -> Option<u64> {
        {
            let kept = self.kept();
            if kept.is_fresh() {
                return Some(kept.times_cleared);
            }
        }
        let read = Instant::now();
        let changes = self.parts.transcripts().changes().await.ok()?;
        let mut kept = self.kept();
        kept.look(changes, read);
        Some(kept.times_cleared)
    }

    /// What the archive has for a wish. Where it has none, or fails, `get` finds out what that means.
    async fn archived(&self, ask: &Get) -> Option<StoredTranscript> {
        let wish = ask.wish().ok()?;
        let Ok(VideoLink::Video(video)) = VideoLink::parse(&ask.link) else { return None };
        match self.parts.transcripts().find(&video, &wish).await {
            Ok(archive::Found::Transcript(stored)) => Some(stored),
            _ => None,
        }
    }

    fn kept(&self) -> MutexGuard<'_, Kept> {
        // Nothing in it can panic half way.
        self.kept.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests;
