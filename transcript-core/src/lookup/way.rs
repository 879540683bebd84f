//! The way of a look-up (design 3): link, archive, key, engine, answer.

use super::{
    Availability, BadReference, FailureReason, Lookup, LookupAnswer, LookupAsk, Reference, answer::watch_url,
    keys::Caller,
};
use crate::{
    archive::{Found, Wish},
    directory::LookupKey,
    engine::{Fetch, OnFailure, Outcome, Payment, PaymentLeg},
    error::{Error, Result},
    ids::WalletId,
    ledger::{
        Leg,
        terms::{self, Period},
    },
    limits::{Take, Taken},
    supplier::Resolved,
    video::{Platform, VideoId, VideoLink},
};

/// The wallet of the daily cap.
const SERVICE_WALLET: &str = "service";
const MINUTE_MS: u64 = 60 * 1000;
const HOUR_MS: u64 = 60 * MINUTE_MS;

/// What a reference turned out to name.
enum Named {
    Video(VideoId),
    /// A short link that could not be followed: its code, and why.
    Unresolved {
        platform: Platform,
        code: String,
        why: Availability,
    },
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

    async fn answer(&self, ask: LookupAsk, may_fetch: bool) -> Result<LookupAnswer, BadReference> {
        let caller = self.caller(ask.key.as_deref()).await;
        let (platform, id, availability) = match self.name(&ask, &caller, may_fetch).await? {
            Named::Unresolved { platform, code, why } => (platform, code, why),
            Named::Video(video) => {
                let availability = match self.availability(&video, &ask, &caller, may_fetch).await {
                    Ok(availability) => availability,
                    Err(error) => stores_away(&error),
                };
                (video.platform(), video.id().to_owned(), availability)
            }
        };
        // What the key has used is told after the work, so that this answer's own charge is in it.
        let key = match &caller {
            Ok(Caller::Key(key)) => self.key_use(key, self.parts.clock.now()).await.ok(),
            _ => None,
        };
        let watch_url = watch_url(&self.parts.options, platform, &id, ask.src);
        Ok(LookupAnswer { platform, video_id: id, watch_url, key, availability })
    }

    /// The video that a reference names; a short link is followed.
    async fn name(
        &self,
        ask: &LookupAsk,
        caller: &Result<Caller>,
        may_fetch: bool,
    ) -> Result<Named, BadReference> {
        let parameter = ask.reference.parameter();
        let bad = |message: String| BadReference { parameter, message };
        let link = match &ask.reference {
            Reference::Id(id) => VideoId::new(Platform::VideoSite, id).map(VideoLink::Video),
            Reference::Url(url) => VideoLink::parse(url),
        };
        let link = match link.map_err(|error| bad(error.to_string()))? {
            VideoLink::Video(video) => return Ok(Named::Video(video)),
            VideoLink::Short(link) => link,
        };
        let unresolved =
            |why| Ok(Named::Unresolved { platform: link.platform(), code: link.code().to_owned(), why });
        // Following a link asks its platform: for callers without a key it counts as a miss.
        let mut may_ask = may_fetch;
        if may_ask && !matches!(caller, Ok(Caller::Key(_))) {
            match self.count_miss(ask).await {
                Ok(None) => {}
                Ok(Some(_)) => may_ask = false,
                Err(error) => return unresolved(stores_away(&error)),
            }
        }
        match self.parts.transcripts.resolve(&link, may_ask).await {
            Ok(Some(Resolved::Video(video))) => Ok(Named::Video(video)),
            Ok(Some(Resolved::Nowhere(why))) => Err(bad(why)),
            Ok(None) if may_fetch => unresolved(too_many_misses()),
            Ok(None) => unresolved(needs_verification("")),
            Err(failure) => {
                unresolved(Availability::none(FailureReason::of_supply(&failure), failure.message()))
            }
        }
    }

    /// The transcript of a video, or why there is none.
    async fn availability(
        &self,
        video: &VideoId,
        ask: &LookupAsk,
        caller: &Result<Caller>,
        may_fetch: bool,
    ) -> Result<Availability> {
        let transcripts = &self.parts.transcripts;
        let absence = match transcripts.find(video, &Wish::Default).await? {
            Found::Transcript(stored) => return Ok(Availability::Available { stored, from_cache: true }),
            Found::Withdrawn => return Ok(withdrawn()),
            Found::Absent(absence) => Some(absence),
            Found::Nothing => None,
        };
        let key = match caller {
            Ok(Caller::Key(key)) if may_fetch => Some(key),
            _ => None,
        };
        // Whoever cannot have the default fetched gets the best of what there is, free.
        if (key.is_none() || absence.is_some())
            && let Found::Transcript(stored) = transcripts.find_any(video).await?
        {
            return Ok(Availability::Available { stored, from_cache: true });
        }
        match (key, caller) {
            (_, Err(error)) => Err(error.clone()),
            (None, Ok(caller)) => {
                if may_fetch && self.count_miss(ask).await?.is_some() {
                    return Ok(too_many_misses());
                }
                Ok(needs_verification(match caller {
                    Caller::Stranger(why) => why,
                    Caller::Unkeyed | Caller::Key(_) => "",
                }))
            }
            (Some(key), Ok(_)) => match absence {
                Some(absence) => Ok(Availability::none(FailureReason::NoCaptions, absence.message)),
                None => self.fetch(video, key).await,
            },
        }
    }

    /// Counts an unkeyed miss; the milliseconds to wait when the network has had too many.
    async fn count_miss(&self, ask: &LookupAsk) -> Result<Option<u64>> {
        let now = self.parts.clock.now();
        let limit = self.parts.options.misses_per_network_per_minute;
        let takes = self.networks.takes("miss", ask.client, limit, MINUTE_MS, now);
        Ok(match self.parts.limiter.take(takes, now).await? {
            Taken::Allowed { .. } => None,
            Taken::Limited { retry_after_ms, .. } => Some(retry_after_ms),
        })
    }

    /// Has the default transcript fetched, at the cost of 1 of the key's allowance and of the daily cap.
    async fn fetch(&self, video: &VideoId, key: &LookupKey) -> Result<Availability> {
        let parts = &self.parts;
        if !parts.transcripts.covers(video.platform()) {
            return Ok(unsupplied(video.platform()));
        }
        let now = parts.clock.now();
        let attempt = Take {
            bucket: format!("attempt/{}", key.key.id),
            count: parts.options.attempts_per_key_per_hour,
            per_ms: HOUR_MS,
            cost: 1,
        };
        if let Taken::Limited { retry_after_ms, .. } = parts.limiter.take(vec![attempt], now).await? {
            let message = format!(
                "This key has asked for too many new transcripts within an hour: please try again in {} seconds. \
                 Archived transcripts stay free.",
                retry_after_ms.div_ceil(1000)
            );
            return Ok(Availability::none(FailureReason::FairUse, message));
        }
        let fetch =
            Fetch { video: video.clone(), wish: Wish::Default, payment: Some(self.payment(video, key)) };
        Ok(self.outcome(parts.transcripts.get(fetch).await, video.platform(), key))
    }

    fn payment(&self, video: &VideoId, key: &LookupKey) -> Payment {
        let now = self.parts.clock.now();
        let leg =
            |wallet, terms, on_failure| PaymentLeg { leg: Leg { wallet, terms, amount: 1 }, on_failure };
        let service = terms::allowance(Period::Day, self.parts.options.service_per_day, now);
        Payment {
            legs: vec![
                leg(key.wallet.clone(), self.key_terms(key, now), OnFailure::Return),
                leg(WalletId::new(SERVICE_WALLET), service, OnFailure::SpendOnceAsked),
            ],
            memo: format!("transcript {video}"),
        }
    }

    /// What the engine's outcome is on Surface A.
    fn outcome(&self, outcome: Outcome, platform: Platform, key: &LookupKey) -> Availability {
        match outcome {
            Outcome::Archived(stored) => Availability::Available { stored, from_cache: true },
            Outcome::Fetched(stored) => Availability::Available { stored, from_cache: false },
            Outcome::Absent(absence) => Availability::none(FailureReason::NoCaptions, absence.message),
            Outcome::Withdrawn => withdrawn(),
            Outcome::Failed(failure) => {
                Availability::none(FailureReason::of_supply(&failure), failure.message())
            }
            Outcome::Refused { leg: 0, .. } => self.key_allowance_spent(key),
            Outcome::Refused { .. } => Availability::none(
                FailureReason::DailyCap,
                "The service has made as many new transcripts today as it may: please try again after midnight UTC.",
            ),
            Outcome::Unsupplied => unsupplied(platform),
            Outcome::StillWorking => Availability::none(
                FailureReason::FetchError,
                "The video is still being transcribed: please ask again in a moment.",
            ),
            Outcome::Broken(error) => stores_away(&error),
        }
    }

    fn key_allowance_spent(&self, key: &LookupKey) -> Availability {
        let now = self.parts.clock.now();
        let terms = self.key_terms(key, now);
        let again = terms.resets_at.map_or(String::new(), |at| format!(" More from {at} on."));
        let message = format!(
            "This key's allowance of new transcripts is spent.{again} Archived transcripts stay free."
        );
        Availability::none(FailureReason::KeyAllowance, message)
    }
}

fn withdrawn() -> Availability {
    Availability::none(
        FailureReason::NoCaptions,
        "This transcript was withdrawn by the operator of the service.",
    )
}

fn unsupplied(platform: Platform) -> Availability {
    let message = format!("This service has no source of new transcripts for {}.", platform.name());
    Availability::none(FailureReason::ConfigError, message)
}

fn too_many_misses() -> Availability {
    Availability::none(
        FailureReason::FairUse,
        "Too many videos that are not archived were asked for from your network: please try again in a minute, \
         or send an API key.",
    )
}

/// `why` says what was wrong with the key that was sent; empty when none was.
fn needs_verification(why: &str) -> Availability {
    let message = "This video has not been transcribed yet: open the watch page, or send an API key, to have it \
                   transcribed.";
    let separator = if why.is_empty() { "" } else { " " };
    Availability::none(FailureReason::NeedsVerification, format!("{why}{separator}{message}"))
}

/// A store's fault, without its details: they are for the log.
fn stores_away(error: &Error) -> Availability {
    tracing::error!(%error, "a look-up failed in a store");
    Availability::none(
        FailureReason::FetchError,
        "The service could not reach its storage: nothing was charged, please try again in a moment.",
    )
}
