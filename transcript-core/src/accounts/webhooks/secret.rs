//! The secrets that sign the webhooks of accounts.
//!
//! A secret is not stored: it is derived from the server's secret, the account and a generation (decision 0075).

use std::{sync::Arc, time::Duration};

use super::AccountWebhooks;
use crate::{
    accounts::{RequestGuard, V1Error},
    debug_fields,
    error::Result,
    ids::AccountId,
    time::Timestamp,
};

/// How long the secret before a rotation signs too.
const OVERLAP: Duration = Duration::from_secs(24 * 3_600);
/// Purpose of the digest that is a secret.
const PURPOSE: &str = "webhook";
/// The prefix of a secret.
const PREFIX: &str = "vbw_";

/// The generation of an account's secret.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SecretGeneration {
    /// The number, from 1.
    pub number: u64,
    /// When it began; `None` for the first one.
    pub rotated_at: Option<Timestamp>,
}

impl SecretGeneration {
    /// The generation of an account that has not rotated its secret.
    pub const FIRST: Self = Self { number: 1, rotated_at: None };

    /// The generation after a rotation.
    #[must_use]
    pub fn next(self, now: Timestamp) -> Self {
        Self { number: self.number.saturating_add(1), rotated_at: Some(now) }
    }

    /// Until when the previous secret signs too; `None` if it does not.
    pub fn previous_until(self, now: Timestamp) -> Option<Timestamp> {
        self.rotated_at.map(|at| at.plus(OVERLAP)).filter(|until| *until > now)
    }
}

/// The secret of an account, for its owner.
#[derive(Clone, PartialEq, Eq)]
pub struct WebhookSecret {
    /// The secret, as text; its bytes are the key.
    pub secret: String,
    /// When it was rotated; `None` for the first one.
    pub rotated_at: Option<Timestamp>,
    /// Until when the previous one signs too; `None` if it does not.
    pub previous_until: Option<Timestamp>,
}

debug_fields!(WebhookSecret { rotated_at, previous_until });

impl AccountWebhooks {
    /// The secret of a request's account.
    ///
    /// # Errors
    /// [`V1Error::Internal`].
    pub async fn secret(self: &Arc<Self>, guard: RequestGuard) -> Result<WebhookSecret, V1Error> {
        let webhooks = Arc::clone(self);
        let work = async move {
            let account = &guard.caller().account.id;
            let found = webhooks.context.retry_store(|| webhooks.store.secret_generation(account)).await;
            Ok(webhooks.show_secret(account, found.map_err(V1Error::from_store_error)?))
        };
        self.context.task(work).await
    }

    /// Replaces the secret of a request's account. The old one signs too for a day.
    ///
    /// # Errors
    /// [`V1Error::Internal`]: it was replaced or not.
    pub async fn rotate_secret(self: &Arc<Self>, guard: RequestGuard) -> Result<WebhookSecret, V1Error> {
        let webhooks = Arc::clone(self);
        let work = async move {
            let account = &guard.caller().account.id;
            let rotated = webhooks.store.rotate_secret(account, webhooks.context.now());
            Ok(webhooks.show_secret(account, webhooks.context.call_store(rotated).await?))
        };
        self.context.task(work).await
    }

    fn show_secret(&self, account: &AccountId, generation: SecretGeneration) -> WebhookSecret {
        WebhookSecret {
            secret: self.derive_secret(account, generation.number),
            rotated_at: generation.rotated_at,
            previous_until: generation.previous_until(self.context.now()),
        }
    }

    /// The secrets that sign the webhooks of an account now, the newest first.
    ///
    /// # Errors
    /// The store's.
    pub(super) async fn signing_secrets(&self, account: &AccountId) -> Result<Vec<String>> {
        let generation = self.context.retry_store(|| self.store.secret_generation(account)).await?;
        let previous = generation.previous_until(self.context.now()).map(|_| generation.number - 1);
        let numbers = [Some(generation.number), previous.filter(|number| *number > 0)];
        Ok(numbers.into_iter().flatten().map(|number| self.derive_secret(account, number)).collect())
    }

    fn derive_secret(&self, account: &AccountId, number: u64) -> String {
        format!("{PREFIX}{}", self.digest.digest(PURPOSE, &format!("{account}\0{number}")))
    }
}
