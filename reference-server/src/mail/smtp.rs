//! Mail over SMTP, one connection per mail.
//!
//! The session is driven step by step instead of by lettre's transport: an error before the message (a wrong password,
//! a full queue) is retryable, and so is a rejected sender; only a reply to the recipient or to the message can be
//! final. Connections are not pooled: after an interrupted mail, replies would be assigned to the wrong mail.

use std::{io, time::Duration};

use async_trait::async_trait;
use lettre::{
    Message,
    address::Envelope,
    message::Mailbox,
    transport::smtp::{
        Error as SmtpError,
        authentication::{Credentials, DEFAULT_MECHANISMS},
        client::{AsyncSmtpConnection, Certificate, TlsParameters},
        commands::{Data, Mail, Rcpt},
        extension::{ClientId, Extension, MailBodyParameter, MailParameter, ServerInfo},
    },
};
use tokio::time::{Instant, timeout, timeout_at};
use transcript_core::{
    Error, ErrorKind, Result, Retry,
    accounts::mail::{MailMessage, Mailer},
};

use super::message::{Transport, message};
use crate::config::{SmtpSecurity, SmtpUrl};

/// Timeouts of a mail server.
#[derive(Clone, Copy, Debug, smart_default::SmartDefault)]
pub(crate) struct SmtpTimeouts {
    /// Connecting and everything before the message.
    #[default(Duration::from_secs(30))]
    pub(crate) greeting: Duration,
    /// The whole session.
    ///
    /// Servers may check a mail for long before they accept it; a mail whose session is interrupted then may arrive
    /// twice.
    #[default(Duration::from_secs(110))]
    pub(crate) all: Duration,
    /// The QUIT command.
    #[default(Duration::from_secs(5))]
    pub(crate) quit: Duration,
}

/// Mailer for a mail server.
pub(crate) struct SmtpMailer {
    url: SmtpUrl,
    tls: Option<TlsParameters>,
    hello: ClientId,
    from: Mailbox,
    timeouts: SmtpTimeouts,
}

transcript_core::debug_fields!(SmtpMailer { url, from });

impl SmtpMailer {
    /// Creates a mailer for this server.
    ///
    /// `roots` are PEM certificates trusted in addition to those of the system.
    ///
    /// # Errors
    /// The certificates are not usable.
    pub(crate) fn new(url: &SmtpUrl, from: Mailbox, roots: &[u8]) -> Result<Self> {
        let tls = match url.security {
            SmtpSecurity::None => None,
            _ => Some(tls(&url.host, roots).map_err(|error| Error::invalid(error.to_string()))?),
        };
        // Servers look up the EHLO name; the sender's domain is resolvable.
        let hello = url.greeting.clone().unwrap_or_else(|| from.email.domain().to_owned());
        let timeouts = SmtpTimeouts::default();
        Ok(Self { url: url.clone(), tls, hello: ClientId::Domain(hello), from, timeouts })
    }

    /// Replaces the timeouts.
    #[cfg(test)]
    pub(crate) fn with_timeouts(self, timeouts: SmtpTimeouts) -> Self {
        Self { timeouts, ..self }
    }

    /// Opens a connection that is ready for a mail.
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
            // Fails if the server does not offer it: nothing is sent unencrypted.
            connection.starttls(tls, &self.hello).await?;
        }
        if let Some((user, password)) = credentials {
            let credentials = Credentials::new(user.clone(), password.reveal().to_owned());
            connection.auth(DEFAULT_MECHANISMS, &credentials).await?;
        }
        Ok(connection)
    }

    async fn deliver(&self, message: &Message) -> Result<()> {
        let deadline = Instant::now() + self.timeouts.all;
        let slow = || Error::unavailable("the mail server timed out");
        let connected = timeout(self.timeouts.greeting, self.connect()).await.map_err(|_| slow())?;
        let mut connection = connected.map_err(|error| session_error(&error))?;
        let sending = transmit(&mut connection, message);
        let sent = timeout_at(deadline, sending).await.map_err(|_| slow())?;
        // The server has accepted or rejected the mail; QUIT is sent in the background.
        let quit = self.timeouts.quit;
        tokio::spawn(async move {
            // The server may have closed the connection already.
            let _ = timeout(quit, connection.quit()).await;
        });
        sent
    }
}

#[async_trait]
impl Mailer for SmtpMailer {
    async fn send(&self, mail: MailMessage) -> Result<()> {
        self.deliver(&message(&mail, &self.from, Transport::Smtp)?).await
    }
}

fn tls(host: &str, roots: &[u8]) -> Result<TlsParameters, SmtpError> {
    let mut parameters = TlsParameters::builder(host.to_owned());
    if !roots.is_empty() {
        parameters = parameters.add_root_certificate(Certificate::from_pem(roots)?);
    }
    parameters.build()
}

/// Sends a message on an open connection.
///
/// lettre's own function does not return which command was rejected.
async fn transmit(connection: &mut AsyncSmtpConnection, message: &Message) -> Result<()> {
    let (envelope, bytes) = (message.envelope(), message.formatted());
    let parameters = mail_parameters(connection.server_info(), envelope, &bytes)?;
    let sender = Mail::new(envelope.from().cloned(), parameters);
    connection.command(sender).await.map_err(|error| sender_error(&error))?;
    for recipient in envelope.to() {
        let recipient = Rcpt::new(recipient.clone(), Vec::new());
        connection.command(recipient).await.map_err(|error| recipient_error(&error))?;
    }
    connection.command(Data).await.map_err(|error| message_error(&error))?;
    connection.message(&bytes).await.map(drop).map_err(|error| message_error(&error))
}

/// Returns the parameters of MAIL that a message requires.
fn mail_parameters(server: &ServerInfo, envelope: &Envelope, message: &[u8]) -> Result<Vec<MailParameter>> {
    let mut addresses = envelope.to().iter().chain(envelope.from());
    let is_ascii = addresses.all(|address| AsRef::<str>::as_ref(address).is_ascii());
    let eight_bit = MailParameter::Body(MailBodyParameter::EightBitMime);
    let required = [
        (!is_ascii, Extension::SmtpUtfEight, MailParameter::SmtpUtfEight),
        (!message.is_ascii(), Extension::EightBitMime, eight_bit),
    ];
    let required = required.into_iter().filter(|(is_required, ..)| *is_required);
    let parameters = required.map(|(_, extension, parameter)| match server.supports_feature(extension) {
        true => Ok(parameter),
        false => Err(Error::invalid("the mail server does not support international addresses (SMTPUTF8)")),
    });
    parameters.collect()
}

/// Converts an error before the message, which does not concern the mail and is retryable.
fn session_error(error: &SmtpError) -> Error {
    let message = match error.status() {
        Some(code) => format!("the mail server refused the connection ({code})"),
        None => format!("the mail server is not usable: {}", cause(error)),
    };
    Error::unavailable(message)
}

/// Converts an error of RCPT TO. Postfix rejects senders there by default, with the codes of a wrong recipient.
fn recipient_error(error: &SmtpError) -> Error {
    match error.to_string().contains("Sender address rejected") {
        true => sender_error(error),
        false => message_error(error),
    }
}

/// Converts an error that concerns the sender. A rejected sender concerns all mails, and the operator can correct it.
fn sender_error(error: &SmtpError) -> Error {
    match error.status() {
        Some(code) if error.is_permanent() && !is_authentication_code(u16::from(code)) => {
            Error::unavailable(format!("the mail server rejected the sender ({code}): check mail.from"))
        }
        _ => message_error(error),
    }
}

/// Converts an error of the message itself.
fn message_error(error: &SmtpError) -> Error {
    match error.status() {
        Some(code) if error.is_permanent() && !is_authentication_code(u16::from(code)) => {
            let message = format!("the mail server rejected the mail permanently ({code})");
            Error::new(ErrorKind::Invalid, Retry::Never, message)
        }
        Some(code) => Error::unavailable(format!("the mail server rejected the mail temporarily ({code})")),
        None => Error::unavailable(format!("the mail server connection failed: {}", cause(error))),
    }
}

/// Codes for missing authentication, which some servers send only after MAIL FROM or to the message (RFC 4954).
fn is_authentication_code(code: u16) -> bool {
    matches!(code, 530 | 534 | 535 | 538)
}

/// Returns the cause, without the server's reply, which may contain an address.
fn cause(error: &SmtpError) -> String {
    let mut source = std::error::Error::source(error);
    while let Some(inner) = source {
        if let Some(fault) = inner.downcast_ref::<io::Error>() {
            return fault.to_string();
        }
        source = inner.source();
    }
    if error.is_response() {
        return "its reply is incomplete or invalid".to_owned();
    }
    // Local errors remain: an invalid name, no STARTTLS, no authentication mechanism.
    error.to_string()
}

#[cfg(test)]
mod tests;
