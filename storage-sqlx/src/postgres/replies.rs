//! Replies to repeat, in PostgreSQL.

use async_trait::async_trait;
use sqlx::{PgConnection, Row};
use transcript_core::{
    Error, Result,
    accounts::{Attempt, Begun, Header, Replies, Reply},
    ids::Holder,
};

use super::{
    PostgresStore,
    database::{Change, chance},
    text::own,
};
use crate::{
    codec,
    error::{Work, conflict, corrupt},
};

/// One of so many attempts forgets what is kept no longer.
const FORGET_EVERY: u64 = 16;

const FORGET: &str = "DELETE FROM replies WHERE key IN (
        SELECT key FROM replies WHERE keep_until <= $1 ORDER BY keep_until LIMIT 256
    ) AND keep_until <= $1";
/// Begins where nothing is known of the key, where what is known is over, and where nobody works on it any more.
const BEGIN: &str = "INSERT INTO replies (key, fingerprint, holder, lease_until, keep_until)
    VALUES ($1, $2, $3, $4, $5)
    ON CONFLICT (key) DO UPDATE SET fingerprint = excluded.fingerprint, holder = excluded.holder,
        lease_until = excluded.lease_until, keep_until = excluded.keep_until, status = NULL, headers = NULL,
        body = NULL
    WHERE replies.keep_until <= $6 OR replies.status IS NULL AND replies.fingerprint = excluded.fingerprint
        AND (replies.holder = excluded.holder OR replies.lease_until <= $6)";
const BEGUN: &str = "SELECT fingerprint, status, headers, body FROM replies WHERE key = $1";
const FINISH: &str = "UPDATE replies SET status = $3, headers = $4, body = $5
    WHERE key = $1 AND holder = $2 AND status IS NULL";
const FINISHED: &str = "SELECT 1 FROM replies WHERE key = $1 AND holder = $2 AND status IS NOT NULL";
const ABANDON: &str = "DELETE FROM replies WHERE key = $1 AND holder = $2 AND status IS NULL";

/// One statement that begins; what is known is read only where it does not.
struct Begin(Attempt);

impl Change for Begin {
    /// None when the key was given up between the two statements.
    type Outcome = Option<Begun>;
    const IS_STEP: bool = true;

    async fn make(&self, db: &mut PgConnection) -> Work<Option<Begun>> {
        let Self(attempt) = self;
        let (key, now) = (own(&attempt.key), attempt.now.as_millis());
        let begin = sqlx::query(BEGIN).bind(key.clone()).bind(attempt.fingerprint.clone());
        let begin = begin.bind(own(attempt.holder.as_str())).bind(attempt.lease_until.as_millis());
        let begin = begin.bind(attempt.keep_until.as_millis()).bind(now);
        if begin.execute(&mut *db).await?.rows_affected() > 0 {
            return Ok(Some(Begun::Fresh));
        }
        let Some(row) = sqlx::query(BEGUN).bind(key).fetch_optional(db).await? else {
            return Ok(None);
        };
        if row.try_get::<&[u8], _>(0)? != attempt.fingerprint {
            return Ok(Some(Begun::Mismatch));
        }
        let Some(status) = row.try_get::<Option<i64>, _>(1)? else {
            return Ok(Some(Begun::InFlight));
        };
        let headers: Vec<(String, String)> = serde_json::from_str(row.try_get(2)?)
            .map_err(|_| corrupt("the headers of a stored reply are damaged"))?;
        let headers = headers.into_iter().map(|(name, value)| Header { name, value }).collect();
        let status = u16::try_from(status).map_err(|_| corrupt("the status of a stored reply is none"))?;
        Ok(Some(Begun::Done(Reply { status, headers, body: row.try_get(3)? })))
    }
}

/// Replies to forget that are kept until a moment at most, in milliseconds.
struct Forget(i64);

impl Change for Forget {
    type Outcome = ();
    const IS_STEP: bool = true;

    async fn make(&self, db: &mut PgConnection) -> Work<()> {
        sqlx::query(FORGET).bind(self.0).execute(db).await?;
        Ok(())
    }
}

struct Finish {
    key: String,
    holder: Holder,
    reply: Reply,
}

impl Change for Finish {
    type Outcome = ();
    const IS_STEP: bool = true;

    async fn make(&self, db: &mut PgConnection) -> Work<()> {
        let headers: Vec<(&str, &str)> =
            self.reply.headers.iter().map(|header| (header.name.as_str(), header.value.as_str())).collect();
        let (key, holder) = (own(&self.key), own(self.holder.as_str()));
        let finish = sqlx::query(FINISH).bind(key.clone()).bind(holder.clone());
        let finish = finish.bind(i64::from(self.reply.status)).bind(codec::json(&headers)?);
        if finish.bind(self.reply.body.clone()).execute(&mut *db).await?.rows_affected() > 0 {
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
    const IS_STEP: bool = true;

    async fn make(&self, db: &mut PgConnection) -> Work<()> {
        let abandon = sqlx::query(ABANDON).bind(own(&self.key)).bind(own(self.holder.as_str()));
        abandon.execute(db).await?;
        Ok(())
    }
}

#[async_trait]
impl Replies for PostgresStore {
    async fn begin(&self, attempt: Attempt) -> Result<Begun> {
        for _ in 0..8 {
            if let Some(begun) = self.database.make(Begin(attempt.clone())).await? {
                if begun == Begun::Fresh && chance(FORGET_EVERY) == 0 {
                    // By itself: what was begun is begun, whatever becomes of this.
                    if let Err(error) = self.database.make(Forget(attempt.now.as_millis())).await {
                        tracing::debug!(%error, "replies that are kept no longer could not be forgotten");
                    }
                }
                return Ok(begun);
            }
        }
        Err(Error::unavailable("others begin and give up the same request: try again in a moment"))
    }

    async fn finish(&self, key: &str, holder: &Holder, reply: Reply) -> Result<()> {
        self.database.make(Finish { key: key.to_owned(), holder: holder.clone(), reply }).await
    }

    async fn abandon(&self, key: &str, holder: &Holder) -> Result<()> {
        self.database.make(Abandon { key: key.to_owned(), holder: holder.clone() }).await
    }
}
