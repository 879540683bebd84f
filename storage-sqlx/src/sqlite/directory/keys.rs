//! API keys in SQLite: add, renew, rotate, revoke.

use sqlx::{Row, SqliteConnection, sqlite::SqliteRow};
use transcript_core::{
    Timestamp,
    directory::{AddKeyOutcome, LookupKey, NewKeyRecord, RenewRequest, RotateOutcome},
    ids::{KeyId, WalletId},
};

use crate::{
    error::{DbResult, conflict},
    sqlite::writer::WriteTx,
};

/// Number of keys with this id or digest, and of those with both.
const COUNT_MATCHES: &str = "SELECT count(*), count(*) FILTER (WHERE id = ?1 AND digest = ?2)
    FROM keys WHERE id = ?1 OR digest = ?2";
/// Expiry of the key that reaches a subject's limit of live keys. The offset is the limit minus one.
const LIMIT_EXPIRY: &str = "SELECT entitled_until FROM keys
    WHERE subject = ?1 AND entitled_until > ?2 AND revoked_at IS NULL
    ORDER BY entitled_until DESC LIMIT 1 OFFSET ?3";
const ADD_KEY: &str = "INSERT INTO keys
    (id, digest, hint, created_at, wallet, label, email, subject, entitled_until)
    VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9)";
const ADD_ACCOUNT_KEY: &str =
    "INSERT INTO keys (id, digest, hint, created_at, account) VALUES (?1, ?2, ?3, ?4, ?5)";
const RENEW_ENTITLEMENT: &str = "UPDATE keys SET entitled_until = max(coalesce(entitled_until, 0), ?3)
    WHERE id = ?1 AND subject = ?2 AND revoked_at IS NULL AND (entitled_until > ?4 OR ?5 >
        (SELECT count(*) FROM keys WHERE subject = ?2 AND entitled_until > ?4 AND revoked_at IS NULL))";
const ADD_SUCCESSOR: &str = "INSERT INTO keys
    (id, digest, hint, created_at, account, wallet, label, email, subject, entitled_until)
    SELECT ?2, ?3, ?4, ?5, account, wallet, label, email, subject, entitled_until
    FROM keys WHERE digest = ?1 AND revoked_at IS NULL";
const REVOKE_BY_DIGEST: &str = "UPDATE keys SET revoked_at = ?2 WHERE digest = ?1";
const REVOKE_KEY: &str = "UPDATE keys SET revoked_at = ?2 WHERE id = ?1 AND revoked_at IS NULL";
const IS_LIVE: &str = "SELECT 1 FROM keys WHERE digest = ?1 AND revoked_at IS NULL";

/// Statements that must not scan tables, for the test of the query plans.
#[cfg(test)]
pub(in crate::sqlite) const INDEXED_STATEMENTS: [&str; 8] = [
    COUNT_MATCHES,
    LIMIT_EXPIRY,
    ADD_KEY,
    RENEW_ENTITLEMENT,
    ADD_SUCCESSOR,
    REVOKE_BY_DIGEST,
    REVOKE_KEY,
    IS_LIVE,
];

/// Whether a key to add is stored already.
#[derive(Debug, PartialEq, Eq)]
enum KeyState {
    /// Neither its id nor its digest is stored.
    Absent,
    /// The same id and digest are stored together.
    Same,
    /// Another key has its id or its digest.
    Conflict,
}

async fn check_existing(db: &mut SqliteConnection, key: &NewKeyRecord) -> DbResult<KeyState> {
    let row = sqlx::query(COUNT_MATCHES)
        .bind(key.id.as_str().to_owned())
        .bind(key.digest.clone())
        .fetch_one(db)
        .await?;
    Ok(match (row.try_get::<i64, _>(0)?, row.try_get::<i64, _>(1)?) {
        (0, _) => KeyState::Absent,
        (1, 1) => KeyState::Same,
        _ => KeyState::Conflict,
    })
}

/// Adds a key of the lookup API.
pub(super) struct AddLookupKeyTx {
    pub(super) key: LookupKey,
    pub(super) live_per_subject: u32,
}

impl WriteTx for AddLookupKeyTx {
    type Outcome = AddKeyOutcome;

    async fn run(&self, db: &mut SqliteConnection) -> DbResult<AddKeyOutcome> {
        let LookupKey { key, wallet, label, email, subject, entitled_until } = &self.key;
        match check_existing(db, key).await? {
            KeyState::Absent => {}
            KeyState::Same => return Ok(AddKeyOutcome::Added),
            KeyState::Conflict => return Err(key_conflict()),
        }
        if let Some(subject) = subject {
            let Some(last) = self.live_per_subject.checked_sub(1) else {
                return Ok(AddKeyOutcome::SubjectFull { room_at: None });
            };
            let query = sqlx::query(LIMIT_EXPIRY)
                .bind(subject.clone())
                .bind(key.now.as_millis())
                .bind(i64::from(last));
            if let Some(row) = query.fetch_optional(&mut *db).await? {
                let room_at = Some(Timestamp::from_millis(row.try_get(0)?));
                return Ok(AddKeyOutcome::SubjectFull { room_at });
            }
        }
        let add = sqlx::query(ADD_KEY)
            .bind(key.id.as_str().to_owned())
            .bind(key.digest.clone())
            .bind(key.hint.clone())
            .bind(key.now.as_millis())
            .bind(wallet.as_str().to_owned())
            .bind(label.clone())
            .bind(email.clone())
            .bind(subject.clone())
            .bind(entitled_until.map(Timestamp::as_millis));
        add.execute(db).await?;
        Ok(AddKeyOutcome::Added)
    }
}

/// Adds a key of the v1 API.
pub(super) async fn add_account_key(
    db: &mut SqliteConnection,
    key: &NewKeyRecord,
    account: &str,
) -> DbResult<()> {
    if check_existing(db, key).await? != KeyState::Absent {
        return Err(key_conflict());
    }
    let add = sqlx::query(ADD_ACCOUNT_KEY).bind(key.id.as_str().to_owned()).bind(key.digest.clone());
    let add = add.bind(key.hint.clone()).bind(key.now.as_millis()).bind(account.to_owned());
    add.execute(db).await?;
    Ok(())
}

impl WriteTx for RenewRequest {
    type Outcome = bool;

    async fn run(&self, db: &mut SqliteConnection) -> DbResult<bool> {
        let renew =
            sqlx::query(RENEW_ENTITLEMENT).bind(self.key.as_str().to_owned()).bind(self.subject.clone());
        let renew = renew.bind(self.until.as_millis()).bind(self.now.as_millis());
        Ok(renew.bind(i64::from(self.live_per_subject)).execute(db).await?.rows_affected() > 0)
    }
}

pub(super) struct RotateKeyTx {
    pub(super) old_digest: Vec<u8>,
    pub(super) new: NewKeyRecord,
}

impl WriteTx for RotateKeyTx {
    type Outcome = RotateOutcome;

    async fn run(&self, db: &mut SqliteConnection) -> DbResult<RotateOutcome> {
        let live = sqlx::query(IS_LIVE).bind(self.old_digest.clone()).fetch_optional(&mut *db).await?;
        if live.is_none() {
            return Ok(RotateOutcome::Stale);
        }
        if check_existing(db, &self.new).await? != KeyState::Absent {
            return Err(key_conflict());
        }
        let rotate = sqlx::query(ADD_SUCCESSOR)
            .bind(self.old_digest.clone())
            .bind(self.new.id.as_str().to_owned())
            .bind(self.new.digest.clone())
            .bind(self.new.hint.clone())
            .bind(self.new.now.as_millis());
        rotate.execute(&mut *db).await?;
        sqlx::query(REVOKE_BY_DIGEST)
            .bind(self.old_digest.clone())
            .bind(self.new.now.as_millis())
            .execute(db)
            .await?;
        Ok(RotateOutcome::Rotated)
    }
}

pub(super) struct RevokeKeyTx {
    pub(super) key: KeyId,
    pub(super) now: Timestamp,
}

impl WriteTx for RevokeKeyTx {
    type Outcome = bool;

    async fn run(&self, db: &mut SqliteConnection) -> DbResult<bool> {
        let revoke = sqlx::query(REVOKE_KEY).bind(self.key.as_str().to_owned()).bind(self.now.as_millis());
        Ok(revoke.execute(db).await?.rows_affected() > 0)
    }
}

#[cold]
fn key_conflict() -> crate::error::DbError {
    conflict("the key id or the digest belongs to another key").into()
}

/// Decodes a key of the lookup API from this column on.
pub(super) fn lookup_key(row: &SqliteRow, first: usize) -> DbResult<LookupKey> {
    Ok(LookupKey {
        key: NewKeyRecord {
            id: KeyId::new(row.try_get::<String, _>(first)?),
            digest: row.try_get(first + 1)?,
            hint: row.try_get(first + 2)?,
            now: Timestamp::from_millis(row.try_get(first + 3)?),
        },
        wallet: WalletId::new(row.try_get::<String, _>(first + 4)?),
        label: row.try_get(first + 5)?,
        email: row.try_get(first + 6)?,
        subject: row.try_get(first + 7)?,
        entitled_until: row.try_get::<Option<i64>, _>(first + 8)?.map(Timestamp::from_millis),
    })
}
