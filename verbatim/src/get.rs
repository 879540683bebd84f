//! Gets the transcript of a link: from the archive, or fetched from a supplier.

mod json;
mod request;

use std::{fmt, sync::Arc, time::Duration};

use tokio::time::Instant;
use transcript_core::{
    Error, ErrorCause, ErrorKind, Result, Retry,
    archive::{self, ArchivedTrack, StoredTranscript, TrackSelector},
    engine::{CostNote, FailureReason, FetchOutcome, FetchRequest, NoTranscript},
    retry::deadline_after,
    supplier::{ResolveOutcome, SupplyReason},
    transcript::{LanguageTag, TrackInfo, Transcript, list_languages},
    video::{Platform, VideoId, VideoLink},
};

pub use self::request::{GetRequest, LANGUAGES_MAX};
use crate::{ArchiveTools, Verbatim, runtime::within};

/// Outcome of [`crate::Verbatim::get`].
#[derive(Clone, Debug)]
pub enum GetOutcome {
    /// The transcript.
    Found(FoundTranscript),
    /// No transcript.
    Missing(UnavailableTranscript),
}

impl GetOutcome {
    /// The transcript, if there is one.
    pub fn transcript(&self) -> Option<&Transcript> {
        match self {
            Self::Found(found) => Some(&found.stored.transcript),
            Self::Missing(_) => None,
        }
    }

    /// The transcript; the reason is an error if there is none.
    ///
    /// # Errors
    /// That of the [`UnavailableTranscript`], which is its [`source`](std::error::Error::source).
    pub fn into_transcript(self) -> Result<Arc<Transcript>> {
        match self {
            Self::Found(found) => Ok(found.stored.transcript),
            Self::Missing(missing) => Err(missing.into()),
        }
    }
}

/// A transcript, and whether it was archived.
#[derive(Clone, Debug)]
pub struct FoundTranscript {
    /// The transcript.
    pub stored: StoredTranscript,
    /// Whether it was archived before the request.
    pub from_cache: bool,
}

/// A missing transcript, and the reason.
///
/// As an [`Error`] it is [`ErrorKind::NotFound`] if the video has no transcript, or if a request for the archive alone
/// finds none; [`ErrorKind::Unsupported`] if no source is configured; otherwise [`ErrorKind::Unavailable`]. Its message
/// names the video, as in "YouTube dQw4w9WgXcQ: This video is private."
///
/// The JSON is the response of the lookup API without a transcript, with three further fields: `failureDetail` and
/// `retryAfterSeconds`, if known, and `attempted`. Without the feature `lookup` it has no `watchUrl`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct UnavailableTranscript {
    /// The platform.
    pub platform: Platform,
    /// Id of the video, or the code of a short link that could not be resolved.
    pub video_id: String,
    /// Reason code, as on the wire.
    pub reason: FailureReason,
    /// Machine-readable detail, such as `private` or `live`; [`NoTranscript::detail`] lists them.
    pub detail: Option<String>,
    /// Reason as a sentence for users.
    pub message: String,
    /// When a retry may succeed, if known.
    pub retry_after: Option<Duration>,
    /// The tracks of the video, or the archived ones of a request for the archive alone, if none is in the requested
    /// language; empty if unknown.
    pub languages: Vec<TrackInfo>,
    /// Whether a supplier was called; `false` if all were paused or busy, and for stored absences.
    pub attempted: bool,
    /// The error behind the failure, such as that of a custom supplier; `None` if it is the first.
    pub cause: Option<ErrorCause>,
    /// Page on which a user can read the transcript once there is one (feature `lookup`).
    #[cfg(feature = "lookup")]
    pub watch_url: String,
}

impl UnavailableTranscript {
    /// Whether the code of a supplier has a defect, which a retry meets again.
    pub fn is_defect(&self) -> bool {
        self.detail.as_deref() == Some(NoTranscript::DEFECT)
    }
}

/// The reason and the detail as on the wire, such as `no_captions (private)`: the [`Error`] has the message.
impl fmt::Display for UnavailableTranscript {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.reason.as_str())?;
        match &self.detail {
            Some(detail) => write!(f, " ({detail})"),
            None => Ok(()),
        }
    }
}

impl std::error::Error for UnavailableTranscript {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        self.cause.as_ref().map(ErrorCause::error)
    }
}

impl From<UnavailableTranscript> for Error {
    fn from(missing: UnavailableTranscript) -> Self {
        let (kind, retry) = match missing.reason {
            FailureReason::NoCaptions | FailureReason::NeedsVerification => {
                (ErrorKind::NotFound, Retry::Never)
            }
            FailureReason::ConfigError => (ErrorKind::Unsupported, Retry::Never),
            _ if missing.is_defect() => (ErrorKind::Unavailable, Retry::Never),
            _ => (ErrorKind::Unavailable, Retry::Backoff),
        };
        let retry = missing.retry_after.map_or(retry, Retry::After);
        let UnavailableTranscript { platform, video_id, message, .. } = &missing;
        let message = format!("{} {video_id}: {message}", platform.name());
        Self::new(kind, retry, message).with_cause(Some(ErrorCause::new(missing)))
    }
}

/// Message after a timeout if work ends with its last waiter: a retry finds no running work.
const TIMEOUT_MESSAGE: &str = "The transcript was not ready within the timeout. Retry with more time.";

impl Verbatim {
    /// Returns the transcript of a video: archived, or fetched and archived. Free of charge.
    ///
    /// The request is a link, or a [`GetRequest`] with a language. If there is no such transcript, an archived one that
    /// matches less well is returned: in a language that matches the requested one, or in any language if none was
    /// requested. Its track names the language.
    ///
    /// That a video has no transcript is an outcome, not an error: [`GetOutcome::into_transcript`] makes it one.
    ///
    /// # Errors
    /// [`ErrorKind::Invalid`] if the link or the language is invalid; otherwise errors of the storage.
    ///
    /// # Cancellation
    /// Dropping the future ends the wait. A fetch that has started continues and is archived, unless
    /// [`Options::detach_unpaid`](crate::Options::detach_unpaid) is `false`: then it ends with its last waiter.
    ///
    /// ```no_run
    /// # async fn example() -> Result<(), verbatim::Error> {
    /// let verbatim = verbatim::Verbatim::open(verbatim::Options::default()).await?;
    /// let transcript = verbatim.get("https://youtu.be/dQw4w9WgXcQ").await?.into_transcript()?;
    /// println!("{}", transcript.to_markdown());
    /// # Ok(())
    /// # }
    /// ```
    pub async fn get(&self, request: impl Into<GetRequest>) -> Result<GetOutcome> {
        self.tools().get(request.into()).await
    }
}

impl ArchiveTools {
    /// Implements [`crate::Verbatim::get`].
    pub(crate) async fn get(&self, request: GetRequest) -> Result<GetOutcome> {
        // One deadline for the short link and all languages.
        let timeout = request.timeout.unwrap_or(self.transcripts.options().wait_timeout);
        let deadline = deadline_after(timeout);
        let selectors = request.selectors()?;
        let resolve = self.video(&request.link, !request.archived_only);
        let resolve = async { tokio::time::timeout_at(deadline, resolve).await };
        let video = match within(&self.runtime, resolve).await {
            Ok(Ok(Ok(video))) => video,
            Ok(Ok(Err(missing))) => return Ok(GetOutcome::Missing(missing)),
            Ok(Err(error)) => return Err(error),
            Err(_) => return self.unresolved(&request.link),
        };
        let mut remaining = selectors.iter().peekable();
        while let Some(selector) = remaining.next() {
            let outcome = self.get_track(&video, selector, &request, deadline).await?;
            if remaining.peek().is_some() && lacks_language(outcome.as_ref()) {
                continue;
            }
            return match outcome {
                Some(outcome) => Ok(self.with_languages(&video, self.to_get_outcome(&video, outcome)?).await),
                None => Ok(GetOutcome::Missing(self.not_archived_in(video, &selectors).await)),
            };
        }
        Err(Error::unexpected("the request has no track selector"))
    }

    /// Adds the known tracks of a video to a failure for one language.
    async fn with_languages(&self, video: &VideoId, outcome: GetOutcome) -> GetOutcome {
        match outcome {
            GetOutcome::Missing(missing) if missing.detail.as_deref() == Some(no_language()) => {
                let languages = self.transcripts.available_tracks(video, &missing.languages).await;
                GetOutcome::Missing(UnavailableTranscript { languages, ..missing })
            }
            outcome => outcome,
        }
    }

    /// The outcome for one selector; `None` if only the archive was read and nothing is known.
    async fn get_track(
        &self,
        video: &VideoId,
        selector: &TrackSelector,
        request: &GetRequest,
        deadline: Instant,
    ) -> Result<Option<FetchOutcome>> {
        let outcome = if request.archived_only {
            match self.transcripts.find(video, selector).await? {
                archive::FindOutcome::Transcript(stored) => Some(FetchOutcome::Archived(stored)),
                archive::FindOutcome::Absence(absence) => Some(FetchOutcome::Absent(absence)),
                archive::FindOutcome::Withdrawn => Some(FetchOutcome::Withdrawn),
                archive::FindOutcome::NotFound => None,
            }
        } else {
            let fetch = FetchRequest { video: video.clone(), selector: selector.clone(), payer: None };
            Some(self.transcripts.get_until(fetch, deadline).await)
        };
        let has_failed = match &outcome {
            Some(
                FetchOutcome::SupplyFailed(_)
                | FetchOutcome::Absent(_)
                | FetchOutcome::NoSupplier
                | FetchOutcome::Busy(_),
            )
            | None => true,
            Some(_) => false,
        };
        if *selector == TrackSelector::Default && has_failed {
            let best = self.transcripts.find_best_available(video).await;
            // A fetch that failed keeps its reason.
            match if request.archived_only { best? } else { best.unwrap_or(archive::FindOutcome::NotFound) } {
                archive::FindOutcome::Transcript(stored) => return Ok(Some(FetchOutcome::Archived(stored))),
                _ => return Ok(outcome),
            }
        }
        Ok(outcome)
    }

    /// The tracks of a video, archived or only known, in the order in which they became known.
    ///
    /// A video without known tracks is fetched first, unless [`GetRequest::archived_only`] is set; the list is then
    /// that of its platform. A later [`ArchiveTools::refresh`] renews it. The languages of the request do not matter,
    /// and its timeout begins when an unknown short link is resolved.
    ///
    /// The inner error is the reason of a failed fetch.
    ///
    /// # Errors
    /// As [`crate::Verbatim::get`].
    pub async fn tracks(
        &self,
        request: GetRequest,
    ) -> Result<Result<Vec<ArchivedTrack>, UnavailableTranscript>> {
        let may_fetch = !request.archived_only;
        let video = match self.video(&request.link, may_fetch).await? {
            Ok(video) => video,
            Err(missing) => return Ok(Err(missing)),
        };
        let known = self.transcripts.tracks(&video).await?;
        if !known.is_empty() || !may_fetch {
            return Ok(Ok(known));
        }
        let fetch = GetRequest { language: None, other_languages: Vec::new(), ..request };
        match self.get(fetch).await? {
            GetOutcome::Missing(missing) => Ok(Err(missing)),
            GetOutcome::Found(_) => Ok(Ok(self.transcripts.tracks(&video).await?)),
        }
    }

    /// Converts an engine outcome for a request without payment.
    pub(crate) fn to_get_outcome(&self, video: &VideoId, outcome: FetchOutcome) -> Result<GetOutcome> {
        let platform = video.platform();
        // What differs within a program: its user chose the suppliers, and may end work with its last waiter.
        let ends_with_waiter =
            matches!(outcome, FetchOutcome::InProgress(_)) && !self.transcripts.options().detach_unpaid;
        let message = match &outcome {
            FetchOutcome::NoSupplier => {
                Some(format!("There is no source of new transcripts for {}.", platform.name()))
            }
            _ if ends_with_waiter => Some(TIMEOUT_MESSAGE.to_owned()),
            _ => None,
        };
        let result = outcome.into_transcript(platform, self.now(), CostNote::None);
        Ok(match result.map_err(store_error)? {
            Ok((stored, from_cache)) => GetOutcome::Found(FoundTranscript { stored, from_cache }),
            Err(none) => {
                let message = message.unwrap_or_else(|| none.message.clone());
                let retry_after = none.retry_after.filter(|_| !ends_with_waiter);
                let none = NoTranscript { message, retry_after, ..none };
                GetOutcome::Missing(self.missing(VideoLink::Video(video.clone()), none))
            }
        })
    }

    /// Returns the video of a link. An unknown short link is resolved by its platform only if `query_platform` is set.
    pub(crate) async fn video(
        &self,
        link: &str,
        query_platform: bool,
    ) -> Result<Result<VideoId, UnavailableTranscript>> {
        let short = match VideoLink::parse(link)? {
            VideoLink::Video(video) => return Ok(Ok(video)),
            VideoLink::Short(short) => short,
        };
        let none = match self.transcripts.resolve(&short, query_platform).await {
            Ok(Some(ResolveOutcome::Video(video))) => return Ok(Ok(video)),
            Ok(Some(ResolveOutcome::NotAVideo(why))) => return Err(Error::invalid(why)),
            Ok(None) if !query_platform => return Ok(Err(self.not_archived(VideoLink::Short(short)))),
            Ok(None) => NoTranscript::new(FailureReason::FetchError, "The short link could not be followed."),
            Err(failure) => NoTranscript::from_supply_error(&failure, self.now()),
        };
        Ok(Err(self.missing(VideoLink::Short(short), none)))
    }

    /// The outcome of a short link that was not resolved within the timeout.
    fn unresolved(&self, link: &str) -> Result<GetOutcome> {
        let link = VideoLink::parse(link)?;
        let none = NoTranscript::new(FailureReason::FetchError, TIMEOUT_MESSAGE);
        Ok(GetOutcome::Missing(self.missing(link, none)))
    }

    fn not_archived(&self, link: VideoLink) -> UnavailableTranscript {
        let message = "This video is not archived yet.";
        self.missing(link, NoTranscript::new(FailureReason::NeedsVerification, message))
    }

    /// As [`ArchiveTools::not_archived`], with the languages of the video that are archived, if there are any.
    async fn not_archived_in(&self, video: VideoId, selectors: &[TrackSelector]) -> UnavailableTranscript {
        let tracks = self.transcripts.tracks(&video).await;
        let tracks = tracks.inspect_err(|error| tracing::warn!(%video, %error, "known tracks not read"));
        let tracks = tracks.unwrap_or_default().into_iter().filter(|archived| !archived.selectors.is_empty());
        let languages: Vec<_> =
            tracks.map(|archived| archived.track).filter(|track| !track.is_unreadable()).collect();
        let missing = self.not_archived(VideoLink::Video(video));
        if languages.is_empty() {
            return missing;
        }
        let archived = list_languages(&languages);
        let requested: Vec<_> =
            selectors.iter().filter_map(TrackSelector::language).map(LanguageTag::as_str).collect();
        let requested =
            if requested.is_empty() { "its default language".to_owned() } else { requested.join(" or ") };
        let message = format!("This video is not archived in {requested}. Archived languages: {archived}.");
        UnavailableTranscript { message, languages, ..missing }
    }

    fn missing(&self, link: VideoLink, none: NoTranscript) -> UnavailableTranscript {
        let (platform, id) = match &link {
            VideoLink::Video(video) => (video.platform(), video.id()),
            VideoLink::Short(short) => (short.platform(), short.code()),
        };
        UnavailableTranscript {
            platform,
            video_id: id.to_owned(),
            reason: none.reason,
            detail: none.detail,
            message: none.message,
            retry_after: none.retry_after,
            languages: none.languages,
            attempted: none.attempted,
            cause: none.cause,
            #[cfg(feature = "lookup")]
            watch_url: self.lookup.watch_url(&link, None),
        }
    }
}

/// Whether a request continues with its next language: the video may have a transcript in it.
fn lacks_language(outcome: Option<&FetchOutcome>) -> bool {
    match outcome {
        // Without a supplier, another language may be archived.
        None | Some(FetchOutcome::NoSupplier) => true,
        Some(FetchOutcome::SupplyFailed(failure)) => matches!(failure.reason(), SupplyReason::NoLanguage(_)),
        Some(FetchOutcome::Absent(absence)) => absence.reason == no_language(),
        Some(_) => false,
    }
}

/// The detail of a video without a transcript in the requested language.
fn no_language() -> &'static str {
    SupplyReason::NoLanguage(Vec::new()).as_str()
}

/// Maps an error of a store: `Invalid` becomes `Unexpected`, as the caller's link is not the cause.
fn store_error(error: Error) -> Error {
    match error.kind() {
        ErrorKind::Invalid => Error::unexpected(error.to_string()).with_cause(error.cause().cloned()),
        _ => error,
    }
}

#[cfg(test)]
mod language_tests;
#[cfg(test)]
pub(crate) mod tests;
