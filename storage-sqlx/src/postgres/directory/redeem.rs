//! Verification tokens in PostgreSQL: stored, and redeemed for a key.

use sqlx::{PgConnection, Row};
use transcript_core::{
    Error,
    directory::{Plan, RedeemOutcome, RedeemRequest, VerificationToken},
};

use super::{ACCOUNT_BY_EMAIL, ACCOUNT_COLUMNS, keys, read_account};
use crate::{
    error::{DbResult, conflict},
    postgres::{
        database::{PgDatabase, WriteTx},
        text::{encode, read},
    },
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
const FIND_VALID: &str = "SELECT email FROM tokens WHERE digest = $1 AND expires_at > $2 AND used_at IS NULL";
const VOID_TOKENS: &str = "UPDATE tokens SET used_at = $2 WHERE email = $1 AND used_at IS NULL";
const CREATE_ACCOUNT: &str = "INSERT INTO accounts (id, version, email, wallet, plan, anchor, blocked, seq)
    VALUES ($1, 1, $2, $3, $4, $5, FALSE, $6) ON CONFLICT (id) DO NOTHING";
const REVOKE_KEYS: &str = "UPDATE keys SET revoked_at = $2 WHERE account = $1 AND revoked_at IS NULL";

impl WriteTx for VerificationToken {
    type Outcome = ();

    async fn run(&self, db: &mut PgConnection) -> DbResult<()> {
        let delete_before = self.now.as_millis().saturating_sub(RETENTION_MS);
        sqlx::query(DELETE_EXPIRED).bind(delete_before).execute(&mut *db).await?;
        let put = sqlx::query(PUT_TOKEN).bind(self.digest.clone()).bind(encode(&self.email));
        put.bind(self.expires_at.as_millis()).execute(&mut *db).await?;
        let stored = sqlx::query(TOKEN_EMAIL).bind(self.digest.clone()).fetch_one(db).await?;
        if read(&stored, 0)? == self.email {
            Ok(())
        } else {
            Err(conflict("the token's digest is stored for another mail address").into())
        }
    }
}

/// Redeems a token.
pub(super) struct RedeemTokenTx {
    pub(super) request: RedeemRequest,
    pub(super) numbers: PgDatabase,
}

impl WriteTx for RedeemTokenTx {
    type Outcome = RedeemOutcome;

    async fn run(&self, db: &mut PgConnection) -> DbResult<RedeemOutcome> {
        let Self { request, numbers } = self;
        let now = request.key.now.as_millis();
        let seq = numbers.numbers(now, 2);
        let token =
            sqlx::query(FIND_VALID).bind(request.digest.clone()).bind(now).fetch_optional(&mut *db).await?;
        let Some(token) = token else {
            return repeated_outcome(request, db).await;
        };
        let email: String = token.try_get(0)?;
        let known = sqlx::query(ACCOUNT_BY_EMAIL).bind(email.clone()).fetch_optional(&mut *db).await?;
        let first = known.is_none();
        if first {
            let insert = sqlx::query(CREATE_ACCOUNT)
                .bind(encode(request.new_account.as_str()))
                .bind(email.clone())
                .bind(encode(request.new_wallet.as_str()))
                .bind(Plan::Free.as_str())
                .bind(now)
                .bind(seq);
            if insert.execute(&mut *db).await?.rows_affected() == 0 {
                return Err(conflict("the account id belongs to another account").into());
            }
        } else if !request.confirmed {
            return Ok(RedeemOutcome::NeedsConfirmation);
        }
        let stored = sqlx::query(ACCOUNT_BY_EMAIL).bind(email.clone()).fetch_optional(&mut *db).await?;
        let stored = stored.ok_or_else(|| Error::unexpected("a newly created account is missing"))?;
        let account = read_account(&stored)?;
        sqlx::query(VOID_TOKENS).bind(email).bind(now).execute(&mut *db).await?;
        let id = account.id.as_str();
        sqlx::query(REVOKE_KEYS).bind(encode(id)).bind(now).execute(&mut *db).await?;
        keys::add_account_key(db, &request.key, id, seq.saturating_add(1)).await?;
        let used = sqlx::query(MARK_USED).bind(request.digest.clone()).bind(encode(request.key.id.as_str()));
        used.bind(first).execute(db).await?;
        Ok(RedeemOutcome::Issued { account, first })
    }
}

/// The first outcome of a repeated redemption; else the token is invalid.
async fn repeated_outcome(request: &RedeemRequest, db: &mut PgConnection) -> DbResult<RedeemOutcome> {
    let redeemed =
        sqlx::query(FIND_REDEEMED).bind(request.digest.clone()).bind(encode(request.key.id.as_str()));
    let Some(row) = redeemed.bind(request.key.digest.clone()).fetch_optional(db).await? else {
        return Ok(RedeemOutcome::Invalid);
    };
    Ok(RedeemOutcome::Issued { account: read_account(&row)?, first: row.try_get(ACCOUNT_COLUMNS)? })
}
