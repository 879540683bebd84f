//! Signature verification by ring, which the program contains for TLS anyway.

use jsonwebtoken::{
    Algorithm, DecodingKey, DecodingKeyKind,
    crypto::{CryptoProvider, JwtVerifier, KeyUtils},
    errors::{self, ErrorKind},
    signature::{Error, Verifier},
};
use ring::{
    hmac,
    signature::{self, RsaPublicKeyComponents, UnparsedPublicKey},
};

static RING: CryptoProvider = CryptoProvider {
    signer_factory: |_, _| Err(ErrorKind::UnsupportedAlgorithm.into()),
    verifier_factory,
    key_utils: KeyUtils::new_unimplemented(),
};

/// Makes ring the library's provider. One that the program installed before works as well.
pub(super) fn install() {
    let _ = RING.install_default();
}

fn verifier_factory(algorithm: &Algorithm, key: &DecodingKey) -> errors::Result<Box<dyn JwtVerifier>> {
    // A public key must never be used as a secret.
    if key.family() != algorithm.family() {
        return Err(ErrorKind::InvalidAlgorithm.into());
    }
    Ok(Box::new(RingVerifier { algorithm: *algorithm, key: key.clone() }))
}

struct RingVerifier {
    algorithm: Algorithm,
    key: DecodingKey,
}

impl JwtVerifier for RingVerifier {
    fn algorithm(&self) -> Algorithm {
        self.algorithm
    }
}

impl Verifier<Vec<u8>> for RingVerifier {
    fn verify(&self, message: &[u8], tag: &Vec<u8>) -> Result<(), Error> {
        let verified = match self.key.kind() {
            DecodingKeyKind::SecretOrDer(bytes) => by_bytes(self.algorithm, bytes, message, tag),
            DecodingKeyKind::RsaModulusExponent { n, e } => by_rsa(self.algorithm, n, e, message, tag),
        };
        verified.ok_or_else(Error::new)
    }
}

fn by_bytes(algorithm: Algorithm, key: &[u8], message: &[u8], tag: &[u8]) -> Option<()> {
    let secret = |hash| hmac::verify(&hmac::Key::new(hash, key), message, tag).ok();
    let public = |curve| UnparsedPublicKey::new(curve, key).verify(message, tag).ok();
    match algorithm {
        Algorithm::HS256 => secret(hmac::HMAC_SHA256),
        Algorithm::HS384 => secret(hmac::HMAC_SHA384),
        Algorithm::HS512 => secret(hmac::HMAC_SHA512),
        Algorithm::ES256 => public(&signature::ECDSA_P256_SHA256_FIXED),
        Algorithm::ES384 => public(&signature::ECDSA_P384_SHA384_FIXED),
        Algorithm::EdDSA => UnparsedPublicKey::new(&signature::ED25519, key).verify(message, tag).ok(),
        _ => None,
    }
}

fn by_rsa(algorithm: Algorithm, n: &[u8], e: &[u8], message: &[u8], tag: &[u8]) -> Option<()> {
    let parameters = match algorithm {
        Algorithm::RS256 => &signature::RSA_PKCS1_2048_8192_SHA256,
        Algorithm::RS384 => &signature::RSA_PKCS1_2048_8192_SHA384,
        Algorithm::RS512 => &signature::RSA_PKCS1_2048_8192_SHA512,
        Algorithm::PS256 => &signature::RSA_PSS_2048_8192_SHA256,
        Algorithm::PS384 => &signature::RSA_PSS_2048_8192_SHA384,
        Algorithm::PS512 => &signature::RSA_PSS_2048_8192_SHA512,
        _ => return None,
    };
    // Some issuers write a leading zero byte, which ring rejects.
    RsaPublicKeyComponents { n: without_zeros(n), e: without_zeros(e) }.verify(parameters, message, tag).ok()
}

fn without_zeros(number: &[u8]) -> &[u8] {
    let zeros = number.iter().take_while(|byte| **byte == 0).count();
    number.get(zeros..).unwrap_or_default()
}
