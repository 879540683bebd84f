//! The way of a look-up (design 3): link, archive, key, engine, answer.

use std::{net::IpAddr, time::Duration};

use super::{
    Availability, BadReference, FailureReason, KeyUse, Lookup, LookupAnswer, LookupAsk, SourceTag,
    keys::Caller, paying::Spender,
};
use crate::{
    archive::{Absence, Found, Wish},
    directory::LookupKey,
    error::{Error, Result},
    limits::{COUNT_MAX, Take, Taken},
    supplier::{Resolved, SupplyError, SupplyReason},
    time::{Timestamp, in_words},
    video::{Platform, ShortLink, VideoId, VideoLink},
};

const MINUTE_MS: u64 = 60 * 1000;
const HOUR_MS: u64 = 60 * MINUTE_MS;

/// One look-up under way.
pub(super) struct Visit<'a> {
    pub(super) ask: &'a LookupAsk,
    pub(super) caller: &'a Result<Caller>,
    pub(super) may_fetch: bool,
    /// How long the caller waits for work that was begun.
    pub(super) patience: Duration,
}

/// Where a link led.
enum Followed {
    Video {
        video: VideoId,
        /// Whether following it was counted already.
        counted: bool,
    },
    /// A short link that could not be followed, and why.
    Not(ShortLink, Availability),
}

impl Lookup {
    /// Looks a transcript up; fetches it when the key allows.
    ///
    /// Every failure but a bad reference is an answer: stores that are away are a passing
    /// [`FailureReason::FetchError`], and nothing was charged.
    ///
    /// # Errors
    /// [`BadReference`] when the reference names no video.
    pub async fn look_up(&self, ask: LookupAsk) -> Result<LookupAnswer, BadReference> {
        self.answer(ask, true).await
    }

    /// Looks a transcript up in the archive only: it never fetches, holds, charges or counts.
    ///
    /// # Errors
    /// [`BadReference`] when the reference names no video.
    pub async fn peek(&self, ask: LookupAsk) -> Result<LookupAnswer, BadReference> {
        self.answer(ask, false).await
    }

    /// Answers on the engine's runtime, so that any executor may wait for it.
    async fn answer(&self, ask: LookupAsk, may_fetch: bool) -> Result<LookupAnswer, BadReference> {
        let link = ask.reference.link()?;
        let (lookup, asked, target) = (self.clone(), ask.clone(), link.clone());
        let work = async move { lookup.way(&asked, target, may_fetch).await };
        match self.parts.transcripts.task(work).await {
            Ok(answer) => answer,
            Err(error) => Ok(self.in_full(&link, ask.src, None, stores_away(&error))),
        }
    }

    /// The whole way: whose key it is, the transcript, and what the key has used. Whatever the stores do,
    /// it takes at most the wait and three calls of a store; one more where a proof renews the key.
    async fn way(
        &self,
        ask: &LookupAsk,
        link: VideoLink,
        may_fetch: bool,
    ) -> Result<LookupAnswer, BadReference> {
        let patience = self.parts.transcripts.options().wait;
        let caller = self.caller(ask.key.as_deref(), ask.proof.as_ref()).await;
        let visit = Visit { ask, caller: &caller, may_fetch, patience };
        let (link, availability) = self.within(&visit, link).await?;
        // What the key has used is told after the work, so that this answer's own charge is in it.
        let key = match &caller {
            Ok(Caller::Key(key)) => self.key_use(key, self.parts.clock.now()).await.ok(),
            _ => None,
        };
        Ok(self.in_full(&link, ask.src, key, availability))
    }

    /// Reaches the transcript within the caller's patience and one call of a store.
    pub(super) async fn within(
        &self,
        visit: &Visit<'_>,
        link: VideoLink,
    ) -> Result<(VideoLink, Availability), BadReference> {
        let time = visit.patience.saturating_add(self.parts.transcripts.options().store);
        match tokio::time::timeout(time, self.reach(visit, link.clone())).await {
            Ok(reached) => reached,
            Err(_) => Ok((link, too_slow())),
        }
    }

    /// The video that a link means, and its transcript; or why there is none.
    async fn reach(
        &self,
        visit: &Visit<'_>,
        link: VideoLink,
    ) -> Result<(VideoLink, Availability), BadReference> {
        Ok(match self.follow(visit, link).await? {
            Followed::Video { video, counted } => {
                let availability = self.availability(&video, visit, counted).await;
                (VideoLink::Video(video), availability.unwrap_or_else(|error| stores_away(&error)))
            }
            Followed::Not(link, why) => (VideoLink::Short(link), why),
        })
    }

    pub(super) fn in_full(
        &self,
        link: &VideoLink,
        src: Option<SourceTag>,
        key: Option<KeyUse>,
        availability: Availability,
    ) -> LookupAnswer {
        let (platform, id) = match link {
            VideoLink::Video(video) => (video.platform(), video.id()),
            VideoLink::Short(link) => (link.platform(), link.code()),
        };
        let watch_url = self.parts.options.watch_url(link, src);
        LookupAnswer { platform, video_id: id.to_owned(), watch_url, key, availability }
    }

    /// The video that a link means; a short link is followed: first in memory, which is free, then by
    /// asking its platform, which counts.
    async fn follow(&self, visit: &Visit<'_>, link: VideoLink) -> Result<Followed, BadReference> {
        let link = match link {
            VideoLink::Video(video) => return Ok(Followed::Video { video, counted: false }),
            VideoLink::Short(link) => link,
        };
        let transcripts = &self.parts.transcripts;
        let mut resolved = transcripts.resolve(&link, false).await;
        let counted = visit.may_fetch && matches!(resolved, Ok(None));
        if counted {
            if let Err(error) = visit.caller {
                return Ok(Followed::Not(link, stores_away(error)));
            }
            match self.count(visit).await {
                Ok(None) => resolved = transcripts.resolve(&link, true).await,
                Ok(Some(why)) => return Ok(Followed::Not(link, why)),
                Err(error) => return Ok(Followed::Not(link, stores_away(&error))),
            }
        }
        match resolved {
            Ok(Some(Resolved::Video(video))) => Ok(Followed::Video { video, counted }),
            Ok(Some(Resolved::Nowhere(message))) => {
                Err(BadReference { parameter: visit.ask.reference.parameter(), message })
            }
            Ok(None) => Ok(Followed::Not(link, needs_verification(""))),
            Err(failure) => Ok(Followed::Not(link, failed(&failure, self.parts.clock.now()))),
        }
    }

    /// The transcript of a video, or why there is none.
    async fn availability(&self, video: &VideoId, visit: &Visit<'_>, counted: bool) -> Result<Availability> {
        let absence = match self.parts.transcripts.find(video, &Wish::Default).await? {
            Found::Transcript(stored) => return Ok(Availability::Available { stored, from_cache: true }),
            Found::Withdrawn => return Ok(withdrawn()),
            Found::Absent(absence) => Some(absence),
            Found::Nothing => None,
        };
        let spender = match visit.caller {
            Ok(Caller::Key(key)) if visit.may_fetch => Spender::Key(key),
            Ok(Caller::Visitor(visitor)) => Spender::Visitor(visitor),
            caller => return self.without_fetching(video, caller, visit, counted).await,
        };
        let (answer, others_help) = match absence {
            Some(absence) => (absent(absence, self.parts.clock.now()), true),
            None => self.fetch(video, spender, visit.patience, counted).await?,
        };
        // A key must not get less than nobody would: what is archived in other languages is free.
        match others_help && !visit.ask.default_only {
            true => Ok(self.any(video).await.ok().flatten().unwrap_or(answer)),
            false => Ok(answer),
        }
    }

    /// The best of what is archived in other languages, free; else what a caller without a key is told.
    async fn without_fetching(
        &self,
        video: &VideoId,
        caller: &Result<Caller>,
        visit: &Visit<'_>,
        counted: bool,
    ) -> Result<Availability> {
        if !visit.ask.default_only
            && let Some(archived) = self.any(video).await?
        {
            return Ok(archived);
        }
        let why = match caller {
            Ok(Caller::Stranger(why)) => why,
            Ok(Caller::Unkeyed | Caller::Key(_) | Caller::Visitor(_)) => "",
            Err(error) => return Err(error.clone()),
        };
        if visit.may_fetch
            && !counted
            && let Some(refusal) = self.count(visit).await?
        {
            return Ok(refusal);
        }
        Ok(needs_verification(why))
    }

    /// The best archived transcript for someone who cannot have the default.
    async fn any(&self, video: &VideoId) -> Result<Option<Availability>> {
        Ok(match self.parts.transcripts.find_any(video).await? {
            Found::Transcript(stored) => Some(Availability::Available { stored, from_cache: true }),
            Found::Absent(_) | Found::Withdrawn | Found::Nothing => None,
        })
    }

    /// The refusal for a key that made too many attempts in vain within an hour. Counts nothing: callers
    /// who wait for the same video, and those whose fetch succeeds, make no attempt in vain.
    pub(super) async fn failed_too_often(&self, key: &LookupKey) -> Result<Option<Availability>> {
        let attempt = Take { cost: 0, ..self.attempt(key) };
        if attempt.count == 0 {
            return Ok(Some(too_many_attempts(attempt.per_ms)));
        }
        let now = self.parts.clock.now();
        let taken = self.bounded(self.parts.limiter.take(vec![attempt], now)).await?;
        Ok(match taken {
            // How long that lasts only a take that is refused tells. Should one have become free just now, it is
            // taken, and the look-up goes on.
            Taken::Allowed { remaining: 0, .. } => {
                self.limited(vec![self.attempt(key)], now).await?.map(too_many_attempts)
            }
            Taken::Allowed { .. } => None,
            Taken::Limited { retry_after_ms, .. } => Some(too_many_attempts(retry_after_ms)),
        })
    }

    pub(super) fn attempt(&self, key: &LookupKey) -> Take {
        Take {
            bucket: format!("attempt/{}", key.key.id),
            count: self.parts.options.attempts_per_key_per_hour.min(COUNT_MAX),
            per_ms: HOUR_MS,
            cost: 1,
        }
    }

    /// Counts what goes beyond the archive: an attempt of the key, or a miss of the network. Once per
    /// look-up. Returns the refusal when there were too many.
    async fn count(&self, visit: &Visit<'_>) -> Result<Option<Availability>> {
        let now = self.parts.clock.now();
        let takes = match visit.caller {
            Ok(Caller::Key(key)) => vec![self.attempt(key)],
            // Their coming in was counted.
            Ok(Caller::Visitor(_)) => return Ok(None),
            _ => self.misses(visit.ask.client, now),
        };
        let Some(retry_after_ms) = self.limited(takes, now).await? else { return Ok(None) };
        Ok(Some(match visit.caller {
            Ok(Caller::Key(_)) => too_many_attempts(retry_after_ms),
            _ => too_many_misses(retry_after_ms),
        }))
    }

    /// What a miss of a network takes.
    pub(super) fn misses(&self, client: Option<IpAddr>, now: Timestamp) -> Vec<Take> {
        let limit = self.parts.options.misses_per_network_per_minute;
        self.networks.takes("miss", client, limit, MINUTE_MS, now)
    }
}

pub(super) fn withdrawn() -> Availability {
    Availability::none(
        FailureReason::NoCaptions,
        "This transcript was withdrawn by the operator of the service.",
    )
    .in_detail("withdrawn")
}

/// What is remembered of a video without words, until then.
pub(super) fn absent(absence: Absence, now: Timestamp) -> Availability {
    let left = absence.until.since(now);
    let none = Availability::none(FailureReason::NoCaptions, absence.message);
    none.again_after(Some(left)).in_detail(&absence.reason)
}

pub(super) fn unsupplied(platform: Platform) -> Availability {
    let message = format!("This service has no source of new transcripts for {}.", platform.name());
    Availability::none(FailureReason::ConfigError, message)
}

/// What a supplier's failure is to whoever looked the video up.
pub(super) fn failed(failure: &SupplyError, now: Timestamp) -> Availability {
    let reason = failure.reason();
    let none = Availability::none(FailureReason::of_supply(failure), failure.message());
    let starts_in = match reason {
        SupplyReason::Upcoming(Some(start)) if *start > now => Some(start.since(now)),
        _ => None,
    };
    let none = none.again_after(failure.retry_after().or(starts_in));
    if reason.is_about_the_video() { none.in_detail(reason.as_str()) } else { none }
}

pub(super) fn too_many_misses(retry_after_ms: u64) -> Availability {
    let message = format!(
        "Too many videos that are not archived were asked for from your network: please try again in {}, or \
         send an API key.",
        in_words(retry_after_ms.div_ceil(1_000).max(1))
    );
    let wait = Duration::from_millis(retry_after_ms);
    Availability::none(FailureReason::FairUse, message).again_after(Some(wait))
}

fn too_many_attempts(retry_after_ms: u64) -> Availability {
    let message = format!(
        "This key has asked in vain for too many new transcripts within an hour: please try again in {} \
         (archived transcripts stay free).",
        in_words(retry_after_ms.div_ceil(1_000).max(1))
    );
    let wait = Duration::from_millis(retry_after_ms);
    Availability::none(FailureReason::FairUse, message).again_after(Some(wait))
}

/// The stores were slow at every step. Work that was begun goes on.
fn too_slow() -> Availability {
    Availability::none(FailureReason::FetchError, "The answer took too long: please ask again in a moment.")
}

/// `why` says what was wrong with the key that was sent; empty when none was.
fn needs_verification(why: &str) -> Availability {
    let message = "this video has not been transcribed yet: send an API key to have it transcribed, and read it on \
                   the watch page from then on.";
    let sentence = match why.trim_end_matches('.') {
        "" => format!("T{}", &message[1..]),
        why => format!("{why}, and {message}"),
    };
    Availability::none(FailureReason::NeedsVerification, sentence)
}

/// A store's fault, without its details: they are for the log.
pub(super) fn stores_away(error: &Error) -> Availability {
    tracing::error!(%error, "a look-up failed in a store");
    Availability::none(
        FailureReason::FetchError,
        "The service could not reach its storage: nothing was charged, please try again in a moment.",
    )
}
