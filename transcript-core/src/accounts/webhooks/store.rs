//! The port for events of jobs and for secrets of webhooks.

use std::fmt;

use async_trait::async_trait;

use super::{JobEventLog, LeasedEvent, SecretGeneration, WebhookAttempt};
use crate::{
    error::Result,
    ids::{AccountId, JobId},
    time::Timestamp,
};

/// The store of events. It is the store of the jobs, whose changes record them; events are deleted with their job.
///
/// Each method is one transaction, durable once acknowledged. Every method fails with
/// [`crate::ErrorKind::Unavailable`] if the store cannot be reached.
#[async_trait]
pub trait WebhookStore: fmt::Debug + Send + Sync + 'static {
    /// Leases due events until `lease_until`, at most `limit`.
    ///
    /// `lease_until` is at most [`LEASE_MAX`](crate::time::LEASE_MAX) after `now`.
    ///
    /// **Behaviour**
    /// - An account with a leased event is left out, and of each other account one event is leased.
    /// - Events that were never tried come first, then those that are due longest.
    /// - When a lease ends, the event is due again. Only a recorded attempt counts as one.
    /// - An event that is due more than [`RETRY_PAUSE_MAX`](crate::accounts::RETRY_PAUSE_MAX) and
    ///   [`LEASE_MAX`](crate::time::LEASE_MAX) after `now` is due [`LEASE_MAX`](crate::time::LEASE_MAX) after `now`
    ///   instead: a clock that was ahead and was corrected since stored its time.
    async fn lease_events(
        &self,
        now: Timestamp,
        lease_until: Timestamp,
        limit: u32,
    ) -> Result<Vec<LeasedEvent>>;

    /// Ends the attempt of a lease; `false`, without any change, if a later lease has ended it.
    ///
    /// **Behaviour**: the attempt is recorded; its `next_at` is when the event is due again, after at most
    /// [`RETRY_PAUSE_MAX`](crate::accounts::RETRY_PAUSE_MAX).
    async fn end_attempt(&self, leased: &LeasedEvent, attempt: WebhookAttempt) -> Result<bool>;

    /// The events of a job with their attempts, the oldest first.
    async fn events(&self, job: &JobId) -> Result<Vec<JobEventLog>>;

    /// The number of events that are still to be sent, including leased ones.
    ///
    /// Counted up to [`crate::accounts::WAITING_MAX`].
    async fn count_waiting_events(&self) -> Result<u64>;

    /// The generation of an account's secret: the first one until it is rotated.
    async fn secret_generation(&self, account: &AccountId) -> Result<SecretGeneration>;

    /// Begins a new generation of an account's secret; returns it.
    ///
    /// Not idempotent: a repeated call begins another one.
    async fn rotate_secret(&self, account: &AccountId, now: Timestamp) -> Result<SecretGeneration>;
}
