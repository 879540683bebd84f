//! Replies to repeat, in SQLite.

use async_trait::async_trait;
use sqlx::{Row, SqliteConnection};
use transcript_core::{
    Result,
    accounts::{Attempt, Begun, Header, Replies, Reply},
    ids::Holder,
};

use super::{SqliteStore, writer::Change};
use crate::{
    codec,
    error::{Work, conflict, corrupt},
};

/// Forgets what is kept no longer: this key, and a few of the others.
const FORGET: &str = "DELETE FROM replies WHERE key = ?1 AND keep_until <= ?2;
    DELETE FROM replies WHERE key IN (
        SELECT key FROM replies WHERE keep_until <= ?2 ORDER BY keep_until LIMIT 16
    )";
const BEGUN: &str =
    "SELECT fingerprint, holder, lease_until, status, headers, body FROM replies WHERE key = ?1";
const BEGIN: &str = "INSERT INTO replies (key, fingerprint, holder, lease_until, keep_until)
    VALUES (?1, ?2, ?3, ?4, ?5)
    ON CONFLICT (key) DO UPDATE SET holder = excluded.holder, lease_until = excluded.lease_until,
        keep_until = excluded.keep_until";
const FINISH: &str = "UPDATE replies SET status = ?3, headers = ?4, body = ?5
    WHERE key = ?1 AND holder = ?2 AND status IS NULL";
const FINISHED: &str = "SELECT 1 FROM replies WHERE key = ?1 AND holder = ?2 AND status IS NOT NULL";
const ABANDON: &str = "DELETE FROM replies WHERE key = ?1 AND holder = ?2 AND status IS NULL";

/// What runs with every request, for the test of the plans.
#[cfg(test)]
pub(super) const HOT: [&str; 6] = [FORGET, BEGUN, BEGIN, FINISH, FINISHED, ABANDON];

impl Change for Attempt {
    type Outcome = Begun;

    async fn make(&self, db: &mut SqliteConnection) -> Work<Begun> {
        let now = self.now.as_millis();
        sqlx::query(FORGET).bind(self.key.clone()).bind(now).execute(&mut *db).await?;
        if let Some(row) = sqlx::query(BEGUN).bind(self.key.clone()).fetch_optional(&mut *db).await? {
            if row.try_get::<&[u8], _>(0)? != self.fingerprint {
                return Ok(Begun::Mismatch);
            }
            if let Some(status) = row.try_get::<Option<u16>, _>(3)? {
                let headers: Vec<(String, String)> = serde_json::from_str(row.try_get(4)?)
                    .map_err(|_| corrupt("the headers of a stored reply are damaged"))?;
                let headers = headers.into_iter().map(|(name, value)| Header { name, value }).collect();
                return Ok(Begun::Done(Reply { status, headers, body: row.try_get(5)? }));
            }
            if row.try_get::<&str, _>(1)? != self.holder.as_str() && row.try_get::<i64, _>(2)? > now {
                return Ok(Begun::InFlight);
            }
        }
        let begin = sqlx::query(BEGIN).bind(self.key.clone()).bind(self.fingerprint.clone());
        let begin = begin.bind(self.holder.as_str().to_owned()).bind(self.lease_until.as_millis());
        begin.bind(self.keep_until.as_millis()).execute(db).await?;
        Ok(Begun::Fresh)
    }
}

struct Finish {
    key: String,
    holder: Holder,
    reply: Reply,
}

impl Change for Finish {
    type Outcome = ();

    async fn make(&self, db: &mut SqliteConnection) -> Work<()> {
        let headers: Vec<(&str, &str)> =
            self.reply.headers.iter().map(|header| (header.name.as_str(), header.value.as_str())).collect();
        let (key, holder) = (self.key.clone(), self.holder.as_str().to_owned());
        let finish = sqlx::query(FINISH).bind(key.clone()).bind(holder.clone());
        let finish =
            finish.bind(self.reply.status).bind(codec::json(&headers)?).bind(self.reply.body.clone());
        if finish.execute(&mut *db).await?.rows_affected() > 0 {
            return Ok(());
        }
        match sqlx::query(FINISHED).bind(key).bind(holder).fetch_optional(db).await? {
            Some(_) => Ok(()),
            None => Err(conflict("another works on this request by now, or nobody does").into()),
        }
    }
}

struct Abandon {
    key: String,
    holder: Holder,
}

impl Change for Abandon {
    type Outcome = ();

    async fn make(&self, db: &mut SqliteConnection) -> Work<()> {
        let abandon = sqlx::query(ABANDON).bind(self.key.clone());
        abandon.bind(self.holder.as_str().to_owned()).execute(db).await?;
        Ok(())
    }
}

#[async_trait]
impl Replies for SqliteStore {
    async fn begin(&self, attempt: Attempt) -> Result<Begun> {
        self.database.make(attempt).await
    }

    async fn finish(&self, key: &str, holder: &Holder, reply: Reply) -> Result<()> {
        self.database.make(Finish { key: key.to_owned(), holder: holder.clone(), reply }).await
    }

    async fn abandon(&self, key: &str, holder: &Holder) -> Result<()> {
        self.database.make(Abandon { key: key.to_owned(), holder: holder.clone() }).await
    }
}
