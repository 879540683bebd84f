//! Admission of v1 calls: authentication, replay of stored responses and rate limits.

use std::sync::Arc;

use sha2::{Digest, Sha256};

use super::{
    AccountCredits, AccountPrincipal, Authenticator, IdempotencyState, IdempotencyStore, RequestGuard,
    StoredResponse, V1Error,
    call_context::CallContext,
    charge::{CreditHold, derive_id},
    idempotency_lease::{IdempotencyLease, KEY_OF_OTHER_REQUEST, KeyedAttempt},
    rate_limit::AccountLimits,
    reply_metadata::{ReplyMetadata, mark_replayed},
};
use crate::{
    archive::{FindOutcome, TrackSelector},
    debug_fields,
    engine::{FailureReason, NoTranscript},
    ids::Holder,
    names::names,
    video::VideoId,
};

/// The longest `Idempotency-Key`, in bytes.
const IDEMPOTENCY_KEY_MAX: usize = 255;
/// The message for a malformed `Idempotency-Key`.
const MALFORMED_KEY: &str = "Idempotency-Key: use 1 to 255 visible ASCII characters, such as a UUID";

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
    /// `POST /api/v1/jobs`
    StartJob,
    /// `GET /api/v1/jobs` and below
    ReadJobs,
    /// `DELETE /api/v1/jobs/{id}`
    CancelJob,
    /// `GET /api/v1/webhook-secret`
    WebhookSecret,
    /// `POST /api/v1/webhook-secret/rotate`
    RotateWebhookSecret,
}

names!(V1Endpoint {
    Transcript = "transcript",
    Chat = "chat",
    Me = "me",
    RotateKey = "rotate-key",
    Subscribe = "subscribe",
    BuyCredits = "buy-credits",
    StartJob = "start-job",
    ReadJobs = "read-jobs",
    CancelJob = "cancel-job",
    WebhookSecret = "webhook-secret",
    RotateWebhookSecret = "rotate-webhook-secret",
});

impl V1Endpoint {
    /// Whether the endpoint supports `Idempotency-Key`; never if its response would contain an API key.
    pub fn accepts_idempotency_key(self) -> bool {
        match self {
            Self::Transcript | Self::Chat | Self::Subscribe | Self::BuyCredits | Self::StartJob => true,
            Self::Me
            | Self::RotateKey
            | Self::ReadJobs
            | Self::CancelJob
            | Self::WebhookSecret
            | Self::RotateWebhookSecret => false,
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

debug_fields!(V1Request { route });

impl V1Request {
    /// Removes a malformed idempotency key, which rejects the request once it is admitted, and returns the error.
    pub fn take_malformed_key(&mut self) -> Option<V1Error> {
        let is_malformed = |text: &mut String| self.route.accepts_idempotency_key() && !is_valid_key(text);
        self.idempotency_key.take_if(is_malformed)?;
        Some(V1Error::BadRequest(MALFORMED_KEY.to_owned()))
    }
}

/// Outcome of the admission of a request.
#[derive(Debug)]
pub enum V1Admission {
    /// The stored response of the same request. It costs nothing and counts only for the limit of repeats.
    Replayed(StoredResponse),
    /// The request is admitted.
    Admitted(Box<RequestGuard>),
}

/// Outcome of the replay of a response.
enum ReplayOutcome {
    /// The response, to be sent again.
    Response(StoredResponse),
    /// Only that it was delivered, with the hold that pays for it: it is made again.
    Omitted(Option<CreditHold>),
}

/// Admits requests: key, replay and rate limit.
///
/// Uses the idempotency store, the engine's archive, the ledger for the hold of a replay, the directory and the rate
/// limiter.
#[derive(Debug)]
pub struct Admission {
    pub(super) context: Arc<CallContext>,
    pub(super) authenticator: Arc<Authenticator>,
    pub(super) limits: Arc<AccountLimits>,
    pub(super) credits: Arc<AccountCredits>,
    pub(super) replies: Arc<dyn IdempotencyStore>,
}

impl Admission {
    /// Admits a request.
    /// The order of the checks (specification 5, 8): 401, then the replay, then 429.
    ///
    /// The parameters of the request, and the format of its idempotency key, are checked afterwards. A replay, a
    /// request whose key is still in use, and one with another body count for a separate limit, which is six
    /// times as high. A repeat of a long transcript, which is made again, counts for both.
    ///
    /// # Errors
    /// [`V1Error::Unauthorized`]; [`V1Error::BadRequest`] for an idempotency key that is malformed or was
    /// used with another body; [`V1Error::Conflict`] while another request with the same key is running;
    /// [`V1Error::RateLimited`]; [`V1Error::Internal`].
    ///
    /// # Cancellation
    /// Dropping the future leaves nothing held; the lease of an idempotency key is released.
    pub async fn admit(self: &Arc<Self>, request: V1Request) -> Result<V1Admission, V1Error> {
        let caller = self.authenticate(request.bearer.as_deref()).await?;
        self.admit_caller(caller, request).await
    }

    /// Admits a request without an idempotency key, which is no replay.
    ///
    /// # Errors
    /// [`V1Error::Unauthorized`]; [`V1Error::RateLimited`]; [`V1Error::Internal`].
    ///
    /// # Cancellation
    /// Dropping the future leaves nothing held.
    pub async fn admit_unkeyed(
        self: &Arc<Self>,
        route: V1Endpoint,
        bearer: Option<&str>,
    ) -> Result<RequestGuard, V1Error> {
        let caller = self.authenticate(bearer).await?;
        let (admission, guard) = (Arc::clone(self), RequestGuard::new(&self.credits, caller, route));
        self.context.task(async move { admission.count_request(guard).await }).await
    }

    /// Authenticates a bearer credential: the first check of [`Admission::admit`], before a body is read.
    ///
    /// # Errors
    /// See [`Authenticator::authenticate`].
    pub async fn authenticate(&self, bearer: Option<&str>) -> Result<AccountPrincipal, V1Error> {
        self.authenticator.authenticate(bearer).await
    }

    /// Admits the request of an authenticated caller: the checks of [`Admission::admit`] after the first.
    /// The credential of the request is not read.
    ///
    /// # Errors
    /// Those of [`Admission::admit`], except [`V1Error::Unauthorized`].
    ///
    /// # Cancellation
    /// As for [`Admission::admit`].
    pub async fn admit_caller(
        self: &Arc<Self>,
        caller: AccountPrincipal,
        request: V1Request,
    ) -> Result<V1Admission, V1Error> {
        let admission = Arc::clone(self);
        self.context.task(async move { admission.admit_on_runtime(caller, request).await }).await
    }

    async fn admit_on_runtime(
        &self,
        caller: AccountPrincipal,
        mut request: V1Request,
    ) -> Result<V1Admission, V1Error> {
        let mut guard = RequestGuard::new(&self.credits, caller, request.route);
        let malformed = request.take_malformed_key();
        let key_text = request.idempotency_key.as_deref().filter(|_| request.route.accepts_idempotency_key());
        if let Some(text) = key_text
            && let Some(response) = self.begin(&mut guard, text, &request.body).await?
        {
            return Ok(V1Admission::Replayed(response));
        }
        let guard = self.count_request(guard).await?;
        if let Some(error) = malformed {
            return Err(guard.reject(error).await);
        }
        Ok(V1Admission::Admitted(Box::new(guard)))
    }

    /// Counts a request for the account's rate limit.
    async fn count_request(&self, mut guard: RequestGuard) -> Result<RequestGuard, V1Error> {
        match self.limits.count_request(&guard.caller().account, self.context.now()).await {
            Ok(rate) => {
                guard.set_rate(rate);
                Ok(guard)
            }
            Err(error) => Err(guard.reject(error).await),
        }
    }

    /// Acquires the lease of an idempotency key; returns the stored response if there is one to replay.
    async fn begin(
        &self,
        guard: &mut RequestGuard,
        text: &str,
        body: &[u8],
    ) -> Result<Option<StoredResponse>, V1Error> {
        let is_counted_as_repeat =
            self.limits.count_keyed(&guard.caller().account, self.context.now()).await?;
        let attempt = Arc::new(KeyedAttempt {
            context: Arc::clone(&self.context),
            replies: Arc::clone(&self.replies),
            key: scoped_key(guard.caller(), guard.route(), text),
            holder: Holder::new(self.context.random_id("call")),
            fingerprint: Sha256::digest(body).to_vec(),
        });
        // The guard gets the lease before the store call, so that it is released whatever the outcome.
        guard.set_lease(&attempt.key, IdempotencyLease::new(Arc::clone(&attempt)));
        let begun = self.context.retry_store(|| attempt.begin()).await;
        let state = begun.map_err(V1Error::from_store_error)?;
        if state != IdempotencyState::New {
            guard.discard_lease();
            if !is_counted_as_repeat {
                self.limits.count_repeat(&guard.caller().account, self.context.now()).await?;
            }
        }
        match state {
            IdempotencyState::New => Ok(None),
            IdempotencyState::Completed(response) => match self.replay(response).await? {
                ReplayOutcome::Response(response) => Ok(Some(response)),
                ReplayOutcome::Omitted(hold) => {
                    guard.set_repeated(hold);
                    Ok(None)
                }
            },
            IdempotencyState::InProgress => Err(V1Error::Conflict(
                "A request with this Idempotency-Key is still running. Retry in a second.".to_owned(),
            )),
            IdempotencyState::Mismatch => Err(V1Error::BadRequest(KEY_OF_OTHER_REQUEST.to_owned())),
        }
    }

    /// Replays a stored response.
    /// The process that stored it may have died before it settled the hold, so the hold is settled here; that
    /// changes nothing if it was settled or has expired. The hold of a response that is made again is settled when
    /// that is delivered, which may fail.
    ///
    /// If the video was withdrawn since, the response is not replayed, and the hold is released. So is a stored
    /// response whose transcript was deleted. One that is made again fetches that transcript.
    async fn replay(&self, mut response: StoredResponse) -> Result<ReplayOutcome, V1Error> {
        let ReplyMetadata { hold, video, is_omitted } = ReplyMetadata::take(&mut response);
        let checked = match &video {
            Some(video) => self.check_archived(video, is_omitted).await,
            None => Ok(()),
        };
        match (&hold, &checked) {
            (Some(hold), Ok(())) if !is_omitted => self.credits.settle_hold(hold).await?,
            (Some(hold), Err(V1Error::Unavailable(_))) => self.credits.release_hold(hold).await,
            _ => {}
        }
        checked?;
        if is_omitted {
            return Ok(ReplayOutcome::Omitted(hold));
        }
        mark_replayed(&mut response);
        Ok(ReplayOutcome::Response(response))
    }

    /// Fails if the video was withdrawn or, unless the response is made again, has no archived transcript.
    async fn check_archived(&self, video: &VideoId, is_omitted: bool) -> Result<(), V1Error> {
        let transcripts = &self.context.transcripts;
        let found = transcripts.find(video, &TrackSelector::Default).await;
        match found.map_err(V1Error::from_store_error)? {
            FindOutcome::Withdrawn => return Err(NoTranscript::withdrawn().into()),
            FindOutcome::Absence(_) | FindOutcome::NotFound if !is_omitted => {}
            FindOutcome::Transcript(_) | FindOutcome::Absence(_) | FindOutcome::NotFound => return Ok(()),
        }
        // The response may be of another track.
        let tracks = transcripts.tracks(video).await.map_err(V1Error::from_store_error)?;
        if tracks.iter().any(|track| track.revision.is_some()) {
            return Ok(());
        }
        let message = "The transcript of this response was deleted from the archive.";
        Err(NoTranscript::new(FailureReason::NoCaptions, message).into())
    }
}

/// The storage key of a response: an idempotency key is bound to account and endpoint.
fn scoped_key(caller: &AccountPrincipal, route: V1Endpoint, text: &str) -> String {
    derive_id(&[caller.account.id.as_str(), route.as_str(), text])
}

fn is_valid_key(text: &str) -> bool {
    (1..=IDEMPOTENCY_KEY_MAX).contains(&text.len()) && text.bytes().all(|byte| byte.is_ascii_graphic())
}
