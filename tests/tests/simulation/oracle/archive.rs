//! Invariants of the archive.

use std::{sync::Arc, time::Duration};

use transcript_core::{
    Timestamp,
    archive::{
        FetchLease, FindOutcome, LeaseOutcome, StoredBody, StoredTranscript, TrackSelector, content_digest,
    },
    body::segments,
    ids::Holder,
    transcript::LanguageTag,
    video::VideoId,
};

use super::{Oracle, OracleFacts, now};

/// Every track selector of a simulation.
pub(crate) fn all_selectors() -> Vec<TrackSelector> {
    let languages = ["en", "fr", "ja"].map(|tag| TrackSelector::Language(LanguageTag::from_canonical(tag)));
    [TrackSelector::Default].into_iter().chain(languages).collect()
}

/// A transcript without what is known of its video besides it, which later fetches change.
fn without_details(stored: &StoredTranscript) -> StoredTranscript {
    StoredTranscript { details: Arc::default(), ..stored.clone() }
}

impl OracleFacts {
    fn archived(&mut self) -> &mut Vec<StoredTranscript> {
        &mut self.archived
    }

    fn stored_transcripts(&mut self) -> &mut Vec<StoredTranscript> {
        &mut self.stored_transcripts
    }

    /// Whether a supplier returned exactly this transcript for its video.
    fn was_supplied(&self, video: &VideoId, stored: &StoredTranscript) -> bool {
        stored.transcript.video == *video
            && stored.content_sha256 == content_digest(&stored.transcript)
            && self.supplied.get(video).is_some_and(|supplied| supplied.contains(&stored.transcript))
    }
}

impl Oracle {
    /// Records and checks a transcript that the archive acknowledged for these selectors.
    pub(crate) fn on_archived(&self, video: &VideoId, selectors: &[TrackSelector]) {
        for selector in selectors {
            let FindOutcome::Transcript(stored) =
                now(self.archive.find(video, selector, Timestamp::from_millis(0)))
            else {
                self.report(format_args!("{video} {selector} was archived and is not found"));
                continue;
            };
            let stored = without_details(&stored);
            let mut facts = self.facts();
            let was_supplied = facts.was_supplied(video, &stored);
            for list in [OracleFacts::archived, OracleFacts::stored_transcripts] {
                let list = list(&mut facts);
                if !list.contains(&stored) {
                    list.push(stored.clone());
                }
            }
            drop(facts);
            if !was_supplied {
                self.report(format_args!("{video} was archived with text that no supplier returned"));
            }
        }
    }

    /// Records the deletion of a video's transcripts.
    pub(crate) fn on_deleted(&self, video: &VideoId) {
        self.facts().stored_transcripts.retain(|stored| stored.transcript.video != *video);
    }

    /// Checks a transcript that a caller received.
    pub(crate) fn check_response(&self, video: &VideoId, stored: &StoredTranscript) {
        let facts = self.facts();
        let (was_supplied, was_archived) =
            (facts.was_supplied(video, stored), facts.archived.contains(&without_details(stored)));
        drop(facts);
        if !was_supplied {
            self.report(format_args!("a response for {video} has text that no supplier returned"));
        }
        if !was_archived {
            self.report(format_args!("a response for {video} was never archived"));
        }
    }

    /// Checks a stored body that a caller received.
    pub(crate) fn check_body(&self, video: &VideoId, body: &StoredBody) {
        let json = zstd::decode_all(&*body.segments).unwrap_or_default();
        let segments = segments::read(&json).unwrap_or_default();
        let is_archived = |stored: &StoredTranscript| {
            let words = stored.transcript.segments.iter().map(|segment| &segment.text);
            stored.transcript.video == *video
                && stored.content_sha256 == body.content_sha256
                && segments.iter().map(|segment| &segment.text).eq(words)
        };
        if !self.facts().archived.iter().any(is_archived) {
            self.report(format_args!("a stored body of {video} was never archived"));
        }
    }

    /// After every step: every archived transcript is still stored, unchanged.
    pub(super) fn check_archive(&self) {
        let stored_transcripts = self.facts().stored_transcripts.clone();
        let far = Timestamp::from_millis(i64::MAX);
        for stored in stored_transcripts {
            let video = &stored.transcript.video;
            let is_there =
                all_selectors().iter().any(|selector| match now(self.archive.find(video, selector, far)) {
                    FindOutcome::Transcript(found) => without_details(&found) == stored,
                    // Still stored; checked again when the withdrawal ends.
                    FindOutcome::Withdrawn => true,
                    FindOutcome::Absence(_) | FindOutcome::NotFound => false,
                });
            if !is_there {
                self.report(format_args!("an archived transcript of {video} is gone"));
            }
        }
    }

    /// At the end: no withdrawal hides a loss, and no lease or fetch is left.
    pub(crate) fn check_nothing_open(&self, videos: &[VideoId], at: Timestamp) {
        for video in videos {
            now(self.archive.withdraw(video, false, at));
            for selector in all_selectors() {
                let (holder, until) = (Holder::new("oracle"), at.plus(Duration::from_secs(1)));
                let lease = FetchLease {
                    video: video.clone(),
                    selector: selector.clone(),
                    holder: holder.clone(),
                    now: at,
                    until,
                };
                if now(self.archive.acquire_lease(lease)) != LeaseOutcome::Acquired {
                    self.report(format_args!("a lease on {video} {selector} is left"));
                }
                now(self.archive.release_lease(video, &selector, &holder));
            }
        }
        self.check_archive();
        self.check_no_fetches();
    }

    /// After the end of a process: none of its fetches is left.
    pub(crate) fn check_no_fetches(&self) {
        let running_fetches: Vec<_> = self
            .facts()
            .running_fetches
            .iter()
            .filter(|(_, count)| **count > 0)
            .map(|(key, _)| key.clone())
            .collect();
        if !running_fetches.is_empty() {
            self.report(format_args!("fetches are left: {running_fetches:?}"));
        }
    }
}
