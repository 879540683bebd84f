//! From the choice of a storage to the ports.

use std::sync::Arc;

use transcript_core::{
    Random, Result,
    accounts::{Charges, Orders, Outbox, Replies, StepByStep},
    archive::Archive,
    directory::{Directory, Secrets},
    engine::Observer,
    ledger::Ledger,
    limits::RateLimiter,
    memory::{
        MemoryArchive, MemoryDirectory, MemoryLedger, MemoryOrders, MemoryOutbox, MemoryRateLimiter,
        MemoryReplies, MemorySecrets,
    },
};

#[cfg(feature = "postgres")]
use crate::options::DatabaseOptions;
use crate::{
    options::{OwnParts, StorageOptions},
    servers::Servers,
    system::SystemClock,
    watched::Watched,
};

/// The stores behind the ports, and what is closed at the end.
#[derive(Debug)]
pub(crate) struct Stores {
    pub(crate) archive: Arc<dyn Archive>,
    pub(crate) ledger: Arc<dyn Ledger>,
    pub(crate) directory: Arc<dyn Directory>,
    pub(crate) limiter: Arc<dyn RateLimiter>,
    pub(crate) charges: Arc<dyn Charges>,
    pub(crate) secrets: Arc<dyn Secrets>,
    pub(crate) orders: Arc<dyn Orders>,
    pub(crate) outbox: Arc<dyn Outbox>,
    pub(crate) replies: Arc<dyn Replies>,
    #[cfg(feature = "sqlite")]
    files: Option<(Option<Arc<storage_sqlx::SqliteStore>>, Arc<storage_sqlx::SqliteArchive>)>,
    #[cfg(feature = "postgres")]
    databases: Option<(Option<Arc<storage_sqlx::PostgresStore>>, Arc<storage_sqlx::PostgresArchive>)>,
}

impl Stores {
    /// Opens the stores.
    pub(crate) async fn open(options: &StorageOptions) -> Result<Self> {
        match options {
            StorageOptions::Memory => Ok(Self::memory(MemoryArchive::default())),
            StorageOptions::MemoryUpTo(bytes_max) => Ok(Self::memory(MemoryArchive::up_to(*bytes_max))),
            #[cfg(feature = "sqlite")]
            StorageOptions::Files { main, archive } => Self::files(main, archive).await,
            #[cfg(feature = "sqlite")]
            StorageOptions::ArchiveFile(archive) => Self::archive_file(archive).await,
            #[cfg(feature = "postgres")]
            StorageOptions::Postgres { main, archive } => Self::databases(main, archive).await,
            #[cfg(feature = "postgres")]
            StorageOptions::ArchivePostgres(archive) => Self::archive_database(archive).await,
            #[cfg(not(feature = "sqlite"))]
            StorageOptions::Files { .. } | StorageOptions::ArchiveFile(_) => {
                Err(lacking("this build keeps nothing in files: it lacks the feature sqlite"))
            }
            #[cfg(not(feature = "postgres"))]
            StorageOptions::Postgres { .. } | StorageOptions::ArchivePostgres(_) => {
                Err(lacking("this build keeps nothing in PostgreSQL: it lacks the feature postgres"))
            }
        }
    }

    fn memory(archive: MemoryArchive) -> Self {
        let steps = StepByStep {
            directory: Arc::new(MemoryDirectory::default()),
            limiter: Arc::new(MemoryRateLimiter::default()),
            ledger: Arc::new(MemoryLedger::default()),
        };
        Self {
            archive: Arc::new(archive),
            ledger: Arc::clone(&steps.ledger),
            directory: Arc::clone(&steps.directory),
            limiter: Arc::clone(&steps.limiter),
            charges: Arc::new(steps),
            secrets: Arc::new(MemorySecrets::default()),
            orders: Arc::new(MemoryOrders::default()),
            outbox: Arc::new(MemoryOutbox::default()),
            replies: Arc::new(MemoryReplies::default()),
            #[cfg(feature = "sqlite")]
            files: None,
            #[cfg(feature = "postgres")]
            databases: None,
        }
    }

    /// The servers that share these stores; their time is the clock's afterwards.
    pub(crate) async fn servers(&self, random: &dyn Random, clock: &SystemClock) -> Result<Servers> {
        #[cfg(feature = "postgres")]
        let servers = {
            let (main, archive) =
                self.databases.clone().map_or((None, None), |(main, archive)| (main, Some(archive)));
            Servers::new(main, archive, random)
        };
        #[cfg(not(feature = "postgres"))]
        let servers = Servers::new(random);
        servers.set(clock).await?;
        Ok(servers)
    }

    /// All ports on one store and an archive; whoever opened them adds what is to be closed.
    #[cfg(any(feature = "sqlite", feature = "postgres"))]
    fn over<M>(main: &Arc<M>, archive: Arc<dyn Archive>) -> Self
    where
        M: Ledger + Directory + RateLimiter + Charges + Secrets + Orders + Outbox + Replies + 'static,
    {
        Self {
            archive,
            ledger: Arc::clone(main) as _,
            directory: Arc::clone(main) as _,
            limiter: Arc::clone(main) as _,
            charges: Arc::clone(main) as _,
            secrets: Arc::clone(main) as _,
            orders: Arc::clone(main) as _,
            outbox: Arc::clone(main) as _,
            replies: Arc::clone(main) as _,
            #[cfg(feature = "sqlite")]
            files: None,
            #[cfg(feature = "postgres")]
            databases: None,
        }
    }

    #[cfg(feature = "postgres")]
    async fn databases(main: &DatabaseOptions, archive: &DatabaseOptions) -> Result<Self> {
        use storage_sqlx::{PostgresArchive, PostgresStore};
        let (main, archive) =
            tokio::try_join!(PostgresStore::open(reached(main)), PostgresArchive::open(reached(archive)),)?;
        let (main, archive) = (Arc::new(main), Arc::new(archive));
        let stores = Self::over(&main, Arc::clone(&archive) as _);
        Ok(Self { databases: Some((Some(main), archive)), ..stores })
    }

    #[cfg(feature = "postgres")]
    async fn archive_database(archive: &DatabaseOptions) -> Result<Self> {
        let archive = Arc::new(storage_sqlx::PostgresArchive::open(reached(archive)).await?);
        Ok(Self {
            archive: Arc::clone(&archive) as _,
            databases: Some((None, archive)),
            ..Self::memory(MemoryArchive::default())
        })
    }

    #[cfg(feature = "sqlite")]
    async fn files(main: &std::path::Path, archive: &std::path::Path) -> Result<Self> {
        use storage_sqlx::{SqliteArchive, SqliteOptions, SqliteStore};
        let (main, archive) = tokio::try_join!(
            SqliteStore::open(SqliteOptions::new(main)),
            SqliteArchive::open(SqliteOptions::new(archive)),
        )?;
        let (main, archive) = (Arc::new(main), Arc::new(archive));
        let stores = Self::over(&main, Arc::clone(&archive) as _);
        Ok(Self { files: Some((Some(main), archive)), ..stores })
    }

    #[cfg(feature = "sqlite")]
    async fn archive_file(archive: &std::path::Path) -> Result<Self> {
        use storage_sqlx::{SqliteArchive, SqliteOptions};
        let archive = Arc::new(SqliteArchive::open(SqliteOptions::new(archive)).await?);
        Ok(Self {
            archive: Arc::clone(&archive) as _,
            files: Some((None, archive)),
            ..Self::memory(MemoryArchive::default())
        })
    }

    /// The same, with what the caller brought along.
    pub(crate) fn with(mut self, own: &OwnParts) -> Self {
        if let Some(archive) = &own.archive {
            self.archive = Arc::clone(archive);
        }
        if own.ledger.is_none() && own.directory.is_none() {
            return self;
        }
        self.ledger = own.ledger.clone().unwrap_or(self.ledger);
        self.directory = own.directory.clone().unwrap_or(self.directory);
        // A charge in one step needs all of it in one store.
        self.charges = Arc::new(StepByStep {
            directory: Arc::clone(&self.directory),
            limiter: Arc::clone(&self.limiter),
            ledger: Arc::clone(&self.ledger),
        });
        self
    }

    /// The same, whose steps of the ledger somebody hears of.
    pub(crate) fn heard_by(mut self, observer: Option<&Arc<dyn Observer>>) -> Self {
        if let Some(observer) = observer {
            self.ledger = Watched::new(self.ledger, observer);
            self.charges = Watched::new(self.charges, observer);
        }
        self
    }

    /// Finishes what is under way and closes files and connections.
    pub(crate) async fn close(&self) {
        #[cfg(feature = "sqlite")]
        if let Some((main, archive)) = &self.files {
            archive.close().await;
            if let Some(main) = main {
                main.close().await;
            }
        }
        #[cfg(feature = "postgres")]
        if let Some((main, archive)) = &self.databases {
            archive.close().await;
            if let Some(main) = main {
                main.close().await;
            }
        }
    }
}

#[cfg(feature = "postgres")]
pub(crate) fn reached(options: &DatabaseOptions) -> storage_sqlx::PostgresOptions {
    storage_sqlx::PostgresOptions {
        connections: options.connections,
        connect_timeout: options.connect_timeout,
        patience: options.timeout,
        pooler: options.pooler,
        ..storage_sqlx::PostgresOptions::new(&options.url)
    }
}

#[cfg(not(all(feature = "postgres", feature = "sqlite")))]
pub(crate) fn lacking(message: &str) -> transcript_core::Error {
    use transcript_core::{Error, ErrorKind, Retry};
    Error::new(ErrorKind::Unsupported, Retry::Never, message)
}
