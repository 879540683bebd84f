//! Health of the stores.

use std::time::Duration;

use transcript_core::{Error, Result, retry::with_timeout};
#[cfg(feature = "lookup")]
use transcript_core::{
    ids::WalletId,
    ledger::{Pool, Terms},
};

use crate::storage::{StoreFigures, Stores};

/// Wallet of the health check: it does not exist, and nothing is stored for it.
#[cfg(feature = "lookup")]
const CHECK_WALLET: &str = "readiness";

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
        let figures = stores.figures();
        #[cfg(not(feature = "lookup"))]
        let main = async { Ok(()) };
        #[cfg(feature = "lookup")]
        let main = async {
            check_damage(&figures, "main")?;
            stores.main.ledger.check_writable().await
        };
        let archive = async {
            check_damage(&figures, "archive")?;
            stores.archive.check_writable().await
        };
        Self::join(timeout, main, archive).await
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

/// Checks that the last write of a store did not fail on damaged data.
///
/// The test write is not run after such a failure: it writes other data, and would count as the last write.
fn check_damage(figures: &[StoreFigures], store: &str) -> Result<()> {
    if figures.iter().any(|figures| figures.store == store && figures.is_damaged) {
        let message = "the last write failed because stored data is damaged: restore a backup";
        return Err(Error::corrupt(message));
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use transcript_core::{Retry, memory::MemoryArchive};

    use super::*;
    use crate::{CustomPorts, Options, Verbatim};

    #[test]
    fn health_store_with_failed_write_on_damage_is_not_ready() {
        let of = |store, is_damaged| StoreFigures { store, errors: Vec::new(), free_bytes: None, is_damaged };
        let figures = [of("main", true), of("archive", false)];
        assert_eq!(check_damage(&figures, "main").unwrap_err().retry(), Retry::Never);
        check_damage(&figures, "archive").unwrap();
    }

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
