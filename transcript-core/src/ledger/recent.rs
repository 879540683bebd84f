//! The newest entries of a wallet, for ledgers that list only from the oldest on.

use super::{Entry, Ledger};
use crate::{
    error::{Error, Result},
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
        Some(cursor) => {
            cursor.as_str().parse().map_err(|_| Error::invalid("the cursor is not of this list"))?
        }
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
    let has_more = items.len() > page.size();
    items.truncate(page.size());
    let next = items.last().filter(|_| has_more).map(|last| Cursor::new(last.seq.to_string()));
    Ok(Page { items, next })
}
