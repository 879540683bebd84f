//! Several servers on one PostgreSQL database.

mod connections;
mod outage;
mod purges;
mod replicas;
mod stale;

use anyhow::Result;
use tempfile::TempDir;
use verbatim_tests::replay::ReplayProxy;
use verbatim_tests_postgres::{Cluster, TestDatabase};

use super::{
    harness::{ServerFixture, borrow_settings},
    platform,
};

/// A database, and the data folder that the servers share for their outbox.
pub(crate) struct PostgresFixture {
    /// Dropped with the fixture.
    _database: TestDatabase<'static>,
    pub(crate) data: TempDir,
    settings: Vec<(String, String)>,
}

impl PostgresFixture {
    /// A fixture with this platform, if any.
    pub(crate) fn new(proxy: Option<&ReplayProxy>) -> Result<Self> {
        let database = Cluster::shared().database()?;
        let mut settings = proxy.map(platform::platform_settings).unwrap_or_default();
        settings.push(("VERBATIM_STORAGE__URL".to_owned(), database.url.clone()));
        Ok(Self { _database: database, data: TempDir::new()?, settings })
    }

    /// The fixture with more settings.
    pub(crate) fn with(mut self, more: &[(&str, &str)]) -> Self {
        self.settings.extend(more.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())));
        self
    }

    /// Starts one more server.
    pub(crate) fn start_server(&self) -> Result<ServerFixture> {
        ServerFixture::start(&self.data, &self.settings())
    }

    /// The settings of all servers, also for commands.
    pub(crate) fn settings(&self) -> Vec<(&str, &str)> {
        borrow_settings(&self.settings)
    }
}
