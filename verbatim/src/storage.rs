//! From the choice of a storage to the ports.

use std::sync::Arc;

use transcript_core::{
    Result,
    accounts::{Charges, Orders, Outbox, Replies, StepByStep},
    archive::Archive,
    directory::{Directory, Secrets},
    ledger::Ledger,
    limits::RateLimiter,
    memory::{
        MemoryArchive, MemoryDirectory, MemoryLedger, MemoryOrders, MemoryOutbox, MemoryRateLimiter,
        MemoryReplies, MemorySecrets,
    },
};

use crate::options::{OwnParts, StorageOptions};

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
}

impl Stores {
    /// Opens the stores.
    pub(crate) async fn open(options: &StorageOptions) -> Result<Self> {
        match options {
            StorageOptions::Memory => Ok(Self::memory()),
            #[cfg(feature = "sqlite")]
            StorageOptions::Files { main, archive } => Self::files(main, archive).await,
            #[cfg(feature = "sqlite")]
            StorageOptions::ArchiveFile(archive) => Self::archive_file(archive).await,
            #[cfg(not(feature = "sqlite"))]
            StorageOptions::Files { .. } | StorageOptions::ArchiveFile(_) => {
                Err(transcript_core::Error::new(
                    transcript_core::ErrorKind::Unsupported,
                    transcript_core::Retry::Never,
                    "this build keeps nothing in files: it lacks the feature sqlite",
                ))
            }
        }
    }

    fn memory() -> Self {
        let steps = StepByStep {
            directory: Arc::new(MemoryDirectory::default()),
            limiter: Arc::new(MemoryRateLimiter::default()),
            ledger: Arc::new(MemoryLedger::default()),
        };
        Self {
            archive: Arc::new(MemoryArchive::default()),
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
        }
    }

    #[cfg(feature = "sqlite")]
    async fn files(main: &std::path::Path, archive: &std::path::Path) -> Result<Self> {
        use storage_sqlx::{SqliteArchive, SqliteOptions, SqliteStore};
        let (main, archive) = tokio::try_join!(
            SqliteStore::open(SqliteOptions::new(main)),
            SqliteArchive::open(SqliteOptions::new(archive)),
        )?;
        let (main, archive) = (Arc::new(main), Arc::new(archive));
        Ok(Self {
            archive: Arc::clone(&archive) as _,
            ledger: Arc::clone(&main) as _,
            directory: Arc::clone(&main) as _,
            limiter: Arc::clone(&main) as _,
            charges: Arc::clone(&main) as _,
            secrets: Arc::clone(&main) as _,
            orders: Arc::clone(&main) as _,
            outbox: Arc::clone(&main) as _,
            replies: Arc::clone(&main) as _,
            files: Some((Some(main), archive)),
        })
    }

    #[cfg(feature = "sqlite")]
    async fn archive_file(archive: &std::path::Path) -> Result<Self> {
        use storage_sqlx::{SqliteArchive, SqliteOptions};
        let archive = Arc::new(SqliteArchive::open(SqliteOptions::new(archive)).await?);
        Ok(Self { archive: Arc::clone(&archive) as _, files: Some((None, archive)), ..Self::memory() })
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

    /// Finishes what is under way and closes the files.
    pub(crate) async fn close(&self) {
        #[cfg(feature = "sqlite")]
        if let Some((main, archive)) = &self.files {
            archive.close().await;
            if let Some(main) = main {
                main.close().await;
            }
        }
    }
}
