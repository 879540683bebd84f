//! The name of one request, by which its log line and its answer are found.

use std::{
    collections::hash_map::RandomState,
    hash::BuildHasher,
    sync::{
        OnceLock,
        atomic::{AtomicU64, Ordering},
    },
};

use http::{HeaderMap, HeaderName, HeaderValue};

/// The header that carries it, in both directions.
pub(crate) const X_REQUEST_ID: HeaderName = HeaderName::from_static("x-request-id");

/// The longest id that is taken over from a caller.
const LENGTH_MAX: usize = 64;

/// The caller's own id when it is sane, else a new one.
///
/// A new one need not be unpredictable, only not repeated: the process's random number and a counter.
pub(crate) fn request_id(headers: &HeaderMap) -> HeaderValue {
    static PROCESS: OnceLock<u32> = OnceLock::new();
    static COUNT: AtomicU64 = AtomicU64::new(1);
    if let Some(id) = headers.get(X_REQUEST_ID).filter(|id| is_sane(id.as_bytes())) {
        return id.clone();
    }
    // The low half of a randomly keyed hash: the standard library's way to a random number.
    let process = PROCESS.get_or_init(|| RandomState::new().hash_one(0) as u32);
    let count = COUNT.fetch_add(1, Ordering::Relaxed);
    // Hexadecimal digits and a hyphen are always a valid header.
    HeaderValue::try_from(format!("{process:08x}-{count:x}"))
        .unwrap_or_else(|_| HeaderValue::from_static("unnamed"))
}

fn is_sane(id: &[u8]) -> bool {
    let allowed = |byte: &u8| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_' | b'.' | b':');
    // Whoever sends a key by mistake must not find it in the log.
    let key = id.starts_with(b"vbk_") || id.starts_with(b"vba_");
    !id.is_empty() && id.len() <= LENGTH_MAX && id.iter().all(allowed) && !key
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sane_ids_are_taken_over_and_others_replaced() {
        let long = "x".repeat(65);
        for (given, taken) in [
            ("abc-123_4.5:6", true),
            ("", false),
            ("a b", false),
            ("a\"b", false),
            (long.as_str(), false),
            ("vbk_0123456789", false),
        ] {
            let mut headers = HeaderMap::new();
            headers.insert(X_REQUEST_ID, given.parse().unwrap());
            let id = request_id(&headers);
            assert_eq!(id == given, taken, "{given}");
            assert!(is_sane(id.as_bytes()), "{id:?}");
        }
        assert_ne!(request_id(&HeaderMap::new()), request_id(&HeaderMap::new()));
    }
}
