//! The credential of a request, and the proof of a paid plan beside it: only headers are looked at.

use http::{HeaderMap, header::AUTHORIZATION};
use transcript_core::lookup::Proof;

/// The header with a proof of a paid plan (specification 3 and 4).
const ENTITLEMENT: &str = "x-verbatim-entitlement";

/// The text of the bearer credential, where an Authorization header came.
///
/// A header that is no bearer credential, or that came twice with different texts, gives a text that is
/// nobody's key: whoever sent it meant to send a key and is told that it is none.
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

/// The proof of a paid plan, where one came. A header that came twice with different texts proves nothing.
pub(crate) fn proof(headers: &HeaderMap) -> Option<Proof> {
    let mut values = headers.get_all(ENTITLEMENT).iter();
    let first = values.next()?;
    if values.any(|other| other != first) {
        return None;
    }
    first.to_str().ok().map(str::trim).filter(|text| !text.is_empty()).map(Proof::new)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_bearer_credentials_count() {
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
    fn a_proof_is_one_text() {
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
            assert_eq!(proof(&headers).as_ref().map(Proof::reveal), expect, "{values:?}");
        }
    }
}
