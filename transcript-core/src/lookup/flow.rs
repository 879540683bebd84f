//! The flow of a lookup (specification 11): link, archive, key, engine, response.

use std::{net::IpAddr, time::Duration};

use super::{
    AttributionTag, Availability, FailureReason, KeyUsage, Lookup, LookupRequest, LookupResponse,
    ReferenceError, keys::LookupPrincipal, payment::LookupPayer,
};
use crate::{
    archive::{Absence, FindOutcome, TrackSelector},
    directory::LookupKey,
    error::{Error, Result},
    limits::{LIMIT_MAX, LimitOutcome, LimitRequest},
    supplier::{ResolveOutcome, SupplyError, SupplyReason},
    time::{Timestamp, format_wait},
    video::{Platform, ShortLink, VideoId, VideoLink},
};

const MINUTE_MS: u64 = 60 * 1000;
const HOUR_MS: u64 = 60 * MINUTE_MS;

/// One running lookup.
pub(super) struct LookupFlow<'a> {
    pub(super) request: &'a LookupRequest,
    pub(super) caller: &'a Result<LookupPrincipal>,
    pub(super) may_fetch: bool,
    /// How long the caller waits for work that has started.
    pub(super) wait_timeout: Duration,
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

    /// Runs a lookup on the engine's runtime, so that any executor can wait for it.
    async fn answer(
        &self,
        request: LookupRequest,
        may_fetch: bool,
    ) -> Result<LookupResponse, ReferenceError> {
        let link = request.reference.link()?;
        let (lookup, target, src) = (self.clone(), link.clone(), request.src);
        let work = async move { lookup.run(&request, target, may_fetch).await };
        match self.deps.transcripts.task(work).await {
            Ok(answer) => answer,
            Err(error) => Ok(self.build_response(&link, src, None, store_failure_response(&error))),
        }
    }

    /// The whole lookup: the key's owner, the transcript, and the key's usage.
    ///
    /// Takes at most the wait timeout and three store calls, and one more store call if a proof renews the key.
    async fn run(
        &self,
        request: &LookupRequest,
        link: VideoLink,
        may_fetch: bool,
    ) -> Result<LookupResponse, ReferenceError> {
        let wait_timeout = self.deps.transcripts.options().wait_timeout;
        let caller = self.caller(request.key.as_deref(), request.proof.as_ref()).await;
        let flow = LookupFlow { request, caller: &caller, may_fetch, wait_timeout };
        let (link, availability) = self.run_within_timeout(&flow, link).await?;
        // The usage is read after the work, so that it contains this lookup's own charge.
        let key = match &caller {
            Ok(LookupPrincipal::Key(key)) => self.key_usage(key, self.deps.clock.now()).await.ok(),
            _ => None,
        };
        Ok(self.build_response(&link, request.src, key, availability))
    }

    /// Gets the transcript within the caller's wait and one store call.
    pub(super) async fn run_within_timeout(
        &self,
        flow: &LookupFlow<'_>,
        link: VideoLink,
    ) -> Result<(VideoLink, Availability), ReferenceError> {
        let time = flow.wait_timeout.saturating_add(self.deps.transcripts.options().store_timeout);
        match tokio::time::timeout(time, self.resolve_and_find(flow, link.clone())).await {
            Ok(reached) => reached,
            Err(_) => Ok((link, timeout_response())),
        }
    }

    /// The video of a link and its transcript, or why there is none.
    async fn resolve_and_find(
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
        let watch_url = self.deps.options.watch_url(link, src);
        LookupResponse { platform, video_id: id.to_owned(), watch_url, key, availability }
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
        let transcripts = &self.deps.transcripts;
        let mut resolved = transcripts.resolve(&link, false).await;
        let counted = flow.may_fetch && matches!(resolved, Ok(None));
        if counted {
            if let Err(error) = flow.caller {
                return Ok(LinkOutcome::Unresolved(link, store_failure_response(error)));
            }
            match self.count_attempt(flow).await {
                Ok(None) => resolved = transcripts.resolve(&link, true).await,
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
                Ok(LinkOutcome::Unresolved(link, supply_failure_response(&failure, self.deps.clock.now())))
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
        let absence = match self.deps.transcripts.find(video, &TrackSelector::Default).await? {
            FindOutcome::Transcript(stored) => {
                return Ok(Availability::Available { stored, from_cache: true });
            }
            FindOutcome::Withdrawn => return Ok(withdrawn_response()),
            FindOutcome::Absence(absence) => Some(absence),
            FindOutcome::NotFound => None,
        };
        let payer = match flow.caller {
            Ok(LookupPrincipal::Key(key)) if flow.may_fetch => LookupPayer::Key(key),
            Ok(LookupPrincipal::Visitor(visitor)) => LookupPayer::Visitor(visitor),
            caller => return self.without_fetching(video, caller, flow, counted).await,
        };
        let (answer, other_language_helps) = match absence {
            Some(absence) => (absence_response(absence, self.deps.clock.now()), true),
            None => self.fetch(video, payer, flow.wait_timeout, counted).await?,
        };
        // A caller with a key gets no less than one without: archived transcripts in other languages are free.
        match other_language_helps && !flow.request.default_only {
            true => Ok(self.find_best_available(video).await.ok().flatten().unwrap_or(answer)),
            false => Ok(answer),
        }
    }

    /// The best archived transcript in another language, free; else the failure of a caller without a key.
    async fn without_fetching(
        &self,
        video: &VideoId,
        caller: &Result<LookupPrincipal>,
        flow: &LookupFlow<'_>,
        counted: bool,
    ) -> Result<Availability> {
        if !flow.request.default_only
            && let Some(archived) = self.find_best_available(video).await?
        {
            return Ok(archived);
        }
        let reason = match caller {
            Ok(LookupPrincipal::UnknownKey(reason)) => reason,
            Ok(LookupPrincipal::Anonymous | LookupPrincipal::Key(_) | LookupPrincipal::Visitor(_)) => "",
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
        Ok(match self.deps.transcripts.find_best_available(video).await? {
            FindOutcome::Transcript(stored) => Some(Availability::Available { stored, from_cache: true }),
            FindOutcome::Absence(_) | FindOutcome::Withdrawn | FindOutcome::NotFound => None,
        })
    }

    /// The refusal for a key with too many failed attempts within an hour.
    ///
    /// Counts nothing: waiters of a running flight, and callers whose fetch succeeds, make no failed attempt.
    pub(super) async fn check_failed_attempts(&self, key: &LookupKey) -> Result<Option<Availability>> {
        let attempt = LimitRequest { cost: 0, ..self.attempt_limit_request(key) };
        if attempt.max == 0 {
            return Ok(Some(too_many_attempts(attempt.window_ms)));
        }
        let now = self.deps.clock.now();
        let outcome = self.with_store_timeout(self.deps.limiter.acquire(vec![attempt], now)).await?;
        Ok(match outcome {
            // Only a refused request returns the wait. If one attempt has just become free, it is taken, and the lookup
            // goes on.
            LimitOutcome::Allowed { remaining: 0, .. } => {
                self.check_limits(vec![self.attempt_limit_request(key)], now).await?.map(too_many_attempts)
            }
            LimitOutcome::Allowed { .. } => None,
            LimitOutcome::Limited { retry_after_ms, .. } => Some(too_many_attempts(retry_after_ms)),
        })
    }

    pub(super) fn attempt_limit_request(&self, key: &LookupKey) -> LimitRequest {
        LimitRequest {
            bucket: format!("attempt/{}", key.key.id),
            max: self.deps.options.attempts_per_key_per_hour.min(LIMIT_MAX),
            window_ms: HOUR_MS,
            cost: 1,
        }
    }

    /// Counts a request beyond the archive, once per lookup. Returns the refusal if there were too many.
    ///
    /// It counts an attempt of the key, or a miss of the network.
    async fn count_attempt(&self, flow: &LookupFlow<'_>) -> Result<Option<Availability>> {
        let now = self.deps.clock.now();
        let requests = match flow.caller {
            Ok(LookupPrincipal::Key(key)) => vec![self.attempt_limit_request(key)],
            // The visitor was counted at admission.
            Ok(LookupPrincipal::Visitor(_)) => return Ok(None),
            _ => self.miss_limit_requests(flow.request.client, now),
        };
        let Some(retry_after_ms) = self.check_limits(requests, now).await? else { return Ok(None) };
        Ok(Some(match flow.caller {
            Ok(LookupPrincipal::Key(_)) => too_many_attempts(retry_after_ms),
            _ => too_many_misses_response(retry_after_ms),
        }))
    }

    /// The rate limits of a miss of a network.
    pub(super) fn miss_limit_requests(&self, client: Option<IpAddr>, now: Timestamp) -> Vec<LimitRequest> {
        let limit = self.deps.options.misses_per_network_per_minute;
        self.networks.limit_requests("miss", client, limit, MINUTE_MS, now)
    }
}

pub(super) fn withdrawn_response() -> Availability {
    Availability::none(
        FailureReason::NoCaptions,
        "This transcript was withdrawn by the operator of the service.",
    )
    .with_detail("withdrawn")
}

/// A stored absence, with the time until it ends.
pub(super) fn absence_response(absence: Absence, now: Timestamp) -> Availability {
    let left = absence.until.since(now);
    let none = Availability::none(FailureReason::NoCaptions, absence.message);
    none.with_retry_after(Some(left)).with_detail(&absence.reason)
}

pub(super) fn no_supplier_response(platform: Platform) -> Availability {
    let message = format!("This service has no source of new transcripts for {}.", platform.name());
    Availability::none(FailureReason::ConfigError, message)
}

/// The response for a supplier's failure.
pub(super) fn supply_failure_response(failure: &SupplyError, now: Timestamp) -> Availability {
    let reason = failure.reason();
    let none = Availability::none(FailureReason::for_supply_error(failure), failure.message());
    let starts_in = match reason {
        SupplyReason::Upcoming(Some(start)) if *start > now => Some(start.since(now)),
        _ => None,
    };
    let none = none.with_retry_after(failure.retry_after().or(starts_in));
    if reason.is_about_video() { none.with_detail(reason.as_str()) } else { none }
}

pub(super) fn too_many_misses_response(retry_after_ms: u64) -> Availability {
    let message = format!(
        "Your network requested too many videos that are not archived. Try again in {}, or send an API key.",
        format_wait(retry_after_ms.div_ceil(1_000).max(1))
    );
    let wait = Duration::from_millis(retry_after_ms);
    Availability::none(FailureReason::FairUse, message).with_retry_after(Some(wait))
}

fn too_many_attempts(retry_after_ms: u64) -> Availability {
    let message = format!(
        "Too many requests for new transcripts with this API key failed within an hour. Try again in {}. \
         Archived transcripts stay free.",
        format_wait(retry_after_ms.div_ceil(1_000).max(1))
    );
    let wait = Duration::from_millis(retry_after_ms);
    Availability::none(FailureReason::FairUse, message).with_retry_after(Some(wait))
}

/// The response after the timeout of the whole lookup. Work that has started goes on.
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
    tracing::error!(%error, "lookup store call failed");
    Availability::none(
        FailureReason::FetchError,
        "The service could not reach its storage; nothing was charged. Try again in a moment.",
    )
}
