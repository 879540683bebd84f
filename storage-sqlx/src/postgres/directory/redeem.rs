//! Verification tokens in PostgreSQL: stored, and redeemed for a key.

use sqlx::{PgConnection, Row};
use transcript_core::{
    Error,
    directory::{Plan, Redeem, Redeemed, Token},
};

use super::{ACCOUNT_COLUMNS, BY_EMAIL, keys, read_account};
use crate::{
    error::{Work, conflict},
    postgres::{
        database::{Change, Database},
        text::{own, read},
    },
};

/// How long a token is remembered after its end, in milliseconds: a day.
const REMEMBERED_MS: i64 = 86_400_000;

const PUT: &str = "INSERT INTO tokens (digest, email, expires_at) VALUES ($1, $2, $3)
    ON CONFLICT (digest) DO NOTHING";
const EMAIL: &str = "SELECT email FROM tokens WHERE digest = $1";
const FORGET: &str = "DELETE FROM tokens WHERE digest IN (
        SELECT digest FROM tokens WHERE expires_at < $1 ORDER BY expires_at LIMIT 16
    )";
/// The account that a token was redeemed for, while the key that it gave lives.
const REDEEMED: &str = concat!(
    "SELECT ",
    account_columns!(),
    ", t.first FROM tokens t JOIN keys k ON k.id = t.key JOIN accounts a ON a.id = k.account
    WHERE t.digest = $1 AND k.id = $2 AND k.digest = $3 AND k.revoked_at IS NULL AND a.erased_at IS NULL"
);
const USE: &str = "UPDATE tokens SET key = $2, first = $3 WHERE digest = $1";
const VALID: &str = "SELECT email FROM tokens WHERE digest = $1 AND expires_at > $2 AND used_at IS NULL";
const VOID: &str = "UPDATE tokens SET used_at = $2 WHERE email = $1 AND used_at IS NULL";
const MAKE_ACCOUNT: &str = "INSERT INTO accounts (id, version, email, wallet, plan, anchor, blocked, seq)
    VALUES ($1, 1, $2, $3, $4, $5, FALSE, $6) ON CONFLICT (id) DO NOTHING";
const RETIRE_KEYS: &str = "UPDATE keys SET revoked_at = $2 WHERE account = $1 AND revoked_at IS NULL";

impl Change for Token {
    type Outcome = ();

    async fn make(&self, db: &mut PgConnection) -> Work<()> {
        let forgotten = self.now.as_millis().saturating_sub(REMEMBERED_MS);
        sqlx::query(FORGET).bind(forgotten).execute(&mut *db).await?;
        let put = sqlx::query(PUT).bind(self.digest.clone()).bind(own(&self.email));
        put.bind(self.expires_at.as_millis()).execute(&mut *db).await?;
        let stored = sqlx::query(EMAIL).bind(self.digest.clone()).fetch_one(db).await?;
        if read(&stored, 0)? == self.email {
            Ok(())
        } else {
            Err(conflict("the token's digest is stored for another address").into())
        }
    }
}

/// A token to redeem.
pub(super) struct Redemption {
    pub(super) ask: Redeem,
    pub(super) numbers: Database,
}

impl Change for Redemption {
    type Outcome = Redeemed;

    async fn make(&self, db: &mut PgConnection) -> Work<Redeemed> {
        let Self { ask, numbers } = self;
        let now = ask.key.now.as_millis();
        let seq = numbers.numbers(now, 2);
        let token = sqlx::query(VALID).bind(ask.digest.clone()).bind(now).fetch_optional(&mut *db).await?;
        let Some(token) = token else {
            return again(ask, db).await;
        };
        let email: String = token.try_get(0)?;
        let known = sqlx::query(BY_EMAIL).bind(email.clone()).fetch_optional(&mut *db).await?;
        let first = known.is_none();
        if first {
            let made = sqlx::query(MAKE_ACCOUNT)
                .bind(own(ask.new_account.as_str()))
                .bind(email.clone())
                .bind(own(ask.new_wallet.as_str()))
                .bind(Plan::Free.as_str())
                .bind(now)
                .bind(seq);
            if made.execute(&mut *db).await?.rows_affected() == 0 {
                return Err(conflict("the id is another account's").into());
            }
        } else if !ask.confirmed {
            return Ok(Redeemed::NeedsConfirmation);
        }
        let stored = sqlx::query(BY_EMAIL).bind(email.clone()).fetch_optional(&mut *db).await?;
        let stored = stored.ok_or_else(|| Error::unexpected("an account that was just made is missing"))?;
        let account = read_account(&stored)?;
        sqlx::query(VOID).bind(email).bind(now).execute(&mut *db).await?;
        let id = account.id.as_str();
        sqlx::query(RETIRE_KEYS).bind(own(id)).bind(now).execute(&mut *db).await?;
        keys::add_of_account(db, &ask.key, id, seq.saturating_add(1)).await?;
        let used = sqlx::query(USE).bind(ask.digest.clone()).bind(own(ask.key.id.as_str()));
        used.bind(first).execute(db).await?;
        Ok(Redeemed::Issued { account, first })
    }
}

/// What the same redemption did before, for a caller who could not know; else the token is invalid.
async fn again(ask: &Redeem, db: &mut PgConnection) -> Work<Redeemed> {
    let redeemed = sqlx::query(REDEEMED).bind(ask.digest.clone()).bind(own(ask.key.id.as_str()));
    let Some(row) = redeemed.bind(ask.key.digest.clone()).fetch_optional(db).await? else {
        return Ok(Redeemed::Invalid);
    };
    Ok(Redeemed::Issued { account: read_account(&row)?, first: row.try_get(ACCOUNT_COLUMNS)? })
}
