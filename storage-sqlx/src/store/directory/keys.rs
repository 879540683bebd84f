//! API keys: add, renew, rotate, revoke.

use transcript_core::{
    Error, Timestamp,
    directory::{
        AddAccountKeyOutcome, AddKeyOutcome, LookupKey, NewAccountKey, NewKeyRecord, RenewRequest,
        RotateOutcome,
    },
    ids::{KeyId, WalletId},
};

use super::{ACCOUNT_BY_ID, key_access::key_access};
use crate::{
    codec::column,
    error::DbResult,
    sql::{Row, Session, WriteTx, values},
};

/// Number of keys with this id or digest, and of those with both.
const COUNT_MATCHES: &str = "SELECT count(*), count(*) FILTER (WHERE id = $1 AND digest = $2)
    FROM keys WHERE id = $1 OR digest = $2";
/// Expiry of the key that reaches a subject's limit of live keys. The offset is the limit minus one.
const LIMIT_EXPIRY: &str = "SELECT entitled_until FROM keys
    WHERE subject = $1 AND entitled_until > $2 AND revoked_at IS NULL
    ORDER BY entitled_until DESC LIMIT 1 OFFSET $3";
const ADD_KEY: &str = "INSERT INTO keys
    (id, digest, hint, created_at, wallet, label, email, subject, entitled_until, seq, expires_at, quota,
        quota_period)
    VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13)";
const ADD_ACCOUNT_KEY: &str = "INSERT INTO keys (id, digest, hint, created_at, account, label, seq)
    VALUES ($1, $2, $3, $4, $5, $6, $7)";
const COUNT_ACCOUNT_KEYS: &str = "SELECT count(*) FROM keys WHERE account = $1 AND revoked_at IS NULL";
const RENEW_ENTITLEMENT: &str = "UPDATE keys
    SET entitled_until = CASE WHEN entitled_until > $3 THEN entitled_until ELSE $3 END
    WHERE id = $1 AND subject = $2 AND revoked_at IS NULL AND (entitled_until > $4 OR $5 >
        (SELECT count(*) FROM keys WHERE subject = $2 AND entitled_until > $4 AND revoked_at IS NULL))";
const ADD_SUCCESSOR: &str = "INSERT INTO keys
    (id, digest, hint, created_at, seq, account, wallet, label, email, subject, entitled_until, expires_at, quota,
        quota_period, requests, last_request_at, day_start, day_requests, month_start, month_requests)
    SELECT $2, $3, $4, $5, $6, account, wallet, label, email, subject, entitled_until, expires_at, quota,
        quota_period, requests, last_request_at, day_start, day_requests, month_start, month_requests
    FROM keys WHERE digest = $1 AND revoked_at IS NULL";
const REVOKE_BY_DIGEST: &str = "UPDATE keys SET revoked_at = $2 WHERE digest = $1";
pub(super) const REVOKE_KEY: &str = "UPDATE keys SET revoked_at = $2 WHERE id = $1 AND revoked_at IS NULL";
const IS_LIVE: &str = "SELECT 1 FROM keys WHERE digest = $1 AND revoked_at IS NULL";

/// Statements that must not scan tables, for the test of the query plans.
#[cfg(all(test, feature = "sqlite"))]
pub(crate) const INDEXED_STATEMENTS: [&str; 9] = [
    COUNT_MATCHES,
    COUNT_ACCOUNT_KEYS,
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

async fn check_existing<S: Session>(db: &mut S, key: &NewKeyRecord) -> DbResult<KeyState> {
    let row = db.only_row(COUNT_MATCHES, &values![key.id.as_str(), &key.digest]).await?;
    Ok(match (row.get::<i64>(0)?, row.get::<i64>(1)?) {
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

    async fn run<S: Session>(&self, db: &mut S) -> DbResult<AddKeyOutcome> {
        let LookupKey { key, wallet, label, email, subject, entitled_until, access } = &self.key;
        match check_existing(db, key).await? {
            KeyState::Absent => {}
            KeyState::Same => return Ok(AddKeyOutcome::Added),
            KeyState::Conflict => return Err(key_conflict()),
        }
        if let Some(subject) = subject {
            let Some(last) = self.live_per_subject.checked_sub(1) else {
                return Ok(AddKeyOutcome::SubjectFull { room_at: None });
            };
            let bounds = values![subject, key.now.as_millis(), last];
            if let Some(row) = db.row(LIMIT_EXPIRY, &bounds).await? {
                let room_at = Some(Timestamp::from_millis(row.get(0)?));
                return Ok(AddKeyOutcome::SubjectFull { room_at });
            }
        }
        let row = values![
            key.id.as_str(),
            &key.digest,
            &key.hint,
            key.now.as_millis(),
            wallet.as_str(),
            label.as_ref(),
            email.as_ref(),
            subject.as_ref(),
            entitled_until.map(Timestamp::as_millis),
            db.next_number(key.now),
            access.expires_at.map(Timestamp::as_millis),
            access.quota.map(|quota| column(quota.max)).transpose()?,
            access.quota.map(|quota| quota.period.as_str()),
        ];
        db.execute(ADD_KEY, &row).await?;
        Ok(AddKeyOutcome::Added)
    }
}

/// Adds the key of the v1 API that a redemption issues.
pub(super) async fn add_account_key<S: Session>(
    db: &mut S,
    key: &NewKeyRecord,
    account: &str,
) -> DbResult<()> {
    match check_existing(db, key).await? {
        KeyState::Absent => insert_account_key(db, key, account, None).await,
        _ => Err(key_conflict()),
    }
}

async fn insert_account_key<S: Session>(
    db: &mut S,
    key: &NewKeyRecord,
    account: &str,
    name: Option<&String>,
) -> DbResult<()> {
    let seq = db.next_number(key.now);
    let row = values![key.id.as_str(), &key.digest, &key.hint, key.now.as_millis(), account, name, seq];
    db.execute(ADD_ACCOUNT_KEY, &row).await?;
    Ok(())
}

/// Adds a further key of the v1 API.
pub(super) struct AddAccountKeyTx {
    pub(super) new: NewAccountKey,
    pub(super) live_max: u32,
}

impl WriteTx for AddAccountKeyTx {
    type Outcome = AddAccountKeyOutcome;

    async fn run<S: Session>(&self, db: &mut S) -> DbResult<AddAccountKeyOutcome> {
        let NewAccountKey { key, account, name } = &self.new;
        match check_existing(db, key).await? {
            KeyState::Absent => {}
            KeyState::Same => return Ok(AddAccountKeyOutcome::Added),
            KeyState::Conflict => return Err(key_conflict()),
        }
        let account = account.as_str();
        if db.row(ACCOUNT_BY_ID, &values![account]).await?.is_none() {
            return Ok(AddAccountKeyOutcome::Missing);
        }
        let live = db.only_row(COUNT_ACCOUNT_KEYS, &values![account]).await?.get::<i64>(0)?;
        if live >= i64::from(self.live_max) {
            return Ok(AddAccountKeyOutcome::AccountFull);
        }
        insert_account_key(db, key, account, Some(name)).await?;
        Ok(AddAccountKeyOutcome::Added)
    }
}

impl WriteTx for RenewRequest {
    type Outcome = bool;

    async fn run<S: Session>(&self, db: &mut S) -> DbResult<bool> {
        let (until, now) = (self.until.as_millis(), self.now.as_millis());
        let row = values![self.key.as_str(), &self.subject, until, now, self.live_per_subject];
        Ok(db.execute(RENEW_ENTITLEMENT, &row).await? > 0)
    }
}

pub(super) struct RotateKeyTx {
    pub(super) old_digest: Vec<u8>,
    pub(super) new: NewKeyRecord,
}

impl WriteTx for RotateKeyTx {
    type Outcome = RotateOutcome;
    const IS_IDEMPOTENT: bool = false;

    async fn run<S: Session>(&self, db: &mut S) -> DbResult<RotateOutcome> {
        if db.row(IS_LIVE, &values![&self.old_digest]).await?.is_none() {
            return Ok(RotateOutcome::Stale);
        }
        if check_existing(db, &self.new).await? != KeyState::Absent {
            return Err(key_conflict());
        }
        let NewKeyRecord { id, digest, hint, now } = &self.new;
        let seq = db.next_number(*now);
        let row = values![&self.old_digest, id.as_str(), digest, hint, now.as_millis(), seq];
        db.execute(ADD_SUCCESSOR, &row).await?;
        db.execute(REVOKE_BY_DIGEST, &values![&self.old_digest, now.as_millis()]).await?;
        Ok(RotateOutcome::Rotated)
    }
}

#[cold]
fn key_conflict() -> crate::error::DbError {
    Error::conflict("the key id or the digest belongs to another key").into()
}

/// Decodes a key of the lookup API from this column on.
pub(super) fn lookup_key(row: &mut Row, first: usize) -> DbResult<LookupKey> {
    Ok(LookupKey {
        key: NewKeyRecord {
            id: KeyId::new(row.take::<String>(first)?),
            digest: row.take(first + 1)?,
            hint: row.take(first + 2)?,
            now: Timestamp::from_millis(row.take(first + 3)?),
        },
        wallet: WalletId::new(row.take::<String>(first + 4)?),
        label: row.take(first + 5)?,
        email: row.take(first + 6)?,
        subject: row.take(first + 7)?,
        entitled_until: row.take::<Option<i64>>(first + 8)?.map(Timestamp::from_millis),
        access: key_access(row, first + 9)?,
    })
}
