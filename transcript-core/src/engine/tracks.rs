//! Archived and known tracks of a video.

use super::{EngineInner, FetchOutcome, NoTranscript, Transcripts, absence::is_too_long};
use crate::{
    archive::{Absence, ArchivedTrack, FindOutcome, KNOWN_TRACKS_MAX, StoredTranscript, TrackSelector},
    error::Result,
    failure_log::log_failure,
    retry::with_timeout,
    transcript::{LanguageTag, TrackInfo, best_track},
    video::VideoId,
};
use std::sync::Arc;

impl Transcripts {
    /// The known tracks of a video, archived or not; never fetches.
    ///
    /// # Errors
    /// As [`crate::archive::Archive::tracks`].
    pub async fn tracks(&self, video: &VideoId) -> Result<Vec<ArchivedTrack>> {
        let (inner, video) = (Arc::clone(&self.inner), video.clone());
        self.task(async move { inner.tracks(&video).await }).await?
    }

    /// Adds the tracks of the video to a failure for a language: those of the failed fetch, then the known ones.
    ///
    /// Other failures stay as they are, and so do all if the archive fails: the failure is the answer.
    #[must_use]
    pub async fn with_languages(&self, video: &VideoId, none: NoTranscript) -> NoTranscript {
        if !none.lacks_language() {
            return none;
        }
        NoTranscript { languages: self.available_tracks(video, &none.languages).await, ..none }
    }

    /// The tracks of a video without a transcript in a requested language: those that the failure reported, then those
    /// of earlier failures and the known ones.
    ///
    /// Without those of the archive if it fails.
    pub async fn available_tracks(&self, video: &VideoId, reported: &[TrackInfo]) -> Vec<TrackInfo> {
        let known = self.tracks(video).await;
        let known = known.inspect_err(|error| log_failure!(warn, [%video, %error], "known tracks not read"));
        self.reported_and_known(video, reported, &known.unwrap_or_default())
    }

    /// The tracks of a failure, those of earlier failures of the video, and its known tracks, each once.
    pub(crate) fn reported_and_known(
        &self,
        video: &VideoId,
        reported: &[TrackInfo],
        known: &[ArchivedTrack],
    ) -> Vec<TrackInfo> {
        let remembered = self.inner.languages.tracks(video);
        let all = reported.iter().chain(&remembered).chain(known.iter().map(|track| &track.track));
        let mut tracks: Vec<TrackInfo> = Vec::new();
        for track in all {
            if tracks.len() < KNOWN_TRACKS_MAX && !tracks.iter().any(|other| other.is_same(track)) {
                tracks.push(track.clone());
            }
        }
        tracks
    }

    /// As [`Transcripts::find`], but also accepts a transcript that was stored for another selector.
    ///
    /// Its track must be the best known one for this selector.
    ///
    /// # Errors
    /// As [`crate::archive::Archive::find`] and [`crate::archive::Archive::tracks`].
    pub async fn find_best(&self, video: &VideoId, selector: &TrackSelector) -> Result<FindOutcome> {
        let (inner, video, selector) = (Arc::clone(&self.inner), video.clone(), selector.clone());
        self.task(async move { inner.find_best(&video, &selector).await }).await?
    }

    /// The languages of the archived tracks of a video, that of this transcript first.
    ///
    /// If the archive fails, it is the only one.
    pub async fn archived_languages(&self, stored: &StoredTranscript) -> Vec<LanguageTag> {
        let own = &stored.transcript.track.language;
        let mut languages = vec![own.clone()];
        if stored.details.tracks.iter().all(|track| track.language == *own) {
            return languages;
        }
        match self.tracks(&stored.transcript.video).await {
            Ok(tracks) => {
                let archived = tracks.into_iter().filter(|track| track.revision.is_some());
                let others = archived.map(|track| track.track.language).filter(|language| language != own);
                languages.extend(others);
            }
            Err(error) => {
                log_failure!(warn, [video = %stored.transcript.video, %error], "archived languages not read");
            }
        }
        languages
    }

    /// The archived transcript of the same video in a language, if there is one, in place of this transcript.
    ///
    /// If the archive fails, it is this transcript.
    pub async fn in_language(&self, stored: StoredTranscript, language: LanguageTag) -> StoredTranscript {
        if language.primary() == stored.transcript.track.language.primary() {
            return stored;
        }
        let found = self.find_best(&stored.transcript.video, &TrackSelector::Language(language)).await;
        match found {
            Ok(FindOutcome::Transcript(other)) => other,
            Ok(_) => stored,
            Err(error) => {
                log_failure!(warn, [video = %stored.transcript.video, %error], "transcript in other language not read");
                stored
            }
        }
    }
}

impl EngineInner {
    async fn tracks(&self, video: &VideoId) -> Result<Vec<ArchivedTrack>> {
        with_timeout(self.options.store_timeout, self.archive.tracks(video)).await
    }

    /// Looks a selector up; a language also accepts its best match.
    pub(super) async fn find(&self, video: &VideoId, selector: &TrackSelector) -> Result<FindOutcome> {
        match selector.language() {
            None => self.find_stored(video, selector).await,
            Some(_) => self.find_best(video, selector).await,
        }
    }

    /// The transcript stored for a selector, or for another one with the best known track for this one.
    ///
    /// A fetch would return the same.
    async fn find_best(&self, video: &VideoId, selector: &TrackSelector) -> Result<FindOutcome> {
        let found = match self.find_stored(video, selector).await? {
            // Archives of earlier versions keep machine translations for languages.
            FindOutcome::Transcript(stored) if !selector.takes(stored.transcript.track.kind) => {
                FindOutcome::NotFound
            }
            found => found,
        };
        if matches!(found, FindOutcome::NotFound | FindOutcome::Absence(_))
            && let other @ FindOutcome::Transcript(_) = self.find_among(video, selector, |_| true).await?
        {
            return Ok(other);
        }
        Ok(found)
    }

    /// The best archived transcript for a selector whose own track is unavailable.
    pub(super) async fn find_best_available(
        &self,
        video: &VideoId,
        selector: &TrackSelector,
    ) -> Result<FindOutcome> {
        self.find_among(video, selector, |track| !track.selectors.is_empty()).await
    }

    /// Replaces a failure by an archived transcript in a matching language, if there is one.
    ///
    /// The transcript states its language.
    pub(super) async fn or_best_match(
        &self,
        video: &VideoId,
        selector: &TrackSelector,
        outcome: FetchOutcome,
    ) -> FetchOutcome {
        let failed = matches!(
            outcome,
            FetchOutcome::SupplyFailed(_)
                | FetchOutcome::Absent(_)
                | FetchOutcome::NoSupplier
                | FetchOutcome::Busy(_)
        );
        if !failed || *selector == TrackSelector::Default {
            return outcome;
        }
        match self.find_best_available(video, selector).await {
            Ok(FindOutcome::Transcript(stored)) => FetchOutcome::Archived(stored),
            Ok(_) | Err(_) => outcome,
        }
    }

    /// What is stored for exactly this selector.
    async fn find_stored(&self, video: &VideoId, selector: &TrackSelector) -> Result<FindOutcome> {
        let now = self.clock.now();
        let find = self.archive.find(video, selector, now);
        let found = with_timeout(self.options.store_timeout, find).await?;
        let is_void = |absence: &Absence| {
            self.suppliers.is_void(absence) || is_too_long(absence, &self.options.absence, now)
        };
        Ok(match found {
            FindOutcome::Absence(absence) if is_void(&absence) => FindOutcome::NotFound,
            found => found,
        })
    }

    /// The transcript of the best track for a selector among those that `counts` accepts.
    ///
    /// Not found if that track is not archived.
    async fn find_among(
        &self,
        video: &VideoId,
        selector: &TrackSelector,
        counts: impl Fn(&ArchivedTrack) -> bool + Send,
    ) -> Result<FindOutcome> {
        let mut tracks = self.tracks(video).await?;
        tracks.retain(counts);
        let best = best_track(tracks.iter().map(|track| &track.track), selector);
        match best.and_then(|index| tracks.get(index)).and_then(|track| track.selectors.first()) {
            Some(stored_selector) => self.find_stored(video, stored_selector).await,
            None => Ok(FindOutcome::NotFound),
        }
    }
}
