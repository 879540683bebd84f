//! Entitlements: JSON Web Tokens (RFC 7519) signed by an issuer that the operator trusts.

mod keys;
mod provider;
#[cfg(test)]
mod tests;

use std::time::Duration;

use jsonwebtoken::{decode, decode_header};
use serde::Deserialize;
use transcript_core::{
    Result, Timestamp,
    lookup::{Entitlement, EntitlementProof, EntitlementVerifier},
};

use crate::options::EntitlementOptions;
use keys::TrustedKey;

/// Tolerated difference between the issuer's clock and ours.
const LEEWAY: Duration = Duration::from_secs(60);
/// `plan` of an active paid plan. Every other value is no entitlement.
const PAID_PLAN: &str = "plus";

/// Verifies tokens signed by a trusted key, each with the algorithm of that key only.
pub struct TokenEntitlements {
    keys: Vec<TrustedKey>,
}

// A trusted key may be a secret.
transcript_core::debug_fields!(TokenEntitlements |this| { keys: this.keys.len() });

/// Claims of a token; the library has checked audience and issuer.
#[derive(Deserialize)]
struct EntitlementClaims {
    sub: String,
    plan: String,
    exp: f64,
    nbf: Option<f64>,
    iat: Option<f64>,
}

impl TokenEntitlements {
    /// Trusts the keys of a JSON Web Key Set (RFC 7517).
    ///
    /// # Errors
    /// [`transcript_core::ErrorKind::Invalid`] if the set has no usable key; the message repeats nothing of the keys.
    pub fn new(options: &EntitlementOptions) -> Result<Self> {
        provider::install();
        Ok(Self { keys: keys::trusted(options)? })
    }

    /// Key that a token names. A token without a key id uses the only key, if there is just one.
    fn key(&self, id: Option<&str>) -> Option<&TrustedKey> {
        match (id, self.keys.as_slice()) {
            (None, [only]) => Some(only),
            (None, _) => None,
            (Some(id), keys) => keys.iter().find(|key| key.id.as_deref() == Some(id)),
        }
    }

    /// Claims of a token whose signature, audience and issuer are valid.
    fn claims(&self, token: &str) -> Option<EntitlementClaims> {
        let header = decode_header(token).ok()?;
        // RFC 7515, 4.1.11: a token with a critical extension that is not understood must be rejected.
        if header.crit.is_some() {
            return None;
        }
        let key = self.key(header.kid.as_deref())?;
        Some(decode::<EntitlementClaims>(token, &key.key, &key.validation).ok()?.claims)
    }
}

impl EntitlementVerifier for TokenEntitlements {
    fn verify(&self, proof: &EntitlementProof, now: Timestamp) -> Option<Entitlement> {
        let EntitlementClaims { sub, plan, exp, nbf, iat } = self.claims(proof.reveal())?;
        let has_started = [nbf, iat].into_iter().flatten().all(|since| timestamp(since) <= now.plus(LEEWAY));
        let expires_at = expiry(timestamp(exp), now)?;
        (has_started && plan == PAID_PLAN).then_some(Entitlement { subject: sub, expires_at })
    }
}

/// Expiry of a token; `None` if it has expired.
///
/// The leeway is for a token that is expired by our clock: the clock of the issuer may be behind ours. A token that is
/// not expired keeps its expiry.
fn expiry(exp: Timestamp, now: Timestamp) -> Option<Timestamp> {
    let last = if now < exp { exp } else { exp.plus(LEEWAY) };
    (now < last).then_some(last)
}

/// Timestamp of a token's date: seconds since 1970, possibly with a fraction.
///
/// Values out of range are clamped.
fn timestamp(seconds: f64) -> Timestamp {
    Timestamp::from_millis((seconds * 1000.0) as i64)
}
