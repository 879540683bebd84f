//! Options of entitlements.

use std::sync::Arc;

use transcript_core::{Result, lookup::EntitlementVerifier};

use super::Options;

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

// A key set may contain a secret.
transcript_core::debug_fields!(EntitlementOptions { audience, issuer });

#[cfg(feature = "entitlement")]
pub(crate) fn entitlements(options: &Options) -> Result<Option<Arc<dyn EntitlementVerifier>>> {
    let verifier = options.entitlement.as_ref().map(crate::TokenEntitlements::new).transpose()?;
    Ok(verifier.map(|verifier| Arc::new(verifier) as _))
}

/// Verifier of entitlements: `None` in this build.
#[cfg(not(feature = "entitlement"))]
pub(crate) fn entitlements(options: &Options) -> Result<Option<Arc<dyn EntitlementVerifier>>> {
    match options.entitlement {
        None => Ok(None),
        Some(_) => Err(transcript_core::Error::unsupported(
            "this build cannot verify entitlements: it lacks the feature entitlement",
        )),
    }
}
