//! Requests in several languages, in order of preference.

use sha2::{Digest, Sha256};
use transcript_core::{
    accounts::TranscriptParams,
    archive::{StoredTranscript, view::TranscriptView},
    engine::FailureReason,
    hex,
    supplier::SupplyReason,
    transcript::LanguageTag,
};

use super::{
    Caller, LookupReply, Service, ServiceError, ServiceErrorKind, ServiceLookup, ServiceReply, ServiceResult,
    TextFormat, TextResponse,
};

/// Requests one language after another until a reply is final; without languages the default.
///
/// The reply to the last language always is.
async fn in_order<L, T, F>(
    languages: Vec<L>,
    request: impl Fn(Option<L>) -> F,
    is_final: impl Fn(&ServiceResult<T>) -> bool,
) -> ServiceResult<T>
where
    F: Future<Output = ServiceResult<T>>,
{
    let mut languages = languages.into_iter().peekable();
    loop {
        let reply = request(languages.next()).await;
        if is_final(&reply) || languages.peek().is_none() {
            return reply;
        }
    }
}

/// Sends a request, and once more if its key was refused and has been replaced since.
///
/// The retries of a [`Service`] keep the key of their first request, which is invalid after a rotation. A refused
/// request is charged nothing, unless the outcome of an earlier attempt is unknown.
async fn send<T, F>(caller: impl Fn() -> Caller, request: impl Fn(Caller) -> F) -> ServiceResult<T>
where
    F: Future<Output = ServiceResult<T>>,
{
    let first = caller();
    let key = first.key.clone();
    let reply = request(first).await;
    let is_refused = |error: &ServiceError| {
        error.kind == ServiceErrorKind::Unauthorized && error.idempotency_key.is_none()
    };
    if reply.as_ref().is_err_and(is_refused) {
        let current = caller();
        if current.key != key {
            return request(current).await;
        }
    }
    reply
}

/// Buys one language after another while the response is a 404 that charges nothing.
///
/// Without languages it buys the English transcript. `caller` is called for each request, with its language. A 404 of a
/// call whose outcome is unknown is the reply: the language may have been charged. So is a 404 that is not about the
/// language, such as that of a private video.
///
/// # Errors
/// As [`Service::transcript`].
pub async fn buy_in_order(
    service: &dyn Service,
    caller: impl Fn(Option<String>) -> Caller + Send + Sync,
    link: String,
    languages: Vec<String>,
) -> ServiceResult<StoredTranscript> {
    let view = TranscriptView { words: true, description: true, ..TranscriptView::default() };
    let params = TranscriptParams { url: Some(link), view, ..TranscriptParams::default() };
    let (caller, params) = (&caller, &params);
    let request = |lang: Option<String>| async move {
        let params = TranscriptParams { lang: lang.clone(), ..params.clone() };
        let request = |caller: Caller| {
            let params = params.clone();
            async move { service.transcript(&caller, params).await }
        };
        send(|| caller(lang.clone()), request).await
    };
    let is_missing = |error: &ServiceError| {
        error.kind == ServiceErrorKind::NotFound
            && error.idempotency_key.is_none()
            && error.meta.failure_detail.as_deref().is_none_or(is_about_language)
    };
    in_order(languages, request, |reply| !reply.as_ref().is_err_and(is_missing)).await
}

/// The idempotency key of a link in a language, from that of a batch.
///
/// A server refuses one key for different requests.
pub fn derive_idempotency_key(batch_key: &str, link: &str, language: Option<&str>) -> String {
    let language = language.unwrap_or_default();
    hex::encode(&Sha256::digest(format!("{batch_key}\n{link}\n{language}")))
}

/// Looks up one language after another until there is a transcript.
///
/// Without languages it looks up the default track. `caller` is called for each request. A failure that is not about
/// the language, such as that of a private video, is the reply: another language would fail for the same reason, and
/// be another attempt.
///
/// # Errors
/// As [`Service::look_up`].
pub async fn look_up_in_order(
    service: &dyn Service,
    caller: impl Fn() -> Caller + Send + Sync,
    lookup: ServiceLookup,
    languages: Vec<LanguageTag>,
) -> ServiceResult<LookupReply> {
    let (caller, lookup) = (&caller, &lookup);
    let request = |language: Option<LanguageTag>| async move {
        let lookup = ServiceLookup { language, ..lookup.clone() };
        let request = |caller: Caller| {
            let lookup = lookup.clone();
            async move { service.look_up(&caller, lookup).await }
        };
        send(caller, request).await
    };
    let is_final = |reply: &ServiceReply<LookupReply>| {
        let reason = reply.body.result.failure_reason.as_deref();
        let detail = reply.meta.failure_detail.as_deref().or(reason);
        reply.body.transcript.is_some() || !detail.is_some_and(is_about_language)
    };
    in_order(languages, request, |reply| reply.as_ref().map_or(true, is_final)).await
}

/// As [`look_up_in_order`], as text.
///
/// The response to a caller without a key has neither a detail nor a reason, and is free.
///
/// # Errors
/// As [`Service::text`].
pub async fn fetch_text_in_order(
    service: &dyn Service,
    caller: impl Fn() -> Caller + Send + Sync,
    lookup: ServiceLookup,
    format: TextFormat,
    languages: Vec<LanguageTag>,
) -> ServiceResult<TextResponse> {
    let (caller, lookup) = (&caller, &lookup);
    let request = |language: Option<LanguageTag>| async move {
        let lookup = ServiceLookup { language, ..lookup.clone() };
        let request = |caller: Caller| {
            let lookup = lookup.clone();
            async move { service.text(&caller, lookup, format).await }
        };
        send(caller, request).await
    };
    let is_missing = |reply: &ServiceReply<TextResponse>| {
        matches!(reply.body, TextResponse::Missing { is_allowance_spent: false, .. })
            && reply.meta.failure_detail.as_deref().is_none_or(is_about_language)
    };
    in_order(languages, request, |reply| !reply.as_ref().is_ok_and(is_missing)).await
}

/// Whether there may be a transcript in another language, after this failure detail, or this reason without a detail.
///
/// After `no_captions`, a transcript that was imported may be archived. An unknown detail ends the search: a text
/// response has no reason next to it, and the next request may be charged.
fn is_about_language(detail: &str) -> bool {
    let reason = FailureReason::from_wire(detail);
    detail == SupplyReason::NoLanguage(Vec::new()).as_str()
        || matches!(reason, Some(FailureReason::NoCaptions | FailureReason::NeedsVerification))
}

#[cfg(test)]
mod tests;
