//! Surface B: accounts with credits (specification 4, "Surface B").

use http::{HeaderValue, Method, header};
use transcript_core::{
    accounts::TranscriptAsk,
    wire::v1::{
        BuyCredits, ChatAnswer, ChatQuestion, CreditsCheckout, KeyRotated, Me, PlanCheckout, Register,
        Registered, Subscribe, Verified, VideoTranscript,
    },
};

use super::{
    Answered, IdempotencyKey, ServiceClient, ServiceError,
    api::{Call, Repeat, TRANSCRIPT_MAX},
};

impl ServiceClient {
    /// Has a verification mail sent (`POST /api/v1/register`). No key is sent along, and it is never sent again by
    /// itself: each one may be a mail.
    ///
    /// # Errors
    /// [`ServiceError`]; 400 when the address is none, 429 for too many.
    pub async fn register(&self, request: &Register) -> Result<Answered<Registered>, ServiceError> {
        let call = Call::new(Method::POST, &["api", "v1", "register"]).with_body(request)?;
        self.api.ask(&Call { is_keyed: false, repeat: Repeat::Never, ..call }).await?.read()
    }

    /// Redeems the token of a verification mail (`GET /api/v1/verify`): the only time that the key is shown. A
    /// token of an address that has an account already is refused with 409: see
    /// [`ServiceClient::verify_confirmed`].
    ///
    /// # Errors
    /// [`ServiceError`]; 400 for a token that is unknown, used or too old.
    pub async fn verify(&self, token: &str) -> Result<Answered<Verified>, ServiceError> {
        self.redeem(Method::GET, token).await
    }

    /// The same, also where it ends the key that the account has.
    ///
    /// # Errors
    /// As [`ServiceClient::verify`], but no 409.
    pub async fn verify_confirmed(&self, token: &str) -> Result<Answered<Verified>, ServiceError> {
        self.redeem(Method::POST, token).await
    }

    async fn redeem(&self, method: Method, token: &str) -> Result<Answered<Verified>, ServiceError> {
        let call = Call::new(method.clone(), &["api", "v1", "verify"]);
        let mut call = match method {
            // In the body a token is in nobody's log of addresses.
            Method::POST => call.with_body(&serde_json::json!({ "token": token }))?,
            _ => Call { query: vec![("token", token.to_owned())], ..call },
        };
        // A program is answered, not shown a page.
        call.headers.insert(header::ACCEPT, HeaderValue::from_static("application/json"));
        // A key is shown once: repeated, there would be none.
        self.api.ask(&Call { is_keyed: false, repeat: Repeat::Never, ..call }).await?.read()
    }

    /// The account of the client's key (`GET /api/v1/me`).
    ///
    /// # Errors
    /// [`ServiceError`].
    pub async fn me(&self) -> Result<Answered<Me>, ServiceError> {
        self.api.ask(&Call::new(Method::GET, &["api", "v1", "me"])).await?.read()
    }

    /// Replaces the client's key (`POST /api/v1/rotate-key`): the old one is dead at once, and
    /// [`ServiceClient::with_key`] goes on with the new one. It is never sent again by itself: when its answer is
    /// lost, a verification mail is the way back.
    ///
    /// # Errors
    /// [`ServiceError`].
    pub async fn rotate_key(&self) -> Result<Answered<KeyRotated>, ServiceError> {
        let call = Call::new(Method::POST, &["api", "v1", "rotate-key"]);
        self.api.ask(&Call { repeat: Repeat::Never, ..call }).await?.read()
    }

    /// The transcript of a video for credits (`GET /api/v1/transcript`).
    ///
    /// The request goes under a name, so that it is charged once however often it has to be sent: `name`, or a
    /// fresh one. Whoever wants to repeat it after a crash gives a name that was written down before.
    ///
    /// # Errors
    /// [`ServiceError`]; 402 when no credits are left, 404 when there is no transcript, 429 beyond the rate limit.
    pub async fn transcript(
        &self,
        ask: &TranscriptAsk,
        name: Option<IdempotencyKey>,
    ) -> Result<Answered<VideoTranscript>, ServiceError> {
        let call = Call::new(Method::GET, &["api", "v1", "transcript"]);
        let parameters = [("video_id", &ask.video_id), ("url", &ask.url), ("lang", &ask.lang)];
        let given = parameters.into_iter().filter_map(|(key, value)| Some((key, value.clone()?)));
        let call = Call { query: given.collect(), max: TRANSCRIPT_MAX, ..named(call, name) };
        self.api.ask(&call).await?.read()
    }

    /// An answer about a video for a credit (`POST /api/v1/chat`), under a name as [`ServiceClient::transcript`]. What was
    /// said before goes along in the question: nothing else is remembered.
    ///
    /// # Errors
    /// [`ServiceError`]; 402 when no credits are left, 404 when there is no transcript, 500 when the server's model
    /// fails.
    pub async fn chat(
        &self,
        question: &ChatQuestion,
        name: Option<IdempotencyKey>,
    ) -> Result<Answered<ChatAnswer>, ServiceError> {
        let call = Call::new(Method::POST, &["api", "v1", "chat"]).with_body(question)?;
        self.api.ask(&named(call, name)).await?.read()
    }

    /// A page on which a plan is paid for (`POST /api/v1/subscribe`). As for [`ServiceClient::transcript`], it goes
    /// under a name, so that repeating it opens no second order.
    ///
    /// # Errors
    /// [`ServiceError`]; 400 for a plan that is none, is not sold, or that the account has.
    pub async fn subscribe(
        &self,
        request: &Subscribe,
        name: Option<IdempotencyKey>,
    ) -> Result<Answered<PlanCheckout>, ServiceError> {
        let call = Call::new(Method::POST, &["api", "v1", "subscribe"]).with_body(request)?;
        self.api.ask(&named(call, name)).await?.read()
    }

    /// A page on which a pack of credits is paid for (`POST /api/v1/buy-credits`), under a name.
    ///
    /// # Errors
    /// [`ServiceError`]; 400 for a pack that is none.
    pub async fn buy_credits(
        &self,
        request: &BuyCredits,
        name: Option<IdempotencyKey>,
    ) -> Result<Answered<CreditsCheckout>, ServiceError> {
        let call = Call::new(Method::POST, &["api", "v1", "buy-credits"]).with_body(request)?;
        self.api.ask(&named(call, name)).await?.read()
    }
}

/// The call under a name, under which the server knows it again.
fn named(call: Call, name: Option<IdempotencyKey>) -> Call {
    Call { repeat: Repeat::Keyed(name.unwrap_or_else(IdempotencyKey::random)), ..call }
}
