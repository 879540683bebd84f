//! Options of entitlements.

use std::fmt;

/// Verification of entitlements (feature `entitlement`).
///
/// An entitlement is a JSON Web Token with `sub`, `plan` (which must be `plus`) and `exp`, signed by one of the keys.
#[derive(Clone, Default, PartialEq, Eq)]
pub struct EntitlementOptions {
    /// A JSON Web Key Set, as JSON: RSA, EC (P-256, P-384), OKP (Ed25519) or oct keys.
    pub keys: String,
    /// Required `aud` of a token; `None`: not checked.
    pub audience: Option<String>,
    /// Required `iss` of a token; `None`: not checked.
    pub issuer: Option<String>,
}

impl fmt::Debug for EntitlementOptions {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // A key set may contain a secret.
        f.debug_struct("EntitlementOptions")
            .field("audience", &self.audience)
            .field("issuer", &self.issuer)
            .finish_non_exhaustive()
    }
}
