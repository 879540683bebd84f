//! Keys in SQLite: added, entitled, rotated, revoked.

use sqlx::{Row, SqliteConnection, sqlite::SqliteRow};
use transcript_core::{
    Timestamp,
    directory::{AddKey, Entitle, LookupKey, NewKey, Rotated},
    ids::{KeyId, WalletId},
};

use crate::{
    error::{Work, conflict},
    sqlite::writer::Change,
};

/// How many keys have this id or digest, and how many of them have both.
const TAKEN: &str = "SELECT count(*), count(*) FILTER (WHERE id = ?1 AND digest = ?2)
    FROM keys WHERE id = ?1 OR digest = ?2";
/// With the limit less one as offset: the end of the key with which a subject is full, if it is.
const FULL_UNTIL: &str = "SELECT entitled_until FROM keys
    WHERE subject = ?1 AND entitled_until > ?2 AND revoked_at IS NULL
    ORDER BY entitled_until DESC LIMIT 1 OFFSET ?3";
const ADD: &str = "INSERT INTO keys
    (id, digest, hint, created_at, wallet, label, email, subject, entitled_until)
    VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9)";
const ADD_OF_ACCOUNT: &str =
    "INSERT INTO keys (id, digest, hint, created_at, account) VALUES (?1, ?2, ?3, ?4, ?5)";
const ENTITLE: &str = "UPDATE keys SET entitled_until = max(coalesce(entitled_until, 0), ?3)
    WHERE id = ?1 AND subject = ?2 AND revoked_at IS NULL AND (entitled_until > ?4 OR ?5 >
        (SELECT count(*) FROM keys WHERE subject = ?2 AND entitled_until > ?4 AND revoked_at IS NULL))";
const ROTATE: &str = "INSERT INTO keys
    (id, digest, hint, created_at, account, wallet, label, email, subject, entitled_until)
    SELECT ?2, ?3, ?4, ?5, account, wallet, label, email, subject, entitled_until
    FROM keys WHERE digest = ?1 AND revoked_at IS NULL";
const RETIRE: &str = "UPDATE keys SET revoked_at = ?2 WHERE digest = ?1";
const REVOKE: &str = "UPDATE keys SET revoked_at = ?2 WHERE id = ?1 AND revoked_at IS NULL";
const LIVE: &str = "SELECT 1 FROM keys WHERE digest = ?1 AND revoked_at IS NULL";

/// What must not grow with the directory, for the test of the plans.
#[cfg(test)]
pub(in crate::sqlite) const HOT: [&str; 8] = [TAKEN, FULL_UNTIL, ADD, ENTITLE, ROTATE, RETIRE, REVOKE, LIVE];

/// Whether a key is there already.
#[derive(Debug, PartialEq, Eq)]
enum Place {
    Free,
    Same,
    Taken,
}

async fn place(db: &mut SqliteConnection, key: &NewKey) -> Work<Place> {
    let row =
        sqlx::query(TAKEN).bind(key.id.as_str().to_owned()).bind(key.digest.clone()).fetch_one(db).await?;
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
}

impl Change for Add {
    type Outcome = AddKey;

    async fn make(&self, db: &mut SqliteConnection) -> Work<AddKey> {
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
                sqlx::query(FULL_UNTIL).bind(subject.clone()).bind(key.now.as_millis()).bind(i64::from(last));
            if let Some(row) = full.fetch_optional(&mut *db).await? {
                let room_at = Some(Timestamp::from_millis(row.try_get(0)?));
                return Ok(AddKey::SubjectFull { room_at });
            }
        }
        let add = sqlx::query(ADD)
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
        Ok(AddKey::Added)
    }
}

/// Adds a key of Surface B.
pub(super) async fn add_of_account(db: &mut SqliteConnection, key: &NewKey, account: &str) -> Work<()> {
    if place(db, key).await? != Place::Free {
        return Err(taken());
    }
    let add = sqlx::query(ADD_OF_ACCOUNT).bind(key.id.as_str().to_owned()).bind(key.digest.clone());
    let add = add.bind(key.hint.clone()).bind(key.now.as_millis()).bind(account.to_owned());
    add.execute(db).await?;
    Ok(())
}

impl Change for Entitle {
    type Outcome = bool;

    async fn make(&self, db: &mut SqliteConnection) -> Work<bool> {
        let entitle = sqlx::query(ENTITLE).bind(self.key.as_str().to_owned()).bind(self.subject.clone());
        let entitle = entitle.bind(self.until.as_millis()).bind(self.now.as_millis());
        Ok(entitle.bind(i64::from(self.live_per_subject)).execute(db).await?.rows_affected() > 0)
    }
}

pub(super) struct Rotate {
    pub(super) old_digest: Vec<u8>,
    pub(super) new: NewKey,
}

impl Change for Rotate {
    type Outcome = Rotated;

    async fn make(&self, db: &mut SqliteConnection) -> Work<Rotated> {
        let live = sqlx::query(LIVE).bind(self.old_digest.clone()).fetch_optional(&mut *db).await?;
        if live.is_none() {
            return Ok(Rotated::Stale);
        }
        if place(db, &self.new).await? != Place::Free {
            return Err(taken());
        }
        let rotate = sqlx::query(ROTATE)
            .bind(self.old_digest.clone())
            .bind(self.new.id.as_str().to_owned())
            .bind(self.new.digest.clone())
            .bind(self.new.hint.clone())
            .bind(self.new.now.as_millis());
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

    async fn make(&self, db: &mut SqliteConnection) -> Work<bool> {
        let revoke = sqlx::query(REVOKE).bind(self.key.as_str().to_owned()).bind(self.now.as_millis());
        Ok(revoke.execute(db).await?.rows_affected() > 0)
    }
}

#[cold]
fn taken() -> crate::error::Fault {
    conflict("the id or the digest is another key's").into()
}

/// The key of Surface A in a row, from this column on.
pub(super) fn lookup_key(row: &SqliteRow, first: usize) -> Work<LookupKey> {
    Ok(LookupKey {
        key: NewKey {
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
