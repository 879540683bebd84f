//! The spends and holds that are nearly all there are: of one wallet's allowance, before its purchased credits or alone.

use transcript_core::ledger::{HoldRequest, Leg, Pool};

/// A request that an allowance with room answers by itself: the shortest statements know these, and no others.
#[derive(Clone, Copy)]
pub(crate) struct Plain<'a> {
    pub(crate) ask: &'a HoldRequest,
    pub(crate) leg: &'a Leg,
    /// The name of the allowance's bucket.
    pub(crate) bucket: &'a str,
    /// The allowance's limit, which the amount is not above.
    pub(crate) cap: u64,
}

impl<'a> Plain<'a> {
    /// None for what needs a statement that knows all pools of all legs.
    pub(crate) fn of(ask: &'a HoldRequest) -> Option<Self> {
        let [leg] = ask.legs.as_slice() else { return None };
        match leg.terms.pools.as_slice() {
            [Pool::Allowance { bucket, limit }] | [Pool::Allowance { bucket, limit }, Pool::Purchased]
                if (1..=*limit).contains(&leg.amount) =>
            {
                Some(Self { ask, leg, bucket, cap: *limit })
            }
            _ => None,
        }
    }
}
