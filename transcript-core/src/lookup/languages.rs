//! The languages of a video, and the archived transcript in one of them.
//!
//! Archive only, so free for everyone (specification 11).

use super::{
    Availability, FailureReason, Lookup, LookupRequest, LookupResponse, ReferenceError,
    flow::store_failure_response,
};
use crate::{
    archive::{ArchivedTrack, FindOutcome, TrackSelector},
    engine::NoTranscript,
    error::Result,
    transcript::{LanguageTag, best_track},
    video::VideoId,
};

/// The most languages that a message lists.
const LANGUAGES_MAX: usize = 20;

impl Lookup {
    /// The archived transcript of a video in a language.
    ///
    /// Never fetches, holds, charges or counts, and needs no key.
    ///
    /// A video without archived transcripts gets the response of [`Lookup::look_up_archived`]. If other languages are
    /// archived, the reason is [`FailureReason::NeedsVerification`] for a known language and
    /// [`FailureReason::NoCaptions`] for an unknown one; the message lists the known languages.
    ///
    /// # Errors
    /// [`ReferenceError`] if the reference names no video.
    pub async fn archived_in(
        &self,
        request: LookupRequest,
        language: &LanguageTag,
    ) -> Result<LookupResponse, ReferenceError> {
        let mut answer = self.look_up_archived(LookupRequest { key: None, proof: None, ..request }).await?;
        if let Availability::Available { stored, .. } = &answer.availability {
            let video = stored.transcript.video.clone();
            let found = self.find_in_language(&video, language).await;
            answer.availability = found.unwrap_or_else(|error| store_failure_response(&error));
        }
        Ok(answer)
    }

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

    async fn find_in_language(&self, video: &VideoId, language: &LanguageTag) -> Result<Availability> {
        let tracks = self.transcripts().tracks(video).await?;
        let (archived, known): (Vec<_>, Vec<_>) =
            tracks.into_iter().partition(|track| !track.selectors.is_empty());
        let selector = TrackSelector::Language(language.clone());
        let best = best_track(archived.iter().map(|track| &track.track), &selector);
        if let Some(stored_selector) =
            best.and_then(|index| archived.get(index)).and_then(|track| track.selectors.first())
        {
            match self.transcripts().find(video, stored_selector).await? {
                FindOutcome::Transcript(stored) => {
                    return Ok(Availability::Available { stored, from_cache: true });
                }
                FindOutcome::Withdrawn => return Ok(NoTranscript::withdrawn().into()),
                FindOutcome::Absence(_) | FindOutcome::NotFound => {}
            }
        }
        let archived = language_list(&archived);
        if best_track(known.iter().map(|track| &track.track), &selector).is_some() {
            let message = format!(
                "This video has a transcript in {language} that is not archived yet. Archived languages: {archived}."
            );
            return Ok(Availability::none(FailureReason::NeedsVerification, message));
        }
        let message = match language_list(&known) {
            known if known.is_empty() => {
                format!(
                    "No transcript in {language} is known for this video. Archived languages: {archived}."
                )
            }
            known => format!(
                "No transcript in {language} is known for this video. Archived languages: {archived}. \
                 Other known languages: {known}."
            ),
        };
        Ok(NoTranscript::new(FailureReason::NoCaptions, message).with_detail("no_language").into())
    }
}

/// The languages of tracks, each once.
fn language_list(tracks: &[ArchivedTrack]) -> String {
    let mut languages: Vec<&str> = Vec::new();
    for track in tracks {
        let language = track.track.language.as_str();
        if !languages.contains(&language) {
            languages.push(language);
        }
    }
    let more = if languages.len() > LANGUAGES_MAX { ", …" } else { "" };
    languages.truncate(LANGUAGES_MAX);
    format!("{}{more}", languages.join(", "))
}
