//! An issuer of entitlements: it sells plans elsewhere and signs proofs.

use anyhow::{Result, anyhow};
use base64::{Engine as _, engine::general_purpose::URL_SAFE_NO_PAD};
use ring::{
    rand::SystemRandom,
    signature::{Ed25519KeyPair, KeyPair as _},
};
use serde_json::{Value, json};

use crate::stripe::fake::now_s;

pub(crate) struct TestIssuer(Ed25519KeyPair);

impl TestIssuer {
    /// An issuer with a fresh key.
    pub(crate) fn new() -> Result<Self> {
        let form = Ed25519KeyPair::generate_pkcs8(&SystemRandom::new()).map_err(|_| anyhow!("no key"))?;
        Ok(Self(Ed25519KeyPair::from_pkcs8(form.as_ref()).map_err(|_| anyhow!("no key"))?))
    }

    /// The key set that a server needs to trust this issuer.
    pub(crate) fn key_set(&self) -> String {
        let x = URL_SAFE_NO_PAD.encode(self.0.public_key().as_ref());
        json!({ "keys": [{ "kty": "OKP", "crv": "Ed25519", "kid": "shop", "use": "sig", "x": x }] })
            .to_string()
    }

    /// A proof of the plan "plus" for a subject, valid for this many seconds from now.
    pub(crate) fn plus(&self, subject: &str, seconds: i64) -> String {
        self.sign(&json!({ "sub": subject, "plan": "plus", "exp": now_s() + seconds }))
    }

    /// A token with these claims.
    pub(crate) fn sign(&self, claims: &Value) -> String {
        self.sign_as(&json!({ "alg": "EdDSA", "typ": "JWT", "kid": "shop" }), claims)
    }

    /// A token with this header.
    pub(crate) fn sign_as(&self, header: &Value, claims: &Value) -> String {
        let part = |value: &Value| URL_SAFE_NO_PAD.encode(value.to_string());
        let message = format!("{}.{}", part(header), part(claims));
        let tag = self.0.sign(message.as_bytes());
        format!("{message}.{}", URL_SAFE_NO_PAD.encode(tag.as_ref()))
    }
}
