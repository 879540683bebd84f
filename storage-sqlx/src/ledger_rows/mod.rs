//! Ledger operations on loaded rows, independent of the database.
//!
//! The database loads the [`LedgerRows`] of an operation with one statement, the operation runs here with the
//! core's arithmetic, and a second statement stores the changes. The rows travel as JSON text in both
//! directions, so an operation of any size takes two statements.

mod allowance_spend;
mod rows;

use serde::Serialize;
use transcript_core::{
    Error, Result, Timestamp,
    ids::WalletId,
    ledger::{
        Balance, EntryKind, GrantOutcome, GrantRequest, HoldOutcome, HoldRequest, HoldState, Leg, Pool,
        PoolBalance, RevokeOutcome, RevokeRequest, SettleOutcome, SettleRequest, Terms,
        allocate::{self, RevokedAmount},
    },
};

pub(crate) use allowance_spend::AllowanceSpend;
#[cfg(not(feature = "postgres"))]
use rows::cap_of;
#[cfg(feature = "postgres")]
pub(crate) use rows::cap_of;
pub(crate) use rows::{
    EntryRow, HoldRow, HoldRowState, LegRow, PoolRow, ShareRow, TransferKind, TransferRow, bucket_name,
    kind_of, pool_of,
};
use rows::{kind_name, leg_row};

use crate::error::corrupt;

/// Keys of the rows that an operation needs.
#[derive(Debug, Default, Serialize)]
pub(crate) struct RowKeys<'a> {
    /// The hold with this id, and its pools.
    pub(crate) hold: Option<&'a str>,
    /// The holds of these wallets that are overdue at `now`, and their pools.
    pub(crate) wallets: Vec<&'a str>,
    /// At most this many overdue holds of any wallet, the longest overdue first, and their pools.
    pub(crate) limit: u32,
    /// The current time.
    pub(crate) now: i64,
    /// These pools: wallet and bucket.
    pub(crate) pools: Vec<(&'a str, &'a str)>,
    /// The transfers with these ids, and the purchased credits of their wallets.
    pub(crate) transfers: Vec<&'a str>,
}

impl<'a> RowKeys<'a> {
    /// The keys of the rows that a hold or spend request needs.
    pub(crate) fn for_request(request: &'a HoldRequest) -> Self {
        let pools = request
            .legs
            .iter()
            .flat_map(|leg| leg.terms.pools.iter().map(|pool| (leg.wallet.as_str(), bucket_name(pool))));
        Self {
            hold: Some(request.id.as_str()),
            wallets: request.legs.iter().map(|leg| leg.wallet.as_str()).collect(),
            now: request.now.as_millis(),
            pools: pools.collect(),
            ..Self::default()
        }
    }
}

/// The rows of an operation, with its changes.
#[derive(Debug, Default)]
pub(crate) struct LedgerRows {
    pools: Vec<PoolRow>,
    holds: Vec<HoldRow>,
    transfers: Vec<TransferRow>,
    entries: Vec<EntryRow>,
}

/// The changed rows of an operation, to store.
#[derive(Debug, Serialize)]
pub(crate) struct LedgerChanges<'a> {
    pub(crate) pools: Vec<&'a PoolRow>,
    pub(crate) holds: Vec<&'a HoldRow>,
    pub(crate) transfers: Vec<&'a TransferRow>,
    pub(crate) entries: &'a [EntryRow],
}

/// The cause that an entry records.
struct EntryCause<'a> {
    at: Timestamp,
    cause: &'a str,
    memo: &'a str,
}

/// A wallet's balance under these terms, from the stored rows.
pub(crate) fn balance(rows: &[PoolRow], wallet: &WalletId, terms: &Terms) -> Balance {
    let pools = terms.pools.iter().map(|pool| {
        let stored = rows.iter().find(|row| row.is(wallet.as_str(), bucket_name(pool)));
        let fresh = PoolBalance::unused(pool.clone());
        stored.map_or(fresh, |row| PoolBalance { pool: pool.clone(), ..row.balance() })
    });
    Balance { wallet: wallet.clone(), pools: pools.collect() }
}

#[cfg_attr(
    not(feature = "sqlite"),
    expect(dead_code, reason = "on PostgreSQL most operations are SQL statements")
)]
impl LedgerRows {
    /// Parses three JSON texts: pools, holds and transfers.
    pub(crate) fn read(pools: &str, holds: &str, transfers: &str) -> Result<Self> {
        let unreadable =
            |error: serde_json::Error| corrupt(format!("a row of the ledger is damaged: {error}"));
        Ok(Self {
            pools: serde_json::from_str(pools).map_err(unreadable)?,
            holds: serde_json::from_str(holds).map_err(unreadable)?,
            transfers: serde_json::from_str(transfers).map_err(unreadable)?,
            entries: Vec::new(),
        })
    }

    /// Builds from decoded rows.
    #[cfg(feature = "postgres")]
    pub(crate) fn from_rows(pools: Vec<PoolRow>, holds: Vec<HoldRow>, transfers: Vec<TransferRow>) -> Self {
        Self { pools, holds, transfers, entries: Vec::new() }
    }

    /// Builds for a new spend of wallets with these pools and no overdue hold.
    pub(crate) fn from_pools(pools: Vec<PoolRow>) -> Self {
        Self { pools, ..Self::default() }
    }

    /// The pools, holds and entries in their current state.
    pub(crate) fn into_rows(self) -> (Vec<PoolRow>, Vec<HoldRow>, Vec<EntryRow>) {
        (self.pools, self.holds, self.entries)
    }

    /// The changes since loading. `None` if there are none.
    pub(crate) fn changes(&self) -> Option<LedgerChanges<'_>> {
        let changes = LedgerChanges {
            pools: self.pools.iter().filter(|row| row.touched).collect(),
            holds: self.holds.iter().filter(|row| row.touched).collect(),
            transfers: self.transfers.iter().filter(|row| row.touched).collect(),
            entries: &self.entries,
        };
        let nothing = changes.pools.is_empty() && changes.holds.is_empty() && changes.transfers.is_empty();
        (!nothing).then_some(changes)
    }

    fn balances(&self, legs: &[Leg]) -> Vec<Balance> {
        legs.iter().map(|leg| balance(&self.pools, &leg.wallet, &leg.terms)).collect()
    }

    /// Changes one pool and writes the entry.
    fn apply_entry(
        &mut self,
        step: &EntryCause<'_>,
        wallet: &str,
        pool: &Pool,
        kind: EntryKind,
        amount: u64,
    ) -> Result<()> {
        let shortfall = if let EntryKind::Revoked { shortfall } = kind { shortfall } else { 0 };
        if amount == 0 && shortfall == 0 {
            return Ok(());
        }
        let bucket = bucket_name(pool);
        let index = self.pools.iter().position(|row| row.is(wallet, bucket)).unwrap_or_else(|| {
            self.pools.push(PoolRow::fresh(wallet, pool));
            self.pools.len() - 1
        });
        let row = &mut self.pools[index];
        row.apply(kind, amount).ok_or_else(|| corrupt("a balance of the ledger contradicts its holds"))?;
        row.touched = true;
        if matches!(kind, EntryKind::Held | EntryKind::Charged) {
            row.cap = cap_of(pool);
        }
        self.entries.push(EntryRow {
            at: step.at.as_millis(),
            wallet: wallet.to_owned(),
            bucket: bucket.to_owned(),
            cap: row.cap,
            kind: kind_name(kind),
            amount,
            shortfall,
            cause: step.cause.to_owned(),
            memo: step.memo.to_owned(),
        });
        Ok(())
    }

    /// Holds, after expiring the overdue holds of the wallets.
    pub(crate) fn hold(&mut self, request: &HoldRequest) -> Result<HoldOutcome> {
        self.apply_legs(request, EntryKind::Held, HoldRowState::Open)
    }

    /// Holds and settles in full.
    pub(crate) fn spend(&mut self, request: &HoldRequest) -> Result<HoldOutcome> {
        self.apply_legs(request, EntryKind::Charged, HoldRowState::Closed)
    }

    /// Takes the amounts of all legs or none, with entries of this kind and a hold in this state.
    fn apply_legs(
        &mut self,
        request: &HoldRequest,
        kind: EntryKind,
        state: HoldRowState,
    ) -> Result<HoldOutcome> {
        self.expire(request.now, |leg| {
            request.legs.iter().any(|requested| requested.wallet.as_str() == leg.wallet)
        })?;
        if let Some(known) = self.holds.iter().find(|row| row.id == request.id.as_str()) {
            let same = known.legs.len() == request.legs.len()
                && known.legs.iter().zip(&request.legs).all(|(held, leg)| held.is_of(leg));
            return Ok(if same {
                HoldOutcome::Exists { state: known.state(), balances: self.balances(&request.legs) }
            } else {
                HoldOutcome::Conflict
            });
        }
        let mut legs = Vec::with_capacity(request.legs.len());
        for (leg, index) in request.legs.iter().zip(0..) {
            let balance = balance(&self.pools, &leg.wallet, &leg.terms);
            let Some(shares) = allocate::allocate(&balance.pools, leg.amount) else {
                return Ok(HoldOutcome::Insufficient { leg: index, balance });
            };
            legs.push((leg, shares));
        }
        let step = EntryCause { at: request.now, cause: request.id.as_str(), memo: &request.memo };
        for (leg, shares) in &legs {
            for share in shares {
                self.apply_entry(&step, leg.wallet.as_str(), &share.pool, kind, share.amount)?;
            }
        }
        let spent = |leg: &Leg| if state == HoldRowState::Closed { leg.amount } else { 0 };
        self.holds.push(HoldRow {
            id: request.id.as_str().to_owned(),
            state,
            expires_at: request.expires_at.as_millis(),
            memo: request.memo.clone(),
            legs: legs.into_iter().map(|(leg, shares)| leg_row(leg, shares, spent(leg))).collect(),
            touched: true,
        });
        Ok(HoldOutcome::Held { balances: self.balances(&request.legs) })
    }

    /// Settles a hold.
    pub(crate) fn settle(&mut self, request: &SettleRequest) -> Result<SettleOutcome> {
        let Some(hold) = self.holds.iter_mut().find(|row| row.id == request.id.as_str()) else {
            return Ok(SettleOutcome::HoldNotFound);
        };
        if hold.state != HoldRowState::Open {
            return Ok(SettleOutcome::Exists { state: hold.state() });
        }
        if request.spent.len() != hold.legs.len() {
            return Err(Error::invalid("a settlement must have one amount for each leg of its hold"));
        }
        let mut settled = Vec::with_capacity(hold.legs.len());
        for (leg, spent) in hold.legs.iter_mut().zip(&request.spent) {
            let shares = allocate::settle(&leg.shares(), *spent)
                .ok_or_else(|| Error::invalid("a settlement must not spend more than its leg holds"))?;
            leg.spent = *spent;
            settled.push((leg.wallet.clone(), shares));
        }
        hold.state = HoldRowState::Closed;
        hold.touched = true;
        let memo = hold.memo.clone();
        let step = EntryCause { at: request.now, cause: request.id.as_str(), memo: &memo };
        let mut balances = Vec::with_capacity(settled.len());
        for (wallet, shares) in settled {
            for share in &shares {
                self.apply_entry(&step, &wallet, &share.pool, EntryKind::Spent, share.spent)?;
                self.apply_entry(&step, &wallet, &share.pool, EntryKind::Returned, share.returned)?;
            }
            balances.push(self.stored_balance(wallet, shares.iter().map(|share| &share.pool)));
        }
        Ok(SettleOutcome::Settled { balances })
    }

    /// The balance of a wallet's pools, each with its last stored limit.
    fn stored_balance<'a>(&self, wallet: String, pools: impl Iterator<Item = &'a Pool>) -> Balance {
        let stored = |pool| self.pools.iter().find(|row| row.is(&wallet, bucket_name(pool)));
        let pools = pools.filter_map(stored).map(PoolRow::balance).collect();
        Balance { wallet: WalletId::new(wallet), pools }
    }

    /// Expires the overdue holds with a matching leg; returns their number.
    fn expire(&mut self, now: Timestamp, wanted: impl Fn(&LegRow) -> bool) -> Result<u32> {
        self.holds.sort_by(|a, b| (a.expires_at, &a.id).cmp(&(b.expires_at, &b.id)));
        let mut holds = std::mem::take(&mut self.holds);
        let mut count = 0;
        for hold in holds.iter_mut().filter(|hold| hold.is_overdue(now) && hold.legs.iter().any(&wanted)) {
            let step = EntryCause { at: now, cause: &hold.id, memo: &hold.memo };
            for leg in &hold.legs {
                for share in leg.shares() {
                    self.apply_entry(&step, &leg.wallet, &share.pool, EntryKind::Expired, share.amount)?;
                }
            }
            hold.state = HoldRowState::Expired;
            hold.touched = true;
            count += 1;
        }
        self.holds = holds;
        Ok(count)
    }

    /// Expires every loaded overdue hold; returns their number.
    pub(crate) fn expire_all(&mut self, now: Timestamp) -> Result<u32> {
        self.expire(now, |_| true)
    }

    /// Extends the expiry of the loaded hold. `None` if there is no hold.
    pub(crate) fn extend(&mut self, until: Timestamp) -> Option<HoldState> {
        let hold = self.holds.first_mut()?;
        if hold.state == HoldRowState::Open && until.as_millis() > hold.expires_at {
            hold.expires_at = until.as_millis();
            hold.touched = true;
        }
        Some(hold.state())
    }

    /// Adds purchased credits.
    pub(crate) fn grant(&mut self, request: &GrantRequest) -> Result<GrantOutcome> {
        let (id, wallet) = (request.id.as_str(), request.wallet.as_str());
        if let Some(known) = self.transfers.iter().find(|row| row.id == id) {
            let same =
                known.kind == TransferKind::Grant && known.wallet == wallet && known.amount == request.amount;
            return Ok(if same { GrantOutcome::Exists } else { GrantOutcome::Conflict });
        }
        let granted = self.pools.iter().find(|row| row.is(wallet, "")).map_or(0, |row| row.granted);
        if granted.saturating_add(request.amount) > i64::MAX as u64 {
            return Err(Error::invalid("a grant would exceed the limit of a wallet: 2^63 - 1 credits"));
        }
        let step = EntryCause { at: request.now, cause: id, memo: &request.memo };
        self.apply_entry(&step, wallet, &Pool::Purchased, EntryKind::Granted, request.amount)?;
        self.transfers.push(TransferRow {
            id: id.to_owned(),
            kind: TransferKind::Grant,
            wallet: wallet.to_owned(),
            of_grant: id.to_owned(),
            amount: request.amount,
            taken: 0,
            shortfall: 0,
            touched: true,
        });
        let balance = self.stored_balance(wallet.to_owned(), std::iter::once(&Pool::Purchased));
        Ok(GrantOutcome::Granted { balance })
    }

    /// Revokes purchased credits.
    pub(crate) fn revoke(&mut self, request: &RevokeRequest) -> Result<RevokeOutcome> {
        let (id, of_grant) = (request.id.as_str(), request.grant.as_str());
        if let Some(known) = self.transfers.iter().find(|row| row.id == id) {
            let same = known.kind == TransferKind::Revocation
                && known.of_grant == of_grant
                && known.amount == request.amount;
            let (taken, shortfall) = (known.taken, known.shortfall);
            return Ok(if same {
                RevokeOutcome::Exists { taken, shortfall }
            } else {
                RevokeOutcome::Conflict
            });
        }
        let is_it = |row: &&mut TransferRow| row.id == of_grant && row.kind == TransferKind::Grant;
        let Some(grant) = self.transfers.iter_mut().find(is_it) else {
            return Ok(RevokeOutcome::GrantNotFound);
        };
        let wallet = grant.wallet.clone();
        let available = self.pools.iter().find(|row| row.is(&wallet, ""));
        let available = available.map_or(0, |row| row.balance().available());
        let reclaimed = grant.taken.saturating_add(grant.shortfall);
        let RevokedAmount { taken, shortfall } =
            allocate::revoke_amount(grant.amount, reclaimed, request.amount, available);
        grant.taken += taken;
        grant.shortfall += shortfall;
        grant.touched = true;
        self.transfers.push(TransferRow {
            id: id.to_owned(),
            kind: TransferKind::Revocation,
            wallet: wallet.clone(),
            of_grant: of_grant.to_owned(),
            amount: request.amount,
            taken,
            shortfall,
            touched: true,
        });
        let step = EntryCause { at: request.now, cause: id, memo: &request.memo };
        self.apply_entry(&step, &wallet, &Pool::Purchased, EntryKind::Revoked { shortfall }, taken)?;
        Ok(RevokeOutcome::Revoked { taken, shortfall })
    }
}
