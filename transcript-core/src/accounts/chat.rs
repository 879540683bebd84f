//! Chat answers for credits (specification 2.6, 4.5 and 15).

use std::{
    pin::pin,
    sync::{Arc, atomic::Ordering},
};

use tokio::sync::oneshot;

use super::{
    Delivery, Memo, RequestGuard, StoredResponse, TranscriptParams, V1Error,
    fetch_payment::RequestEnd,
    transcript::{LanguagePreference, PreferredTrack, parse_video},
};
use crate::{
    archive::StoredTranscript,
    chat::{Chat, ChatTurn, Question, SentenceSink, VerifiedAnswer},
    debug_fields,
    error::{Error, ErrorKind},
    video::VideoId,
};

const REFUSED: &str = "message: the chat model refused this question: please ask it in other words. If the transcript \
                       was fetched for it, that was charged, and your next request for the transcript is free, unless \
                       a transcript costs more than a question.";

/// The message if the answer of the model cannot be read.
const UNREADABLE: &str =
    "The chat model returned an unreadable answer. Nothing was charged; please try again.";
/// The message if the model does not answer.
const UNANSWERED: &str = "The chat model did not answer. Nothing was charged; please try again in a moment.";

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

// Users' questions stay out of logs.
crate::debug_fields!(ChatParams |this| { turns: this.history.len() });

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
    guard: RequestGuard,
    /// The video.
    pub video: VideoId,
    /// The answer.
    pub answer: VerifiedAnswer,
    /// The credits left after delivery.
    pub credits: ChatCredits,
    /// Whether the transcript was archived at the time of the request (`X-Cache`).
    pub from_cache: bool,
}

debug_fields!(PreparedChat { guard, from_cache, credits });

impl PreparedChat {
    fn new(guard: RequestGuard, answer: ObtainedAnswer) -> Self {
        let (video, answer, credits, from_cache) = answer;
        Self { guard, video, answer, credits, from_cache }
    }

    /// Delivers the response made of the answer; see [`RequestGuard::deliver`].
    pub(super) async fn deliver(self, response: StoredResponse) -> Result<StoredResponse, V1Error> {
        self.guard.deliver(response).await
    }
}

/// The video, its answer, the credits left, and whether the transcript was archived before.
type ObtainedAnswer = (VideoId, VerifiedAnswer, ChatCredits, bool);

/// Why a question has no answer, and how its request ends.
struct ChatFailure {
    error: V1Error,
    end: RequestEnd,
}

impl From<V1Error> for ChatFailure {
    fn from(error: V1Error) -> Self {
        Self { error, end: RequestEnd::Failed }
    }
}

/// A validated chat request.
pub(super) struct ValidatedChat {
    video: VideoId,
    question: Question,
    sink: Option<Arc<dyn SentenceSink>>,
}

impl Delivery {
    /// Answers a question about a YouTube video for `credits.per_message`, the transcript included.
    ///
    /// `render` makes the response of the answer, and a value for the caller that is not stored. The response is stored
    /// for replays and settles the hold, see [`RequestGuard::deliver`]; so one with an error status costs nothing.
    ///
    /// # Errors
    /// All errors except 401; hold and lease are released. Nothing is charged, except the fetch before a question that
    /// the model refuses ([`V1Error::BadRequest`]): the account's next delivery of that transcript is prepaid, unless a
    /// transcript costs more than a question.
    ///
    /// # Cancellation
    /// Dropping the future ends the work. Before the model is called that is free, apart from a fetch; see
    /// [`Delivery::transcript`]. After that the answer is charged; with an idempotency key it is also completed and
    /// stored for the replay.
    pub async fn chat<T: Send + 'static>(
        self: &Arc<Self>,
        guard: RequestGuard,
        chat: &Chat,
        params: ChatParams,
        render: impl FnOnce(&PreparedChat) -> (StoredResponse, T) + Send + 'static,
    ) -> Result<(StoredResponse, T), V1Error> {
        let request = match validate(params, None) {
            Ok(request) => request,
            Err(error) => return Err(guard.reject(error).await),
        };
        let (delivery, chat) = (Arc::clone(self), chat.clone());
        if !guard.has_idempotency_key() || chat.is_extractive() {
            let connected = std::future::pending();
            let work = async move { delivery.deliver_answer(guard, &chat, request, connected, render).await };
            return self.context.task(work).await;
        }
        let (mut sender, receiver) = oneshot::channel();
        self.context.transcripts.background().detach(async move {
            // Delivered here: an answer on its way to a caller that leaves would be charged, but not stored.
            let delivered = delivery.deliver_answer(guard, &chat, request, sender.closed(), render).await;
            // The caller may have left.
            let _ = sender.send(delivered);
        });
        receiver.await.unwrap_or_else(|_| Err(V1Error::interrupted()))
    }

    async fn deliver_answer<T>(
        &self,
        guard: RequestGuard,
        chat: &Chat,
        request: ValidatedChat,
        disconnect: impl Future<Output = ()>,
        render: impl FnOnce(&PreparedChat) -> (StoredResponse, T),
    ) -> Result<(StoredResponse, T), V1Error> {
        let prepared = self.answer_connected(guard, chat, request, disconnect).await?;
        let (response, value) = render(&prepared);
        Ok((prepared.deliver(response).await?, value))
    }

    /// The answer for a client, until it disconnects.
    ///
    /// Once the model is called, a client that disconnects is charged, and an answer with an idempotency key is
    /// completed.
    pub(super) async fn answer_connected(
        &self,
        mut guard: RequestGuard,
        chat: &Chat,
        request: ValidatedChat,
        disconnect: impl Future<Output = ()>,
    ) -> Result<PreparedChat, V1Error> {
        let (served, is_repeatable) = (guard.served(), guard.has_idempotency_key());
        let outcome = {
            let mut answer = pin!(self.obtain_answer(&mut guard, chat, request));
            tokio::select! {
                biased;
                outcome = &mut answer => Some(outcome),
                () = disconnect => match is_repeatable && served.load(Ordering::Relaxed) {
                    true => Some(answer.await),
                    false => None,
                },
            }
        };
        match outcome {
            Some(Ok(answer)) => Ok(PreparedChat::new(guard, answer)),
            Some(Err(ChatFailure { error, end: RequestEnd::Failed })) => Err(guard.reject(error).await),
            Some(Err(ChatFailure { error, end })) => Err(guard.reject_question(error, end).await),
            // The drop of the guard charges the call or releases its hold.
            None => Err(V1Error::interrupted()),
        }
    }

    async fn obtain_answer(
        &self,
        guard: &mut RequestGuard,
        chat: &Chat,
        request: ValidatedChat,
    ) -> Result<ObtainedAnswer, ChatFailure> {
        let video = &request.video;
        guard.set_video(video);
        let cost = self.context.options.credits_per_message;
        let memo = Memo::Question(video.clone()).to_string();
        let found = self.find_archived(video, &LanguagePreference::Any).await?;
        let found = match found {
            PreferredTrack::Archived(stored) => PreferredTrack::Archived(
                request.question.best_transcript(&self.context.transcripts, stored).await,
            ),
            found => found,
        };
        let from_cache = found.archived().is_some();
        // A fetch checks the same limit.
        if from_cache && !chat.is_extractive() {
            guard.check_attempts().await?;
        }
        let before = guard.credits.balance(&guard.caller().account).await;
        let before = before.map_err(V1Error::from_store_error)?;
        // An extractive answer is made at once and free of cost, so it is paid in one step, like an archived
        // transcript.
        let is_immediate =
            from_cache && chat.is_extractive() && before.remaining >= cost && request.sink.is_none();
        let source = Self::source(guard, found, video, &LanguagePreference::Any).await?;
        let served = guard.served();
        let work = async {
            let stored = self.read_source(source, video, &LanguagePreference::Any).await?;
            // From here on the operator pays for the model.
            served.store(!chat.is_extractive(), Ordering::Relaxed);
            let answer = answer(chat, &stored, &request).await?;
            Ok::<_, ChatFailure>((stored.transcript.video.clone(), answer))
        };
        let ((video, answer), credits_left) = guard.work_for_credits(cost, &memo, is_immediate, work).await?;
        let remaining = credits_left.unwrap_or(before.remaining.saturating_sub(cost));
        let used = before.total.saturating_sub(remaining);
        Ok((video, answer, ChatCredits { used, limit: before.total, remaining }, from_cache))
    }
}

async fn answer(
    chat: &Chat,
    stored: &StoredTranscript,
    request: &ValidatedChat,
) -> Result<VerifiedAnswer, ChatFailure> {
    let (transcript, question) = (Arc::clone(&stored.transcript), request.question.clone());
    let answer = match &request.sink {
        None => chat.answer(transcript, question).await,
        Some(sink) => chat.answer_streaming(transcript, question, Arc::clone(sink)).await,
    };
    answer.map_err(|error| model_failure(&error))
}

/// Maps a chat model's error to the caller's error and logs its details.
///
/// A client can cause a refusal and an unreadable answer. All else is about the operator's service or settings.
fn model_failure(error: &Error) -> ChatFailure {
    if error.kind() == ErrorKind::Unsupported {
        tracing::error!(%error, "chat model refused a question");
        return ChatFailure { error: V1Error::BadRequest(REFUSED.to_owned()), end: RequestEnd::Refused };
    }
    tracing::error!(%error, "chat model failed");
    let (message, end) = match error.kind() {
        ErrorKind::Corrupt => (UNREADABLE, RequestEnd::Unreadable),
        _ => (UNANSWERED, RequestEnd::Failed),
    };
    ChatFailure { error: V1Error::Internal(message.to_owned()), end }
}

pub(super) fn validate(
    params: ChatParams,
    sink: Option<Arc<dyn SentenceSink>>,
) -> Result<ValidatedChat, V1Error> {
    let by_id = TranscriptParams { video_id: Some(params.video_id), ..TranscriptParams::default() };
    let video = parse_video(&by_id)?;
    let question = Question::new(&params.message, params.history);
    let question = question.map_err(|error| V1Error::BadRequest(error.to_string()))?;
    Ok(ValidatedChat { video, question, sink })
}
