//! Keys that may sign entitlements, each with exactly one algorithm.

use jsonwebtoken::{Algorithm, DecodingKey, DecodingKeyKind, Validation, jwk::Jwk};
use serde::Deserialize as _;
use serde_json::Value;
use transcript_core::{Error, Result};

use crate::options::EntitlementOptions;

/// Maximum number of keys in a set: an issuer has one, or two during a rotation.
const KEYS_MAX: usize = 100;

/// A key, and the validation of the tokens that it signs.
pub(super) struct TrustedKey {
    pub(super) id: Option<String>,
    pub(super) key: DecodingKey,
    pub(super) validation: Validation,
}

/// Reads the keys of a set.
///
/// Keys for other purposes and of unknown kinds are ignored, as RFC 7517 (section 5) requires; an unusable key of a
/// known kind is an error.
pub(super) fn trusted(options: &EntitlementOptions) -> Result<Vec<TrustedKey>> {
    let set: Value = serde_json::from_str(&options.keys).map_err(|_| invalid_key_set("it is not JSON"))?;
    let keys =
        set.get("keys").and_then(Value::as_array).ok_or_else(|| invalid_key_set("it has no list of keys"))?;
    if keys.len() > KEYS_MAX {
        return Err(invalid_key_set("it has more than 100 keys"));
    }
    let mut trusted: Vec<TrustedKey> = Vec::new();
    for (number, key) in (1..).zip(keys) {
        let Some(algorithm) = algorithm(key) else {
            tracing::warn!("entitlement.keys: key {number} ignored: unsupported use or algorithm");
            continue;
        };
        let read = read(key, algorithm, options);
        let read = read.map_err(|what| invalid_key_set(&format!("its key {number} {what}")))?;
        if trusted.iter().any(|other| other.id == read.id) {
            return Err(invalid_key_set(&format!("its key {number} has the kid of another key")));
        }
        trusted.push(read);
    }
    match trusted.as_slice() {
        [] => Err(invalid_key_set(
            "it has no key for signatures: give RSA keys, EC keys on P-256 or P-384, OKP keys on Ed25519, or oct keys",
        )),
        [_, _, ..] if trusted.iter().any(|key| key.id.is_none()) => {
            Err(invalid_key_set("with several keys, each needs a kid"))
        }
        _ => Ok(trusted),
    }
}

#[cold]
fn invalid_key_set(what: &str) -> Error {
    Error::invalid(format!("entitlement.keys: this JSON Web Key Set cannot be used: {what}"))
}

/// Algorithm of a key: its `alg` if that fits its kind, else the default of the kind.
///
/// The defaults are RS256 for RSA and HS256 for secrets. `None` for keys that are not for signatures.
fn algorithm(key: &Value) -> Option<Algorithm> {
    let text = |name: &str| key.get(name).and_then(Value::as_str);
    let verifies = key.get("key_ops").and_then(Value::as_array);
    if text("use").is_some_and(|what| what != "sig")
        || verifies.is_some_and(|all| !all.iter().any(|one| one == "verify"))
    {
        return None;
    }
    match (text("kty")?, text("crv"), text("alg")) {
        ("RSA", _, None | Some("RS256")) => Some(Algorithm::RS256),
        ("RSA", _, Some("RS384")) => Some(Algorithm::RS384),
        ("RSA", _, Some("RS512")) => Some(Algorithm::RS512),
        ("RSA", _, Some("PS256")) => Some(Algorithm::PS256),
        ("RSA", _, Some("PS384")) => Some(Algorithm::PS384),
        ("RSA", _, Some("PS512")) => Some(Algorithm::PS512),
        ("EC", Some("P-256"), None | Some("ES256")) => Some(Algorithm::ES256),
        ("EC", Some("P-384"), None | Some("ES384")) => Some(Algorithm::ES384),
        ("OKP", Some("Ed25519"), None | Some("EdDSA")) => Some(Algorithm::EdDSA),
        ("oct", _, None | Some("HS256")) => Some(Algorithm::HS256),
        ("oct", _, Some("HS384")) => Some(Algorithm::HS384),
        ("oct", _, Some("HS512")) => Some(Algorithm::HS512),
        _ => None,
    }
}

fn read(key: &Value, algorithm: Algorithm, options: &EntitlementOptions) -> Result<TrustedKey, &'static str> {
    // The library's own messages are left out: they may repeat parts of the key.
    let jwk = Jwk::deserialize(key).map_err(|_| "is incomplete")?;
    let key = DecodingKey::from_jwk(&jwk).map_err(|_| "is incomplete")?;
    if key.family() != algorithm.family() {
        return Err("is incomplete");
    }
    check_size(&key, algorithm)?;
    Ok(TrustedKey { id: jwk.common.key_id, key, validation: validation(algorithm, options) })
}

/// Rejects keys that can verify no token, and secrets that can be guessed (RFC 7518, 3.2).
fn check_size(key: &DecodingKey, algorithm: Algorithm) -> Result<(), &'static str> {
    let size = match key.kind() {
        DecodingKeyKind::SecretOrDer(bytes) => bytes.len(),
        DecodingKeyKind::RsaModulusExponent { n, .. } => n.iter().skip_while(|byte| **byte == 0).count(),
    };
    let (sizes, what) = match algorithm {
        Algorithm::HS256 => (32..=1024, "is too short a secret: HS256 needs 32 bytes"),
        Algorithm::HS384 => (48..=1024, "is too short a secret: HS384 needs 48 bytes"),
        Algorithm::HS512 => (64..=1024, "is too short a secret: HS512 needs 64 bytes"),
        Algorithm::ES256 => (65..=65, "is not a point of P-256"),
        Algorithm::ES384 => (97..=97, "is not a point of P-384"),
        Algorithm::EdDSA => (32..=32, "is not a key of Ed25519"),
        _ => (256..=1024, "must have from 2048 to 8192 bits"),
    };
    if sizes.contains(&size) { Ok(()) } else { Err(what) }
}

/// Checks of the library besides the signature. Times are checked by our own clock.
fn validation(algorithm: Algorithm, options: &EntitlementOptions) -> Validation {
    let mut validation = Validation::new(algorithm);
    validation.validate_exp = false;
    validation.validate_nbf = false;
    validation.required_spec_claims.clear();
    validation.validate_aud = options.audience.is_some();
    if let Some(audience) = &options.audience {
        validation.set_audience(&[audience]);
        validation.required_spec_claims.insert("aud".to_owned());
    }
    if let Some(issuer) = &options.issuer {
        validation.set_issuer(&[issuer]);
        validation.required_spec_claims.insert("iss".to_owned());
    }
    validation
}
