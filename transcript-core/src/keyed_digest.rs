//! Digests with the server's secret.

use std::sync::Arc;

use hmac::{Hmac, KeyInit, Mac};
use sha2::Sha256;

use crate::hex;

/// Digests with the server's secret, separate for each purpose.
#[derive(Clone)]
pub(crate) struct KeyedDigest {
    secret: Arc<[u8]>,
}

crate::display::debug_as!(KeyedDigest, |_this| "KeyedDigest");

impl KeyedDigest {
    pub(crate) fn new(secret: Vec<u8>) -> Self {
        Self { secret: secret.into() }
    }

    /// The keyed digest of a text for a purpose, in hexadecimal.
    pub(crate) fn digest(&self, purpose: &str, text: &str) -> String {
        let Some(mac) = self.mac(purpose, text) else { return String::new() };
        hex::encode(&mac.finalize().into_bytes())
    }

    /// Whether this is the digest, in constant time.
    pub(crate) fn is_digest(&self, purpose: &str, text: &str, digest: &str) -> bool {
        let mac = self.mac(purpose, text).zip(hex::decode(digest));
        mac.is_some_and(|(mac, bytes)| mac.verify_slice(&bytes).is_ok())
    }

    /// HMAC accepts a key of any length, so this is never `None`.
    fn mac(&self, purpose: &str, text: &str) -> Option<Hmac<Sha256>> {
        let mut mac = Hmac::<Sha256>::new_from_slice(&self.secret).ok()?;
        mac.update(purpose.as_bytes());
        mac.update(b"\0");
        mac.update(text.as_bytes());
        Some(mac)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn visitor_digest_is_bound_to_purpose_and_text() {
        let keyed_digest = KeyedDigest::new(vec![7; 32]);
        let digest = keyed_digest.digest("visitor", "visitor-1");
        assert_eq!(digest.len(), 64);
        assert!(keyed_digest.is_digest("visitor", "visitor-1", &digest));
        let signed = digest.replace("0e", "+e");
        assert_ne!(signed, digest);
        for (purpose, text, digest) in [
            ("visitor", "visitor-2", digest.as_str()),
            ("challenge", "visitor-1", &digest),
            ("visitor", "visitor-1", &digest[2..]),
            ("visitor", "visitor-1", &signed),
            ("visitor", "visitor-1", "zz"),
            ("visitor", "visitor-1", "é1"),
            ("visitor", "visitor-1", ""),
        ] {
            assert!(!keyed_digest.is_digest(purpose, text, digest), "{purpose} {text} {digest}");
        }
        assert!(!KeyedDigest::new(vec![8; 32]).is_digest("visitor", "visitor-1", &digest));
    }
}
