//! Random numbers of a simulation, drawn only from its seed.

use std::sync::{Mutex, PoisonError};

use rand::{RngExt, SeedableRng, rngs::StdRng};
use transcript_core::Random;

/// A random stream. Each part of a world has its own, so that the draws of one part do not change those of
/// another.
#[derive(Debug)]
pub(crate) struct SeededRng(Mutex<StdRng>);

impl SeededRng {
    /// The stream with this number of a seed.
    pub(crate) fn new(seed: u64, stream: u64) -> Self {
        Self(Mutex::new(StdRng::seed_from_u64(seed.wrapping_mul(64).wrapping_add(stream))))
    }

    /// A number below `bound`, which is at least 1.
    pub(crate) fn below(&self, bound: u64) -> u64 {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).random_range(0..bound)
    }

    /// True with a probability of `permille` / 1,000.
    pub(crate) fn chance(&self, permille: u64) -> bool {
        self.below(1_000) < permille
    }

    /// A random element.
    pub(crate) fn pick<'a, T>(&self, choices: &'a [T]) -> &'a T {
        &choices[self.below(choices.len() as u64) as usize]
    }
}

impl Random for SeededRng {
    fn bytes(&self, count: u32) -> Vec<u8> {
        (0..count).map(|_| self.below(256) as u8).collect()
    }
}
