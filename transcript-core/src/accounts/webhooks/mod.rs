//! Webhooks: what happens to a job is sent to the address that its request named (specification 4.18).
//!
//! The store of jobs records an event in the transaction that changes the job. The servers on a database lease due
//! events and send them ([`WebhookStore::lease_events`]); a server that is killed leaves its lease to expire, so an
//! event is sent at least once, always with the same id. One account has one event in transit, so that a host that does
//! not respond delays only its own account.

mod api;
mod callback_url;
mod client;
mod events;
mod secret;
mod sender;
mod signature;
mod store;
#[cfg(test)]
mod tests;

use std::sync::Arc;

pub use callback_url::{CALLBACK_URL_MAX, check_callback_url};
pub use client::{WebhookClient, WebhookPost};
pub use events::{EventCounts, EventState, JobEvent, JobEventKind, JobEventLog, LeasedEvent, WebhookAttempt};
pub use secret::{SecretGeneration, WebhookSecret};
pub use sender::{WebhookBody, WebhookObserver, WebhookResult, WebhookSenderDeps, send_webhooks};
pub use signature::{SIGNATURE_TOLERANCE, SignatureError, sign, verify_signature};
pub use store::WebhookStore;

use super::{call_context::CallContext, jobs::AccountJobs};
use crate::keyed_digest::KeyedDigest;

/// The webhooks of accounts: their secrets, the log of their deliveries, and the delivery itself.
///
/// Uses the store of events, and the jobs for what an event shows.
#[derive(Debug)]
pub struct AccountWebhooks {
    pub(super) context: Arc<CallContext>,
    pub(super) jobs: Arc<AccountJobs>,
    pub(super) store: Arc<dyn WebhookStore>,
    /// Derives the secrets of accounts from that of the server.
    pub(super) digest: KeyedDigest,
}

impl AccountWebhooks {
    pub(super) fn new(
        context: Arc<CallContext>,
        jobs: &Arc<AccountJobs>,
        store: Arc<dyn WebhookStore>,
        digest: KeyedDigest,
    ) -> Self {
        Self { context, jobs: Arc::clone(jobs), store, digest }
    }

    /// The store of events.
    pub fn store(&self) -> &Arc<dyn WebhookStore> {
        &self.store
    }
}
