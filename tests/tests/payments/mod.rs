//! Payments: whatever fails, and in whatever order events come, everyone gets what they paid for, once.

#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

mod nth_call;
mod permutations;
pub(crate) mod provider;
mod rules;
pub(crate) mod shop;
