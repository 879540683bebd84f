//! The style sheet, and the policy that lets nothing else in.

use std::sync::LazyLock;

use base64::{Engine as _, prelude::BASE64_STANDARD};
use http::HeaderValue;
use sha2::{Digest, Sha256};

/// The style of every page. It lies in the page itself: one request shows the whole.
pub(super) const SHEET: &str = include_str!("style.css");

/// What a page may do: show this style sheet, send its own form back here where it has one, and nothing else.
pub(crate) fn content_security_policy(has_form: bool) -> HeaderValue {
    static POLICIES: LazyLock<[HeaderValue; 2]> = LazyLock::new(|| {
        let digest = BASE64_STANDARD.encode(Sha256::digest(SHEET));
        ["'none'", "'self'"].map(|forms| {
            let policy = format!(
                "default-src 'none'; style-src 'sha256-{digest}'; base-uri 'none'; form-action {forms}; \
                 frame-ancestors 'none'"
            );
            // Base64 is always a valid header; the fallback lets not even the style sheet in.
            HeaderValue::from_str(&policy).unwrap_or(HeaderValue::from_static("default-src 'none'"))
        })
    });
    let [without, with] = &*POLICIES;
    if has_form { with.clone() } else { without.clone() }
}
