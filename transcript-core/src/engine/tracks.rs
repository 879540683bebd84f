//! What the archive knows of a video's tracks.

use super::{Inner, Transcripts, retry::bounded};
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

    async fn find_best(&self, video: &VideoId, wish: &Wish) -> Result<Found> {
        let found = self.find(video, wish).await?;
        if found != Found::Nothing {
            return Ok(found);
        }
        let tracks = self.tracks(video).await?;
        let best = best_track(tracks.iter().map(|track| &track.track), wish);
        match best.and_then(|place| tracks.get(place)).and_then(|track| track.wishes.first()) {
            Some(archived) => self.find(video, archived).await,
            None => Ok(Found::Nothing),
        }
    }

    /// The best archived transcript for someone who cannot have the default.
    pub(super) async fn find_any(&self, video: &VideoId) -> Result<Found> {
        let tracks = self.tracks(video).await?;
        let archived: Vec<_> = tracks.into_iter().filter(|track| !track.wishes.is_empty()).collect();
        let best = best_track(archived.iter().map(|track| &track.track), &Wish::Default);
        match best.and_then(|place| archived.get(place)).and_then(|track| track.wishes.first()) {
            Some(wish) => self.find(video, wish).await,
            None => Ok(Found::Nothing),
        }
    }
}
