//! Grants and revocations of purchased credits.

use super::{EntryCause, LedgerRows, TransferKind, TransferRow};
use crate::{
    error::{Error, Result},
    ledger::{
        EntryKind, GrantOutcome, GrantRequest, Pool, RevokeOutcome, RevokeRequest,
        allocate::{self, RevokedAmount},
    },
};

impl LedgerRows {
    /// Adds purchased credits: [`crate::ledger::Ledger::grant`].
    ///
    /// # Errors
    /// [`crate::ErrorKind::Invalid`] if the wallet would have more than 2^63 - 1 credits;
    /// [`crate::ErrorKind::Corrupt`] as [`LedgerRows::hold`].
    pub fn grant(&mut self, request: &GrantRequest) -> Result<GrantOutcome> {
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

    /// Revokes purchased credits: [`crate::ledger::Ledger::revoke`].
    ///
    /// # Errors
    /// As [`LedgerRows::hold`].
    pub fn revoke(&mut self, request: &RevokeRequest) -> Result<RevokeOutcome> {
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
        grant.touched |= taken + shortfall > 0;
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
