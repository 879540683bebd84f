//! Leader leases: one server runs a periodic job, by an expiring row.

use transcript_core::{Error, Result, Timestamp, ids::Holder, time::LEASE_MAX};

use super::{PostgresArchive, PostgresStore, database::PgDatabase};
use crate::sql::{Database as _, values};

const TRY_LEAD: &str = "INSERT INTO turns (name, holder, until) VALUES ($1, $2, $4)
    ON CONFLICT (name) DO UPDATE SET holder = excluded.holder, until = excluded.until
    WHERE turns.holder = excluded.holder OR turns.until <= $3 OR turns.until > $5";

impl PostgresStore {
    /// Acquires the leader lease `name` until a time; returns whether `holder` has it now.
    ///
    /// Its holder can acquire it again, with a later or earlier end. One that ends more than [`LEASE_MAX`] after `now`
    /// is free: a clock that was ahead and was corrected since acquired it.
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
        let latest = now.plus(LEASE_MAX);
        let turn =
            values![name, holder.as_str(), now.as_millis(), expires_at.as_millis(), latest.as_millis()];
        Ok(self.database.execute(TRY_LEAD, &turn).await? > 0)
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
    let found = database.find_first(NOW, &[], |row| Ok(Timestamp::from_millis(row.take(0)?)));
    found.await?.ok_or_else(|| Error::unexpected("the database returned no row for its time"))
}
