//! Who sends the mails of registrations, where the app has the service within its process.

use std::sync::Arc;

use async_trait::async_trait;
use transcript_core::{Error, Result, accounts::mail};

use crate::{error::VerbatimError, unsaid::unsaid};

/// A mail to send.
#[derive(Clone, uniffi::Record)]
pub struct Mail {
    /// To whom.
    pub to: String,
    /// Its subject.
    pub subject: String,
    /// Its text.
    pub text: String,
    /// The same as HTML.
    pub html: String,
}

/// Sends mails.
#[uniffi::export(foreign)]
#[async_trait]
pub trait Mailer: Send + Sync {
    /// Sends a mail; it is tried again later when this fails.
    async fn send(&self, mail: Mail) -> Result<(), VerbatimError>;
}

/// A sender of the app's as the core's port.
pub(crate) struct ForeignMailer(pub(crate) Arc<dyn Mailer>);

unsaid!(Mail, ForeignMailer);

#[async_trait]
impl mail::Mailer for ForeignMailer {
    async fn send(&self, mail: mail::Mail) -> Result<()> {
        let mail::Mail { to, subject, text, html } = mail;
        let sent = self.0.send(Mail { to, subject, text, html }).await;
        // What it failed with may name the recipient.
        sent.map_err(|_| Error::unavailable("the app's mailer failed"))
    }
}
