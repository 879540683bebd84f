//! What was asked for a moment ago, without what was answered.

use std::hash::{BuildHasher, Hash, RandomState};

/// How many are remembered at most: with what is small more would have room.
const COUNT: usize = 8_192;

/// What passed last, as much as would have had room.
///
/// What is known by the same place is forgotten, and what is known by the same hash taken for it: either is at worst kept
/// too late or too early.
#[derive(Debug, Default)]
pub(super) struct Passed {
    hasher: RandomState,
    /// Each by its hash, in the place that this gives it; none before the first passes.
    last: Vec<Pass>,
    /// The bytes of all that ever passed.
    bytes: u64,
}

#[derive(Clone, Copy, Debug, Default)]
struct Pass {
    name: u64,
    /// The bytes of all that had passed before.
    before: u64,
}

impl Passed {
    /// Whether this passed before, and so little since that it would still have room; if not, it has passed now.
    pub(super) fn again(&mut self, what: impl Hash, bytes: u64, bytes_max: u64) -> bool {
        if self.last.is_empty() {
            self.last = vec![Pass::default(); COUNT];
        }
        let name = self.hasher.hash_one(what);
        let Some(last) = self.last.get_mut(name as usize % COUNT) else { return false };
        if last.name == name && self.bytes.wrapping_sub(last.before) <= bytes_max {
            return true;
        }
        *last = Pass { name, before: self.bytes };
        self.bytes = self.bytes.wrapping_add(bytes);
        false
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_passed_among_the_last_passes_again() {
        let mut passed = Passed::default();
        assert!((1..=3).all(|name| !passed.again(name, 10, 30)));
        assert!((1..=3).all(|name| passed.again(name, 10, 30)));
        // The first two make room for one of twice the size.
        assert!(!passed.again(4, 20, 30));
        assert_eq!([3, 4, 1, 3].map(|name| passed.again(name, 10, 30)), [true, true, false, false]);
    }

    #[test]
    fn what_takes_nothing_is_bounded_too() {
        let mut passed = Passed::default();
        assert!((0..100_000).filter(|name| passed.again(name, 0, 0)).count() == 0);
        assert_eq!(passed.last.len(), COUNT);
        assert!(passed.again(99_999, 0, 0));
        let known = (0..100_000).filter(|name| passed.again(name, 0, 0)).count();
        assert!(known <= COUNT, "{known}");
    }
}
