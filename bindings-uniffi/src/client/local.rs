//! The service in the process, with the calls of a server.

use std::sync::Arc;

use transcript_core::{
    Error, ErrorKind, Retry,
    accounts::{ChatParams, TranscriptParams, V1Error, VerifyOutcome},
    lookup::{
        AttributionTag, Availability, CreateKeyOutcome, CreateKeyRequest as CoreCreateKeyRequest,
        EntitlementProof, FailureReason, KeyOrigin, LookupRequest, VideoReference,
    },
    wire::{lookup, v1},
};
use verbatim::PurchaseAuth;

use super::{
    AccountInfo, ChatAnswer, ChatTurn, CheckoutSession, CreateKeyRequest, CreateKeyResponse, KeyStatus,
    LookupResponse, PurchasedTranscript, TextResponse, VerifyResponse, purchased_transcript,
};
use crate::{
    error::{Failure, VerbatimError, count},
    lazy_open::LazyVerbatim,
    transcript::{Transcript, TranscriptFormat, format_transcript},
};

/// The service in the process, with the key of the caller.
#[derive(Clone)]
pub(super) struct LocalBackend {
    pub(super) lazy: Arc<LazyVerbatim>,
    pub(super) key: Option<String>,
}

type Result<T> = std::result::Result<T, VerbatimError>;

impl LocalBackend {
    fn lookup_request(&self, link: String, src: Option<AttributionTag>) -> LookupRequest {
        let (reference, key) = (VideoReference::Url(link), self.key.clone());
        LookupRequest { reference, src, key, proof: None, client: None, default_only: false }
    }

    fn auth(&self, name: Option<String>) -> PurchaseAuth {
        PurchaseAuth { key: self.key.clone().unwrap_or_default(), name }
    }

    pub(super) async fn look_up(self, link: String, src: Option<AttributionTag>) -> Result<LookupResponse> {
        let found = self.lazy.open().await?.lookup().look_up(self.lookup_request(link, src)).await?;
        let mut response = LookupResponse {
            transcript: None,
            platform: Some(found.platform),
            video_id: found.video_id,
            watch_url: found.watch_url,
            reason: None,
            message: None,
            retry_after: None,
            key: found.key.as_ref().map(|usage| lookup::KeyObject::from(usage).into()),
        };
        match found.availability {
            Availability::Available { stored, from_cache } => {
                response.transcript =
                    Some(Transcript::from_core(&stored.transcript, from_cache, stored.revision));
            }
            Availability::Unavailable { reason, message, retry_after, .. } => {
                response.reason = Some(reason.as_str().to_owned());
                response.message = Some(message);
                response.retry_after = retry_after;
            }
        }
        Ok(response)
    }

    pub(super) async fn text(
        self,
        link: String,
        format: TranscriptFormat,
        src: Option<AttributionTag>,
    ) -> Result<TextResponse> {
        let found = self.lazy.open().await?.lookup().look_up(self.lookup_request(link, src)).await?;
        Ok(match found.availability {
            Availability::Available { stored, .. } => TextResponse {
                text: Some(format_transcript(&stored.transcript, format)),
                message: None,
                watch_url: None,
                is_allowance_spent: false,
            },
            Availability::Unavailable { reason, message, .. } => TextResponse {
                text: None,
                message: Some(message),
                watch_url: Some(found.watch_url),
                is_allowance_spent: reason == FailureReason::KeyAllowance,
            },
        })
    }

    pub(super) async fn create_key(self, request: CreateKeyRequest) -> Result<CreateKeyResponse> {
        let CreateKeyRequest { label, email, entitlement } = request;
        let proof = entitlement.map(EntitlementProof::new);
        let request = CoreCreateKeyRequest { label, email, proof, origin: KeyOrigin::Operator };
        let rate_limited = |message: String, after_ms: u64| {
            V1Error::RateLimited { message, retry_after_s: after_ms.div_ceil(1_000), rate: None }.into()
        };
        match self.lazy.open().await?.lookup().create_key(request).await? {
            CreateKeyOutcome::Created(created) => {
                let lookup::CreateKeyResponse { key, status } = lookup::CreateKeyResponse::from(&created);
                Ok(CreateKeyResponse { key, status: status.into() })
            }
            CreateKeyOutcome::Invalid(error) => {
                Err(Failure::invalid_input(format!("{}: {}", error.field, error.message)))
            }
            CreateKeyOutcome::SubjectFull { limit, retry_after_ms } => {
                let message = format!("This plan already has {limit} live keys.");
                Err(rate_limited(message, retry_after_ms.unwrap_or_default()))
            }
            CreateKeyOutcome::Limited { retry_after_ms } => {
                Err(rate_limited("Too many keys were created.".to_owned(), retry_after_ms))
            }
        }
    }

    pub(super) async fn key_status(self, entitlement: Option<String>) -> Result<KeyStatus> {
        let (key, proof) = (self.key.clone().unwrap_or_default(), entitlement.map(EntitlementProof::new));
        match self.lazy.open().await?.lookup().key_status(&key, proof.as_ref()).await? {
            Some(status) => Ok(lookup::KeyStatus::from(&status).into()),
            None => Err(V1Error::Unauthorized("This key is unknown.".to_owned()).into()),
        }
    }

    pub(super) async fn register(self, email: String) -> Result<String> {
        self.lazy.open().await?.accounts().register(&email, None).await?;
        Ok("A verification mail will be sent.".to_owned())
    }

    pub(super) async fn verify(self, token: String, confirmed: bool) -> Result<VerifyResponse> {
        match self.lazy.open().await?.accounts().verify(&token, confirmed, None).await? {
            VerifyOutcome::Issued(key) => Ok(v1::VerifyResponse::from(&key).into()),
            VerifyOutcome::NeedsConfirmation => {
                let message = "The account already has a key, which a new one replaces: set `confirmed`.";
                Err(V1Error::Conflict(message.to_owned()).into())
            }
        }
    }

    pub(super) async fn me(self) -> Result<AccountInfo> {
        let key = self.key.clone().unwrap_or_default();
        Ok(self.lazy.open().await?.account(key).await?.into())
    }

    pub(super) async fn rotate_key(self) -> Result<String> {
        let key = self.key.clone().unwrap_or_default();
        Ok(self.lazy.open().await?.rotate_key(key).await?.api_key)
    }

    pub(super) async fn transcript(
        self,
        link: String,
        lang: Option<String>,
        idempotency_key: Option<String>,
    ) -> Result<PurchasedTranscript> {
        let params = TranscriptParams { url: Some(link), lang, video_id: None };
        let purchased = self.lazy.open().await?.buy_transcript(self.auth(idempotency_key), params).await?;
        let charge = purchased.charge;
        Ok(PurchasedTranscript {
            transcript: purchased_transcript(purchased.body, charge.from_cache.unwrap_or_default())?,
            credits_remaining: charge.credits_remaining.map(count),
            is_replayed: charge.is_replayed,
        })
    }

    pub(super) async fn chat(
        self,
        video_id: String,
        message: String,
        history: Vec<ChatTurn>,
        idempotency_key: Option<String>,
    ) -> Result<ChatAnswer> {
        let history = history.into_iter().map(Into::into).collect();
        let params = ChatParams { video_id, message, history };
        Ok(self.lazy.open().await?.buy_answer(self.auth(idempotency_key), params).await?.body.into())
    }

    pub(super) async fn subscribe(self, _: String, _: Option<String>) -> Result<CheckoutSession> {
        payments_unsupported()
    }

    pub(super) async fn buy_credits(self, _: String, _: Option<String>) -> Result<CheckoutSession> {
        payments_unsupported()
    }
}

/// The error for payments: only a server has payment pages.
fn payments_unsupported() -> Result<CheckoutSession> {
    let message = "the service in the process sells nothing: use a server";
    Err(Error::new(ErrorKind::Unsupported, Retry::Never, message).into())
}
