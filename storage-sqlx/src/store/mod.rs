//! The ports with one text for both databases.
//!
//! A write is a [`crate::sql::WriteTx`] over a [`crate::sql::Session`], and a read one statement of a
//! [`crate::sql::Database`]. The writes of ledger and charges are apart, in `sqlite` and `postgres`: their rows and
//! batches differ.

pub(crate) mod admin;
pub(crate) mod archive;
pub(crate) mod directory;
pub(crate) mod idempotency;
pub(crate) mod jobs;
pub(crate) mod ledger;
pub(crate) mod limits;
mod orders;
pub(crate) mod outbox;
mod secrets;
pub(crate) mod sessions;

pub use archive::SqlArchive;

use std::{
    collections::hash_map::RandomState,
    fmt,
    hash::{BuildHasher, Hasher},
};

use transcript_core::Result;

use crate::sql::{Database, Statement, sql, values};

/// A write that changes no data: a page of the file, or a row of the schema's versions.
pub(crate) const TEST_WRITE: Statement = sql! {
    sqlite: "PRAGMA user_version = 0",
    postgres: "UPDATE verbatim_schema SET name = name WHERE part = $1 AND version = 1",
};

/// Commits a write that changes no data, in a part of the schema.
pub(crate) async fn check_writable<D: Database>(database: &D, part: &'static str) -> Result<()> {
    database.execute(TEST_WRITE, &values![part]).await.map(|_| ())
}

/// The data of keys, accounts and the ledger, in one database.
///
/// Its forms, `SqliteStore` and `PostgresStore`, implement [`transcript_core::ledger::Ledger`],
/// [`transcript_core::directory::Directory`], [`transcript_core::directory::SecretStore`],
/// [`transcript_core::limits::RateLimiter`], [`transcript_core::admin::AdminStore`],
/// [`transcript_core::accounts::ChargeStore`], [`transcript_core::accounts::IdempotencyStore`],
/// [`transcript_core::accounts::Outbox`], [`transcript_core::accounts::OrderStore`],
/// [`transcript_core::accounts::SessionStore`], [`transcript_core::accounts::jobs::JobStore`] and
/// [`transcript_core::accounts::webhooks::WebhookStore`].
#[derive(Debug)]
pub struct Store<D, Q = ()> {
    pub(crate) database: D,
    /// The queues in front of the database, for requests that run in batches.
    #[cfg_attr(not(feature = "postgres"), allow(dead_code, reason = "only PostgreSQL has queues"))]
    pub(crate) queues: Q,
}

/// The queues of a store. The ports here do not use them.
pub(crate) trait Queues: fmt::Debug + Send + Sync + 'static {}

impl<Q: fmt::Debug + Send + Sync + 'static> Queues for Q {}

/// Deletes some rows that ended before a time, after one in `interval` writes to a server.
///
/// A local write deletes a few each time. On a server that would be one more round trip.
async fn delete_expired<D: Database>(database: &D, interval: u64, statement: Statement, before: i64) {
    if D::IS_REMOTE && random_below(interval) == 0 {
        // Separate: the write stays even if this fails.
        if let Err(error) = database.execute(statement, &values![before]).await {
            tracing::debug!(%error, "expired row delete failed");
        }
    }
}

/// A random number below a bound, such as for retry pauses that spread conflicting writes.
pub(crate) fn random_below(below: u64) -> u64 {
    RandomState::new().build_hasher().finish() % below.max(1)
}
