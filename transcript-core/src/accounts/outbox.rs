//! The outbox: queued mail intents without tokens. A token is made when its mail is sent.

use std::{fmt, time::Duration};

use async_trait::async_trait;

use crate::{
    error::Result,
    names::names,
    time::{LEASE_MAX, Timestamp},
};

/// A queued mail.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MailIntent {
    /// The id, chosen by the component that queues it.
    pub id: String,
    /// The kind of mail: `verify`, `recover`, …
    pub kind: String,
    /// The address, in normal form.
    pub to: String,
    /// The number of attempts to send it.
    pub attempts: u32,
    /// Tag of the language that its text should have; `None`: the service's first language.
    pub language: Option<String>,
}

/// The kind of a mail: the `kind` of a [`MailIntent`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum MailKind {
    /// To an address without an account: the link creates one.
    Verify,
    /// To an address with an account: the link issues a new key and revokes the old ones.
    Recover,
    /// To an address with an account: the link signs in to it. Without an account, as [`MailKind::Verify`].
    SignIn,
    /// The receipt of a payment. The id of the mail is `RECEIPT_PREFIX` with the id of the order.
    Receipt,
}

/// The prefix of the ids of receipts.
pub(crate) const RECEIPT_PREFIX: &str = "receipt-";

names!(MailKind, from_name {
    Verify = "verify",
    Recover = "recover",
    SignIn = "sign_in",
    Receipt = "receipt",
});

/// Counting of waiting mails stops here: for monitoring, more are the same.
pub const WAITING_MAX: u64 = 10_000;
/// The longest pause between two attempts to send a mail or a webhook.
pub const RETRY_PAUSE_MAX: Duration = Duration::from_secs(3_600);

/// When a mail or a webhook is due that is stored as due at `due`.
///
/// It is due [`LEASE_MAX`] after `now` if `due` is later than the longest pause after that: a clock that was ahead and
/// was corrected since stored it.
pub(crate) fn limit_due(due: Timestamp, now: Timestamp) -> Timestamp {
    let latest = now.plus(LEASE_MAX);
    if due > latest.plus(RETRY_PAUSE_MAX) { latest } else { due }
}

/// The durable queue of mail. Each method is one transaction.
///
/// Every method fails with [`crate::ErrorKind::Unavailable`] if the store cannot be reached.
#[async_trait]
pub trait Outbox: fmt::Debug + Send + Sync + 'static {
    /// Queues a mail, due at once.
    ///
    /// **Behaviour**: an id that was queued before is unchanged, also if its mail is done. A mail that was
    /// done a week ago may be deleted, with its id.
    async fn queue(&self, intent: MailIntent, now: Timestamp) -> Result<()>;

    /// Leases due mails until `expires_at`, the longest due first, at most `limit`.
    ///
    /// `expires_at` is at most [`LEASE_MAX`] after `now`.
    ///
    /// **Behaviour**
    /// - A mail is due from its due time on. A leased mail is due again only after the lease has expired. Each
    ///   lease counts as an attempt; the returned intent includes it.
    /// - A leased mail that cannot be decoded is logged and left out.
    /// - A mail that is due more than [`RETRY_PAUSE_MAX`] and [`LEASE_MAX`] after `now` is due [`LEASE_MAX`] after
    ///   `now` instead: a clock that was ahead and was corrected since stored its time.
    async fn lease_due(&self, now: Timestamp, expires_at: Timestamp, limit: u32) -> Result<Vec<MailIntent>>;

    /// Cancels all mails to an address that are not done, leased ones too: the owner's data is erased.
    ///
    /// **Behaviour**: their ids stay used. Returns their number.
    async fn cancel_for_address(&self, to: &str, now: Timestamp) -> Result<u64>;

    /// The number of mails that are neither sent nor abandoned, including leased ones.
    ///
    /// Counted up to [`WAITING_MAX`].
    async fn count_waiting(&self) -> Result<u64>;

    /// Finishes the work on a mail: `None` if it was sent or abandoned, else the time of the next attempt, after at
    /// most [`RETRY_PAUSE_MAX`].
    ///
    /// **Behaviour**: an unknown id is success; a finished mail stays finished.
    async fn finish(&self, id: &str, retry_at: Option<Timestamp>) -> Result<()>;
}
