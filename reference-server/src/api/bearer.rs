//! Bearer credential, proof of a paid plan and idempotency key, from the request headers.

use http::{HeaderMap, HeaderName, HeaderValue, header::AUTHORIZATION};
use transcript_core::{headers, lookup::EntitlementProof};

use super::header_name;

/// Header with a proof of a paid plan (specification 5).
const ENTITLEMENT: HeaderName = header_name!(headers::X_VERBATIM_ENTITLEMENT);
pub(crate) const IDEMPOTENCY_KEY: HeaderName = header_name!(headers::IDEMPOTENCY_KEY);

/// Challenge for a credential that is not accepted (RFC 6750).
pub(crate) const INVALID_TOKEN: &str = "Bearer realm=\"verbatim\", error=\"invalid_token\"";
/// Challenge for a request without credentials.
pub(crate) const TOKEN_NEEDED: &str = "Bearer realm=\"verbatim\"";

/// Returns the bearer credential if the request has an Authorization header.
///
/// A header of another scheme, and two headers with different values, give an empty text, which is no valid key. So
/// the caller gets an error instead of anonymous access.
pub(crate) fn bearer(headers: &HeaderMap) -> Option<String> {
    let Some(text) = single(headers, &AUTHORIZATION)? else { return Some(String::new()) };
    let (scheme, credential) = text.trim().split_once([' ', '\t']).unwrap_or((text, ""));
    if scheme.eq_ignore_ascii_case("bearer") {
        Some(credential.trim().to_owned())
    } else {
        Some(String::new())
    }
}

/// Returns the proof of a paid plan, if sent. Two headers with different values are ignored.
pub(crate) fn proof(headers: &HeaderMap) -> Option<EntitlementProof> {
    let text = single(headers, &ENTITLEMENT)??.trim();
    (!text.is_empty()).then(|| EntitlementProof::new(text))
}

/// Returns the idempotency key, if sent.
///
/// An unreadable value, and two headers with different values, give an empty text, which is rejected: the client relies
/// on the header.
pub(crate) fn idempotency_key(headers: &HeaderMap) -> Option<String> {
    Some(single(headers, &IDEMPOTENCY_KEY)?.unwrap_or_default().to_owned())
}

/// Returns the text of a header, if sent; `Some(None)` if it is unreadable or repeated with another value.
fn single<'a>(headers: &'a HeaderMap, name: &HeaderName) -> Option<Option<&'a str>> {
    let mut values = headers.get_all(name).iter();
    let first: &HeaderValue = values.next()?;
    Some(first.to_str().ok().filter(|_| values.all(|other| other == first)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bearer_other_schemes_give_empty_credential() {
        for (values, expect) in [
            (&[][..], None),
            (&["Bearer vbk_x"], Some("vbk_x")),
            (&["bearer  vbk_x "], Some("vbk_x")),
            (&["BEARER\tvbk_x"], Some("vbk_x")),
            (&["Bearer"], Some("")),
            (&["Bearer "], Some("")),
            (&["vbk_x"], Some("")),
            (&["Basic dXNlcjpwdw=="], Some("")),
            (&["Bearer vbk_x", "Bearer vbk_x"], Some("vbk_x")),
            (&["Bearer vbk_x", "Bearer vbk_y"], Some("")),
            (&["Bearer \u{e9}"], Some("")),
        ] {
            let mut headers = HeaderMap::new();
            for value in values {
                headers.append(AUTHORIZATION, HeaderValue::from_bytes(value.as_bytes()).unwrap());
            }
            assert_eq!(bearer(&headers).as_deref(), expect, "{values:?}");
        }
    }
    #[test]
    fn proof_with_different_values_is_ignored() {
        for (values, expect) in [
            (&[][..], None),
            (&["a.b.c"], Some("a.b.c")),
            (&[" a.b.c "], Some("a.b.c")),
            (&["a.b.c", "a.b.c"], Some("a.b.c")),
            (&["a.b.c", "d.e.f"], None),
            (&[" "], None),
            (&["\u{e9}"], None),
        ] {
            let mut headers = HeaderMap::new();
            for value in values {
                headers.append(ENTITLEMENT, HeaderValue::from_bytes(value.as_bytes()).unwrap());
            }
            assert_eq!(proof(&headers).as_ref().map(EntitlementProof::reveal), expect, "{values:?}");
        }
    }
}
