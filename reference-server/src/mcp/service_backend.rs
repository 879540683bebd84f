//! Tools of a service: lookups by the rules of the lookup API, credits by those of the v1 API.

use async_trait::async_trait;
use http::StatusCode;
use transcript_core::{
    accounts::{RequestGuard, StoredResponse, TranscriptParams, V1Admission, V1Endpoint, V1Request},
    chat::Chat,
    directory::api_key::{ApiKey, ApiKind},
    lookup::{AttributionTag, Availability, FailureReason, LookupRequest, LookupResponse, VideoReference},
    video::{Platform, VideoId, VideoLink},
    wire::v1::{ChatAnswer, ChatQuestion},
};

use super::backend::{
    LanguageList, ToolAnswer, ToolBackend, ToolCaller, ToolError, ToolTranscript, TranscriptQuery, available,
};
use crate::{api::reply, state::AppState};

/// Tool backend over the state of a service.
#[derive(Clone, Debug)]
pub(crate) struct ServiceBackend(AppState);

impl ServiceBackend {
    /// Creates a backend over this service.
    pub(crate) fn new(app: AppState) -> Self {
        Self(app)
    }

    fn lookup_request(reference: VideoReference, caller: &ToolCaller) -> LookupRequest {
        LookupRequest {
            reference,
            src: Some(AttributionTag::McpOther),
            key: caller.key.clone(),
            proof: caller.proof.clone(),
            client: caller.client,
            default_only: false,
        }
    }

    /// Looks up a transcript by the rules of the lookup API: only new ones need a key.
    async fn look_up(
        &self,
        query: &TranscriptQuery,
        caller: &ToolCaller,
    ) -> Result<LookupResponse, ToolError> {
        let lookup = &self.0.lookup;
        let request = Self::lookup_request(query.reference(), caller);
        let may_fetch = query.may_fetch && !has_account_key(caller);
        let answer = match &query.language {
            None if may_fetch => lookup.look_up(request).await,
            None => lookup.look_up_archived(request).await,
            Some(language) => match lookup.archived_in(request.clone(), language).await {
                // The default track is English if an English track exists.
                Ok(answer) if may_fetch && language.is_english() && needs_fetch(&answer) => {
                    lookup.look_up(request).await
                }
                answer => answer,
            },
        };
        answer.map_err(|reference| ToolError::from_reference(&reference))
    }

    /// Gets a transcript for a credit, as the v1 API does. The credit is charged at delivery.
    async fn buy_transcript(
        &self,
        video: &VideoId,
        query: &TranscriptQuery,
        caller: &ToolCaller,
    ) -> Result<ToolTranscript, ToolError> {
        let watch_url = self.watch_url(video);
        let refused = |refused| ToolError::from_v1_error(&refused, watch_url.clone());
        let accounts = &self.0.accounts;
        let guard = self.admit(V1Endpoint::Transcript, caller, None, Vec::new(), &watch_url).await?;
        let Ok(guard) = guard else { return Err(ToolError::fault()) };
        let params = TranscriptParams {
            video_id: Some(video.id().to_owned()),
            url: None,
            lang: query.language.as_ref().map(|language| language.as_str().to_owned()),
        };
        let ready = accounts.transcript(guard, params).await.map_err(refused)?;
        let (stored, left) = (ready.stored.clone(), ready.credits_remaining);
        ready.deliver(reply(StatusCode::OK, &())).await.map_err(refused)?;
        let cost = accounts.options().credits_per_transcript;
        let left = left.map_or(String::new(), |left| format!("; {left} are left"));
        let notes = vec![format!("Credits charged for this transcript: {cost}{left}.")];
        Ok(ToolTranscript { stored, watch_url, notes })
    }

    /// Admits a request, or returns the stored response to replay as `Err`.
    async fn admit(
        &self,
        route: V1Endpoint,
        caller: &ToolCaller,
        idempotency_key: Option<String>,
        body: Vec<u8>,
        watch_url: &str,
    ) -> Result<Result<RequestGuard, StoredResponse>, ToolError> {
        let request = V1Request { route, bearer: caller.key.clone(), idempotency_key, body };
        match self.0.accounts.admit(request).await {
            Ok(V1Admission::Admitted(guard)) => Ok(Ok(guard)),
            Ok(V1Admission::Replayed(reply)) => Ok(Err(reply)),
            Err(refused) => Err(ToolError::from_v1_error(&refused, watch_url.to_owned())),
        }
    }

    fn watch_url(&self, video: &VideoId) -> String {
        let link = VideoLink::Video(video.clone());
        self.0.lookup.options().watch_url(&link, Some(AttributionTag::McpOther))
    }
}

/// Whether the caller's key belongs to an account.
fn has_account_key(caller: &ToolCaller) -> bool {
    let key = caller.key.as_deref().and_then(ApiKey::parse);
    key.is_some_and(|key| key.kind() == ApiKind::V1)
}

/// Whether the transcript is missing only because it was never fetched.
fn needs_fetch(answer: &LookupResponse) -> bool {
    matches!(answer.availability, Availability::Unavailable { reason: FailureReason::NeedsVerification, .. })
}

#[async_trait]
impl ToolBackend for ServiceBackend {
    async fn transcript(
        &self,
        query: TranscriptQuery,
        caller: ToolCaller,
    ) -> Result<ToolTranscript, ToolError> {
        let answer = self.look_up(&query, &caller).await?;
        let is_for_credits = query.may_fetch
            && has_account_key(&caller)
            && answer.platform == Platform::YouTube
            && matches!(answer.availability, Availability::Unavailable { .. });
        if is_for_credits && let Ok(video) = VideoId::new(answer.platform, &answer.video_id) {
            return self.buy_transcript(&video, &query, &caller).await;
        }
        let used = answer.key.map(|key| (key.used, key.allowance));
        let (stored, watch_url, from_cache) = available(answer)?;
        let mut notes = Vec::new();
        if let Some((used, allowance)) = used.filter(|_| !from_cache) {
            notes.push(format!("New transcript, charged to the API key: {used} of {allowance} are used."));
        }
        let language = &stored.transcript.track.language;
        if let Some(requested) = query.language.filter(|requested| !requested.matches(language)) {
            notes.push(format!("No transcript in {requested} exists: this one is in {language}."));
        }
        Ok(ToolTranscript { stored, watch_url, notes })
    }

    async fn languages(&self, video: String, caller: ToolCaller) -> Result<LanguageList, ToolError> {
        let request = Self::lookup_request(VideoReference::Url(video), &caller);
        let answer = self.0.lookup.languages(request).await;
        let (answer, tracks) = answer.map_err(|reference| ToolError::from_reference(&reference))?;
        let (stored, watch_url, _) = available(answer)?;
        Ok(LanguageList { stored, tracks, watch_url })
    }

    async fn answer(
        &self,
        video: String,
        question: String,
        caller: ToolCaller,
    ) -> Result<ToolAnswer, ToolError> {
        let video =
            match VideoLink::parse(&video).map_err(|error| ToolError::invalid(format!("video: {error}")))? {
                VideoLink::Video(video) if video.platform() == Platform::YouTube => video,
                VideoLink::Video(_) | VideoLink::Short(_) => {
                    return Err(ToolError::invalid(format!(
                        "video: questions are answered for videos on {} only",
                        Platform::YouTube.name()
                    )));
                }
            };
        let watch_url = self.watch_url(&video);
        let refused = |refused| ToolError::from_v1_error(&refused, watch_url.clone());
        let chat_question =
            ChatQuestion { video_id: video.id().to_owned(), message: question, conversation_history: None };
        let body = serde_json::to_vec(&chat_question).map_err(|_| ToolError::fault())?;
        let key = caller.idempotency_key.clone();
        let reply = match self.admit(V1Endpoint::Chat, &caller, key, body, &watch_url).await? {
            Err(replayed) => replayed,
            Ok(guard) => {
                let params = transcript_core::accounts::ChatParams {
                    video_id: chat_question.video_id,
                    message: chat_question.message,
                    history: Vec::new(),
                };
                let ready = self.0.accounts.chat(guard, &self.0.chat, params).await.map_err(refused)?;
                let answer = reply(StatusCode::OK, &ChatAnswer::from(&ready));
                ready.deliver(answer).await.map_err(refused)?
            }
        };
        let answer: ChatAnswer = serde_json::from_slice(&reply.body).map_err(|_| ToolError::fault())?;
        let left = answer.credits.remaining;
        let cost = self.0.accounts.options().credits_per_message;
        let is_repeated = reply.headers.iter().any(|header| header.name == "idempotent-replayed");
        let notes = match is_repeated {
            true => vec!["This answer is a replay and costs nothing.".to_owned()],
            false => vec![format!("Credits charged: {cost}; {left} are left.")],
        };
        Ok(ToolAnswer {
            response: answer.response,
            citations: answer.citations,
            coverage: answer.coverage,
            notes,
        })
    }

    fn chat(&self) -> &Chat {
        &self.0.chat
    }
}
