//! Whether a person asks: a challenge that costs a machine some work, and a person one button (design 4).
//!
//! A challenge is signed, made for one page, ends after some minutes and is good for one transcript. How the work is
//! asked for and looked at, a [`HumanCheck`] knows; what a challenge is worth, the look-up does.

use std::{fmt, sync::Arc, time::Duration};

use super::{Lookup, visitor::Seal};
use crate::{
    error::{Error, Result},
    ids::random_name,
    limits::Take,
    time::Timestamp,
    video::VideoLink,
};

/// For how long a challenge can be solved and sent.
const LIFETIME: Duration = Duration::from_secs(10 * 60);
/// The longest solution that is looked at, in bytes.
const SOLUTION_LENGTH_MAX: usize = 4 * 1024;
/// What the key is for with which challenges are signed.
const PURPOSE: &str = "challenge";

/// What a challenge is made for. All of it is signed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Challenged {
    /// The challenge's own name: nobody else's, and good once.
    pub id: String,
    /// The page it is for: `{platform}/{id}`.
    pub page: String,
    /// Until when it can be used.
    pub until: Timestamp,
}

/// Makes challenges for visitors' browsers, and looks at what they send back.
pub trait HumanCheck: fmt::Debug + Send + Sync + 'static {
    /// A challenge as the page's script takes it, signed with a key.
    ///
    /// **Behaviour**: it holds all of `challenged`, such that nobody without the key can make another one. It has no
    /// end of its own: `until` is looked at by the caller, whose clock it is.
    ///
    /// # Errors
    /// [`crate::ErrorKind::Unexpected`] when none can be made.
    fn challenge(&self, key: &str, challenged: &Challenged) -> Result<String>;

    /// What a solved challenge was made for; none when it was not signed with this key, or is not solved.
    ///
    /// **Behaviour**: never panics, whatever the text is. It has at most 4,096 bytes.
    fn solved(&self, key: &str, solution: &str) -> Option<Challenged>;
}

/// What a solution is worth.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Proven {
    /// It is good; using it up takes this.
    Good(Take),
    /// It is worth nothing, and why.
    Nothing(&'static str),
}

impl Lookup {
    /// The same look-up with a check that tells people from machines; without one, visitors get what is archived
    /// and nothing else.
    #[must_use]
    pub fn with_human_check(self, check: Arc<dyn HumanCheck>) -> Self {
        Self { human: Some(check), ..self }
    }

    /// Whether visitors of the watch page can have anything transcribed here.
    pub fn serves_visitors(&self) -> bool {
        let options = &self.parts.options;
        let allowances =
            [options.visitor_per_day, options.visitor_per_network_per_day, options.service_per_day];
        self.human.is_some() && !allowances.contains(&0)
    }

    /// A challenge for the page of a video or short link; none where visitors are not served. Nothing is stored.
    ///
    /// # Errors
    /// As [`HumanCheck::challenge`].
    pub fn challenge(&self, link: &VideoLink) -> Result<Option<String>> {
        let Some(check) = self.human.as_ref().filter(|_| self.serves_visitors()) else { return Ok(None) };
        let id = random_name(self.parts.random.as_ref(), PURPOSE);
        let until = self.parts.clock.now().plus(LIFETIME);
        let challenged = Challenged { id, page: page(link), until };
        check.challenge(&self.seal.digest(PURPOSE, ""), &challenged).map(Some)
    }

    /// What a solution is worth on the page of a link. It is used up when the take is taken.
    pub(super) fn proven(&self, link: &VideoLink, solution: &str, now: Timestamp) -> Proven {
        let Some(check) = self.human.as_ref().filter(|_| self.serves_visitors()) else {
            return Proven::Nothing("Videos are transcribed here for callers with an API key only.");
        };
        judged(check.as_ref(), &self.seal, &page(link), solution, now)
    }
}

/// The name of a page within `watch/`.
fn page(link: &VideoLink) -> String {
    match link {
        VideoLink::Video(video) => video.to_string(),
        VideoLink::Short(link) => format!("{}/{}", link.platform(), link.name()),
    }
}

fn judged(check: &dyn HumanCheck, seal: &Seal, page: &str, solution: &str, now: Timestamp) -> Proven {
    const FAILED: &str = "The check of your browser did not succeed: please press the button again.";
    if solution.len() > SOLUTION_LENGTH_MAX {
        return Proven::Nothing(FAILED);
    }
    let Some(challenged) = check.solved(&seal.digest(PURPOSE, ""), solution) else {
        return Proven::Nothing(FAILED);
    };
    if challenged.page != page {
        return Proven::Nothing("That check was made for another video: please press the button again.");
    }
    // What ends later than any that is made was made by a clock that has stepped back since: it is not believed longer.
    if challenged.until <= now || challenged.until > now.plus(LIFETIME) {
        return Proven::Nothing("The check of your browser came too late: please press the button again.");
    }
    // Used once: remembered for as long as it could be used.
    let per_ms = u64::try_from(LIFETIME.as_millis()).unwrap_or(u64::MAX);
    Proven::Good(Take { bucket: challenged.id, count: 1, per_ms, cost: 1 })
}

/// An error of a check, for those who implement one.
impl Challenged {
    /// What went wrong while a challenge was made.
    #[cold]
    pub fn not_made(why: impl fmt::Display) -> Error {
        Error::unexpected(format!("a challenge could not be made: {why}"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A check whose challenges are their own solutions: `key|id|page|until`.
    #[derive(Debug)]
    struct Plain;

    impl HumanCheck for Plain {
        fn challenge(&self, key: &str, challenged: &Challenged) -> Result<String> {
            let Challenged { id, page, until } = challenged;
            Ok(format!("{key}|{id}|{page}|{}", until.as_millis()))
        }

        fn solved(&self, key: &str, solution: &str) -> Option<Challenged> {
            let mut parts = solution.strip_prefix(key)?.strip_prefix('|')?.split('|');
            let (id, page, until) = (parts.next()?, parts.next()?, parts.next()?.parse().ok()?);
            let until = Timestamp::from_millis(until);
            Some(Challenged { id: id.to_owned(), page: page.to_owned(), until })
        }
    }

    #[test]
    fn a_solution_is_good_for_its_page_and_its_time() {
        let (seal, other) = (Seal::new(vec![1; 32]), Seal::new(vec![2; 32]));
        let now = Timestamp::from_millis(1_000_000_000_000);
        let made = |seal: &Seal, ends_in: i64| {
            let until = Timestamp::from_millis(now.as_millis() + ends_in);
            let challenged = Challenged { id: "challenge-7".to_owned(), page: "reels/A".to_owned(), until };
            Plain.challenge(&seal.digest(PURPOSE, ""), &challenged).unwrap()
        };
        let judge = |page: &str, solution: &str| match judged(&Plain, &seal, page, solution, now) {
            Proven::Good(take) => format!("{} {}", take.bucket, take.per_ms),
            Proven::Nothing(why) => why.to_owned(),
        };
        assert_eq!(judge("reels/A", &made(&seal, 1)), "challenge-7 600000");
        assert_eq!(judge("reels/A", &made(&seal, 600_000)), "challenge-7 600000");
        for (page, solution, why) in [
            ("reels/B", made(&seal, 1), "another video"),
            ("reels/A", made(&seal, 0), "too late"),
            ("reels/A", made(&seal, -1), "too late"),
            ("reels/A", made(&seal, 600_001), "too late"),
            ("reels/A", made(&other, 1), "did not succeed"),
            ("reels/A", String::new(), "did not succeed"),
            ("reels/A", made(&seal, 1) + &"|".repeat(SOLUTION_LENGTH_MAX), "did not succeed"),
        ] {
            assert!(judge(page, &solution).contains(why), "{page} {solution}");
        }
    }
}
