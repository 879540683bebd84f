//! Entitlements: proofs that somebody has a paid plan elsewhere (specification 4; design 4).
//!
//! Whoever signs such proofs is trusted with who has a plan and until when, and with nothing else: a
//! proof only ever acts on keys of its own subject, and only for a bounded time.

use std::{fmt, sync::Arc, time::Duration};

use super::Lookup;
use crate::{
    directory::{Entitle, LookupKey},
    error::Result,
    ledger::terms::Period,
    time::Timestamp,
};

/// The longest proof that is looked at, in bytes: a token that is signed with the largest keys in use, and
/// carries more claims than it needs, is shorter.
const PROOF_LENGTH_MAX: usize = 8 * 1024;
/// The longest subject, in bytes.
const SUBJECT_LENGTH_MAX: usize = 255;
/// How long a proof is believed at most, from the end of its day on: a year's plan, and some days to renew it.
/// Whole days, so that a proof without a near end renews a key once a day, not with each call.
const DURATION_MAX: Duration = Duration::from_secs(400 * 24 * 3600);

/// A proof as it came, not verified yet. `Debug` never shows it.
#[derive(Clone, PartialEq, Eq)]
pub struct Proof(String);

impl Proof {
    /// The proof with this text.
    pub fn new(text: impl Into<String>) -> Self {
        Self(text.into())
    }

    /// The text, for the one who verifies it.
    pub fn reveal(&self) -> &str {
        &self.0
    }
}

impl fmt::Debug for Proof {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Proof(…)")
    }
}

/// What a good proof says: somebody has a paid plan.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Entitlement {
    /// Who, by the name that the issuer gives them; compared to the letter.
    pub subject: String,
    /// Until when.
    pub until: Timestamp,
}

/// Verifies proofs of paid plans.
pub trait Entitlements: fmt::Debug + Send + Sync + 'static {
    /// What a proof says at a moment; none when it is not a good proof of a paid plan that is active then.
    ///
    /// **Behaviour**: depends on nothing but the arguments and on what it was made with: it waits for
    /// nothing, has no clock of its own, and never panics, whatever the text is. The proof has at most
    /// 8,192 bytes.
    fn verify(&self, proof: &Proof, now: Timestamp) -> Option<Entitlement>;
}

impl Lookup {
    /// The same look-up, believing these proofs of paid plans; without them none is believed.
    #[must_use]
    pub fn with_entitlements(self, entitlements: Arc<dyn Entitlements>) -> Self {
        Self { entitlements: Some(entitlements), ..self }
    }

    /// What a proof says, within our own bounds.
    pub(super) fn entitlement(&self, proof: Option<&Proof>, now: Timestamp) -> Option<Entitlement> {
        let (entitlements, proof) = (self.entitlements.as_ref()?, proof?);
        if proof.reveal().len() > PROOF_LENGTH_MAX {
            return None;
        }
        bounded(entitlements.verify(proof, now)?, now)
    }

    /// The key after a fresh proof of its own subject has put off the end of its plan; else as it is.
    ///
    /// A store that is away costs the renewal, not the call: the key's next call with a proof makes up for it.
    pub(super) async fn renewed(&self, key: LookupKey, proof: Option<&Proof>) -> LookupKey {
        // A key without a subject was not made with a proof, and none is looked at for it.
        let Some(subject) = &key.subject else { return key };
        let now = self.parts.clock.now();
        let proven = self.entitlement(proof, now).filter(|proven| proven.subject == *subject);
        let Some(until) = proven.map(|proven| proven.until).filter(|until| Some(*until) > key.entitled_until)
        else {
            return key;
        };
        match self.entitle(&key, subject, until, now).await {
            Ok(true) => LookupKey { entitled_until: Some(until), ..key },
            Ok(false) => key,
            Err(error) => {
                tracing::warn!(%error, key = %key.key.id, "a key was not renewed: a store failed");
                key
            }
        }
    }

    async fn entitle(
        &self,
        key: &LookupKey,
        subject: &str,
        until: Timestamp,
        now: Timestamp,
    ) -> Result<bool> {
        let ask = Entitle {
            key: key.key.id.clone(),
            subject: subject.to_owned(),
            until,
            now,
            live_per_subject: self.parts.options.plus_keys_per_subject,
        };
        self.bounded(self.parts.directory.entitle(ask)).await
    }
}

/// The entitlement cut to our longest; none when it has run out, or its subject cannot be one.
fn bounded(entitlement: Entitlement, now: Timestamp) -> Option<Entitlement> {
    let Entitlement { subject, until } = entitlement;
    let until = until.min(Period::Day.ends(now).plus(DURATION_MAX));
    let is_subject =
        !subject.is_empty() && subject.len() <= SUBJECT_LENGTH_MAX && !subject.chars().any(char::is_control);
    (is_subject && now < until).then_some(Entitlement { subject, until })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn entitlements_are_bounded() {
        let now = Timestamp::from_millis(1_795_132_800_000 + 5_000);
        let last = Timestamp::from_millis(1_795_132_800_000 + 401 * 86_400_000);
        let year = now.plus(Duration::from_secs(365 * 86_400));
        let forever = Timestamp::from_millis(i64::MAX);
        let longest = "s".repeat(SUBJECT_LENGTH_MAX);
        for (subject, until, expect) in [
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
            let entitlement = Entitlement { subject: subject.to_owned(), until };
            assert_eq!(bounded(entitlement, now).map(|kept| kept.until), expect, "{subject:?} {until}");
        }
    }

    #[test]
    fn a_proof_is_not_shown() {
        assert!(!format!("{:?}", Proof::new("eyJhush")).contains("hush"));
    }
}
