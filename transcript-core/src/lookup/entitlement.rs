//! Entitlements: proofs of a paid plan elsewhere (decision 0009).
//!
//! The issuer of a proof is trusted only for the subject and the end of a plan: a proof applies to keys of its subject
//! only, and only for a bounded time.

use std::{fmt, time::Duration};

use super::LookupKeys;
use crate::{
    directory::{LookupKey, RenewRequest},
    error::Result,
    ledger::terms::AllowancePeriod,
    time::Timestamp,
};

/// The longest accepted proof, in bytes.
///
/// More than a token with the largest signing keys in use and additional claims needs.
const PROOF_LENGTH_MAX: usize = 8 * 1024;
/// The longest subject, in bytes.
const SUBJECT_LENGTH_MAX: usize = 255;
/// The longest validity of a proof after the end of its day: a year's plan, and some days to renew it.
///
/// Whole days, so that a proof without a near end renews a key once a day, not with each call.
const DURATION_MAX: Duration = Duration::from_secs(400 * 24 * 3600);

/// A proof that is not verified yet. `Debug` never shows it.
#[derive(Clone, PartialEq, Eq)]
pub struct EntitlementProof(String);

crate::display::debug_as!(EntitlementProof, |_this| "EntitlementProof(…)");

impl EntitlementProof {
    /// The proof with this text.
    pub fn new(text: impl Into<String>) -> Self {
        Self(text.into())
    }

    /// The text, for its verification.
    pub fn reveal(&self) -> &str {
        &self.0
    }
}

/// The content of a valid proof: the subject has a paid plan.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Entitlement {
    /// The issuer's name of the plan's owner; compared exactly.
    pub subject: String,
    /// When the plan ends.
    pub expires_at: Timestamp,
}

/// Verifies proofs of paid plans.
pub trait EntitlementVerifier: fmt::Debug + Send + Sync + 'static {
    /// The entitlement of a proof at a time; `None` if it does not prove a paid plan that is active then.
    ///
    /// **Behaviour**: a pure function of the arguments and the verifier's own settings: no I/O, no clock, no panic for
    /// any text. The proof has at most 8,192 bytes.
    fn verify(&self, proof: &EntitlementProof, now: Timestamp) -> Option<Entitlement>;
}

impl LookupKeys {
    /// The entitlement of a proof, within the limits of this module.
    pub(super) fn entitlement(
        &self,
        proof: Option<&EntitlementProof>,
        now: Timestamp,
    ) -> Option<Entitlement> {
        let (entitlements, proof) = (self.entitlements.as_ref()?, proof?);
        if proof.reveal().len() > PROOF_LENGTH_MAX {
            return None;
        }
        limit_validity(entitlements.verify(proof, now)?, now)
    }

    /// The key after a valid proof of its subject has extended its plan; else the key unchanged.
    ///
    /// A store failure only skips the renewal: the key's next call with a proof repeats it.
    pub(super) async fn apply_proof(&self, key: LookupKey, proof: Option<&EntitlementProof>) -> LookupKey {
        // A key without a subject was created without a proof, and ignores proofs.
        let Some(subject) = &key.subject else { return key };
        let now = self.clock.now();
        let proven = self.entitlement(proof, now).filter(|proven| proven.subject == *subject);
        let Some(expires_at) = proven
            .map(|proven| proven.expires_at)
            .filter(|expires_at| Some(*expires_at) > key.entitled_until)
        else {
            return key;
        };
        match self.renew_key(&key, subject, expires_at, now).await {
            Ok(true) => LookupKey { entitled_until: Some(expires_at), ..key },
            Ok(false) => key,
            Err(error) => {
                tracing::warn!(%error, key = %key.key.id, "key renewal failed");
                key
            }
        }
    }

    async fn renew_key(
        &self,
        key: &LookupKey,
        subject: &str,
        expires_at: Timestamp,
        now: Timestamp,
    ) -> Result<bool> {
        let request = RenewRequest {
            key: key.key.id.clone(),
            subject: subject.to_owned(),
            until: expires_at,
            now,
            live_per_subject: self.options.plus_keys_per_subject,
        };
        self.with_store_timeout(self.directory.renew_entitlement(request)).await
    }
}

/// The entitlement cut to the longest validity; `None` if it has ended or its subject is invalid.
fn limit_validity(entitlement: Entitlement, now: Timestamp) -> Option<Entitlement> {
    let Entitlement { subject, expires_at } = entitlement;
    let expires_at = expires_at.min(AllowancePeriod::Day.end(now).plus(DURATION_MAX));
    let is_subject =
        !subject.is_empty() && subject.len() <= SUBJECT_LENGTH_MAX && !subject.chars().any(char::is_control);
    (is_subject && now < expires_at).then_some(Entitlement { subject, expires_at })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn entitlement_is_cut_to_limits() {
        let now = Timestamp::from_millis(1_795_132_800_000 + 5_000);
        let last = Timestamp::from_millis(1_795_132_800_000 + 401 * 86_400_000);
        let year = now.plus(Duration::from_secs(365 * 86_400));
        let forever = Timestamp::from_millis(i64::MAX);
        let longest = "s".repeat(SUBJECT_LENGTH_MAX);
        for (subject, expires_at, expect) in [
            ("ann", year, Some(year)),
            (&longest, year, Some(year)),
            ("ann", last, Some(last)),
            ("ann", forever, Some(last)),
            ("ann", now, None),
            ("ann", Timestamp::from_millis(0), None),
            ("", year, None),
            ("a\nb", year, None),
            (&format!("{longest}s"), year, None),
        ] {
            let entitlement = Entitlement { subject: subject.to_owned(), expires_at };
            assert_eq!(
                limit_validity(entitlement, now).map(|kept| kept.expires_at),
                expect,
                "{subject:?} {expires_at}"
            );
        }
    }

    #[test]
    fn entitlement_proof_debug_hides_text() {
        assert!(!format!("{:?}", EntitlementProof::new("eyJhush")).contains("hush"));
    }
}
