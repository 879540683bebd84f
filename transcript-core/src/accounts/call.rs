//! Coming in: whose key it is, whether the request was answered before, and whether there is room for it.

use std::{fmt, time::Duration};

use sha2::{Digest, Sha256};

use super::{
    Accounts, Attempt, Begun, Caller, Header, Refused, Reply, Visit, authenticate::read_key,
    charge::hold_name, notes::Notes, transcript::withdrawn, visit::Lease,
};
use crate::{
    archive::{Found, Wish},
    directory::key::Key,
    ids::{Holder, random_name},
    time::Timestamp,
    video::VideoId,
};

/// How long a reply is kept for repeats.
const KEPT: Duration = Duration::from_secs(24 * 3600);
/// The longest `Idempotency-Key`, in bytes.
const REPEAT_KEY_MAX: usize = 255;
/// What is said of an `Idempotency-Key` that is none.
const NO_REPEAT_KEY: &str = "Idempotency-Key: give from 1 to 255 visible ASCII characters, such as a UUID";
/// The header that tells a repeated reply from a first one.
const REPLAYED: &str = "idempotent-replayed";

/// The endpoints of Surface B that need a key.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Route {
    /// `GET /api/v1/transcript`
    Transcript,
    /// `POST /api/v1/chat`
    Chat,
    /// `GET /api/v1/me`
    Me,
    /// `POST /api/v1/rotate-key`
    RotateKey,
    /// `POST /api/v1/subscribe`
    Subscribe,
    /// `POST /api/v1/buy-credits`
    BuyCredits,
}

impl Route {
    /// All of them, in the specification's order.
    pub const ALL: [Self; 6] =
        [Self::Transcript, Self::Chat, Self::Me, Self::RotateKey, Self::Subscribe, Self::BuyCredits];

    /// The last part of its path.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Transcript => "transcript",
            Self::Chat => "chat",
            Self::Me => "me",
            Self::RotateKey => "rotate-key",
            Self::Subscribe => "subscribe",
            Self::BuyCredits => "buy-credits",
        }
    }

    /// Whether an `Idempotency-Key` means anything there. Never where a key would be kept in the reply.
    pub fn is_repeatable(self) -> bool {
        match self {
            Self::Transcript | Self::Chat | Self::Subscribe | Self::BuyCredits => true,
            Self::Me | Self::RotateKey => false,
        }
    }
}

/// A request for an endpoint that needs a key.
#[derive(Clone)]
pub struct Call {
    /// The endpoint.
    pub route: Route,
    /// The text of the bearer credential, where one came.
    pub bearer: Option<String>,
    /// The text of the header `Idempotency-Key`, where one came.
    pub idempotency_key: Option<String>,
    /// The body, or the query where there is no body: what an idempotency key is bound to.
    pub body: Vec<u8>,
}

impl fmt::Debug for Call {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Call").field("route", &self.route).finish_non_exhaustive()
    }
}

/// What becomes of a call at the door.
#[derive(Debug)]
pub enum Entry {
    /// It was answered before, with this: it costs nothing, and counts for the limit of repeats only.
    Replayed(Reply),
    /// It is let in.
    Admitted(Visit),
}

impl Accounts {
    /// Lets a call in, in the order of design 4: 401, then the reply to repeat, then 429. What the call asks
    /// for is looked at only afterwards, and so is what is wrong with an idempotency key. A repeat, a call whose
    /// key is under way and one with another body count for a limit of their own, six times as wide.
    ///
    /// # Errors
    /// [`Refused::Unauthorized`]; [`Refused::BadRequest`] for an idempotency key that is malformed, or was
    /// used with another body; [`Refused::Conflict`] while another request with the same one is under way;
    /// [`Refused::RateLimited`]; [`Refused::Internal`].
    ///
    /// # Cancellation
    /// Dropping the future leaves nothing held; an idempotency key that was taken is given back.
    pub async fn enter(&self, call: Call) -> Result<Entry, Refused> {
        let key = read_key(call.bearer.as_deref())?;
        let accounts = self.clone();
        self.task(async move { accounts.door(&key, call).await }).await
    }

    async fn door(&self, key: &Key, call: Call) -> Result<Entry, Refused> {
        let caller = self.caller(key).await?;
        let mut visit = Visit::new(self, caller, call.route);
        let repeat_key = call.idempotency_key.as_deref().filter(|_| call.route.is_repeatable());
        let is_sound = repeat_key.is_none_or(is_repeat_key);
        if let Some(text) = repeat_key.filter(|_| is_sound)
            && let Some(reply) = self.begin(&mut visit, text, &call.body).await?
        {
            return Ok(Entry::Replayed(reply));
        }
        match self.admit(&visit.caller().account, self.parts.clock.now()).await {
            Ok(rate) => visit.admitted(rate),
            Err(refused) => return Err(visit.refuse(refused).await),
        }
        if !is_sound {
            return Err(visit.refuse(Refused::BadRequest(NO_REPEAT_KEY.to_owned())).await);
        }
        Ok(Entry::Admitted(visit))
    }

    /// Takes an idempotency key; returns the reply to repeat, where there is one.
    async fn begin(&self, visit: &mut Visit, text: &str, body: &[u8]) -> Result<Option<Reply>, Refused> {
        let is_counted = self.admit_keyed(&visit.caller().account, self.parts.clock.now()).await?;
        let lease = Lease {
            key: repeat_key(visit.caller(), visit.route(), text),
            holder: Holder::new(random_name(self.parts.random.as_ref(), "call")),
            fingerprint: Sha256::digest(body).to_vec(),
        };
        // The visit has it before the store is asked: whatever becomes of the asking, it is given back.
        visit.lease(lease.clone());
        let begin = || self.parts.replies.begin(self.attempt(&lease, self.parts.clock.now()));
        let begun = self.surely(begin).await?;
        if begun != Begun::Fresh {
            visit.leave_lease();
            if !is_counted {
                self.admit_repeat(&visit.caller().account, self.parts.clock.now()).await?;
            }
        }
        match begun {
            Begun::Fresh => Ok(None),
            Begun::Done(reply) => self.replay(reply).await.map(Some),
            Begun::InFlight => Err(Refused::Conflict(
                "Another request with this Idempotency-Key is under way: please try again in a moment."
                    .to_owned(),
            )),
            Begun::Mismatch => Err(Refused::BadRequest(
                "Idempotency-Key: it was used for another request; take a new one for each request"
                    .to_owned(),
            )),
        }
    }

    /// An attempt that begins, or goes on, at a moment.
    pub(super) fn attempt(&self, lease: &Lease, now: Timestamp) -> Attempt {
        Attempt {
            key: lease.key.clone(),
            fingerprint: lease.fingerprint.clone(),
            holder: lease.holder.clone(),
            now,
            lease_until: now.plus(self.parts.transcripts.options().lease),
            keep_until: now.plus(KEPT),
        }
    }

    /// A reply that was given before. Whoever gave it may have died between storing and settling: so its
    /// hold is settled now, which changes nothing where it was settled or has expired.
    ///
    /// The words of a video that was withdrawn since are not told again, and what is still held is given back.
    async fn replay(&self, mut reply: Reply) -> Result<Reply, Refused> {
        let Notes { charge, video } = Notes::take(&mut reply);
        let told = match &video {
            Some(video) => self.still_told(video).await,
            None => Ok(()),
        };
        match (&charge, &told) {
            (Some(charge), Ok(())) => self.settle_in_time(charge).await?,
            (Some(charge), Err(Refused::NotFound(_))) => self.release(charge).await,
            _ => {}
        }
        told?;
        reply.headers.push(Header { name: REPLAYED.to_owned(), value: "true".to_owned() });
        Ok(reply)
    }

    /// Whether the words of a video may be told now.
    async fn still_told(&self, video: &VideoId) -> Result<(), Refused> {
        let found = self.parts.transcripts.find(video, &Wish::Default).await;
        match found.map_err(|error| Refused::store(&error))? {
            Found::Withdrawn => Err(withdrawn()),
            Found::Transcript(_) | Found::Absent(_) | Found::Nothing => Ok(()),
        }
    }
}

/// The name under which a reply is kept: an idempotency key is bound to the account and the route.
fn repeat_key(caller: &Caller, route: Route, text: &str) -> String {
    hold_name(&[caller.account.id.as_str(), route.as_str(), text])
}

fn is_repeat_key(text: &str) -> bool {
    (1..=REPEAT_KEY_MAX).contains(&text.len()) && text.bytes().all(|byte| byte.is_ascii_graphic())
}
