//! Secret store in SQLite.

use async_trait::async_trait;
use sqlx::{Row, SqliteConnection};
use transcript_core::{Result, directory::SecretStore};

use super::{SqliteStore, writer::WriteTx};
use crate::error::DbResult;

const PUT_SECRET: &str = "INSERT INTO secrets (name, value) VALUES (?1, ?2) ON CONFLICT (name) DO NOTHING";
const READ_SECRET: &str = "SELECT value FROM secrets WHERE name = ?1";

struct PutSecretTx {
    name: String,
    value: Vec<u8>,
}

impl WriteTx for PutSecretTx {
    type Outcome = Vec<u8>;

    async fn run(&self, db: &mut SqliteConnection) -> DbResult<Vec<u8>> {
        sqlx::query(PUT_SECRET).bind(self.name.clone()).bind(self.value.clone()).execute(&mut *db).await?;
        Ok(sqlx::query(READ_SECRET).bind(self.name.clone()).fetch_one(db).await?.try_get(0)?)
    }
}

#[async_trait]
impl SecretStore for SqliteStore {
    async fn get_or_create(&self, name: &str, fresh: Vec<u8>) -> Result<Vec<u8>> {
        // Only the first start writes: a write on every start would wait for a sync without need.
        let query = || sqlx::query(READ_SECRET).bind(name.to_owned());
        match self.database.find_first(query, |row| Ok(row.try_get(0)?)).await? {
            Some(kept) => Ok(kept),
            None => self.database.run(PutSecretTx { name: name.to_owned(), value: fresh }).await,
        }
    }
}
