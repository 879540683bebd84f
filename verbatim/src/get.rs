//! A link in, a transcript out.

use transcript_core::{
    Error, ErrorKind, Result,
    archive::{self, StoredTranscript, Wish},
    engine::{Fetch, Outcome},
    lookup::FailureReason,
    supplier::Resolved,
    transcript::LanguageTag,
    video::{Platform, VideoId, VideoLink},
};

use crate::Verbatim;

/// What is wanted.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub struct Get {
    /// The link to the video, in any form that people use, or a YouTube id.
    pub link: String,
    /// The language as a BCP 47 tag; none: English where there is English, else the spoken language.
    pub language: Option<String>,
}

impl Get {
    /// What is wished: a language, or the default.
    ///
    /// # Errors
    /// [`ErrorKind::Invalid`] when the language is none.
    pub(crate) fn wish(&self) -> Result<Wish> {
        Ok(match &self.language {
            Some(tag) => Wish::Language(LanguageTag::parse(tag)?),
            None => Wish::Default,
        })
    }
}

/// What came of it.
#[derive(Clone, Debug)]
pub enum GetOutcome {
    /// There is a transcript.
    Found(Found),
    /// There is none.
    Missing(Missing),
}

/// A transcript.
#[derive(Clone, Debug)]
pub struct Found {
    /// The transcript.
    pub stored: StoredTranscript,
    /// Whether it was archived already.
    pub from_cache: bool,
}

/// No transcript, and why.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Missing {
    /// The platform.
    pub platform: Platform,
    /// The video's id; the code of a short link that could not be followed.
    pub video_id: String,
    /// Why, in one word of the wire.
    pub reason: FailureReason,
    /// Why, in a sentence for people.
    pub message: String,
    /// Where a person can read the transcript once there is one.
    pub watch_url: String,
}

/// Where work ends with who waits for it, nothing goes on that is worth asking after.
const OUT_OF_TIME: &str =
    "The transcript was not there within the time that was given for it. Please give it more time.";

impl Verbatim {
    /// The transcript of a video: archived, or fetched and archived. Nobody is charged.
    ///
    /// In place of none it is an archived one that answers the wish less well: in a language that matches the
    /// wished one, or any where no language was wished. Its track says which language it is in.
    ///
    /// # Errors
    /// [`ErrorKind::Invalid`] when the link or the language is none; otherwise the storage's faults.
    pub async fn get(&self, ask: Get) -> Result<GetOutcome> {
        let wish = ask.wish()?;
        let video = match self.video(&ask.link).await? {
            Ok(video) => video,
            Err(missing) => return Ok(GetOutcome::Missing(missing)),
        };
        let is_any_welcome = wish == Wish::Default;
        let outcome = self.transcripts().get(Fetch { video: video.clone(), wish, payment: None }).await;
        if is_any_welcome
            && matches!(outcome, Outcome::Failed(_) | Outcome::Absent(_) | Outcome::Unsupplied)
            && let Ok(archive::Found::Transcript(stored)) = self.transcripts().find_any(&video).await
        {
            return Ok(GetOutcome::Found(Found { stored, from_cache: true }));
        }
        self.told(&video, outcome)
    }

    /// What an outcome of the engine means to somebody who does not pay.
    pub(crate) fn told(&self, video: &VideoId, outcome: Outcome) -> Result<GetOutcome> {
        let missing = |reason, message: &str| {
            Ok(GetOutcome::Missing(self.missing(VideoLink::Video(video.clone()), reason, message)))
        };
        let found = |stored, from_cache| Ok(GetOutcome::Found(Found { stored, from_cache }));
        match outcome {
            Outcome::Archived(stored) => found(stored, true),
            Outcome::Fetched(stored) => found(stored, false),
            Outcome::Absent(absence) => missing(FailureReason::NoCaptions, &absence.message),
            Outcome::Withdrawn => missing(
                FailureReason::NoCaptions,
                "This transcript was withdrawn by the operator of the service.",
            ),
            Outcome::Failed(failure) => missing(FailureReason::of_supply(&failure), failure.message()),
            Outcome::Unsupplied => missing(
                FailureReason::ConfigError,
                &format!("There is no source of new transcripts for {}.", video.platform().name()),
            ),
            Outcome::StillWorking(still) if self.transcripts().options().outlives => {
                missing(FailureReason::FetchError, &still.sentence(None))
            }
            Outcome::StillWorking(_) => missing(FailureReason::FetchError, OUT_OF_TIME),
            Outcome::Refused { .. } => Err(Error::unexpected("a free fetch was refused for want of credit")),
            Outcome::Broken(error) => Err(fault(error)),
        }
    }

    /// The video that a link names; a short link is followed.
    pub(crate) async fn video(&self, link: &str) -> Result<Result<VideoId, Missing>> {
        let short = match VideoLink::parse(link).map_err(|error| Error::invalid(error.to_string()))? {
            VideoLink::Video(video) => return Ok(Ok(video)),
            VideoLink::Short(short) => short,
        };
        let missing =
            |reason, message: &str| Ok(Err(self.missing(VideoLink::Short(short.clone()), reason, message)));
        match self.transcripts().resolve(&short, true).await {
            Ok(Some(Resolved::Video(video))) => Ok(Ok(video)),
            Ok(Some(Resolved::Nowhere(why))) => Err(Error::invalid(why)),
            Ok(None) => missing(FailureReason::FetchError, "The short link could not be followed."),
            Err(failure) => missing(FailureReason::of_supply(&failure), failure.message()),
        }
    }

    fn missing(&self, link: VideoLink, reason: FailureReason, message: &str) -> Missing {
        let (platform, id) = match &link {
            VideoLink::Video(video) => (video.platform(), video.id()),
            VideoLink::Short(short) => (short.platform(), short.code()),
        };
        Missing {
            platform,
            video_id: id.to_owned(),
            reason,
            message: message.to_owned(),
            watch_url: self.lookup().options().watch_url(&link, None),
        }
    }
}

/// A store's fault. `Invalid` would blame the caller's link for a defect of ours.
fn fault(error: Error) -> Error {
    match error.kind() {
        ErrorKind::Invalid => Error::unexpected(error.to_string()),
        _ => error,
    }
}

#[cfg(test)]
mod tests;
