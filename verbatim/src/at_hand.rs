//! Archived transcripts that were asked for a moment ago.

use std::{
    collections::{HashMap, VecDeque},
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::Duration,
};

use tokio::time::Instant;
use transcript_core::{
    archive::{self, StoredTranscript, Unread},
    transcript::{Segment, Transcript},
    video::VideoLink,
};

use crate::{Get, Verbatim};

mod passed;
mod shelved;

use passed::Passed;
use shelved::Left;
pub use shelved::Shelved;

/// For how long the archive's count of changes is believed: as long as another process's change may go unseen.
const FRESH: Duration = Duration::from_millis(50);
/// Longer links than anybody writes are not remembered.
const LINK_MAX: usize = 512;

/// A facade that has at hand what it found in the archive before, for programs that ask for the same again and again.
/// A clone has the same at hand.
///
/// A transcript is kept when it is asked for a second time before others have passed that would have taken up all the room:
/// whoever goes through a list pushes nothing out, and reads into memory that the processor has at hand.
///
/// Where the archive can leave a transcript unread, it stays so until somebody looks at its words: a file that only
/// passes through is never decompressed, and takes a fraction of the room. What is at hand holds as long as the archive's count of changes stays as it was, which is read at most 50 ms
/// before it is relied on. Whoever changes the archive through the same facade calls [`AtHand::clear`].
#[derive(Clone, Debug)]
pub struct AtHand {
    parts: Arc<Verbatim>,
    kept: Arc<Mutex<Kept>>,
}

#[derive(Debug, Default)]
struct Kept {
    /// The archive's count of changes, and the moment before it was read.
    under: Option<(u64, Instant)>,
    transcripts: HashMap<Arc<Get>, (Form, u64)>,
    /// Oldest first.
    order: VecDeque<Arc<Get>>,
    bytes: u64,
    bytes_max: u64,
    passed: Passed,
    /// Counts how often all of it was forgotten: what was read before is not kept after.
    times_cleared: u64,
}

/// How a transcript is at hand.
#[derive(Clone, Debug)]
enum Form {
    Read(StoredTranscript),
    Unread(Arc<dyn Unread>),
}

impl Form {
    /// How much room it takes, about.
    fn room(&self) -> u64 {
        match self {
            Self::Read(stored) => room(&stored.transcript),
            Self::Unread(unread) => unread.bytes(),
        }
    }
}

impl Kept {
    fn is_fresh(&self) -> bool {
        self.under.is_some_and(|(_, read)| read.elapsed() < FRESH)
    }

    fn clear(&mut self) {
        let (times_cleared, passed) = (self.times_cleared + 1, std::mem::take(&mut self.passed));
        *self = Self { times_cleared, passed, bytes_max: self.bytes_max, ..Self::default() };
    }

    /// Takes note of the archive's count of changes, which was read after that moment. What was read before is known
    /// better already.
    fn look(&mut self, changes: u64, read: Instant) {
        if let Some((known, known_since)) = self.under {
            if read < known_since {
                return;
            }
            if known != changes {
                self.clear();
            }
        }
        self.under = Some((changes, read));
    }

    fn keep(&mut self, ask: Arc<Get>, form: Form) {
        let bytes = form.room();
        if bytes > self.bytes_max || ask.link.len() > LINK_MAX {
            return;
        }
        if !self.passed.again(&*ask, bytes, self.bytes_max) || self.transcripts.contains_key(&ask) {
            return;
        }
        self.transcripts.insert(Arc::clone(&ask), (form, bytes));
        self.order.push_back(ask);
        self.bytes += bytes;
        self.make_room();
    }

    /// What is at hand unread is from now on at hand as it was read.
    fn was_read(&mut self, ask: &Get, unread: &Arc<dyn Unread>, stored: &StoredTranscript) {
        let form = Form::Read(stored.clone());
        let more = form.room();
        match self.transcripts.get_mut(ask) {
            Some((known @ Form::Unread(_), bytes)) if more <= self.bytes_max => {
                if !matches!(known, Form::Unread(known) if Arc::ptr_eq(known, unread)) {
                    return;
                }
                *known = form;
                self.bytes = self.bytes.saturating_sub(*bytes) + more;
                *bytes = more;
            }
            _ => return,
        }
        self.make_room();
    }

    fn make_room(&mut self) {
        while self.bytes > self.bytes_max {
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
        Self { parts: Arc::new(parts), kept: Arc::new(Mutex::new(Kept { bytes_max, ..Kept::default() })) }
    }

    /// The facade itself.
    pub fn parts(&self) -> &Verbatim {
        &self.parts
    }

    /// What is at hand and holds for sure, without waiting for anything.
    pub fn peek(&self, ask: &Get) -> Option<Shelved> {
        let kept = self.kept();
        let (ask, (form, _)) = kept.transcripts.get_key_value(ask).filter(|_| kept.is_fresh())?;
        Some(self.archived_as(ask, form.clone()))
    }

    /// What is archived for exactly this, at hand or in the archive. Where there is none, or the archive fails,
    /// [`Verbatim::get`] finds out what that means.
    ///
    /// It may be awaited on any executor; what can be left unread takes one read of the archive.
    pub async fn archived(&self, ask: &Arc<Get>) -> Option<Shelved> {
        let (is_known, times_cleared) = {
            let kept = self.kept();
            (kept.transcripts.contains_key(ask), kept.times_cleared)
        };
        if is_known
            && self.look().await.is_some()
            && let Some(archived) = self.peek(ask)
        {
            return Some(archived);
        }
        let wish = ask.wish().ok()?;
        let Ok(VideoLink::Video(video)) = VideoLink::parse(&ask.link) else { return None };
        let begun = Instant::now();
        let ask = Arc::clone(ask);
        if let Some(unread) = self.parts.transcripts().unread(&video, &wish).await.ok()? {
            let changes = Some((unread.changes(), begun));
            return Some(self.keep(ask, Form::Unread(unread), times_cleared, changes));
        }
        let times_cleared = self.look().await?;
        match self.parts.transcripts().find(&video, &wish).await {
            Ok(archive::Found::Transcript(stored)) => {
                Some(self.keep(ask, Form::Read(stored), times_cleared, None))
            }
            _ => None,
        }
    }

    /// Keeps what was found when all had been forgotten so often, and takes note of the count of changes that came
    /// along, and from when that is.
    fn keep(
        &self,
        ask: Arc<Get>,
        form: Form,
        times_cleared: u64,
        changes: Option<(u64, Instant)>,
    ) -> Shelved {
        let mut kept = self.kept();
        let is_untouched = kept.times_cleared == times_cleared;
        if let Some((changes, read)) = changes {
            kept.look(changes, read);
        }
        // With a count that is older than the known one, it may be older than the last change, too.
        let is_newest = changes.is_none_or(|(_, read)| kept.under.is_some_and(|(_, known)| known == read));
        if is_untouched && is_newest {
            kept.keep(Arc::clone(&ask), form.clone());
        }
        drop(kept);
        self.archived_as(&ask, form)
    }

    fn archived_as(&self, ask: &Arc<Get>, form: Form) -> Shelved {
        match form {
            Form::Read(stored) => Shelved::read_before(stored),
            Form::Unread(unread) => {
                Shelved::left(Left { unread, at: Arc::downgrade(&self.kept), ask: Arc::clone(ask) })
            }
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

    fn kept(&self) -> MutexGuard<'_, Kept> {
        // Nothing in it can panic half way.
        self.kept.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests;
