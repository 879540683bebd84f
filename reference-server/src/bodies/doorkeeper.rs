//! Who is let into the cache of ready bodies: what was asked for a short while ago already.
//!
//! Most of a large archive is asked for once in a long while. To keep that costs more than to make it again:
//! something else has to go, and its memory is cold.

use std::sync::atomic::{AtomicU32, Ordering};

/// How many places there are. What comes back after about as many others is not remembered any more.
const PLACES: usize = 4_096;

/// What was asked for lately, by a few bits of each content's digest.
#[derive(Debug)]
pub(super) struct Doorkeeper {
    places: Box<[AtomicU32]>,
}

impl Default for Doorkeeper {
    fn default() -> Self {
        Self { places: (0..PLACES).map(|_| AtomicU32::new(0)).collect() }
    }
}

impl Doorkeeper {
    /// Whether this content was asked for lately; from now on it was. A mistake, in one of four billion
    /// cases, costs nothing but room.
    pub(super) fn has_seen(&self, content_sha256: &[u8; 32]) -> bool {
        let [a, b, c, d, e, f, ..] = *content_sha256;
        let place = usize::from(u16::from_le_bytes([a, b])) % PLACES;
        let mark = u32::from_le_bytes([c, d, e, f]);
        self.places.get(place).is_some_and(|place| place.swap(mark, Ordering::Relaxed) == mark)
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
    fn what_comes_back_is_let_in() {
        let doorkeeper = Doorkeeper::default();
        assert!((0..1_000).all(|number| !doorkeeper.has_seen(&digest(number))));
        assert!((0..1_000).all(|number| doorkeeper.has_seen(&digest(number))));
    }

    #[test]
    fn what_comes_back_after_many_others_is_not() {
        let doorkeeper = Doorkeeper::default();
        for number in 0..100_000 {
            assert!(!doorkeeper.has_seen(&digest(number)), "{number}");
        }
        assert!(!doorkeeper.has_seen(&digest(0)));
    }
}
