//! The port that sends a webhook.

use std::fmt;

use async_trait::async_trait;

use crate::{debug_fields, error::Result};

/// A webhook to be sent.
#[derive(Clone, PartialEq, Eq)]
pub struct WebhookPost {
    /// The address, which an account chose.
    pub url: String,
    /// Whether the address may be http, and its host a private one.
    pub allow_private: bool,
    /// The value of the header [`crate::headers::VERBATIM_SIGNATURE`].
    pub signature: String,
    /// The body: JSON.
    pub body: Vec<u8>,
}

// The address may contain a secret.
debug_fields!(WebhookPost { allow_private });

/// Sends webhooks.
#[async_trait]
pub trait WebhookClient: fmt::Debug + Send + Sync + 'static {
    /// Sends a webhook, and returns the status of the response, whose body is not read.
    ///
    /// **Behaviour**: one attempt, bounded in time. No redirect is followed. Unless the post allows it, the address
    /// must be https, and the connection goes to a public address only.
    ///
    /// # Errors
    /// There was no response. The message names no address: the account reads it.
    async fn post(&self, post: WebhookPost) -> Result<u16>;
}
