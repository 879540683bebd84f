//! What the archive knows of a video's tracks.

use super::{Inner, Outcome, Transcripts, retry::bounded};
use crate::{
    archive::{ArchivedTrack, Found, Wish},
    error::Result,
    transcript::best_track,
    video::VideoId,
};
use std::sync::Arc;

impl Transcripts {
    /// The tracks that a video is known to have, archived or not; never fetches.
    ///
    /// # Errors
    /// As [`crate::archive::Archive::tracks`].
    pub async fn tracks(&self, video: &VideoId) -> Result<Vec<ArchivedTrack>> {
        let (inner, video) = (Arc::clone(&self.inner), video.clone());
        self.task(async move { inner.tracks(&video).await }).await?
    }

    /// As [`Transcripts::find`], but what was archived for another wish answers too, when it is the best of
    /// the video's known tracks for this one.
    ///
    /// # Errors
    /// As [`crate::archive::Archive::find`] and [`crate::archive::Archive::tracks`].
    pub async fn find_best(&self, video: &VideoId, wish: &Wish) -> Result<Found> {
        let (inner, video, wish) = (Arc::clone(&self.inner), video.clone(), wish.clone());
        self.task(async move { inner.find_best(&video, &wish).await }).await?
    }
}

impl Inner {
    async fn tracks(&self, video: &VideoId) -> Result<Vec<ArchivedTrack>> {
        bounded(self.options.store, self.archive.tracks(video)).await
    }

    /// What is known about a wish; a language is answered by what matches it best, too.
    pub(super) async fn find(&self, video: &VideoId, wish: &Wish) -> Result<Found> {
        match wish {
            Wish::Default => self.find_kept(video, wish).await,
            Wish::Language(_) => self.find_best(video, wish).await,
        }
    }

    /// What was kept for a wish, or for another one whose track is the best of all that are known for this one:
    /// fetching would bring the same.
    async fn find_best(&self, video: &VideoId, wish: &Wish) -> Result<Found> {
        let found = self.find_kept(video, wish).await?;
        if matches!(found, Found::Nothing | Found::Absent(_))
            && let other @ Found::Transcript(_) = self.find_among(video, wish, |_| true).await?
        {
            return Ok(other);
        }
        Ok(found)
    }

    /// The best archived transcript for a wish that cannot be had as it is.
    pub(super) async fn find_any(&self, video: &VideoId, wish: &Wish) -> Result<Found> {
        self.find_among(video, wish, |track| !track.wishes.is_empty()).await
    }

    /// The outcome, or in place of a failure an archived transcript in a language that matches the wish: it
    /// is what was wished, if not as well as could be, and says which language it is in.
    pub(super) async fn or_match(&self, video: &VideoId, wish: &Wish, outcome: Outcome) -> Outcome {
        let failed = matches!(outcome, Outcome::Failed(_) | Outcome::Absent(_) | Outcome::Unsupplied);
        if !failed || *wish == Wish::Default {
            return outcome;
        }
        match self.find_any(video, wish).await {
            Ok(Found::Transcript(stored)) => Outcome::Archived(stored),
            Ok(_) | Err(_) => outcome,
        }
    }

    /// What was kept for exactly this wish.
    async fn find_kept(&self, video: &VideoId, wish: &Wish) -> Result<Found> {
        let find = self.archive.find(video, wish, self.clock.now());
        let found = bounded(self.options.store, find).await?;
        Ok(match found {
            Found::Absent(absence) if self.suppliers.void(&absence) => Found::Nothing,
            found => found,
        })
    }

    /// The transcript of the track, among those that count, that answers a wish best; nothing where that one
    /// is not archived.
    async fn find_among(
        &self,
        video: &VideoId,
        wish: &Wish,
        counts: impl Fn(&ArchivedTrack) -> bool + Send,
    ) -> Result<Found> {
        let mut tracks = self.tracks(video).await?;
        tracks.retain(counts);
        let best = best_track(tracks.iter().map(|track| &track.track), wish);
        match best.and_then(|place| tracks.get(place)).and_then(|track| track.wishes.first()) {
            Some(kept_for) => self.find_kept(video, kept_for).await,
            None => Ok(Found::Nothing),
        }
    }
}
