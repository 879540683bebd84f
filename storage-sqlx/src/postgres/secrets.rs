//! The service's secrets in PostgreSQL.

use async_trait::async_trait;
use sqlx::{PgConnection, Row};
use transcript_core::{Result, directory::Secrets};

use super::{
    PostgresStore,
    database::{Change, Read},
    text::own,
};
use crate::error::Work;

const KEEP: &str = "INSERT INTO secrets (name, value) VALUES ($1, $2) ON CONFLICT (name) DO NOTHING";
const SECRET: &str = "SELECT value FROM secrets WHERE name = $1";

struct Fresh {
    name: String,
    value: Vec<u8>,
}

impl Change for Fresh {
    type Outcome = Vec<u8>;

    async fn make(&self, db: &mut PgConnection) -> Work<Vec<u8>> {
        sqlx::query(KEEP).bind(self.name.clone()).bind(self.value.clone()).execute(&mut *db).await?;
        Ok(sqlx::query(SECRET).bind(self.name.clone()).fetch_one(db).await?.try_get(0)?)
    }
}

#[async_trait]
impl Secrets for PostgresStore {
    async fn secret(&self, name: &str, fresh: Vec<u8>) -> Result<Vec<u8>> {
        let read = Read::new(SECRET).text(name);
        match self.database.find_first(read, |row| Ok(row.try_get(0)?)).await? {
            Some(kept) => Ok(kept),
            None => self.database.make(Fresh { name: own(name), value: fresh }).await,
        }
    }
}
