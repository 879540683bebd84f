//! Signatures of webhooks: a header over the raw body.
//!
//! The header is `t=1492774577,v1=5257a8…,v1=…,v0=…`: a timestamp in seconds, and for each active secret the
//! HMAC-SHA256 of `{timestamp}.{body}` in hexadecimal digits. Other schemes than `v1` are ignored. Stripe signs its
//! webhooks in this way, and this server its own.

use std::time::Duration;

use hmac::{Hmac, KeyInit, Mac, digest::CtOutput};
use sha2::Sha256;

use crate::{hex, time::Timestamp};

/// The usual maximum difference between the timestamp of a signature and the local clock.
pub const SIGNATURE_TOLERANCE: Duration = Duration::from_secs(300);
/// Maximum length of the header, and maximum number of signatures in it.
const HEADER_MAX: usize = 4_096;
const SIGNATURES_MAX: usize = 16;
/// The length of a signature in bytes.
const LENGTH: usize = 32;

/// An HMAC whose comparison takes constant time.
type Signature = CtOutput<Hmac<Sha256>>;

/// Why a call was rejected.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SignatureError {
    /// There is no signature.
    Missing,
    /// The header is malformed.
    Malformed,
    /// The signature is too old, by age in seconds.
    Stale(u64),
    /// The signature is this many seconds in the future.
    Early(u64),
    /// No signature matches any secret.
    Wrong,
}

impl SignatureError {
    /// What happened, for the signature in the header of this name.
    pub fn message(self, header: &str) -> String {
        match self {
            Self::Missing => format!("the header {header} is missing"),
            Self::Malformed => format!("the header {header} is malformed"),
            Self::Stale(age) => format!("the signature is {age} s old, which is more than is accepted"),
            Self::Early(ahead) => {
                format!("the signature is {ahead} s in the future: check the clock of this machine")
            }
            Self::Wrong => "the signature matches none of the signing secrets".to_owned(),
        }
    }
}

/// Verifies that one of the secrets signed this body, at most `tolerance` before or after `now`.
///
/// # Errors
/// Why the signature is not accepted.
pub fn verify_signature(
    header: Option<&str>,
    body: &[u8],
    secrets: &[String],
    now: Timestamp,
    tolerance: Duration,
) -> Result<(), SignatureError> {
    let header = header.ok_or(SignatureError::Missing)?;
    let (timestamp, signatures) = parse(header).ok_or(SignatureError::Malformed)?;
    let signed = secrets.iter().filter_map(|secret| signature(secret, timestamp, body));
    if !has_match(signed, &signatures) {
        return Err(SignatureError::Wrong);
    }
    // The timestamp is trusted only after the signature is verified.
    let timestamp: u64 = timestamp.parse().map_err(|_| SignatureError::Malformed)?;
    let now = u64::try_from(now.as_millis() / 1_000).unwrap_or(0);
    match (now.saturating_sub(timestamp), timestamp.saturating_sub(now)) {
        (late, _) if late > tolerance.as_secs() => Err(SignatureError::Stale(late)),
        (_, early) if early > tolerance.as_secs() => Err(SignatureError::Early(early)),
        _ => Ok(()),
    }
}

/// Whether one of the signatures is the expected one of a secret. Each secret signs the body once.
fn has_match(mut expected: impl Iterator<Item = Signature>, signatures: &[Signature]) -> bool {
    expected.any(|expected| signatures.contains(&expected))
}

/// The signed timestamp as text, and the signatures.
fn parse(header: &str) -> Option<(&str, Vec<Signature>)> {
    if header.len() > HEADER_MAX {
        return None;
    }
    let (mut timestamp, mut signatures) = (None, Vec::new());
    for part in header.split(',') {
        match part.trim().split_once('=') {
            Some(("t", text)) if timestamp.is_none() => timestamp = Some(text),
            // Two timestamps are ambiguous: another parser could use the other one.
            Some(("t", _)) => return None,
            Some(("v1", text)) => {
                let bytes = hex::decode(text).and_then(|bytes| <[u8; LENGTH]>::try_from(bytes).ok());
                signatures.extend(bytes.map(|bytes| Signature::new(bytes.into())))
            }
            _ => {}
        }
    }
    let timestamp = timestamp
        .filter(|text| (1..=12).contains(&text.len()) && text.bytes().all(|b| b.is_ascii_digit()))?;
    (1..=SIGNATURES_MAX).contains(&signatures.len()).then_some((timestamp, signatures))
}

/// The header of a body that each of the secrets signs at this time.
pub fn sign(body: &[u8], secrets: &[String], now: Timestamp) -> String {
    let timestamp = (now.as_millis() / 1_000).max(0).to_string();
    let mut header = format!("t={timestamp}");
    for signature in secrets.iter().filter_map(|secret| signature(secret, &timestamp, body)) {
        header.push_str(",v1=");
        header.push_str(&hex::encode(&signature.into_bytes()));
    }
    header
}

/// The signature of a body. HMAC accepts keys of any length, so this is never `None`.
fn signature(secret: &str, timestamp: &str, body: &[u8]) -> Option<Signature> {
    let mac = Hmac::<Sha256>::new_from_slice(secret.as_bytes()).ok()?;
    Some(mac.chain_update(timestamp).chain_update(b".").chain_update(body).finalize())
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const BODY: &[u8] = b"{\"id\": \"evt_1\"}";
    const NOW_S: i64 = 1_795_176_000;

    fn now() -> Timestamp {
        Timestamp::from_millis(NOW_S * 1_000 + 999)
    }

    fn secrets(names: &[&str]) -> Vec<String> {
        names.iter().map(|name| (*name).to_owned()).collect()
    }

    fn sign(body: &[u8], secret: &str, timestamp: i64) -> String {
        let bytes = signature(secret, &timestamp.to_string(), body).unwrap().into_bytes();
        format!("t={timestamp},v1={}", hex::encode(&bytes))
    }

    fn verify(header: Option<&str>, body: &[u8], names: &[&str]) -> Result<(), SignatureError> {
        verify_signature(header, body, &secrets(names), now(), SIGNATURE_TOLERANCE)
    }

    fn check(header: &str, names: &[&str], expect: Result<(), SignatureError>) {
        assert_eq!(verify(Some(header), BODY, names), expect, "{header}");
    }

    #[test]
    fn signature_of_any_active_secret_is_valid() {
        let header = sign(BODY, "new", NOW_S);
        check(&header, &["new"], Ok(()));
        check(&header, &["old", "new"], Ok(()));
        check(&header, &["old"], Err(SignatureError::Wrong));
        check(&header, &["new "], Err(SignatureError::Wrong));
        check(&header, &[], Err(SignatureError::Wrong));
        // During a rotation both secrets sign.
        let both = super::sign(BODY, &secrets(&["new", "old"]), now());
        check(&both, &["old"], Ok(()));
        check(&both, &["new"], Ok(()));
    }

    #[test]
    fn signature_is_computed_once_per_secret() {
        let header = sign(BODY, "s", NOW_S);
        let (timestamp, signature) = header.split_once(',').unwrap();
        let wrong = format!(",v1={}", "0".repeat(2 * LENGTH)).repeat(SIGNATURES_MAX - 1);
        let (_, signatures) = parse(&format!("{timestamp}{wrong},{signature}")).unwrap();
        let right = signatures.last().unwrap().clone();
        for (secrets, has_right) in [(3, false), (3, true)] {
            let mut computed = 0;
            let expected = (1..=secrets).map(|number| {
                computed += 1;
                if has_right && number == secrets {
                    right.clone()
                } else {
                    Signature::new([7; LENGTH].into())
                }
            });
            assert_eq!((has_match(expected, &signatures), computed), (has_right, secrets));
        }
    }

    #[test]
    fn signature_is_valid_for_five_minutes() {
        for (timestamp, expect) in [
            (NOW_S, Ok(())),
            (NOW_S - 300, Ok(())),
            (NOW_S + 300, Ok(())),
            (NOW_S - 301, Err(SignatureError::Stale(301))),
            (NOW_S + 301, Err(SignatureError::Early(301))),
            (0, Err(SignatureError::Stale(NOW_S as u64))),
            (999_999_999_999, Err(SignatureError::Early(999_999_999_999 - NOW_S as u64))),
        ] {
            check(&sign(BODY, "s", timestamp), &["s"], expect);
        }
    }

    #[test]
    fn signature_header_malformed_is_rejected() {
        let good = sign(BODY, "s", NOW_S);
        let (timestamp, signature) = good.split_once(',').unwrap();
        let upper = signature.to_uppercase().replace("V1=", "v1=");
        check(&format!("{timestamp},{upper}"), &["s"], Ok(()));
        check(&format!("v0=00, {signature} ,{timestamp}"), &["s"], Ok(()));
        for header in [
            String::new(),
            "t=".to_owned(),
            timestamp.to_owned(),
            signature.to_owned(),
            format!("{timestamp},{timestamp},{signature}"),
            format!("{timestamp},{}", &signature[..signature.len() - 1]),
            format!("{timestamp},{}", signature.replace("v1", "v2")),
            format!("t=+{},{signature}", NOW_S),
            format!("t=-1,{signature}"),
            format!("t=0x10,{signature}"),
            format!("{timestamp}{}", format!(",{signature}").repeat(17)),
            "a".repeat(HEADER_MAX + 1),
        ] {
            check(&header, &["s"], Err(SignatureError::Malformed));
        }
        assert_eq!(verify(None, BODY, &["s"]), Err(SignatureError::Missing));
        // A changed timestamp invalidates the signature.
        check(&format!("t={},{signature}", NOW_S + 1), &["s"], Err(SignatureError::Wrong));
        check(&format!("t=0{NOW_S},{signature}"), &["s"], Err(SignatureError::Wrong));
    }

    proptest! {
        #[test]
        fn signature_changed_bit_is_rejected(body: Vec<u8>, position: prop::sample::Index, bit in 0_u8..8) {
            prop_assume!(!body.is_empty());
            let header = sign(&body, "s", NOW_S);
            prop_assert_eq!(verify(Some(&header), &body, &["s"]), Ok(()));
            let mut changed = body;
            let offset = position.index(changed.len());
            changed[offset] ^= 1 << bit;
            prop_assert_eq!(verify(Some(&header), &changed, &["s"]), Err(SignatureError::Wrong));
        }

        #[test]
        fn signature_any_header_does_not_panic(header: String, body: Vec<u8>) {
            prop_assert!(verify(Some(&header), &body, &["s"]).is_err());
        }
    }
}
