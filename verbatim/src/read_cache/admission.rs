//! Admission filter: admits a form on its second request within the size of the cache.
//!
//! Most of a large archive is requested rarely. Caching such a form costs more than making it again: it evicts another
//! one, and its memory is not in the CPU cache. So a single pass over many videos evicts nothing.

use std::sync::atomic::{AtomicU64, Ordering};

/// Number of slots, which limits the recorded requests if the forms are small.
const SLOTS: usize = 8_192;
/// Sizes are counted in units of 256 bytes, so that 32 bits of units are a terabyte.
const UNIT_BITS: u32 = 8;

/// Recently requested forms, as 32 bits of a hash and the size of all forms requested before.
///
/// A request replaces another one in the same slot, and equal hashes count as equal forms. The effect is only that a
/// form is cached too late or too early.
#[derive(Debug)]
pub(super) struct AdmissionFilter {
    slots: Box<[AtomicU64]>,
    /// Total bytes of all recorded requests.
    bytes: AtomicU64,
    bytes_max: u64,
}

impl AdmissionFilter {
    pub(super) fn new(bytes_max: u64) -> Self {
        Self { slots: (0..SLOTS).map(|_| AtomicU64::new(0)).collect(), bytes: AtomicU64::new(0), bytes_max }
    }

    /// Whether the form with this hash was requested so recently that it would still fit; if not, records it.
    pub(super) fn admit(&self, hash: u64, bytes: u64) -> bool {
        let Some(slot) = self.slots.get(hash as usize % SLOTS) else { return false };
        let mark = hash >> 32;
        let before = (self.bytes.load(Ordering::Relaxed) >> UNIT_BITS) as u32;
        let known = slot.load(Ordering::Relaxed);
        let age = before.wrapping_sub(known as u32);
        if known >> 32 == mark && u64::from(age) << UNIT_BITS <= self.bytes_max {
            return true;
        }
        slot.store(mark << 32 | u64::from(before), Ordering::Relaxed);
        self.bytes.fetch_add(bytes, Ordering::Relaxed);
        false
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MIB: u64 = 1 << 20;

    /// A hash with its own mark, in the slot of this number.
    fn hash(number: u64) -> u64 {
        (number + 1) << 32 | number
    }

    #[test]
    fn admission_second_request_within_size_is_admitted() {
        let filter = AdmissionFilter::new(30 * MIB);
        assert!((1..=3).all(|number| !filter.admit(hash(number), 10 * MIB)));
        assert!((1..=3).all(|number| filter.admit(hash(number), 10 * MIB)));
        // The two oldest do not fit beside a form of twice the size.
        assert!(!filter.admit(hash(4), 20 * MIB));
        assert!(!filter.admit(hash(1), 10 * MIB));
        assert!(filter.admit(hash(4), 20 * MIB));
        assert!(filter.admit(hash(1), 10 * MIB));
    }

    #[test]
    fn admission_same_slot_replaces_other_request() {
        let filter = AdmissionFilter::new(30 * MIB);
        let (one, other) = (hash(1), hash(1 + SLOTS as u64));
        assert!(!filter.admit(one, MIB) && !filter.admit(other, MIB));
        assert!(!filter.admit(one, MIB) && filter.admit(one, MIB));
    }

    #[test]
    fn admission_pass_over_many_forms_admits_nothing() {
        let filter = AdmissionFilter::new(64 * MIB);
        for _ in 0..2 {
            assert!((0..100_000).all(|number| !filter.admit(hash(number), 16 << 10)));
        }
    }
}
