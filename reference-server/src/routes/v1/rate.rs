//! The fields `RateLimit` and `RateLimit-Policy` (draft-ietf-httpapi-ratelimit-headers).

use http::{HeaderName, HeaderValue};
use transcript_core::accounts::RateState;

/// What is left of the limit, and until when.
pub(crate) const RATE_LIMIT: HeaderName = HeaderName::from_static("ratelimit");
/// What the limit is.
pub(crate) const RATE_LIMIT_POLICY: HeaderName = HeaderName::from_static("ratelimit-policy");

/// How an account stands with its limit.
pub(crate) fn fields(rate: &RateState) -> impl Iterator<Item = (HeaderName, HeaderValue)> {
    let RateState { name, limit, window_s, remaining, reset_s } = rate;
    let fields = [
        (RATE_LIMIT_POLICY, format!("\"{name}\";q={limit};w={window_s}")),
        (RATE_LIMIT, format!("\"{name}\";r={remaining};t={reset_s}")),
    ];
    // A name in quotes and numbers are always a valid header.
    fields.into_iter().filter_map(|(name, text)| Some((name, HeaderValue::try_from(text).ok()?)))
}

#[cfg(test)]
mod tests {
    use http::HeaderMap;

    use super::*;

    #[test]
    fn both_fields_name_the_same_limit() {
        let rate = RateState { name: "account", limit: 10, window_s: 60, remaining: 3, reset_s: 41 };
        let headers: HeaderMap = fields(&rate).collect();
        assert_eq!(headers[RATE_LIMIT_POLICY], "\"account\";q=10;w=60");
        assert_eq!(headers[RATE_LIMIT], "\"account\";r=3;t=41");
    }
}
