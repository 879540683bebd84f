//! Mail of the v1 API: content, sender and mailer port (specification 16).
//!
//! A component queues an intent in the [`Outbox`](super::Outbox). The [`MailSender`] leases it, creates the
//! token, writes the text and passes the mail to a [`Mailer`]. So no request waits for a mail server, and the
//! queue contains no tokens.

mod outbox_notifier;
mod sender;
mod templates;
mod texts;

use std::fmt;

use async_trait::async_trait;

pub use outbox_notifier::{NotifyingOutbox, OutboxNotifier};
pub use sender::{MailObserver, MailResult, MailSender, MailSenderDeps};
pub use templates::MailBranding;
pub use texts::{MailTemplate, MailTexts};

use crate::{debug_fields, error::Result};

/// A mail that is ready to be sent. It contains a secret: `Debug` prints only its subject.
#[derive(Clone, PartialEq, Eq)]
pub struct MailMessage {
    /// The address as entered: a [`Mailer`] rejects an address that it cannot deliver to.
    pub to: String,
    /// The subject: one line.
    pub subject: String,
    /// The body as plain text; lines end with `\n`.
    pub text: String,
    /// The body as a complete HTML document.
    pub html: String,
}

debug_fields!(MailMessage { subject });

/// Delivers mails, or passes them to a mail server.
#[async_trait]
pub trait Mailer: fmt::Debug + Send + Sync + 'static {
    /// Sends a mail.
    ///
    /// **Behaviour**
    /// - Success means that another system is responsible for the mail from now on.
    /// - Dropping the future leaves the mail sent or not sent.
    ///
    /// # Errors
    /// [`Error::retry`](crate::Error::retry) decides: [`Retry::Never`](crate::Retry::Never) for a mail that
    /// can never reach this recipient; any other error is retried. The message contains neither the
    /// recipient nor a password.
    async fn send(&self, mail: MailMessage) -> Result<()>;
}
