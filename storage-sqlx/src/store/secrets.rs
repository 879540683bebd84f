//! The secret store.

use async_trait::async_trait;
use transcript_core::{Result, directory::SecretStore};

use super::{Queues, Store};
use crate::{
    error::DbResult,
    sql::{Database, Session, WriteTx, values},
};

const PUT_SECRET: &str = "INSERT INTO secrets (name, value) VALUES ($1, $2) ON CONFLICT (name) DO NOTHING";
const READ_SECRET: &str = "SELECT value FROM secrets WHERE name = $1";

struct PutSecretTx {
    name: String,
    value: Vec<u8>,
}

impl WriteTx for PutSecretTx {
    type Outcome = Vec<u8>;

    async fn run<S: Session>(&self, db: &mut S) -> DbResult<Vec<u8>> {
        db.execute(PUT_SECRET, &values![&self.name, &self.value]).await?;
        db.only_row(READ_SECRET, &values![&self.name]).await?.take(0)
    }
}

#[async_trait]
impl<D: Database, Q: Queues> SecretStore for Store<D, Q> {
    async fn get_or_create(&self, name: &str, fresh: Vec<u8>) -> Result<Vec<u8>> {
        // Only the first start writes: a write on every start would wait for a sync without need.
        match self.database.find_first(READ_SECRET, &values![name], |row| row.take(0)).await? {
            Some(stored) => Ok(stored),
            None => self.database.run(PutSecretTx { name: name.to_owned(), value: fresh }).await,
        }
    }
}
