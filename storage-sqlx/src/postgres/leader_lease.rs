//! Leader leases: one server runs a periodic job, by an expiring row.

use sqlx::{PgConnection, Row};
use transcript_core::{Error, Result, Timestamp, ids::Holder};

use super::{
    PostgresArchive, PostgresStore,
    database::{PgDatabase, ReadQuery, WriteTx},
    text::encode,
};
use crate::error::DbResult;

const TRY_LEAD: &str = "INSERT INTO turns (name, holder, until) VALUES ($1, $2, $4)
    ON CONFLICT (name) DO UPDATE SET holder = excluded.holder, until = excluded.until
    WHERE turns.holder = excluded.holder OR turns.until <= $3";

struct TryLeadTx {
    name: &'static str,
    holder: Holder,
    now: Timestamp,
    expires_at: Timestamp,
}

impl WriteTx for TryLeadTx {
    type Outcome = bool;
    const IS_SINGLE_STATEMENT: bool = true;

    async fn run(&self, db: &mut PgConnection) -> DbResult<bool> {
        let take = sqlx::query(TRY_LEAD).bind(self.name).bind(encode(self.holder.as_str()));
        let take = take.bind(self.now.as_millis()).bind(self.expires_at.as_millis());
        Ok(take.execute(db).await?.rows_affected() > 0)
    }
}

impl PostgresStore {
    /// Acquires the leader lease `name` until a time; returns whether `holder` has it now.
    ///
    /// Its holder can acquire it again, with a later or earlier end.
    ///
    /// # Errors
    /// [`transcript_core::ErrorKind::Unavailable`] if the database cannot be reached.
    pub async fn try_lead(
        &self,
        name: &'static str,
        holder: &Holder,
        now: Timestamp,
        expires_at: Timestamp,
    ) -> Result<bool> {
        self.database.run(TryLeadTx { name, holder: holder.clone(), now, expires_at }).await
    }
}

const NOW: &str = "SELECT (extract(epoch FROM clock_timestamp()) * 1000)::BIGINT";

impl PostgresStore {
    /// The time of the database's clock, which all servers share.
    ///
    /// # Errors
    /// [`transcript_core::ErrorKind::Unavailable`] if the database cannot be reached.
    pub async fn now(&self) -> Result<Timestamp> {
        now(&self.database).await
    }
}

impl PostgresArchive {
    /// The time of the database's clock, as [`PostgresStore::now`].
    ///
    /// # Errors
    /// [`transcript_core::ErrorKind::Unavailable`] if the database cannot be reached.
    pub async fn now(&self) -> Result<Timestamp> {
        now(&self.database).await
    }
}

async fn now(database: &PgDatabase) -> Result<Timestamp> {
    let found = database.find_first(ReadQuery::new(NOW), |row| Ok(Timestamp::from_millis(row.try_get(0)?)));
    found.await?.ok_or_else(|| Error::unexpected("the database returned no row for its time"))
}
