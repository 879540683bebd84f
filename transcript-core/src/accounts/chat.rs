//! Chat answers for credits (specification 2.6, 4.5 and 15).

use std::fmt;

use super::{
    Accounts, RequestGuard, StoredResponse, TranscriptParams, V1Error, transcript::LanguagePreference,
};
use crate::{
    archive::StoredTranscript,
    chat::{Chat, ChatTurn, Question, SentenceSink, VerifiedAnswer},
    error::{Error, ErrorKind},
    video::VideoId,
};
use std::sync::Arc;

/// Parameters of a chat request, unvalidated.
#[derive(Clone, PartialEq, Eq)]
pub struct ChatParams {
    /// `video_id`: the 11-character id.
    pub video_id: String,
    /// `message`
    pub message: String,
    /// `conversation_history`
    pub history: Vec<ChatTurn>,
}

impl fmt::Debug for ChatParams {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // Users' questions stay out of logs.
        f.debug_struct("ChatParams").field("turns", &self.history.len()).finish_non_exhaustive()
    }
}

/// The credits of an account after an answer (specification 2.6).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ChatCredits {
    /// The credits of this period that are spent or held.
    pub used: u64,
    /// The plan's credits for the period plus the purchased ones: `credits_total` of the account.
    pub limit: u64,
    /// The credits that can be spent now.
    pub remaining: u64,
}

/// An answer that is ready for delivery. Drop releases its hold, if it has one.
pub struct PreparedChat {
    pub(super) guard: RequestGuard,
    /// The video.
    pub video: VideoId,
    /// The answer.
    pub answer: VerifiedAnswer,
    /// The credits left after delivery.
    pub credits: ChatCredits,
    /// Whether the transcript was archived at the time of the request (`X-Cache`).
    pub from_cache: bool,
}

impl fmt::Debug for PreparedChat {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("PreparedChat")
            .field("guard", &self.guard)
            .field("from_cache", &self.from_cache)
            .field("credits", &self.credits)
            .finish_non_exhaustive()
    }
}

impl PreparedChat {
    /// Delivers the response made of the answer; see [`RequestGuard::deliver`].
    ///
    /// # Errors
    /// As [`RequestGuard::deliver`].
    pub async fn deliver(self, response: StoredResponse) -> Result<StoredResponse, V1Error> {
        self.guard.deliver(response).await
    }
}

/// A validated chat request.
pub(super) struct ValidatedChat {
    video: VideoId,
    question: Question,
    sink: Option<Arc<dyn SentenceSink>>,
}

impl Accounts {
    /// Answers a question about a YouTube video for `credits.per_message`, the transcript included.
    ///
    /// The result is ready for delivery. A failure costs nothing.
    ///
    /// # Errors
    /// All errors except 401 and 429; nothing is charged, and hold and lease are released.
    ///
    /// # Cancellation
    /// Dropping the future releases hold and lease. A started fetch continues, and its transcript is archived.
    pub async fn chat(
        &self,
        guard: RequestGuard,
        chat: &Chat,
        params: ChatParams,
    ) -> Result<PreparedChat, V1Error> {
        let (accounts, chat) = (self.clone(), chat.clone());
        self.task(async move { accounts.prepare_chat(guard, &chat, params).await }).await
    }

    async fn prepare_chat(
        &self,
        mut guard: RequestGuard,
        chat: &Chat,
        params: ChatParams,
    ) -> Result<PreparedChat, V1Error> {
        let outcome = match validate(params, None) {
            Ok(request) => self.obtain_answer(&mut guard, chat, request).await,
            Err(error) => Err(error),
        };
        match outcome {
            Ok((video, answer, credits, from_cache)) => {
                Ok(PreparedChat { guard, video, answer, credits, from_cache })
            }
            Err(error) => Err(guard.reject(error).await),
        }
    }

    pub(super) async fn obtain_answer(
        &self,
        guard: &mut RequestGuard,
        chat: &Chat,
        request: ValidatedChat,
    ) -> Result<(VideoId, VerifiedAnswer, ChatCredits, bool), V1Error> {
        guard.set_video(&request.video);
        let (cost, memo) = (self.options().credits_per_message, format!("chat {}", request.video));
        let archived = self.find_archived(&request.video, &LanguagePreference::Any).await?;
        let before = self
            .credits_on_runtime(&guard.caller().account)
            .await
            .map_err(|error| V1Error::from_store_error(&error))?;
        let is_immediate = chat.is_extractive() && before.remaining >= cost;
        let (stored, from_cache, answer, credits_left) = match archived {
            // An extractive answer is made at once and free of cost, so it is paid in one step, like an archived
            // transcript.
            Some((stored, from_cache)) if is_immediate && request.sink.is_none() => {
                let answer = answer(chat, &stored, &request).await?;
                let credits_left = guard.charge(cost, &memo).await?;
                (stored, from_cache, answer, credits_left.unwrap_or(before.remaining.saturating_sub(cost)))
            }
            archived => {
                let credits_left = guard.hold_on_runtime(cost, &memo).await?;
                let (stored, from_cache) = match archived {
                    Some(obtained) => obtained,
                    None => self.fetch(&request.video, &LanguagePreference::Any).await?,
                };
                let answer = answer(chat, &stored, &request).await?;
                (stored, from_cache, answer, credits_left)
            }
        };
        let used = before.total.saturating_sub(credits_left);
        let credits = ChatCredits { used, limit: before.total, remaining: credits_left };
        Ok((stored.transcript.video.clone(), answer, credits, from_cache))
    }
}

async fn answer(
    chat: &Chat,
    stored: &StoredTranscript,
    request: &ValidatedChat,
) -> Result<VerifiedAnswer, V1Error> {
    let (transcript, question) = (Arc::clone(&stored.transcript), request.question.clone());
    let answer = match &request.sink {
        None => chat.answer(transcript, question).await,
        Some(sink) => chat.answer_streaming(transcript, question, Arc::clone(sink)).await,
    };
    answer.map_err(|error| model_error(&error))
}

/// Maps a chat model's error to the caller's error and logs its details.
fn model_error(error: &Error) -> V1Error {
    tracing::error!(%error, "chat model failed");
    V1Error::Internal(match error.kind() {
        ErrorKind::Corrupt => {
            "The chat model returned an unreadable answer. Nothing was charged; please try again.".to_owned()
        }
        _ => "The chat model did not answer. Nothing was charged; please try again in a moment.".to_owned(),
    })
}

pub(super) fn validate(
    params: ChatParams,
    sink: Option<Arc<dyn SentenceSink>>,
) -> Result<ValidatedChat, V1Error> {
    let by_id = TranscriptParams { video_id: Some(params.video_id), ..TranscriptParams::default() };
    let video = Accounts::video(&by_id)?;
    let question = Question::new(&params.message, params.history);
    let question = question.map_err(|error| V1Error::BadRequest(error.to_string()))?;
    Ok(ValidatedChat { video, question, sink })
}
