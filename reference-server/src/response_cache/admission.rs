//! Admission filter of the response cache: admits content on its second request within a short time.
//!
//! Most of a large archive is requested rarely. Caching such a response costs more than building it again: it evicts
//! another entry, and its memory is not in the CPU cache.

use std::sync::atomic::{AtomicU32, Ordering};

/// Number of slots. A digest is overwritten after about as many other digests.
const SLOTS: usize = 4_096;

/// Recently requested content, as 32 bits of each digest.
#[derive(Debug)]
pub(super) struct AdmissionFilter {
    slots: Box<[AtomicU32]>,
}

impl Default for AdmissionFilter {
    fn default() -> Self {
        Self { slots: (0..SLOTS).map(|_| AtomicU32::new(0)).collect() }
    }
}

impl AdmissionFilter {
    /// Returns whether this content was requested recently, and records the request.
    ///
    /// A false positive, one in four billion, only takes cache space.
    pub(super) fn admit(&self, content_sha256: &[u8; 32]) -> bool {
        let [a, b, c, d, e, f, ..] = *content_sha256;
        let index = usize::from(u16::from_le_bytes([a, b])) % SLOTS;
        let mark = u32::from_le_bytes([c, d, e, f]);
        self.slots.get(index).is_some_and(|index| index.swap(mark, Ordering::Relaxed) == mark)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn digest(number: u32) -> [u8; 32] {
        let mut digest = [0; 32];
        digest[..2].copy_from_slice(&number.to_le_bytes()[..2]);
        digest[2..6].copy_from_slice(&(number + 1).to_le_bytes());
        digest
    }

    #[test]
    fn admission_second_request_is_admitted() {
        let filter = AdmissionFilter::default();
        assert!((0..1_000).all(|number| !filter.admit(&digest(number))));
        assert!((0..1_000).all(|number| filter.admit(&digest(number))));
    }

    #[test]
    fn admission_after_many_others_is_not_admitted() {
        let filter = AdmissionFilter::default();
        for number in 0..100_000 {
            assert!(!filter.admit(&digest(number)), "{number}");
        }
        assert!(!filter.admit(&digest(0)));
    }
}
