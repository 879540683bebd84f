//! The tools of a service: look-ups as the look-up API answers them, and what costs credits as the v1 API does.

use async_trait::async_trait;
use http::StatusCode;
use transcript_core::{
    accounts::{Call, Entry, Reply, Route, TranscriptAsk, Visit},
    chat::Chat,
    directory::key::{Key, Surface},
    lookup::{Availability, FailureReason, LookupAnswer, LookupAsk, Reference, SourceTag},
    video::{Platform, VideoId, VideoLink},
    wire::v1::{ChatAnswer, ChatQuestion},
};

use super::source::{Caller, Got, Languages, No, Source, Told, Wanted, available};
use crate::routes::{App, v1::door::reply};

/// A service's parts.
#[derive(Clone, Debug)]
pub(crate) struct Service(App);

impl Service {
    /// The tools of this service.
    pub(crate) fn new(app: App) -> Self {
        Self(app)
    }

    fn look_up(reference: Reference, caller: &Caller) -> LookupAsk {
        LookupAsk {
            reference,
            src: Some(SourceTag::McpOther),
            key: caller.key.clone(),
            proof: caller.proof.clone(),
            client: caller.client,
            default_only: false,
        }
    }

    /// What Surface A answers: what is archived to everybody, and what is new to its keys.
    async fn of_surface_a(&self, wanted: &Wanted, caller: &Caller) -> Result<LookupAnswer, No> {
        let lookup = &self.0.lookup;
        let ask = Self::look_up(wanted.reference(), caller);
        let may_fetch = wanted.may_fetch && !is_of_account(caller);
        let answer = match &wanted.language {
            None if may_fetch => lookup.look_up(ask).await,
            None => lookup.peek(ask).await,
            Some(language) => match lookup.archived_in(ask.clone(), language).await {
                // The default is in English wherever there is English.
                Ok(answer) if may_fetch && language.is_english() && is_new(&answer) => {
                    lookup.look_up(ask).await
                }
                answer => answer,
            },
        };
        answer.map_err(|reference| No::of_reference(&reference))
    }

    /// A transcript for a credit, as the v1 API gives it: paid when it is handed over.
    async fn of_surface_b(&self, video: &VideoId, wanted: &Wanted, caller: &Caller) -> Result<Got, No> {
        let watch_url = self.watch_url(video);
        let refused = |refused| No::of_refused(&refused, watch_url.clone());
        let accounts = &self.0.accounts;
        let visit = self.enter(Route::Transcript, caller, None, Vec::new(), &watch_url).await?;
        let Ok(visit) = visit else { return Err(No::fault()) };
        let ask = TranscriptAsk {
            video_id: Some(video.id().to_owned()),
            url: None,
            lang: wanted.language.as_ref().map(|language| language.as_str().to_owned()),
        };
        let ready = accounts.transcript(visit, ask).await.map_err(refused)?;
        let (stored, left) = (ready.stored.clone(), ready.credits_remaining);
        ready.deliver(reply(StatusCode::OK, &())).await.map_err(refused)?;
        let cost = accounts.options().credits_per_transcript;
        let left = left.map_or(String::new(), |left| format!("; {left} are left"));
        let notes = vec![format!("Credits charged for this transcript: {cost}{left}.")];
        Ok(Got { stored, watch_url, notes })
    }

    /// Lets a call in, or has the reply to repeat.
    async fn enter(
        &self,
        route: Route,
        caller: &Caller,
        idempotency_key: Option<String>,
        body: Vec<u8>,
        watch_url: &str,
    ) -> Result<Result<Visit, Reply>, No> {
        let call = Call { route, bearer: caller.key.clone(), idempotency_key, body };
        match self.0.accounts.enter(call).await {
            Ok(Entry::Admitted(visit)) => Ok(Ok(visit)),
            Ok(Entry::Replayed(reply)) => Ok(Err(reply)),
            Err(refused) => Err(No::of_refused(&refused, watch_url.to_owned())),
        }
    }

    fn watch_url(&self, video: &VideoId) -> String {
        let link = VideoLink::Video(video.clone());
        self.0.lookup.options().watch_url(&link, Some(SourceTag::McpOther))
    }
}

/// Whether the caller's key is one of an account.
fn is_of_account(caller: &Caller) -> bool {
    let key = caller.key.as_deref().and_then(Key::parse);
    key.is_some_and(|key| key.surface() == Surface::Account)
}

/// Whether a transcript is missing only because nobody had it fetched yet.
fn is_new(answer: &LookupAnswer) -> bool {
    matches!(answer.availability, Availability::Unavailable { reason: FailureReason::NeedsVerification, .. })
}

#[async_trait]
impl Source for Service {
    async fn transcript(&self, wanted: Wanted, caller: Caller) -> Result<Got, No> {
        let answer = self.of_surface_a(&wanted, &caller).await?;
        let is_for_credits = wanted.may_fetch
            && is_of_account(&caller)
            && answer.platform == Platform::VideoSite
            && matches!(answer.availability, Availability::Unavailable { .. });
        if is_for_credits && let Ok(video) = VideoId::new(answer.platform, &answer.video_id) {
            return self.of_surface_b(&video, &wanted, &caller).await;
        }
        let used = answer.key.map(|key| (key.used, key.allowance));
        let (stored, watch_url, from_cache) = available(answer)?;
        let mut notes = Vec::new();
        if let Some((used, allowance)) = used.filter(|_| !from_cache) {
            notes.push(format!("It is new, and was charged to the key: {used} of {allowance} are used."));
        }
        let language = &stored.transcript.track.language;
        if let Some(wished) = wanted.language.filter(|wished| !wished.matches(language)) {
            notes.push(format!("There is none in {wished}: this one is in {language}."));
        }
        Ok(Got { stored, watch_url, notes })
    }

    async fn languages(&self, video: String, caller: Caller) -> Result<Languages, No> {
        let ask = Self::look_up(Reference::Url(video), &caller);
        let answer = self.0.lookup.languages(ask).await;
        let (answer, tracks) = answer.map_err(|reference| No::of_reference(&reference))?;
        let (of, watch_url, _) = available(answer)?;
        Ok(Languages { of, tracks, watch_url })
    }

    async fn ask(&self, video: String, question: String, caller: Caller) -> Result<Told, No> {
        let video = match VideoLink::parse(&video).map_err(|error| No::bad(format!("video: {error}")))? {
            VideoLink::Video(video) if video.platform() == Platform::VideoSite => video,
            VideoLink::Video(_) | VideoLink::Short(_) => {
                return Err(No::bad(format!(
                    "video: questions are answered about videos on {}",
                    Platform::VideoSite.name()
                )));
            }
        };
        let watch_url = self.watch_url(&video);
        let refused = |refused| No::of_refused(&refused, watch_url.clone());
        let asked =
            ChatQuestion { video_id: video.id().to_owned(), message: question, conversation_history: None };
        let body = serde_json::to_vec(&asked).map_err(|_| No::fault())?;
        let key = caller.idempotency_key.clone();
        let reply = match self.enter(Route::Chat, &caller, key, body, &watch_url).await? {
            Err(replayed) => replayed,
            Ok(visit) => {
                let ask = transcript_core::accounts::ChatAsk {
                    video_id: asked.video_id,
                    message: asked.message,
                    history: Vec::new(),
                };
                let ready = self.0.accounts.chat(visit, &self.0.chat, ask).await.map_err(refused)?;
                let answer = reply(StatusCode::OK, &ChatAnswer::from(&ready));
                ready.deliver(answer).await.map_err(refused)?
            }
        };
        let answer: ChatAnswer = serde_json::from_slice(&reply.body).map_err(|_| No::fault())?;
        let left = answer.credits.remaining;
        let cost = self.0.accounts.options().credits_per_message;
        let is_repeated = reply.headers.iter().any(|header| header.name == "idempotent-replayed");
        let notes = match is_repeated {
            true => vec!["This answer was given before, and costs nothing now.".to_owned()],
            false => vec![format!("Credits charged: {cost}; {left} are left.")],
        };
        Ok(Told { response: answer.response, citations: answer.citations, coverage: answer.coverage, notes })
    }

    fn chat(&self) -> &Chat {
        &self.0.chat
    }
}
