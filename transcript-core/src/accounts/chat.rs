//! An answer about a video for credits (specification 4, `POST /api/v1/chat`; design 4 and 5).

use std::fmt;

use super::{Accounts, Refused, Reply, TranscriptAsk, Visit, transcript::Wanted};
use crate::{
    archive::StoredTranscript,
    chat::{Answer, Chat, Question, Sentences, Turn},
    error::{Error, ErrorKind},
    video::VideoId,
};
use std::sync::Arc;

/// A question, as its fields came.
#[derive(Clone, PartialEq, Eq)]
pub struct ChatAsk {
    /// `video_id`: the 11-character id.
    pub video_id: String,
    /// `message`
    pub message: String,
    /// `conversation_history`
    pub history: Vec<Turn>,
}

impl fmt::Debug for ChatAsk {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // What people say stays out of logs.
        f.debug_struct("ChatAsk").field("turns", &self.history.len()).finish_non_exhaustive()
    }
}

/// The credits of an account after an answer (specification 2.6).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ChatCredits {
    /// How many of this period's are spent or held.
    pub used: u64,
    /// The plan's credits for the period and the purchased ones: `credits_total` of the account.
    pub limit: u64,
    /// What can be spent now.
    pub remaining: u64,
}

/// An answer that is ready to be delivered. Dropped instead, it costs nothing where that can still be helped:
/// what is only held is returned.
pub struct ChatReady {
    pub(super) visit: Visit,
    /// The video.
    pub video: VideoId,
    /// The answer.
    pub answer: Answer,
    /// The credits that are left once it is delivered.
    pub credits: ChatCredits,
    /// Whether the transcript was archived when it was asked for (`X-Cache`).
    pub from_cache: bool,
}

impl fmt::Debug for ChatReady {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ChatReady")
            .field("visit", &self.visit)
            .field("from_cache", &self.from_cache)
            .field("credits", &self.credits)
            .finish_non_exhaustive()
    }
}

impl ChatReady {
    /// Delivers the answer that was made of it: see [`Visit::deliver`].
    ///
    /// # Errors
    /// As [`Visit::deliver`].
    pub async fn deliver(self, reply: Reply) -> Result<Reply, Refused> {
        self.visit.deliver(reply).await
    }
}

/// A question that was let in, with what is asked.
pub(super) struct Asked {
    video: VideoId,
    question: Question,
    listener: Option<Arc<dyn Sentences>>,
}

impl Accounts {
    /// An answer about a video on the long-form site, for `credits.per_message`, the transcript included: ready to
    /// be delivered. A failure costs nothing.
    ///
    /// # Errors
    /// Every refusal but 401 and 429; nothing is charged, and all that was taken is given back.
    ///
    /// # Cancellation
    /// Dropping the future gives back what was taken. A fetch that has begun goes on, and is archived.
    pub async fn chat(&self, visit: Visit, chat: &Chat, ask: ChatAsk) -> Result<ChatReady, Refused> {
        let (accounts, chat) = (self.clone(), chat.clone());
        self.task(async move { accounts.converse(visit, &chat, ask).await }).await
    }

    async fn converse(&self, mut visit: Visit, chat: &Chat, ask: ChatAsk) -> Result<ChatReady, Refused> {
        let outcome = match asked(ask, None) {
            Ok(asked) => self.answered(&mut visit, chat, asked).await,
            Err(refused) => Err(refused),
        };
        match outcome {
            Ok((video, answer, credits, from_cache)) => {
                Ok(ChatReady { visit, video, answer, credits, from_cache })
            }
            Err(refused) => Err(visit.refuse(refused).await),
        }
    }

    pub(super) async fn answered(
        &self,
        visit: &mut Visit,
        chat: &Chat,
        asked: Asked,
    ) -> Result<(VideoId, Answer, ChatCredits, bool), Refused> {
        visit.tells_of(&asked.video);
        let (cost, memo) = (self.options().credits_per_message, format!("chat {}", asked.video));
        let archived = self.archived(&asked.video, &Wanted::Any).await?;
        let before =
            self.credits_here(&visit.caller().account).await.map_err(|error| Refused::store(&error))?;
        let is_at_hand = chat.is_extractive() && before.remaining >= cost;
        let (stored, from_cache, answer, left) = match archived {
            // It is made at once, and costs nobody anything: as a transcript of the archive it is paid in one step.
            Some((stored, from_cache)) if is_at_hand && asked.listener.is_none() => {
                let answer = answer(chat, &stored, &asked).await?;
                let left = visit.take(cost, &memo).await?;
                (stored, from_cache, answer, left.unwrap_or(before.remaining.saturating_sub(cost)))
            }
            archived => {
                let left = visit.hold_here(cost, &memo).await?;
                let (stored, from_cache) = match archived {
                    Some(got) => got,
                    None => self.fetched(&asked.video, &Wanted::Any).await?,
                };
                let answer = answer(chat, &stored, &asked).await?;
                (stored, from_cache, answer, left)
            }
        };
        let used = before.total.saturating_sub(left);
        let credits = ChatCredits { used, limit: before.total, remaining: left };
        Ok((stored.transcript.video.clone(), answer, credits, from_cache))
    }
}

async fn answer(chat: &Chat, stored: &StoredTranscript, asked: &Asked) -> Result<Answer, Refused> {
    let (transcript, question) = (Arc::clone(&stored.transcript), asked.question.clone());
    let answer = match &asked.listener {
        None => chat.ask(transcript, question).await,
        Some(listener) => chat.ask_aloud(transcript, question, Arc::clone(listener)).await,
    };
    answer.map_err(|error| unanswered(&error))
}

/// Why there is no answer. Its details are for the log.
fn unanswered(error: &Error) -> Refused {
    tracing::error!(%error, "a chat model did not answer");
    Refused::Internal(match error.kind() {
        ErrorKind::Corrupt => {
            "The chat model gave no answer that can be read: nothing was charged, please try again."
                .to_owned()
        }
        _ => "The chat model did not answer: nothing was charged, please try again in a moment.".to_owned(),
    })
}

pub(super) fn asked(ask: ChatAsk, listener: Option<Arc<dyn Sentences>>) -> Result<Asked, Refused> {
    let by_id = TranscriptAsk { video_id: Some(ask.video_id), ..TranscriptAsk::default() };
    let video = Accounts::video(&by_id)?;
    let question = Question::new(&ask.message, ask.history);
    let question = question.map_err(|error| Refused::BadRequest(error.to_string()))?;
    Ok(Asked { video, question, listener })
}
