//! Stripe: our client and the rules behind it, against a stand-in that remembers, and both against what
//! Stripe itself publishes.

#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

mod changes;
pub(crate) mod fake;
mod packs;
mod plans;
pub(crate) mod real;
mod storm;
pub(crate) mod till;
mod twice;
