//! Bearer credential and proof of a paid plan, from the request headers.

use http::{HeaderMap, header::AUTHORIZATION};
use transcript_core::lookup::EntitlementProof;

/// Header with a proof of a paid plan (specification 5).
const ENTITLEMENT: &str = "x-verbatim-entitlement";

/// Returns the bearer credential if the request has an Authorization header.
///
/// A header of another scheme, and two headers with different values, give an empty text, which is no valid key. So
/// the caller gets an error instead of anonymous access.
pub(crate) fn bearer(headers: &HeaderMap) -> Option<String> {
    let mut values = headers.get_all(AUTHORIZATION).iter();
    let first = values.next()?;
    if values.any(|other| other != first) {
        return Some(String::new());
    }
    let Ok(text) = first.to_str() else { return Some(String::new()) };
    let (scheme, credential) = text.trim().split_once([' ', '\t']).unwrap_or((text, ""));
    if scheme.eq_ignore_ascii_case("bearer") {
        Some(credential.trim().to_owned())
    } else {
        Some(String::new())
    }
}

/// Returns the proof of a paid plan, if sent. Two headers with different values are ignored.
pub(crate) fn proof(headers: &HeaderMap) -> Option<EntitlementProof> {
    let mut values = headers.get_all(ENTITLEMENT).iter();
    let first = values.next()?;
    if values.any(|other| other != first) {
        return None;
    }
    first.to_str().ok().map(str::trim).filter(|text| !text.is_empty()).map(EntitlementProof::new)
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
                headers.append(AUTHORIZATION, http::HeaderValue::from_bytes(value.as_bytes()).unwrap());
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
                headers.append(ENTITLEMENT, http::HeaderValue::from_bytes(value.as_bytes()).unwrap());
            }
            assert_eq!(proof(&headers).as_ref().map(EntitlementProof::reveal), expect, "{values:?}");
        }
    }
}
