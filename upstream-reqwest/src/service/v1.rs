//! Client calls of the v1 API: accounts with credits (specification 4.4 to 4.11).

use http::{HeaderValue, Method, header};
use transcript_core::{
    accounts::TranscriptParams,
    wire::v1::{
        AccountInfo, BuyCreditsRequest, ChatAnswer, ChatQuestion, CreditsCheckout, PlanCheckout,
        RegisterRequest, RegisterResponse, RotateKeyResponse, SubscribeRequest, VerifyResponse,
        VideoTranscript,
    },
};

use super::{
    IdempotencyKey, ServiceClient, ServiceError, ServiceReply,
    api::{RetrySafety, ServiceCall, TRANSCRIPT_MAX},
};

impl ServiceClient {
    /// Requests a verification mail (`POST /api/v1/register`).
    ///
    /// No key is sent. The request is never retried, since each one may send a mail.
    ///
    /// # Errors
    /// [`ServiceError`]; 400 for an invalid mail address, 429 for too many requests.
    pub async fn register(
        &self,
        request: &RegisterRequest,
    ) -> Result<ServiceReply<RegisterResponse>, ServiceError> {
        let call = ServiceCall::new(Method::POST, &["api", "v1", "register"]).with_body(request)?;
        self.api.execute(&ServiceCall { is_keyed: false, repeat: RetrySafety::Never, ..call }).await?.read()
    }

    /// Redeems the token of a verification mail (`GET /api/v1/verify`).
    ///
    /// This is the only response that contains the key.
    ///
    /// A token for an address that already has an account is rejected with 409: see
    /// [`ServiceClient::verify_confirmed`].
    ///
    /// # Errors
    /// [`ServiceError`]; 400 for a token that is unknown, used or expired.
    pub async fn verify(&self, token: &str) -> Result<ServiceReply<VerifyResponse>, ServiceError> {
        self.redeem(Method::GET, token).await
    }

    /// Redeems a token even if this revokes the account's current key.
    ///
    /// # Errors
    /// As [`ServiceClient::verify`], without 409.
    pub async fn verify_confirmed(&self, token: &str) -> Result<ServiceReply<VerifyResponse>, ServiceError> {
        self.redeem(Method::POST, token).await
    }

    async fn redeem(
        &self,
        method: Method,
        token: &str,
    ) -> Result<ServiceReply<VerifyResponse>, ServiceError> {
        let call = ServiceCall::new(method.clone(), &["api", "v1", "verify"]);
        let mut call = match method {
            // In the body the token does not appear in access logs.
            Method::POST => call.with_body(&serde_json::json!({ "token": token }))?,
            _ => ServiceCall { query: vec![("token", token.to_owned())], ..call },
        };
        // Requests JSON instead of a page.
        call.headers.insert(header::ACCEPT, HeaderValue::from_static("application/json"));
        // The key is shown once: a retry would lose it.
        self.api.execute(&ServiceCall { is_keyed: false, repeat: RetrySafety::Never, ..call }).await?.read()
    }

    /// The account of the client's key (`GET /api/v1/me`).
    ///
    /// # Errors
    /// [`ServiceError`].
    pub async fn me(&self) -> Result<ServiceReply<AccountInfo>, ServiceError> {
        self.api.execute(&ServiceCall::new(Method::GET, &["api", "v1", "me"])).await?.read()
    }

    /// Replaces the client's key (`POST /api/v1/rotate-key`): the old key is invalid immediately.
    ///
    /// [`ServiceClient::with_key`] creates a client with the new one. The request is never retried: if its response
    /// is lost, a verification mail restores access.
    ///
    /// # Errors
    /// [`ServiceError`].
    pub async fn rotate_key(&self) -> Result<ServiceReply<RotateKeyResponse>, ServiceError> {
        let call = ServiceCall::new(Method::POST, &["api", "v1", "rotate-key"]);
        self.api.execute(&ServiceCall { repeat: RetrySafety::Never, ..call }).await?.read()
    }

    /// Fetches the transcript of a video for credits (`GET /api/v1/transcript`).
    ///
    /// The request has an idempotency key, so that retries are charged once: `idempotency_key`, or a new random one. To
    /// repeat the request after a crash, pass a key that was stored before.
    ///
    /// # Errors
    /// [`ServiceError`]; 402 when no credits are left, 404 when there is no transcript, 429 above the rate limit.
    pub async fn transcript(
        &self,
        params: &TranscriptParams,
        idempotency_key: Option<IdempotencyKey>,
    ) -> Result<ServiceReply<VideoTranscript>, ServiceError> {
        let call = ServiceCall::new(Method::GET, &["api", "v1", "transcript"]);
        let parameters = [("video_id", &params.video_id), ("url", &params.url), ("lang", &params.lang)];
        let given = parameters.into_iter().filter_map(|(key, value)| Some((key, value.clone()?)));
        let call = ServiceCall {
            query: given.collect(),
            max: TRANSCRIPT_MAX,
            ..with_idempotency_key(call, idempotency_key)
        };
        self.api.execute(&call).await?.read()
    }

    /// Answers a question about a video for a credit (`POST /api/v1/chat`), with an idempotency key.
    ///
    /// The question contains the earlier messages: the server stores no conversation. See
    /// [`ServiceClient::transcript`] for `idempotency_key`.
    ///
    /// # Errors
    /// [`ServiceError`]; 402 when no credits are left, 404 when there is no transcript, 500 when the server's model
    /// fails.
    pub async fn chat(
        &self,
        question: &ChatQuestion,
        idempotency_key: Option<IdempotencyKey>,
    ) -> Result<ServiceReply<ChatAnswer>, ServiceError> {
        let call = ServiceCall::new(Method::POST, &["api", "v1", "chat"]).with_body(question)?;
        self.api.execute(&with_idempotency_key(call, idempotency_key)).await?.read()
    }

    /// Creates a checkout page for a plan (`POST /api/v1/subscribe`).
    ///
    /// As for [`ServiceClient::transcript`], an idempotency key prevents a second order.
    ///
    /// # Errors
    /// [`ServiceError`]; 400 for a plan that is unknown, not sold, or already active.
    pub async fn subscribe(
        &self,
        request: &SubscribeRequest,
        idempotency_key: Option<IdempotencyKey>,
    ) -> Result<ServiceReply<PlanCheckout>, ServiceError> {
        let call = ServiceCall::new(Method::POST, &["api", "v1", "subscribe"]).with_body(request)?;
        self.api.execute(&with_idempotency_key(call, idempotency_key)).await?.read()
    }

    /// Creates a checkout page for a credit pack (`POST /api/v1/buy-credits`), with an idempotency key.
    ///
    /// # Errors
    /// [`ServiceError`]; 400 for an unknown pack.
    pub async fn buy_credits(
        &self,
        request: &BuyCreditsRequest,
        idempotency_key: Option<IdempotencyKey>,
    ) -> Result<ServiceReply<CreditsCheckout>, ServiceError> {
        let call = ServiceCall::new(Method::POST, &["api", "v1", "buy-credits"]).with_body(request)?;
        self.api.execute(&with_idempotency_key(call, idempotency_key)).await?.read()
    }
}

/// Adds an idempotency key to a call.
fn with_idempotency_key(call: ServiceCall, idempotency_key: Option<IdempotencyKey>) -> ServiceCall {
    ServiceCall { repeat: RetrySafety::Keyed(idempotency_key.unwrap_or_else(IdempotencyKey::random)), ..call }
}
