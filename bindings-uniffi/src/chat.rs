//! Questions about a video, answered from its transcript.

use std::sync::Arc;

pub use transcript_core::chat::ChatRole;
use transcript_core::{
    body::segments::seconds,
    chat::{self, Question, VerifiedAnswer},
};
use verbatim::{GetOutcome, GetRequest};

use crate::{
    call::{CallOptions, run},
    error::{Failure, VerbatimError},
    transcripts::Transcripts,
};

/// Author of a message in a conversation.
#[uniffi::remote(Enum)]
pub enum ChatRole {
    /// The user.
    User,
    /// The model.
    Assistant,
}

/// One message of a conversation.
#[derive(Clone, Debug, PartialEq, Eq, uniffi::Record)]
pub struct ChatTurn {
    /// Author of the message.
    pub role: ChatRole,
    /// Text of the message.
    pub content: String,
}

impl From<ChatTurn> for chat::ChatTurn {
    fn from(turn: ChatTurn) -> Self {
        let ChatTurn { role, content } = turn;
        Self { role, content }
    }
}

/// A passage that an answer cites.
#[derive(Clone, Debug, PartialEq, uniffi::Record)]
pub struct Citation {
    /// Start in seconds.
    pub start: f64,
    /// End in seconds.
    pub end: f64,
    /// Text of the passage.
    pub text: String,
    /// URL of the video at the start of the passage.
    pub url: String,
}

/// An answer about a video.
#[derive(Clone, Debug, PartialEq, uniffi::Record)]
pub struct ChatAnswer {
    /// The video.
    pub video_id: String,
    /// The text, with a marker such as `[1:05]` for each citation.
    pub response: String,
    /// The cited passages.
    pub citations: Vec<Citation>,
    /// Share of the transcript that was used, from 0 to 1.
    pub coverage: f64,
    /// Credits left; `None` if the answer was free.
    pub credits_remaining: Option<i64>,
}

impl From<chat::Citation> for Citation {
    fn from(citation: chat::Citation) -> Self {
        let chat::Citation { start_ms, end_ms, text, url } = citation;
        Self { start: seconds(start_ms), end: seconds(end_ms), text, url }
    }
}

impl ChatAnswer {
    /// An answer that is not charged.
    pub(crate) fn free(video_id: String, answer: VerifiedAnswer) -> Self {
        let citations = answer.citations.into_iter().map(Citation::from);
        Self {
            video_id,
            response: answer.response,
            citations: citations.collect(),
            coverage: answer.coverage,
            credits_remaining: None,
        }
    }
}

#[uniffi::export]
impl Transcripts {
    /// Answers a question about a video from its transcript, which is fetched if it is not archived. Free.
    ///
    /// The library verifies all quotes and citations against the transcript.
    ///
    /// # Errors
    /// As [`Transcripts::get`]; `InvalidInput` if the question is invalid; failures of the model.
    #[uniffi::method(name = "ask", default(history = [], call = None))]
    pub async fn answer(
        &self,
        link: String,
        question: String,
        history: Vec<ChatTurn>,
        call: Option<CallOptions>,
    ) -> Result<ChatAnswer, VerbatimError> {
        let lazy = Arc::clone(&self.lazy);
        run(call, async move {
            let question = Question::new(&question, history.into_iter().map(Into::into).collect());
            let question = question.map_err(|error| Failure::invalid_input(error.to_string()))?;
            let verbatim = lazy.open().await?;
            match verbatim.get(GetRequest { link, ..GetRequest::default() }).await? {
                GetOutcome::Missing(missing) => Err(missing.into()),
                GetOutcome::Found(found) => {
                    let video = found.stored.transcript.video.id().to_owned();
                    let answer = verbatim.chat().answer(found.stored.transcript, question).await?;
                    Ok(ChatAnswer::free(video, answer))
                }
            }
        })
        .await
    }
}
