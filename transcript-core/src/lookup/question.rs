//! Questions of visitors about a video: how many a person without a key may ask.
//!
//! A question costs nothing, so it is no operation of the ledger. It counts for the visitor, who is identified by the
//! cookie, and for their network. A question whose browser has solved a challenge may use the chat model; it counts for
//! the whole service too. All counts are of a UTC day.

use std::{net::IpAddr, time::Duration};

use super::{Visitors, challenge::SolutionVerdict, limits::LookupLimits};
use crate::{
    debug_fields,
    error::Result,
    ledger::terms::AllowancePeriod,
    limits::{LimitOutcome, LimitRequest},
    time::Timestamp,
    video::{VideoId, VideoLink},
};

/// A visitor who wants to ask about a video.
#[derive(Clone)]
pub struct QuestionRequest {
    /// The video of the page.
    pub video: VideoId,
    /// The solved challenge; `None` if the browser has not solved one.
    pub solution: Option<String>,
    /// The visitor's cookie, if one was sent.
    pub cookie: Option<String>,
    /// The network address, if known.
    pub client: Option<IpAddr>,
}

debug_fields!(QuestionRequest { video });

/// Whether a visitor may ask.
#[derive(Debug)]
pub enum QuestionOutcome {
    /// The question is counted and may be answered.
    Admitted(AdmittedQuestion),
    /// The solution of the challenge is wrong, expired or used already. Nothing was counted.
    CheckFailed,
    /// A limit of the day is reached. Nothing was counted.
    Limited {
        /// Whose limit.
        limit: QuestionLimit,
        /// Time until a further question, in milliseconds: at most until the end of the UTC day.
        retry_after_ms: u64,
    },
}

/// Whose limit of the day is reached.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum QuestionLimit {
    /// That of the visitor.
    Visitor,
    /// That of the visitor's network.
    Network,
    /// That of the whole service.
    Service,
}

/// A question that was counted.
#[derive(Clone)]
pub struct AdmittedQuestion {
    /// The value of the visitor's cookie.
    pub cookie: String,
    /// How long the cookie is valid: until the end of the UTC day.
    pub cookie_lifetime: Duration,
}

debug_fields!(AdmittedQuestion { cookie_lifetime });

impl Visitors {
    /// Whether visitors may ask questions.
    pub fn can_ask(&self) -> bool {
        self.lookup.options.questions_per_visitor_per_day > 0
    }

    /// Counts a question of a visitor, and uses the solution of the challenge up: all, or none.
    ///
    /// # Errors
    /// The limiter is unavailable.
    pub async fn admit_question(&self, request: QuestionRequest) -> Result<QuestionOutcome> {
        let visitors = self.clone();
        let admission = async move { visitors.count_question(request).await };
        self.lookup.transcripts.task(admission).await?
    }

    async fn count_question(&self, request: QuestionRequest) -> Result<QuestionOutcome> {
        let now = self.lookup.clock.now();
        let name = self.visitor_name(request.cookie.as_deref());
        let mut limits = question_limits(&self.lookup.limits, &name, &request, now);
        if let Some(solution) = &request.solution {
            match self.check_solution(&VideoLink::Video(request.video), solution, now) {
                SolutionVerdict::Accepted(single_use) => limits.push((None, single_use)),
                SolutionVerdict::Rejected(_) => return Ok(QuestionOutcome::CheckFailed),
            }
        }
        let (kinds, requests): (Vec<_>, Vec<_>) = limits.into_iter().unzip();
        let midnight = AllowancePeriod::Day.end(now);
        Ok(match self.lookup.limits.acquire(requests, now).await? {
            LimitOutcome::Limited { limit_index, retry_after_ms } => {
                let index = usize::try_from(limit_index).ok();
                match index.and_then(|index| kinds.get(index).copied().flatten()) {
                    // The names of all limits contain the day, so nothing is counted for the next one yet.
                    Some(limit) => QuestionOutcome::Limited {
                        limit,
                        retry_after_ms: retry_after_ms.min(now.millis_until(midnight)),
                    },
                    None => QuestionOutcome::CheckFailed,
                }
            }
            LimitOutcome::Allowed { .. } => QuestionOutcome::Admitted(AdmittedQuestion {
                cookie: self.signed(&name),
                cookie_lifetime: midnight.since(now),
            }),
        })
    }
}

/// The limits of a question, and whose they are.
fn question_limits(
    limits: &LookupLimits,
    visitor: &str,
    request: &QuestionRequest,
    now: Timestamp,
) -> Vec<(Option<QuestionLimit>, LimitRequest)> {
    let own = limits.question_of_visitor(visitor, now);
    let networks = limits.question_of_network(request.client, now);
    // Only an answer of the model costs the operator something.
    let service = request.solution.as_ref().map(|_| limits.question_of_service(now));
    let of = |limit| move |request| (Some(limit), request);
    std::iter::once(own)
        .map(of(QuestionLimit::Visitor))
        .chain(networks.into_iter().map(of(QuestionLimit::Network)))
        .chain(service.map(of(QuestionLimit::Service)))
        .collect()
}
