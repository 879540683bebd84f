//! Mail of Surface B: what is sent, through whom, and by whom it is sent (design 4).
//!
//! Whoever wants a mail sent queues an intent in the [`Outbox`](super::Outbox). The [`MailSender`] takes it
//! from there, writes the text, makes its token and hands the mail to a [`Mailer`]. So nobody waits for a
//! mail server, and no token lies in the queue.

mod bell;
mod sender;
mod texts;

use std::fmt;

use async_trait::async_trait;

pub use bell::{Bell, RingingOutbox};
pub use sender::{MailSender, RunningSender, SenderParts};
pub use texts::Letterhead;

use crate::error::Result;

/// Which mail it is: the `kind` of a [`MailIntent`](super::MailIntent).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum MailKind {
    /// To an address without an account: its link makes one.
    Verify,
    /// To an address with an account: its link gives a new key and ends the old ones.
    Recover,
}

impl MailKind {
    /// All of them.
    pub const ALL: [Self; 2] = [Self::Verify, Self::Recover];

    /// A lasting name, for storage.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Verify => "verify",
            Self::Recover => "recover",
        }
    }

    /// The kind with this name.
    pub fn from_name(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|kind| kind.as_str() == name)
    }
}

/// A mail that is ready to be sent. It carries a secret: `Debug` prints its subject only.
#[derive(Clone, PartialEq, Eq)]
pub struct Mail {
    /// The address, as it was given: a [`Mailer`] refuses what it cannot deliver to.
    pub to: String,
    /// The subject: one line.
    pub subject: String,
    /// The body as plain text; lines end with `\n`.
    pub text: String,
    /// The same as a whole HTML document.
    pub html: String,
}

impl fmt::Debug for Mail {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Mail").field("subject", &self.subject).finish_non_exhaustive()
    }
}

/// What takes mails to their recipients.
#[async_trait]
pub trait Mailer: fmt::Debug + Send + Sync + 'static {
    /// Hands a mail over to whatever delivers it.
    ///
    /// **Behaviour**
    /// - Success means that somebody else answers for the mail from now on.
    /// - Dropping the future leaves the mail handed over or not.
    ///
    /// # Errors
    /// [`Error::retry`](crate::Error::retry) decides: [`Retry::Never`](crate::Retry::Never) for a mail that
    /// this recipient will not get, whatever is done; anything else is tried again. The sentence names
    /// neither the recipient nor a password.
    async fn send(&self, mail: Mail) -> Result<()>;
}
