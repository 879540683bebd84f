//! Several servers on one PostgreSQL database.

mod away;
mod replicas;

use anyhow::Result;
use tempfile::TempDir;
use verbatim_tests::replay::ReplayProxy;
use verbatim_tests_postgres::{Cluster, Database};

use super::{
    harness::{Server, borrowed},
    platform,
};

/// A database, and the data folder that the servers share for their mails.
pub(crate) struct Stage {
    /// It goes with the stage.
    _database: Database<'static>,
    pub(crate) data: TempDir,
    settings: Vec<(String, String)>,
}

impl Stage {
    /// With this platform, if any.
    pub(crate) fn new(proxy: Option<&ReplayProxy>) -> Result<Self> {
        let database = Cluster::shared().database()?;
        let mut settings = proxy.map(platform::settings).unwrap_or_default();
        settings.push(("VERBATIM_STORAGE__URL".to_owned(), database.url.clone()));
        Ok(Self { _database: database, data: TempDir::new()?, settings })
    }

    /// One more server.
    pub(crate) fn server(&self) -> Result<Server> {
        Server::start(&self.data, &self.settings())
    }

    /// The settings of all servers, for commands too.
    pub(crate) fn settings(&self) -> Vec<(&str, &str)> {
        borrowed(&self.settings)
    }
}
