//! The stores of the servers: two files, or a separate PostgreSQL server.

use std::sync::Arc;

use anyhow::{Context as _, Result};
use storage_sqlx::{
    PostgresArchive, PostgresOptions, PostgresStore, SqliteArchive, SqliteOptions, SqliteStore,
};
use tempfile::TempDir;
use transcript_core::{archive::Archive, directory::Directory, ledger::Ledger};
use verbatim_tests_postgres::{Cluster, Durability};

use crate::server::harness::{borrow_settings, run_ok, verbatim_with};

const DATABASE: &str = "words";

/// The stores of a test, and the data folder of its servers.
#[derive(Debug)]
pub(super) struct CrashStore {
    pub(super) data: TempDir,
    cluster: Option<Cluster>,
}

/// The stores, opened by the test.
#[derive(Debug)]
pub(super) struct OpenStore {
    pub(super) ledger: Arc<dyn Ledger>,
    pub(super) directory: Arc<dyn Directory>,
    pub(super) archive: Arc<dyn Archive>,
    files: Option<(Arc<SqliteStore>, Arc<SqliteArchive>)>,
}

impl CrashStore {
    pub(super) fn files() -> Result<Self> {
        Ok(Self { data: TempDir::new()?, cluster: None })
    }

    /// A durable PostgreSQL server: acknowledged data survives a kill.
    pub(super) fn postgres() -> Result<Self> {
        let cluster = Cluster::start(Durability::Full)?;
        cluster.create_database(DATABASE)?;
        Ok(Self { data: TempDir::new()?, cluster: Some(cluster) })
    }

    pub(super) fn settings(&self) -> Vec<(String, String)> {
        let url = self.cluster.as_ref().map(|cluster| cluster.url(DATABASE));
        url.map(|url| ("VERBATIM_STORAGE__URL".to_owned(), url)).into_iter().collect()
    }

    /// Kills the database and starts it again: with a kill of all its processes, or with an immediate shutdown.
    pub(super) fn kill_and_start(&self, all_at_once: bool) -> Result<()> {
        let cluster = self.cluster.as_ref().context("files cannot be killed")?;
        if all_at_once {
            cluster.kill()?
        } else {
            cluster.stop_immediately()?
        }
        cluster.restart()
    }

    /// Keys of the lookup API, created by the operator's command.
    pub(super) fn lookup_keys(&self, count: usize) -> Result<Vec<String>> {
        let text = self.command(&["keys", "create", "--count", &count.to_string()])?;
        Ok(text.lines().map(str::to_owned).collect())
    }

    /// Output of a command that must succeed.
    pub(super) fn command(&self, arguments: &[&str]) -> Result<String> {
        let settings = self.settings();
        run_ok(verbatim_with(self.data.path(), &borrow_settings(&settings), arguments), b"")
    }

    pub(super) async fn open(&self) -> Result<OpenStore> {
        if let Some(cluster) = &self.cluster {
            let options = || PostgresOptions::new(cluster.url(DATABASE));
            let main = Arc::new(PostgresStore::open(options()).await?);
            let archive = Arc::new(PostgresArchive::open(options()).await?);
            let (ledger, directory) = (Arc::clone(&main) as _, main as _);
            return Ok(OpenStore { ledger, directory, archive, files: None });
        }
        let options = |name| SqliteOptions::new(self.data.path().join(name));
        let main = Arc::new(SqliteStore::open(options("verbatim.db")).await?);
        let archive = Arc::new(SqliteArchive::open(options("archive.db")).await?);
        let (ledger, directory) = (Arc::clone(&main) as _, Arc::clone(&main) as _);
        let files = Some((main, Arc::clone(&archive)));
        Ok(OpenStore { ledger, directory, archive, files })
    }
}

impl OpenStore {
    /// Closes the files; PostgreSQL connections close on drop.
    pub(super) async fn close(self) {
        if let Some((main, archive)) = self.files {
            main.close().await;
            archive.close().await;
        }
    }
}
