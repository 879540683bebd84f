//! Whether a call comes from Stripe: the header `Stripe-Signature`, over the raw body.
//!
//! It reads `t=1492774577,v1=5257a8…,v1=…,v0=…`: a moment in seconds, and for each secret that is in use the
//! HMAC-SHA256 of `{moment}.{body}` in hexadecimal digits. Other schemes than `v1` are not for us.

use std::fmt;

use hmac::{Hmac, KeyInit, Mac};
use sha2::Sha256;
use transcript_core::Timestamp;

/// How far the moment of a signature may be from ours, in seconds.
const TOLERANCE_S: u64 = 300;
/// The longest header, and the most signatures in one, that are looked at.
const HEADER_MAX: usize = 4_096;
const SIGNATURES_MAX: usize = 16;
/// The length of a signature in bytes.
const LENGTH: usize = 32;

/// Why a call is not believed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Forged {
    /// There is no signature.
    Missing,
    /// It is not of the form.
    Malformed,
    /// It was made too long ago, so many seconds.
    Stale(u64),
    /// It was made so many seconds after now.
    Early(u64),
    /// None of the signatures is of any secret.
    Wrong,
}

impl fmt::Display for Forged {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Missing => f.write_str("the header Stripe-Signature is missing"),
            Self::Malformed => f.write_str("the header Stripe-Signature is malformed"),
            Self::Stale(by) => write!(f, "the signature is {by} s old: at most {TOLERANCE_S} are believed"),
            Self::Early(by) => write!(f, "the signature is {by} s ahead of our clock: is the clock right?"),
            Self::Wrong => f.write_str("the signature is of none of stripe.webhook_secrets"),
        }
    }
}

/// Whether one of the secrets signed this body, a short while ago.
pub(super) fn verify(
    header: Option<&str>,
    body: &[u8],
    secrets: &[String],
    now: Timestamp,
) -> Result<(), Forged> {
    let header = header.ok_or(Forged::Missing)?;
    let (moment, signatures) = parse(header).ok_or(Forged::Malformed)?;
    let signed_with = |secret: &String| {
        signatures.iter().any(|signature| {
            // A key of any length is accepted, and the comparison takes the same time whatever differs.
            Hmac::<Sha256>::new_from_slice(secret.as_bytes()).is_ok_and(|mac| {
                let mac = mac.chain_update(moment).chain_update(b".").chain_update(body);
                mac.verify_slice(signature).is_ok()
            })
        })
    };
    if !secrets.iter().any(signed_with) {
        return Err(Forged::Wrong);
    }
    // Only of what is signed the moment means anything.
    let moment: u64 = moment.parse().map_err(|_| Forged::Malformed)?;
    let now = u64::try_from(now.as_millis() / 1_000).unwrap_or(0);
    match (now.saturating_sub(moment), moment.saturating_sub(now)) {
        (late, _) if late > TOLERANCE_S => Err(Forged::Stale(late)),
        (_, early) if early > TOLERANCE_S => Err(Forged::Early(early)),
        _ => Ok(()),
    }
}

/// The moment as it was signed, digit by digit, and the signatures.
fn parse(header: &str) -> Option<(&str, Vec<[u8; LENGTH]>)> {
    if header.len() > HEADER_MAX {
        return None;
    }
    let (mut moment, mut signatures) = (None, Vec::new());
    for part in header.split(',') {
        match part.trim().split_once('=') {
            Some(("t", text)) if moment.is_none() => moment = Some(text),
            // Two moments: whoever reads another one than we do would be lied to.
            Some(("t", _)) => return None,
            Some(("v1", text)) => signatures.extend(digits(text)),
            _ => {}
        }
    }
    let moment =
        moment.filter(|text| (1..=12).contains(&text.len()) && text.bytes().all(|b| b.is_ascii_digit()))?;
    (1..=SIGNATURES_MAX).contains(&signatures.len()).then_some((moment, signatures))
}

/// The bytes of a signature in hexadecimal digits.
fn digits(text: &str) -> Option<[u8; LENGTH]> {
    let mut bytes = [0; LENGTH];
    let pairs = text.as_bytes().chunks(2);
    if text.len() != 2 * LENGTH {
        return None;
    }
    for (byte, pair) in bytes.iter_mut().zip(pairs) {
        let pair = std::str::from_utf8(pair).ok()?;
        // A sign would be read as part of a number.
        let is_hex = pair.bytes().all(|digit| digit.is_ascii_hexdigit());
        *byte = u8::from_str_radix(pair, 16).ok().filter(|_| is_hex)?;
    }
    Some(bytes)
}

/// A header as Stripe makes it.
#[cfg(test)]
pub(super) fn sign(body: &[u8], secret: &str, moment: i64) -> String {
    let mac = Hmac::<Sha256>::new_from_slice(secret.as_bytes()).unwrap();
    let bytes = mac.chain_update(moment.to_string()).chain_update(b".").chain_update(body).finalize();
    let hex: String = bytes.into_bytes().iter().map(|byte| format!("{byte:02x}")).collect();
    format!("t={moment},v1={hex}")
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

    fn check(header: &str, names: &[&str], expect: Result<(), Forged>) {
        assert_eq!(verify(Some(header), BODY, &secrets(names), now()), expect, "{header}");
    }

    #[test]
    fn any_secret_in_use_opens_and_no_other() {
        let header = sign(BODY, "new", NOW_S);
        check(&header, &["new"], Ok(()));
        check(&header, &["old", "new"], Ok(()));
        check(&header, &["old"], Err(Forged::Wrong));
        check(&header, &["new "], Err(Forged::Wrong));
        check(&header, &[], Err(Forged::Wrong));
        // During a rotation Stripe signs with both.
        let old = sign(BODY, "old", NOW_S);
        let both = format!("{header},{}", old.split_once(',').unwrap().1);
        check(&both, &["old"], Ok(()));
        check(&both, &["new"], Ok(()));
    }

    #[test]
    fn a_signature_is_good_for_five_minutes() {
        for (moment, expect) in [
            (NOW_S, Ok(())),
            (NOW_S - 300, Ok(())),
            (NOW_S + 300, Ok(())),
            (NOW_S - 301, Err(Forged::Stale(301))),
            (NOW_S + 301, Err(Forged::Early(301))),
            (0, Err(Forged::Stale(NOW_S as u64))),
            (999_999_999_999, Err(Forged::Early(999_999_999_999 - NOW_S as u64))),
        ] {
            check(&sign(BODY, "s", moment), &["s"], expect);
        }
    }

    #[test]
    fn what_is_not_of_the_form_is_not_believed() {
        let good = sign(BODY, "s", NOW_S);
        let (moment, signature) = good.split_once(',').unwrap();
        let upper = signature.to_uppercase().replace("V1=", "v1=");
        check(&format!("{moment},{upper}"), &["s"], Ok(()));
        check(&format!("v0=00, {signature} ,{moment}"), &["s"], Ok(()));
        for header in [
            String::new(),
            "t=".to_owned(),
            moment.to_owned(),
            signature.to_owned(),
            format!("{moment},{moment},{signature}"),
            format!("{moment},{}", &signature[..signature.len() - 1]),
            format!("{moment},{}", signature.replace("v1", "v2")),
            format!("t=+{},{signature}", NOW_S),
            format!("t=-1,{signature}"),
            format!("t=0x10,{signature}"),
            format!("{moment}{}", format!(",{signature}").repeat(17)),
            "a".repeat(HEADER_MAX + 1),
        ] {
            check(&header, &["s"], Err(Forged::Malformed));
        }
        assert_eq!(verify(None, BODY, &secrets(&["s"]), now()), Err(Forged::Missing));
        // A moment that was changed was not signed.
        check(&format!("t={},{signature}", NOW_S + 1), &["s"], Err(Forged::Wrong));
        check(&format!("t=0{NOW_S},{signature}"), &["s"], Err(Forged::Wrong));
    }

    proptest! {
        #[test]
        fn one_changed_bit_is_noticed(body: Vec<u8>, place: prop::sample::Index, bit in 0_u8..8) {
            prop_assume!(!body.is_empty());
            let header = sign(&body, "s", NOW_S);
            prop_assert_eq!(verify(Some(&header), &body, &secrets(&["s"]), now()), Ok(()));
            let mut changed = body;
            let place = place.index(changed.len());
            changed[place] ^= 1 << bit;
            prop_assert_eq!(verify(Some(&header), &changed, &secrets(&["s"]), now()), Err(Forged::Wrong));
        }

        #[test]
        fn any_header_is_read_without_a_fault(header: String, body: Vec<u8>) {
            prop_assert!(verify(Some(&header), &body, &secrets(&["s"]), now()).is_err());
        }
    }
}
