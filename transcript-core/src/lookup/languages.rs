//! The languages of a video: which there are, and what is archived in one of them. Only what is archived is told, and
//! so it is free to everyone (specification 4, rule 1).

use super::{
    Availability, BadReference, FailureReason, Lookup, LookupAnswer, LookupAsk,
    way::{stores_away, withdrawn},
};
use crate::{
    archive::{ArchivedTrack, Found, Wish},
    error::Result as Stored,
    transcript::{LanguageTag, best_track},
    video::VideoId,
};

/// How many languages a sentence names.
const LANGUAGES_MAX: usize = 20;

impl Lookup {
    /// What is archived of a video in a language; never fetches, holds, charges or counts. Nobody's key makes a
    /// difference.
    ///
    /// A video of which nothing is archived is answered as [`Lookup::peek`] does. Where something is, but not in this
    /// language, the reason is [`FailureReason::NeedsVerification`] if the language is known to be there, else
    /// [`FailureReason::NoCaptions`]; the sentence names the languages that are known.
    ///
    /// # Errors
    /// [`BadReference`] when the reference names no video.
    pub async fn archived_in(
        &self,
        ask: LookupAsk,
        language: &LanguageTag,
    ) -> Result<LookupAnswer, BadReference> {
        let mut answer = self.peek(LookupAsk { key: None, proof: None, ..ask }).await?;
        if let Availability::Available { stored, .. } = &answer.availability {
            let video = stored.transcript.video.clone();
            let found = self.in_language(&video, language).await;
            answer.availability = found.unwrap_or_else(|error| stores_away(&error));
        }
        Ok(answer)
    }

    /// The tracks that an archived video is known to have, in the order in which they became known, and what
    /// [`Lookup::peek`] answers; no tracks where nothing is archived.
    ///
    /// # Errors
    /// [`BadReference`] when the reference names no video.
    pub async fn languages(
        &self,
        ask: LookupAsk,
    ) -> Result<(LookupAnswer, Vec<ArchivedTrack>), BadReference> {
        let mut answer = self.peek(LookupAsk { key: None, proof: None, ..ask }).await?;
        let Availability::Available { stored, .. } = &answer.availability else {
            return Ok((answer, Vec::new()));
        };
        match self.transcripts().tracks(&stored.transcript.video.clone()).await {
            Ok(tracks) => Ok((answer, tracks)),
            Err(error) => {
                answer.availability = stores_away(&error);
                Ok((answer, Vec::new()))
            }
        }
    }

    async fn in_language(&self, video: &VideoId, language: &LanguageTag) -> Stored<Availability> {
        let tracks = self.transcripts().tracks(video).await?;
        let (archived, known): (Vec<_>, Vec<_>) =
            tracks.into_iter().partition(|track| !track.wishes.is_empty());
        let wish = Wish::Language(language.clone());
        let best = best_track(archived.iter().map(|track| &track.track), &wish);
        if let Some(kept_for) = best.and_then(|at| archived.get(at)).and_then(|track| track.wishes.first()) {
            match self.transcripts().find(video, kept_for).await? {
                Found::Transcript(stored) => {
                    return Ok(Availability::Available { stored, from_cache: true });
                }
                Found::Withdrawn => return Ok(withdrawn()),
                Found::Absent(_) | Found::Nothing => {}
            }
        }
        let archived = named(&archived);
        if best_track(known.iter().map(|track| &track.track), &wish).is_some() {
            let message = format!(
                "This video has a transcript in {language}, which has not been fetched yet. Archived are: {archived}."
            );
            return Ok(Availability::none(FailureReason::NeedsVerification, message));
        }
        let message = match named(&known) {
            known if known.is_empty() => {
                format!("No transcript of this video in {language} is known. Archived are: {archived}.")
            }
            known => format!(
                "No transcript of this video in {language} is known. Archived are: {archived}; known are also: {known}."
            ),
        };
        Ok(Availability::none(FailureReason::NoCaptions, message).in_detail("no_language"))
    }
}

/// The languages of some tracks, each once.
fn named(tracks: &[ArchivedTrack]) -> String {
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
