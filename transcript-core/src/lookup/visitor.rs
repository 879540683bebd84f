//! Visitors of the watch page: people without a key, with a few new transcripts a day.
//!
//! A visitor (specification 4.14) pays with three legs: their own allowance, identified by a cookie; their network's
//! allowance, which also covers visitors that delete their cookies; and the service's daily cap.

use std::{net::IpAddr, sync::Arc, time::Duration};

use super::{
    AttributionTag, Availability, ChallengeProvider, FailureReason, Lookup, LookupRequest, LookupResponse,
    ReferenceError, VideoReference,
    challenge::SolutionVerdict,
    flow::{self, LookupFlow},
    keys::LookupPrincipal,
};
use crate::{
    archive::{FindOutcome, TrackSelector},
    debug_fields,
    engine::{EngineOptions, FetchProgress, NoTranscript},
    error::Result,
    ids::{WalletId, random_id},
    ledger::terms::{self, AllowancePeriod},
    limits::LimitOutcome,
    retry::deadline_after,
    time::{Random, Timestamp},
    transcript::LanguageTag,
    video::{VideoId, VideoLink},
};

/// Prefix of a visitor's name, and purpose of the digest that signs it.
const PURPOSE: &str = "visitor";

/// A visitor whose browser has passed the check.
#[derive(Clone, Debug)]
pub(super) struct Visitor {
    /// The name in the cookie.
    pub(super) name: String,
    /// The network address, if known.
    pub(super) client: Option<IpAddr>,
}

impl Visitor {
    /// The wallet of the visitor's own allowance.
    pub(super) fn wallet(&self) -> WalletId {
        WalletId::new(self.name.clone())
    }
}

/// A visitor's request for a new transcript.
#[derive(Clone)]
pub struct VisitorRequest {
    /// The video or short link of the page.
    pub link: VideoLink,
    /// The language; `None`: English if there is English, else the spoken language.
    pub language: Option<LanguageTag>,
    /// The attribution tag.
    pub src: Option<AttributionTag>,
    /// The solved challenge.
    pub solution: String,
    /// The visitor's cookie, if one was sent.
    pub cookie: Option<String>,
    /// The network address, if known.
    pub client: Option<IpAddr>,
}

debug_fields!(VisitorRequest { link });

impl VisitorRequest {
    /// The track that the visitor requests.
    fn selector(&self) -> TrackSelector {
        self.language.clone().map_or(TrackSelector::Default, TrackSelector::Language)
    }
}

/// Outcome of a visitor's request.
#[derive(Debug)]
pub enum VisitorOutcome {
    /// The check was passed: the video can be transcribed.
    Admitted(Box<AdmittedVisitor>),
    /// The response exists already: an archived transcript, or a refusal.
    Answered(Box<LookupResponse>),
}

/// A visitor that has passed the check, with their request.
#[derive(Debug)]
pub struct AdmittedVisitor {
    lookup: Lookup,
    request: VisitorRequest,
    visitor: Visitor,
    now: Timestamp,
}

/// How long a visitor waits.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum WaitMode {
    /// As long as any caller (`limits.wait`).
    Bounded,
    /// Until the work has ended; progress is sent during the wait.
    Unbounded,
}

/// Visitors of the watch page. A clone is a handle to the same state.
#[derive(Clone, Debug)]
pub struct Visitors {
    pub(super) lookup: Lookup,
    /// Browser challenges; without it, visitors get archived transcripts only.
    pub(super) challenges: Option<Arc<dyn ChallengeProvider>>,
}

impl Visitors {
    /// The visitors of a lookup API. Without a challenge provider they get archived transcripts only.
    pub fn new(lookup: Lookup, challenges: Option<Arc<dyn ChallengeProvider>>) -> Self {
        Self { lookup, challenges }
    }

    /// Verifies a visitor's challenge solution and uses it up.
    ///
    /// An archived transcript needs no check. A wrong solution is [`FailureReason::NeedsVerification`], too many
    /// requests from one network [`FailureReason::FairUse`].
    pub async fn admit(&self, request: VisitorRequest) -> VisitorOutcome {
        let (visitors, link, src) = (self.clone(), request.link.clone(), request.src);
        let admission = async move { visitors.admission(request).await };
        let answer = match self.lookup.transcripts.task(admission).await {
            Ok(Ok(admission)) => return admission,
            Ok(Err(error)) | Err(error) => flow::store_failure_response(&error),
        };
        VisitorOutcome::Answered(Box::new(self.lookup.build_response(&link, src, None, answer)))
    }

    async fn admission(&self, request: VisitorRequest) -> Result<VisitorOutcome> {
        let answered = |link: &VideoLink, availability| {
            let response = self.lookup.build_response(link, request.src, None, availability);
            VisitorOutcome::Answered(Box::new(response))
        };
        if let VideoLink::Video(video) = &request.link
            && let Some(availability) = self.find_archived(video, &request.selector()).await?
        {
            return Ok(answered(&request.link, availability));
        }
        let now = self.lookup.clock.now();
        let verdict = match self.can_fetch() {
            true => self.check_solution(&request.link, &request.solution, now),
            false => SolutionVerdict::NOT_SERVED,
        };
        let solution_limit = match verdict {
            SolutionVerdict::Accepted(request) => request,
            SolutionVerdict::Rejected(reason) => {
                let none = Availability::none(FailureReason::NeedsVerification, reason);
                return Ok(answered(&request.link, none));
            }
        };
        // A visitor's request is a miss of their network, whatever its outcome.
        let mut requests = vec![solution_limit];
        requests.extend(self.lookup.limits.miss(request.client, now));
        let refusal = match self.lookup.limits.acquire(requests, now).await? {
            LimitOutcome::Allowed { .. } => {
                let name = self.visitor_name(request.cookie.as_deref());
                let visitor = Visitor { name, client: request.client };
                return Ok(VisitorOutcome::Admitted(Box::new(AdmittedVisitor {
                    lookup: self.lookup.clone(),
                    request,
                    visitor,
                    now,
                })));
            }
            LimitOutcome::Limited { limit_index: 0, .. } => Availability::none(
                FailureReason::NeedsVerification,
                "This browser check was used already. Press the button again.",
            ),
            LimitOutcome::Limited { retry_after_ms, .. } => flow::too_many_misses_response(retry_after_ms),
        };
        Ok(answered(&request.link, refusal))
    }

    /// How many new transcripts a visitor can still request today; changes nothing.
    ///
    /// It is the least of what is left to the visitor, identified by the cookie, and to the network.
    ///
    /// # Errors
    /// The ledger is unavailable.
    pub async fn remaining(&self, cookie: Option<&str>, client: Option<IpAddr>) -> Result<u64> {
        let (lookup, name) = (self.lookup.clone(), self.known_name(cookie).map(str::to_owned));
        let work = async move {
            let now = lookup.clock.now();
            let mut left = lookup.options.visitor_per_day;
            let own = name.map(|name| (WalletId::new(name), left));
            let networks = lookup.limits.network_wallets(client, now);
            for (wallet, limit) in own.into_iter().chain(networks) {
                let terms = terms::allowance(AllowancePeriod::Day, limit, now);
                left = left.min(lookup.keys.balance(&wallet, &terms).await?.available());
            }
            Ok(left)
        };
        self.lookup.transcripts.task(work).await?
    }

    /// The archived transcript for a selector, or the withdrawal of the video.
    async fn find_archived(&self, video: &VideoId, selector: &TrackSelector) -> Result<Option<Availability>> {
        Ok(match self.lookup.transcripts.find(video, selector).await? {
            FindOutcome::Transcript(stored) => Some(Availability::Available { stored, from_cache: true }),
            FindOutcome::Withdrawn => Some(NoTranscript::withdrawn().into()),
            FindOutcome::Absence(_) | FindOutcome::NotFound => None,
        })
    }

    /// Randomness for names and challenges.
    pub(super) fn random(&self) -> &dyn Random {
        self.lookup.keys.random.as_ref()
    }

    /// The value of the cookie of a visitor with this name.
    pub(super) fn signed(&self, name: &str) -> String {
        signed_name(&self.lookup, name)
    }

    /// The name in a validly signed cookie, or a new one.
    pub(super) fn visitor_name(&self, cookie: Option<&str>) -> String {
        self.known_name(cookie).map_or_else(|| random_id(self.random(), PURPOSE), str::to_owned)
    }

    /// The name in a validly signed cookie.
    fn known_name<'a>(&self, cookie: Option<&'a str>) -> Option<&'a str> {
        let (name, digest) = cookie?.rsplit_once('.')?;
        self.lookup.keyed_digest.is_digest(PURPOSE, name, digest).then_some(name)
    }

    /// Progress of the fetch of a track; `None` if this server does not fetch it.
    pub fn progress(&self, video: &VideoId, selector: &TrackSelector) -> Option<FetchProgress> {
        self.lookup.transcripts.progress(video, selector)
    }
}

impl AdmittedVisitor {
    /// The value of the visitor's cookie: a random name and its digest. It has no data about the visitor.
    pub fn cookie(&self) -> String {
        signed_name(&self.lookup, &self.visitor.name)
    }

    /// Lifetime of the cookie: until the end of the day, when the allowance resets.
    pub fn cookie_lifetime(&self) -> Duration {
        AllowancePeriod::Day.end(self.now).since(self.now)
    }

    /// The track to pass to [`Visitors::progress`]; `None` for a short link.
    pub fn track(&self) -> Option<(VideoId, TrackSelector)> {
        match &self.request.link {
            VideoLink::Video(video) => Some((video.clone(), self.request.selector())),
            VideoLink::Short(_) => None,
        }
    }

    /// Gets the video transcribed, paid by the visitor's legs.
    ///
    /// # Errors
    /// [`ReferenceError`] if a short link leads to no video.
    ///
    /// # Cancellation
    /// Dropping the future ends the wait, not work that has started: it is archived and settled.
    pub async fn transcribe(self, wait_mode: WaitMode) -> Result<LookupResponse, ReferenceError> {
        let Self { lookup, request, visitor, .. } = self;
        let EngineOptions { wait_timeout, work_timeout, .. } = *lookup.transcripts.options();
        let deadline = deadline_after(match wait_mode {
            WaitMode::Bounded => wait_timeout,
            WaitMode::Unbounded => work_timeout,
        });
        let VisitorRequest { link, language, src, .. } = request;
        let address = match &link {
            VideoLink::Video(video) => video.address(),
            VideoLink::Short(link) => link.address().to_owned(),
        };
        let request = LookupRequest {
            language,
            src,
            client: visitor.client,
            ..LookupRequest::new(VideoReference::Url(address))
        };
        let (task_lookup, target) = (lookup.clone(), link.clone());
        let work = async move {
            let caller = Ok(LookupPrincipal::Visitor(visitor));
            let flow = LookupFlow { deadline, ..task_lookup.flow(&request, &caller, true) };
            task_lookup.resolve_and_find(&flow, target).await
        };
        match lookup.transcripts.task(work).await {
            Ok(reached) => {
                reached.map(|(link, availability)| lookup.build_response(&link, src, None, availability))
            }
            Err(error) => Ok(lookup.build_response(&link, src, None, flow::store_failure_response(&error))),
        }
    }
}

fn signed_name(lookup: &Lookup, name: &str) -> String {
    format!("{name}.{}", lookup.keyed_digest.digest(PURPOSE, name))
}
