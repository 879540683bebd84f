//! Visitors of the watch page: people without a key, who may have a few videos a day transcribed (design 4).
//!
//! A visitor pays with three legs: their own allowance, which a cookie names, that of their network, which holds for those
//! who throw their cookies away, and the service's daily cap.

use std::{fmt, net::IpAddr, sync::Arc, time::Duration};

use hmac::{Hmac, KeyInit, Mac};
use sha2::Sha256;

use super::{
    Availability, BadReference, FailureReason, Lookup, LookupAnswer, LookupAsk, Reference, SourceTag,
    human::Proven,
    keys::Caller,
    way::{self, Visit},
};
use crate::{
    archive::{Found, Wish},
    engine::{EngineOptions, Progress},
    error::Result,
    ids::{WalletId, random_name},
    ledger::terms::Period,
    limits::Taken,
    time::Timestamp,
    video::{VideoId, VideoLink},
};

/// What a visitor's name begins with, and what the key is for with which it is signed.
const PURPOSE: &str = "visitor";

/// Digests with the server's secret, each purpose with digests of its own.
#[derive(Clone)]
pub(super) struct Seal {
    secret: Arc<[u8]>,
}

impl fmt::Debug for Seal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Seal")
    }
}

impl Seal {
    pub(super) fn new(secret: Vec<u8>) -> Self {
        Self { secret: secret.into() }
    }

    /// The keyed digest of a text for a purpose, in hexadecimal.
    pub(super) fn digest(&self, purpose: &str, text: &str) -> String {
        let Some(mac) = self.mac(purpose, text) else { return String::new() };
        mac.finalize().into_bytes().iter().map(|byte| format!("{byte:02x}")).collect()
    }

    /// Whether this is the digest; it takes as long for one that is nearly right as for any other.
    fn is_digest(&self, purpose: &str, text: &str, digest: &str) -> bool {
        let bytes: Option<Vec<u8>> = (0..digest.len())
            .step_by(2)
            .map(|at| digest.get(at..at + 2).and_then(|byte| u8::from_str_radix(byte, 16).ok()))
            .collect();
        self.mac(purpose, text).zip(bytes).is_some_and(|(mac, bytes)| mac.verify_slice(&bytes).is_ok())
    }

    /// A key of any length is accepted, so there always is one.
    fn mac(&self, purpose: &str, text: &str) -> Option<Hmac<Sha256>> {
        let mut mac = Hmac::<Sha256>::new_from_slice(&self.secret).ok()?;
        mac.update(purpose.as_bytes());
        mac.update(b"\0");
        mac.update(text.as_bytes());
        Some(mac)
    }
}

/// A visitor whose browser has passed the check.
#[derive(Clone, Debug)]
pub(super) struct Visitor {
    /// The name that the cookie carries.
    pub(super) name: String,
    /// The network address, where it is known.
    pub(super) client: Option<IpAddr>,
}

impl Visitor {
    /// The wallet of the visitor's own allowance.
    pub(super) fn wallet(&self) -> WalletId {
        WalletId::new(self.name.clone())
    }
}

/// What a visitor asks for.
#[derive(Clone)]
pub struct VisitorAsk {
    /// The video or short link of the page.
    pub link: VideoLink,
    /// The attribution tag.
    pub src: Option<SourceTag>,
    /// The solved challenge.
    pub solution: String,
    /// The visitor's cookie, where one came.
    pub cookie: Option<String>,
    /// The network address, where it is known.
    pub client: Option<IpAddr>,
}

impl fmt::Debug for VisitorAsk {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("VisitorAsk").field("link", &self.link).finish_non_exhaustive()
    }
}

/// What came of a visitor's wish to have a video transcribed.
#[derive(Debug)]
pub enum Admission {
    /// The check was passed: the video can be transcribed.
    Admitted(Box<Admitted>),
    /// The answer is here already: what is archived, or why nothing is done.
    Answered(Box<LookupAnswer>),
}

/// A visitor who has passed the check, with what they asked for.
#[derive(Debug)]
pub struct Admitted {
    lookup: Lookup,
    ask: VisitorAsk,
    visitor: Visitor,
    now: Timestamp,
}

/// For how long a visitor waits.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Patience {
    /// As long as any caller (`limits.wait`).
    Usual,
    /// Until the work has ended: they are told meanwhile how far it is.
    ToTheEnd,
}

impl Lookup {
    /// Looks whether a visitor's browser has passed the check, and uses the solution up.
    ///
    /// What is archived is answered without any check. A solution that is worth nothing is
    /// [`FailureReason::NeedsVerification`], too many from one network [`FailureReason::FairUse`].
    pub async fn admit(&self, ask: VisitorAsk) -> Admission {
        let (lookup, asked) = (self.clone(), ask.clone());
        let admission = async move { lookup.admission(asked).await };
        let answer = match self.parts.transcripts.task(admission).await {
            Ok(Ok(admission)) => return admission,
            Ok(Err(error)) | Err(error) => way::stores_away(&error),
        };
        Admission::Answered(Box::new(self.in_full(&ask.link, ask.src, None, answer)))
    }

    async fn admission(&self, ask: VisitorAsk) -> Result<Admission> {
        let answered = |link: &VideoLink, availability| {
            Admission::Answered(Box::new(self.in_full(link, ask.src, None, availability)))
        };
        if let VideoLink::Video(video) = &ask.link
            && let Some(availability) = self.at_hand(video).await?
        {
            return Ok(answered(&ask.link, availability));
        }
        let now = self.parts.clock.now();
        let used_up = match self.proven(&ask.link, &ask.solution, now) {
            Proven::Good(take) => take,
            Proven::Nothing(why) => {
                let none = Availability::none(FailureReason::NeedsVerification, why);
                return Ok(answered(&ask.link, none));
            }
        };
        // What a visitor asks for is a miss of their network, whatever comes of it.
        let mut takes = vec![used_up];
        takes.extend(self.misses(ask.client, now));
        let taken = match takes.iter().all(|take| take.count > 0) {
            true => self.bounded(self.parts.limiter.take(takes, now)).await?,
            false => Taken::Limited { take: 1, retry_after_ms: 60_000 },
        };
        let refusal = match taken {
            Taken::Allowed { .. } => {
                let name = self.visitor_name(ask.cookie.as_deref());
                let visitor = Visitor { name, client: ask.client };
                return Ok(Admission::Admitted(Box::new(Admitted {
                    lookup: self.clone(),
                    ask,
                    visitor,
                    now,
                })));
            }
            Taken::Limited { take: 0, .. } => Availability::none(
                FailureReason::NeedsVerification,
                "That check was used already: please press the button again.",
            ),
            Taken::Limited { retry_after_ms, .. } => way::too_many_misses(retry_after_ms),
        };
        Ok(answered(&ask.link, refusal))
    }

    /// What is archived of a video, in any language, or that it was withdrawn.
    async fn at_hand(&self, video: &VideoId) -> Result<Option<Availability>> {
        Ok(match self.parts.transcripts.find(video, &Wish::Default).await? {
            Found::Transcript(stored) => Some(Availability::Available { stored, from_cache: true }),
            Found::Withdrawn => Some(way::withdrawn()),
            Found::Absent(_) | Found::Nothing => None,
        })
    }

    /// The name in a cookie of ours, or a new one.
    fn visitor_name(&self, cookie: Option<&str>) -> String {
        let kept = cookie.and_then(|cookie| cookie.rsplit_once('.'));
        match kept.filter(|(name, digest)| self.seal.is_digest(PURPOSE, name, digest)) {
            Some((name, _)) => name.to_owned(),
            None => random_name(self.parts.random.as_ref(), PURPOSE),
        }
    }

    /// How far the work on a video's default transcript is; none when this server does not work on it.
    pub fn progress(&self, video: &VideoId) -> Option<Progress> {
        self.parts.transcripts.progress(video, &Wish::Default)
    }

    /// The wallets of a network, with what each may spend on new transcripts a day.
    pub(super) fn network_wallets(&self, client: Option<IpAddr>, now: Timestamp) -> Vec<(WalletId, u64)> {
        let limit = self.parts.options.visitor_per_network_per_day;
        let names = self.networks.names(client, now).into_iter();
        names
            .map(|(name, times)| {
                (WalletId::new(format!("network-{name}")), limit.saturating_mul(times.into()))
            })
            .collect()
    }
}

impl Admitted {
    /// The value of the visitor's cookie: a name, and our digest of it. Nothing of the visitor is in it.
    pub fn cookie(&self) -> String {
        let name = &self.visitor.name;
        format!("{name}.{}", self.lookup.seal.digest(PURPOSE, name))
    }

    /// For how long the cookie is of use: until the day's end, when the allowance is a new one anyway.
    pub fn cookie_lives(&self) -> Duration {
        Period::Day.ends(self.now).since(self.now)
    }

    /// The video whose work can be followed with [`Lookup::progress`]; none for a short link.
    pub fn video(&self) -> Option<&VideoId> {
        match &self.ask.link {
            VideoLink::Video(video) => Some(video),
            VideoLink::Short(_) => None,
        }
    }

    /// Has the video transcribed within the visitor's legs.
    ///
    /// # Errors
    /// [`BadReference`] when a short link leads to no video.
    ///
    /// # Cancellation
    /// Dropping the future abandons the waiting, not work that has begun: it is archived and settled.
    pub async fn transcribe(self, patience: Patience) -> Result<LookupAnswer, BadReference> {
        let Self { lookup, ask, visitor, .. } = self;
        let EngineOptions { wait, work, .. } = *lookup.parts.transcripts.options();
        let patience = match patience {
            Patience::Usual => wait,
            Patience::ToTheEnd => work,
        };
        let (link, src) = (ask.link, ask.src);
        let address = match &link {
            VideoLink::Video(video) => video.address(),
            VideoLink::Short(link) => link.address().to_owned(),
        };
        let asked = LookupAsk {
            reference: Reference::Url(address),
            src,
            key: None,
            proof: None,
            client: visitor.client,
            default_only: false,
        };
        let (here, target) = (lookup.clone(), link.clone());
        let way = async move {
            let caller = Ok(Caller::Visitor(visitor));
            let visit = Visit { ask: &asked, caller: &caller, may_fetch: true, patience };
            here.within(&visit, target).await
        };
        match lookup.parts.transcripts.task(way).await {
            Ok(reached) => reached.map(|(link, availability)| lookup.in_full(&link, src, None, availability)),
            Err(error) => Ok(lookup.in_full(&link, src, None, way::stores_away(&error))),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_sealed() {
        let seal = Seal::new(vec![7; 32]);
        let digest = seal.digest("visitor", "visitor-1");
        assert_eq!(digest.len(), 64);
        assert!(seal.is_digest("visitor", "visitor-1", &digest));
        for (purpose, text, digest) in [
            ("visitor", "visitor-2", digest.as_str()),
            ("challenge", "visitor-1", &digest),
            ("visitor", "visitor-1", &digest[2..]),
            ("visitor", "visitor-1", "zz"),
            ("visitor", "visitor-1", "é1"),
            ("visitor", "visitor-1", ""),
        ] {
            assert!(!seal.is_digest(purpose, text, digest), "{purpose} {text} {digest}");
        }
        assert!(!Seal::new(vec![8; 32]).is_digest("visitor", "visitor-1", &digest));
    }
}
