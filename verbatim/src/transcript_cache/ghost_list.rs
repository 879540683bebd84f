//! Ghost list: recently requested keys without values.

use std::hash::{BuildHasher, Hash, RandomState};

/// Number of slots, which limits the keys if the transcripts are small.
const SLOTS: usize = 8_192;

/// The most recently requested keys: as many as have transcripts that would fit into the cache.
///
/// A key replaces another one in the same slot, and keys with the same hash count as equal. The effect is only that an
/// entry is cached too late or too early.
#[derive(Debug, Default)]
pub(super) struct GhostList {
    hasher: RandomState,
    /// One slot per hash; empty before the first key.
    slots: Vec<GhostEntry>,
    /// Total bytes of all keys ever requested.
    bytes: u64,
}

#[derive(Clone, Copy, Debug, Default)]
struct GhostEntry {
    hash: u64,
    /// Total bytes of all keys requested before this one.
    before: u64,
}

impl GhostList {
    /// Whether the key was requested so recently that its entry would still fit; if not, records it.
    pub(super) fn check_and_record(&mut self, key: impl Hash, bytes: u64, bytes_max: u64) -> bool {
        if self.slots.is_empty() {
            self.slots = vec![GhostEntry::default(); SLOTS];
        }
        let hash = self.hasher.hash_one(key);
        let Some(slot) = self.slots.get_mut(hash as usize % SLOTS) else { return false };
        if slot.hash == hash && self.bytes.wrapping_sub(slot.before) <= bytes_max {
            return true;
        }
        *slot = GhostEntry { hash, before: self.bytes };
        self.bytes = self.bytes.wrapping_add(bytes);
        false
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ghost_list_finds_recent_keys_only() {
        let mut ghosts = GhostList::default();
        assert!((1..=3).all(|hash| !ghosts.check_and_record(hash, 10, 30)));
        assert!((1..=3).all(|hash| ghosts.check_and_record(hash, 10, 30)));
        // The two oldest keys do not fit beside an entry of twice the size.
        assert!(!ghosts.check_and_record(4, 20, 30));
        assert_eq!(
            [3, 4, 1, 3].map(|hash| ghosts.check_and_record(hash, 10, 30)),
            [true, true, false, false]
        );
    }

    #[test]
    fn ghost_list_of_empty_entries_is_bounded() {
        let mut ghosts = GhostList::default();
        assert!((0..100_000).filter(|hash| ghosts.check_and_record(hash, 0, 0)).count() == 0);
        assert_eq!(ghosts.slots.len(), SLOTS);
        assert!(ghosts.check_and_record(99_999, 0, 0));
        let known = (0..100_000).filter(|hash| ghosts.check_and_record(hash, 0, 0)).count();
        assert!(known <= SLOTS, "{known}");
    }
}
