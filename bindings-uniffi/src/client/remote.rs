//! A server, through the facade's typed client.

use std::path::PathBuf;

use transcript_core::{
    accounts::TranscriptParams,
    lookup::AttributionTag,
    video::Platform,
    wire::{
        lookup::KeyRequest,
        v1::{BuyCreditsRequest, ChatQuestion, RegisterRequest, SubscribeRequest},
    },
};
use verbatim::service::{
    self, IdempotencyKey, ServiceClient, ServiceError, ServiceLookup, ServiceOptions, ServiceReply,
    TextFormat,
};

use super::{
    AccountInfo, ChatAnswer, ChatTurn, CheckoutSession, ClientOptions, CreateKeyRequest, CreateKeyResponse,
    KeyStatus, LookupResponse, PurchasedTranscript, TextResponse, VerifyResponse, purchased_transcript,
};
use crate::{
    error::{VerbatimError, count},
    transcript::{Transcript, TranscriptFormat},
};

type Result<T> = std::result::Result<T, VerbatimError>;

/// A server, with the key of the caller.
#[derive(Clone)]
pub(super) struct RemoteBackend(ServiceClient);

fn parse_idempotency_key(key: Option<String>) -> Result<Option<IdempotencyKey>> {
    key.map(IdempotencyKey::new).transpose().map_err(|error: ServiceError| error.into())
}

fn service_lookup(link: String, src: Option<AttributionTag>) -> ServiceLookup {
    ServiceLookup { src, ..ServiceLookup::url(link) }
}

impl RemoteBackend {
    pub(super) fn new(given: ClientOptions) -> Result<Self> {
        let defaults = ServiceOptions::new(given.base_url);
        let options = ServiceOptions {
            api_key: given.key,
            ca_file: given.ca_file.map(PathBuf::from),
            timeout: given.timeout.unwrap_or(defaults.timeout),
            retries: given.retries.unwrap_or(defaults.retries),
            ..defaults
        };
        Ok(Self(ServiceClient::new(&options)?))
    }

    pub(super) fn with_key(&self, key: &str) -> Result<Self> {
        Ok(Self(self.0.with_key(key)?))
    }

    pub(super) async fn look_up(self, link: String, src: Option<AttributionTag>) -> Result<LookupResponse> {
        let mut reply = self.0.look_up(&service_lookup(link, src)).await?;
        let transcript = reply.take_transcript()?;
        let ServiceReply { body, meta } = reply;
        Ok(LookupResponse {
            transcript: transcript.map(|transcript| Transcript::from_core(&transcript, body.from_cache, 0)),
            platform: Platform::from_wire(&body.platform),
            video_id: body.video_id,
            watch_url: body.watch_url,
            reason: body.failure_reason,
            message: body.failure_message,
            retry_after: meta.retry_after,
            key: body.key.map(Into::into),
        })
    }

    pub(super) async fn text(
        self,
        link: String,
        format: TranscriptFormat,
        src: Option<AttributionTag>,
    ) -> Result<TextResponse> {
        let format = match format {
            TranscriptFormat::Text => TextFormat::Text,
            TranscriptFormat::Markdown => TextFormat::Markdown,
            TranscriptFormat::Srt => TextFormat::Srt,
            TranscriptFormat::WebVtt => TextFormat::WebVtt,
        };
        Ok(match self.0.look_up_text(&service_lookup(link, src), format).await?.body {
            service::TextResponse::Text(text) => {
                TextResponse { text: Some(text), message: None, watch_url: None, is_allowance_spent: false }
            }
            service::TextResponse::Missing { is_allowance_spent, message, watch_url } => TextResponse {
                text: None,
                message: Some(message),
                watch_url: Some(watch_url).filter(|url| !url.is_empty()),
                is_allowance_spent,
            },
        })
    }

    pub(super) async fn create_key(self, request: CreateKeyRequest) -> Result<CreateKeyResponse> {
        let CreateKeyRequest { label, email, entitlement } = request;
        let created = self.0.create_key(&KeyRequest { label, email }, entitlement.as_deref()).await?.body;
        Ok(CreateKeyResponse { key: created.key, status: created.status.into() })
    }

    pub(super) async fn key_status(self, entitlement: Option<String>) -> Result<KeyStatus> {
        Ok(self.0.key_status(entitlement.as_deref()).await?.body.into())
    }

    pub(super) async fn register(self, email: String) -> Result<String> {
        Ok(self.0.register(&RegisterRequest { email }).await?.body.message)
    }

    pub(super) async fn verify(self, token: String, confirmed: bool) -> Result<VerifyResponse> {
        let verified = match confirmed {
            true => self.0.verify_confirmed(&token).await?,
            false => self.0.verify(&token).await?,
        };
        Ok(verified.body.into())
    }

    pub(super) async fn me(self) -> Result<AccountInfo> {
        Ok(self.0.me().await?.body.into())
    }

    pub(super) async fn rotate_key(self) -> Result<String> {
        Ok(self.0.rotate_key().await?.body.api_key)
    }

    pub(super) async fn transcript(
        self,
        link: String,
        lang: Option<String>,
        idempotency_key: Option<String>,
    ) -> Result<PurchasedTranscript> {
        let params = TranscriptParams { url: Some(link), lang, video_id: None };
        let reply = self.0.transcript(&params, parse_idempotency_key(idempotency_key)?).await?;
        let ServiceReply { body, meta } = reply;
        Ok(PurchasedTranscript {
            transcript: purchased_transcript(body, meta.is_cached.unwrap_or_default())?,
            credits_remaining: meta.credits_remaining.map(count),
            is_replayed: meta.is_replayed,
        })
    }

    pub(super) async fn chat(
        self,
        video_id: String,
        message: String,
        history: Vec<ChatTurn>,
        idempotency_key: Option<String>,
    ) -> Result<ChatAnswer> {
        let history: Vec<_> = history.into_iter().map(Into::into).collect();
        let conversation_history = (!history.is_empty()).then_some(history);
        let question = ChatQuestion { video_id, message, conversation_history };
        Ok(self.0.chat(&question, parse_idempotency_key(idempotency_key)?).await?.body.into())
    }

    pub(super) async fn subscribe(
        self,
        plan: String,
        idempotency_key: Option<String>,
    ) -> Result<CheckoutSession> {
        let request = SubscribeRequest { plan };
        let session = self.0.subscribe(&request, parse_idempotency_key(idempotency_key)?).await?.body;
        Ok(CheckoutSession { checkout_url: session.checkout_url, credits: None, price_usd: None })
    }

    pub(super) async fn buy_credits(
        self,
        pack: String,
        idempotency_key: Option<String>,
    ) -> Result<CheckoutSession> {
        let request = BuyCreditsRequest { pack };
        let session = self.0.buy_credits(&request, parse_idempotency_key(idempotency_key)?).await?.body;
        let (credits, price_usd) = (Some(count(session.credits)), Some(session.price_usd));
        Ok(CheckoutSession { checkout_url: session.checkout_url, credits, price_usd })
    }
}
