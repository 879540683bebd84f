//! Settings of the databases.

use std::{
    path::{Path, PathBuf},
    time::Duration,
};

use verbatim::{DatabaseOptions, StorageOptions};

use super::{
    errors::ConfigErrors,
    layers::RawSettings,
    value::{ParseSetting, SecretUrl},
};

/// `storage.*`
#[derive(Clone, Debug)]
pub(crate) struct StorageSettings {
    /// `storage.url`: keys, accounts and the ledger.
    pub(crate) url: StoreUrl,
    /// `storage.archive_url`: transcripts.
    pub(crate) archive_url: StoreUrl,
    /// `storage.connections` and the timeouts of both databases; its own address is not used.
    pub(crate) database: DatabaseOptions,
    /// `archive.serve_stale`: how long cached responses are sent while the archive cannot be read.
    pub(crate) serve_stale: Duration,
    /// `archive.compact_after`: age from which transcripts are moved to cold storage; `None` leaves that to the
    /// command.
    pub(crate) compact_after: Option<Duration>,
    /// `storage.start_timeout`: how long a starting server waits for its databases.
    pub(crate) start_timeout: Duration,
}

/// Location of a database.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum StoreUrl {
    /// `sqlite://{path}`: a file.
    Sqlite(PathBuf),
    /// `postgres://…`: a database server.
    Postgres(SecretUrl),
}

impl StorageSettings {
    /// Settings with both files in `data`.
    pub(super) fn new(data: &Path) -> Self {
        let file = |name| StoreUrl::Sqlite(data.join(name));
        Self {
            url: file("verbatim.db"),
            archive_url: file("archive.db"),
            database: DatabaseOptions::new(String::new()),
            serve_stale: Duration::from_secs(60),
            compact_after: Some(Duration::from_secs(30 * 24 * 60 * 60)),
            start_timeout: Duration::from_secs(30),
        }
    }

    /// Puts the transcripts into the database of the rest, unless that is a file.
    pub(super) fn set_default_archive(&mut self) {
        if matches!(self.url, StoreUrl::Postgres(_)) {
            self.archive_url = self.url.clone();
        }
    }

    /// Returns the options of the library.
    ///
    /// # Errors
    /// The two databases are of different kinds.
    pub(crate) fn options(&self) -> Result<StorageOptions, ConfigErrors> {
        let database =
            |url: &SecretUrl| DatabaseOptions { url: url.reveal().to_owned(), ..self.database.clone() };
        match (&self.url, &self.archive_url) {
            (StoreUrl::Sqlite(main), StoreUrl::Sqlite(archive)) => {
                Ok(StorageOptions::Files { main: main.clone(), archive: archive.clone() })
            }
            (StoreUrl::Postgres(main), StoreUrl::Postgres(archive)) => {
                Ok(StorageOptions::Postgres { main: database(main), archive: database(archive) })
            }
            _ => Err(ConfigErrors::new(
                "storage.archive_url: it must be of the same kind as storage.url: sqlite:// or postgres:// for both",
            )),
        }
    }
}

impl ParseSetting for StoreUrl {
    const ALLOWED: &'static str = "sqlite://PATH or postgres://USER:PASSWORD@HOST/DATABASE";
    // The text may contain a password, so an invalid one is not repeated.
    const SECRET: bool = true;

    fn read(raw: &RawSettings) -> Result<Self, Option<String>> {
        let text = String::read(raw)?;
        match text.strip_prefix("sqlite://") {
            Some("") => Err(Some("the path is missing".to_owned())),
            Some(path) if path.starts_with(':') => {
                Err(Some("an in-memory database is lost when the command ends".to_owned()))
            }
            Some(path) => Ok(Self::Sqlite(path.into())),
            None => SecretUrl::read(raw, &["postgres", "postgresql"]).map(Self::Postgres),
        }
    }

    fn show(&self) -> String {
        match self {
            Self::Sqlite(path) => format!("sqlite://{}", path.display()).show(),
            Self::Postgres(url) => url.redacted().show(),
        }
    }
}
