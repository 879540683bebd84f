//! Mailer of the app, for a service in its process.

use std::{sync::Arc, time::Duration};

use async_trait::async_trait;
use transcript_core::{Error, Result, accounts::mail};

use crate::error::VerbatimError;

/// Timeout of one mail: a shutdown waits for mails, and systems grant an app in the background about half a minute.
///
/// The tests wait for it.
const SEND_TIMEOUT: Duration = Duration::from_secs(if cfg!(feature = "testing") { 2 } else { 25 });

/// A mail message.
#[derive(Clone, uniffi::Record)]
#[uniffi::export(Debug)]
pub struct MailMessage {
    /// Recipient.
    pub to: String,
    /// Subject.
    pub subject: String,
    /// Plain text.
    pub text: String,
    /// The same content as HTML.
    pub html: String,
}

/// Sends mails.
#[uniffi::export(foreign)]
#[async_trait]
pub trait Mailer: Send + Sync {
    /// Sends a mail. The library retries after a failure, and after 25 s without a result.
    ///
    /// A send that the app does not end after 25 s is repeated: the recipient may get the mail more than once.
    async fn send(&self, mail: MailMessage) -> Result<(), VerbatimError>;
}

/// A mailer of the app as a port of the core.
pub(crate) struct ForeignMailer(pub(crate) Arc<dyn Mailer>);

transcript_core::debug_fields!(MailMessage {});
transcript_core::debug_fields!(ForeignMailer {});

#[async_trait]
impl mail::Mailer for ForeignMailer {
    async fn send(&self, mail: mail::MailMessage) -> Result<()> {
        let mail::MailMessage { to, subject, text, html } = mail;
        let sending = self.0.send(MailMessage { to, subject, text, html });
        match tokio::time::timeout(SEND_TIMEOUT, sending).await {
            // The error may contain the recipient.
            Ok(sent) => sent.map_err(|_| Error::unavailable("the app's mailer failed")),
            Err(_) => Err(Error::unavailable("the app's mailer did not answer in time")),
        }
    }
}
