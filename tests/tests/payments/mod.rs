//! Payments: with any failure and any order of events, each paid item is fulfilled exactly once.

#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

pub(crate) mod fixture;
mod nth_call;
mod permutations;
pub(crate) mod provider;
mod rules;
