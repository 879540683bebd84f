//! Connection limit: whether the server has room for the connections of all programs on it; and a report without
//! changes.

use transcript_core::Result;

use super::{
    ARCHIVE, MAIN, PostgresArchive, PostgresOptions, PostgresStore, database::PgDatabase, schema,
    sqlstate::opening_error,
};
use crate::{
    error::DbResult,
    sql::{Database as _, Row},
};

/// The lowest of the limits that apply to this user and database, without the connections reserved for others; and the
/// number of programs that are connected, each with its own application name.
const CONNECTION_LIMIT: &str = "SELECT
    LEAST(
        current_setting('max_connections')::BIGINT
            - coalesce(current_setting('superuser_reserved_connections', true), '0')::BIGINT
            - coalesce(current_setting('reserved_connections', true), '0')::BIGINT,
        (SELECT nullif(rolconnlimit, -1) FROM pg_roles WHERE rolname = current_user),
        (SELECT nullif(datconnlimit, -1) FROM pg_database WHERE datname = current_database())
    )::BIGINT,
    (SELECT count(DISTINCT application_name) FROM pg_stat_activity
        WHERE application_name LIKE 'verbatim %')::BIGINT";
const SERVER: &str = "SELECT current_setting('server_version'), current_setting('transaction_read_only')";

/// The connections that a database server permits, and those that programs like this one may open.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ConnectionLimit {
    /// Connections that the server permits to all of them.
    pub permitted: u64,
    /// Connected programs, this one included.
    pub programs: u64,
    /// Connections that this program opens at most.
    pub own: u64,
}

impl ConnectionLimit {
    /// Whether all programs, each with as many connections as this one, fit.
    pub fn is_sufficient(&self) -> bool {
        self.programs.saturating_mul(self.own) <= self.permitted
    }

    fn decode(row: &mut Row, own: u32) -> DbResult<Self> {
        let count = |number: i64| u64::try_from(number).unwrap_or(0);
        Ok(Self { permitted: count(row.take(0)?), programs: count(row.take(1)?).max(1), own: own.into() })
    }
}

/// What a database contains, read without a change.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DatabaseReport {
    /// Host and database.
    pub name: String,
    /// Version of the server.
    pub server_version: String,
    /// Whether it accepts no writes, as a standby.
    pub is_read_only: bool,
    /// Schema version of the part with keys, accounts and the ledger: stored (0: none yet), and known to this program.
    pub main_schema: (i64, i64),
    /// The same of the part with transcripts.
    pub archive_schema: (i64, i64),
    /// Its connections; `None` behind a pooler, and on engines that do not report them.
    pub connections: Option<ConnectionLimit>,
}

/// Connects to a database and reads its versions and limits. Creates and changes nothing.
///
/// # Errors
/// As [`PostgresStore::open`].
pub async fn inspect_database(options: PostgresOptions) -> Result<DatabaseReport> {
    let database = PgDatabase::new(options, MAIN.name)?;
    let report = inspect(&database).await;
    database.close().await;
    report.map_err(opening_error)
}

async fn inspect(database: &PgDatabase) -> Result<DatabaseReport> {
    let server = database.find_first(SERVER, &[], |row| Ok((row.take(0)?, row.take(1)?))).await?;
    let (server_version, read_only): (String, String) = server.unwrap_or_default();
    Ok(DatabaseReport {
        name: database.name().to_owned(),
        server_version,
        is_read_only: read_only == "on",
        main_schema: (schema::version(database, &MAIN).await?, MAIN.newest()),
        archive_schema: (schema::version(database, &ARCHIVE).await?, ARCHIVE.newest()),
        connections: connection_limit(database).await,
    })
}

/// Reads the limit; `None` if it cannot be read or means nothing, because a pooler shares connections.
async fn connection_limit(database: &PgDatabase) -> Option<ConnectionLimit> {
    let options = database.options();
    if options.pooler {
        return None;
    }
    let own = options.connections;
    let read = database.find_first(CONNECTION_LIMIT, &[], |row| ConnectionLimit::decode(row, own)).await;
    read.inspect_err(|error| tracing::debug!(%error, "connection limit unknown")).ok().flatten()
}

impl PostgresStore {
    /// The server's limit of connections; `None` behind a pooler, and on engines that do not report it.
    pub async fn connection_limit(&self) -> Option<ConnectionLimit> {
        connection_limit(&self.database).await
    }
}

impl PostgresArchive {
    /// The same as [`PostgresStore::connection_limit`].
    pub async fn connection_limit(&self) -> Option<ConnectionLimit> {
        connection_limit(&self.database).await
    }
}
