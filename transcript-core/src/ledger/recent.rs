//! The newest entries of a wallet, for ledgers that list only from the oldest on.

use super::{Entry, Ledger};
use crate::{
    error::Result,
    ids::{Cursor, WalletId},
    page::{Page, PageRequest},
};

/// Reads the entries of a wallet from the oldest on, and returns a page of them in reverse order.
///
/// Memory is bounded: it keeps the newest ones, as many as the page has, and one page that it reads.
pub(super) async fn read_reversed<L: Ledger + ?Sized>(
    ledger: &L,
    wallet: &WalletId,
    page: &PageRequest,
) -> Result<Page<Entry>> {
    let before = match &page.after {
        Some(_) => Cursor::number(page.after.as_ref())?,
        None => u64::MAX,
    };
    let (mut items, mut request) = (Vec::new(), PageRequest::first());
    loop {
        let found = ledger.entries(wallet, request.clone()).await?;
        let is_end = found.items.last().is_none_or(|last| last.seq >= before);
        items.extend(found.items.into_iter().filter(|entry| entry.seq < before));
        // One more than the page shows that there is another page.
        items.drain(..items.len().saturating_sub(page.size() + 1));
        match found.next {
            Some(next) if !is_end => request.after = Some(next),
            _ => break,
        }
    }
    items.reverse();
    Ok(Page::cut(items, page, |entry| entry.seq.to_string()))
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};

    use async_trait::async_trait;

    use super::*;
    use crate::{ids::GrantId, ledger::GrantRequest, memory::MemoryLedger, time::Timestamp};

    /// Counts the pages that are read.
    #[derive(Debug, Default)]
    struct CountingLedger {
        inner: MemoryLedger,
        pages: AtomicUsize,
    }

    #[async_trait]
    impl crate::test_doubles::LedgerWrapper for CountingLedger {
        fn inner(&self) -> &dyn Ledger {
            &self.inner
        }

        async fn entries(&self, wallet: &WalletId, page: PageRequest) -> Result<Page<Entry>> {
            self.pages.fetch_add(1, Relaxed);
            self.inner.entries(wallet, page).await
        }
    }

    #[tokio::test]
    async fn recent_entries_of_old_page_end_at_its_cursor() {
        let (ledger, wallet) = (CountingLedger::default(), WalletId::new("w"));
        for number in 0..2_001 {
            let (id, memo) = (GrantId::new(format!("g{number}")), String::new());
            let grant =
                GrantRequest { id, wallet: wallet.clone(), amount: 1, now: Timestamp::from_millis(0), memo };
            let _ = ledger.grant(grant).await.unwrap();
        }
        let read = async |after: Option<&str>| {
            let page = PageRequest { after: after.map(Cursor::new), limit: 2 };
            let found = read_reversed(&ledger, &wallet, &page).await.unwrap();
            let numbers: Vec<_> = found.items.iter().map(|entry| entry.seq).collect();
            (numbers, found.next.is_some(), ledger.pages.swap(0, Relaxed))
        };
        assert_eq!(read(None).await, (vec![2_001, 2_000], true, 3));
        assert_eq!(read(Some("4")).await, (vec![3, 2], true, 1));
        assert_eq!(read(Some("3")).await, (vec![2, 1], false, 1));
    }
}
