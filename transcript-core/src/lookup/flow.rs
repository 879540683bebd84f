//! The flow of a lookup (specification 11): link, archive, key, engine, response.

use std::time::Duration;

use tokio::{
    sync::OnceCell,
    time::{Instant, timeout_at},
};

use super::{
    AttributionTag, Availability, FailureReason, KeyUsage, Lookup, LookupRequest, LookupResponse,
    ReferenceError, ResolvedRequest, VideoReference, keys::LookupPrincipal, payment::LookupPayer,
};
use crate::{
    archive::{ArchivedTrack, FindOutcome},
    directory::LookupKey,
    engine::{CostNote, FetchOutcome, FetchRequest, NoTranscript},
    error::{Error, Result},
    failure_log::log_failure,
    retry::{deadline_after, is_over},
    supplier::ResolveOutcome,
    time::format_wait,
    transcript::TrackInfo,
    video::{ShortLink, VideoId, VideoLink},
};

/// One running lookup.
pub(super) struct LookupFlow<'a> {
    pub(super) request: &'a LookupRequest,
    pub(super) caller: &'a Result<LookupPrincipal>,
    pub(super) may_fetch: bool,
    /// When the caller stops waiting for work that has started.
    pub(super) deadline: Instant,
    /// The known tracks of the video, read once: the failure and the list of languages both need them.
    pub(super) tracks: OnceCell<Vec<ArchivedTrack>>,
}

/// Outcome of resolving a link.
enum LinkOutcome {
    Video {
        video: VideoId,
        /// Whether resolving it was already counted.
        counted: bool,
    },
    /// A short link that was not resolved, with the response.
    Unresolved(ShortLink, Availability),
}

impl Lookup {
    /// Looks a transcript up; fetches it if the key permits.
    ///
    /// Every failure except a bad reference is a response: an unavailable store is a transient
    /// [`FailureReason::FetchError`], and nothing is charged.
    ///
    /// # Errors
    /// [`ReferenceError`] if the reference names no video.
    pub async fn look_up(&self, request: LookupRequest) -> Result<LookupResponse, ReferenceError> {
        self.answer(request, true).await
    }

    /// Looks a transcript up in the archive only: never fetches, holds, charges or counts.
    ///
    /// # Errors
    /// [`ReferenceError`] if the reference names no video.
    pub async fn look_up_archived(&self, request: LookupRequest) -> Result<LookupResponse, ReferenceError> {
        self.answer(request, false).await
    }

    /// Resolves the short link of a request without a key, as [`Self::look_up`] does before it reads the archive.
    ///
    /// It may wait for the platform. A request for a video is returned unchanged.
    ///
    /// # Errors
    /// [`ReferenceError`] if the reference names no video.
    pub async fn resolve(&self, request: LookupRequest) -> Result<ResolvedRequest, ReferenceError> {
        let link = request.reference.link()?;
        if matches!(link, VideoLink::Video(_)) {
            return Ok(ResolvedRequest::Video { request, counted: false });
        }
        let (lookup, target, src) = (self.clone(), link.clone(), request.src);
        let work = async move {
            let caller = Ok(LookupPrincipal::Anonymous);
            let flow = lookup.flow(&request, &caller, true);
            Ok(match lookup.resolve_link(&flow, target).await? {
                LinkOutcome::Video { video, counted } => {
                    let reference = VideoReference::Url(video.address());
                    ResolvedRequest::Video {
                        request: LookupRequest { reference, ..request.clone() },
                        counted,
                    }
                }
                LinkOutcome::Unresolved(link, reason) => ResolvedRequest::Unresolved(LookupResponse {
                    requested_language: request.language.clone(),
                    ..lookup.build_response(&VideoLink::Short(link), src, None, reason)
                }),
            })
        };
        match self.transcripts.task(work).await {
            Ok(resolved) => resolved,
            Err(error) => {
                let response = self.build_response(&link, src, None, store_failure_response(&error));
                Ok(ResolvedRequest::Unresolved(response))
            }
        }
    }

    /// Runs a lookup on the engine's runtime, so that any executor can wait for it.
    async fn answer(
        &self,
        request: LookupRequest,
        may_fetch: bool,
    ) -> Result<LookupResponse, ReferenceError> {
        let link = request.reference.link()?;
        let (lookup, target, src) = (self.clone(), link.clone(), request.src);
        let work = async move { lookup.run(&request, target, may_fetch).await };
        match self.transcripts.task(work).await {
            Ok(answer) => answer,
            Err(error) => Ok(self.build_response(&link, src, None, store_failure_response(&error))),
        }
    }

    /// The whole lookup: the key's owner, the transcript, and the key's usage.
    ///
    /// Takes at most the wait timeout and three store calls, and one more store call each if a proof renews the key and
    /// if a requested language is missing. A wait timeout below two store calls counts as two.
    async fn run(
        &self,
        request: &LookupRequest,
        link: VideoLink,
        may_fetch: bool,
    ) -> Result<LookupResponse, ReferenceError> {
        let caller = self.keys.principal(request.key.as_deref(), request.proof.as_ref()).await;
        if let Some(refusal) = self.refusal(&caller, may_fetch).await {
            return Ok(self.build_response(&link, request.src, None, refusal));
        }
        let flow = self.flow(request, &caller, may_fetch);
        let (link, availability) = self.resolve_and_find(&flow, link).await?;
        // The usage is read after the work, so that it contains this lookup's own charge.
        let key = match &caller {
            Ok(LookupPrincipal::Key(key)) => {
                let usage = self.keys.usage(key, self.clock.now()).await;
                usage.inspect_err(|error| log_failure!(warn, [%error], "key usage not read")).ok()
            }
            _ => None,
        };
        let languages = self.languages_instead(&flow, &link, &availability).await;
        Ok(LookupResponse {
            requested_language: request.language.clone(),
            languages,
            ..self.build_response(&link, request.src, key, availability)
        })
    }

    /// A lookup that begins now.
    pub(super) fn flow<'a>(
        &self,
        request: &'a LookupRequest,
        caller: &'a Result<LookupPrincipal>,
        may_fetch: bool,
    ) -> LookupFlow<'a> {
        let deadline = deadline_after(self.transcripts.options().wait_timeout);
        LookupFlow { request, caller, may_fetch, deadline, tracks: OnceCell::new() }
    }

    /// The tracks of a video without a transcript in the requested language: those that the failure names, and the
    /// known ones.
    async fn languages_instead(
        &self,
        flow: &LookupFlow<'_>,
        link: &VideoLink,
        availability: &Availability,
    ) -> Vec<TrackInfo> {
        match (link, availability) {
            (VideoLink::Video(video), Availability::Unavailable(none))
                if flow.request.language.is_some() || none.lacks_language() =>
            {
                let known = self.known_tracks(flow, video).await;
                let known =
                    known.inspect_err(|error| log_failure!(warn, [%video, %error], "known tracks not read"));
                self.transcripts.reported_and_known(video, &none.languages, known.unwrap_or_default())
            }
            _ => Vec::new(),
        }
    }

    /// Counts the request of a key; returns the refusal of an expired key and of one whose quota is used up.
    async fn refusal(&self, caller: &Result<LookupPrincipal>, is_counted: bool) -> Option<Availability> {
        match caller {
            Ok(LookupPrincipal::ExpiredKey(end)) => Some(NoTranscript::expired_key(*end).into()),
            Ok(LookupPrincipal::Key(key)) if is_counted => match self.keys.count_request(key).await {
                Ok(wait) => wait.map(|wait| quota_response(key, wait)),
                Err(error) => Some(store_failure_response(&error)),
            },
            _ => None,
        }
    }

    /// The video of a link and its transcript, or why there is none.
    pub(super) async fn resolve_and_find(
        &self,
        flow: &LookupFlow<'_>,
        link: VideoLink,
    ) -> Result<(VideoLink, Availability), ReferenceError> {
        Ok(match self.resolve_link(flow, link).await? {
            LinkOutcome::Video { video, counted } => {
                let availability = self.availability(&video, flow, counted).await;
                (VideoLink::Video(video), availability.unwrap_or_else(|error| store_failure_response(&error)))
            }
            LinkOutcome::Unresolved(link, reason) => (VideoLink::Short(link), reason),
        })
    }

    pub(super) fn build_response(
        &self,
        link: &VideoLink,
        src: Option<AttributionTag>,
        key: Option<KeyUsage>,
        availability: Availability,
    ) -> LookupResponse {
        let (platform, id) = match link {
            VideoLink::Video(video) => (video.platform(), video.id()),
            VideoLink::Short(link) => (link.platform(), link.code()),
        };
        let watch_url = self.options.watch_url(link, src);
        LookupResponse {
            platform,
            video_id: id.to_owned(),
            watch_url,
            key,
            requested_language: None,
            languages: Vec::new(),
            availability,
        }
    }

    /// Resolves a link to its video.
    ///
    /// A short link is looked up in the cache, which is free, then with its platform, which counts.
    async fn resolve_link(
        &self,
        flow: &LookupFlow<'_>,
        link: VideoLink,
    ) -> Result<LinkOutcome, ReferenceError> {
        let link = match link {
            VideoLink::Video(video) => return Ok(LinkOutcome::Video { video, counted: false }),
            VideoLink::Short(link) => link,
        };
        let transcripts = &self.transcripts;
        let mut resolved = transcripts.resolve(&link, false).await;
        let counted = flow.may_fetch && matches!(resolved, Ok(None));
        if counted {
            if let Err(error) = flow.caller {
                return Ok(LinkOutcome::Unresolved(link, store_failure_response(error)));
            }
            match self.count_attempt(flow).await {
                // After the deadline nothing is started.
                Ok(None) if is_over(flow.deadline) => {
                    return Ok(LinkOutcome::Unresolved(link, timeout_response()));
                }
                Ok(None) => match timeout_at(flow.deadline, transcripts.resolve(&link, true)).await {
                    Ok(answer) => resolved = answer,
                    Err(_) => return Ok(LinkOutcome::Unresolved(link, timeout_response())),
                },
                Ok(Some(reason)) => return Ok(LinkOutcome::Unresolved(link, reason)),
                Err(error) => return Ok(LinkOutcome::Unresolved(link, store_failure_response(&error))),
            }
        }
        match resolved {
            Ok(Some(ResolveOutcome::Video(video))) => Ok(LinkOutcome::Video { video, counted }),
            Ok(Some(ResolveOutcome::NotAVideo(message))) => {
                Err(ReferenceError { parameter: flow.request.reference.parameter(), message })
            }
            Ok(None) => Ok(LinkOutcome::Unresolved(link, needs_key_response(""))),
            Err(failure) => {
                let none = NoTranscript::from_supply_error(&failure, self.clock.now());
                Ok(LinkOutcome::Unresolved(link, none.into()))
            }
        }
    }

    /// The transcript of a video, or why there is none.
    async fn availability(
        &self,
        video: &VideoId,
        flow: &LookupFlow<'_>,
        counted: bool,
    ) -> Result<Availability> {
        let absence = match self.transcripts.find(video, &flow.request.selector()).await? {
            FindOutcome::Transcript(stored) => {
                return Ok(Availability::Available { stored, from_cache: true });
            }
            FindOutcome::Withdrawn => return Ok(NoTranscript::withdrawn().into()),
            FindOutcome::Absence(absence) => Some(absence),
            FindOutcome::NotFound => None,
        };
        let payer = match flow.caller {
            Ok(LookupPrincipal::Key(key)) if flow.may_fetch => LookupPayer::Key(key.clone()),
            Ok(LookupPrincipal::Visitor(visitor)) => LookupPayer::Visitor(visitor.clone()),
            caller => return self.without_fetching(video, caller, flow, counted).await,
        };
        let (answer, other_language_helps) = match absence {
            Some(absence) => (NoTranscript::from_absence(absence, self.clock.now()).into(), true),
            None => self.fetch(video, payer, flow, counted).await?,
        };
        // A caller with a key gets no less than one without: archived transcripts in other languages are free.
        if !other_language_helps || !flow.request.accepts_other_languages() {
            return Ok(answer);
        }
        // The caller's own answer is ready: a slow archive must not delay it by more than one store call.
        let limit = flow.deadline + self.transcripts.options().store_timeout;
        let found = timeout_at(limit, self.find_best_available(video)).await;
        Ok(found.ok().and_then(Result::ok).flatten().unwrap_or(answer))
    }

    /// The best archived transcript in another language, free; else the failure of a caller without a key.
    ///
    /// A request for a language gets no other one, but the failure says whether the video is known to lack it.
    async fn without_fetching(
        &self,
        video: &VideoId,
        caller: &Result<LookupPrincipal>,
        flow: &LookupFlow<'_>,
        counted: bool,
    ) -> Result<Availability> {
        let other = match &flow.request.language {
            // The platform may translate.
            Some(_) if flow.request.translated => None,
            Some(language) => self.unknown_language(flow, video, language).await?,
            None if flow.request.accepts_other_languages() => self.find_best_available(video).await?,
            None => None,
        };
        if let Some(other) = other {
            return Ok(other);
        }
        let reason = match caller {
            Ok(LookupPrincipal::UnknownKey(reason)) => reason,
            Ok(_) => "",
            Err(error) => return Err(error.clone()),
        };
        if flow.may_fetch
            && !counted
            && let Some(refusal) = self.count_attempt(flow).await?
        {
            return Ok(refusal);
        }
        Ok(needs_key_response(reason))
    }

    /// The best archived transcript for a caller that cannot get the default track.
    async fn find_best_available(&self, video: &VideoId) -> Result<Option<Availability>> {
        Ok(match self.transcripts.find_best_available(video).await? {
            FindOutcome::Transcript(stored) => Some(Availability::Available { stored, from_cache: true }),
            FindOutcome::Absence(_) | FindOutcome::Withdrawn | FindOutcome::NotFound => None,
        })
    }

    /// Fetches the requested transcript, for 1 of the payer's allowance and 1 of the daily cap.
    ///
    /// Also returns whether a transcript in another language would be a better response.
    async fn fetch(
        &self,
        video: &VideoId,
        payer: LookupPayer,
        flow: &LookupFlow<'_>,
        counted: bool,
    ) -> Result<(Availability, bool)> {
        let transcripts = &self.transcripts;
        // Resolving a short link was already counted as this lookup's attempt, even if it was the last one.
        if let LookupPayer::Key(key) = &payer
            && transcripts.has_supplier(video.platform())
            && !counted
            && let Some(retry_after_ms) = self.limits.check_failed_attempts(key, self.clock.now()).await?
        {
            return Ok((too_many_attempts(retry_after_ms), true));
        }
        let payer = Some(self.payments.payer(video, payer, counted));
        let fetch = FetchRequest { video: video.clone(), selector: flow.request.selector(), payer };
        let Some(outcome) = transcripts.fetch_missing(fetch, flow.deadline).await else {
            return Ok((timeout_response(), true));
        };
        // While the work goes on, the transcript that the caller will be charged for is still to come.
        let has_ended = !matches!(outcome, FetchOutcome::InProgress(_) | FetchOutcome::Withdrawn);
        let now = self.clock.now();
        Ok(match outcome.into_transcript(video.platform(), now, CostNote::None) {
            Ok(Ok((stored, from_cache))) => (Availability::Available { stored, from_cache }, false),
            Ok(Err(none)) => (none.into(), has_ended),
            Err(error) => (store_failure_response(&error), true),
        })
    }

    /// Counts a request beyond the archive, once per lookup. Returns the refusal if there were too many.
    ///
    /// It counts an attempt of the key, or a miss of the network.
    async fn count_attempt(&self, flow: &LookupFlow<'_>) -> Result<Option<Availability>> {
        let now = self.clock.now();
        let requests = match flow.caller {
            Ok(LookupPrincipal::Key(key)) => vec![self.limits.attempt(key)],
            // The visitor was counted at admission.
            Ok(LookupPrincipal::Visitor(_)) => return Ok(None),
            _ => self.limits.miss(flow.request.client, now),
        };
        let Some(retry_after_ms) = self.limits.check(requests, now).await? else { return Ok(None) };
        Ok(Some(match flow.caller {
            Ok(LookupPrincipal::Key(_)) => too_many_attempts(retry_after_ms),
            _ => too_many_misses_response(retry_after_ms),
        }))
    }
}

pub(super) fn too_many_misses_response(retry_after_ms: u64) -> Availability {
    let wait = Duration::from_millis(retry_after_ms);
    let message = format!(
        "Your network requested too many videos that are not archived. Try again in {}, or send an API key.",
        format_wait(wait)
    );
    NoTranscript::new(FailureReason::FairUse, message).with_retry_after(wait).into()
}

fn quota_response(key: &LookupKey, wait: Duration) -> Availability {
    let (max, period) = key.access.quota.map_or((0, ""), |quota| (quota.max, quota.period.as_str()));
    NoTranscript::exhausted_quota(max, period, wait).into()
}

fn too_many_attempts(retry_after_ms: u64) -> Availability {
    let wait = Duration::from_millis(retry_after_ms);
    let message = format!(
        "Too many requests for new transcripts with this API key failed within an hour. Try again in {}. \
         Archived transcripts stay free.",
        format_wait(wait)
    );
    NoTranscript::new(FailureReason::FairUse, message).with_retry_after(wait).into()
}

/// The response when a short link is not resolved by the caller's deadline, or no fetch was started by then. Work that
/// has started goes on.
fn timeout_response() -> Availability {
    Availability::none(FailureReason::FetchError, "The lookup took too long. Try again in a moment.")
}

/// `reason` says what is wrong with the key; empty if none was sent.
fn needs_key_response(reason: &str) -> Availability {
    const MESSAGE: &str = "This video has not been transcribed yet. Send an API key to transcribe it; the watch page \
                           shows it from then on.";
    let message = if reason.is_empty() { MESSAGE.to_owned() } else { format!("{reason} {MESSAGE}") };
    Availability::none(FailureReason::NeedsVerification, message)
}

/// The response for a store failure; the details go to the log.
pub(super) fn store_failure_response(error: &Error) -> Availability {
    log_failure!(error, [%error], "lookup store call failed");
    let message = if error.is_unreadable() {
        // The archive, the ledger or the directory.
        "Stored data is damaged: nothing was charged. The operator of this service must repair it."
    } else {
        "The service could not reach its storage; nothing was charged. Try again in a moment."
    };
    NoTranscript::storage_failure(message).into()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn damage_of_any_store_is_not_blamed_on_archive() {
        let torn = Error::corrupt("torn");
        let Availability::Unavailable(none) = store_failure_response(&torn) else { panic!("no transcript") };
        assert!(none.message.starts_with("Stored data is damaged: nothing was charged."), "{}", none.message);
    }
}
