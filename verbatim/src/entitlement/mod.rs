//! Proofs of paid plans: JSON Web Tokens (RFC 7519) that an issuer of the operator's choice signs.

mod keys;
mod provider;
#[cfg(test)]
mod tests;

use std::{fmt, time::Duration};

use jsonwebtoken::{decode, decode_header};
use serde::Deserialize;
use transcript_core::{
    Result, Timestamp,
    lookup::{Entitlement, Entitlements, Proof},
};

use crate::options::EntitlementOptions;
use keys::TrustedKey;

/// How far the issuer's clock may be from ours.
const LEEWAY: Duration = Duration::from_secs(60);
/// The `plan` of a paid plan that is active. Every other value is no entitlement.
const PAID_PLAN: &str = "plus";

/// Believes tokens that one of the trusted keys has signed, each with the algorithm of that key only.
pub struct TokenEntitlements {
    keys: Vec<TrustedKey>,
}

impl fmt::Debug for TokenEntitlements {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // A trusted key may be a secret.
        f.debug_struct("TokenEntitlements").field("keys", &self.keys.len()).finish()
    }
}

/// The claims of a token that matter here; the library has checked audience and issuer.
#[derive(Deserialize)]
struct Claims {
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
    /// [`transcript_core::ErrorKind::Invalid`] when the set has no key that can be trusted; the message
    /// repeats nothing of the keys.
    pub fn new(options: &EntitlementOptions) -> Result<Self> {
        provider::install();
        Ok(Self { keys: keys::trusted(options)? })
    }

    /// The key that a token names. A token without a name means the only key, where there is only one.
    fn key(&self, id: Option<&str>) -> Option<&TrustedKey> {
        match (id, self.keys.as_slice()) {
            (None, [only]) => Some(only),
            (None, _) => None,
            (Some(id), keys) => keys.iter().find(|key| key.id.as_deref() == Some(id)),
        }
    }

    /// The claims of a token whose signature, audience and issuer are right.
    fn claims(&self, token: &str) -> Option<Claims> {
        let header = decode_header(token).ok()?;
        // RFC 7515, 4.1.11: who does not understand a critical extension must not believe the token.
        if header.crit.is_some() {
            return None;
        }
        let key = self.key(header.kid.as_deref())?;
        Some(decode::<Claims>(token, &key.key, &key.validation).ok()?.claims)
    }
}

impl Entitlements for TokenEntitlements {
    fn verify(&self, proof: &Proof, now: Timestamp) -> Option<Entitlement> {
        let Claims { sub, plan, exp, nbf, iat } = self.claims(proof.reveal())?;
        let begun = [nbf, iat].into_iter().flatten().all(|since| moment(since) <= now.plus(LEEWAY));
        let until = end(moment(exp), now)?;
        (begun && plan == PAID_PLAN).then_some(Entitlement { subject: sub, until })
    }
}

/// Until when a token is good that ends at a moment.
///
/// The leeway is for a token that our clock sees as over: whoever still has it may have a clock that is
/// behind ours. One that is not over yet is taken at its word.
fn end(exp: Timestamp, now: Timestamp) -> Option<Timestamp> {
    let last = if now < exp { exp } else { exp.plus(LEEWAY) };
    (now < last).then_some(last)
}

/// The moment of a token's date: seconds since 1970, perhaps with a fraction. Whatever lies outside our
/// calendar is brought to its ends.
fn moment(seconds: f64) -> Timestamp {
    Timestamp::from_millis((seconds * 1000.0) as i64)
}
