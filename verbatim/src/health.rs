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
    pub(crate) async fn check(stores: &Stores, timeout: Duration) -> Self {
        #[cfg(not(feature = "lookup"))]
        let main = async { Ok(()) };
        #[cfg(feature = "lookup")]
        let main = async {
            let terms = Terms { pools: vec![Pool::Purchased], resets_at: None };
            stores.main.ledger.balance(&WalletId::new(CHECK_WALLET), &terms).await.map(|_| ())
        };
        let archive = async { stores.archive.change_counter().await.map(|_| ()) };
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
        #[cfg(feature = "accounts")]
        assert_eq!(verbatim.waiting_mails().await.unwrap(), 0);
        let late = with_timeout(Duration::ZERO, std::future::pending()).await;
        assert!(!StoreHealth { main: late, ..ready }.is_ready());
    }
}
