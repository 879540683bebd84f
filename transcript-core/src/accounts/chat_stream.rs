//! Streaming of chat answers, and the charge of a client that disconnects (specification 15).
//!
//! The credit is held before the model is called. From then on a client that disconnects is charged in full, since the
//! operator pays for the model. An extractive answer is charged from its first delivered sentence on. If the model
//! fails, the hold is released, because a client cannot cause that. A client can cause that the model refuses a
//! question or answers it unreadably: that is counted as an attempt of the account, and the fetch before a refusal is
//! charged.

use std::sync::{Arc, atomic::Ordering};

use tokio::sync::{mpsc, oneshot};

use super::{
    ChatParams, Delivery, PreparedChat, RequestGuard, StoredResponse, V1Error,
    chat::{ValidatedChat, validate},
};
use crate::chat::{Chat, Sentence, SentenceSink};

/// The next event of a streamed answer.
#[derive(Debug)]
pub enum ChatStreamEvent {
    /// A verified sentence of the answer.
    Sentence(Sentence),
    /// The end: the whole answer, delivered and paid, or an error. An answer that fails costs nothing, also after
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
/// Drop, for example when the client disconnects, releases hold and lease before the model is called and before
/// [`ChatStream::mark_delivered`]; after either, the answer is charged. With an idempotency key the answer is then
/// completed and stored for the replay.
pub struct ChatStream {
    sentences: mpsc::UnboundedReceiver<Sentence>,
    outcome_receiver: oneshot::Receiver<Result<StoredResponse, V1Error>>,
    disconnect_sender: Option<oneshot::Sender<DisconnectPoint>>,
    delivered: DisconnectPoint,
}

crate::debug_fields!(ChatStream { delivered });

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

impl Delivery {
    /// As [`Delivery::chat`], but streamed; the end is the response that `render` makes.
    ///
    /// Errors arrive as [`ChatStreamEvent::Finished`]. For the charge of a client that disconnects, see
    /// [`ChatStream`].
    pub fn chat_stream(
        self: &Arc<Self>,
        guard: RequestGuard,
        chat: &Chat,
        params: ChatParams,
        render: fn(&PreparedChat) -> StoredResponse,
    ) -> ChatStream {
        let (sentence_sender, sentences) = mpsc::unbounded_channel();
        let (outcome_sender, outcome_receiver) = oneshot::channel();
        let (disconnect_sender, mut disconnect) = oneshot::channel();
        let (delivery, chat) = (Arc::clone(self), chat.clone());
        self.context.transcripts.background().detach(async move {
            let outcome = match validate(params, Some(Arc::new(ChannelSink(sentence_sender)))) {
                Ok(request) => delivery.run_chat_stream(guard, &chat, request, render, &mut disconnect).await,
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
        let served = guard.served();
        let disconnected = async {
            if let Ok(DisconnectPoint::AfterSentence) = (&mut *disconnect).await {
                served.store(true, Ordering::Relaxed);
            }
        };
        let prepared = self.answer_connected(guard, chat, request, disconnected).await?;
        if disconnect.try_recv() == Ok(DisconnectPoint::BeforeSentence) && !served.load(Ordering::Relaxed) {
            return Err(V1Error::interrupted());
        }
        let response = render(&prepared);
        prepared.deliver(response).await
    }
}
