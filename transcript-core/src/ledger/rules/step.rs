//! Steps: operations as values, with the rows that they need.

use super::{HoldRow, HoldRowState, LedgerRows, TransferRow, bucket_name};
use crate::{
    error::Result,
    ids::HoldId,
    ledger::{
        GrantOutcome, GrantRequest, HoldOutcome, HoldRequest, HoldState, RevokeOutcome, RevokeRequest,
        SettleOutcome, SettleRequest,
    },
    time::Timestamp,
};

/// An operation of the ledger as a value.
pub trait LedgerStep: Send + Sync + 'static {
    /// Outcome of the operation.
    type Outcome: Send;

    /// Checks the bounds of the request; every store calls it first.
    ///
    /// # Errors
    /// [`crate::ErrorKind::Invalid`] as the `check` method of the request.
    fn check(&self) -> Result<()> {
        Ok(())
    }

    /// Returns the keys of the rows that the step needs.
    fn keys(&self) -> RowKeys<'_>;

    /// Applies the step to rows that contain those of [`LedgerStep::keys`].
    ///
    /// A refused step may change rows too: a refused hold expires the overdue holds of its wallets.
    ///
    /// # Errors
    /// As the operation of [`LedgerRows`].
    fn apply(&self, rows: &mut LedgerRows) -> Result<Self::Outcome>;
}

/// Keys of the rows that a step needs.
///
/// With each loaded hold that is open, its pools are needed too, and with each transfer the purchased credits of its
/// wallet ([`RowKeys::pools_with`]).
#[derive(Debug, Default)]
pub struct RowKeys<'a> {
    /// The hold with this id.
    pub hold: Option<&'a str>,
    /// All holds of these wallets that are overdue at `now`.
    pub wallets: Vec<&'a str>,
    /// At most this many holds of any wallet that are overdue at `now`, the longest overdue first.
    pub limit: u32,
    /// Current time in milliseconds.
    pub now: i64,
    /// These pools: wallet and bucket.
    pub pools: Vec<(&'a str, &'a str)>,
    /// The transfers with these ids.
    pub transfers: Vec<&'a str>,
}

impl<'a> RowKeys<'a> {
    /// Returns all needed pools, sorted: wallet and bucket.
    pub fn pools_with(&self, holds: &'a [HoldRow], transfers: &'a [TransferRow]) -> Vec<(&'a str, &'a str)> {
        let mut pools = self.pools.clone();
        for leg in holds.iter().filter(|hold| hold.state == HoldRowState::Open).flat_map(|hold| &hold.legs) {
            pools.extend(leg.shares.iter().map(|share| (leg.wallet.as_str(), share.bucket.as_str())));
        }
        pools.extend(transfers.iter().map(|transfer| (transfer.wallet.as_str(), "")));
        pools.sort_unstable();
        pools.dedup();
        pools
    }
}

/// A hold; `spend` settles it in full at once.
#[derive(Clone, Debug)]
pub struct HoldStep {
    /// The request.
    pub request: HoldRequest,
    /// Whether the step is [`super::super::Ledger::spend`].
    pub spend: bool,
}

impl LedgerStep for HoldStep {
    type Outcome = HoldOutcome;

    fn check(&self) -> Result<()> {
        self.request.check()
    }

    fn keys(&self) -> RowKeys<'_> {
        let legs = &self.request.legs;
        let pools = legs
            .iter()
            .flat_map(|leg| leg.terms.pools.iter().map(|pool| (leg.wallet.as_str(), bucket_name(pool))));
        RowKeys {
            hold: Some(self.request.id.as_str()),
            wallets: legs.iter().map(|leg| leg.wallet.as_str()).collect(),
            now: self.request.now.as_millis(),
            pools: pools.collect(),
            ..RowKeys::default()
        }
    }

    fn apply(&self, rows: &mut LedgerRows) -> Result<HoldOutcome> {
        if self.spend { rows.spend(&self.request) } else { rows.hold(&self.request) }
    }
}

impl LedgerStep for SettleRequest {
    type Outcome = SettleOutcome;

    fn keys(&self) -> RowKeys<'_> {
        RowKeys { hold: Some(self.id.as_str()), now: self.now.as_millis(), ..RowKeys::default() }
    }

    fn apply(&self, rows: &mut LedgerRows) -> Result<SettleOutcome> {
        rows.settle(self)
    }
}

/// Request to extend an open hold.
#[derive(Clone, Debug)]
pub struct ExtendRequest {
    /// The hold.
    pub id: HoldId,
    /// New expiry; an earlier one than that of the hold changes nothing.
    pub expires_at: Timestamp,
}

impl LedgerStep for ExtendRequest {
    type Outcome = HoldState;

    fn keys(&self) -> RowKeys<'_> {
        RowKeys { hold: Some(self.id.as_str()), ..RowKeys::default() }
    }

    fn apply(&self, rows: &mut LedgerRows) -> Result<HoldState> {
        rows.extend(self)
    }
}

impl LedgerStep for GrantRequest {
    type Outcome = GrantOutcome;

    fn check(&self) -> Result<()> {
        Self::check(self)
    }

    fn keys(&self) -> RowKeys<'_> {
        RowKeys {
            now: self.now.as_millis(),
            pools: vec![(self.wallet.as_str(), "")],
            transfers: vec![self.id.as_str()],
            ..RowKeys::default()
        }
    }

    fn apply(&self, rows: &mut LedgerRows) -> Result<GrantOutcome> {
        rows.grant(self)
    }
}

impl LedgerStep for RevokeRequest {
    type Outcome = RevokeOutcome;

    fn check(&self) -> Result<()> {
        Self::check(self)
    }

    fn keys(&self) -> RowKeys<'_> {
        RowKeys {
            now: self.now.as_millis(),
            transfers: vec![self.id.as_str(), self.grant.as_str()],
            ..RowKeys::default()
        }
    }

    fn apply(&self, rows: &mut LedgerRows) -> Result<RevokeOutcome> {
        rows.revoke(self)
    }
}

/// Request to expire overdue holds.
#[derive(Clone, Debug)]
pub struct ExpireRequest {
    /// Current time.
    pub now: Timestamp,
    /// Maximum number of holds to expire.
    pub limit: u32,
}

impl LedgerStep for ExpireRequest {
    type Outcome = u32;

    fn keys(&self) -> RowKeys<'_> {
        RowKeys { limit: self.limit, now: self.now.as_millis(), ..RowKeys::default() }
    }

    fn apply(&self, rows: &mut LedgerRows) -> Result<u32> {
        rows.expire(self.now, self.limit)
    }
}
