//! The credential of a request: only the Authorization header is looked at.

use http::{HeaderMap, header::AUTHORIZATION};

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
}
