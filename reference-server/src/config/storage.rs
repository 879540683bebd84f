//! Where the databases are.

use std::{
    path::{Path, PathBuf},
    time::Duration,
};

use super::{
    layers::Raw,
    reader::Reader,
    value::{SecretUrl, Setting},
};

/// `storage.*`
#[derive(Clone, Debug)]
pub struct Storage {
    /// `storage.url`: keys, accounts and the ledger.
    pub url: StoreUrl,
    /// `storage.archive_url`: the transcripts.
    pub archive_url: StoreUrl,
    /// `storage.connections`: how many connections to a PostgreSQL server each of the two has open at most.
    pub connections: u32,
    /// `storage.connect_timeout`: how long one may take to open.
    pub connect_timeout: Duration,
    /// `storage.timeout`: how long a call waits for the database, repeats included.
    pub timeout: Duration,
    /// `storage.pooler`: whether connections go by way of a pooler that lends one for each transaction.
    pub pooler: bool,
}

/// Where one database is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum StoreUrl {
    /// `sqlite://{path}`: a file.
    Sqlite(PathBuf),
    /// `postgres://…`: a database server.
    Postgres(SecretUrl),
}

impl Storage {
    /// Reads the section; the files lie in `data` unless they are set.
    pub fn read(reader: &mut Reader<'_>, data: &Path) -> Self {
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

impl Setting for StoreUrl {
    const ALLOWED: &'static str = "sqlite://PATH or postgres://USER:PASSWORD@HOST/DATABASE";
    // The text may carry a password, so a wrong one is not repeated.
    const SECRET: bool = true;

    fn read(raw: &Raw) -> Result<Self, Option<String>> {
        let text = String::read(raw)?;
        match text.strip_prefix("sqlite://") {
            Some("") => Err(Some("the path is missing".to_owned())),
            Some(path) if path.starts_with(':') => {
                Err(Some("a database in memory would be lost at the end".to_owned()))
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
