//! Address, timeouts and connection settings of a PostgreSQL database.

use std::{str::FromStr, time::Duration};

use sqlx::{
    ConnectOptions,
    postgres::{PgConnectOptions, PgSslMode},
};
use transcript_core::{Error, Result};

/// Options of a connection pool to a PostgreSQL server.
#[derive(Clone, PartialEq, Eq)]
pub struct PostgresOptions {
    /// `postgres://USER:PASSWORD@HOST:PORT/DATABASE`.
    ///
    /// `sslmode` in its query has the usual values: `disable`, `prefer` (the default), `require`, `verify-ca`,
    /// `verify-full`; the last two use the system's certificates or the file in `sslrootcert`.
    pub url: String,
    /// Most open connections, from 1 to 256. They are opened on first use and stay open.
    pub connections: u32,
    /// Timeout of opening a connection: from 100 ms to a minute.
    pub connect_timeout: Duration,
    /// Timeout of a call: waiting for a connection, statements and retries. From 100 ms to an hour.
    pub timeout: Duration,
    /// Whether connections go through a pooler that assigns a server connection per transaction.
    ///
    /// Prepared statements are then deallocated with each transaction, and no session setting is used. Statements
    /// cost more then.
    pub pooler: bool,
    /// Number of concurrent spends that run as separate statements.
    ///
    /// Above it, new spends wait and commit in batches. That is faster with more callers than the server has
    /// processors, and slower below.
    pub batch_threshold: usize,
}

impl PostgresOptions {
    /// 16 connections, 2 seconds to connect, a timeout of 5 seconds, no pooler, and 8 separate spends.
    pub fn new(url: impl Into<String>) -> Self {
        Self {
            url: url.into(),
            connections: 16,
            connect_timeout: Duration::from_secs(2),
            timeout: Duration::from_secs(5),
            pooler: false,
            batch_threshold: 8,
        }
    }

    /// The options, clamped to their bounds.
    pub(super) fn bounded(self) -> Self {
        const TENTH: Duration = Duration::from_millis(100);
        Self {
            connections: self.connections.clamp(1, 256),
            connect_timeout: self.connect_timeout.clamp(TENTH, Duration::from_secs(60)),
            timeout: self.timeout.clamp(TENTH, Duration::from_secs(3_600)),
            ..self
        }
    }

    /// The connect options.
    ///
    /// # Errors
    /// [`transcript_core::ErrorKind::Invalid`] if the URL is malformed. The message does not repeat it: it may contain
    /// a password.
    pub(crate) fn connection(&self) -> Result<PgConnectOptions> {
        if !self.url.starts_with("postgres://") && !self.url.starts_with("postgresql://") {
            return Err(Error::invalid("a PostgreSQL database URL must be postgres://USER@HOST/DATABASE"));
        }
        let malformed = || {
            Error::invalid(
                "the URL of the PostgreSQL database is malformed: use postgres://USER:PASSWORD@HOST:PORT/DATABASE, \
                 with % before the codes of special characters",
            )
        };
        if has_late_at_sign(&self.url) {
            return Err(malformed());
        }
        if !has_known_parameters(&self.url) {
            return Err(Error::invalid(
                "the URL of the PostgreSQL database has an unknown parameter after its question mark; permitted are \
                 sslmode, sslrootcert, sslcert, sslkey, host, hostaddr, port, dbname, user, password, application_name \
                 and options",
            ));
        }
        let known = PgConnectOptions::from_str(&self.url).map_err(|error| {
            tracing::debug!(%error, "database URL rejected");
            malformed()
        })?;
        // Poolers reject settings that they do not know.
        let known = known.extra_float_digits(None).application_name("verbatim").disable_statement_logging();
        if self.pooler {
            return Ok(known.statement_cache_capacity(0));
        }
        // Only a safeguard that no work depends on: it ends the work of clients that vanished.
        let timeout_ms = self.timeout.as_millis().to_string();
        let limits =
            [("statement_timeout", &timeout_ms), ("idle_in_transaction_session_timeout", &timeout_ms)];
        Ok(known.statement_cache_capacity(256).options(limits))
    }

    /// Name of the database in messages: host and database, never a password.
    pub(crate) fn name(known: &PgConnectOptions) -> String {
        let database = known.get_database().unwrap_or_else(|| known.get_username());
        match known.get_socket() {
            Some(folder) => format!("{database} at {}", folder.display()),
            None => format!("{database} at {}:{}", known.get_host(), known.get_port()),
        }
    }
}

/// Whether an `@` follows the host of a URL.
///
/// A password with an unencoded `/` or `#` ends there. Its beginning would be the host or the port, and be shown.
fn has_late_at_sign(url: &str) -> bool {
    let (url, fragment) = url.split_once('#').unwrap_or((url, ""));
    let url = url.split_once('?').map_or(url, |(url, _)| url);
    let address = url.split_once("://").map_or(url, |(_, address)| address);
    address.split_once('/').is_some_and(|(_, path)| path.contains('@')) || fragment.contains('@')
}

/// Whether the parser knows all parameters in a URL.
///
/// It would log unknown ones with their values, and a misspelled `password` is among them.
fn has_known_parameters(url: &str) -> bool {
    const KNOWN: [&str; 19] = [
        "sslmode",
        "ssl-mode",
        "sslrootcert",
        "ssl-root-cert",
        "ssl-ca",
        "sslcert",
        "ssl-cert",
        "sslkey",
        "ssl-key",
        "statement-cache-capacity",
        "host",
        "hostaddr",
        "port",
        "dbname",
        "user",
        "password",
        "application_name",
        "options",
        "",
    ];
    let url = url.split_once('#').map_or(url, |(url, _)| url);
    let Some((_, query)) = url.split_once('?') else { return true };
    query.split('&').all(|pair| {
        let key = pair.split_once('=').map_or(pair, |(key, _)| key);
        KNOWN.contains(&key) && (!key.is_empty() || pair.is_empty())
            || key.starts_with("options[")
            || key.starts_with("options%5B")
    })
}

/// Whether the connection to this server is always encrypted or local.
pub(super) fn is_private(known: &PgConnectOptions) -> bool {
    let is_local = known.get_socket().is_some()
        || ["localhost", "127.0.0.1", "::1"].contains(&known.get_host())
        || known.get_host().starts_with('/');
    is_local || !matches!(known.get_ssl_mode(), PgSslMode::Disable | PgSslMode::Allow | PgSslMode::Prefer)
}

impl FromStr for PostgresOptions {
    type Err = Error;

    /// Parses `postgres://…`, the form of the settings `storage.url` and `storage.archive_url`.
    fn from_str(url: &str) -> Result<Self> {
        let options = Self::new(url);
        options.connection()?;
        Ok(options)
    }
}

// The URL may contain a password.
transcript_core::debug_fields!(PostgresOptions |this| {
    database: this.connection().map_or("(not well-formed)".to_owned(), |known| PostgresOptions::name(&known)),
    connections, connect_timeout, timeout, pooler, batch_threshold
});

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn postgres_url_debug_hides_password() {
        for (url, name) in [
            ("postgres://me:hush@db.example.org/words", "words at db.example.org:5432"),
            ("postgresql://me:hush@10.0.0.7:6432/words?sslmode=require", "words at 10.0.0.7:6432"),
            ("postgres://me:hush@localhost/words?host=/run/pg", "words at /run/pg"),
        ] {
            let options: PostgresOptions = url.parse().unwrap();
            let shown = format!("{options:?}");
            assert!(shown.contains(name) && !shown.contains("hush"), "{shown}");
        }
        for url in ["", "verbatim.db", "sqlite://x.db", "postgres://", "postgres://me@db:nine/words"] {
            match url.parse::<PostgresOptions>() {
                Ok(_) => assert_eq!(url, "postgres://", "{url}"),
                Err(error) => assert!(!error.message().contains("nine"), "{error}"),
            }
        }
    }

    #[test]
    fn postgres_url_with_unencoded_password_is_rejected_unshown() {
        for url in [
            "postgres://me:left@hush/right@db/words",
            "postgres://me:1/hush@db/words",
            "postgres://me:left@hush#right@db/words",
            "postgres://me:left@hush?right@db/words",
        ] {
            let error = url.parse::<PostgresOptions>().unwrap_err();
            let shown = format!("{error:?} {:?}", PostgresOptions::new(url));
            assert!(!shown.contains("hush") && !shown.contains("left"), "{shown}");
        }
        let error = "postgres://me:left@hush/right@db/words".parse::<PostgresOptions>().unwrap_err();
        assert!(error.message().contains("is malformed"), "{error}");
        for url in ["postgres://me:a%2Fb@db/wo%40rds", "postgres://me:a@b@db/words?application_name=a@b"] {
            assert!(url.parse::<PostgresOptions>().is_ok(), "{url}");
        }
    }

    #[test]
    fn postgres_url_unknown_parameter_is_rejected_unlogged() {
        let with = |query: &str| format!("postgres://me@db/words?{query}").parse::<PostgresOptions>();
        for query in
            ["", "sslmode=require&host=/run/pg", "&port=5433&", "options[search_path]=a#b", "password=x"]
        {
            assert!(with(query).is_ok(), "{query}");
        }
        for query in ["pasword=hush", "sslmode=require&hush", "=hush", "%70asword=hush"] {
            let error = with(query).unwrap_err();
            assert!(!error.message().contains("hush"), "{error}");
        }
    }

    #[test]
    fn postgres_remote_connection_requires_encryption() {
        for (url, private) in [
            ("postgres://me:hush@db.example.org/words", false),
            ("postgres://me:hush@db.example.org/words?sslmode=disable", false),
            ("postgres://me:hush@db.example.org/words?sslmode=require", true),
            ("postgres://me:hush@db.example.org/words?sslmode=verify-full", true),
            ("postgres://me:hush@127.0.0.1/words", true),
        ] {
            assert_eq!(is_private(&PostgresOptions::new(url).connection().unwrap()), private, "{url}");
        }
    }
}
