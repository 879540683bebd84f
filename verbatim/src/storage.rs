//! Opens the stores behind the ports from the storage options.

use std::sync::Arc;

use transcript_core::{
    Random, Result,
    accounts::{ChargeStore, IdempotencyStore, OrderStore, Outbox, SequentialCharges},
    archive::Archive,
    directory::{Directory, SecretStore},
    engine::EngineObserver,
    ledger::Ledger,
    limits::RateLimiter,
    memory::{
        MemoryArchive, MemoryDirectory, MemoryIdempotencyStore, MemoryLedger, MemoryOrders, MemoryOutbox,
        MemoryRateLimiter, MemorySecrets,
    },
};

#[cfg(feature = "postgres")]
use crate::options::DatabaseOptions;
use crate::{
    observed_ledger::ObservedLedger,
    options::{CustomPorts, StorageOptions},
    server_group::ServerGroup,
    system::SystemClock,
};

/// The stores behind the ports, and the handles to close at the end.
#[derive(Debug)]
pub(crate) struct Stores {
    pub(crate) archive: Arc<dyn Archive>,
    pub(crate) ledger: Arc<dyn Ledger>,
    pub(crate) directory: Arc<dyn Directory>,
    pub(crate) limiter: Arc<dyn RateLimiter>,
    pub(crate) charges: Arc<dyn ChargeStore>,
    pub(crate) secrets: Arc<dyn SecretStore>,
    pub(crate) orders: Arc<dyn OrderStore>,
    pub(crate) outbox: Arc<dyn Outbox>,
    pub(crate) replies: Arc<dyn IdempotencyStore>,
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
            StorageOptions::BoundedMemory(bytes_max) => {
                Ok(Self::memory(MemoryArchive::with_capacity(*bytes_max)))
            }
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
                Err(unsupported("this build cannot store in files: it lacks the feature sqlite"))
            }
            #[cfg(not(feature = "postgres"))]
            StorageOptions::Postgres { .. } | StorageOptions::ArchivePostgres(_) => {
                Err(unsupported("this build cannot store in PostgreSQL: it lacks the feature postgres"))
            }
        }
    }

    fn memory(archive: MemoryArchive) -> Self {
        let steps = SequentialCharges {
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
            replies: Arc::new(MemoryIdempotencyStore::default()),
            #[cfg(feature = "sqlite")]
            files: None,
            #[cfg(feature = "postgres")]
            databases: None,
        }
    }

    /// Returns the servers that share these stores and sets the clock to their time.
    pub(crate) async fn servers(&self, random: &dyn Random, clock: &SystemClock) -> Result<ServerGroup> {
        #[cfg(feature = "postgres")]
        let servers = {
            let (main, archive) =
                self.databases.clone().map_or((None, None), |(main, archive)| (main, Some(archive)));
            ServerGroup::new(main, archive, random)
        };
        #[cfg(not(feature = "postgres"))]
        let servers = ServerGroup::new(random);
        servers.sync_clock(clock).await?;
        Ok(servers)
    }

    /// Builds all ports from one store and an archive; the caller adds the handles to close.
    #[cfg(any(feature = "sqlite", feature = "postgres"))]
    fn from_store<M>(main: &Arc<M>, archive: Arc<dyn Archive>) -> Self
    where
        M: Ledger
            + Directory
            + RateLimiter
            + ChargeStore
            + SecretStore
            + OrderStore
            + Outbox
            + IdempotencyStore
            + 'static,
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
        let (main, archive) = tokio::try_join!(
            PostgresStore::open(postgres_options(main)),
            PostgresArchive::open(postgres_options(archive)),
        )?;
        let (main, archive) = (Arc::new(main), Arc::new(archive));
        let stores = Self::from_store(&main, Arc::clone(&archive) as _);
        Ok(Self { databases: Some((Some(main), archive)), ..stores })
    }

    #[cfg(feature = "postgres")]
    async fn archive_database(archive: &DatabaseOptions) -> Result<Self> {
        let archive = Arc::new(storage_sqlx::PostgresArchive::open(postgres_options(archive)).await?);
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
        let stores = Self::from_store(&main, Arc::clone(&archive) as _);
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

    /// Replaces stores by those of the caller.
    pub(crate) fn with_custom(mut self, custom: &CustomPorts) -> Self {
        if let Some(archive) = &custom.archive {
            self.archive = Arc::clone(archive);
        }
        if custom.ledger.is_none() && custom.directory.is_none() {
            return self;
        }
        self.ledger = custom.ledger.clone().unwrap_or(self.ledger);
        self.directory = custom.directory.clone().unwrap_or(self.directory);
        // A single-step charge needs directory, limiter and ledger in one store.
        self.charges = Arc::new(SequentialCharges {
            directory: Arc::clone(&self.directory),
            limiter: Arc::clone(&self.limiter),
            ledger: Arc::clone(&self.ledger),
        });
        self
    }

    /// Reports the ledger operations to the observer.
    pub(crate) fn with_observer(mut self, observer: Option<&Arc<dyn EngineObserver>>) -> Self {
        if let Some(observer) = observer {
            self.ledger = ObservedLedger::new(self.ledger, observer);
            self.charges = ObservedLedger::new(self.charges, observer);
        }
        self
    }

    /// Finishes running work and closes files and connections.
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
pub(crate) fn postgres_options(options: &DatabaseOptions) -> storage_sqlx::PostgresOptions {
    storage_sqlx::PostgresOptions {
        connections: options.connections,
        connect_timeout: options.connect_timeout,
        timeout: options.timeout,
        pooler: options.pooler,
        ..storage_sqlx::PostgresOptions::new(&options.url)
    }
}

#[cfg(not(all(feature = "postgres", feature = "sqlite")))]
pub(crate) fn unsupported(message: &str) -> transcript_core::Error {
    use transcript_core::{Error, ErrorKind, Retry};
    Error::new(ErrorKind::Unsupported, Retry::Never, message)
}
