//! Verification tokens in SQLite: stored, and redeemed for a key.

use sqlx::{Row, SqliteConnection};
use transcript_core::{
    Error,
    directory::{Plan, RedeemOutcome, RedeemRequest, VerificationToken},
};

use super::{ACCOUNT_BY_EMAIL, ACCOUNT_COLUMNS, keys, read_account};
use crate::{
    error::{DbResult, conflict},
    sqlite::writer::WriteTx,
};

/// How long a token is kept after it expired, in milliseconds: a day.
const RETENTION_MS: i64 = 86_400_000;

const PUT_TOKEN: &str = "INSERT INTO tokens (digest, email, expires_at) VALUES (?1, ?2, ?3)
    ON CONFLICT (digest) DO NOTHING";
const TOKEN_EMAIL: &str = "SELECT email FROM tokens WHERE digest = ?1";
const DELETE_EXPIRED: &str = "DELETE FROM tokens WHERE digest IN (
        SELECT digest FROM tokens WHERE expires_at < ?1 ORDER BY expires_at LIMIT 16
    )";
/// The account that a token was redeemed for, while its key is valid.
const FIND_REDEEMED: &str = concat!(
    "SELECT ",
    account_columns!(),
    ", t.first FROM tokens t JOIN keys k ON k.id = t.key JOIN accounts a ON a.id = k.account
    WHERE t.digest = ?1 AND k.id = ?2 AND k.digest = ?3 AND k.revoked_at IS NULL AND a.erased_at IS NULL"
);
const MARK_USED: &str = "UPDATE tokens SET key = ?2, first = ?3 WHERE digest = ?1";
const FIND_VALID: &str = "SELECT email FROM tokens WHERE digest = ?1 AND expires_at > ?2 AND used_at IS NULL";
const VOID_TOKENS: &str = "UPDATE tokens SET used_at = ?2 WHERE email = ?1 AND used_at IS NULL";
const CREATE_ACCOUNT: &str = "INSERT INTO accounts (id, version, email, wallet, plan, anchor, blocked)
    VALUES (?1, 1, ?2, ?3, ?4, ?5, 0) ON CONFLICT (id) DO NOTHING";
const REVOKE_KEYS: &str = "UPDATE keys SET revoked_at = ?2 WHERE account = ?1 AND revoked_at IS NULL";

/// Statements that must not scan tables, for the test of the query plans.
#[cfg(test)]
pub(in crate::sqlite) const INDEXED_STATEMENTS: [&str; 9] = [
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

    async fn run(&self, db: &mut SqliteConnection) -> DbResult<()> {
        let delete_before = self.now.as_millis().saturating_sub(RETENTION_MS);
        sqlx::query(DELETE_EXPIRED).bind(delete_before).execute(&mut *db).await?;
        let put = sqlx::query(PUT_TOKEN).bind(self.digest.clone()).bind(self.email.clone());
        put.bind(self.expires_at.as_millis()).execute(&mut *db).await?;
        let stored = sqlx::query(TOKEN_EMAIL).bind(self.digest.clone()).fetch_one(db).await?;
        if stored.try_get::<&str, _>(0)? == self.email {
            Ok(())
        } else {
            Err(conflict("the token's digest is stored for another mail address").into())
        }
    }
}

impl WriteTx for RedeemRequest {
    type Outcome = RedeemOutcome;

    async fn run(&self, db: &mut SqliteConnection) -> DbResult<RedeemOutcome> {
        let now = self.key.now.as_millis();
        let token =
            sqlx::query(FIND_VALID).bind(self.digest.clone()).bind(now).fetch_optional(&mut *db).await?;
        let Some(token) = token else {
            return repeated_outcome(self, db).await;
        };
        let email: String = token.try_get(0)?;
        let known = sqlx::query(ACCOUNT_BY_EMAIL).bind(email.clone()).fetch_optional(&mut *db).await?;
        let first = known.is_none();
        if first {
            let insert = sqlx::query(CREATE_ACCOUNT)
                .bind(self.new_account.as_str().to_owned())
                .bind(email.clone())
                .bind(self.new_wallet.as_str().to_owned())
                .bind(Plan::Free.as_str())
                .bind(now);
            if insert.execute(&mut *db).await?.rows_affected() == 0 {
                return Err(conflict("the account id belongs to another account").into());
            }
        } else if !self.confirmed {
            return Ok(RedeemOutcome::NeedsConfirmation);
        }
        let stored = sqlx::query(ACCOUNT_BY_EMAIL).bind(email.clone()).fetch_optional(&mut *db).await?;
        let stored = stored.ok_or_else(|| Error::unexpected("a newly created account is missing"))?;
        let account = read_account(&stored)?;
        sqlx::query(VOID_TOKENS).bind(email).bind(now).execute(&mut *db).await?;
        let id = account.id.as_str();
        sqlx::query(REVOKE_KEYS).bind(id.to_owned()).bind(now).execute(&mut *db).await?;
        keys::add_account_key(db, &self.key, id).await?;
        let used = sqlx::query(MARK_USED).bind(self.digest.clone()).bind(self.key.id.as_str().to_owned());
        used.bind(first).execute(db).await?;
        Ok(RedeemOutcome::Issued { account, first })
    }
}

/// The first outcome of a repeated redemption; else the token is invalid.
async fn repeated_outcome(request: &RedeemRequest, db: &mut SqliteConnection) -> DbResult<RedeemOutcome> {
    let redeemed =
        sqlx::query(FIND_REDEEMED).bind(request.digest.clone()).bind(request.key.id.as_str().to_owned());
    let Some(row) = redeemed.bind(request.key.digest.clone()).fetch_optional(db).await? else {
        return Ok(RedeemOutcome::Invalid);
    };
    Ok(RedeemOutcome::Issued { account: read_account(&row)?, first: row.try_get(ACCOUNT_COLUMNS)? })
}
