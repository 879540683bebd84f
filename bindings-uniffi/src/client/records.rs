//! What goes to the service and comes from it. Counts are signed, times seconds since 1970 or ISO 8601 as on the wire.

use std::time::Duration;

use transcript_core::{
    chat::{Answer, Role, Turn},
    video::Platform,
    wire::{lookup, v1},
};

use crate::{error::count, transcript::Transcript, unsaid::unsaid};

/// Where a server is, and with which key it is asked.
#[derive(Clone, uniffi::Record)]
pub struct ClientOptions {
    /// The server's address, to which `/api/…` is added.
    pub base_url: String,
    /// A key: `vbk_…` for look-ups, `vba_…` for an account.
    #[uniffi(default = None)]
    pub key: Option<String>,
    /// How long one attempt may take; none: 60 s.
    #[uniffi(default = None)]
    pub timeout: Option<Duration>,
    /// How often a request that failed in passing is sent again where that is safe; none: twice.
    #[uniffi(default = None)]
    pub retries: Option<u32>,
    /// A PEM file with root certificates that are trusted beside the system's.
    #[uniffi(default = None)]
    pub ca_file: Option<String>,
}

/// What a key has used of its allowance.
#[derive(Clone, Debug, PartialEq, Eq, uniffi::Record)]
pub struct Allowance {
    /// `free`, `plus` or `plus_inactive`.
    pub plan: String,
    /// `month` or `day`.
    pub period: String,
    /// Spent and held.
    pub used: i64,
    /// How many there are in the period.
    pub allowance: i64,
    /// How many are left.
    pub remaining: i64,
}

impl From<lookup::KeyObject> for Allowance {
    fn from(key: lookup::KeyObject) -> Self {
        let (used, allowance, remaining) = (count(key.used), count(key.allowance), count(key.remaining));
        Self { plan: key.plan, period: key.period, used, allowance, remaining }
    }
}

/// The answer of a look-up.
#[derive(Clone, Debug, PartialEq, uniffi::Record)]
pub struct Lookup {
    /// The transcript; none when it is not available.
    pub transcript: Option<Transcript>,
    /// Where the video is.
    pub platform: Option<Platform>,
    /// Its id there; the code of a short link that could not be followed.
    pub video_id: String,
    /// Where a person can read the transcript.
    pub watch_url: String,
    /// Why there is none, as on the wire: `needs_verification`, `no_captions`, …
    pub reason: Option<String>,
    /// Why there is none, in a sentence for people.
    pub sentence: Option<String>,
    /// After how long it may be of use to ask again.
    pub retry_after: Option<Duration>,
    /// What the caller's key has used; none without a known key.
    pub key: Option<Allowance>,
}

/// A transcript as text, or why there is none.
#[derive(Clone, Debug, PartialEq, Eq, uniffi::Record)]
pub struct TextLookup {
    /// The transcript.
    pub text: Option<String>,
    /// Why there is none.
    pub sentence: Option<String>,
    /// Where a person can read it.
    pub watch_url: Option<String>,
    /// Whether the key's allowance is spent.
    pub is_allowance_spent: bool,
}

/// What a new key is for.
#[derive(Clone, Debug, Default, PartialEq, Eq, uniffi::Record)]
pub struct NewKeyRequest {
    /// A name for its owner.
    #[uniffi(default = None)]
    pub label: Option<String>,
    /// Its owner's address.
    #[uniffi(default = None)]
    pub email: Option<String>,
    /// The proof of a paid plan.
    #[uniffi(default = None)]
    pub entitlement: Option<String>,
}

/// A key for look-ups, and what is left of its allowance.
#[derive(Clone, Debug, PartialEq, Eq, uniffi::Record)]
pub struct KeyStatus {
    /// Its id.
    pub id: String,
    /// The name for its owner.
    pub label: Option<String>,
    /// What it has used.
    pub usage: Allowance,
    /// When the period ends, in ISO 8601.
    pub resets_at: String,
    /// When it was made, in ISO 8601.
    pub created_at: String,
}

impl From<lookup::KeyStatus> for KeyStatus {
    fn from(status: lookup::KeyStatus) -> Self {
        let lookup::KeyStatus { id, label, usage, resets_at, created_at } = status;
        Self { id, label, usage: usage.into(), resets_at, created_at }
    }
}

/// A new key.
#[derive(Clone, uniffi::Record)]
pub struct KeyCreated {
    /// The key in the clear: `vbk_…`.
    pub key: String,
    /// What it may do.
    pub status: KeyStatus,
}

/// The key of a verified account.
#[derive(Clone, uniffi::Record)]
pub struct Verified {
    /// The key in the clear: `vba_…`.
    pub key: String,
    /// The credits that are left.
    pub credits: i64,
    /// The account's plan.
    pub plan: String,
    /// What its owner should know.
    pub notice: Option<String>,
}

impl From<v1::Verified> for Verified {
    fn from(verified: v1::Verified) -> Self {
        let v1::Verified { api_key, credits, plan, notice, .. } = verified;
        Self { key: api_key, credits: count(credits), plan, notice }
    }
}

/// An account.
#[derive(Clone, PartialEq, Eq, uniffi::Record)]
pub struct Me {
    /// Its owner's address.
    pub email: String,
    /// Its plan.
    pub plan: String,
    /// The credits that are left.
    pub credits_remaining: i64,
    /// The credits that there are in the month, and those that were bought.
    pub credits_total: i64,
    /// When the month ends, in ISO 8601.
    pub resets_at: String,
}

impl From<v1::Me> for Me {
    fn from(me: v1::Me) -> Self {
        Self {
            email: me.email,
            plan: me.plan,
            credits_remaining: count(me.credits_remaining),
            credits_total: count(me.credits_total),
            resets_at: me.resets_at,
        }
    }
}

/// A transcript that was paid for.
#[derive(Clone, Debug, PartialEq, uniffi::Record)]
pub struct Purchase {
    /// The transcript.
    pub transcript: Transcript,
    /// The credits that are left, where that is known.
    pub credits_remaining: Option<i64>,
    /// Whether the same request was answered before, and this cost nothing.
    pub is_replayed: bool,
}

/// Who said something in a conversation.
#[uniffi::remote(Enum)]
pub enum Role {
    /// The person who asks.
    User,
    /// Whoever answers.
    Assistant,
}

/// One turn of a conversation.
#[derive(Clone, Debug, PartialEq, Eq, uniffi::Record)]
pub struct ChatTurn {
    /// Who said it.
    pub role: Role,
    /// What was said.
    pub content: String,
}

impl From<ChatTurn> for Turn {
    fn from(turn: ChatTurn) -> Self {
        let ChatTurn { role, content } = turn;
        Self { role, content }
    }
}

impl From<ChatTurn> for v1::ChatTurn {
    fn from(turn: ChatTurn) -> Self {
        let role = match turn.role {
            Role::User => v1::ChatRole::User,
            Role::Assistant => v1::ChatRole::Assistant,
        };
        Self { role, content: turn.content }
    }
}

/// A moment that an answer cites.
#[derive(Clone, Debug, PartialEq, uniffi::Record)]
pub struct Citation {
    /// When it starts, in seconds.
    pub start: f64,
    /// When it ends, in seconds.
    pub end: f64,
    /// What is said there.
    pub text: String,
    /// The video's address at that moment.
    pub url: String,
}

/// An answer about a video.
#[derive(Clone, Debug, PartialEq, uniffi::Record)]
pub struct ChatAnswer {
    /// The video.
    pub video_id: String,
    /// The text, with a marker such as `[1:05]` for each citation.
    pub response: String,
    /// The moments that it cites.
    pub citations: Vec<Citation>,
    /// The share of the transcript's words that was looked at, from 0 to 1.
    pub coverage: f64,
    /// The credits that are left; none where nobody was charged.
    pub credits_remaining: Option<i64>,
}

impl From<v1::ChatCitation> for Citation {
    fn from(citation: v1::ChatCitation) -> Self {
        let v1::ChatCitation { start, end, text, url } = citation;
        Self { start, end, text, url }
    }
}

impl From<v1::ChatAnswer> for ChatAnswer {
    fn from(answer: v1::ChatAnswer) -> Self {
        Self {
            video_id: answer.video_id,
            response: answer.response,
            citations: answer.citations.into_iter().map(Into::into).collect(),
            coverage: answer.coverage,
            credits_remaining: Some(count(answer.credits.remaining)),
        }
    }
}

impl ChatAnswer {
    /// An answer that nobody was charged for.
    pub(crate) fn free(video_id: String, answer: Answer) -> Self {
        let citations = answer.citations.iter().map(|citation| v1::ChatCitation::from(citation).into());
        Self {
            video_id,
            response: answer.response,
            citations: citations.collect(),
            coverage: answer.coverage,
            credits_remaining: None,
        }
    }
}

/// A page on which something is paid.
#[derive(Clone, Debug, PartialEq, uniffi::Record)]
pub struct CreditsPage {
    /// Its address.
    pub checkout_url: String,
    /// The credits that it sells; none for a plan.
    pub credits: Option<i64>,
    /// Its price in US dollars; none for a plan.
    pub price_usd: Option<f64>,
}

unsaid!(ClientOptions, KeyCreated, Verified, Me);
