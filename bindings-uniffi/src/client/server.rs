//! A server, over the facade's typed client.

use std::path::PathBuf;

use transcript_core::{
    accounts::TranscriptAsk,
    lookup::SourceTag,
    video::Platform,
    wire::{
        lookup::KeyRequest,
        v1::{BuyCredits, ChatQuestion, Register, Subscribe},
    },
};
use verbatim::service::{
    Answered, IdempotencyKey, LookupRequest, ServiceClient, ServiceError, ServiceOptions, TextAnswer,
    TextFormat,
};

use super::{
    ChatAnswer, ChatTurn, ClientOptions, CreditsPage, KeyCreated, KeyStatus, Lookup, Me, NewKeyRequest,
    Purchase, TextLookup, Verified, bought,
};
use crate::{
    error::{VerbatimError, count},
    transcript::{Format, Transcript},
};

type Result<T> = std::result::Result<T, VerbatimError>;

/// A server and the key with which it is asked.
#[derive(Clone)]
pub(super) struct Server(ServiceClient);

fn name(given: Option<String>) -> Result<Option<IdempotencyKey>> {
    given.map(IdempotencyKey::new).transpose().map_err(|error: ServiceError| error.into())
}

fn request(link: String, src: Option<SourceTag>) -> LookupRequest {
    LookupRequest { src, ..LookupRequest::url(link) }
}

impl Server {
    pub(super) fn new(given: ClientOptions) -> Result<Self> {
        let plain = ServiceOptions::new(given.base_url);
        let options = ServiceOptions {
            api_key: given.key,
            ca_file: given.ca_file.map(PathBuf::from),
            timeout: given.timeout.unwrap_or(plain.timeout),
            retries: given.retries.unwrap_or(plain.retries),
            ..plain
        };
        Ok(Self(ServiceClient::new(&options)?))
    }

    pub(super) fn with_key(&self, key: &str) -> Result<Self> {
        Ok(Self(self.0.with_key(key)?))
    }

    pub(super) async fn look_up(self, link: String, src: Option<SourceTag>) -> Result<Lookup> {
        let mut answer = self.0.look_up(&request(link, src)).await?;
        let words = answer.take_transcript()?;
        let Answered { body, facts } = answer;
        Ok(Lookup {
            transcript: words.map(|words| Transcript::of(&words, body.from_cache, 0)),
            platform: Platform::from_wire(&body.platform),
            video_id: body.video_id,
            watch_url: body.watch_url,
            reason: body.failure_reason,
            sentence: body.failure_message,
            retry_after: facts.retry_after,
            key: body.key.map(Into::into),
        })
    }

    pub(super) async fn text(
        self,
        link: String,
        format: Format,
        src: Option<SourceTag>,
    ) -> Result<TextLookup> {
        let format = match format {
            Format::Text => TextFormat::Text,
            Format::Markdown => TextFormat::Markdown,
            Format::Srt => TextFormat::Srt,
            Format::WebVtt => TextFormat::WebVtt,
        };
        Ok(match self.0.look_up_text(&request(link, src), format).await?.body {
            TextAnswer::Text(text) => {
                TextLookup { text: Some(text), sentence: None, watch_url: None, is_allowance_spent: false }
            }
            TextAnswer::Missing { is_allowance_spent, message, watch_url } => TextLookup {
                text: None,
                sentence: Some(message),
                watch_url: Some(watch_url).filter(|url| !url.is_empty()),
                is_allowance_spent,
            },
        })
    }

    pub(super) async fn create_key(self, request: NewKeyRequest) -> Result<KeyCreated> {
        let NewKeyRequest { label, email, entitlement } = request;
        let made = self.0.create_key(&KeyRequest { label, email }, entitlement.as_deref()).await?.body;
        Ok(KeyCreated { key: made.key, status: made.status.into() })
    }

    pub(super) async fn key_status(self, entitlement: Option<String>) -> Result<KeyStatus> {
        Ok(self.0.key_status(entitlement.as_deref()).await?.body.into())
    }

    pub(super) async fn register(self, email: String) -> Result<String> {
        Ok(self.0.register(&Register { email }).await?.body.message)
    }

    pub(super) async fn verify(self, token: String, confirmed: bool) -> Result<Verified> {
        let verified = match confirmed {
            true => self.0.verify_confirmed(&token).await?,
            false => self.0.verify(&token).await?,
        };
        Ok(verified.body.into())
    }

    pub(super) async fn me(self) -> Result<Me> {
        Ok(self.0.me().await?.body.into())
    }

    pub(super) async fn rotate_key(self) -> Result<String> {
        Ok(self.0.rotate_key().await?.body.api_key)
    }

    pub(super) async fn transcript(
        self,
        link: String,
        lang: Option<String>,
        named: Option<String>,
    ) -> Result<Purchase> {
        let ask = TranscriptAsk { url: Some(link), lang, video_id: None };
        let Answered { body, facts } = self.0.transcript(&ask, name(named)?).await?;
        Ok(Purchase {
            transcript: bought(body, facts.is_cached.unwrap_or_default())?,
            credits_remaining: facts.credits_remaining.map(count),
            is_replayed: facts.is_replayed,
        })
    }

    pub(super) async fn chat(
        self,
        video_id: String,
        message: String,
        history: Vec<ChatTurn>,
        named: Option<String>,
    ) -> Result<ChatAnswer> {
        let history: Vec<_> = history.into_iter().map(Into::into).collect();
        let conversation_history = (!history.is_empty()).then_some(history);
        let question = ChatQuestion { video_id, message, conversation_history };
        Ok(self.0.chat(&question, name(named)?).await?.body.into())
    }

    pub(super) async fn subscribe(self, plan: String, named: Option<String>) -> Result<CreditsPage> {
        let page = self.0.subscribe(&Subscribe { plan }, name(named)?).await?.body;
        Ok(CreditsPage { checkout_url: page.checkout_url, credits: None, price_usd: None })
    }

    pub(super) async fn buy_credits(self, pack: String, named: Option<String>) -> Result<CreditsPage> {
        let page = self.0.buy_credits(&BuyCredits { pack }, name(named)?).await?.body;
        let (credits, price_usd) = (Some(count(page.credits)), Some(page.price_usd));
        Ok(CreditsPage { checkout_url: page.checkout_url, credits, price_usd })
    }
}
