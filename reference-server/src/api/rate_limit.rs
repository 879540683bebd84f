//! Headers `RateLimit` and `RateLimit-Policy` (draft-ietf-httpapi-ratelimit-headers).

use http::{HeaderName, HeaderValue};
use transcript_core::{accounts::RateLimitStatus, headers};

use super::header_name;

/// Remaining requests and seconds until the reset.
const RATE_LIMIT: HeaderName = header_name!(headers::RATE_LIMIT);
/// Limit and window.
const RATE_LIMIT_POLICY: HeaderName = header_name!(headers::RATE_LIMIT_POLICY);

/// Returns the headers of an account's rate limit.
pub(crate) fn rate_limit_headers(rate: &RateLimitStatus) -> impl Iterator<Item = (HeaderName, HeaderValue)> {
    let RateLimitStatus { name, limit, window_s, remaining, reset_s } = rate;
    let fields = [
        (RATE_LIMIT_POLICY, format!("\"{name}\";q={limit};w={window_s}")),
        (RATE_LIMIT, format!("\"{name}\";r={remaining};t={reset_s}")),
    ];
    // A quoted name and numbers are always a valid header.
    fields.into_iter().filter_map(|(name, text)| Some((name, HeaderValue::try_from(text).ok()?)))
}

#[cfg(test)]
mod tests {
    use http::HeaderMap;

    use super::*;

    #[test]
    fn rate_limit_fields_name_same_limit() {
        let rate = RateLimitStatus { name: "account", limit: 10, window_s: 60, remaining: 3, reset_s: 41 };
        let headers: HeaderMap = rate_limit_headers(&rate).collect();
        assert_eq!(headers[RATE_LIMIT_POLICY], "\"account\";q=10;w=60");
        assert_eq!(headers[RATE_LIMIT], "\"account\";r=3;t=41");
    }
}
