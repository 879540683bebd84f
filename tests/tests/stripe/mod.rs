//! Stripe: our client and the payment rules against a stateful fake, and both against Stripe's own tools
//! and API description.

#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

mod changes;
mod double_payment;
mod event_storm;
pub(crate) mod fake;
pub(crate) mod fixture;
mod packs;
mod plans;
pub(crate) mod real;
