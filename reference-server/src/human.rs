//! ALTCHA's proof of work, by its makers' own crate (decision 0028).
//!
//! A challenge names a video, an end and itself in its signed data. Solving it takes some thousand key derivations, one
//! of which is right; which one is drawn from the server's key, so that looking at a solution costs two digests.

use std::collections::BTreeMap;

use altcha::{CreateChallengeOptions, Payload, VerifySolutionOptions, create_challenge, verify_solution};
use base64::{Engine as _, prelude::BASE64_STANDARD};
use serde_json::Value;
use sha2::{Digest, Sha256};
use transcript_core::{
    Result, Timestamp,
    lookup::{Challenged, HumanCheck},
};

/// How a key is derived. Browsers do this about as fast as programs do.
const ALGORITHM: &str = "PBKDF2/SHA-256";
/// How many rounds one derivation has: what making a challenge costs us, a fraction of a millisecond.
const ROUNDS: u32 = 2_000;
/// Among how many derivations the right one lies: on average a browser does the least and half of the rest, which takes
/// it about a second of one processor, and an old telephone some.
const TRIES_MIN: u32 = 1_000;
const TRIES_RANGE: u32 = 2_000;

/// ALTCHA.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Altcha;

impl HumanCheck for Altcha {
    fn challenge(&self, key: &str, challenged: &Challenged) -> Result<String> {
        let Challenged { id, page, until } = challenged;
        let data = BTreeMap::from([
            ("id".to_owned(), Value::from(id.as_str())),
            ("page".to_owned(), Value::from(page.as_str())),
            ("until".to_owned(), Value::from(until.as_millis())),
        ]);
        let options = CreateChallengeOptions {
            algorithm: ALGORITHM.to_owned(),
            cost: ROUNDS,
            counter: Some(TRIES_MIN + drawn(key, id) % TRIES_RANGE),
            data: Some(data),
            hmac_signature_secret: Some(key.to_owned()),
            hmac_key_signature_secret: Some(key_of_keys(key)),
            ..CreateChallengeOptions::default()
        };
        let challenge = create_challenge(options).map_err(Challenged::not_made)?;
        serde_json::to_string(&challenge).map_err(Challenged::not_made)
    }

    fn solved(&self, key: &str, solution: &str) -> Option<Challenged> {
        let payload: Payload = serde_json::from_slice(&BASE64_STANDARD.decode(solution).ok()?).ok()?;
        // Without it the key would be derived anew, at whatever cost the challenge names.
        payload.challenge.parameters.key_signature.as_ref()?;
        let options = VerifySolutionOptions {
            hmac_key_signature_secret: Some(key_of_keys(key)),
            ..VerifySolutionOptions::new(&payload.challenge, &payload.solution, key)
        };
        verify_solution(options).ok().filter(|result| result.verified)?;
        let data = payload.challenge.parameters.data?;
        let text = |name: &str| data.get(name).and_then(Value::as_str).map(str::to_owned);
        let until = Timestamp::from_millis(data.get("until")?.as_i64()?);
        Some(Challenged { id: text("id")?, page: text("page")?, until })
    }
}

/// A number that nobody without the key can know.
fn drawn(key: &str, id: &str) -> u32 {
    let digest = Sha256::new().chain_update(key).chain_update(b"\0try\0").chain_update(id).finalize();
    digest.iter().take(4).fold(0, |number, byte| number << 8 | u32::from(*byte))
}

/// What derived keys are signed with: another key than challenges are.
fn key_of_keys(key: &str) -> String {
    format!("{key}/derived")
}

#[cfg(test)]
pub(crate) mod tests {
    use altcha::{Challenge, SolveChallengeOptions, solve_challenge};
    use serde_json::json;

    use super::*;

    /// What the widget sends for a challenge.
    pub(crate) fn solution(challenge: &str) -> String {
        let challenge: Challenge = serde_json::from_str(challenge).unwrap();
        let tries =
            SolveChallengeOptions { counter_start: TRIES_MIN, ..SolveChallengeOptions::new(&challenge) };
        let solution = solve_challenge(tries).unwrap().unwrap();
        BASE64_STANDARD.encode(json!({ "challenge": challenge, "solution": solution }).to_string())
    }

    fn challenged() -> Challenged {
        let until = Timestamp::from_millis(1_795_132_800_123);
        Challenged { id: "challenge-7".to_owned(), page: "reels/A_b-1".to_owned(), until }
    }

    #[test]
    fn a_solved_challenge_says_what_it_was_made_for() {
        let challenge = Altcha.challenge("key", &challenged()).unwrap();
        let solution = solution(&challenge);
        assert_eq!(Altcha.solved("key", &solution), Some(challenged()));
        assert_eq!(Altcha.solved("other", &solution), None);
    }

    #[test]
    fn what_was_tampered_with_is_worth_nothing() {
        let challenge = Altcha.challenge("key", &challenged()).unwrap();
        let sent = BASE64_STANDARD.decode(solution(&challenge)).unwrap();
        let tamper = |pointer: &str, with: Value| {
            let mut sent: Value = serde_json::from_slice(&sent).unwrap();
            *sent.pointer_mut(pointer).unwrap() = with;
            Altcha.solved("key", &BASE64_STANDARD.encode(sent.to_string()))
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
            assert_eq!(Altcha.solved("key", nothing), None, "{nothing}");
        }
    }
}
