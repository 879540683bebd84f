//! Verification tokens: stored, and redeemed for a key.

use transcript_core::{
    Error,
    directory::{Plan, RedeemOutcome, RedeemRequest, VerificationToken},
};

use super::{ACCOUNT_BY_EMAIL, ACCOUNT_COLUMNS, keys, read_account};
use crate::{
    error::DbResult,
    sql::{Session, WriteTx, values},
};

/// How long a token is kept after it expired, in milliseconds: a day.
const RETENTION_MS: i64 = 86_400_000;

const PUT_TOKEN: &str = "INSERT INTO tokens (digest, email, expires_at) VALUES ($1, $2, $3)
    ON CONFLICT (digest) DO NOTHING";
const TOKEN_EMAIL: &str = "SELECT email FROM tokens WHERE digest = $1";
const DELETE_EXPIRED: &str = "DELETE FROM tokens WHERE digest IN (
        SELECT digest FROM tokens WHERE expires_at < $1 ORDER BY expires_at LIMIT 16
    )";
/// The account that a token was redeemed for, while its key is valid.
const FIND_REDEEMED: &str = concat!(
    "SELECT ",
    account_columns!(),
    ", t.first FROM tokens t JOIN keys k ON k.id = t.key JOIN accounts a ON a.id = k.account
    WHERE t.digest = $1 AND k.id = $2 AND k.digest = $3 AND k.revoked_at IS NULL AND a.erased_at IS NULL"
);
const MARK_USED: &str = "UPDATE tokens SET key = $2, first = $3 WHERE digest = $1";
const FIND_VALID: &str = "SELECT email FROM tokens WHERE digest = $1 AND expires_at > $2 AND expires_at <= $3
    AND used_at IS NULL";
const VOID_TOKENS: &str = "UPDATE tokens SET used_at = $2 WHERE email = $1 AND used_at IS NULL";
const CREATE_ACCOUNT: &str = "INSERT INTO accounts (id, version, email, wallet, plan, anchor, blocked, seq)
    VALUES ($1, 1, $2, $3, $4, $5, FALSE, $6) ON CONFLICT (id) DO NOTHING";
const REVOKE_KEYS: &str = "UPDATE keys SET revoked_at = $2 WHERE account = $1 AND revoked_at IS NULL";

/// Statements that must not scan tables, for the test of the query plans.
#[cfg(all(test, feature = "sqlite"))]
pub(crate) const INDEXED_STATEMENTS: [&str; 9] = [
    PUT_TOKEN,
    TOKEN_EMAIL,
    DELETE_EXPIRED,
    FIND_REDEEMED,
    MARK_USED,
    FIND_VALID,
    VOID_TOKENS,
    CREATE_ACCOUNT,
    REVOKE_KEYS,
];

impl WriteTx for VerificationToken {
    type Outcome = ();

    async fn run<S: Session>(&self, db: &mut S) -> DbResult<()> {
        let delete_before = self.now.as_millis().saturating_sub(RETENTION_MS);
        db.execute(DELETE_EXPIRED, &values![delete_before]).await?;
        let token = values![&self.digest, &self.email, self.expires_at.as_millis()];
        db.execute(PUT_TOKEN, &token).await?;
        let stored = db.only_row(TOKEN_EMAIL, &values![&self.digest]).await?;
        if stored.get::<&str>(0)? == self.email {
            Ok(())
        } else {
            Err(Error::conflict("the token's digest is stored for another email address").into())
        }
    }
}

impl WriteTx for RedeemRequest {
    type Outcome = RedeemOutcome;

    async fn run<S: Session>(&self, db: &mut S) -> DbResult<RedeemOutcome> {
        let now = self.key.now.as_millis();
        let expiry_max = VerificationToken::expiry_max(self.key.now).as_millis();
        let Some(mut token) = db.row(FIND_VALID, &values![&self.digest, now, expiry_max]).await? else {
            return repeated_outcome(self, db).await;
        };
        let email: String = token.take(0)?;
        let first = db.row(ACCOUNT_BY_EMAIL, &values![&email]).await?.is_none();
        if first {
            let (id, wallet) = (self.new_account.as_str(), self.new_wallet.as_str());
            let seq = db.next_number(self.key.now);
            let row = values![id, &email, wallet, Plan::Free.as_str(), now, seq];
            if db.execute(CREATE_ACCOUNT, &row).await? == 0 {
                return Err(Error::conflict("the account id belongs to another account").into());
            }
        } else if !self.confirmed {
            return Ok(RedeemOutcome::NeedsConfirmation);
        }
        let stored = db.row(ACCOUNT_BY_EMAIL, &values![&email]).await?;
        let mut stored = stored.ok_or_else(|| Error::unexpected("a newly created account is missing"))?;
        let account = read_account(&mut stored)?;
        db.execute(VOID_TOKENS, &values![&email, now]).await?;
        let id = account.id.as_str();
        db.execute(REVOKE_KEYS, &values![id, now]).await?;
        keys::add_account_key(db, &self.key, id).await?;
        db.execute(MARK_USED, &values![&self.digest, self.key.id.as_str(), first]).await?;
        Ok(RedeemOutcome::Issued { account, first })
    }
}

/// The first outcome of a repeated redemption; else the token is invalid.
async fn repeated_outcome<S: Session>(request: &RedeemRequest, db: &mut S) -> DbResult<RedeemOutcome> {
    let key = &request.key;
    let Some(mut row) =
        db.row(FIND_REDEEMED, &values![&request.digest, key.id.as_str(), &key.digest]).await?
    else {
        return Ok(RedeemOutcome::Invalid);
    };
    Ok(RedeemOutcome::Issued { account: read_account(&mut row)?, first: row.take(ACCOUNT_COLUMNS)? })
}
