//! Streaming of chat answers, and the charge of a client that disconnects (specification 15).
//!
//! The credit is held before the model is called. Once the first sentence is delivered, a client that
//! disconnects is charged in full; otherwise it could read nearly all of the answer for free. If the model
//! fails, the hold is released, because a client cannot cause that.

use std::{fmt, sync::Arc};

use tokio::sync::{mpsc, oneshot};

use super::{
    Accounts, ChatParams, PreparedChat, RequestGuard, StoredResponse, V1Error,
    chat::{ValidatedChat, validate},
};
use crate::chat::{Chat, Sentence, SentenceSink};

/// The next event of a streamed answer.
#[derive(Debug)]
pub enum ChatStreamEvent {
    /// A verified sentence of the answer.
    Sentence(Sentence),
    /// The end: the whole answer, delivered and paid, or an error. An error costs nothing, also after
    /// delivered sentences.
    Finished(Result<StoredResponse, V1Error>),
}

/// Whether a sentence was delivered before the client disconnected.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum DisconnectPoint {
    /// No sentence was delivered.
    BeforeSentence,
    /// At least one sentence was delivered.
    AfterSentence,
}

/// A streamed answer.
///
/// Drop, for example when the client disconnects, releases hold and lease before
/// [`ChatStream::mark_delivered`]; after it, the answer is charged. With an idempotency key the answer is then
/// completed and stored for the replay.
pub struct ChatStream {
    sentences: mpsc::UnboundedReceiver<Sentence>,
    outcome_receiver: oneshot::Receiver<Result<StoredResponse, V1Error>>,
    disconnect_sender: Option<oneshot::Sender<DisconnectPoint>>,
    delivered: DisconnectPoint,
}

impl fmt::Debug for ChatStream {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ChatStream").field("delivered", &self.delivered).finish_non_exhaustive()
    }
}

impl ChatStream {
    /// The next event. Must not be called again after [`ChatStreamEvent::Finished`].
    ///
    /// # Cancellation
    /// Dropping the future loses nothing.
    pub async fn next(&mut self) -> ChatStreamEvent {
        // All sentences come before the end: the sender is dropped when the work ends.
        if let Some(sentence) = self.sentences.recv().await {
            return ChatStreamEvent::Sentence(sentence);
        }
        ChatStreamEvent::Finished(
            (&mut self.outcome_receiver).await.unwrap_or_else(|_| Err(V1Error::interrupted())),
        )
    }

    /// Records that a sentence is delivered: from now on a client that disconnects is charged.
    pub fn mark_delivered(&mut self) {
        self.delivered = DisconnectPoint::AfterSentence;
    }
}

impl Drop for ChatStream {
    fn drop(&mut self) {
        if let Some(disconnect_sender) = self.disconnect_sender.take() {
            // Fails only if the work has already ended.
            let _ = disconnect_sender.send(self.delivered);
        }
    }
}

/// Sends the sentences to a channel.
#[derive(Debug)]
struct ChannelSink(mpsc::UnboundedSender<Sentence>);

impl SentenceSink for ChannelSink {
    fn push(&self, sentence: Sentence) -> bool {
        // Never stops the model: a replay may need the complete answer.
        let _ = self.0.send(sentence);
        true
    }
}

impl Accounts {
    /// As [`Accounts::chat`], but streamed; the end is the response that `render` makes.
    ///
    /// Errors arrive as [`ChatStreamEvent::Finished`]. For the charge of a client that disconnects, see
    /// [`ChatStream`].
    pub fn chat_stream(
        &self,
        guard: RequestGuard,
        chat: &Chat,
        params: ChatParams,
        render: fn(&PreparedChat) -> StoredResponse,
    ) -> ChatStream {
        let (sentence_sender, sentences) = mpsc::unbounded_channel();
        let (outcome_sender, outcome_receiver) = oneshot::channel();
        let (disconnect_sender, mut disconnect) = oneshot::channel();
        let (accounts, chat) = (self.clone(), chat.clone());
        self.deps.transcripts.background().detach(async move {
            let outcome = match validate(params, Some(Arc::new(ChannelSink(sentence_sender)))) {
                Ok(request) => accounts.run_chat_stream(guard, &chat, request, render, &mut disconnect).await,
                Err(error) => Err(guard.reject(error).await),
            };
            let _ = outcome_sender.send(outcome);
        });
        ChatStream {
            sentences,
            outcome_receiver,
            disconnect_sender: Some(disconnect_sender),
            delivered: DisconnectPoint::BeforeSentence,
        }
    }

    async fn run_chat_stream(
        &self,
        mut guard: RequestGuard,
        chat: &Chat,
        request: ValidatedChat,
        render: fn(&PreparedChat) -> StoredResponse,
        disconnect: &mut oneshot::Receiver<DisconnectPoint>,
    ) -> Result<StoredResponse, V1Error> {
        let has_idempotency_key = guard.has_idempotency_key();
        let result = {
            let mut answer = std::pin::pin!(self.obtain_answer(&mut guard, chat, request));
            tokio::select! {
                biased;
                result = &mut answer => match disconnect.try_recv() {
                    Ok(DisconnectPoint::BeforeSentence) => Err(DisconnectPoint::BeforeSentence),
                    _ => Ok(result),
                },
                disconnect = &mut *disconnect => match disconnect {
                    Ok(DisconnectPoint::AfterSentence) if has_idempotency_key => Ok(answer.await),
                    disconnect => Err(disconnect.unwrap_or(DisconnectPoint::BeforeSentence)),
                },
            }
        };
        match result {
            Ok(Ok((video, answer, credits, from_cache))) => {
                let prepared = PreparedChat { guard, video, answer, credits, from_cache };
                let response = render(&prepared);
                prepared.deliver(response).await
            }
            Ok(Err(error)) => Err(guard.reject(error).await),
            Err(disconnect) => {
                if disconnect == DisconnectPoint::AfterSentence {
                    guard.settle_disconnected().await;
                }
                // Otherwise the drop of the guard releases hold and lease.
                Err(V1Error::interrupted())
            }
        }
    }
}
