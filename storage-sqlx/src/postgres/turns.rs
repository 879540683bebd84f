//! Whose turn it is with what one server at a time does, as a row that runs out.

use sqlx::{PgConnection, Row};
use transcript_core::{Error, Result, Timestamp, ids::Holder};

use super::{
    PostgresArchive, PostgresStore,
    database::{Change, Database, Read},
    text::own,
};
use crate::error::Work;

const TAKE: &str = "INSERT INTO turns (name, holder, until) VALUES ($1, $2, $4)
    ON CONFLICT (name) DO UPDATE SET holder = excluded.holder, until = excluded.until
    WHERE turns.holder = excluded.holder OR turns.until <= $3";

struct Take {
    name: &'static str,
    holder: Holder,
    now: Timestamp,
    until: Timestamp,
}

impl Change for Take {
    type Outcome = bool;
    const IS_STEP: bool = true;

    async fn make(&self, db: &mut PgConnection) -> Work<bool> {
        let take = sqlx::query(TAKE).bind(self.name).bind(own(self.holder.as_str()));
        let take = take.bind(self.now.as_millis()).bind(self.until.as_millis());
        Ok(take.execute(db).await?.rows_affected() > 0)
    }
}

impl PostgresStore {
    /// Takes the turn with something that one server at a time does, until a moment; returns whether it is
    /// `holder`'s now. Whoever has it may take it again, and put its end off or bring it forward.
    ///
    /// # Errors
    /// [`transcript_core::ErrorKind::Unavailable`] when the database cannot be reached.
    pub async fn take_turn(
        &self,
        name: &'static str,
        holder: &Holder,
        now: Timestamp,
        until: Timestamp,
    ) -> Result<bool> {
        self.database.make(Take { name, holder: holder.clone(), now, until }).await
    }
}

const NOW: &str = "SELECT (extract(epoch FROM clock_timestamp()) * 1000)::BIGINT";

impl PostgresStore {
    /// The moment by the database's clock: the one that all servers have in common.
    ///
    /// # Errors
    /// [`transcript_core::ErrorKind::Unavailable`] when the database cannot be reached.
    pub async fn now(&self) -> Result<Timestamp> {
        now(&self.database).await
    }
}

impl PostgresArchive {
    /// The moment by the database's clock, as [`PostgresStore::now`].
    ///
    /// # Errors
    /// [`transcript_core::ErrorKind::Unavailable`] when the database cannot be reached.
    pub async fn now(&self) -> Result<Timestamp> {
        now(&self.database).await
    }
}

async fn now(database: &Database) -> Result<Timestamp> {
    let found = database.find_first(Read::new(NOW), |row| Ok(Timestamp::from_millis(row.try_get(0)?)));
    found.await?.ok_or_else(|| Error::unexpected("the database was asked for the time and no row came"))
}
