//! Spends and holds that one wallet's allowance covers: nearly all requests.

use transcript_core::ledger::{HoldRequest, Leg, Pool};

/// A hold or spend with one leg, which the wallet's allowance can cover without purchased credits.
///
/// The statements of the fast path support only such requests.
#[derive(Clone, Copy)]
pub(crate) struct AllowanceSpend<'a> {
    pub(crate) request: &'a HoldRequest,
    pub(crate) leg: &'a Leg,
    /// The bucket of the allowance.
    pub(crate) bucket: &'a str,
    /// The allowance's limit. The amount does not exceed it.
    pub(crate) cap: u64,
}

impl<'a> AllowanceSpend<'a> {
    /// Checks whether the request has this form. `None` if it needs a statement for several pools or legs.
    pub(crate) fn for_request(request: &'a HoldRequest) -> Option<Self> {
        let [leg] = request.legs.as_slice() else { return None };
        match leg.terms.pools.as_slice() {
            [Pool::Allowance { bucket, limit }] | [Pool::Allowance { bucket, limit }, Pool::Purchased]
                if (1..=*limit).contains(&leg.amount) =>
            {
                Some(Self { request, leg, bucket, cap: *limit })
            }
            _ => None,
        }
    }
}
