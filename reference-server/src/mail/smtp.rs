//! Mail by SMTP: one connection a mail.
//!
//! The steps are taken one by one, rather than by lettre's transport: what a server says before it has seen
//! the mail is about us (a wrong password, a full queue) and passes; only what it says about the mail can be
//! its last word. Nothing is pooled: a connection whose mail was given up half way would answer the next mail
//! with the words for the one before.

use std::{fmt, io, time::Duration};

use async_trait::async_trait;
use lettre::{
    Message,
    message::Mailbox,
    transport::smtp::{
        Error as SmtpError,
        authentication::{Credentials, DEFAULT_MECHANISMS},
        client::{AsyncSmtpConnection, Certificate, TlsParameters},
        extension::ClientId,
    },
};
use tokio::time::{Instant, timeout, timeout_at};
use transcript_core::{
    Error, ErrorKind, Result, Retry,
    accounts::mail::{Mail, Mailer},
};

use super::message::message;
use crate::config::{SmtpSecurity, SmtpUrl};

/// How long a mail server is waited for.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Patience {
    /// For a connection, and for whatever comes before the mail.
    pub(crate) greeting: Duration,
    /// For all of it. Servers may look long at a mail before they take it, and one that is given up then may
    /// come twice.
    pub(crate) all: Duration,
    /// For a good-bye.
    pub(crate) quit: Duration,
}

impl Default for Patience {
    fn default() -> Self {
        let seconds = Duration::from_secs;
        Self { greeting: seconds(30), all: seconds(110), quit: seconds(5) }
    }
}

/// A mail server.
pub(crate) struct SmtpMailer {
    url: SmtpUrl,
    tls: Option<TlsParameters>,
    hello: ClientId,
    from: Mailbox,
    patience: Patience,
}

impl fmt::Debug for SmtpMailer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("SmtpMailer").field("url", &self.url).field("from", &self.from).finish_non_exhaustive()
    }
}

impl SmtpMailer {
    /// The server at this address; `roots` are certificates in PEM that are trusted beside the system's.
    ///
    /// # Errors
    /// The certificates cannot be used.
    pub(crate) fn new(url: &SmtpUrl, from: Mailbox, roots: &[u8]) -> Result<Self> {
        let tls = match url.security {
            SmtpSecurity::None => None,
            _ => Some(tls(&url.host, roots).map_err(|error| Error::invalid(error.to_string()))?),
        };
        // Servers look up whom they are greeted by: the sender's domain is known to them.
        let hello = url.greeting.clone().unwrap_or_else(|| from.email.domain().to_owned());
        let patience = Patience::default();
        Ok(Self { url: url.clone(), tls, hello: ClientId::Domain(hello), from, patience })
    }

    /// The same, with another patience.
    #[cfg(test)]
    pub(crate) fn with_patience(self, patience: Patience) -> Self {
        Self { patience, ..self }
    }

    /// A connection that is ready for a mail.
    async fn connect(&self) -> Result<AsyncSmtpConnection, SmtpError> {
        let SmtpUrl { host, port, security, credentials, .. } = &self.url;
        let wrapper = self.tls.clone().filter(|_| *security == SmtpSecurity::Tls);
        let server = (host.as_str(), *port);
        let mut connection =
            AsyncSmtpConnection::connect_tokio1(server, None, &self.hello, wrapper, None).await?;
        let upgrade = match security {
            SmtpSecurity::StartTls => true,
            SmtpSecurity::StartTlsIfOffered => connection.can_starttls(),
            SmtpSecurity::Tls | SmtpSecurity::None => false,
        };
        if let Some(tls) = self.tls.clone().filter(|_| upgrade) {
            // A server that does not offer it is an error: nothing goes out in the clear.
            connection.starttls(tls, &self.hello).await?;
        }
        if let Some((user, password)) = credentials {
            let credentials = Credentials::new(user.clone(), password.reveal().to_owned());
            connection.auth(DEFAULT_MECHANISMS, &credentials).await?;
        }
        Ok(connection)
    }

    async fn deliver(&self, message: &Message) -> Result<()> {
        let deadline = Instant::now() + self.patience.all;
        let slow = || Error::unavailable("the mail server did not answer in time");
        let connected = timeout(self.patience.greeting, self.connect()).await.map_err(|_| slow())?;
        let mut connection = connected.map_err(|error| about_us(&error))?;
        let bytes = message.formatted();
        let sending = connection.send(message.envelope(), &bytes);
        let sent = timeout_at(deadline, sending).await.map_err(|_| slow())?;
        sent.map_err(|error| about_the_mail(&error))?;
        // The mail is theirs now: nobody waits for manners.
        let quit = self.patience.quit;
        tokio::spawn(async move {
            // A server that has hung up already has heard it, too.
            let _ = timeout(quit, connection.quit()).await;
        });
        Ok(())
    }
}

#[async_trait]
impl Mailer for SmtpMailer {
    async fn send(&self, mail: Mail) -> Result<()> {
        self.deliver(&message(&mail, &self.from)?).await
    }
}

fn tls(host: &str, roots: &[u8]) -> Result<TlsParameters, SmtpError> {
    let mut parameters = TlsParameters::builder(host.to_owned());
    if !roots.is_empty() {
        parameters = parameters.add_root_certificate(Certificate::from_pem(roots)?);
    }
    parameters.build()
}

/// What went wrong before the mail was shown: that is nobody's mail's fault, and may be mended.
fn about_us(error: &SmtpError) -> Error {
    let message = match error.status() {
        Some(code) => format!("the mail server refused us ({code})"),
        None => format!("the mail server cannot be used: {}", cause(error)),
    };
    Error::unavailable(message)
}

/// What the server said about the mail.
fn about_the_mail(error: &SmtpError) -> Error {
    match error.status() {
        Some(code) if error.is_permanent() && !is_about_us(u16::from(code)) => {
            let message = format!("the mail server refused the mail for good ({code})");
            Error::new(ErrorKind::Invalid, Retry::Never, message)
        }
        Some(code) => Error::unavailable(format!("the mail server does not take the mail now ({code})")),
        // lettre itself refuses an address that this server cannot be told.
        None if error.is_client() => {
            Error::invalid("the mail server takes no addresses of other scripts (SMTPUTF8)")
        }
        None => Error::unavailable(format!("the mail server broke off: {}", cause(error))),
    }
}

/// Codes that say "authenticate first", which some servers say only to the mail (RFC 4954).
fn is_about_us(code: u16) -> bool {
    matches!(code, 530 | 534 | 535 | 538)
}

/// The reason, without anything that a server said: that may name an address.
fn cause(error: &SmtpError) -> String {
    let mut source = std::error::Error::source(error);
    while let Some(inner) = source {
        if let Some(fault) = inner.downcast_ref::<io::Error>() {
            return fault.to_string();
        }
        source = inner.source();
    }
    if error.is_response() {
        return "its answer broke off, or cannot be understood".to_owned();
    }
    // What is left is told by this side: a name that is none, no STARTTLS, no way to authenticate.
    error.to_string()
}

#[cfg(test)]
mod tests;
