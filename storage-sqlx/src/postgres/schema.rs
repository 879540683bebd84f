//! Schema versions of a PostgreSQL database, and their migrations.
//!
//! Several servers may start at once. The one that migrates holds a lease, an expiring row: the others poll until the
//! newest version is there, or the lease is free. The times of this lease are the database's own, so that differing
//! clocks of servers do not matter.

use std::time::{Duration, Instant};

use sqlx::{PgConnection, Row};
use transcript_core::{Error, Result};

use super::{
    database::{PgDatabase, PgTx, already_exists, is_missing_table},
    random_number,
    sqlstate::opening_error,
};
use crate::{
    error::{DbResult, INCOMPLETE_COPY, incomplete_copy},
    migration::{Migration, last_version},
};

/// A part of the database with its own versions.
#[derive(Debug)]
pub(super) struct SchemaPart {
    /// The stored name.
    pub(super) name: &'static str,
    /// The migrations in order; the number of the last is the schema version.
    pub(super) migrations: &'static [Migration],
}

impl SchemaPart {
    /// The newest version that this program knows.
    pub(super) fn newest(&self) -> i64 {
        last_version(self.migrations).into()
    }
}

/// How long to wait for the migration of another server.
const MIGRATION_TIMEOUT: Duration = Duration::from_secs(120);
/// Pause between two polls.
const PAUSE: Duration = Duration::from_millis(50);

/// These two tables never change: programs of every version read them.
const CREATE_VERSIONS: &str = "CREATE TABLE IF NOT EXISTS verbatim_schema (
        part TEXT NOT NULL,
        version BIGINT NOT NULL,
        name TEXT NOT NULL,
        applied_at BIGINT NOT NULL,
        PRIMARY KEY (part, version)
    )";
const CREATE_LEASES: &str = "CREATE TABLE IF NOT EXISTS verbatim_migrating (
        part TEXT PRIMARY KEY,
        holder BIGINT NOT NULL,
        until BIGINT NOT NULL
    )";
const READ_VERSION: &str = "SELECT coalesce(max(version), 0) FROM verbatim_schema WHERE part = $1";
/// Acquires the lease for a minute.
///
/// One that ends more than 15 minutes from now is free: a clock that was ahead and was corrected since acquired it.
const ACQUIRE_LEASE: &str = "INSERT INTO verbatim_migrating (part, holder, until)
    VALUES ($1, $2, (extract(epoch FROM clock_timestamp()) * 1000)::BIGINT + 60000)
    ON CONFLICT (part) DO UPDATE SET holder = excluded.holder, until = excluded.until
    WHERE verbatim_migrating.until <= (extract(epoch FROM clock_timestamp()) * 1000)::BIGINT
        OR verbatim_migrating.until > (extract(epoch FROM clock_timestamp()) * 1000)::BIGINT + 900000
        OR verbatim_migrating.holder = excluded.holder";
const RELEASE_LEASE: &str = "DELETE FROM verbatim_migrating WHERE part = $1 AND holder = $2";
/// Renews the lease in the transaction of a step: another server that wants it waits for this row.
const RENEW_LEASE: &str = "UPDATE verbatim_migrating
    SET until = (extract(epoch FROM clock_timestamp()) * 1000)::BIGINT + 60000
    WHERE part = $1 AND holder = $2";
const RECORD_MIGRATION: &str = "INSERT INTO verbatim_schema (part, version, name, applied_at)
    VALUES ($1, $2, $3, (extract(epoch FROM clock_timestamp()) * 1000)::BIGINT)";

/// Migrates a part of the database to its newest version.
///
/// # Errors
/// [`ErrorKind::Unsupported`] if its version is newer than this program knows: nothing changes then. Those of
/// [`opening_error`].
pub(super) async fn migrate(database: &PgDatabase, part: &'static SchemaPart) -> Result<()> {
    migrate_in_turn(database, part).await.map_err(opening_error)
}

/// Migrates, or waits for the server that does.
async fn migrate_in_turn(database: &PgDatabase, part: &'static SchemaPart) -> Result<()> {
    let started = Instant::now();
    let newest = part.newest();
    let holder = random_number();
    loop {
        let version = version(database, part).await?;
        if version == newest {
            return Ok(());
        }
        if version == i64::from(INCOMPLETE_COPY) {
            return Err(incomplete_copy(format_args!("the database {}", database.name())));
        }
        if version > newest {
            return Err(newer(database.name(), version, newest));
        }
        if acquire_lease(database, part, holder).await? {
            let migrated = run(database, part, holder).await;
            database.run(MigrationLease { part: part.name, holder, statement: RELEASE_LEASE }).await?;
            migrated?;
        } else if started.elapsed() > MIGRATION_TIMEOUT {
            return Err(Error::unavailable(format!(
                "another server has been migrating the database {} for two minutes: retry later",
                database.name()
            )));
        } else {
            pause(database).await;
        }
    }
}

async fn pause(database: &PgDatabase) {
    // The caller's executor may have no timers.
    database.runtime().spawn(tokio::time::sleep(PAUSE)).await.ok();
}

/// The version of a part; 0 if it does not exist yet.
pub(super) async fn version(database: &PgDatabase, part: &'static SchemaPart) -> Result<i64> {
    match database.attempt(SchemaVersion(part.name)).await {
        Ok(version) => Ok(version),
        Err(fault) if is_missing_table(&fault) => Ok(0),
        Err(fault) => Err(database.error(fault)),
    }
}

/// Acquires the lease; creates its table if missing.
async fn acquire_lease(database: &PgDatabase, part: &'static SchemaPart, holder: i64) -> Result<bool> {
    let lease = || MigrationLease { part: part.name, holder, statement: ACQUIRE_LEASE };
    let started = Instant::now();
    loop {
        let fault = match database.attempt(lease()).await {
            Ok(rows) => return Ok(rows > 0),
            Err(fault) => fault,
        };
        if !is_missing_table(&fault) {
            return Err(database.error(fault));
        }
        for table in [CREATE_VERSIONS, CREATE_LEASES] {
            match database.attempt(SchemaTable(table)).await {
                // Servers that create the same table at once may get different errors for an existing table.
                Err(fault) if already_exists(&fault) && started.elapsed() < MIGRATION_TIMEOUT => {
                    pause(database).await
                }
                result => result.map_err(|fault| database.error(fault))?,
            }
        }
    }
}

/// Runs the missing migrations, each in its own transaction.
async fn run(database: &PgDatabase, part: &'static SchemaPart, holder: i64) -> Result<()> {
    let current = version(database, part).await?;
    for step in part.migrations.iter().filter(|step| i64::from(step.version) > current) {
        if !database.run(MigrationStep { part, step, holder }).await? {
            // Another server took over: the next poll finds its result.
            return Ok(());
        }
        let (database, version, name) = (database.name(), step.version, step.name);
        tracing::info!(database, part = part.name, version, name, "schema migrated");
    }
    Ok(())
}

struct SchemaVersion(&'static str);

impl PgTx for SchemaVersion {
    type Outcome = i64;
    const NEEDS_TRANSACTION: bool = false;

    async fn run(&self, db: &mut PgConnection) -> DbResult<i64> {
        Ok(sqlx::query(READ_VERSION).bind(self.0).fetch_one(db).await?.try_get(0)?)
    }
}

struct SchemaTable(&'static str);

impl PgTx for SchemaTable {
    type Outcome = ();
    const NEEDS_TRANSACTION: bool = false;

    async fn run(&self, db: &mut PgConnection) -> DbResult<()> {
        sqlx::raw_sql(self.0).execute(db).await?;
        Ok(())
    }
}

struct MigrationLease {
    part: &'static str,
    holder: i64,
    statement: &'static str,
}

impl PgTx for MigrationLease {
    type Outcome = u64;
    const NEEDS_TRANSACTION: bool = false;

    async fn run(&self, db: &mut PgConnection) -> DbResult<u64> {
        let lease = sqlx::query(self.statement).bind(self.part).bind(self.holder);
        Ok(lease.execute(db).await?.rows_affected())
    }
}

struct MigrationStep {
    part: &'static SchemaPart,
    step: &'static Migration,
    holder: i64,
}

impl PgTx for MigrationStep {
    type Outcome = bool;

    async fn run(&self, db: &mut PgConnection) -> DbResult<bool> {
        let part = self.part.name;
        let renewed = sqlx::query(RENEW_LEASE).bind(part).bind(self.holder).execute(&mut *db).await?;
        if renewed.rows_affected() == 0 {
            return Ok(false);
        }
        let current: i64 = sqlx::query(READ_VERSION).bind(part).fetch_one(&mut *db).await?.try_get(0)?;
        if current >= i64::from(self.step.version) {
            // An earlier attempt whose reply was lost.
            return Ok(true);
        }
        sqlx::raw_sql(self.step.sql).execute(&mut *db).await?;
        sqlx::query(RECORD_MIGRATION)
            .bind(part)
            .bind(i64::from(self.step.version))
            .bind(self.step.name)
            .execute(db)
            .await?;
        Ok(true)
    }
}

#[cold]
fn newer(database: &str, version: i64, known: i64) -> Error {
    Error::unsupported(format!(
        "the database {database} was written by a newer version of this program (schema {version}, this one knows \
             {known}): update this program; the database is unchanged"
    ))
}
