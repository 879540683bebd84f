//! Settings of the databases.

use std::{
    path::{Path, PathBuf},
    time::Duration,
};

use super::{
    layers::RawSettings,
    reader::SettingsReader,
    value::{ParseSetting, SecretUrl},
};

/// `storage.*`
#[derive(Clone, Debug)]
pub struct StorageSettings {
    /// `storage.url`: keys, accounts and the ledger.
    pub url: StoreUrl,
    /// `storage.archive_url`: transcripts.
    pub archive_url: StoreUrl,
    /// `storage.connections`: maximum number of open connections to each PostgreSQL database.
    pub connections: u32,
    /// `storage.connect_timeout`: timeout of opening a connection.
    pub connect_timeout: Duration,
    /// `storage.timeout`: timeout of a database call, retries included.
    pub timeout: Duration,
    /// `storage.pooler`: whether connections go through a pooler that assigns one for each transaction.
    pub pooler: bool,
}

/// Location of a database.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum StoreUrl {
    /// `sqlite://{path}`: a file.
    Sqlite(PathBuf),
    /// `postgres://…`: a database server.
    Postgres(SecretUrl),
}

impl StorageSettings {
    /// Reads the section. By default both files are in `data`.
    pub fn read(reader: &mut SettingsReader<'_>, data: &Path) -> Self {
        let url = reader.value("storage.url", StoreUrl::Sqlite(data.join("verbatim.db")));
        let archive = match &url {
            StoreUrl::Sqlite(_) => StoreUrl::Sqlite(data.join("archive.db")),
            StoreUrl::Postgres(_) => url.clone(),
        };
        let second = Duration::from_secs(1);
        Self {
            url,
            archive_url: reader.value("storage.archive_url", archive),
            connections: reader.small("storage.connections", 16, 1..=256),
            connect_timeout: reader.duration(
                "storage.connect_timeout",
                2 * second,
                second / 10..=60 * second,
            ),
            timeout: reader.duration("storage.timeout", 5 * second, second / 10..=600 * second),
            pooler: reader.value("storage.pooler", false),
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
