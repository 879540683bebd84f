//! The ledger's steps on the rows that they touch, apart from any database.
//!
//! A database loads the [`Books`] that a step needs with one statement, the step is taken here with the
//! core's own arithmetic, and what it changed goes back with one statement. Both ways the rows travel as
//! JSON text, so that a step of any size is two statements.

mod plain;
mod rows;

use serde::Serialize;
use transcript_core::{
    Error, Result, Timestamp,
    ids::WalletId,
    ledger::{
        Balance, EntryKind, Grant, GrantOutcome, HoldOutcome, HoldRequest, HoldState, Leg, Pool, PoolBalance,
        Revoke, RevokeOutcome, Settle, SettleOutcome, Terms,
        allocate::{self, TakenBack},
    },
};

pub(crate) use plain::Plain;
#[cfg(not(feature = "postgres"))]
use rows::cap_of;
#[cfg(feature = "postgres")]
pub(crate) use rows::cap_of;
pub(crate) use rows::{
    EntryRow, HoldRow, LegRow, PoolRow, ShareRow, State, TransferKind, TransferRow, bucket_name, kind_of,
    pool_of,
};
use rows::{kind_name, leg_row};

use crate::error::corrupt;

/// Which rows a step needs.
#[derive(Debug, Default, Serialize)]
pub(crate) struct Needed<'a> {
    /// The hold with this id, and the pools that it holds of.
    pub(crate) hold: Option<&'a str>,
    /// The holds of these wallets that are overdue at `now`, and their pools.
    pub(crate) wallets: Vec<&'a str>,
    /// At most this many overdue holds of any wallet, the longest overdue first, and their pools.
    pub(crate) limit: u32,
    /// The present moment.
    pub(crate) now: i64,
    /// These pools: wallet and bucket.
    pub(crate) pools: Vec<(&'a str, &'a str)>,
    /// The transfers with these ids, and the purchased credits of their wallets.
    pub(crate) transfers: Vec<&'a str>,
}

impl<'a> Needed<'a> {
    /// What a request to hold or to spend needs.
    pub(crate) fn of_request(ask: &'a HoldRequest) -> Self {
        let pools = ask
            .legs
            .iter()
            .flat_map(|leg| leg.terms.pools.iter().map(|pool| (leg.wallet.as_str(), bucket_name(pool))));
        Self {
            hold: Some(ask.id.as_str()),
            wallets: ask.legs.iter().map(|leg| leg.wallet.as_str()).collect(),
            now: ask.now.as_millis(),
            pools: pools.collect(),
            ..Self::default()
        }
    }
}

/// The rows that a step works on, and what it has changed in them.
#[derive(Debug, Default)]
pub(crate) struct Books {
    pools: Vec<PoolRow>,
    holds: Vec<HoldRow>,
    transfers: Vec<TransferRow>,
    entries: Vec<EntryRow>,
}

/// What a step changed, for the database.
#[derive(Debug, Serialize)]
pub(crate) struct Changes<'a> {
    pub(crate) pools: Vec<&'a PoolRow>,
    pub(crate) holds: Vec<&'a HoldRow>,
    pub(crate) transfers: Vec<&'a TransferRow>,
    pub(crate) entries: &'a [EntryRow],
}

/// What an entry says of its cause.
struct Step<'a> {
    at: Timestamp,
    cause: &'a str,
    memo: &'a str,
}

/// A wallet's balance under these terms, of the rows that are stored.
pub(crate) fn balance(rows: &[PoolRow], wallet: &WalletId, terms: &Terms) -> Balance {
    let pools = terms.pools.iter().map(|pool| {
        let stored = rows.iter().find(|row| row.is(wallet.as_str(), bucket_name(pool)));
        let fresh = PoolBalance::fresh(pool.clone());
        stored.map_or(fresh, |row| PoolBalance { pool: pool.clone(), ..row.balance() })
    });
    Balance { wallet: wallet.clone(), pools: pools.collect() }
}

#[cfg_attr(not(feature = "sqlite"), expect(dead_code, reason = "on PostgreSQL most steps are statements"))]
impl Books {
    /// The books in three texts of JSON: pools, holds and transfers.
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

    /// The books of these rows.
    #[cfg(feature = "postgres")]
    pub(crate) fn of_rows(pools: Vec<PoolRow>, holds: Vec<HoldRow>, transfers: Vec<TransferRow>) -> Self {
        Self { pools, holds, transfers, entries: Vec::new() }
    }

    /// The books of a spend that is fresh, of wallets with these pools and no hold that is overdue.
    pub(crate) fn of_pools(pools: Vec<PoolRow>) -> Self {
        Self { pools, ..Self::default() }
    }

    /// The pools, the holds and the entries, as they are now.
    pub(crate) fn into_rows(self) -> (Vec<PoolRow>, Vec<HoldRow>, Vec<EntryRow>) {
        (self.pools, self.holds, self.entries)
    }

    /// What was changed since the books were read; none when nothing was.
    pub(crate) fn changes(&self) -> Option<Changes<'_>> {
        let changes = Changes {
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

    /// Takes one step of a pool: changes its row and writes the entry.
    fn take(
        &mut self,
        step: &Step<'_>,
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
        let place = self.pools.iter().position(|row| row.is(wallet, bucket)).unwrap_or_else(|| {
            self.pools.push(PoolRow::fresh(wallet, pool));
            self.pools.len() - 1
        });
        let row = &mut self.pools[place];
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

    /// Holds, after the overdue holds of the wallets have expired.
    pub(crate) fn hold(&mut self, ask: &HoldRequest) -> Result<HoldOutcome> {
        self.take_legs(ask, EntryKind::Held, State::Open)
    }

    /// Holds and settles in full.
    pub(crate) fn spend(&mut self, ask: &HoldRequest) -> Result<HoldOutcome> {
        self.take_legs(ask, EntryKind::Charged, State::Closed)
    }

    /// Takes the amounts of all legs, or of none; `kind` is what the entries say, `state` how the hold is then.
    fn take_legs(&mut self, ask: &HoldRequest, kind: EntryKind, state: State) -> Result<HoldOutcome> {
        self.expire(ask.now, |leg| ask.legs.iter().any(|asked| asked.wallet.as_str() == leg.wallet))?;
        if let Some(known) = self.holds.iter().find(|row| row.id == ask.id.as_str()) {
            let same = known.legs.len() == ask.legs.len()
                && known.legs.iter().zip(&ask.legs).all(|(held, leg)| held.is_of(leg));
            return Ok(if same {
                HoldOutcome::Known { state: known.state(), balances: self.balances(&ask.legs) }
            } else {
                HoldOutcome::Conflict
            });
        }
        let mut legs = Vec::with_capacity(ask.legs.len());
        for (leg, place) in ask.legs.iter().zip(0..) {
            let balance = balance(&self.pools, &leg.wallet, &leg.terms);
            let Some(shares) = allocate::allocate(&balance.pools, leg.amount) else {
                return Ok(HoldOutcome::Refused { leg: place, balance });
            };
            legs.push((leg, shares));
        }
        let step = Step { at: ask.now, cause: ask.id.as_str(), memo: &ask.memo };
        for (leg, shares) in &legs {
            for share in shares {
                self.take(&step, leg.wallet.as_str(), &share.pool, kind, share.amount)?;
            }
        }
        let spent = |leg: &Leg| if state == State::Closed { leg.amount } else { 0 };
        self.holds.push(HoldRow {
            id: ask.id.as_str().to_owned(),
            state,
            expires_at: ask.expires_at.as_millis(),
            memo: ask.memo.clone(),
            legs: legs.into_iter().map(|(leg, shares)| leg_row(leg, shares, spent(leg))).collect(),
            touched: true,
        });
        Ok(HoldOutcome::Held { balances: self.balances(&ask.legs) })
    }

    /// Ends a hold.
    pub(crate) fn settle(&mut self, ask: &Settle) -> Result<SettleOutcome> {
        let Some(hold) = self.holds.iter_mut().find(|row| row.id == ask.id.as_str()) else {
            return Ok(SettleOutcome::Unknown);
        };
        if hold.state != State::Open {
            return Ok(SettleOutcome::Known { state: hold.state() });
        }
        if ask.spent.len() != hold.legs.len() {
            return Err(Error::invalid("a settlement has one figure for each leg of its hold"));
        }
        let mut settled = Vec::with_capacity(hold.legs.len());
        for (leg, spent) in hold.legs.iter_mut().zip(&ask.spent) {
            let shares = allocate::settle(&leg.shares(), *spent)
                .ok_or_else(|| Error::invalid("a settlement spends no more than its leg holds"))?;
            leg.spent = *spent;
            settled.push((leg.wallet.clone(), shares));
        }
        hold.state = State::Closed;
        hold.touched = true;
        let memo = hold.memo.clone();
        let step = Step { at: ask.now, cause: ask.id.as_str(), memo: &memo };
        let mut balances = Vec::with_capacity(settled.len());
        for (wallet, shares) in settled {
            for share in &shares {
                self.take(&step, &wallet, &share.pool, EntryKind::Spent, share.spent)?;
                self.take(&step, &wallet, &share.pool, EntryKind::Returned, share.returned)?;
            }
            balances.push(self.last_seen(wallet, shares.iter().map(|share| &share.pool)));
        }
        Ok(SettleOutcome::Settled { balances })
    }

    /// The balance of used pools, each with the limit that was last seen.
    fn last_seen<'a>(&self, wallet: String, pools: impl Iterator<Item = &'a Pool>) -> Balance {
        let stored = |pool| self.pools.iter().find(|row| row.is(&wallet, bucket_name(pool)));
        let pools = pools.filter_map(stored).map(PoolRow::balance).collect();
        Balance { wallet: WalletId::new(wallet), pools }
    }

    /// Expires the overdue holds that have a wanted leg; returns how many.
    fn expire(&mut self, now: Timestamp, wanted: impl Fn(&LegRow) -> bool) -> Result<u32> {
        self.holds.sort_by(|a, b| (a.expires_at, &a.id).cmp(&(b.expires_at, &b.id)));
        let mut holds = std::mem::take(&mut self.holds);
        let mut count = 0;
        for hold in holds.iter_mut().filter(|hold| hold.is_overdue(now) && hold.legs.iter().any(&wanted)) {
            let step = Step { at: now, cause: &hold.id, memo: &hold.memo };
            for leg in &hold.legs {
                for share in leg.shares() {
                    self.take(&step, &leg.wallet, &share.pool, EntryKind::Expired, share.amount)?;
                }
            }
            hold.state = State::Expired;
            hold.touched = true;
            count += 1;
        }
        self.holds = holds;
        Ok(count)
    }

    /// Expires every overdue hold in the books; returns how many.
    pub(crate) fn expire_all(&mut self, now: Timestamp) -> Result<u32> {
        self.expire(now, |_| true)
    }

    /// Puts off the expiry of the hold in the books; none when there is none.
    pub(crate) fn extend(&mut self, until: Timestamp) -> Option<HoldState> {
        let hold = self.holds.first_mut()?;
        if hold.state == State::Open && until.as_millis() > hold.expires_at {
            hold.expires_at = until.as_millis();
            hold.touched = true;
        }
        Some(hold.state())
    }

    /// Adds purchased credits.
    pub(crate) fn grant(&mut self, ask: &Grant) -> Result<GrantOutcome> {
        let (id, wallet) = (ask.id.as_str(), ask.wallet.as_str());
        if let Some(known) = self.transfers.iter().find(|row| row.id == id) {
            let same =
                known.kind == TransferKind::Grant && known.wallet == wallet && known.amount == ask.amount;
            return Ok(if same { GrantOutcome::Known } else { GrantOutcome::Conflict });
        }
        let granted = self.pools.iter().find(|row| row.is(wallet, "")).map_or(0, |row| row.granted);
        if granted.saturating_add(ask.amount) > i64::MAX as u64 {
            return Err(Error::invalid("a wallet has room for 2^63 credits"));
        }
        let step = Step { at: ask.now, cause: id, memo: &ask.memo };
        self.take(&step, wallet, &Pool::Purchased, EntryKind::Granted, ask.amount)?;
        self.transfers.push(TransferRow {
            id: id.to_owned(),
            kind: TransferKind::Grant,
            wallet: wallet.to_owned(),
            of_grant: id.to_owned(),
            amount: ask.amount,
            taken: 0,
            shortfall: 0,
            touched: true,
        });
        let balance = self.last_seen(wallet.to_owned(), std::iter::once(&Pool::Purchased));
        Ok(GrantOutcome::Granted { balance })
    }

    /// Takes purchased credits back.
    pub(crate) fn revoke(&mut self, ask: &Revoke) -> Result<RevokeOutcome> {
        let (id, of_grant) = (ask.id.as_str(), ask.grant.as_str());
        if let Some(known) = self.transfers.iter().find(|row| row.id == id) {
            let same = known.kind == TransferKind::Revocation
                && known.of_grant == of_grant
                && known.amount == ask.amount;
            let (taken, shortfall) = (known.taken, known.shortfall);
            return Ok(if same {
                RevokeOutcome::Known { taken, shortfall }
            } else {
                RevokeOutcome::Conflict
            });
        }
        let is_it = |row: &&mut TransferRow| row.id == of_grant && row.kind == TransferKind::Grant;
        let Some(grant) = self.transfers.iter_mut().find(is_it) else {
            return Ok(RevokeOutcome::UnknownGrant);
        };
        let wallet = grant.wallet.clone();
        let available = self.pools.iter().find(|row| row.is(&wallet, ""));
        let available = available.map_or(0, |row| row.balance().available());
        let reclaimed = grant.taken.saturating_add(grant.shortfall);
        let TakenBack { taken, shortfall } =
            allocate::take_back(grant.amount, reclaimed, ask.amount, available);
        grant.taken += taken;
        grant.shortfall += shortfall;
        grant.touched = true;
        self.transfers.push(TransferRow {
            id: id.to_owned(),
            kind: TransferKind::Revocation,
            wallet: wallet.clone(),
            of_grant: of_grant.to_owned(),
            amount: ask.amount,
            taken,
            shortfall,
            touched: true,
        });
        let step = Step { at: ask.now, cause: id, memo: &ask.memo };
        self.take(&step, &wallet, &Pool::Purchased, EntryKind::Revoked { shortfall }, taken)?;
        Ok(RevokeOutcome::Revoked { taken, shortfall })
    }
}
