//! Metadata in the headers of a response.

use http::{HeaderMap, header};
use transcript_core::{
    headers::{
        IDEMPOTENT_REPLAYED, RATE_LIMIT, RATE_LIMIT_POLICY, X_CACHE, X_CREDITS_REMAINING, X_FAILURE_DETAIL,
        X_IS_GENERATED, X_REQUEST_ID,
    },
    service::ResponseMeta,
    transcript::LanguageTag,
};

use super::rate::parse_rate_limit;
use crate::http::parse_retry_after;

/// Maximum length of a request id in bytes; a longer one is dropped.
const ID_MAX: usize = 200;
/// Maximum length of a failure detail in bytes; a longer one is dropped.
const DETAIL_MAX: usize = 32;

/// Reads the metadata of a response.
pub(super) fn from_headers(headers: &HeaderMap) -> ResponseMeta {
    let text = |name: &str| headers.get(name)?.to_str().ok().map(str::trim);
    let is = |name: &str, known: &str| text(name).is_some_and(|text| text.eq_ignore_ascii_case(known));
    ResponseMeta {
        request_id: text(X_REQUEST_ID).filter(|id| !id.is_empty() && id.len() <= ID_MAX).map(str::to_owned),
        credits_remaining: text(X_CREDITS_REMAINING).and_then(|text| text.parse().ok()),
        credits_charged: None,
        is_cached: text(X_CACHE).and_then(|_| match (is(X_CACHE, "hit"), is(X_CACHE, "miss")) {
            (true, _) => Some(true),
            (_, true) => Some(false),
            _ => None,
        }),
        rate: parse_rate_limit(text(RATE_LIMIT), text(RATE_LIMIT_POLICY)),
        retry_after: parse_retry_after(headers),
        is_replayed: is(IDEMPOTENT_REPLAYED, "true"),
        language: text(header::CONTENT_LANGUAGE.as_str()).and_then(|tag| LanguageTag::parse(tag).ok()),
        is_generated: text(X_IS_GENERATED).and_then(|text| text.parse().ok()),
        failure_detail: text(X_FAILURE_DETAIL).filter(|text| is_detail(text)).map(str::to_owned),
    }
}

fn is_detail(text: &str) -> bool {
    let plain = |byte: u8| byte.is_ascii_lowercase() || byte == b'_';
    (1..=DETAIL_MAX).contains(&text.len()) && text.bytes().all(plain)
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    #[test]
    fn response_meta_invalid_headers_are_none() {
        let mut headers = HeaderMap::new();
        for (name, value) in [
            ("x-request-id", "req-1"),
            ("x-credits-remaining", "199"),
            ("x-cache", "HIT"),
            ("idempotent-replayed", "true"),
            ("content-language", "pt-BR"),
            ("x-is-generated", "false"),
            ("x-failure-detail", "still_working"),
            ("retry-after", "3"),
        ] {
            headers.insert(name, value.parse().unwrap());
        }
        let meta = from_headers(&headers);
        assert_eq!(meta.request_id.as_deref(), Some("req-1"));
        assert_eq!((meta.credits_remaining, meta.is_cached, meta.is_replayed), (Some(199), Some(true), true));
        assert_eq!(meta.language.as_ref().map(LanguageTag::as_str), Some("pt-BR"));
        assert_eq!((meta.is_generated, meta.retry_after), (Some(false), Some(Duration::from_secs(3))));
        assert_eq!(meta.failure_detail.as_deref(), Some("still_working"));
        for name in headers.clone().keys() {
            headers.insert(name, "-1 /x".parse().unwrap());
        }
        headers.insert("x-request-id", "x".repeat(ID_MAX + 1).parse().unwrap());
        assert_eq!(from_headers(&headers), ResponseMeta::default());
    }
}
