//! Calls the suppliers in order and validates their output.

use std::{
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    time::Duration,
};

use tokio::task::{JoinError, JoinSet};
use tracing::Instrument as _;

use super::{
    BreakerEvent, Cooldown, EngineInner, EngineObserver, FetchStage, QueueOwner,
    fair_queue::QueueFull,
    progress::ProgressTracker,
    single_flight::FlightKey,
    supplier_pool::{SupplierPermit, SupplierSlot},
};
use crate::{
    archive::{KNOWN_TRACKS_MAX, TrackSelector},
    error::ErrorCause,
    supplier::{SupplierKind, SupplyError, SupplyMonitor, SupplyOutput, SupplyReason, SupplyRequest},
    time::{Clock, Timestamp},
    transcript::{LanguageTag, TrackInfo, TrackKind, Transcript, best_track},
    video::VideoId,
};

/// The most transcripts of one supply: the requested one, the default, and some spare.
const SUPPLIED_TRACKS_MAX: usize = 16;
/// How long a cancelled supplier may take to end.
const CANCEL_TIMEOUT: Duration = Duration::from_secs(1);

/// Message when the time for the whole fetch is over.
const TIMEOUT_MESSAGE: &str = "Fetching the transcript took too long.";

/// Result of calling the suppliers of a video.
#[derive(Debug)]
pub(super) struct SupplyResult {
    /// The output of the first supplier that had a transcript, or the most significant failure.
    pub(super) result: Result<SupplyOutput, SupplyError>,
    /// The suppliers that reached an upstream, or whose result is known; all if a failure is final for all.
    pub(super) suppliers_tried: Vec<String>,
    /// When to retry if too many fetches wait for a supplier. No further supplier is called then.
    pub(super) refused: Option<Duration>,
}

/// Why one supplier gave no transcript.
enum CallFailure {
    Failed(SupplyError),
    Refused(QueueFull),
}

impl From<SupplyError> for CallFailure {
    fn from(failure: SupplyError) -> Self {
        Self::Failed(failure)
    }
}

impl From<QueueFull> for CallFailure {
    fn from(full: QueueFull) -> Self {
        Self::Refused(full)
    }
}

/// The monitor of one supplier call: reports progress, and whether the work is cancelled.
#[derive(Debug)]
struct CallMonitor {
    video: VideoId,
    supplier: String,
    observer: Option<Arc<dyn EngineObserver>>,
    tracker: Arc<ProgressTracker>,
    clock: Arc<dyn Clock>,
    cancelled: AtomicBool,
}

impl SupplyMonitor for CallMonitor {
    fn report_progress(&self, name: &str, done: u64, of: u64) {
        tracing::debug!(stage = name, done, of, "supplier progress reported");
        self.tracker.record(&self.supplier, name, (done, of), self.clock.now());
        if let Some(observer) = &self.observer {
            let (video, supplier, name) = (self.video.clone(), self.supplier.clone(), name.to_owned());
            observer.on_stage(FetchStage { video, supplier, name, done, total: of });
        }
    }

    fn is_cancelled(&self) -> bool {
        self.cancelled.load(Ordering::Relaxed)
    }
}

/// Sets the flag when the work is dropped, for suppliers that work on their own threads.
struct CancelOnDrop(Arc<CallMonitor>);

impl Drop for CancelOnDrop {
    fn drop(&mut self) {
        self.0.cancelled.store(true, Ordering::Relaxed);
    }
}

impl EngineInner {
    /// Calls the platform's suppliers in order until one has a transcript or fails for all.
    pub(super) async fn supply(
        &self,
        key: &FlightKey,
        tracker: &Arc<ProgressTracker>,
        owner: &QueueOwner,
    ) -> SupplyResult {
        let platform = key.0.platform();
        let deadline = self.clock.now().plus(self.options.work_timeout);
        let mut failures = Vec::new();
        let mut suppliers_tried = Vec::new();
        let mut refused = None;
        for slot in self.suppliers.for_platform(platform) {
            // After the deadline no further supplier is called, unless none was called at all.
            if !failures.is_empty() && self.clock.now() >= deadline {
                failures.push(SupplyError::before_request(SupplyReason::Timeout, TIMEOUT_MESSAGE));
                break;
            }
            if slot.kind == SupplierKind::Speech && is_spoken_otherwise(&failures, &key.1) {
                // Its result is known: the absence is valid for it, too.
                suppliers_tried.push(slot.name.clone());
                continue;
            }
            let failure = match self.try_supplier(slot, key, tracker, (deadline, owner)).await {
                Ok(supplied) => return SupplyResult { result: Ok(supplied), suppliers_tried, refused },
                Err(CallFailure::Refused(QueueFull)) => {
                    failures.push(slot.busy_error());
                    refused = Some(slot.retry_after());
                    break;
                }
                Err(CallFailure::Failed(failure)) => failure,
            };
            if failure.was_attempted() {
                suppliers_tried.push(slot.name.clone());
            } else if let Some(observer) = &self.observer {
                observer.on_supplier_call(slot.call_record(Some(&failure), Duration::ZERO));
            }
            let (reason, message) = (failure.reason().as_str(), failure.message());
            tracing::info!(supplier = %slot.name, video = %key.0, reason, message, "supplier returned no transcript");
            let is_final = failure.reason().is_final();
            failures.push(failure);
            if is_final {
                suppliers_tried = self.suppliers.names(platform);
                break;
            }
        }
        let was_attempted = failures.iter().any(SupplyError::was_attempted);
        let failure = most_significant(failures);
        SupplyResult {
            result: Err(if was_attempted { failure.mark_attempted() } else { failure }),
            suppliers_tried,
            refused,
        }
    }

    /// Calls one supplier after acquiring a permit, unless its breaker is open; records the health signal.
    async fn try_supplier(
        &self,
        slot: &SupplierSlot,
        key: &FlightKey,
        tracker: &Arc<ProgressTracker>,
        (deadline, owner): (Timestamp, &QueueOwner),
    ) -> Result<SupplyOutput, CallFailure> {
        // Do not queue for a supplier with an open breaker.
        slot.check(self.clock.now())?;
        // A permit that arrives after half of the remaining time would leave too little for the call.
        let permit_timeout = deadline.since(self.clock.now()) / 2;
        let acquired = tokio::time::timeout(permit_timeout, slot.acquire(owner)).await;
        let permit = acquired.map_err(|_| slot.busy_error())??;
        let guard = slot.begin(&key.0, self.clock.now())?;
        let request = SupplyRequest { video: key.0.clone(), selector: key.1.clone(), deadline };
        // The permit is held until the health signal is recorded: the next request in the queue must see an open
        // breaker.
        let started_at = self.clock.now();
        #[expect(
            clippy::disallowed_methods,
            reason = "an estimate of waiting, which a clock that is set would falsify"
        )]
        let started = tokio::time::Instant::now();
        let span = tracing::debug_span!("supplier", supplier = %slot.name, platform = %key.0.platform());
        let (answer, _permit) = self.call_supplier(slot, request, tracker, permit).instrument(span).await;
        slot.record_call(started.elapsed());
        let classify = |failure| classify_invalid(failure, slot.supplier.is_custom());
        let answer = answer.and_then(|supplied| validate(supplied, key, slot).map_err(classify));
        let now = self.clock.now();
        if let Some(event) = guard.end(&answer, now) {
            self.report_event(event);
        }
        let failure = answer.as_ref().err();
        if let Some(observer) = &self.observer
            && failure.is_none_or(SupplyError::was_attempted)
        {
            observer.on_supplier_call(slot.call_record(failure, now.since(started_at)));
        }
        answer.map_err(CallFailure::Failed)
    }

    /// Logs a breaker event and passes it to the observer.
    fn report_event(&self, event: BreakerEvent) {
        let BreakerEvent { supplier, platform, cooldown } = &event;
        match cooldown {
            Some(Cooldown { reason, expires_at: until, consecutive }) => {
                let reason = reason.as_str();
                tracing::warn!(supplier, %platform, reason, %until, consecutive, "breaker opened");
            }
            None => tracing::info!(supplier, %platform, "breaker closed"),
        }
        if let Some(observer) = &self.observer {
            observer.on_breaker(event);
        }
    }

    /// Calls one supplier, within the time for the whole fetch. A panic is a defect of the supplier.
    ///
    /// Returns the permit, unless the call was cancelled: then it is released with the call.
    async fn call_supplier(
        &self,
        slot: &SupplierSlot,
        request: SupplyRequest,
        tracker: &Arc<ProgressTracker>,
        permit: SupplierPermit,
    ) -> (Result<SupplyOutput, SupplyError>, Option<SupplierPermit>) {
        let monitor = Arc::new(CallMonitor {
            video: request.video.clone(),
            supplier: slot.name.clone(),
            observer: self.observer.clone(),
            tracker: Arc::clone(tracker),
            clock: Arc::clone(&self.clock),
            cancelled: AtomicBool::new(false),
        });
        let _cancel = CancelOnDrop(Arc::clone(&monitor));
        let time = request.deadline.since(self.clock.now());
        let had_enough_time = time >= self.options.work_timeout / 4;
        tracker.mark_started();
        let supplier = Arc::clone(&slot.supplier);
        // In its own task, so that a panic ends only that task; dropping the set ends it.
        let mut work = JoinSet::new();
        let supply = async move { (supplier.supply(request, monitor).await, permit) };
        work.spawn_on(supply.in_current_span(), self.current_runtime());
        match tokio::time::timeout(time, work.join_next()).await {
            // Suppliers give up shortly before the deadline, so they are rarely cancelled here.
            Ok(Some(Ok((answer, permit)))) => {
                (answer.map_err(|failure| classify_timeout(failure, had_enough_time)), Some(permit))
            }
            Ok(ended) => {
                let message = "The transcript source failed unexpectedly.";
                let failure = SupplyError::new(SupplyReason::PlatformFault, message);
                let panic = ended.and_then(Result::err).filter(JoinError::is_panic);
                let failure = match panic {
                    Some(panic) => failure.defect().with_cause(ErrorCause::new(panic)),
                    None => failure,
                };
                (Err(failure), None)
            }
            Err(_) => {
                // Wait for the call to end, so that it no longer uses the platform during the next attempt. A supplier
                // that blocks its thread must not block this task.
                let _ = tokio::time::timeout(CANCEL_TIMEOUT, work.shutdown()).await;
                (
                    Err(classify_timeout(
                        SupplyError::new(SupplyReason::Timeout, TIMEOUT_MESSAGE),
                        had_enough_time,
                    )),
                    None,
                )
            }
        }
    }
}

/// A timeout after too little time is ambiguous: suppliers before this one may have used the time up.
fn classify_timeout(failure: SupplyError, had_enough_time: bool) -> SupplyError {
    if had_enough_time || *failure.reason() != SupplyReason::Timeout { failure } else { failure.ambiguous() }
}

/// Invalid output of a custom supplier is a defect of its code, unless it describes the video.
fn classify_invalid(failure: SupplyError, is_custom: bool) -> SupplyError {
    match is_custom && !failure.reason().is_about_video() {
        true => SupplyError::new(SupplyReason::PlatformFault, failure.message()).defect(),
        false => failure,
    }
}

/// Validates a supplier's output, which is untrusted.
///
/// The transcripts must be of this video, within limits, with true track information, and match the selector.
fn validate(
    supplied: SupplyOutput,
    (video, selector, _): &FlightKey,
    slot: &SupplierSlot,
) -> Result<SupplyOutput, SupplyError> {
    let unreadable = |what: &str| Err(SupplyError::new(SupplyReason::Unreadable, what));
    let Some(first) = supplied.transcripts.first() else {
        return unreadable("The transcript source returned no transcript.");
    };
    if supplied.transcripts.iter().any(|track| track.video != *video) {
        return Err(SupplyError::new(
            SupplyReason::OtherVideo,
            "The transcript source returned another video.",
        ));
    }
    if supplied.transcripts.len() > SUPPLIED_TRACKS_MAX || supplied.known_tracks.len() > KNOWN_TRACKS_MAX {
        return unreadable("The transcript source returned too many tracks.");
    }
    if let Some(error) = supplied.transcripts.iter().find_map(|track| track.check().err()) {
        return unreadable(&format!("The transcript source returned an invalid transcript: {error}."));
    }
    let has_text = |track: &Transcript| track.segments.iter().any(|segment| !segment.text.trim().is_empty());
    if !supplied.transcripts.iter().all(has_text) {
        return unreadable("The transcript source returned a transcript without text.");
    }
    if let Some(what) =
        supplied.transcripts.iter().find_map(|track| false_track_info(track, &slot.name, slot.kind))
    {
        return unreadable(what);
    }
    if best_track([&first.track], selector).is_none() {
        return match selector.takes(first.track.kind) {
            true => unreadable("The transcript source returned a different language than requested."),
            false => Err(translation_only_error(&first.track, &supplied.known_tracks)),
        };
    }
    Ok(supplied)
}

/// The error for a machine translation that was not requested.
fn translation_only_error(track: &TrackInfo, known: &[TrackInfo]) -> SupplyError {
    let tracks = known.iter().filter(|track| track.kind != TrackKind::Translated).cloned().collect();
    let message = format!("The video has no transcript in {}, only a machine translation.", track.language);
    SupplyError::new(SupplyReason::NoLanguage(tracks), message)
}

/// Why a transcript's track information cannot be true; `None` if it can.
fn false_track_info(transcript: &Transcript, supplier: &str, of: SupplierKind) -> Option<&'static str> {
    let TrackInfo { language, kind, original, .. } = &transcript.track;
    // A remote server names the supplier that it used itself.
    if of != SupplierKind::Remote && transcript.source != supplier {
        Some("The transcript source returned a transcript of a different source.")
    } else if !LanguageTag::parse(language.as_str()).is_ok_and(|tag| tag == *language) {
        // No request could name it.
        Some("The transcript source returned a transcript whose language is not a language tag.")
    } else if of == SupplierKind::Speech && *kind != TrackKind::Generated {
        Some("The transcript source labelled recognized speech as human captions.")
    } else if *kind == TrackKind::Translated && *original {
        Some("The transcript source labelled a machine translation as the original.")
    } else {
        None
    }
}

/// Whether a supplier knows that the original track of the video is in another language than the selected one.
///
/// Recognised speech is in the language of that track.
fn is_spoken_otherwise(failures: &[SupplyError], selector: &TrackSelector) -> bool {
    let Some(selected) = selector.language() else { return false };
    let is_other =
        |track: &TrackInfo| track.language != LanguageTag::unknown() && !selected.matches(&track.language);
    failures.iter().any(|failure| match failure.reason() {
        SupplyReason::NoLanguage(tracks) => {
            let mut original = tracks.iter().filter(|track| track.original).peekable();
            original.peek().is_some() && original.all(is_other)
        }
        _ => false,
    })
}

/// The failure to act on and to report, of the suppliers that did not decline, if there are any.
///
/// A final one; else one that does not describe the video, since "no captions" is true only if every supplier
/// reports it; among these a defect comes last, since a retry does not help it; else the last one, with the shortest
/// wait that any of them names.
pub(super) fn most_significant(mut failures: Vec<SupplyError>) -> SupplyError {
    if failures.iter().any(|failure| !failure.is_declined()) {
        failures.retain(|failure| !failure.is_declined());
    }
    let is_undecided = |failure: &&SupplyError| !failure.reason().is_about_video();
    failures
        .iter()
        .find(|failure| failure.reason().is_final())
        .or_else(|| failures.iter().find(|failure| is_undecided(failure) && !failure.is_defect()))
        .or_else(|| failures.iter().find(is_undecided))
        .cloned()
        .or_else(|| {
            let last = failures.iter().find(|failure| *failure.reason() != SupplyReason::NoCaptions);
            let last = last.or(failures.last())?.clone();
            // A retry after a wait must reach the supplier that named it.
            match failures.iter().filter_map(SupplyError::retry_after).min() {
                Some(wait) => Some(last.with_retry_after(wait)),
                None => Some(last),
            }
        })
        .unwrap_or_else(|| {
            SupplyError::new(SupplyReason::Misconfigured, "No transcript source is configured.")
        })
}

#[cfg(test)]
mod tests {
    use super::{super::refresh_tests, *};
    use crate::transcript::test_transcript;

    fn check(reasons: &[SupplyReason], expect: SupplyReason) {
        let failures = reasons.iter().map(|reason| SupplyError::new(reason.clone(), "x")).collect();
        assert_eq!(*most_significant(failures).reason(), expect, "{reasons:?}");
    }

    #[test]
    fn supply_false_track_info_is_rejected() {
        use SupplierKind::{Captions, Remote, Speech};
        let check = |track: TrackKind, original, supplier, of, is_valid: bool| {
            let transcript = Transcript {
                track: TrackInfo { original, ..TrackInfo::new(LanguageTag::english(), track) },
                source: "yt-dlp".to_owned(),
                ..test_transcript(Vec::new())
            };
            let wrong = false_track_info(&transcript, supplier, of);
            assert_eq!(wrong.is_none(), is_valid, "{track:?} {original} {supplier} {of:?}: {wrong:?}");
        };
        check(TrackKind::Human, true, "yt-dlp", Captions, true);
        check(TrackKind::Translated, false, "yt-dlp", Captions, true);
        check(TrackKind::Translated, true, "yt-dlp", Captions, false);
        check(TrackKind::Human, true, "youtube-captions", Captions, false);
        check(TrackKind::Human, true, "verbatim", Remote, true);
        check(TrackKind::Generated, true, "yt-dlp", Speech, true);
        check(TrackKind::Human, true, "yt-dlp", Speech, false);
        check(TrackKind::Translated, false, "yt-dlp", Speech, false);
        for (tag, is_valid) in [("en", true), ("pt-BR", true), ("English", false), ("en_US", false)] {
            let transcript = Transcript {
                track: TrackInfo::new(LanguageTag::from_canonical(tag), TrackKind::Human),
                ..refresh_tests::transcript("x")
            };
            assert_eq!(false_track_info(&transcript, "words", Captions).is_none(), is_valid, "{tag}");
        }
    }

    #[test]
    fn supply_declined_failure_yields_to_other_failures() {
        let declined = || SupplyError::declined(SupplyReason::Unreachable, "x");
        let none = || SupplyError::new(SupplyReason::NoCaptions, "x");
        for failures in [vec![none(), declined()], vec![declined(), none()]] {
            assert_eq!(*most_significant(failures).reason(), SupplyReason::NoCaptions);
        }
        assert_eq!(*most_significant(vec![declined()]).reason(), SupplyReason::Unreachable);
    }

    #[test]
    fn supply_defect_yields_to_failure_that_may_pass() {
        let defect = || SupplyError::new(SupplyReason::PlatformFault, "x").defect();
        let none = || SupplyError::new(SupplyReason::NoCaptions, "x");
        let throttled = || SupplyError::new(SupplyReason::Throttled(None), "x");
        for failures in [vec![defect(), throttled()], vec![throttled(), defect()]] {
            assert_eq!(most_significant(failures), throttled());
        }
        // It leaves open whether the video has captions.
        assert_eq!(most_significant(vec![none(), defect()]), defect());
    }

    #[test]
    fn supply_invalid_output_of_custom_supplier_is_defect() {
        for reason in [SupplyReason::OtherVideo, SupplyReason::Unreadable] {
            let classify = |of| classify_invalid(SupplyError::new(reason.clone(), "x"), of);
            assert!(classify(true).is_defect() && !classify(true).counts_against_supplier());
            assert_eq!(classify(false), SupplyError::new(reason.clone(), "x"));
        }
    }

    #[test]
    fn supply_absence_of_several_has_shortest_wait() {
        let none = || SupplyError::new(SupplyReason::NoCaptions, "x");
        let waits = |secs| none().with_retry_after(Duration::from_secs(secs));
        for failures in [vec![waits(60), none()], vec![none(), waits(60)], vec![waits(60), waits(90)]] {
            assert_eq!(most_significant(failures), waits(60));
        }
    }

    #[test]
    fn supply_most_significant_failure_is_reported() {
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
