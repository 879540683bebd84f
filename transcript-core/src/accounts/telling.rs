//! An answer that is told sentence by sentence, and what a caller owes who leaves in the middle (design 5).
//!
//! The credit is held before the model is asked. From the first sentence that is handed over the answer counts as
//! delivered, as far as it is the caller who ends it: nobody reads nearly all of it and leaves before paying. A
//! model that fails is another matter, which no caller can bring about: then everything is given back.

use std::{fmt, sync::Arc};

use tokio::sync::{mpsc, oneshot};

use super::{
    Accounts, ChatAsk, ChatReady, Refused, Reply, Visit,
    chat::{Asked, asked},
};
use crate::chat::{Chat, Sentence, Sentences};

/// What comes next of an answer that is told.
#[derive(Debug)]
pub enum Told {
    /// A sentence of it, verified.
    Sentence(Sentence),
    /// It is over: the whole of it, delivered and paid, or why there is none. That costs nothing, also where
    /// sentences were told before.
    Ended(Result<Reply, Refused>),
}

/// How much a caller had who left.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Left {
    /// Nothing.
    Without,
    /// A sentence at least.
    With,
}

/// An answer that is being told.
///
/// Dropped, as when its caller leaves: before [`Telling::handed_over`] everything is given back, after it the answer is
/// paid. With an idempotency key it is then made to its end, for the repeat.
pub struct Telling {
    heard: mpsc::UnboundedReceiver<Sentence>,
    ended: oneshot::Receiver<Result<Reply, Refused>>,
    leave: Option<oneshot::Sender<Left>>,
    handed: Left,
}

impl fmt::Debug for Telling {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Telling").field("handed", &self.handed).finish_non_exhaustive()
    }
}

impl Telling {
    /// What comes next. After [`Told::Ended`] nothing does, and this must not be called again.
    ///
    /// # Cancellation
    /// Dropping the future loses nothing.
    pub async fn next(&mut self) -> Told {
        // What was said before the end is heard first: the ear is dropped with the work.
        if let Some(sentence) = self.heard.recv().await {
            return Told::Sentence(sentence);
        }
        Told::Ended((&mut self.ended).await.unwrap_or_else(|_| Err(Refused::interrupted())))
    }

    /// Notes that the caller gets a sentence now: from here on whoever leaves has been served.
    pub fn handed_over(&mut self) {
        self.handed = Left::With;
    }
}

impl Drop for Telling {
    fn drop(&mut self) {
        if let Some(leave) = self.leave.take() {
            // Where the work is over already there is nobody to tell.
            let _ = leave.send(self.handed);
        }
    }
}

/// Hears sentences, for whoever sends them on.
#[derive(Debug)]
struct Ear(mpsc::UnboundedSender<Sentence>);

impl Sentences for Ear {
    fn push(&self, sentence: Sentence) -> bool {
        // Whether anybody is left to hear it is asked elsewhere: a repeat may want the rest.
        let _ = self.0.send(sentence);
        true
    }
}

impl Accounts {
    /// As [`Accounts::chat`], told sentence by sentence and delivered at its end as the reply that `render` makes.
    ///
    /// Refusals come as [`Told::Ended`]; see [`Telling`] for what a caller owes who leaves.
    pub fn chat_aloud(
        &self,
        visit: Visit,
        chat: &Chat,
        ask: ChatAsk,
        render: fn(&ChatReady) -> Reply,
    ) -> Telling {
        let (says, heard) = mpsc::unbounded_channel();
        let (tell, ended) = oneshot::channel();
        let (leave, mut left) = oneshot::channel();
        let (accounts, chat) = (self.clone(), chat.clone());
        self.parts.transcripts.detach(async move {
            let outcome = match asked(ask, Some(Arc::new(Ear(says)))) {
                Ok(asked) => accounts.told(visit, &chat, asked, render, &mut left).await,
                Err(refused) => Err(visit.refuse(refused).await),
            };
            let _ = tell.send(outcome);
        });
        Telling { heard, ended, leave: Some(leave), handed: Left::Without }
    }

    async fn told(
        &self,
        mut visit: Visit,
        chat: &Chat,
        asked: Asked,
        render: fn(&ChatReady) -> Reply,
        left: &mut oneshot::Receiver<Left>,
    ) -> Result<Reply, Refused> {
        let may_be_repeated = visit.may_be_repeated();
        let answered = {
            let mut answering = std::pin::pin!(self.answered(&mut visit, chat, asked));
            tokio::select! {
                biased;
                answered = &mut answering => match left.try_recv() {
                    Ok(Left::Without) => Err(Left::Without),
                    _ => Ok(answered),
                },
                left = &mut *left => match left {
                    Ok(Left::With) if may_be_repeated => Ok(answering.await),
                    left => Err(left.unwrap_or(Left::Without)),
                },
            }
        };
        match answered {
            Ok(Ok((video, answer, credits, from_cache))) => {
                let ready = ChatReady { visit, video, answer, credits, from_cache };
                let reply = render(&ready);
                ready.deliver(reply).await
            }
            Ok(Err(refused)) => Err(visit.refuse(refused).await),
            Err(left) => {
                if left == Left::With {
                    visit.leave_served().await;
                }
                // Dropped otherwise, the visit gives back what it took.
                Err(Refused::interrupted())
            }
        }
    }
}
