//! What must hold in the archive.

use std::time::Duration;

use transcript_core::{
    Timestamp,
    archive::{Claim, Found, Lease, StoredTranscript, Wish, content_digest},
    ids::Holder,
    transcript::LanguageTag,
    video::VideoId,
};

use super::{Facts, Oracle, now};

/// Every wish that a simulation has.
pub(crate) fn wishes() -> Vec<Wish> {
    let languages = ["en", "fr", "ja"].map(|tag| Wish::Language(LanguageTag::from_canonical(tag)));
    [Wish::Default].into_iter().chain(languages).collect()
}

impl Facts {
    fn kept(&mut self) -> &mut Vec<StoredTranscript> {
        &mut self.kept
    }

    fn shelved(&mut self) -> &mut Vec<StoredTranscript> {
        &mut self.shelved
    }

    /// Whether a transcript is, to the letter, what a supplier gave for its video.
    fn was_given(&self, video: &VideoId, stored: &StoredTranscript) -> bool {
        stored.transcript.video == *video
            && stored.content_sha256 == content_digest(&stored.transcript)
            && self.given.get(video).is_some_and(|given| given.contains(&stored.transcript))
    }
}

impl Oracle {
    /// The archive says that it keeps something for these wishes.
    pub(crate) fn kept(&self, video: &VideoId, wishes: &[Wish]) {
        for wish in wishes {
            let Found::Transcript(stored) = now(self.archive.find(video, wish, Timestamp::from_millis(0)))
            else {
                self.wrong(format_args!("{video} {wish} was archived and is not there"));
                continue;
            };
            let mut facts = self.facts();
            let was_given = facts.was_given(video, &stored);
            for list in [Facts::kept, Facts::shelved] {
                let list = list(&mut facts);
                if !list.contains(&stored) {
                    list.push(stored.clone());
                }
            }
            drop(facts);
            if !was_given {
                self.wrong(format_args!("{video} was archived with words that nobody gave"));
            }
        }
    }

    /// The operator deleted a video's transcripts.
    pub(crate) fn forgotten(&self, video: &VideoId) {
        self.facts().shelved.retain(|stored| stored.transcript.video != *video);
    }

    /// Somebody was answered with this.
    pub(crate) fn answered(&self, video: &VideoId, stored: &StoredTranscript) {
        let facts = self.facts();
        let (was_given, was_kept) = (facts.was_given(video, stored), facts.kept.contains(stored));
        drop(facts);
        if !was_given {
            self.wrong(format_args!("an answer about {video} has words that nobody gave"));
        }
        if !was_kept {
            self.wrong(format_args!("an answer about {video} was never archived"));
        }
    }

    /// After every step: what was archived is still there, unchanged.
    pub(super) fn check_shelves(&self) {
        let shelved = self.facts().shelved.clone();
        let far = Timestamp::from_millis(i64::MAX);
        for stored in shelved {
            let video = &stored.transcript.video;
            let is_there = wishes().iter().any(|wish| match now(self.archive.find(video, wish, far)) {
                Found::Transcript(found) => found == stored,
                // Stored all the same; it is looked at again when the video is put back.
                Found::Withdrawn => true,
                Found::Absent(_) | Found::Nothing => false,
            });
            if !is_there {
                self.wrong(format_args!("a transcript of {video} was archived and is gone"));
            }
        }
    }

    /// At the end: no withdrawal hides a loss, and nobody still holds a lease or fetches.
    pub(crate) fn check_nothing_open(&self, videos: &[VideoId], at: Timestamp) {
        for video in videos {
            now(self.archive.withdraw(video, false, at));
            for wish in wishes() {
                let (holder, until) = (Holder::new("oracle"), at.plus(Duration::from_secs(1)));
                let lease = Lease {
                    video: video.clone(),
                    wish: wish.clone(),
                    holder: holder.clone(),
                    now: at,
                    until,
                };
                if now(self.archive.claim(lease)) != Claim::Claimed {
                    self.wrong(format_args!("a lease on {video} {wish} is left"));
                }
                now(self.archive.unclaim(video, &wish, &holder));
            }
        }
        self.check_shelves();
        self.check_nothing_flies();
    }

    /// When a process has ended, its fetches have, too.
    pub(crate) fn check_nothing_flies(&self) {
        let flights: Vec<_> = self
            .facts()
            .flights
            .iter()
            .filter(|(_, count)| **count > 0)
            .map(|(key, _)| key.clone())
            .collect();
        if !flights.is_empty() {
            self.wrong(format_args!("fetches are left: {flights:?}"));
        }
    }
}
