//! Entitlement tokens and key sets.

use std::sync::LazyLock;

use base64::{Engine as _, engine::general_purpose::URL_SAFE_NO_PAD};
use hmac::{Hmac, KeyInit, Mac};
use sha2::Sha256;
use transcript_core::{
    lookup::{EntitlementProof, EntitlementVerifier},
    time::Timestamp,
};
use verbatim::{EntitlementOptions, TokenEntitlements};

use crate::seeds;

const SECRET: &[u8; 32] = b"a secret of the fuzz target only";

static VERIFIER: LazyLock<TokenEntitlements> = LazyLock::new(|| {
    let keys = format!(r#"{{"keys":[{{"kty":"oct","k":"{}"}}]}}"#, URL_SAFE_NO_PAD.encode(SECRET));
    TokenEntitlements::new(&EntitlementOptions { keys, ..EntitlementOptions::default() })
        .expect("a valid key set")
});

/// The first byte: `t` a token, `c` the claims of a signed token, `h` its header and claims in two lines, `k` a key
/// set.
pub(crate) fn run(input: &[u8]) {
    let Some((&kind, rest)) = input.split_first() else { return };
    let now = Timestamp::from_millis(1_795_132_800_000);
    let verify = |token: String| VERIFIER.verify(&EntitlementProof::new(token), now);
    match kind {
        b't' => {
            let entitlement = verify(String::from_utf8_lossy(rest).into_owned());
            assert_eq!(entitlement, None, "no key signed the token");
        }
        b'c' | b'h' => {
            let end = rest.iter().position(|&byte| byte == b'\n').filter(|_| kind == b'h');
            let (header, claims) = match end {
                Some(end) => (&rest[..end], &rest[end + 1..]),
                None => (br#"{"alg":"HS256"}"#.as_slice(), rest),
            };
            let Some(entitlement) = verify(signed(header, claims)) else { return };
            assert!(now < entitlement.expires_at);
            // Unknown claims are skipped, even if they are not valid JSON.
            let claims = serde_json::from_str::<serde_json::Value>(&String::from_utf8_lossy(claims));
            if let Ok(claims) = claims {
                assert_eq!((&claims["sub"], &claims["plan"]), (&entitlement.subject.into(), &"plus".into()));
            }
        }
        b'k' => {
            let keys = String::from_utf8_lossy(rest).into_owned();
            let options = EntitlementOptions { keys, ..EntitlementOptions::default() };
            if let Ok(verifier) = TokenEntitlements::new(&options) {
                let token = signed(br#"{"alg":"HS256"}"#, br#"{"sub":"a","plan":"plus","exp":9e9}"#);
                verifier.verify(&EntitlementProof::new(token), now);
            }
        }
        _ => {}
    }
}

fn signed(header: &[u8], claims: &[u8]) -> String {
    let signed = format!("{}.{}", URL_SAFE_NO_PAD.encode(header), URL_SAFE_NO_PAD.encode(claims));
    let mac = Hmac::<Sha256>::new_from_slice(SECRET).expect("any length is valid");
    let tag = mac.chain_update(&signed).finalize().into_bytes();
    format!("{signed}.{}", URL_SAFE_NO_PAD.encode(tag))
}

pub(crate) fn seeds() -> Vec<Vec<u8>> {
    seeds::texts(&[
        r#"c{"sub":"a","plan":"plus","exp":1795132900}"#,
        r#"c{"sub":"a","plan":"plus","exp":1.7951329e9,"nbf":1795132700.5,"iat":1,"aud":["x"],"iss":"y"}"#,
        r#"c{"sub":"a","plan":"free","exp":1}"#,
        "h{\"alg\":\"HS256\",\"typ\":\"JWT\",\"kid\":\"1\"}\n{\"sub\":\"a\",\"plan\":\"plus\",\"exp\":1e300}",
        "h{\"alg\":\"none\"}\n{}",
        "teyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiJhIiwicGxhbiI6InBsdXMiLCJleHAiOjE3OTUxMzI5MDB9.AAAA",
        "teyJhbGciOiJub25lIn0.e30.",
        r#"k{"keys":[{"kty":"oct","kid":"1","k":"YSBzZWNyZXQgb2YgdGhlIGZ1enogdGFyZ2V0IG9ubHk","use":"sig"}]}"#,
        r#"k{"keys":[{"kty":"OKP","crv":"Ed25519","x":"11qYAYKxCrfVS_7TyWQHOg7hcvPapiMlrwIaaPcHURo",
            "key_ops":["verify"]}]}"#,
        r#"k{"keys":[{"kty":"EC","crv":"P-256","x":"f83OJ3D2xF1Bg8vub9tLe1gHMzV76e8Tus9uPHvRVEU",
            "y":"x_FEzRu9m36HLN_tue659LNpXW6pCyStikYjKIWI5a0"}]}"#,
        r#"k{"keys":[{"kty":"RSA","alg":"PS512","n":"AQAB","e":"AQAB"}]}"#,
    ])
}
