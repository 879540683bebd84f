//! Answer to a visitor's question as Server-Sent Events.
//!
//! `sentence` events have a verified sentence. The last event is `answer`, which says whether the transcript answers
//! the question, or `error` with a `detail`.

use std::{
    convert::Infallible,
    pin::Pin,
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
};

use axum::{body::Body, response::Response};
use bytes::Bytes;
use futures_util::stream;
use serde_json::json;
use tokio::sync::mpsc;
use transcript_core::{
    Result,
    chat::{Chat, Question, Sentence, SentenceSink, VerifiedAnswer},
    transcript::Transcript,
};

use crate::{
    api::{COMMENT, KEEPALIVE_INTERVAL, event, event_stream},
    page::PageContext,
};

/// Sends the sentences to the stream.
#[derive(Debug)]
struct StreamSink {
    sentences: mpsc::UnboundedSender<Sentence>,
    has_sent: AtomicBool,
}

impl SentenceSink for StreamSink {
    fn push(&self, sentence: Sentence) -> bool {
        self.has_sent.store(true, Ordering::Relaxed);
        self.sentences.send(sentence).is_ok()
    }
}

type AnswerWork = Pin<Box<dyn Future<Output = Result<VerifiedAnswer>> + Send>>;

/// Stream of one answer. Dropping it ends the work.
struct AnswerStream {
    context: PageContext,
    sentences: mpsc::UnboundedReceiver<Sentence>,
    work: AnswerWork,
    outcome: Option<Result<VerifiedAnswer>>,
}

impl AnswerStream {
    /// The next event. After the last one the stream is `None`.
    async fn next(mut self) -> (Bytes, Option<Self>) {
        while self.outcome.is_none() {
            tokio::select! {
                biased;
                Some(sentence) = self.sentences.recv() => return (sentence_event(&sentence), Some(self)),
                outcome = &mut self.work => self.outcome = Some(outcome),
                () = tokio::time::sleep(KEEPALIVE_INTERVAL) => return (COMMENT, Some(self)),
            }
        }
        if let Ok(sentence) = self.sentences.try_recv() {
            return (sentence_event(&sentence), Some(self));
        }
        let last = match self.outcome {
            Some(Ok(answer)) => event("answer", &json!({ "covered": answer.is_covered })),
            Some(Err(_)) | None => event("error", &json!({ "detail": self.context.text("ask.lost") })),
        };
        (last, None)
    }
}

fn sentence_event(sentence: &Sentence) -> Bytes {
    event("sentence", &json!({ "text": sentence.text }))
}

/// Streams the answer to a question. If the model fails before its first sentence, the transcript's own passages are
/// the answer: the question is counted already.
pub(super) fn stream_answer(
    context: PageContext,
    chat: &Chat,
    transcript: Arc<Transcript>,
    question: Question,
) -> Response {
    let (sender, sentences) = mpsc::unbounded_channel();
    let sink = Arc::new(StreamSink { sentences: sender, has_sent: AtomicBool::new(false) });
    let chat = chat.clone();
    let work = async move {
        let sink_of_model = Arc::clone(&sink) as Arc<dyn SentenceSink>;
        let answer = chat.answer_streaming(Arc::clone(&transcript), question.clone(), sink_of_model).await;
        match answer {
            Err(error) if !sink.has_sent.load(Ordering::Relaxed) => {
                tracing::error!(%error, "chat model failed for a visitor");
                chat.without_model().answer_streaming(transcript, question, sink).await
            }
            answer => answer.inspect_err(|error| tracing::error!(%error, "chat model failed for a visitor")),
        }
    };
    let answer_stream = AnswerStream { context, sentences, work: Box::pin(work), outcome: None };
    let body = stream::unfold(Some(answer_stream), |answer_stream| async {
        let (event, answer_stream) = answer_stream?.next().await;
        Some((Ok::<_, Infallible>(event), answer_stream))
    });
    event_stream(Body::from_stream(body))
}
