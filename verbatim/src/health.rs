//! Health of the stores.

use std::time::Duration;

use transcript_core::{Error, Result};
#[cfg(feature = "lookup")]
use transcript_core::{
    ids::WalletId,
    ledger::{Pool, Terms},
};

use crate::storage::Stores;

/// Wallet of the health check: it does not exist, and nothing is stored for it.
#[cfg(feature = "lookup")]
const CHECK_WALLET: &str = "readiness";

/// Failures and free space of one store.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StoreFigures {
    /// `main` or `archive`.
    pub store: &'static str,
    /// Number of failed calls by the name of their kind, since the store was opened.
    pub errors: Vec<(&'static str, u64)>,
    /// Free space of the disk, in bytes; `None` for a server, and if the system does not report it.
    pub free_bytes: Option<u64>,
}

#[cfg(any(feature = "sqlite", feature = "postgres"))]
impl StoreFigures {
    /// The figures of a store with this monitor.
    pub(crate) fn new(
        store: &'static str,
        monitor: &storage_sqlx::StoreMonitor,
        free_bytes: Option<u64>,
    ) -> Self {
        Self { store, errors: monitor.errors(), free_bytes }
    }
}

/// Health of both stores.
#[derive(Clone, Debug)]
pub struct StoreHealth {
    /// Result of the store of keys, accounts and the ledger; `Ok` in a build without the feature `lookup`.
    pub main: Result<()>,
    /// Result of the archive.
    pub archive: Result<()>,
}

impl StoreHealth {
    /// Whether both stores respond.
    pub fn is_ready(&self) -> bool {
        self.main.is_ok() && self.archive.is_ok()
    }
}

impl StoreHealth {
    /// Implements [`crate::Verbatim::ready`].
    pub(crate) async fn check_reads(stores: &Stores, timeout: Duration) -> Self {
        #[cfg(not(feature = "lookup"))]
        let main = async { Ok(()) };
        #[cfg(feature = "lookup")]
        let main = async {
            let terms = Terms { pools: vec![Pool::Purchased], resets_at: None };
            stores.main.ledger.balance(&WalletId::new(CHECK_WALLET), &terms).await.map(|_| ())
        };
        let archive = async { stores.archive.change_counter().await.map(|_| ()) };
        Self::join(timeout, main, archive).await
    }

    /// Implements [`crate::Verbatim::check_writes`].
    pub(crate) async fn check_writes(stores: &Stores, timeout: Duration) -> Self {
        #[cfg(not(feature = "lookup"))]
        let main = async { Ok(()) };
        #[cfg(feature = "lookup")]
        let main = stores.main.ledger.check_writable();
        Self::join(timeout, main, stores.archive.check_writable()).await
    }

    async fn join(
        timeout: Duration,
        main: impl Future<Output = Result<()>>,
        archive: impl Future<Output = Result<()>>,
    ) -> Self {
        let (main, archive) = tokio::join!(with_timeout(timeout, main), with_timeout(timeout, archive));
        Self { main, archive }
    }
}

async fn with_timeout(timeout: Duration, answer: impl Future<Output = Result<()>>) -> Result<()> {
    let result = tokio::time::timeout(timeout, answer).await;
    result.unwrap_or_else(|_| Err(Error::unavailable("the store did not respond in time")))
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use transcript_core::memory::MemoryArchive;

    use super::*;
    use crate::{CustomPorts, Options, Verbatim};

    #[tokio::test]
    async fn health_responding_stores_are_ready() {
        let custom =
            CustomPorts { archive: Some(Arc::new(MemoryArchive::default())), ..CustomPorts::default() };
        let verbatim = Verbatim::open(Options { custom, ..Options::default() }).await.unwrap();
        let ready = verbatim.ready(Duration::from_secs(5)).await;
        assert!(ready.is_ready(), "{ready:?}");
        let writes = verbatim.check_writes(Duration::from_secs(5)).await;
        assert!(writes.is_ready() && verbatim.store_figures().is_empty(), "{writes:?}");
        #[cfg(feature = "accounts")]
        assert_eq!(verbatim.waiting_mails().await.unwrap(), 0);
        let late = with_timeout(Duration::ZERO, std::future::pending()).await;
        assert!(!StoreHealth { main: late, ..ready }.is_ready());
    }
}
