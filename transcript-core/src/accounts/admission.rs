//! Admission of v1 calls: authentication, replay of stored responses and rate limits.

use std::{fmt, time::Duration};

use sha2::{Digest, Sha256};

use super::{
    AccountPrincipal, Accounts, IdempotencyAttempt, IdempotencyState, RequestGuard, StoredHeader,
    StoredResponse, V1Error, authenticate::parse_key, charge::derive_hold_id, reply_metadata::ReplyMetadata,
    request_guard::IdempotencyLease,
};
use crate::{
    archive::{FindOutcome, TrackSelector},
    directory::api_key::ApiKey,
    engine::NoTranscript,
    ids::{Holder, random_id},
    time::Timestamp,
    video::VideoId,
};

/// How long a response is stored for replays.
const RESPONSE_RETENTION: Duration = Duration::from_secs(24 * 3600);
/// The longest `Idempotency-Key`, in bytes.
const IDEMPOTENCY_KEY_MAX: usize = 255;
/// The message for a malformed `Idempotency-Key`.
const MALFORMED_KEY: &str = "Idempotency-Key: use 1 to 255 visible ASCII characters, such as a UUID";
/// The header that marks a replayed response.
const REPLAYED: &str = "idempotent-replayed";

/// The v1 endpoints that need a key.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum V1Endpoint {
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

impl V1Endpoint {
    /// All endpoints, in the specification's order.
    pub const ALL: [Self; 6] =
        [Self::Transcript, Self::Chat, Self::Me, Self::RotateKey, Self::Subscribe, Self::BuyCredits];

    /// The last segment of the endpoint's path.
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

    /// Whether the endpoint supports `Idempotency-Key`; never if its response would contain an API key.
    pub fn accepts_idempotency_key(self) -> bool {
        match self {
            Self::Transcript | Self::Chat | Self::Subscribe | Self::BuyCredits => true,
            Self::Me | Self::RotateKey => false,
        }
    }
}

/// A request for an endpoint that needs a key.
#[derive(Clone)]
pub struct V1Request {
    /// The endpoint.
    pub route: V1Endpoint,
    /// The text of the bearer credential, if the request has one.
    pub bearer: Option<String>,
    /// The text of the header `Idempotency-Key`, if the request has one.
    pub idempotency_key: Option<String>,
    /// The body, or the query if there is no body; the idempotency key is bound to it.
    pub body: Vec<u8>,
}

impl fmt::Debug for V1Request {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("V1Request").field("route", &self.route).finish_non_exhaustive()
    }
}

/// Outcome of the admission of a request.
#[derive(Debug)]
pub enum V1Admission {
    /// The stored response of the same request. It costs nothing and counts only for the limit of repeats.
    Replayed(StoredResponse),
    /// The request is admitted.
    Admitted(RequestGuard),
}

impl Accounts {
    /// Admits a request.
    /// The order of the checks (specification 5, 8): 401, then the replay, then 429.
    ///
    /// The parameters of the request, and the format of its idempotency key, are checked afterwards. A replay, a
    /// request whose key is still in use, and one with another body count for a separate limit, which is six
    /// times as high.
    ///
    /// # Errors
    /// [`V1Error::Unauthorized`]; [`V1Error::BadRequest`] for an idempotency key that is malformed or was
    /// used with another body; [`V1Error::Conflict`] while another request with the same key is running;
    /// [`V1Error::RateLimited`]; [`V1Error::Internal`].
    ///
    /// # Cancellation
    /// Dropping the future leaves nothing held; the lease of an idempotency key is released.
    pub async fn admit(&self, request: V1Request) -> Result<V1Admission, V1Error> {
        let key = parse_key(request.bearer.as_deref())?;
        let accounts = self.clone();
        self.task(async move { accounts.admit_on_runtime(&key, request).await }).await
    }

    async fn admit_on_runtime(&self, key: &ApiKey, request: V1Request) -> Result<V1Admission, V1Error> {
        let caller = self.principal(key).await?;
        let mut guard = RequestGuard::new(self, caller, request.route);
        let key_text = request.idempotency_key.as_deref().filter(|_| request.route.accepts_idempotency_key());
        let is_valid = key_text.is_none_or(is_valid_key);
        if let Some(text) = key_text.filter(|_| is_valid)
            && let Some(response) = self.begin(&mut guard, text, &request.body).await?
        {
            return Ok(V1Admission::Replayed(response));
        }
        match self.count_request(&guard.caller().account, self.deps.clock.now()).await {
            Ok(rate) => guard.set_rate(rate),
            Err(error) => return Err(guard.reject(error).await),
        }
        if !is_valid {
            return Err(guard.reject(V1Error::BadRequest(MALFORMED_KEY.to_owned())).await);
        }
        Ok(V1Admission::Admitted(guard))
    }

    /// Acquires the lease of an idempotency key; returns the stored response if there is one.
    async fn begin(
        &self,
        guard: &mut RequestGuard,
        text: &str,
        body: &[u8],
    ) -> Result<Option<StoredResponse>, V1Error> {
        let is_counted_as_repeat = self.count_keyed(&guard.caller().account, self.deps.clock.now()).await?;
        let lease = IdempotencyLease {
            key: scoped_key(guard.caller(), guard.route(), text),
            holder: Holder::new(random_id(self.deps.random.as_ref(), "call")),
            fingerprint: Sha256::digest(body).to_vec(),
        };
        // The guard gets the lease before the store call, so that it is released whatever the outcome.
        guard.set_lease(lease.clone());
        let begin = || self.deps.replies.begin(self.attempt(&lease, self.deps.clock.now()));
        let state = self.retry_store(begin).await?;
        if state != IdempotencyState::New {
            guard.discard_lease();
            if !is_counted_as_repeat {
                self.count_repeat(&guard.caller().account, self.deps.clock.now()).await?;
            }
        }
        match state {
            IdempotencyState::New => Ok(None),
            IdempotencyState::Completed(response) => self.replay(response).await.map(Some),
            IdempotencyState::InProgress => Err(V1Error::Conflict(
                "A request with this Idempotency-Key is still running. Retry in a few seconds.".to_owned(),
            )),
            IdempotencyState::Mismatch => Err(V1Error::BadRequest(
                "Idempotency-Key: this key was used for another request; use a new key for each request"
                    .to_owned(),
            )),
        }
    }

    /// The attempt of a lease, started or renewed at `now`.
    pub(super) fn attempt(&self, lease: &IdempotencyLease, now: Timestamp) -> IdempotencyAttempt {
        IdempotencyAttempt {
            key: lease.key.clone(),
            fingerprint: lease.fingerprint.clone(),
            holder: lease.holder.clone(),
            now,
            lease_until: now.plus(self.deps.transcripts.options().lease),
            keep_until: now.plus(RESPONSE_RETENTION),
        }
    }

    /// Replays a stored response.
    /// The process that stored it may have died before it settled the hold, so the hold is settled here; that
    /// changes nothing if it was settled or has expired.
    ///
    /// If the video was withdrawn since, the response is not replayed, and the hold is released.
    async fn replay(&self, mut response: StoredResponse) -> Result<StoredResponse, V1Error> {
        let ReplyMetadata { hold, video } = ReplyMetadata::take(&mut response);
        let withdrawal = match &video {
            Some(video) => self.check_not_withdrawn(video).await,
            None => Ok(()),
        };
        match (&hold, &withdrawal) {
            (Some(hold), Ok(())) => self.settle_hold(hold).await?,
            (Some(hold), Err(V1Error::NotFound(_))) => self.release_hold(hold).await,
            _ => {}
        }
        withdrawal?;
        response.headers.push(StoredHeader { name: REPLAYED.to_owned(), value: "true".to_owned() });
        Ok(response)
    }

    /// Fails if the video was withdrawn.
    async fn check_not_withdrawn(&self, video: &VideoId) -> Result<(), V1Error> {
        let found = self.deps.transcripts.find(video, &TrackSelector::Default).await;
        match found.map_err(|error| V1Error::from_store_error(&error))? {
            FindOutcome::Withdrawn => Err(NoTranscript::withdrawn().into()),
            FindOutcome::Transcript(_) | FindOutcome::Absence(_) | FindOutcome::NotFound => Ok(()),
        }
    }
}

/// The storage key of a response: an idempotency key is bound to account and endpoint.
fn scoped_key(caller: &AccountPrincipal, route: V1Endpoint, text: &str) -> String {
    derive_hold_id(&[caller.account.id.as_str(), route.as_str(), text])
}

fn is_valid_key(text: &str) -> bool {
    (1..=IDEMPOTENCY_KEY_MAX).contains(&text.len()) && text.bytes().all(|byte| byte.is_ascii_graphic())
}
