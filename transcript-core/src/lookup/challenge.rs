//! Challenges of the watch page: proof of work for a browser, one button for a person.
//!
//! A challenge (specification 4.14) is signed, made for one page, valid for some minutes, and good for one transcript.
//! A [`ChallengeProvider`] defines the proof of work; the lookup API decides whether a solution is accepted.

use std::{fmt, time::Duration};

use super::Visitors;
use crate::{
    error::{Error, Result},
    ids::random_id,
    keyed_digest::KeyedDigest,
    limits::LimitRequest,
    time::Timestamp,
    video::VideoLink,
};

/// How long a challenge is valid.
const LIFETIME: Duration = Duration::from_secs(10 * 60);
/// The longest accepted solution, in bytes.
const SOLUTION_LENGTH_MAX: usize = 4 * 1024;
/// Purpose of the digest that signs challenges.
const PURPOSE: &str = "challenge";

/// The claims of a challenge, all of them signed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ChallengeClaims {
    /// The challenge's unique ID, valid once.
    pub id: String,
    /// The page it is for: `{platform}/{id}`.
    pub page: String,
    /// When it expires.
    pub expires_at: Timestamp,
}

/// Makes challenges for visitors' browsers, and verifies their solutions.
pub trait ChallengeProvider: fmt::Debug + Send + Sync + 'static {
    /// Makes a challenge in the format of the page's script, signed with a key.
    ///
    /// **Behaviour**: the challenge contains all claims, and cannot be forged without the key. The provider enforces no
    /// expiry: the caller checks it with its own clock.
    ///
    /// # Errors
    /// [`crate::ErrorKind::Unexpected`] if no challenge can be made.
    fn challenge(&self, key: &str, claims: &ChallengeClaims) -> Result<String>;

    /// The claims of a solved challenge; `None` if it was not signed with this key, or is not solved.
    ///
    /// **Behaviour**: never panics, for any text. The solution has at most 4,096 bytes.
    fn verify(&self, key: &str, solution: &str) -> Option<ChallengeClaims>;
}

/// Result of verifying a solution.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum SolutionVerdict {
    /// It is valid; this rate limit request uses it up.
    Accepted(LimitRequest),
    /// It is rejected, with the message.
    Rejected(&'static str),
}

impl SolutionVerdict {
    /// Visitors get archived transcripts only.
    pub(super) const NOT_SERVED: Self =
        Self::Rejected("This server transcribes videos for callers with an API key only.");
}

impl Visitors {
    /// Whether visitors of the watch page can get new transcripts.
    pub fn can_fetch(&self) -> bool {
        let options = &self.lookup.options;
        let allowances =
            [options.visitor_per_day, options.visitor_per_network_per_day, options.service_per_day];
        self.challenges.is_some() && !allowances.contains(&0)
    }

    /// A challenge for the page of a video or short link; `None` if visitors are not served.
    ///
    /// Stores nothing.
    ///
    /// # Errors
    /// As [`ChallengeProvider::challenge`].
    pub fn challenge(&self, link: &VideoLink) -> Result<Option<String>> {
        let Some(provider) = self.challenges.as_ref().filter(|_| self.can_fetch() || self.can_ask()) else {
            return Ok(None);
        };
        let id = random_id(self.random(), PURPOSE);
        let expires_at = self.lookup.clock.now().plus(LIFETIME);
        let claims = ChallengeClaims { id, page: page(link), expires_at };
        provider.challenge(&self.lookup.keyed_digest.digest(PURPOSE, ""), &claims).map(Some)
    }

    /// Verifies a solution for the page of a link. The returned rate limit request uses it up.
    pub(super) fn check_solution(&self, link: &VideoLink, solution: &str, now: Timestamp) -> SolutionVerdict {
        let Some(provider) = &self.challenges else {
            return SolutionVerdict::NOT_SERVED;
        };
        check_claims(provider.as_ref(), &self.lookup.keyed_digest, &page(link), solution, now)
    }
}

/// The name of a page below `watch/`.
fn page(link: &VideoLink) -> String {
    match link {
        VideoLink::Video(video) => video.to_string(),
        VideoLink::Short(link) => format!("{}/{}", link.platform(), link.name()),
    }
}

fn check_claims(
    provider: &dyn ChallengeProvider,
    keyed_digest: &KeyedDigest,
    page: &str,
    solution: &str,
    now: Timestamp,
) -> SolutionVerdict {
    const FAILED: &str = "The browser check did not succeed. Press the button again.";
    if solution.len() > SOLUTION_LENGTH_MAX {
        return SolutionVerdict::Rejected(FAILED);
    }
    let Some(claims) = provider.verify(&keyed_digest.digest(PURPOSE, ""), solution) else {
        return SolutionVerdict::Rejected(FAILED);
    };
    if claims.page != page {
        return SolutionVerdict::Rejected(
            "This browser check belongs to another video. Press the button again.",
        );
    }
    // An expiry beyond the lifetime comes from a clock that was set back since: reject it.
    if claims.expires_at <= now || claims.expires_at > now.plus(LIFETIME) {
        return SolutionVerdict::Rejected("The browser check has expired. Press the button again.");
    }
    // The limit of one use lasts as long as the challenge is valid.
    let window_ms = u64::try_from(LIFETIME.as_millis()).unwrap_or(u64::MAX);
    SolutionVerdict::Accepted(LimitRequest::one(claims.id, 1, window_ms))
}

/// Errors for implementations of [`ChallengeProvider`].
impl ChallengeClaims {
    /// The error of a challenge that could not be made.
    #[cold]
    pub fn creation_error(reason: impl fmt::Display) -> Error {
        Error::unexpected(format!("a challenge could not be made: {reason}"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A provider whose challenges are their own solutions: `key|id|page|expires_at`.
    #[derive(Debug)]
    struct PlainChallenge;

    impl ChallengeProvider for PlainChallenge {
        fn challenge(&self, key: &str, claims: &ChallengeClaims) -> Result<String> {
            let ChallengeClaims { id, page, expires_at } = claims;
            Ok(format!("{key}|{id}|{page}|{}", expires_at.as_millis()))
        }

        fn verify(&self, key: &str, solution: &str) -> Option<ChallengeClaims> {
            let mut parts = solution.strip_prefix(key)?.strip_prefix('|')?.split('|');
            let (id, page, expires_at) = (parts.next()?, parts.next()?, parts.next()?.parse().ok()?);
            let expires_at = Timestamp::from_millis(expires_at);
            Some(ChallengeClaims { id: id.to_owned(), page: page.to_owned(), expires_at })
        }
    }

    #[test]
    fn challenge_solution_is_valid_for_own_page_and_lifetime() {
        let (keyed_digest, other) = (KeyedDigest::new(vec![1; 32]), KeyedDigest::new(vec![2; 32]));
        let now = Timestamp::from_millis(1_000_000_000_000);
        let made = |keyed_digest: &KeyedDigest, ends_in: i64| {
            let expires_at = Timestamp::from_millis(now.as_millis() + ends_in);
            let claims =
                ChallengeClaims { id: "challenge-7".to_owned(), page: "reels/A".to_owned(), expires_at };
            PlainChallenge.challenge(&keyed_digest.digest(PURPOSE, ""), &claims).unwrap()
        };
        let outcome = |page: &str, solution: &str| match check_claims(
            &PlainChallenge,
            &keyed_digest,
            page,
            solution,
            now,
        ) {
            SolutionVerdict::Accepted(request) => format!("{} {}", request.bucket, request.window_ms),
            SolutionVerdict::Rejected(reason) => reason.to_owned(),
        };
        assert_eq!(outcome("reels/A", &made(&keyed_digest, 1)), "challenge-7 600000");
        assert_eq!(outcome("reels/A", &made(&keyed_digest, 600_000)), "challenge-7 600000");
        for (page, solution, reason) in [
            ("reels/B", made(&keyed_digest, 1), "another video"),
            ("reels/A", made(&keyed_digest, 0), "has expired"),
            ("reels/A", made(&keyed_digest, -1), "has expired"),
            ("reels/A", made(&keyed_digest, 600_001), "has expired"),
            ("reels/A", made(&other, 1), "did not succeed"),
            ("reels/A", String::new(), "did not succeed"),
            ("reels/A", made(&keyed_digest, 1) + &"|".repeat(SOLUTION_LENGTH_MAX), "did not succeed"),
        ] {
            assert!(outcome(page, &solution).contains(reason), "{page} {solution}");
        }
    }
}
