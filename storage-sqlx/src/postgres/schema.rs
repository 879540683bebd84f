//! The schema's versions, and the steps from one to the next.
//!
//! Several servers may start at once. Whoever migrates holds a lease, a row that runs out: the others look again
//! until the newest version is there, or the lease is free. The moments of this one lease are the database's own,
//! so that clocks that differ do not matter.

use std::time::{Duration, Instant};

use sqlx::{PgConnection, Row};
use transcript_core::{Error, ErrorKind, Result, Retry};

use super::database::{Change, Database, chance, is_made_already, is_missing_table};
use crate::error::{HALF_COPIED, Work, half_copied};

/// One step of a schema. What a published step says is never changed afterwards.
#[derive(Debug)]
pub(super) struct Migration {
    /// The version that the schema has after it: 1 for the first.
    pub(super) version: i64,
    /// The name of its file.
    pub(super) name: &'static str,
    /// Its statements.
    pub(super) sql: &'static str,
}

/// A part of the database that has versions of its own.
#[derive(Debug)]
pub(super) struct Part {
    /// Its lasting name.
    pub(super) name: &'static str,
    /// The steps that make its tables, in order; the number of the last is the schema's version.
    pub(super) migrations: &'static [Migration],
}

/// How long others are waited for who migrate.
const PATIENCE: Duration = Duration::from_secs(120);
/// How long to wait between two looks.
const PAUSE: Duration = Duration::from_millis(50);

/// Both tables are as they are for ever: programs of any version read them.
const VERSIONS: &str = "CREATE TABLE IF NOT EXISTS verbatim_schema (
        part TEXT NOT NULL,
        version BIGINT NOT NULL,
        name TEXT NOT NULL,
        applied_at BIGINT NOT NULL,
        PRIMARY KEY (part, version)
    )";
const LEASES: &str = "CREATE TABLE IF NOT EXISTS verbatim_migrating (
        part TEXT PRIMARY KEY,
        holder BIGINT NOT NULL,
        until BIGINT NOT NULL
    )";
const VERSION: &str = "SELECT coalesce(max(version), 0) FROM verbatim_schema WHERE part = $1";
/// For a minute.
const CLAIM: &str = "INSERT INTO verbatim_migrating (part, holder, until)
    VALUES ($1, $2, (extract(epoch FROM clock_timestamp()) * 1000)::BIGINT + 60000)
    ON CONFLICT (part) DO UPDATE SET holder = excluded.holder, until = excluded.until
    WHERE verbatim_migrating.until <= (extract(epoch FROM clock_timestamp()) * 1000)::BIGINT
        OR verbatim_migrating.holder = excluded.holder";
const RELEASE: &str = "DELETE FROM verbatim_migrating WHERE part = $1 AND holder = $2";
/// It must still be ours when the step is committed: whoever wants it meanwhile waits for this row.
const STILL_OURS: &str = "UPDATE verbatim_migrating
    SET until = (extract(epoch FROM clock_timestamp()) * 1000)::BIGINT + 60000
    WHERE part = $1 AND holder = $2";
const NOTE: &str = "INSERT INTO verbatim_schema (part, version, name, applied_at)
    VALUES ($1, $2, $3, (extract(epoch FROM clock_timestamp()) * 1000)::BIGINT)";

/// Brings a part of the database to its newest version.
///
/// # Errors
/// [`ErrorKind::Unsupported`] when it is of a newer version than this program knows: nothing is changed then.
pub(super) async fn migrate(database: &Database, part: &'static Part) -> Result<()> {
    let begun = Instant::now();
    let newest = part.migrations.last().map_or(0, |last| last.version);
    let holder = i64::try_from(chance(1 << 62)).unwrap_or_default();
    loop {
        let version = version(database, part).await?;
        if version == newest {
            return Ok(());
        }
        if version == i64::from(HALF_COPIED) {
            return Err(half_copied(format_args!("the database {}", database.name())));
        }
        if version > newest {
            return Err(newer(database.name(), version, newest));
        }
        if claim(database, part, holder).await? {
            let migrated = run(database, part, holder).await;
            database.make(Lease { part: part.name, holder, statement: RELEASE }).await?;
            migrated?;
        } else if begun.elapsed() > PATIENCE {
            return Err(Error::unavailable(format!(
                "another server has been migrating the database {} for two minutes: try again later",
                database.name()
            )));
        } else {
            pause(database).await;
        }
    }
}

async fn pause(database: &Database) {
    // The caller's executor may have no timers.
    database.runtime().spawn(tokio::time::sleep(PAUSE)).await.ok();
}

/// The version of a part; 0 where there is nothing of it yet.
async fn version(database: &Database, part: &'static Part) -> Result<i64> {
    match database.attempt(Version(part.name)).await {
        Ok(version) => Ok(version),
        Err(fault) if is_missing_table(&fault) => Ok(0),
        Err(fault) => Err(database.error(fault)),
    }
}

/// Claims the lease; its table is made where it is missing.
async fn claim(database: &Database, part: &'static Part, holder: i64) -> Result<bool> {
    let lease = || Lease { part: part.name, holder, statement: CLAIM };
    let begun = Instant::now();
    loop {
        let fault = match database.attempt(lease()).await {
            Ok(rows) => return Ok(rows > 0),
            Err(fault) => fault,
        };
        if !is_missing_table(&fault) {
            return Err(database.error(fault));
        }
        for table in [VERSIONS, LEASES] {
            match database.attempt(Table(table)).await {
                // Several who make the same table at once may hear that it is there, each in another way.
                Err(fault) if is_made_already(&fault) && begun.elapsed() < PATIENCE => pause(database).await,
                made => made.map_err(|fault| database.error(fault))?,
            }
        }
    }
}

/// Runs the missing steps, each in a transaction of its own.
async fn run(database: &Database, part: &'static Part, holder: i64) -> Result<()> {
    let begun_at = version(database, part).await?;
    for step in part.migrations.iter().filter(|step| step.version > begun_at) {
        if !database.make(Step { part, step, holder }).await? {
            // Somebody else took over: who looks again finds what they did.
            return Ok(());
        }
        let (database, version, name) = (database.name(), step.version, step.name);
        tracing::info!(database, part = part.name, version, name, "migrated");
    }
    Ok(())
}

struct Version(&'static str);

impl Change for Version {
    type Outcome = i64;
    const IS_STEP: bool = true;

    async fn make(&self, db: &mut PgConnection) -> Work<i64> {
        Ok(sqlx::query(VERSION).bind(self.0).fetch_one(db).await?.try_get(0)?)
    }
}

struct Table(&'static str);

impl Change for Table {
    type Outcome = ();
    const IS_STEP: bool = true;

    async fn make(&self, db: &mut PgConnection) -> Work<()> {
        sqlx::raw_sql(self.0).execute(db).await?;
        Ok(())
    }
}

struct Lease {
    part: &'static str,
    holder: i64,
    statement: &'static str,
}

impl Change for Lease {
    type Outcome = u64;
    const IS_STEP: bool = true;

    async fn make(&self, db: &mut PgConnection) -> Work<u64> {
        let lease = sqlx::query(self.statement).bind(self.part).bind(self.holder);
        Ok(lease.execute(db).await?.rows_affected())
    }
}

struct Step {
    part: &'static Part,
    step: &'static Migration,
    holder: i64,
}

impl Change for Step {
    type Outcome = bool;

    async fn make(&self, db: &mut PgConnection) -> Work<bool> {
        let part = self.part.name;
        let ours = sqlx::query(STILL_OURS).bind(part).bind(self.holder).execute(&mut *db).await?;
        if ours.rows_affected() == 0 {
            return Ok(false);
        }
        let there: i64 = sqlx::query(VERSION).bind(part).fetch_one(&mut *db).await?.try_get(0)?;
        if there >= self.step.version {
            // An earlier attempt whose answer was lost.
            return Ok(true);
        }
        sqlx::raw_sql(self.step.sql).execute(&mut *db).await?;
        sqlx::query(NOTE).bind(part).bind(self.step.version).bind(self.step.name).execute(db).await?;
        Ok(true)
    }
}

#[cold]
fn newer(database: &str, version: i64, known: i64) -> Error {
    Error::new(
        ErrorKind::Unsupported,
        Retry::Never,
        format!(
            "the database {database} was made by a newer version of this program (schema {version}, this one knows \
             {known}): update this program; the database was left as it is"
        ),
    )
}
