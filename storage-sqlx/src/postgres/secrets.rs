//! Secret store in PostgreSQL.

use async_trait::async_trait;
use sqlx::{PgConnection, Row};
use transcript_core::{Result, directory::SecretStore};

use super::{
    PostgresStore,
    database::{ReadQuery, WriteTx},
    text::encode,
};
use crate::error::DbResult;

const PUT_SECRET: &str = "INSERT INTO secrets (name, value) VALUES ($1, $2) ON CONFLICT (name) DO NOTHING";
const READ_SECRET: &str = "SELECT value FROM secrets WHERE name = $1";

struct PutSecretTx {
    name: String,
    value: Vec<u8>,
}

impl WriteTx for PutSecretTx {
    type Outcome = Vec<u8>;

    async fn run(&self, db: &mut PgConnection) -> DbResult<Vec<u8>> {
        sqlx::query(PUT_SECRET).bind(self.name.clone()).bind(self.value.clone()).execute(&mut *db).await?;
        Ok(sqlx::query(READ_SECRET).bind(self.name.clone()).fetch_one(db).await?.try_get(0)?)
    }
}

#[async_trait]
impl SecretStore for PostgresStore {
    async fn get_or_create(&self, name: &str, fresh: Vec<u8>) -> Result<Vec<u8>> {
        let read = ReadQuery::new(READ_SECRET).text(name);
        match self.database.find_first(read, |row| Ok(row.try_get(0)?)).await? {
            Some(kept) => Ok(kept),
            None => self.database.run(PutSecretTx { name: encode(name), value: fresh }).await,
        }
    }
}
