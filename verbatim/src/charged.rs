//! What is had for credits, from the door to the charge, for whoever asks within the process.

use serde::{Serialize, de::DeserializeOwned};
use transcript_core::{
    accounts::{Call, ChatAsk, Entry, Header, Refused, Reply, Route, TranscriptAsk, Visit},
    wire::v1::{ChatAnswer, KeyRotated, Me, VideoTranscript},
};

use crate::Verbatim;

/// The header under which a reply keeps the credits that are left.
const CREDITS: &str = "x-credits-remaining";
/// The header under which a reply keeps whether it came from the archive.
const CACHE: &str = "x-cache";

/// Who pays, and under which name.
#[derive(Clone, PartialEq, Eq)]
pub struct Payer {
    /// The account's key: `vba_…`.
    pub key: String,
    /// The name of the request, under which it is charged once however often it is made; none: each time.
    pub name: Option<String>,
}

impl std::fmt::Debug for Payer {
    /// Without the key.
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Payer").field("name", &self.name).finish_non_exhaustive()
    }
}

/// A transcript that was paid for.
#[derive(Clone, Debug, PartialEq)]
pub struct BoughtTranscript {
    /// The transcript, as it is sent.
    pub body: VideoTranscript,
    /// What else is known of the answer.
    pub charge: Charged,
}

/// An answer about a video that was paid for.
#[derive(Clone, Debug, PartialEq)]
pub struct BoughtAnswer {
    /// The answer, as it is sent.
    pub body: ChatAnswer,
    /// What else is known of it.
    pub charge: Charged,
}

/// What is known of an answer beside its body.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Charged {
    /// The credits that are left; none when the ledger was away at that moment.
    pub credits_remaining: Option<u64>,
    /// Whether the transcript was archived already.
    pub from_cache: Option<bool>,
    /// Whether the same request was answered before, and this cost nothing.
    pub is_replayed: bool,
}

impl Verbatim {
    /// A transcript for credits, charged as it is returned.
    ///
    /// # Errors
    /// Every [`Refused`]; then nothing is charged.
    ///
    /// # Cancellation
    /// Dropping the future gives back what was taken.
    pub async fn buy_transcript(
        &self,
        payer: Payer,
        ask: TranscriptAsk,
    ) -> Result<BoughtTranscript, Refused> {
        let bound = format!("{:?}", (&ask.video_id, &ask.url, &ask.lang)).into_bytes();
        let (reply, is_replayed) = match self.enter(Route::Transcript, payer, bound).await? {
            Entry::Replayed(reply) => (reply, true),
            Entry::Admitted(visit) => {
                let ready = self.accounts().transcript(visit, ask).await?;
                let body = VideoTranscript::from(ready.stored.transcript.as_ref());
                let reply = reply(&body, ready.from_cache, ready.credits_remaining)?;
                (ready.deliver(reply).await?, false)
            }
        };
        Ok(BoughtTranscript { body: read(&reply)?, charge: charged(&reply, is_replayed) })
    }

    /// An answer about a video for a credit, charged as it is returned.
    ///
    /// # Errors
    /// As [`Verbatim::buy_transcript`].
    ///
    /// # Cancellation
    /// Dropping the future gives back what was taken.
    pub async fn buy_answer(&self, payer: Payer, ask: ChatAsk) -> Result<BoughtAnswer, Refused> {
        let said = |turn: &transcript_core::chat::Turn| (turn.role.as_str(), turn.content.clone());
        let history: Vec<_> = ask.history.iter().map(said).collect();
        let bound = format!("{:?}", (&ask.video_id, &ask.message, history)).into_bytes();
        let (reply, is_replayed) = match self.enter(Route::Chat, payer, bound).await? {
            Entry::Replayed(reply) => (reply, true),
            Entry::Admitted(visit) => {
                let ready = self.accounts().chat(visit, self.chat(), ask).await?;
                let reply =
                    reply(&ChatAnswer::from(&ready), ready.from_cache, Some(ready.credits.remaining))?;
                (ready.deliver(reply).await?, false)
            }
        };
        Ok(BoughtAnswer { body: read(&reply)?, charge: charged(&reply, is_replayed) })
    }

    /// The account of a key.
    ///
    /// # Errors
    /// [`Refused::Unauthorized`], [`Refused::RateLimited`], [`Refused::Internal`].
    pub async fn account_of(&self, key: String) -> Result<Me, Refused> {
        let visit = self.visit(Route::Me, key).await?;
        Ok(Me::from(&self.accounts().me(visit).await?))
    }

    /// Replaces an account's key: the old one is dead at once.
    ///
    /// # Errors
    /// As [`Verbatim::account_of`].
    pub async fn rotate_key(&self, key: String) -> Result<KeyRotated, Refused> {
        let visit = self.visit(Route::RotateKey, key).await?;
        Ok(KeyRotated::from(&self.accounts().rotate(visit).await?))
    }

    async fn enter(&self, route: Route, payer: Payer, body: Vec<u8>) -> Result<Entry, Refused> {
        let Payer { key, name } = payer;
        self.accounts().enter(Call { route, bearer: Some(key), idempotency_key: name, body }).await
    }

    /// A call that is never repeated by name.
    async fn visit(&self, route: Route, key: String) -> Result<Visit, Refused> {
        match self.enter(route, Payer { key, name: None }, Vec::new()).await? {
            Entry::Admitted(visit) => Ok(visit),
            Entry::Replayed(_) => Err(defect("a call without a name was repeated")),
        }
    }
}

#[cold]
fn defect(what: &str) -> Refused {
    Refused::Internal(what.to_owned())
}

/// An answer as it is kept for repeats.
fn reply(body: &impl Serialize, from_cache: bool, credits_remaining: Option<u64>) -> Result<Reply, Refused> {
    let body = serde_json::to_vec(body).map_err(|_| defect("an answer is no JSON"))?;
    let header = |name: &str, value: String| Header { name: name.to_owned(), value };
    let cache = if from_cache { "HIT" } else { "MISS" };
    let mut headers = vec![header(CACHE, cache.to_owned())];
    headers.extend(credits_remaining.map(|left| header(CREDITS, left.to_string())));
    Ok(Reply { status: 200, headers, body })
}

fn read<T: DeserializeOwned>(reply: &Reply) -> Result<T, Refused> {
    serde_json::from_slice(&reply.body).map_err(|_| defect("a kept answer cannot be read"))
}

fn charged(reply: &Reply, is_replayed: bool) -> Charged {
    let header = |name: &str| {
        reply.headers.iter().find(|header| header.name.eq_ignore_ascii_case(name)).map(|header| &header.value)
    };
    Charged {
        credits_remaining: header(CREDITS).and_then(|left| left.parse().ok()),
        from_cache: header(CACHE).map(|cache| cache == "HIT"),
        is_replayed,
    }
}
