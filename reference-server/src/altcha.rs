//! ALTCHA's proof of work, with its authors' own crate (decision 0028).
//!
//! The signed data of a challenge contains its id, a video and an expiry. Solving it takes thousands of key
//! derivations, one of which is right. The right one is derived from the server's key, so that verifying a solution
//! takes two digests.

use std::collections::BTreeMap;

use altcha::{CreateChallengeOptions, Payload, VerifySolutionOptions, create_challenge, verify_solution};
use base64::{Engine as _, prelude::BASE64_STANDARD};
use serde_json::Value;
use sha2::{Digest, Sha256};
use transcript_core::{
    Result, Timestamp,
    lookup::{ChallengeClaims, ChallengeProvider},
};

/// Key derivation function. Browsers and native programs compute it about equally fast.
const ALGORITHM: &str = "PBKDF2/SHA-256";
/// Rounds of one derivation: creating a challenge takes a fraction of a millisecond.
const ROUNDS: u32 = 2_000;
/// The solution is one of `TRIES_RANGE` derivations after the first `TRIES_MIN`.
///
/// On average a browser needs the minimum and half of the range, about a second of one processor, and several seconds
/// on an old phone.
const TRIES_MIN: u32 = 1_000;
const TRIES_RANGE: u32 = 2_000;

/// Challenge provider for ALTCHA.
#[derive(Clone, Copy, Debug)]
pub(crate) struct AltchaProvider;

impl ChallengeProvider for AltchaProvider {
    fn challenge(&self, key: &str, claims: &ChallengeClaims) -> Result<String> {
        let ChallengeClaims { id, page, expires_at } = claims;
        let data = BTreeMap::from([
            ("id".to_owned(), Value::from(id.as_str())),
            ("page".to_owned(), Value::from(page.as_str())),
            ("until".to_owned(), Value::from(expires_at.as_millis())),
        ]);
        let options = CreateChallengeOptions {
            algorithm: ALGORITHM.to_owned(),
            cost: ROUNDS,
            counter: Some(TRIES_MIN + solution_counter(key, id) % TRIES_RANGE),
            data: Some(data),
            hmac_signature_secret: Some(key.to_owned()),
            hmac_key_signature_secret: Some(derived_key_secret(key)),
            ..CreateChallengeOptions::default()
        };
        let challenge = create_challenge(options).map_err(ChallengeClaims::creation_error)?;
        serde_json::to_string(&challenge).map_err(ChallengeClaims::creation_error)
    }

    fn verify(&self, key: &str, solution: &str) -> Option<ChallengeClaims> {
        let payload: Payload = serde_json::from_slice(&BASE64_STANDARD.decode(solution).ok()?).ok()?;
        // Without it the key would be derived again, at the cost that the challenge names.
        payload.challenge.parameters.key_signature.as_ref()?;
        let options = VerifySolutionOptions {
            hmac_key_signature_secret: Some(derived_key_secret(key)),
            ..VerifySolutionOptions::new(&payload.challenge, &payload.solution, key)
        };
        verify_solution(options).ok().filter(|result| result.verified)?;
        let data = payload.challenge.parameters.data?;
        let text = |name: &str| data.get(name).and_then(Value::as_str).map(str::to_owned);
        let expires_at = Timestamp::from_millis(data.get("until")?.as_i64()?);
        Some(ChallengeClaims { id: text("id")?, page: text("page")?, expires_at })
    }
}

/// Returns a number that is unpredictable without the key.
fn solution_counter(key: &str, id: &str) -> u32 {
    let digest = Sha256::new().chain_update(key).chain_update(b"\0try\0").chain_update(id).finalize();
    digest.iter().take(4).fold(0, |number, byte| number << 8 | u32::from(*byte))
}

/// Returns the key that signs derived keys; it differs from the key that signs challenges.
fn derived_key_secret(key: &str) -> String {
    format!("{key}/derived")
}

#[cfg(test)]
pub(crate) mod tests {
    use altcha::{Challenge, SolveChallengeOptions, solve_challenge};
    use serde_json::json;

    use super::*;

    /// Returns what the widget sends for a challenge.
    pub(crate) fn solution(challenge: &str) -> String {
        let challenge: Challenge = serde_json::from_str(challenge).unwrap();
        let tries =
            SolveChallengeOptions { counter_start: TRIES_MIN, ..SolveChallengeOptions::new(&challenge) };
        let solution = solve_challenge(tries).unwrap().unwrap();
        BASE64_STANDARD.encode(json!({ "challenge": challenge, "solution": solution }).to_string())
    }

    fn claims() -> ChallengeClaims {
        let expires_at = Timestamp::from_millis(1_795_132_800_123);
        ChallengeClaims { id: "challenge-7".to_owned(), page: "reels/A_b-1".to_owned(), expires_at }
    }

    #[test]
    fn altcha_solution_returns_challenge_claims() {
        let challenge = AltchaProvider.challenge("key", &claims()).unwrap();
        let solution = solution(&challenge);
        assert_eq!(AltchaProvider.verify("key", &solution), Some(claims()));
        assert_eq!(AltchaProvider.verify("other", &solution), None);
    }

    #[test]
    fn altcha_tampered_solution_is_refused() {
        let challenge = AltchaProvider.challenge("key", &claims()).unwrap();
        let sent = BASE64_STANDARD.decode(solution(&challenge)).unwrap();
        let tamper = |pointer: &str, with: Value| {
            let mut sent: Value = serde_json::from_slice(&sent).unwrap();
            *sent.pointer_mut(pointer).unwrap() = with;
            AltchaProvider.verify("key", &BASE64_STANDARD.encode(sent.to_string()))
        };
        assert!(tamper("/solution/time", 1.into()).is_some());
        for (pointer, with) in [
            ("/challenge/parameters/data/page", json!("reels/B")),
            ("/challenge/parameters/data/until", json!(9_795_132_800_123_i64)),
            ("/challenge/parameters/data/id", json!("challenge-8")),
            ("/challenge/parameters/cost", json!(1)),
            ("/challenge/parameters/keyPrefix", json!("")),
            ("/challenge/parameters/keySignature", json!(null)),
            ("/challenge/parameters/keySignature", json!("")),
            ("/challenge/signature", json!("00")),
            ("/challenge/signature", json!(null)),
            ("/solution/derivedKey", json!("00")),
            ("/solution/derivedKey", json!("")),
            ("/solution/derivedKey", json!("xyz")),
        ] {
            assert_eq!(tamper(pointer, with), None, "{pointer}");
        }
        for nothing in
            ["", "e30=", "!", "AAAA", &"A".repeat(4_096), &BASE64_STANDARD.encode("[".repeat(3_000))]
        {
            assert_eq!(AltchaProvider.verify("key", nothing), None, "{nothing}");
        }
    }
}
