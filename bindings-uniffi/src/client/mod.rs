//! Client of the lookup API and the v1 API, of a server or of the service in the process.

mod many;
mod records;

use std::{
    future::Future,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
};

use transcript_core::{
    Error,
    lookup::{AttributionTag, EntitlementProof, VideoReference},
    transcript::LanguageTag,
    wire::{
        lookup::KeyRequest,
        v1::{BuyCreditsRequest, RegisterRequest, SubscribeRequest},
    },
};
#[cfg(feature = "local-service")]
use verbatim::service::LocalService;
#[cfg(feature = "service")]
use verbatim::service::ServiceClient;
use verbatim::{
    LANGUAGES_MAX,
    service::{
        Caller, ConnectionKey, LookupReply, Service, ServiceLookup, ServiceQuestion, ServiceReply,
        ServiceResult, buy_in_order, fetch_text_in_order, look_up_in_order,
    },
};

pub use records::{
    AccountInfo, CheckoutSession, ClientOptions, CreateKeyRequest, CreateKeyResponse, KeyStatus, KeyUsage,
    LookupResponse, PurchasedTranscript, TextResponse, VerifyResponse,
};

#[cfg(not(feature = "service"))]
use crate::error::{Failure, FailureKind};
#[cfg(feature = "local-service")]
use crate::lazy_open::LazyVerbatim;
use crate::{
    batch::Batch,
    call::{CallOptions, run},
    chat::{ChatAnswer, ChatTurn},
    error::VerbatimError,
    transcript::TranscriptFormat,
};

/// Receiver of the calls.
#[derive(Clone)]
enum ClientTarget {
    /// The service in the process.
    #[cfg(feature = "local-service")]
    Local(Arc<LazyVerbatim>),
    #[cfg(feature = "service")]
    Server(Arc<ServiceClient>),
}

impl ClientTarget {
    /// Runs a call of the service. Call this on the runtime.
    async fn run<T, F>(
        self,
        caller: Caller,
        call: impl FnOnce(Arc<dyn Service>, Caller) -> F + Send,
    ) -> Result<ServiceReply<T>, VerbatimError>
    where
        T: Send,
        F: Future<Output = ServiceResult<T>> + Send,
    {
        match self {
            #[cfg(feature = "local-service")]
            Self::Local(lazy) => {
                // Kept until the reply, so that a pause waits for it.
                let open = lazy.open().await?;
                Ok(call(Arc::new(LocalService::from(&*open)), caller).await?)
            }
            #[cfg(feature = "service")]
            Self::Server(client) => Ok(call(client, caller).await?),
        }
    }
}

/// The target of a client, and its key.
#[derive(Clone)]
struct ClientCalls {
    target: ClientTarget,
    key: Arc<Mutex<Arc<ConnectionKey>>>,
}

impl ClientCalls {
    fn new(target: ClientTarget, key: Option<String>) -> Self {
        Self { target, key: Arc::new(Mutex::new(ConnectionKey::new(key))) }
    }

    fn lock_key(&self) -> MutexGuard<'_, Arc<ConnectionKey>> {
        self.key.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The caller with the current key of its API, which can have replaced that of a running call.
    fn with_current_key(&self, caller: &Caller) -> Caller {
        let api = ConnectionKey::api_of(caller.key.as_deref());
        Caller { key: self.lock_key().current(api), ..caller.clone() }
    }

    /// Looks up a transcript in the first available language, with the waits of a batch.
    async fn look_up(
        self,
        caller: Caller,
        link: String,
        languages: Vec<LanguageTag>,
        waits: verbatim::Batch,
    ) -> Result<ServiceReply<LookupReply>, VerbatimError> {
        let lookup = ServiceLookup { words: true, description: true, ..ServiceLookup::url(link) };
        let target = self.target.clone();
        let work = |service: Arc<dyn Service>, caller: Caller| async move {
            let caller = || self.with_current_key(&caller);
            let look_up = || look_up_in_order(service.as_ref(), caller, lookup.clone(), languages.clone());
            waits.call_service(look_up, |reply| reply.result.failure_reason.as_deref()).await
        };
        target.run(caller, work).await
    }

    /// Buys a transcript in the first available language, with the waits of a batch.
    ///
    /// `key` returns the idempotency key of a language.
    async fn buy(
        self,
        caller: Caller,
        link: String,
        languages: Vec<String>,
        waits: verbatim::Batch,
        key: impl Fn(Option<String>) -> Option<String> + Send + Sync,
    ) -> Result<PurchasedTranscript, VerbatimError> {
        let target = self.target.clone();
        let work = |service: Arc<dyn Service>, caller: Caller| async move {
            let caller =
                |language| Caller { idempotency_key: key(language), ..self.with_current_key(&caller) };
            let buy = || buy_in_order(service.as_ref(), caller, link.clone(), languages.clone());
            waits.call_service(buy, |_| None).await
        };
        Ok(target.run(caller, work).await?.into())
    }
}

/// A client with a key or without one. It is thread-safe.
#[derive(uniffi::Object)]
pub struct Client {
    calls: ClientCalls,
}

transcript_core::debug_fields!(Client {});

impl Client {
    fn with_target(target: ClientTarget, key: Option<String>) -> Arc<Self> {
        Arc::new(Self { calls: ClientCalls::new(target, key) })
    }

    /// A client of the service in the process.
    #[cfg(feature = "local-service")]
    pub(crate) fn local(lazy: Arc<LazyVerbatim>, key: Option<String>) -> Arc<Self> {
        Self::with_target(ClientTarget::Local(lazy), key)
    }

    /// The caller of a request.
    fn caller(&self) -> Caller {
        Caller { key: self.calls.lock_key().text(), ..Caller::default() }
    }

    /// The caller of a request that is charged once per idempotency key.
    fn caller_once(&self, idempotency_key: Option<String>) -> Caller {
        Caller { idempotency_key, ..self.caller() }
    }

    /// Runs a call of the service, and converts its reply on the runtime.
    async fn run<T, R, F>(
        &self,
        options: Option<CallOptions>,
        caller: Caller,
        call: impl FnOnce(Arc<dyn Service>, Caller) -> F + Send + 'static,
        convert: impl FnOnce(ServiceReply<T>) -> R + Send + 'static,
    ) -> Result<R, VerbatimError>
    where
        T: Send + 'static,
        R: Send + 'static,
        F: Future<Output = ServiceResult<T>> + Send + 'static,
    {
        let target = self.calls.target.clone();
        run(options, async move { Ok(convert(target.run(caller, call).await?)) }).await
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
        server_client(options)
    }

    /// Uses another key from now on, also for the next requests of calls that run with a key of the same API.
    ///
    /// # Errors
    /// `InvalidInput` if the key is invalid.
    pub fn use_key(&self, key: String) -> Result<(), VerbatimError> {
        match &self.calls.target {
            #[cfg(feature = "local-service")]
            ClientTarget::Local(_) => {}
            #[cfg(feature = "service")]
            ClientTarget::Server(client) => client.check_key(&key)?,
        }
        ConnectionKey::replace(&mut self.calls.lock_key(), key);
        Ok(())
    }

    /// Looks up a transcript. An unavailable transcript is a normal response with `reason` and `watch_url`.
    ///
    /// Without a key, only archived transcripts are available. `language` is a BCP 47 tag; without it the transcript is
    /// that of the default track. `other_languages` are looked up in this order if the video has none in `language`;
    /// without a `language`, they alone are looked up.
    /// With `batch`, the call waits while the server refuses calls, together with the other calls of the batch.
    ///
    /// # Errors
    /// `InvalidInput` if the link, a language or the tag is invalid; rejections and failures of a server.
    #[uniffi::method(default(src = None, call = None, language = None, batch = None, other_languages = []))]
    pub async fn look_up(
        &self,
        link: String,
        src: Option<String>,
        call: Option<CallOptions>,
        language: Option<String>,
        batch: Option<Arc<Batch>>,
        other_languages: Vec<String>,
    ) -> Result<LookupResponse, VerbatimError> {
        let src = src.as_deref().map(AttributionTag::parse).transpose()?;
        let caller = Caller { src, ..self.caller() };
        let languages = parse_languages(language, other_languages)?;
        let look_up = self.calls.clone().look_up(caller, link, languages, Batch::waits_of(batch));
        run(call, async move { Ok(look_up.await?.into()) }).await
    }

    /// Looks up a transcript as text, Markdown or subtitles.
    ///
    /// # Errors
    /// As [`Client::look_up`].
    #[uniffi::method(default(src = None, call = None, language = None, other_languages = []))]
    pub async fn look_up_text(
        &self,
        link: String,
        format: TranscriptFormat,
        src: Option<String>,
        call: Option<CallOptions>,
        language: Option<String>,
        other_languages: Vec<String>,
    ) -> Result<TextResponse, VerbatimError> {
        let src = src.as_deref().map(AttributionTag::parse).transpose()?;
        let caller = Caller { src, ..self.caller() };
        let languages = parse_languages(language, other_languages)?;
        let (lookup, format, calls) = (ServiceLookup::url(link), format.into(), self.calls.clone());
        let work = move |service: Arc<dyn Service>, caller: Caller| async move {
            let caller = || calls.with_current_key(&caller);
            fetch_text_in_order(service.as_ref(), caller, lookup, format, languages).await
        };
        self.run(call, caller, work, TextResponse::from).await
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
        let CreateKeyRequest { label, email, entitlement } = request;
        let request = KeyRequest { label, email };
        let caller = Caller { proof: entitlement.map(EntitlementProof::new), ..self.caller() };
        let work =
            |service: Arc<dyn Service>, caller| async move { service.create_key(&caller, request).await };
        self.run(call, caller, work, |reply| reply.body.into()).await
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
        let caller = Caller { proof: entitlement.map(EntitlementProof::new), ..self.caller() };
        let work = |service: Arc<dyn Service>, caller| async move { service.key_status(&caller).await };
        self.run(call, caller, work, |reply| reply.body.into()).await
    }

    /// Registers an account; a mail contains the verification token. Returns a message for the user.
    ///
    /// # Errors
    /// `Refused` if the address is invalid; `TooManyRequests`.
    #[uniffi::method(default(call = None))]
    pub async fn register(&self, email: String, call: Option<CallOptions>) -> Result<String, VerbatimError> {
        let request = RegisterRequest { email };
        let work =
            |service: Arc<dyn Service>, caller| async move { service.register(&caller, request).await };
        self.run(call, self.caller(), work, |reply| reply.body.message).await
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
        let work = move |service: Arc<dyn Service>, caller| async move {
            service.verify(&caller, token, confirmed).await
        };
        self.run(call, self.caller(), work, |reply| reply.body.into()).await
    }

    /// The account of the key.
    ///
    /// # Errors
    /// `Unauthorized`; failures of a server.
    #[uniffi::method(default(call = None))]
    pub async fn me(&self, call: Option<CallOptions>) -> Result<AccountInfo, VerbatimError> {
        let work = |service: Arc<dyn Service>, caller| async move { service.me(&caller).await };
        self.run(call, self.caller(), work, |reply| reply.body.into()).await
    }

    /// Replaces the account's key; the old one is invalid at once. Pass the new one to [`Client::use_key`].
    ///
    /// # Errors
    /// `Unauthorized`; failures of a server.
    #[uniffi::method(default(call = None))]
    pub async fn rotate_key(&self, call: Option<CallOptions>) -> Result<String, VerbatimError> {
        let work = |service: Arc<dyn Service>, caller| async move { service.rotate_key(&caller).await };
        self.run(call, self.caller(), work, |reply| reply.body.api_key).await
    }

    /// Buys a transcript for credits. Repeats with the same `idempotency_key` are charged once.
    ///
    /// Without one the client makes one for this call: a failure whose outcome is unknown has it. A cancelled call has
    /// none, nor has one that exceeds its own timeout. `batch` is that of [`Client::look_up`].
    ///
    /// # Errors
    /// `Unauthorized`, `PaymentRequired`, `ServiceNotFound` if there is no transcript; failures of a server. Nothing is
    /// charged if the failure has no `idempotency_key`. A fetch that goes on is charged when it is ready, and the next
    /// call gets its transcript.
    #[uniffi::method(default(language = None, idempotency_key = None, call = None, batch = None))]
    pub async fn transcript(
        &self,
        link: String,
        language: Option<String>,
        idempotency_key: Option<String>,
        call: Option<CallOptions>,
        batch: Option<Arc<Batch>>,
    ) -> Result<PurchasedTranscript, VerbatimError> {
        let languages = language.into_iter().collect();
        let key = move |_| idempotency_key.clone();
        run(call, self.calls.clone().buy(self.caller(), link, languages, Batch::waits_of(batch), key)).await
    }

    /// Buys an answer about a video for one credit, including its transcript. `link` is a link, or a YouTube id.
    ///
    /// # Errors
    /// As [`Client::transcript`].
    #[uniffi::method(default(history = [], idempotency_key = None, call = None))]
    pub async fn chat(
        &self,
        link: String,
        message: String,
        history: Vec<ChatTurn>,
        idempotency_key: Option<String>,
        call: Option<CallOptions>,
    ) -> Result<ChatAnswer, VerbatimError> {
        let history = history.into_iter().map(Into::into).collect();
        let question = ServiceQuestion { reference: VideoReference::Url(link), message, history };
        let work = |service: Arc<dyn Service>, caller| async move { service.chat(&caller, question).await };
        self.run(call, self.caller_once(idempotency_key), work, |reply| reply.body.into()).await
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
        let request = SubscribeRequest { plan };
        let work =
            |service: Arc<dyn Service>, caller| async move { service.subscribe(&caller, request).await };
        self.run(call, self.caller_once(idempotency_key), work, |reply| reply.body.into()).await
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
        let request = BuyCreditsRequest { pack };
        let work =
            |service: Arc<dyn Service>, caller| async move { service.buy_credits(&caller, request).await };
        self.run(call, self.caller_once(idempotency_key), work, |reply| reply.body.into()).await
    }
}

#[cfg(feature = "service")]
fn server_client(options: ClientOptions) -> Result<Arc<Client>, VerbatimError> {
    let client = ServiceClient::new(&options.service_options())?;
    if let Some(key) = &options.key {
        client.check_key(key)?;
    }
    Ok(Client::with_target(ClientTarget::Server(Arc::new(client)), options.key))
}

#[cfg(not(feature = "service"))]
fn server_client(_: ClientOptions) -> Result<Arc<Client>, VerbatimError> {
    Err(Failure::error(FailureKind::Unsupported, "this build has no client: enable the feature service"))
}

/// The languages of a lookup in order; none for its default track.
fn parse_languages(
    language: Option<String>,
    other_languages: Vec<String>,
) -> Result<Vec<LanguageTag>, VerbatimError> {
    if other_languages.len() >= LANGUAGES_MAX {
        return Err(Error::invalid(format!("a request has at most {LANGUAGES_MAX} languages")).into());
    }
    let languages = language.iter().chain(&other_languages).map(|tag| LanguageTag::parse(tag));
    Ok(languages.collect::<Result<_, _>>()?)
}
