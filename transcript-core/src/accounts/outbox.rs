//! Mail to be sent: intents, never tokens. A token is made when its mail is sent.

use std::fmt;

use async_trait::async_trait;

use crate::{error::Result, ids::Holder, time::Timestamp};

/// A mail that is to be sent.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MailIntent {
    /// Its id, chosen by whoever queues it.
    pub id: String,
    /// Which mail: `verify`, `recover`, …
    pub kind: String,
    /// The address, in normal form.
    pub to: String,
    /// How often it was tried.
    pub attempts: u32,
}

/// Up to how many mails that wait are counted: for whoever watches, more are as many.
pub const WAITING_MAX: u64 = 10_000;

/// The durable queue of mail. Each method is one transaction.
///
/// Every method fails with [`crate::ErrorKind::Unavailable`] when the store cannot be reached.
#[async_trait]
pub trait Outbox: fmt::Debug + Send + Sync + 'static {
    /// Queues a mail, due at once.
    ///
    /// **Behaviour**: an id that was queued before is left as it is, also when it is done. A mail that was
    /// done a week ago may be forgotten, with its id.
    async fn queue(&self, intent: MailIntent, now: Timestamp) -> Result<()>;

    /// Leases mails that are due to `holder` until `until`, the longest due first, at most `limit`.
    ///
    /// **Behaviour**: a mail is due from its moment on. One that is leased is due for nobody before its
    /// lease ends, not for its holder either; each lease counts as an attempt, which is in the returned
    /// intent.
    async fn due(
        &self,
        holder: &Holder,
        now: Timestamp,
        until: Timestamp,
        limit: u32,
    ) -> Result<Vec<MailIntent>>;

    /// Ends all mails to an address that are not done, whoever has leased them: its owner's data is erased.
    ///
    /// **Behaviour**: their ids stay used. Returns how many there were.
    async fn forget(&self, to: &str, now: Timestamp) -> Result<u64>;

    /// How many mails are neither sent nor given up, those that are leased included; counted up to
    /// [`WAITING_MAX`].
    async fn waiting(&self) -> Result<u64>;

    /// Ends work on a mail: sent or given up (none), or due again at a moment.
    ///
    /// **Behaviour**: an unknown id is success; a mail that is done stays done.
    async fn done(&self, id: &str, retry_at: Option<Timestamp>) -> Result<()>;
}
