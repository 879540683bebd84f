//! The languages of a video.
//!
//! Archive only, so free for everyone (specification 11).

use super::{
    Availability, Lookup, LookupRequest, LookupResponse, ReferenceError,
    flow::{LookupFlow, store_failure_response},
};
use crate::{
    archive::{ArchivedTrack, TrackSelector},
    engine::NoTranscript,
    error::Result,
    transcript::{LanguageTag, best_track, list_languages},
    video::VideoId,
};

impl Lookup {
    /// The known tracks of an archived video in order of discovery; none if nothing is archived.
    ///
    /// Also returns the response of [`Lookup::look_up_archived`].
    ///
    /// # Errors
    /// [`ReferenceError`] if the reference names no video.
    pub async fn languages(
        &self,
        request: LookupRequest,
    ) -> Result<(LookupResponse, Vec<ArchivedTrack>), ReferenceError> {
        let mut answer = self.look_up_archived(LookupRequest { key: None, proof: None, ..request }).await?;
        let Availability::Available { stored, .. } = &answer.availability else {
            return Ok((answer, Vec::new()));
        };
        match self.transcripts().tracks(&stored.transcript.video.clone()).await {
            Ok(tracks) => Ok((answer, tracks)),
            Err(error) => {
                answer.availability = store_failure_response(&error);
                Ok((answer, Vec::new()))
            }
        }
    }

    /// The known tracks of a lookup's video, read once.
    pub(super) async fn known_tracks<'a>(
        &self,
        flow: &'a LookupFlow<'_>,
        video: &VideoId,
    ) -> Result<&'a [ArchivedTrack]> {
        let tracks = flow.tracks.get_or_try_init(|| self.transcripts().tracks(video)).await?;
        Ok(tracks)
    }

    /// The failure for a language that an archived video is known to lack; `None` if it may have it.
    ///
    /// The message lists the known languages.
    pub(super) async fn unknown_language(
        &self,
        flow: &LookupFlow<'_>,
        video: &VideoId,
        language: &LanguageTag,
    ) -> Result<Option<Availability>> {
        let all = self.known_tracks(flow, video).await?;
        let selector = TrackSelector::Language(language.clone());
        let (archived, known): (Vec<&ArchivedTrack>, Vec<_>) =
            all.iter().partition(|track| !track.selectors.is_empty());
        let tracks = archived.iter().chain(&known).map(|track| &track.track);
        if archived.is_empty() || best_track(tracks, &selector).is_some() {
            return Ok(None);
        }
        let list = |tracks: &[&ArchivedTrack]| list_languages(tracks.iter().map(|track| &track.track));
        let archived = list(&archived);
        let others = match list(&known) {
            known if known.is_empty() => String::new(),
            known => format!(" Other known languages: {known}."),
        };
        let message = format!(
            "No transcript in {language} is known for this video. Archived languages: {archived}.{others}"
        );
        let languages = all.iter().map(|track| track.track.clone()).collect();
        Ok(Some(NoTranscript::no_language(message, languages).into()))
    }
}
