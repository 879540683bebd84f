//! Where the database server is, and how it is spoken to.

use std::{fmt, str::FromStr, time::Duration};

use sqlx::{
    ConnectOptions,
    postgres::{PgConnectOptions, PgSslMode},
};
use transcript_core::{Error, Result};

/// How a database server is reached.
#[derive(Clone, PartialEq, Eq)]
pub struct PostgresOptions {
    /// `postgres://USER:PASSWORD@HOST:PORT/DATABASE`. `sslmode` in its query is as elsewhere: `disable`, `prefer`
    /// (the default), `require`, `verify-ca`, `verify-full`, the last two with the system's certificates or those of
    /// the file that `sslrootcert` names.
    pub url: String,
    /// How many connections are open at the same time at most, from 1 to 256. They are opened when they are
    /// first needed and then held open.
    pub connections: u32,
    /// How long a connection may take to open: from a tenth of a second to a minute.
    pub connect_timeout: Duration,
    /// How long a call waits for a connection, its statements and their repeats: from a tenth of a second to an
    /// hour.
    pub patience: Duration,
    /// Whether connections go by way of a pooler that lends a server connection for each transaction: what a
    /// transaction prepares is then given back with it, and nothing is set for a session. Statements cost more then.
    pub pooler: bool,
    /// How many spends may be under way, each a statement of its own. Where more are, whoever comes waits for others and
    /// is committed together with them. That is quicker where more ask than the server has processors for, and slower below.
    pub spends_alone: usize,
}

impl PostgresOptions {
    /// This server, 16 connections, 2 seconds to connect, 5 seconds of patience, no pooler between, 8 spends
    /// each by itself.
    pub fn new(url: impl Into<String>) -> Self {
        Self {
            url: url.into(),
            connections: 16,
            connect_timeout: Duration::from_secs(2),
            patience: Duration::from_secs(5),
            pooler: false,
            spends_alone: 8,
        }
    }

    /// The options, within their bounds.
    pub(super) fn bounded(self) -> Self {
        const TENTH: Duration = Duration::from_millis(100);
        Self {
            connections: self.connections.clamp(1, 256),
            connect_timeout: self.connect_timeout.clamp(TENTH, Duration::from_secs(60)),
            patience: self.patience.clamp(TENTH, Duration::from_secs(3_600)),
            ..self
        }
    }

    /// How a connection is opened.
    ///
    /// # Errors
    /// [`transcript_core::ErrorKind::Invalid`] when the address is none. The message does not repeat it: it may
    /// carry a password.
    pub(crate) fn connection(&self) -> Result<PgConnectOptions> {
        if !self.url.starts_with("postgres://") && !self.url.starts_with("postgresql://") {
            return Err(Error::invalid("a PostgreSQL database is given as postgres://USER@HOST/DATABASE"));
        }
        if !asks_for_what_is_known(&self.url) {
            return Err(Error::invalid(
                "the address of the PostgreSQL database has a parameter after its question mark that is not known; \
                 known are sslmode, sslrootcert, sslcert, sslkey, host, hostaddr, port, dbname, user, password, \
                 application_name and options",
            ));
        }
        let known = PgConnectOptions::from_str(&self.url).map_err(|error| {
            tracing::debug!(%error, "the address of a database");
            Error::invalid(
                "the address of the PostgreSQL database is not well-formed: \
                 postgres://USER:PASSWORD@HOST:PORT/DATABASE, with % before the codes of special characters",
            )
        })?;
        // Poolers refuse settings that they do not know.
        let known = known.extra_float_digits(None).application_name("verbatim").disable_statement_logging();
        if self.pooler {
            return Ok(known.statement_cache_capacity(0));
        }
        // Only a net: work never rests on them. They end what was left behind by a client that vanished.
        let patience = self.patience.as_millis().to_string();
        let limits = [("statement_timeout", &patience), ("idle_in_transaction_session_timeout", &patience)];
        Ok(known.statement_cache_capacity(256).options(limits))
    }

    /// What people call the database: host and name, never a password.
    pub(crate) fn name(known: &PgConnectOptions) -> String {
        let database = known.get_database().unwrap_or_else(|| known.get_username());
        match known.get_socket() {
            Some(folder) => format!("{database} at {}", folder.display()),
            None => format!("{database} at {}:{}", known.get_host(), known.get_port()),
        }
    }
}

/// Whether the parser knows all parameters in an address. It would log the others with their values, and a slip in
/// `password` is among them.
fn asks_for_what_is_known(url: &str) -> bool {
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

/// Whether what is said to this server is encrypted for certain.
pub(super) fn is_private(known: &PgConnectOptions) -> bool {
    let is_near = known.get_socket().is_some()
        || ["localhost", "127.0.0.1", "::1"].contains(&known.get_host())
        || known.get_host().starts_with('/');
    is_near || !matches!(known.get_ssl_mode(), PgSslMode::Disable | PgSslMode::Allow | PgSslMode::Prefer)
}

impl FromStr for PostgresOptions {
    type Err = Error;

    /// Reads `postgres://…`, as the settings `storage.url` and `storage.archive_url` have it.
    fn from_str(url: &str) -> Result<Self> {
        let options = Self::new(url);
        options.connection()?;
        Ok(options)
    }
}

impl fmt::Debug for PostgresOptions {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // The address may carry a password.
        let database =
            self.connection().map_or_else(|_| "(not well-formed)".to_owned(), |known| Self::name(&known));
        f.debug_struct("PostgresOptions")
            .field("database", &database)
            .field("connections", &self.connections)
            .field("connect_timeout", &self.connect_timeout)
            .field("patience", &self.patience)
            .field("pooler", &self.pooler)
            .field("spends_alone", &self.spends_alone)
            .finish()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_address_names_its_database_and_hides_its_password() {
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
    fn a_parameter_that_is_not_known_is_refused_before_anybody_logs_it() {
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
    fn a_password_over_the_net_wants_encryption() {
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
