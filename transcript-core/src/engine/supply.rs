//! Asking the suppliers in order, and judging what they answer.

use std::{
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    time::Duration,
};

use super::{Inner, Observer, Stage, errands::Errand};
use crate::{
    archive::KNOWN_TRACKS_MAX,
    supplier::{Ask, Supplied, Supplier, SupplyError, SupplyReason, Watcher},
    transcript::best_track,
    video::VideoId,
};

/// The most transcripts that one supply may bring: the wished one, the default, and some to spare.
const TRACKS_MAX: usize = 16;
/// How long a supplier that was called off may take to end.
const END_MAX: Duration = Duration::from_secs(1);

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
    cancelled: AtomicBool,
}

impl Watcher for Wanted {
    fn stage(&self, name: &str, done: u64, of: u64) {
        tracing::debug!(stage = name, done, of, "supplier at work");
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
    pub(super) async fn supply(&self, errand: &Errand) -> Supply {
        let platform = errand.0.platform();
        let deadline = self.clock.now().plus(self.options.work);
        let mut failures = Vec::new();
        let mut asked = Vec::new();
        for supplier in self.suppliers.of(platform) {
            // Who comes too late is not asked any more: the time is over for all that follow.
            if !failures.is_empty() && self.clock.now() >= deadline {
                failures
                    .push(SupplyError::new(SupplyReason::Timeout, "Fetching the transcript took too long."));
                break;
            }
            let name = supplier.card().name;
            asked.push(name.clone());
            let ask = Ask { video: errand.0.clone(), wish: errand.1.clone(), deadline };
            let failure = match self.ask(supplier, ask).await.and_then(|supplied| judge(supplied, errand)) {
                Ok(supplied) => return Supply { result: Ok(supplied), asked },
                Err(failure) => failure,
            };
            tracing::info!(supplier = %name, video = %errand.0, reason = failure.reason().as_str(), "no transcript");
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

    /// Asks one supplier, within the time for the whole work. A supplier that panics has failed.
    async fn ask(&self, supplier: &Arc<dyn Supplier>, ask: Ask) -> Result<Supplied, SupplyError> {
        let wanted = Arc::new(Wanted {
            video: ask.video.clone(),
            supplier: supplier.card().name,
            observer: self.observer.clone(),
            cancelled: AtomicBool::new(false),
        });
        let _cancel = CancelOnDrop(Arc::clone(&wanted));
        let time = ask.deadline.since(self.clock.now());
        let supplier = Arc::clone(supplier);
        // In a task of its own, so that a panic ends that task and not ours; dropping it ends it.
        let mut work = tokio::task::JoinSet::new();
        work.spawn_on(async move { supplier.supply(ask, wanted).await }, &self.runtime);
        match tokio::time::timeout(time, work.join_next()).await {
            Ok(Some(Ok(result))) => result,
            Ok(_) => {
                Err(SupplyError::new(SupplyReason::PlatformFault, "The transcript's source broke down."))
            }
            Err(_) => {
                // Nothing of it is left when whoever comes next asks the platform; unless it blocks its
                // thread, which must not block us.
                let _ = tokio::time::timeout(END_MAX, work.shutdown()).await;
                Err(SupplyError::new(SupplyReason::Timeout, "Fetching the transcript took too long."))
            }
        }
    }
}

/// Believes no supplier: what it gave must be of this video, a transcript within
/// bounds, and answer the wish.
fn judge(supplied: Supplied, (video, wish, _): &Errand) -> Result<Supplied, SupplyError> {
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
    if best_track([&first.track], wish).is_none() {
        return unreadable("The transcript's source answered in another language than asked.");
    }
    Ok(supplied)
}

/// The failure to act on and to tell: one that is final; else one that leaves the question open, since
/// "no captions" is true only when every supplier says so; else the last one's.
fn most_telling(failures: Vec<SupplyError>) -> SupplyError {
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

    fn check(reasons: &[SupplyReason], expect: SupplyReason) {
        let failures = reasons.iter().map(|reason| SupplyError::new(reason.clone(), "x")).collect();
        assert_eq!(*most_telling(failures).reason(), expect, "{reasons:?}");
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
