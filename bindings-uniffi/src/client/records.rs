//! Requests and responses of the client.
//!
//! Counts are signed; times are seconds or ISO 8601, as on the wire.

#[cfg(feature = "service")]
use std::path::PathBuf;
use std::{sync::Arc, time::Duration};

use transcript_core::{
    archive::StoredTranscript,
    service::unarchived,
    transcript::TrackInfo,
    video::Platform,
    wire::{lookup, v1},
};
#[cfg(feature = "service")]
use verbatim::service::ServiceOptions;
use verbatim::service::{self, LookupReply, ServiceReply, v1_transcript};

use crate::{
    chat::{ChatAnswer, Citation},
    error::count,
    transcript::Transcript,
};

/// Address of a server, with the API key.
#[derive(Clone, uniffi::Record)]
#[uniffi::export(Debug)]
pub struct ClientOptions {
    /// Address of the server, to which `/api/…` is appended.
    pub base_url: String,
    /// API key: `vbk_…` for the lookup API, `vba_…` for the v1 API.
    #[uniffi(default = None)]
    pub key: Option<String>,
    /// Timeout of one attempt; `None`: 60 s.
    #[uniffi(default = None)]
    pub timeout: Option<Duration>,
    /// Retries of a request after a transient failure, if a retry is safe; `None`: 2.
    ///
    /// While the server works on a charged call whose response was lost, the client waits up to 2 minutes more.
    #[uniffi(default = None)]
    pub retries: Option<u32>,
    /// PEM file with root certificates that are trusted in addition to the system's.
    #[uniffi(default = None)]
    pub ca_file: Option<String>,
}

#[cfg(feature = "service")]
impl ClientOptions {
    /// Options of the client without its key.
    pub(super) fn service_options(&self) -> ServiceOptions {
        let defaults = ServiceOptions::new(&self.base_url);
        ServiceOptions {
            ca_file: self.ca_file.as_ref().map(PathBuf::from),
            timeout: self.timeout.unwrap_or(defaults.timeout),
            retries: self.retries.unwrap_or(defaults.retries),
            ..defaults
        }
    }
}

/// Usage of a key's allowance.
#[derive(Clone, Debug, PartialEq, Eq, uniffi::Record)]
pub struct KeyUsage {
    /// `free`, `plus` or `plus_inactive`.
    pub plan: String,
    /// `month` or `day`.
    pub period: String,
    /// Spent and held.
    pub used: i64,
    /// Allowance of the period.
    pub allowance: i64,
    /// Transcripts left.
    pub remaining: i64,
}

impl From<lookup::KeyObject> for KeyUsage {
    fn from(key: lookup::KeyObject) -> Self {
        let (used, allowance, remaining) = (count(key.used), count(key.allowance), count(key.remaining));
        Self { plan: key.plan, period: key.period, used, allowance, remaining }
    }
}

/// Response of a lookup.
#[derive(Clone, Debug, PartialEq, uniffi::Record)]
pub struct LookupResponse {
    /// The transcript; `None` if it is not available.
    pub transcript: Option<Transcript>,
    /// Platform of the video.
    pub platform: Option<Platform>,
    /// The video's id on its platform; for an unresolved short link, its code.
    pub video_id: String,
    /// The watch page of the video.
    pub watch_url: String,
    /// Why there is no transcript, as on the wire: `needs_verification`, `no_captions`, …
    pub reason: Option<String>,
    /// Why there is no transcript, in one sentence for people.
    pub message: Option<String>,
    /// Time after which a retry may succeed.
    pub retry_after: Option<Duration>,
    /// The tracks of a video without a transcript in the requested language, as far as known.
    pub languages: Vec<TrackInfo>,
    /// Usage of the caller's key; `None` without a known key.
    pub key: Option<KeyUsage>,
}

impl From<ServiceReply<LookupReply>> for LookupResponse {
    fn from(reply: ServiceReply<LookupReply>) -> Self {
        let ServiceReply { body, meta } = reply;
        let platform = body.platform();
        let LookupReply { result, transcript } = body;
        let languages = if transcript.is_none() { result.details().tracks } else { Vec::new() };
        let transcript = transcript.map(|stored| Transcript::from_stored(&stored, result.from_cache));
        Self {
            transcript,
            platform,
            video_id: result.video_id,
            watch_url: result.watch_url,
            reason: result.failure_reason,
            message: result.failure_message,
            retry_after: meta.retry_after,
            languages,
            key: result.key.map(Into::into),
        }
    }
}

/// A transcript as text, or why there is none.
#[derive(Clone, Debug, PartialEq, Eq, uniffi::Record)]
pub struct TextResponse {
    /// The transcript.
    pub text: Option<String>,
    /// Why there is none, in one sentence for people.
    pub message: Option<String>,
    /// The watch page of the video.
    pub watch_url: Option<String>,
    /// Whether the key's allowance is spent.
    pub is_allowance_spent: bool,
    /// Why there is none: the detail of the failure reason, such as `private`, or a reason without detail.
    ///
    /// `None` from a server for a call without a key.
    #[uniffi(default = None)]
    pub reason: Option<String>,
    /// Time after which a retry may succeed.
    #[uniffi(default = None)]
    pub retry_after: Option<Duration>,
}

impl From<ServiceReply<service::TextResponse>> for TextResponse {
    fn from(reply: ServiceReply<service::TextResponse>) -> Self {
        let ServiceReply { body, meta } = reply;
        match body {
            service::TextResponse::Text(text) => Self {
                text: Some(text),
                message: None,
                watch_url: None,
                is_allowance_spent: false,
                reason: None,
                retry_after: None,
            },
            service::TextResponse::Missing { is_allowance_spent, message, watch_url } => Self {
                text: None,
                message: Some(message),
                watch_url: Some(watch_url).filter(|url| !url.is_empty()),
                is_allowance_spent,
                reason: meta.failure_detail,
                retry_after: meta.retry_after,
            },
        }
    }
}

/// Properties of a new key.
#[derive(Clone, Debug, Default, PartialEq, Eq, uniffi::Record)]
pub struct CreateKeyRequest {
    /// Label for the owner.
    #[uniffi(default = None)]
    pub label: Option<String>,
    /// Email address of the owner.
    #[uniffi(default = None)]
    pub email: Option<String>,
    /// Proof of a paid plan.
    #[uniffi(default = None)]
    pub entitlement: Option<String>,
}

/// A key of the lookup API, with its usage.
#[derive(Clone, Debug, PartialEq, Eq, uniffi::Record)]
pub struct KeyStatus {
    /// Id of the key.
    pub id: String,
    /// Label for the owner.
    pub label: Option<String>,
    /// Usage of the allowance.
    pub usage: KeyUsage,
    /// End of the period, in ISO 8601.
    pub resets_at: String,
    /// Time of creation, in ISO 8601.
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
#[uniffi::export(Debug)]
pub struct CreateKeyResponse {
    /// The key in plain text: `vbk_…`.
    pub key: String,
    /// Status of the key.
    pub status: KeyStatus,
}

impl From<lookup::CreateKeyResponse> for CreateKeyResponse {
    fn from(created: lookup::CreateKeyResponse) -> Self {
        Self { key: created.key, status: created.status.into() }
    }
}

/// The key of a verified account.
#[derive(Clone, uniffi::Record)]
#[uniffi::export(Debug)]
pub struct VerifyResponse {
    /// The key in plain text: `vba_…`.
    pub key: String,
    /// Credits left.
    pub credits: i64,
    /// Plan of the account.
    pub plan: String,
    /// Message for the owner.
    pub notice: Option<String>,
}

impl From<v1::VerifyResponse> for VerifyResponse {
    fn from(verified: v1::VerifyResponse) -> Self {
        let v1::VerifyResponse { api_key, credits, plan, notice, .. } = verified;
        Self { key: api_key, credits: count(credits), plan, notice }
    }
}

/// An account.
#[derive(Clone, PartialEq, Eq, uniffi::Record)]
pub struct AccountInfo {
    /// Email address of the owner.
    pub email: String,
    /// Plan of the account.
    pub plan: String,
    /// Credits left.
    pub credits_remaining: i64,
    /// Credits of the month plus purchased credits.
    pub credits_total: i64,
    /// End of the month, in ISO 8601.
    pub resets_at: String,
}

impl From<v1::AccountInfo> for AccountInfo {
    fn from(info: v1::AccountInfo) -> Self {
        Self {
            email: info.email,
            plan: info.plan,
            credits_remaining: count(info.credits_remaining),
            credits_total: count(info.credits_total),
            resets_at: info.resets_at,
        }
    }
}

/// A purchased transcript.
#[derive(Clone, Debug, PartialEq, uniffi::Record)]
pub struct PurchasedTranscript {
    /// The transcript.
    pub transcript: Transcript,
    /// Credits left, if known.
    pub credits_remaining: Option<i64>,
    /// Whether this is the stored response of an earlier request, which is not charged again.
    pub is_replayed: bool,
}

impl From<ServiceReply<StoredTranscript>> for PurchasedTranscript {
    fn from(reply: ServiceReply<StoredTranscript>) -> Self {
        let ServiceReply { body, meta } = reply;
        let details = Arc::clone(&body.details);
        let stored = StoredTranscript { details, ..unarchived(v1_transcript(body)) };
        Self {
            transcript: Transcript::from_stored(&stored, meta.is_cached.unwrap_or_default()),
            credits_remaining: meta.credits_remaining.map(count),
            is_replayed: meta.is_replayed,
        }
    }
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

/// A hosted payment page.
#[derive(Clone, Debug, PartialEq, uniffi::Record)]
pub struct CheckoutSession {
    /// URL of the page.
    pub checkout_url: String,
    /// Credits for sale; `None` for a plan.
    pub credits: Option<i64>,
    /// Price in US dollars; `None` for a plan.
    pub price_usd: Option<f64>,
}

impl From<v1::PlanCheckout> for CheckoutSession {
    fn from(session: v1::PlanCheckout) -> Self {
        Self { checkout_url: session.checkout_url, credits: None, price_usd: None }
    }
}

impl From<v1::CreditsCheckout> for CheckoutSession {
    fn from(session: v1::CreditsCheckout) -> Self {
        let (credits, price_usd) = (Some(count(session.credits)), Some(session.price_usd));
        Self { checkout_url: session.checkout_url, credits, price_usd }
    }
}

transcript_core::debug_fields!(ClientOptions {});
transcript_core::debug_fields!(CreateKeyResponse {});
transcript_core::debug_fields!(VerifyResponse {});
transcript_core::debug_fields!(AccountInfo {});
