//! Client of the lookup API and the v1 API, of a server or of the service in the process.

mod local;
mod records;
#[cfg(feature = "service")]
mod remote;

use std::sync::{Arc, Mutex, PoisonError};

use transcript_core::{lookup::AttributionTag, wire::v1::VideoTranscript};

pub use records::{
    AccountInfo, ChatAnswer, ChatTurn, CheckoutSession, Citation, ClientOptions, CreateKeyRequest,
    CreateKeyResponse, KeyStatus, KeyUsage, LookupResponse, PurchasedTranscript, TextResponse,
    VerifyResponse,
};
pub use transcript_core::chat::ChatRole;

use crate::{
    call::{CallOptions, run},
    error::{Failure, FailureKind, VerbatimError},
    lazy_open::LazyVerbatim,
    redacted_debug::redacted_debug,
    transcript::{Transcript, TranscriptFormat},
};

/// Receiver of the calls.
#[derive(Clone)]
enum ClientBackend {
    Local(local::LocalBackend),
    #[cfg(feature = "service")]
    Remote(remote::RemoteBackend),
}

/// Runs the same call on either backend.
macro_rules! dispatch {
    ($backend:expr, $inner:ident => $call:expr) => {
        match $backend {
            ClientBackend::Local($inner) => $call.await,
            #[cfg(feature = "service")]
            ClientBackend::Remote($inner) => $call.await,
        }
    };
}

/// A client with a key or without one. It is thread-safe.
#[derive(uniffi::Object)]
pub struct Client {
    backend: Mutex<ClientBackend>,
}

redacted_debug!(Client);

impl Client {
    /// A client of the service in the process.
    pub(crate) fn local(lazy: Arc<LazyVerbatim>, key: Option<String>) -> Arc<Self> {
        Arc::new(Self { backend: Mutex::new(ClientBackend::Local(local::LocalBackend { lazy, key })) })
    }

    fn backend(&self) -> ClientBackend {
        self.backend.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }
}

#[uniffi::export]
impl Client {
    /// A client of a server. It sends no request yet.
    ///
    /// # Errors
    /// `InvalidInput` with the name of the invalid option; `Unsupported` in a build without the feature `service`.
    #[uniffi::constructor]
    pub fn new(options: ClientOptions) -> Result<Arc<Self>, VerbatimError> {
        Ok(Arc::new(Self { backend: Mutex::new(remote_backend(options)?) }))
    }

    /// Uses another key from now on.
    ///
    /// # Errors
    /// `InvalidInput` if the key is invalid.
    pub fn use_key(&self, key: String) -> Result<(), VerbatimError> {
        let mut backend = self.backend.lock().unwrap_or_else(PoisonError::into_inner);
        match &mut *backend {
            ClientBackend::Local(local) => local.key = Some(key),
            #[cfg(feature = "service")]
            ClientBackend::Remote(remote) => *remote = remote.with_key(&key)?,
        }
        Ok(())
    }

    /// Looks up a transcript. An unavailable transcript is a normal response with `reason` and `watch_url`.
    ///
    /// Without a key, only archived transcripts are available.
    ///
    /// # Errors
    /// `InvalidInput` if the link or the tag is invalid; rejections and failures of a server.
    #[uniffi::method(default(src = None, call = None))]
    pub async fn look_up(
        &self,
        link: String,
        src: Option<String>,
        call: Option<CallOptions>,
    ) -> Result<LookupResponse, VerbatimError> {
        let (backend, src) = (self.backend(), parse_tag(src)?);
        run(call, async move { dispatch!(backend, inner => inner.look_up(link, src)) }).await
    }

    /// Looks up a transcript as text, Markdown or subtitles.
    ///
    /// # Errors
    /// As [`Client::look_up`].
    #[uniffi::method(default(src = None, call = None))]
    pub async fn look_up_text(
        &self,
        link: String,
        format: TranscriptFormat,
        src: Option<String>,
        call: Option<CallOptions>,
    ) -> Result<TextResponse, VerbatimError> {
        let (backend, src) = (self.backend(), parse_tag(src)?);
        run(call, async move { dispatch!(backend, inner => inner.text(link, format, src)) }).await
    }

    /// Creates a key of the lookup API. Only this response contains it.
    ///
    /// # Errors
    /// `InvalidInput`; `TooManyRequests`; failures of a server.
    #[uniffi::method(default(call = None))]
    pub async fn create_key(
        &self,
        request: CreateKeyRequest,
        call: Option<CallOptions>,
    ) -> Result<CreateKeyResponse, VerbatimError> {
        let backend = self.backend();
        run(call, async move { dispatch!(backend, inner => inner.create_key(request)) }).await
    }

    /// Allowance and usage of the key of the lookup API; `entitlement` is the proof of a paid plan.
    ///
    /// # Errors
    /// `Unauthorized`; failures of a server.
    #[uniffi::method(default(entitlement = None, call = None))]
    pub async fn key_status(
        &self,
        entitlement: Option<String>,
        call: Option<CallOptions>,
    ) -> Result<KeyStatus, VerbatimError> {
        let backend = self.backend();
        run(call, async move { dispatch!(backend, inner => inner.key_status(entitlement)) }).await
    }

    /// Registers an account; a mail contains the verification token. Returns a message for the user.
    ///
    /// # Errors
    /// `Refused` if the address is invalid; `TooManyRequests`.
    #[uniffi::method(default(call = None))]
    pub async fn register(&self, email: String, call: Option<CallOptions>) -> Result<String, VerbatimError> {
        let backend = self.backend();
        run(call, async move { dispatch!(backend, inner => inner.register(email)) }).await
    }

    /// Redeems the token of a mail for the key of the account.
    ///
    /// With `confirmed`, it can replace an existing key.
    ///
    /// # Errors
    /// `Conflict` if the account has a key and `confirmed` is false; `Refused` if the token is invalid.
    #[uniffi::method(default(confirmed = false, call = None))]
    pub async fn verify(
        &self,
        token: String,
        confirmed: bool,
        call: Option<CallOptions>,
    ) -> Result<VerifyResponse, VerbatimError> {
        let backend = self.backend();
        run(call, async move { dispatch!(backend, inner => inner.verify(token, confirmed)) }).await
    }

    /// The account of the key.
    ///
    /// # Errors
    /// `Unauthorized`; failures of a server.
    #[uniffi::method(default(call = None))]
    pub async fn me(&self, call: Option<CallOptions>) -> Result<AccountInfo, VerbatimError> {
        let backend = self.backend();
        run(call, async move { dispatch!(backend, inner => inner.me()) }).await
    }

    /// Replaces the account's key; the old one is invalid at once. Pass the new one to [`Client::use_key`].
    ///
    /// # Errors
    /// `Unauthorized`; failures of a server.
    #[uniffi::method(default(call = None))]
    pub async fn rotate_key(&self, call: Option<CallOptions>) -> Result<String, VerbatimError> {
        let backend = self.backend();
        run(call, async move { dispatch!(backend, inner => inner.rotate_key()) }).await
    }

    /// Buys a transcript for credits. Repeats with the same `idempotency_key` are charged once.
    ///
    /// # Errors
    /// `Unauthorized`, `PaymentRequired`, `ServiceNotFound` if there is no transcript; failures of a server. Nothing is
    /// charged in these cases.
    #[uniffi::method(default(language = None, idempotency_key = None, call = None))]
    pub async fn transcript(
        &self,
        link: String,
        language: Option<String>,
        idempotency_key: Option<String>,
        call: Option<CallOptions>,
    ) -> Result<PurchasedTranscript, VerbatimError> {
        let backend = self.backend();
        run(
            call,
            async move { dispatch!(backend, inner => inner.transcript(link, language, idempotency_key)) },
        )
        .await
    }

    /// Buys an answer about a video for one credit, including its transcript.
    ///
    /// # Errors
    /// As [`Client::transcript`].
    #[uniffi::method(default(history = [], idempotency_key = None, call = None))]
    pub async fn chat(
        &self,
        video_id: String,
        message: String,
        history: Vec<ChatTurn>,
        idempotency_key: Option<String>,
        call: Option<CallOptions>,
    ) -> Result<ChatAnswer, VerbatimError> {
        let backend = self.backend();
        run(call, async move {
            dispatch!(backend, inner => inner.chat(video_id, message, history, idempotency_key))
        })
        .await
    }

    /// Opens a checkout session for a plan.
    ///
    /// # Errors
    /// `Unsupported` for the service in the process, which sells nothing; rejections and failures of a server.
    #[uniffi::method(default(idempotency_key = None, call = None))]
    pub async fn subscribe(
        &self,
        plan: String,
        idempotency_key: Option<String>,
        call: Option<CallOptions>,
    ) -> Result<CheckoutSession, VerbatimError> {
        let backend = self.backend();
        run(call, async move { dispatch!(backend, inner => inner.subscribe(plan, idempotency_key)) }).await
    }

    /// Opens a checkout session for a pack of credits.
    ///
    /// # Errors
    /// As [`Client::subscribe`].
    #[uniffi::method(default(idempotency_key = None, call = None))]
    pub async fn buy_credits(
        &self,
        pack: String,
        idempotency_key: Option<String>,
        call: Option<CallOptions>,
    ) -> Result<CheckoutSession, VerbatimError> {
        let backend = self.backend();
        run(call, async move { dispatch!(backend, inner => inner.buy_credits(pack, idempotency_key)) }).await
    }
}

#[cfg(feature = "service")]
fn remote_backend(options: ClientOptions) -> Result<ClientBackend, VerbatimError> {
    Ok(ClientBackend::Remote(remote::RemoteBackend::new(options)?))
}

#[cfg(not(feature = "service"))]
fn remote_backend(_: ClientOptions) -> Result<ClientBackend, VerbatimError> {
    Err(Failure::error(FailureKind::Unsupported, "this build has no client: enable the feature service"))
}

/// Parses an attribution tag.
fn parse_tag(name: Option<String>) -> Result<Option<AttributionTag>, VerbatimError> {
    let Some(name) = name else { return Ok(None) };
    let tag = AttributionTag::from_wire(&name);
    tag.map(Some).ok_or_else(|| Failure::invalid_input(format!("unknown attribution tag {name:?}")))
}

/// `source` of purchased transcripts, also of those from the service in the process.
const SERVER: &str = "verbatim-service";

/// The transcript of a purchase.
fn purchased_transcript(body: VideoTranscript, from_cache: bool) -> Result<Transcript, VerbatimError> {
    let inner = body.into_transcript(SERVER).map_err(|error| {
        Failure::error(FailureKind::ServerUnreadable, format!("the server's response is invalid: {error}"))
    })?;
    Ok(Transcript::from_core(&inner, from_cache, 0))
}
