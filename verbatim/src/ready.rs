//! Whether the stores answer.

use std::time::Duration;

use transcript_core::{
    Error, Result,
    ids::WalletId,
    ledger::{Pool, Terms},
};

use crate::Verbatim;

/// The wallet that is asked after: nobody has it, and nothing is stored for it.
const NOBODY: &str = "readiness";

/// Whether the stores answer.
#[derive(Clone, Debug)]
pub struct Ready {
    /// The store of keys, accounts and the ledger.
    pub main: Result<()>,
    /// The archive.
    pub archive: Result<()>,
}

impl Ready {
    /// Whether both do.
    pub fn is_ready(&self) -> bool {
        self.main.is_ok() && self.archive.is_ok()
    }
}

impl Verbatim {
    /// Asks both stores something small, at the same time, and waits for each of them for this long.
    pub async fn ready(&self, within: Duration) -> Ready {
        let main = async {
            let terms = Terms { pools: vec![Pool::Purchased], resets_at: None };
            self.ledger().balance(&WalletId::new(NOBODY), &terms).await.map(|_| ())
        };
        let archive = async { self.archive().changes().await.map(|_| ()) };
        let (main, archive) = tokio::join!(timed(within, main), timed(within, archive));
        Ready { main, archive }
    }
}

async fn timed(within: Duration, answer: impl Future<Output = Result<()>>) -> Result<()> {
    let timed = tokio::time::timeout(within, answer).await;
    timed.unwrap_or_else(|_| Err(Error::unavailable("the store did not answer in time")))
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use transcript_core::memory::MemoryArchive;

    use super::*;
    use crate::{Options, OwnParts};

    #[tokio::test]
    async fn stores_that_answer_are_ready() {
        let own = OwnParts { archive: Some(Arc::new(MemoryArchive::default())), ..OwnParts::default() };
        let verbatim = Verbatim::open(Options { own, ..Options::default() }).await.unwrap();
        let ready = verbatim.ready(Duration::from_secs(5)).await;
        assert!(ready.is_ready(), "{ready:?}");
        assert_eq!(verbatim.waiting_mails().await.unwrap(), 0);
        let late = timed(Duration::ZERO, std::future::pending()).await;
        assert!(!Ready { main: late, ..ready }.is_ready());
    }
}
