//! Opens the stores behind the ports from the storage options.

use std::sync::Arc;

use transcript_core::{Result, archive::Archive, memory::MemoryArchive};

#[cfg(feature = "lookup")]
use crate::main_stores::MainStores;
#[cfg(feature = "postgres")]
use crate::options::DatabaseOptions;
use crate::options::{Options, StorageOptions};
#[cfg(feature = "postgres")]
use crate::server_group::PostgresDatabases;

/// Failures and free space of one store.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StoreFigures {
    /// `main` or `archive`.
    pub store: &'static str,
    /// Number of failed calls by the name of their kind, since the store was opened.
    pub errors: Vec<(&'static str, u64)>,
    /// Free space of the disk, in bytes; `None` for a server, and if the system does not report it.
    pub free_bytes: Option<u64>,
    /// Whether the last write failed within a minute because stored data is damaged.
    pub is_damaged: bool,
}

#[cfg(any(feature = "sqlite", feature = "postgres"))]
impl StoreFigures {
    /// The figures of a store with this monitor.
    pub(crate) fn new(
        store: &'static str,
        monitor: &storage_sqlx::StoreMonitor,
        free_bytes: Option<u64>,
    ) -> Self {
        Self { store, errors: monitor.errors(), free_bytes, is_damaged: monitor.is_damaged() }
    }
}

/// The stores behind the ports, and the handles to close at the end.
#[derive(Debug)]
pub(crate) struct Stores {
    pub(crate) archive: Arc<dyn Archive>,
    /// Keys, accounts and the ledger.
    #[cfg(feature = "lookup")]
    pub(crate) main: MainStores,
    #[cfg(feature = "sqlite")]
    files: SqliteFiles,
    #[cfg(feature = "postgres")]
    databases: PostgresDatabases,
    /// Where the search index is.
    #[cfg(feature = "search")]
    index: crate::archive_search::IndexStorage,
}

/// Open SQLite files.
#[cfg(feature = "sqlite")]
#[derive(Debug, Default)]
struct SqliteFiles {
    #[cfg(feature = "lookup")]
    main: Option<Arc<storage_sqlx::SqliteStore>>,
    archive: Option<Arc<storage_sqlx::SqliteArchive>>,
}

impl Stores {
    /// Opens the stores that the options select; those of the caller replace them.
    pub(crate) async fn open(options: &Options) -> Result<Self> {
        #[cfg_attr(not(feature = "lookup"), expect(unused_mut, reason = "there is nothing to replace"))]
        let mut stores = match &options.custom.archive {
            None => Self::select(&options.storage).await?,
            Some(archive) => Self::beside_custom_archive(&options.storage, Arc::clone(archive)).await?,
        };
        #[cfg(feature = "lookup")]
        {
            let main = stores.main.with_custom(&options.custom);
            stores.main = main.with_observer(options.observer.as_ref());
        }
        Ok(stores)
    }

    async fn select(options: &StorageOptions) -> Result<Self> {
        match options {
            StorageOptions::Memory => Ok(Self::with_archive(Arc::new(MemoryArchive::default()))),
            StorageOptions::BoundedMemory(bytes_max) => {
                Ok(Self::with_archive(Arc::new(MemoryArchive::with_capacity(*bytes_max))))
            }
            #[cfg(all(feature = "sqlite", feature = "lookup"))]
            StorageOptions::Files { main, archive } => Self::files(main, archive).await,
            // Without the lookup API, no part of the program uses the file of the keys.
            #[cfg(all(feature = "sqlite", not(feature = "lookup")))]
            StorageOptions::Files { archive, .. } => Self::archive_file(archive).await,
            #[cfg(feature = "sqlite")]
            StorageOptions::ArchiveFile(archive) => Self::archive_file(archive).await,
            #[cfg(feature = "postgres")]
            StorageOptions::Postgres { main, archive } => Self::databases(main, archive).await,
            #[cfg(feature = "postgres")]
            StorageOptions::ArchivePostgres(archive) => Self::archive_database(archive).await,
            #[cfg(not(feature = "sqlite"))]
            StorageOptions::Files { .. } | StorageOptions::ArchiveFile(_) => {
                Err(transcript_core::Error::unsupported(
                    "this build cannot store in files: it lacks the feature sqlite",
                ))
            }
            #[cfg(not(feature = "postgres"))]
            StorageOptions::Postgres { .. } | StorageOptions::ArchivePostgres(_) => {
                Err(transcript_core::Error::unsupported(
                    "this build cannot store in PostgreSQL: it lacks the feature postgres",
                ))
            }
        }
    }

    /// The caller's archive, and the rest where the options say.
    async fn beside_custom_archive(options: &StorageOptions, archive: Arc<dyn Archive>) -> Result<Self> {
        #[cfg(all(feature = "sqlite", feature = "lookup"))]
        if let StorageOptions::Files { main, .. } = options {
            use storage_sqlx::{SqliteOptions, SqliteStore};
            let main = Arc::new(SqliteStore::open(SqliteOptions::new(main)).await?);
            let mut stores = Self::with_archive(archive);
            stores.main = MainStores::from_store(&main);
            stores.files.main = Some(main);
            return Ok(stores);
        }
        #[cfg(feature = "postgres")]
        if let StorageOptions::Postgres { main, .. } = options {
            let main = Arc::new(storage_sqlx::PostgresStore::open(postgres_options(main)).await?);
            let mut stores = Self::with_archive(archive);
            stores.main = MainStores::from_store(&main);
            stores.databases.main = Some(main);
            return Ok(stores);
        }
        let mut stores = Self::select(options).await?;
        stores.archive = archive;
        #[cfg(feature = "search")]
        {
            stores.index = crate::archive_search::IndexStorage::default();
        }
        Ok(stores)
    }

    /// The search in the archive.
    #[cfg(feature = "search")]
    pub(crate) fn search_service(
        &self,
        clock: &Arc<crate::SystemClock>,
        servers: crate::server_group::ServerGroup,
    ) -> crate::SearchService {
        let (archive, clock) = (Arc::clone(&self.archive), Arc::clone(clock));
        crate::SearchService::new(archive, self.index.clone(), clock, servers)
    }

    /// Puts the index of an archive in a file beside it.
    #[cfg(feature = "sqlite")]
    fn with_index_beside(self, archive: &std::path::Path) -> Self {
        #[cfg(feature = "search")]
        {
            Self { index: crate::archive_search::IndexStorage::beside(archive), ..self }
        }
        #[cfg(not(feature = "search"))]
        {
            let _ = archive;
            self
        }
    }

    /// Puts the index of an archive in its database.
    #[cfg(feature = "postgres")]
    fn with_index_in(self, archive: &storage_sqlx::PostgresArchive) -> Self {
        #[cfg(feature = "search")]
        {
            let index = storage_sqlx::PostgresSearchIndex::of_archive(archive);
            Self { index: crate::archive_search::IndexStorage::Shared(Arc::new(index)), ..self }
        }
        #[cfg(not(feature = "search"))]
        {
            let _ = archive;
            self
        }
    }

    /// This archive, and everything else in memory.
    fn with_archive(archive: Arc<dyn Archive>) -> Self {
        Self {
            archive,
            #[cfg(feature = "lookup")]
            main: MainStores::memory(),
            #[cfg(feature = "sqlite")]
            files: SqliteFiles::default(),
            #[cfg(feature = "postgres")]
            databases: PostgresDatabases::default(),
            #[cfg(feature = "search")]
            index: crate::archive_search::IndexStorage::default(),
        }
    }

    /// The open databases that other servers share.
    #[cfg(feature = "postgres")]
    pub(crate) fn shared_databases(&self) -> PostgresDatabases {
        self.databases.clone()
    }

    #[cfg(feature = "postgres")]
    async fn databases(main: &DatabaseOptions, archive: &DatabaseOptions) -> Result<Self> {
        use storage_sqlx::{PostgresArchive, PostgresStore};
        let (main, archive) = (postgres_options(main), postgres_options(archive));
        let (main, archive) = if main == archive {
            let main = PostgresStore::open(main).await?;
            let archive = PostgresArchive::open_beside(&main).await?;
            (main, archive)
        } else {
            tokio::try_join!(PostgresStore::open(main), PostgresArchive::open(archive))?
        };
        let (main, archive) = (Arc::new(main), Arc::new(archive));
        let mut stores = Self::with_archive(Arc::clone(&archive) as _).with_index_in(&archive);
        stores.main = MainStores::from_store(&main);
        stores.databases = PostgresDatabases { main: Some(main), archive: Some(archive) };
        Ok(stores)
    }

    #[cfg(feature = "postgres")]
    async fn archive_database(archive: &DatabaseOptions) -> Result<Self> {
        let archive = Arc::new(storage_sqlx::PostgresArchive::open(postgres_options(archive)).await?);
        let mut stores = Self::with_archive(Arc::clone(&archive) as _).with_index_in(&archive);
        stores.databases.archive = Some(archive);
        Ok(stores)
    }

    #[cfg(all(feature = "sqlite", feature = "lookup"))]
    async fn files(main: &std::path::Path, archive: &std::path::Path) -> Result<Self> {
        let path = archive;
        let (main, archive) = open_files(main, archive).await?;
        let (main, archive) = (Arc::new(main), Arc::new(archive));
        let mut stores = Self::with_archive(Arc::clone(&archive) as _).with_index_beside(path);
        stores.main = MainStores::from_store(&main);
        stores.files = SqliteFiles { main: Some(main), archive: Some(archive) };
        Ok(stores)
    }

    #[cfg(feature = "sqlite")]
    async fn archive_file(archive: &std::path::Path) -> Result<Self> {
        use storage_sqlx::{SqliteArchive, SqliteOptions};
        let path = archive;
        let archive = Arc::new(SqliteArchive::open(SqliteOptions::new(path)).await?);
        let mut stores = Self::with_archive(Arc::clone(&archive) as _).with_index_beside(path);
        stores.files.archive = Some(archive);
        Ok(stores)
    }

    /// The figures of the open files and databases.
    pub(crate) fn figures(&self) -> Vec<StoreFigures> {
        #[allow(unused_mut, reason = "a build without SQLite and PostgreSQL has stores in memory only")]
        let mut figures = Vec::new();
        #[cfg(feature = "sqlite")]
        {
            #[cfg(feature = "lookup")]
            if let Some(main) = &self.files.main {
                figures.push(StoreFigures::new("main", main.monitor(), main.free_bytes()));
            }
            if let Some(archive) = &self.files.archive {
                figures.push(StoreFigures::new("archive", archive.monitor(), archive.free_bytes()));
            }
        }
        #[cfg(feature = "postgres")]
        {
            if let Some(main) = &self.databases.main {
                figures.push(StoreFigures::new("main", main.monitor(), None));
            }
            if let Some(archive) = &self.databases.archive {
                figures.push(StoreFigures::new("archive", archive.monitor(), None));
            }
        }
        figures
    }

    /// What to change if the servers of a database may open more connections than it permits.
    pub(crate) async fn connection_warning(&self) -> Option<String> {
        #[cfg(feature = "postgres")]
        {
            let limit = match (&self.databases.main, &self.databases.archive) {
                (Some(main), _) => main.connection_limit().await,
                (None, Some(archive)) => archive.connection_limit().await,
                (None, None) => None,
            };
            limit.and_then(connection_warning)
        }
        #[cfg(not(feature = "postgres"))]
        None
    }

    /// Finishes running work and closes files and connections.
    pub(crate) async fn close(&self) {
        #[cfg(feature = "sqlite")]
        {
            if let Some(archive) = &self.files.archive {
                archive.close().await;
            }
            #[cfg(feature = "lookup")]
            if let Some(main) = &self.files.main {
                main.close().await;
            }
        }
        #[cfg(feature = "postgres")]
        {
            if let Some(archive) = &self.databases.archive {
                archive.close().await;
            }
            if let Some(main) = &self.databases.main {
                main.close().await;
            }
        }
    }
}

/// How often an empty file is looked at again, and the pause in between: another process may be making it.
#[cfg(all(feature = "sqlite", feature = "lookup"))]
const EMPTY_FILE_CHECKS: u32 = 20;
#[cfg(all(feature = "sqlite", feature = "lookup"))]
const EMPTY_FILE_PAUSE: std::time::Duration = std::time::Duration::from_millis(100);

/// Opens both files. Beside transcripts, an empty file of keys and accounts is refused, and beside a ledger in use an
/// empty archive: its data is lost.
///
/// A missing one is made, with a warning: `get` and `import` make the archive only, and an operator may begin without
/// the transcripts.
#[cfg(all(feature = "sqlite", feature = "lookup"))]
async fn open_files(
    main: &std::path::Path,
    archive: &std::path::Path,
) -> Result<(storage_sqlx::SqliteStore, storage_sqlx::SqliteArchive)> {
    use storage_sqlx::{SqliteArchive, SqliteOptions, SqliteStore};
    use transcript_core::{PageRequest, ledger::Ledger as _};
    let (main_options, archive_options) = (SqliteOptions::new(main), SqliteOptions::new(archive));
    if is_missing(main) || is_empty(main) {
        let is_missing = is_missing(main);
        let opened = SqliteArchive::open(archive_options).await?;
        if opened.stats().await.is_ok_and(|stats| stats.transcripts > 0) {
            if is_missing {
                tracing::warn!(file = %main.display(), "new file of keys and accounts made beside an archive");
            } else if stays_empty(main).await {
                opened.close().await;
                return Err(lost((main, "keys, accounts and credits"), (archive, "transcripts")));
            }
        }
        return Ok((SqliteStore::open(main_options).await?, opened));
    }
    let is_missing = is_missing(archive);
    if !is_missing && !is_empty(archive) {
        return tokio::try_join!(SqliteStore::open(main_options), SqliteArchive::open(archive_options));
    }
    let opened = SqliteStore::open(main_options).await?;
    let wallets = opened.wallets(PageRequest { limit: 1, ..PageRequest::first() }).await;
    if wallets.is_ok_and(|wallets| !wallets.items.is_empty()) {
        if is_missing {
            tracing::warn!(file = %archive.display(), "new archive made beside a ledger with charges");
        } else if stays_empty(archive).await {
            opened.close().await;
            return Err(lost((archive, "transcripts"), (main, "charges or credits")));
        }
    }
    Ok((opened, SqliteArchive::open(archive_options).await?))
}

#[cfg(all(feature = "sqlite", feature = "lookup"))]
fn is_missing(file: &std::path::Path) -> bool {
    matches!(file.try_exists(), Ok(false))
}

#[cfg(all(feature = "sqlite", feature = "lookup"))]
fn is_empty(file: &std::path::Path) -> bool {
    std::fs::metadata(file).is_ok_and(|found| found.is_file() && found.len() == 0)
}

#[cfg(all(feature = "sqlite", feature = "lookup"))]
async fn stays_empty(file: &std::path::Path) -> bool {
    for _ in 0..EMPTY_FILE_CHECKS {
        if !is_empty(file) {
            return false;
        }
        tokio::time::sleep(EMPTY_FILE_PAUSE).await;
    }
    is_empty(file)
}

/// The error for an empty file beside another one; each with what it has.
#[cold]
#[cfg(all(feature = "sqlite", feature = "lookup"))]
fn lost(
    (empty, lost): (&std::path::Path, &str),
    (other, stored): (&std::path::Path, &str),
) -> transcript_core::Error {
    let (empty, other) = (empty.display(), other.display());
    transcript_core::Error::invalid(format!(
        "{empty} is empty, but {other} has {stored}: restore {empty} from a backup, or delete the empty file to begin \
         without {lost}"
    ))
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

/// What to change if the connections of all programs may exceed the server's limit.
#[cfg(feature = "postgres")]
pub(crate) fn connection_warning(limit: storage_sqlx::ConnectionLimit) -> Option<String> {
    let storage_sqlx::ConnectionLimit { permitted, programs, own } = limit;
    (!limit.is_sufficient()).then(|| {
        format!(
            "{programs} connected programs may open {own} connections each, and the database server permits \
             {permitted}: lower storage.connections or raise max_connections"
        )
    })
}
