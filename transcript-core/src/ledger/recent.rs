//! The newest entries of a wallet, for ledgers that list only from the oldest on.

use super::{Entry, Ledger};
use crate::{
    error::Result,
    ids::{Cursor, WalletId},
    page::{Page, PageRequest},
};

/// Reads all entries of a wallet, and returns a page of them in reverse order.
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
        items.extend(found.items.into_iter().filter(|entry| entry.seq < before));
        match found.next {
            Some(next) => request.after = Some(next),
            None => break,
        }
    }
    items.reverse();
    Ok(Page::cut(items, page, |entry| entry.seq.to_string()))
}
