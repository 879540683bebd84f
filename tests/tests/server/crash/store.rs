//! What the servers keep everything in: two files, or a PostgreSQL server of one's own.

use std::sync::Arc;

use anyhow::{Context as _, Result, ensure};
use storage_sqlx::{
    PostgresArchive, PostgresOptions, PostgresStore, SqliteArchive, SqliteOptions, SqliteStore,
};
use tempfile::TempDir;
use transcript_core::{archive::Archive, directory::Directory, ledger::Ledger};
use verbatim_tests_postgres::{Cluster, Durability};

use crate::server::harness::{run, verbatim};

const DATABASE: &str = "words";

/// The store of a test, and the data folder of its servers.
#[derive(Debug)]
pub(super) struct Store {
    pub(super) data: TempDir,
    cluster: Option<Cluster>,
}

/// The same, opened by the test itself.
#[derive(Debug)]
pub(super) struct Open {
    pub(super) ledger: Arc<dyn Ledger>,
    pub(super) directory: Arc<dyn Directory>,
    pub(super) archive: Arc<dyn Archive>,
    files: Option<(Arc<SqliteStore>, Arc<SqliteArchive>)>,
}

impl Store {
    pub(super) fn files() -> Result<Self> {
        Ok(Self { data: TempDir::new()?, cluster: None })
    }

    /// A PostgreSQL server that keeps what it acknowledged, also when it is killed.
    pub(super) fn postgres() -> Result<Self> {
        let cluster = Cluster::start(Durability::Full)?;
        cluster.make_database(DATABASE)?;
        Ok(Self { data: TempDir::new()?, cluster: Some(cluster) })
    }

    pub(super) fn settings(&self) -> Vec<(String, String)> {
        let url = self.cluster.as_ref().map(|cluster| cluster.url(DATABASE));
        url.map(|url| ("VERBATIM_STORAGE__URL".to_owned(), url)).into_iter().collect()
    }

    /// Kills the database and starts it again. It is killed with all its processes at once, or told to drop everything.
    pub(super) fn kill_and_start(&self, all_at_once: bool) -> Result<()> {
        let cluster = self.cluster.as_ref().context("files cannot be killed")?;
        if all_at_once {
            cluster.kill()?
        } else {
            cluster.stop_at_once()?
        }
        cluster.start_again()
    }

    /// Keys of the look-up API, made by the operator's command.
    pub(super) fn lookup_keys(&self, count: usize) -> Result<Vec<String>> {
        let text = self.command(&["keys", "create", "--count", &count.to_string()])?;
        Ok(text.lines().map(str::to_owned).collect())
    }

    /// What a command prints that must end well.
    pub(super) fn command(&self, arguments: &[&str]) -> Result<String> {
        let mut command = verbatim(self.data.path(), arguments);
        command.envs(self.settings());
        let output = run(command, b"")?;
        let (out, err) = (String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
        ensure!(output.status.success(), "{arguments:?}: {err}\n{out}");
        Ok(out.into_owned())
    }

    pub(super) async fn open(&self) -> Result<Open> {
        if let Some(cluster) = &self.cluster {
            let options = || PostgresOptions::new(cluster.url(DATABASE));
            let main = Arc::new(PostgresStore::open(options()).await?);
            let archive = Arc::new(PostgresArchive::open(options()).await?);
            let (ledger, directory) = (Arc::clone(&main) as _, main as _);
            return Ok(Open { ledger, directory, archive, files: None });
        }
        let options = |name| SqliteOptions::new(self.data.path().join(name));
        let main = Arc::new(SqliteStore::open(options("verbatim.db")).await?);
        let archive = Arc::new(SqliteArchive::open(options("archive.db")).await?);
        let (ledger, directory) = (Arc::clone(&main) as _, Arc::clone(&main) as _);
        let files = Some((main, Arc::clone(&archive)));
        Ok(Open { ledger, directory, archive, files })
    }
}

impl Open {
    /// Files are given back; connections end by themselves.
    pub(super) async fn close(self) {
        if let Some((main, archive)) = self.files {
            main.close().await;
            archive.close().await;
        }
    }
}
