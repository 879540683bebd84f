//! Keys in PostgreSQL: added, entitled, rotated, revoked.

use sqlx::{PgConnection, Row, postgres::PgRow};
use transcript_core::{
    Timestamp,
    directory::{AddKey, Entitle, LookupKey, NewKey, Rotated},
    ids::{KeyId, WalletId},
};

use crate::{
    error::{Work, conflict},
    postgres::{
        database::{Change, Database},
        text::{own, perhaps, read, read_perhaps},
    },
};

/// How many keys have this id or digest, and how many of them have both.
const TAKEN: &str = "SELECT count(*), count(*) FILTER (WHERE id = $1 AND digest = $2)
    FROM keys WHERE id = $1 OR digest = $2";
/// With the limit less one as offset: the end of the key with which a subject is full, if it is.
const FULL_UNTIL: &str = "SELECT entitled_until FROM keys
    WHERE subject = $1 AND entitled_until > $2 AND revoked_at IS NULL
    ORDER BY entitled_until DESC OFFSET $3 LIMIT 1";
const ADD: &str = "INSERT INTO keys
    (id, digest, hint, created_at, wallet, label, email, subject, entitled_until, seq)
    VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10)";
const ADD_OF_ACCOUNT: &str =
    "INSERT INTO keys (id, digest, hint, created_at, account, seq) VALUES ($1, $2, $3, $4, $5, $6)";
const ENTITLE: &str = "UPDATE keys SET entitled_until = greatest(coalesce(entitled_until, 0), $3)
    WHERE id = $1 AND subject = $2 AND revoked_at IS NULL AND (entitled_until > $4 OR $5 >
        (SELECT count(*) FROM keys WHERE subject = $2 AND entitled_until > $4 AND revoked_at IS NULL))";
const ROTATE: &str = "INSERT INTO keys
    (id, digest, hint, created_at, seq, account, wallet, label, email, subject, entitled_until)
    SELECT $2, $3, $4, $5, $6, account, wallet, label, email, subject, entitled_until
    FROM keys WHERE digest = $1 AND revoked_at IS NULL";
const RETIRE: &str = "UPDATE keys SET revoked_at = $2 WHERE digest = $1";
const REVOKE: &str = "UPDATE keys SET revoked_at = $2 WHERE id = $1 AND revoked_at IS NULL";
const LIVE: &str = "SELECT 1 FROM keys WHERE digest = $1 AND revoked_at IS NULL";

/// Whether a key is there already.
#[derive(Debug, PartialEq, Eq)]
enum Place {
    Free,
    Same,
    Taken,
}

async fn place(db: &mut PgConnection, key: &NewKey) -> Work<Place> {
    let row = sqlx::query(TAKEN).bind(own(key.id.as_str())).bind(key.digest.clone()).fetch_one(db).await?;
    Ok(match (row.try_get::<i64, _>(0)?, row.try_get::<i64, _>(1)?) {
        (0, _) => Place::Free,
        (1, 1) => Place::Same,
        _ => Place::Taken,
    })
}

/// A new key of Surface A.
pub(super) struct Add {
    pub(super) key: LookupKey,
    pub(super) live_per_subject: u32,
    pub(super) numbers: Database,
}

impl Change for Add {
    type Outcome = AddKey;

    async fn make(&self, db: &mut PgConnection) -> Work<AddKey> {
        let LookupKey { key, wallet, label, email, subject, entitled_until } = &self.key;
        match place(db, key).await? {
            Place::Free => {}
            Place::Same => return Ok(AddKey::Added),
            Place::Taken => return Err(taken()),
        }
        if let Some(subject) = subject {
            let Some(last) = self.live_per_subject.checked_sub(1) else {
                return Ok(AddKey::SubjectFull { room_at: None });
            };
            let full =
                sqlx::query(FULL_UNTIL).bind(own(subject)).bind(key.now.as_millis()).bind(i64::from(last));
            if let Some(row) = full.fetch_optional(&mut *db).await? {
                let room_at = Some(Timestamp::from_millis(row.try_get(0)?));
                return Ok(AddKey::SubjectFull { room_at });
            }
        }
        let add = sqlx::query(ADD)
            .bind(own(key.id.as_str()))
            .bind(key.digest.clone())
            .bind(own(&key.hint))
            .bind(key.now.as_millis())
            .bind(own(wallet.as_str()))
            .bind(perhaps(label.as_deref()))
            .bind(perhaps(email.as_deref()))
            .bind(perhaps(subject.as_deref()))
            .bind(entitled_until.map(Timestamp::as_millis))
            .bind(self.numbers.numbers(key.now.as_millis(), 1));
        add.execute(db).await?;
        Ok(AddKey::Added)
    }
}

/// Adds a key of Surface B.
pub(super) async fn add_of_account(db: &mut PgConnection, key: &NewKey, account: &str, seq: i64) -> Work<()> {
    if place(db, key).await? != Place::Free {
        return Err(taken());
    }
    let add = sqlx::query(ADD_OF_ACCOUNT).bind(own(key.id.as_str())).bind(key.digest.clone());
    let add = add.bind(own(&key.hint)).bind(key.now.as_millis()).bind(own(account)).bind(seq);
    add.execute(db).await?;
    Ok(())
}

impl Change for Entitle {
    type Outcome = bool;

    async fn make(&self, db: &mut PgConnection) -> Work<bool> {
        let entitle = sqlx::query(ENTITLE).bind(own(self.key.as_str())).bind(own(&self.subject));
        let entitle = entitle.bind(self.until.as_millis()).bind(self.now.as_millis());
        Ok(entitle.bind(i64::from(self.live_per_subject)).execute(db).await?.rows_affected() > 0)
    }
}

pub(super) struct Rotate {
    pub(super) old_digest: Vec<u8>,
    pub(super) new: NewKey,
    pub(super) numbers: Database,
}

impl Change for Rotate {
    type Outcome = Rotated;
    const IS_REPEATABLE: bool = false;

    async fn make(&self, db: &mut PgConnection) -> Work<Rotated> {
        let live = sqlx::query(LIVE).bind(self.old_digest.clone()).fetch_optional(&mut *db).await?;
        if live.is_none() {
            return Ok(Rotated::Stale);
        }
        if place(db, &self.new).await? != Place::Free {
            return Err(taken());
        }
        let rotate = sqlx::query(ROTATE)
            .bind(self.old_digest.clone())
            .bind(own(self.new.id.as_str()))
            .bind(self.new.digest.clone())
            .bind(own(&self.new.hint))
            .bind(self.new.now.as_millis())
            .bind(self.numbers.numbers(self.new.now.as_millis(), 1));
        rotate.execute(&mut *db).await?;
        sqlx::query(RETIRE).bind(self.old_digest.clone()).bind(self.new.now.as_millis()).execute(db).await?;
        Ok(Rotated::Rotated)
    }
}

pub(super) struct RevokeKey {
    pub(super) key: KeyId,
    pub(super) now: Timestamp,
}

impl Change for RevokeKey {
    type Outcome = bool;
    const IS_STEP: bool = true;
    const IS_REPEATABLE: bool = false;

    async fn make(&self, db: &mut PgConnection) -> Work<bool> {
        let revoke = sqlx::query(REVOKE).bind(own(self.key.as_str())).bind(self.now.as_millis());
        Ok(revoke.execute(db).await?.rows_affected() > 0)
    }
}

#[cold]
fn taken() -> crate::error::Fault {
    conflict("the id or the digest is another key's").into()
}

/// The key of Surface A in a row, from this column on.
pub(super) fn lookup_key(row: &PgRow, first: usize) -> Work<LookupKey> {
    Ok(LookupKey {
        key: NewKey {
            id: KeyId::new(read(row, first)?),
            digest: row.try_get(first + 1)?,
            hint: read(row, first + 2)?,
            now: Timestamp::from_millis(row.try_get(first + 3)?),
        },
        wallet: WalletId::new(read(row, first + 4)?),
        label: read_perhaps(row, first + 5)?,
        email: read_perhaps(row, first + 6)?,
        subject: read_perhaps(row, first + 7)?,
        entitled_until: row.try_get::<Option<i64>, _>(first + 8)?.map(Timestamp::from_millis),
    })
}
