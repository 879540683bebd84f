//! An issuer of valid and invalid tokens.

use base64::{Engine as _, engine::general_purpose::URL_SAFE_NO_PAD};
use ring::{
    hmac,
    rand::{SecureRandom as _, SystemRandom},
    signature::{
        ECDSA_P256_SHA256_FIXED_SIGNING, EcdsaKeyPair, Ed25519KeyPair, KeyPair as _, RSA_PKCS1_SHA256,
        RsaKeyPair, RsaPublicKeyComponents,
    },
};
use serde_json::{Value, json};

/// A key made for these tests and used nowhere else: ring cannot generate RSA keys.
const RSA: &[u8] = include_bytes!("rsa.pk8");

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum TestKeyKind {
    Rs256,
    Es256,
    EdDsa,
    Hs256,
}

impl TestKeyKind {
    pub(super) const ALL: [Self; 4] = [Self::Rs256, Self::Es256, Self::EdDsa, Self::Hs256];
}

enum TestKeyPair {
    Rsa(RsaKeyPair),
    Curve(EcdsaKeyPair),
    Edwards(Ed25519KeyPair),
    Secret(Vec<u8>),
}

pub(super) struct TestIssuer {
    pair: TestKeyPair,
    kid: String,
}

/// A part of a token as JSON.
pub(super) fn encode(part: &Value) -> String {
    URL_SAFE_NO_PAD.encode(part.to_string())
}

impl TestIssuer {
    /// An issuer with a new key; RSA issuers share one.
    pub(super) fn new(kind: TestKeyKind, kid: &str) -> Self {
        let random = SystemRandom::new();
        let pair = match kind {
            TestKeyKind::Rs256 => TestKeyPair::Rsa(RsaKeyPair::from_pkcs8(RSA).unwrap()),
            TestKeyKind::Es256 => {
                let form = EcdsaKeyPair::generate_pkcs8(&ECDSA_P256_SHA256_FIXED_SIGNING, &random).unwrap();
                let pair = EcdsaKeyPair::from_pkcs8(&ECDSA_P256_SHA256_FIXED_SIGNING, form.as_ref(), &random);
                TestKeyPair::Curve(pair.unwrap())
            }
            TestKeyKind::EdDsa => {
                let form = Ed25519KeyPair::generate_pkcs8(&random).unwrap();
                TestKeyPair::Edwards(Ed25519KeyPair::from_pkcs8(form.as_ref()).unwrap())
            }
            TestKeyKind::Hs256 => {
                let mut secret = vec![0; 32];
                random.fill(&mut secret).unwrap();
                TestKeyPair::Secret(secret)
            }
        };
        Self { pair, kid: kid.to_owned() }
    }

    pub(super) fn with_secret(secret: &[u8], kid: &str) -> Self {
        Self { pair: TestKeyPair::Secret(secret.to_vec()), kid: kid.to_owned() }
    }

    fn algorithm(&self) -> &'static str {
        match self.pair {
            TestKeyPair::Rsa(_) => "RS256",
            TestKeyPair::Curve(_) => "ES256",
            TestKeyPair::Edwards(_) => "EdDSA",
            TestKeyPair::Secret(_) => "HS256",
        }
    }

    /// The key by which the issuer is trusted.
    pub(super) fn jwk(&self) -> Value {
        let text = |bytes: &[u8]| URL_SAFE_NO_PAD.encode(bytes);
        let mut jwk = match &self.pair {
            TestKeyPair::Rsa(pair) => {
                let public = RsaPublicKeyComponents::<Vec<u8>>::from(pair.public());
                json!({ "kty": "RSA", "n": text(&public.n), "e": text(&public.e) })
            }
            TestKeyPair::Curve(pair) => {
                let (x, y) = pair.public_key().as_ref()[1..].split_at(32);
                json!({ "kty": "EC", "crv": "P-256", "x": text(x), "y": text(y) })
            }
            TestKeyPair::Edwards(pair) => {
                json!({ "kty": "OKP", "crv": "Ed25519", "x": text(pair.public_key().as_ref()) })
            }
            TestKeyPair::Secret(secret) => json!({ "kty": "oct", "k": text(secret) }),
        };
        jwk["kid"] = json!(self.kid);
        jwk["alg"] = json!(self.algorithm());
        jwk["use"] = json!("sig");
        jwk
    }

    /// The bytes of the public key, and its common text forms.
    pub(super) fn public_forms(&self) -> Vec<Vec<u8>> {
        let jwk = self.jwk();
        let raw = match &self.pair {
            TestKeyPair::Rsa(pair) => pair.public_key().as_ref().to_vec(),
            TestKeyPair::Edwards(pair) => pair.public_key().as_ref().to_vec(),
            TestKeyPair::Curve(pair) => pair.public_key().as_ref().to_vec(),
            TestKeyPair::Secret(secret) => secret.clone(),
        };
        let encoded = URL_SAFE_NO_PAD.encode(&raw).into_bytes();
        vec![raw, encoded, jwk.to_string().into_bytes(), Vec::new()]
    }

    /// A valid token with these claims.
    pub(super) fn token(&self, claims: &Value) -> String {
        self.sign(&json!({ "alg": self.algorithm(), "typ": "JWT", "kid": self.kid }), claims)
    }

    /// A token with any header.
    pub(super) fn sign(&self, header: &Value, claims: &Value) -> String {
        self.sign_text(&header.to_string(), &claims.to_string())
    }

    /// A token of any texts.
    pub(super) fn sign_text(&self, header: &str, claims: &str) -> String {
        let message = format!("{}.{}", URL_SAFE_NO_PAD.encode(header), URL_SAFE_NO_PAD.encode(claims));
        let random = SystemRandom::new();
        let tag = match &self.pair {
            TestKeyPair::Rsa(pair) => {
                let mut tag = vec![0; pair.public().modulus_len()];
                pair.sign(&RSA_PKCS1_SHA256, &random, message.as_bytes(), &mut tag).unwrap();
                tag
            }
            TestKeyPair::Curve(pair) => pair.sign(&random, message.as_bytes()).unwrap().as_ref().to_vec(),
            TestKeyPair::Edwards(pair) => pair.sign(message.as_bytes()).as_ref().to_vec(),
            TestKeyPair::Secret(secret) => {
                let key = hmac::Key::new(hmac::HMAC_SHA256, secret);
                hmac::sign(&key, message.as_bytes()).as_ref().to_vec()
            }
        };
        format!("{message}.{}", URL_SAFE_NO_PAD.encode(tag))
    }
}
