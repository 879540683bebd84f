//! A caller of the service: of a server, or of the service within the process. Both surfaces, under the same names.

mod records;
#[cfg(feature = "service")]
mod server;
mod within;

use std::sync::{Arc, Mutex, PoisonError};

use transcript_core::{lookup::SourceTag, wire::v1::VideoTranscript};

pub use records::{
    Allowance, ChatAnswer, ChatTurn, Citation, ClientOptions, CreditsPage, KeyCreated, KeyStatus, Lookup, Me,
    NewKeyRequest, Purchase, TextLookup, Verified,
};
pub use transcript_core::chat::Role;

use crate::{
    call::{CallOptions, run},
    error::{Failure, FailureKind, VerbatimError},
    opener::Opener,
    transcript::{Format, Transcript},
    unsaid::unsaid,
};

/// Where calls go.
#[derive(Clone)]
enum Place {
    Within(within::Within),
    #[cfg(feature = "service")]
    Server(server::Server),
}

/// Does the same call at either place.
macro_rules! at {
    ($place:expr, $of:ident => $call:expr) => {
        match $place {
            Place::Within($of) => $call.await,
            #[cfg(feature = "service")]
            Place::Server($of) => $call.await,
        }
    };
}

/// A caller with a key, or none. Calls may be made from any thread, at the same time.
#[derive(uniffi::Object)]
pub struct Client {
    place: Mutex<Place>,
}

unsaid!(Client);

impl Client {
    /// A caller of the service within the process.
    pub(crate) fn within(opener: Arc<Opener>, key: Option<String>) -> Arc<Self> {
        Arc::new(Self { place: Mutex::new(Place::Within(within::Within { opener, key })) })
    }

    fn place(&self) -> Place {
        self.place.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }
}

#[uniffi::export]
impl Client {
    /// A client of a server. Nobody is asked yet.
    ///
    /// # Errors
    /// `InvalidInput`, naming the option that is wrong; `Unsupported` in a build without the feature `service`.
    #[uniffi::constructor]
    pub fn new(options: ClientOptions) -> Result<Arc<Self>, VerbatimError> {
        Ok(Arc::new(Self { place: Mutex::new(place(options)?) }))
    }

    /// Goes on with another key.
    ///
    /// # Errors
    /// `InvalidInput` when it is none.
    pub fn use_key(&self, key: String) -> Result<(), VerbatimError> {
        let mut place = self.place.lock().unwrap_or_else(PoisonError::into_inner);
        match &mut *place {
            Place::Within(within) => within.key = Some(key),
            #[cfg(feature = "service")]
            Place::Server(server) => *server = server.with_key(&key)?,
        }
        Ok(())
    }

    /// Looks a transcript up. That there is none is an answer, too: `reason` says why, and `watch_url` is for a person.
    /// Without a key only what is archived can be had.
    ///
    /// # Errors
    /// `InvalidInput` when the link or the tag is none; a server's refusals and failures.
    #[uniffi::method(default(src = None, call = None))]
    pub async fn look_up(
        &self,
        link: String,
        src: Option<String>,
        call: Option<CallOptions>,
    ) -> Result<Lookup, VerbatimError> {
        let (place, src) = (self.place(), tag(src)?);
        run(call, async move { at!(place, of => of.look_up(link, src)) }).await
    }

    /// The same as text, Markdown or subtitles.
    ///
    /// # Errors
    /// As [`Client::look_up`].
    #[uniffi::method(default(src = None, call = None))]
    pub async fn look_up_text(
        &self,
        link: String,
        format: Format,
        src: Option<String>,
        call: Option<CallOptions>,
    ) -> Result<TextLookup, VerbatimError> {
        let (place, src) = (self.place(), tag(src)?);
        run(call, async move { at!(place, of => of.text(link, format, src)) }).await
    }

    /// Makes a key for look-ups. Only this answer ever shows it.
    ///
    /// # Errors
    /// `InvalidInput`; `TooManyRequests`; a server's failures.
    #[uniffi::method(default(call = None))]
    pub async fn create_key(
        &self,
        request: NewKeyRequest,
        call: Option<CallOptions>,
    ) -> Result<KeyCreated, VerbatimError> {
        let place = self.place();
        run(call, async move { at!(place, of => of.create_key(request)) }).await
    }

    /// What the caller's key for look-ups has used of its allowance; `entitlement` is the proof of a paid plan.
    ///
    /// # Errors
    /// `Unauthorized`; a server's failures.
    #[uniffi::method(default(entitlement = None, call = None))]
    pub async fn key_status(
        &self,
        entitlement: Option<String>,
        call: Option<CallOptions>,
    ) -> Result<KeyStatus, VerbatimError> {
        let place = self.place();
        run(call, async move { at!(place, of => of.key_status(entitlement)) }).await
    }

    /// Asks for an account; a mail brings the token. The sentence is for the person.
    ///
    /// # Errors
    /// `Refused` when the address is none; `TooManyRequests`.
    #[uniffi::method(default(call = None))]
    pub async fn register(&self, email: String, call: Option<CallOptions>) -> Result<String, VerbatimError> {
        let place = self.place();
        run(call, async move { at!(place, of => of.register(email)) }).await
    }

    /// Redeems the token of a mail for the account's key. `confirmed`: a key that the account has may end.
    ///
    /// # Errors
    /// `Conflict` when the account has a key and it was not confirmed; `Refused` when the token is none.
    #[uniffi::method(default(confirmed = false, call = None))]
    pub async fn verify(
        &self,
        token: String,
        confirmed: bool,
        call: Option<CallOptions>,
    ) -> Result<Verified, VerbatimError> {
        let place = self.place();
        run(call, async move { at!(place, of => of.verify(token, confirmed)) }).await
    }

    /// The account of the caller's key.
    ///
    /// # Errors
    /// `Unauthorized`; a server's failures.
    #[uniffi::method(default(call = None))]
    pub async fn me(&self, call: Option<CallOptions>) -> Result<Me, VerbatimError> {
        let place = self.place();
        run(call, async move { at!(place, of => of.me()) }).await
    }

    /// Replaces the account's key: the old one is dead at once. [`Client::use_key`] goes on with the new one.
    ///
    /// # Errors
    /// `Unauthorized`; a server's failures.
    #[uniffi::method(default(call = None))]
    pub async fn rotate_key(&self, call: Option<CallOptions>) -> Result<String, VerbatimError> {
        let place = self.place();
        run(call, async move { at!(place, of => of.rotate_key()) }).await
    }

    /// A transcript for credits. With an `idempotency_key` it is charged once however often it is asked for.
    ///
    /// # Errors
    /// `Unauthorized`, `PaymentRequired`, `NotOffered` when there is none; a server's failures. Nothing is charged then.
    #[uniffi::method(default(language = None, idempotency_key = None, call = None))]
    pub async fn transcript(
        &self,
        link: String,
        language: Option<String>,
        idempotency_key: Option<String>,
        call: Option<CallOptions>,
    ) -> Result<Purchase, VerbatimError> {
        let place = self.place();
        run(call, async move { at!(place, of => of.transcript(link, language, idempotency_key)) }).await
    }

    /// An answer about a video for a credit, its transcript included.
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
        let place = self.place();
        run(call, async move { at!(place, of => of.chat(video_id, message, history, idempotency_key)) }).await
    }

    /// A page on which a plan is paid.
    ///
    /// # Errors
    /// `Unsupported` within the process, where nothing is sold; a server's refusals and failures.
    #[uniffi::method(default(idempotency_key = None, call = None))]
    pub async fn subscribe(
        &self,
        plan: String,
        idempotency_key: Option<String>,
        call: Option<CallOptions>,
    ) -> Result<CreditsPage, VerbatimError> {
        let place = self.place();
        run(call, async move { at!(place, of => of.subscribe(plan, idempotency_key)) }).await
    }

    /// A page on which a pack of credits is paid.
    ///
    /// # Errors
    /// As [`Client::subscribe`].
    #[uniffi::method(default(idempotency_key = None, call = None))]
    pub async fn buy_credits(
        &self,
        pack: String,
        idempotency_key: Option<String>,
        call: Option<CallOptions>,
    ) -> Result<CreditsPage, VerbatimError> {
        let place = self.place();
        run(call, async move { at!(place, of => of.buy_credits(pack, idempotency_key)) }).await
    }
}

#[cfg(feature = "service")]
fn place(options: ClientOptions) -> Result<Place, VerbatimError> {
    Ok(Place::Server(server::Server::new(options)?))
}

#[cfg(not(feature = "service"))]
fn place(_: ClientOptions) -> Result<Place, VerbatimError> {
    Err(Failure::of(FailureKind::Unsupported, "this build asks no servers: it lacks the feature service"))
}

/// The attribution tag of this name.
fn tag(name: Option<String>) -> Result<Option<SourceTag>, VerbatimError> {
    let Some(name) = name else { return Ok(None) };
    let known = SourceTag::from_wire(&name);
    known.map(Some).ok_or_else(|| Failure::invalid(format!("there is no attribution tag {name:?}")))
}

/// The name of a server as a source of words: also of the service within the process, in builds without `service`.
const SERVER: &str = "verbatim-service";

/// The words of an answer for credits.
fn bought(body: VideoTranscript, from_cache: bool) -> Result<Transcript, VerbatimError> {
    let inner = body.into_transcript(SERVER).map_err(|what| {
        Failure::of(FailureKind::ServerUnreadable, format!("The server's answer is of no use: {what}."))
    })?;
    Ok(Transcript::of(&inner, from_cache, 0))
}
