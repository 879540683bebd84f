//! What the holder of an account sees of it: the statement, the usage per day and the orders.

use std::sync::Arc;

use super::{AccountAdmin, AccountView, Order, V1Error};
use crate::{
    directory::Account,
    error::Result,
    ids::OrderId,
    ledger::Entry,
    limits::{HOUR_MS, LimitRequest},
    page::{Page, PageRequest},
    time::{CLOCK_LEAD_MAX, Timestamp},
};

const DAY_MS: i64 = 24 * 3_600 * 1_000;
/// The days of the usage, today included.
const USAGE_DAYS: i64 = 30;
/// Maximum number of pages of entries that the usage is computed from: 10,000 entries.
const USAGE_PAGES_MAX: u32 = 10;

/// Downloads of an account's data in an hour: each reads all of its entries.
const DOWNLOADS_PER_HOUR: u32 = 20;

/// The credits that an account spent, per UTC day.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DailyUsage {
    /// Start of each of the last 30 days and the credits spent on it, oldest first.
    pub days: Vec<(Timestamp, u64)>,
    /// Whether the account has too many entries, so that the oldest days are not counted.
    pub is_partial: bool,
}

impl DailyUsage {
    fn new(now: Timestamp) -> Self {
        let today = now.as_millis().div_euclid(DAY_MS);
        let start = |day: i64| Timestamp::from_millis(day.saturating_mul(DAY_MS));
        let days = (today - USAGE_DAYS + 1..=today).map(|day| (start(day), 0)).collect();
        Self { days, is_partial: false }
    }

    /// Counts the entries of a page; returns whether one of them is within the days.
    ///
    /// Their times are not in order if a clock was wrong.
    fn add_page(&mut self, entries: &[Entry], now: Timestamp) -> bool {
        entries.iter().fold(false, |is_within, entry| self.add(entry, now) | is_within)
    }

    /// Counts an entry; returns whether it is not before the days.
    fn add(&mut self, entry: &Entry, now: Timestamp) -> bool {
        let day = entry.at.as_millis().div_euclid(DAY_MS).saturating_mul(DAY_MS);
        let is_within = self.days.first().is_some_and(|(first, _)| first.as_millis() <= day);
        // Another server's clock may be ahead: its entries count for today. One of a wrong clock has no day.
        if entry.kind.is_spent() && entry.at.since(now) <= CLOCK_LEAD_MAX {
            let index = self.days.iter().rposition(|(start, _)| start.as_millis() <= day);
            if let Some((_, credits)) = index.and_then(|index| self.days.get_mut(index)) {
                *credits = credits.saturating_add(entry.amount);
            }
        }
        is_within
    }
}

impl AccountAdmin {
    /// An account with its credits now.
    ///
    /// # Errors
    /// The errors of the ports.
    pub async fn view_account(self: &Arc<Self>, account: &Account) -> Result<AccountView> {
        let (admin, account) = (Arc::clone(self), account.clone());
        self.context.transcripts.task(async move { admin.view(account).await }).await?
    }

    /// Lists the ledger entries of an account, newest first.
    ///
    /// # Errors
    /// [`crate::ErrorKind::Invalid`] for a cursor of another list; the errors of the ports.
    pub async fn recent_entries(
        self: &Arc<Self>,
        account: &Account,
        page: PageRequest,
    ) -> Result<Page<Entry>> {
        let (admin, wallet) = (Arc::clone(self), account.wallet.clone());
        let work = async move {
            let read = || admin.credits.ledger.recent_entries(&wallet, page.clone());
            admin.context.retry_store(read).await
        };
        self.context.transcripts.task(work).await?
    }

    /// Counts a download of the data of an account.
    ///
    /// # Errors
    /// [`V1Error::RateLimited`] after 20 downloads in an hour; [`V1Error::Internal`].
    pub async fn count_download(self: &Arc<Self>, account: &Account) -> Result<(), V1Error> {
        let (admin, id) = (Arc::clone(self), account.id.clone());
        let work = async move {
            let limit = LimitRequest::one(format!("download/{id}"), DOWNLOADS_PER_HOUR, HOUR_MS);
            match admin.credits.limits.acquire(vec![limit], admin.context.now()).await? {
                None => Ok(()),
                Some(retry_after_ms) => Err(V1Error::rate_limited(
                    "The data of this account was downloaded too often",
                    retry_after_ms,
                )),
            }
        };
        self.context.task(work).await
    }

    /// The credits that an account spent on each of the last 30 days.
    ///
    /// # Errors
    /// The errors of the ports.
    pub async fn daily_usage(self: &Arc<Self>, account: &Account) -> Result<DailyUsage> {
        let (admin, wallet) = (Arc::clone(self), account.wallet.clone());
        let work = async move {
            let now = admin.context.now();
            let (mut usage, mut page) = (DailyUsage::new(now), PageRequest::first());
            for _ in 0..USAGE_PAGES_MAX {
                let read = || admin.credits.ledger.recent_entries(&wallet, page.clone());
                let found = admin.context.retry_store(read).await?;
                let is_within = usage.add_page(&found.items, now);
                match found.next.filter(|_| is_within) {
                    Some(next) => page.after = Some(next),
                    None => return Ok(usage),
                }
            }
            usage.is_partial = true;
            Ok(usage)
        };
        self.context.transcripts.task(work).await?
    }

    /// The orders of an account, newest first, without the credit orders of payments for a second subscription.
    ///
    /// # Errors
    /// The errors of the ports.
    pub async fn recent_orders(self: &Arc<Self>, account: &Account) -> Result<Vec<Order>> {
        let (admin, account) = (Arc::clone(self), account.clone());
        let work = async move {
            let orders = admin.orders_of(&account).await?.into_iter().rev();
            Ok(orders.filter(|order| !order.is_credit_order()).collect())
        };
        self.context.transcripts.task(work).await?
    }

    /// An order of this account; `None` for an unknown order, one of another account and a credit order.
    ///
    /// # Errors
    /// The errors of the ports.
    pub async fn order_of(self: &Arc<Self>, account: &Account, id: &OrderId) -> Result<Option<Order>> {
        let (admin, account, id) = (Arc::clone(self), account.id.clone(), id.clone());
        let work = async move {
            let order = admin.context.retry_store(|| admin.orders.order(&id)).await?;
            Ok(order.filter(|order| order.account == account && !order.is_credit_order()))
        };
        self.context.transcripts.task(work).await?
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{
        ids::WalletId,
        ledger::{EntryKind, Pool},
    };

    fn entry(at: i64, kind: EntryKind, amount: u64) -> Entry {
        Entry {
            seq: 1,
            at: Timestamp::from_millis(at),
            wallet: WalletId::new("w"),
            pool: Pool::Purchased,
            kind,
            amount,
            cause: String::new(),
            memo: String::new(),
        }
    }

    #[test]
    fn daily_usage_counts_spent_credits_per_utc_day() {
        let day = |day: i64| 1_795_132_800_000 + day * DAY_MS;
        let now = Timestamp::from_millis(day(0) + 5);
        let mut usage = DailyUsage::new(now);
        assert_eq!(usage.days.len(), 30);
        assert!(usage.add(&entry(day(1), EntryKind::Charged, 1), now), "an entry of a clock ahead");
        assert!(usage.add(&entry(day(2), EntryKind::Charged, 128), now), "an entry of a wrong clock");
        let page = [
            (day(0), EntryKind::Charged, 2),
            (day(-29) - 1, EntryKind::Charged, 64),
            (day(0) - 1, EntryKind::Spent, 4),
            (day(0) - 1, EntryKind::Held, 8),
            (day(0) - 1, EntryKind::Granted, 16),
            (day(-29), EntryKind::Charged, 32),
        ];
        let page = page.map(|(at, kind, amount)| entry(at, kind, amount));
        assert!(usage.add_page(&page, now), "an older entry among younger ones does not end the count");
        let older = [entry(day(-29) - 1, EntryKind::Charged, 64)];
        assert!(!usage.add_page(&older, now), "a page of older entries ends the count");
        let counted: Vec<_> = usage.days.iter().filter(|(_, credits)| *credits > 0).copied().collect();
        let expected = [(day(-29), 32), (day(-1), 4), (day(0), 3)];
        assert_eq!(counted, expected.map(|(at, credits)| (Timestamp::from_millis(at), credits)));
    }
}
