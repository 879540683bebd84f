//! Asking the suppliers in order, and judging what they answer.

use std::{
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    time::Duration,
};

use tracing::Instrument as _;

use super::{
    Inner, Observer, Rest, Stage, SupplierHealth,
    errands::Errand,
    pace::Pace,
    suppliers::{Place, Seat},
};
use crate::{
    archive::KNOWN_TRACKS_MAX,
    supplier::{Ask, Supplied, SupplierKind, SupplyError, SupplyReason, Watcher},
    time::{Clock, Timestamp},
    transcript::{TrackInfo, TrackKind, Transcript, best_track},
    video::VideoId,
};

/// The most transcripts that one supply may bring: the wished one, the default, and some to spare.
const TRACKS_MAX: usize = 16;
/// How long a supplier that was called off may take to end.
const END_MAX: Duration = Duration::from_secs(1);

/// What is told when the time for the whole work is over.
const TOO_LONG: &str = "Fetching the transcript took too long.";

/// What came of asking the suppliers.
#[derive(Debug)]
pub(super) struct Supply {
    /// What the first one that had something gave, or the most telling failure.
    pub(super) result: Result<Supplied, SupplyError>,
    /// The names of those that were asked; all, when an answer is final for all.
    pub(super) asked: Vec<String>,
}

/// Tells a supplier whether its work is still wanted, and others how far it is.
#[derive(Debug)]
struct Wanted {
    video: VideoId,
    supplier: String,
    observer: Option<Arc<dyn Observer>>,
    pace: Arc<Pace>,
    clock: Arc<dyn Clock>,
    cancelled: AtomicBool,
}

impl Watcher for Wanted {
    fn stage(&self, name: &str, done: u64, of: u64) {
        tracing::debug!(stage = name, done, of, "supplier at work");
        self.pace.note(&self.supplier, name, (done, of), self.clock.now());
        if let Some(observer) = &self.observer {
            let (video, supplier, name) = (self.video.clone(), self.supplier.clone(), name.to_owned());
            observer.stage(Stage { video, supplier, name, done, of });
        }
    }

    fn cancelled(&self) -> bool {
        self.cancelled.load(Ordering::Relaxed)
    }
}

/// Sets the flag when the work is dropped, for suppliers that work on threads of their own.
struct CancelOnDrop(Arc<Wanted>);

impl Drop for CancelOnDrop {
    fn drop(&mut self) {
        self.0.cancelled.store(true, Ordering::Relaxed);
    }
}

impl Inner {
    /// Asks the platform's suppliers in order until one has a transcript or says something final.
    pub(super) async fn supply(&self, errand: &Errand, pace: &Arc<Pace>) -> Supply {
        let platform = errand.0.platform();
        let deadline = self.clock.now().plus(self.options.work);
        let mut failures = Vec::new();
        let mut asked = Vec::new();
        for seat in self.suppliers.of(platform) {
            // Who comes too late is not asked any more: the time is over for all that follow.
            if !failures.is_empty() && self.clock.now() >= deadline {
                failures.push(SupplyError::unasked(SupplyReason::Timeout, TOO_LONG));
                break;
            }
            let answer = self.turn(seat, errand, pace, deadline).await;
            if let (Some(observer), Err(failure)) = (&self.observer, &answer)
                && !failure.was_asked()
            {
                observer.asked(seat.asked(&answer, Duration::ZERO));
            }
            let failure = match answer {
                Ok(supplied) => return Supply { result: Ok(supplied), asked },
                Err(failure) => failure,
            };
            if failure.was_asked() {
                asked.push(seat.name.clone());
            }
            let reason = failure.reason().as_str();
            tracing::info!(supplier = %seat.name, video = %errand.0, reason, "no transcript");
            let is_final = failure.reason().is_final();
            failures.push(failure);
            if is_final {
                asked = self.suppliers.names(platform);
                break;
            }
        }
        let was_asked = failures.iter().any(SupplyError::was_asked);
        let failure = most_telling(failures);
        Supply { result: Err(if was_asked { failure.after_asking() } else { failure }), asked }
    }

    /// Asks one supplier, once it has a place, unless it rests; and learns how well it is.
    async fn turn(
        &self,
        seat: &Seat,
        errand: &Errand,
        pace: &Arc<Pace>,
        deadline: Timestamp,
    ) -> Result<Supplied, SupplyError> {
        // Nobody waits in line for one that rests.
        seat.check(self.clock.now())?;
        // Whoever gets a place at the end of their time would ask in vain.
        let patience = deadline.since(self.clock.now()) / 2;
        let place = tokio::time::timeout(patience, seat.place()).await.map_err(|_| seat.busy())?;
        let asking = seat.begin(&errand.0, self.clock.now())?;
        let ask = Ask { video: errand.0.clone(), wish: errand.1.clone(), deadline };
        // The place is kept until its answer is learnt: the next in line must not ask one that rests by then.
        let began = self.clock.now();
        let span = tracing::debug_span!("supplier", supplier = %seat.name, platform = %errand.0.platform());
        let (answer, _place) = self.ask(seat, ask, pace, place).instrument(span).await;
        let answer = answer.and_then(|supplied| judge(supplied, errand, seat));
        let now = self.clock.now();
        if let Some(health) = asking.end(&answer, now) {
            self.tell(health);
        }
        if let Some(observer) = &self.observer
            && answer.as_ref().err().is_none_or(SupplyError::was_asked)
        {
            observer.asked(seat.asked(&answer, now.since(began)));
        }
        answer
    }

    /// Tells who is to hear of a supplier's health.
    fn tell(&self, health: SupplierHealth) {
        let SupplierHealth { supplier, platform, rest } = &health;
        match rest {
            Some(Rest { reason, until, in_a_row }) => {
                let reason = reason.as_str();
                tracing::warn!(supplier, %platform, reason, %until, in_a_row, "a supplier rests");
            }
            None => tracing::info!(supplier, %platform, "a supplier works again"),
        }
        if let Some(observer) = &self.observer {
            observer.health(health);
        }
    }

    /// Asks one supplier, within the time for the whole work. A supplier that panics has failed. Gives the place
    /// back, unless the work was called off: then it ends with that.
    async fn ask(
        &self,
        seat: &Seat,
        ask: Ask,
        pace: &Arc<Pace>,
        place: Place,
    ) -> (Result<Supplied, SupplyError>, Option<Place>) {
        let wanted = Arc::new(Wanted {
            video: ask.video.clone(),
            supplier: seat.name.clone(),
            observer: self.observer.clone(),
            pace: Arc::clone(pace),
            clock: Arc::clone(&self.clock),
            cancelled: AtomicBool::new(false),
        });
        let _cancel = CancelOnDrop(Arc::clone(&wanted));
        let time = ask.deadline.since(self.clock.now());
        let had_time = time >= self.options.work / 4;
        pace.ask();
        let supplier = Arc::clone(&seat.supplier);
        // In a task of its own, so that a panic ends that task and not ours; dropping it ends it.
        let mut work = tokio::task::JoinSet::new();
        let supply = async move { (supplier.supply(ask, wanted).await, place) };
        work.spawn_on(supply.in_current_span(), self.here());
        match tokio::time::timeout(time, work.join_next()).await {
            // Suppliers give up by themselves a moment before they would be called off.
            Ok(Some(Ok((answer, place)))) => {
                (answer.map_err(|failure| hurried(failure, had_time)), Some(place))
            }
            Ok(_) => {
                let message = "The transcript's source broke down.";
                (Err(SupplyError::new(SupplyReason::PlatformFault, message)), None)
            }
            Err(_) => {
                // Nothing of it is left when whoever comes next asks the platform; unless it blocks its
                // thread, which must not block us.
                let _ = tokio::time::timeout(END_MAX, work.shutdown()).await;
                (Err(hurried(SupplyError::new(SupplyReason::Timeout, TOO_LONG), had_time)), None)
            }
        }
    }
}

/// The failure of one that ran out of time. Others before it may have used that up: then it says nothing of it.
fn hurried(failure: SupplyError, had_time: bool) -> SupplyError {
    if had_time || *failure.reason() != SupplyReason::Timeout { failure } else { failure.perhaps_the_video() }
}

/// Believes no supplier: what it gave must be of this video, a transcript within
/// bounds, say truly where its words are from, and answer the wish.
fn judge(supplied: Supplied, (video, wish, _): &Errand, seat: &Seat) -> Result<Supplied, SupplyError> {
    let unreadable = |what: &str| Err(SupplyError::new(SupplyReason::Unreadable, what));
    let Some(first) = supplied.tracks.first() else {
        return unreadable("The transcript's source answered without a transcript.");
    };
    if supplied.tracks.iter().any(|track| track.video != *video) {
        return Err(SupplyError::new(
            SupplyReason::OtherVideo,
            "The transcript's source answered about another video.",
        ));
    }
    if supplied.tracks.len() > TRACKS_MAX || supplied.known_tracks.len() > KNOWN_TRACKS_MAX {
        return unreadable("The transcript's source answered with more tracks than a video has.");
    }
    if let Some(error) = supplied.tracks.iter().find_map(|track| track.check().err()) {
        return unreadable(&format!("The transcript's source answered with what is no transcript: {error}."));
    }
    if let Some(what) = supplied.tracks.iter().find_map(|track| untrue(track, &seat.name, seat.kind)) {
        return unreadable(what);
    }
    if best_track([&first.track], wish).is_none() {
        return unreadable("The transcript's source answered in another language than asked.");
    }
    Ok(supplied)
}

/// What a transcript says of its words and cannot be true.
fn untrue(transcript: &Transcript, supplier: &str, of: SupplierKind) -> Option<&'static str> {
    let TrackInfo { kind, original, .. } = &transcript.track;
    // Another service names who answered there.
    if of != SupplierKind::Remote && transcript.source != supplier {
        Some("The transcript's source answered in the name of another one.")
    } else if of == SupplierKind::Speech && *kind != TrackKind::Generated {
        Some("The transcript's source calls words that it heard somebody's own.")
    } else if *kind == TrackKind::Translated && *original {
        Some("The transcript's source calls a machine's translation the original.")
    } else {
        None
    }
}

/// The failure to act on and to tell, of a supplier that was meant to answer, if any was: one that is final; else one that leaves the question open, since
/// "no captions" is true only when every supplier says so; else the last one's.
fn most_telling(mut failures: Vec<SupplyError>) -> SupplyError {
    if failures.iter().any(|failure| !failure.is_declined()) {
        failures.retain(|failure| !failure.is_declined());
    }
    let open = |failure: &&SupplyError| !failure.reason().is_about_the_video();
    failures
        .iter()
        .find(|failure| failure.reason().is_final())
        .or_else(|| failures.iter().find(open))
        .or_else(|| failures.iter().find(|failure| *failure.reason() != SupplyReason::NoCaptions))
        .or_else(|| failures.last())
        .cloned()
        .unwrap_or_else(|| {
            SupplyError::new(SupplyReason::Misconfigured, "No source of transcripts is configured.")
        })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{transcript::LanguageTag, video::Platform};

    fn check(reasons: &[SupplyReason], expect: SupplyReason) {
        let failures = reasons.iter().map(|reason| SupplyError::new(reason.clone(), "x")).collect();
        assert_eq!(*most_telling(failures).reason(), expect, "{reasons:?}");
    }

    #[test]
    fn what_cannot_be_true_of_words_is_not_believed() {
        use SupplierKind::{Captions, Remote, Speech};
        let check = |track: TrackKind, original, supplier, of, is_believed: bool| {
            let transcript = Transcript {
                video: VideoId::new(Platform::VideoSite, "dQw4w9WgXcQ").unwrap(),
                title: None,
                author: None,
                duration_ms: None,
                track: TrackInfo { original, ..TrackInfo::new(LanguageTag::english(), track) },
                source: "yt-dlp".to_owned(),
                segments: Vec::new(),
            };
            let wrong = untrue(&transcript, supplier, of);
            assert_eq!(wrong.is_none(), is_believed, "{track:?} {original} {supplier} {of:?}: {wrong:?}");
        };
        check(TrackKind::Human, true, "yt-dlp", Captions, true);
        check(TrackKind::Translated, false, "yt-dlp", Captions, true);
        check(TrackKind::Translated, true, "yt-dlp", Captions, false);
        check(TrackKind::Human, true, "youtube-captions", Captions, false);
        check(TrackKind::Human, true, "verbatim", Remote, true);
        check(TrackKind::Generated, true, "yt-dlp", Speech, true);
        check(TrackKind::Human, true, "yt-dlp", Speech, false);
        check(TrackKind::Translated, false, "yt-dlp", Speech, false);
    }

    #[test]
    fn who_was_not_meant_to_answer_leaves_nothing_open() {
        let declined = || SupplyError::declined(SupplyReason::Unreachable, "x");
        let none = || SupplyError::new(SupplyReason::NoCaptions, "x");
        for failures in [vec![none(), declined()], vec![declined(), none()]] {
            assert_eq!(*most_telling(failures).reason(), SupplyReason::NoCaptions);
        }
        assert_eq!(*most_telling(vec![declined()]).reason(), SupplyReason::Unreachable);
    }

    #[test]
    fn the_most_telling_failure_is_told() {
        use SupplyReason::{Age, BotCheck, Misconfigured, NoCaptions, Private, Timeout};
        check(&[NoCaptions], NoCaptions);
        check(&[NoCaptions, Timeout], Timeout);
        check(&[BotCheck, NoCaptions], BotCheck);
        check(&[Age, NoCaptions], Age);
        check(&[BotCheck, Private], Private);
        check(&[NoCaptions, NoCaptions], NoCaptions);
        check(&[], Misconfigured);
    }
}
