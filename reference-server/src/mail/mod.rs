//! Mail on its way out: to a mail server, or into a folder where none is set.

mod folder;
mod message;
mod smtp;

use std::sync::Arc;

use transcript_core::accounts::mail::Mailer;

pub(crate) use folder::{OutboxFolder, forget_mails};
pub(crate) use smtp::SmtpMailer;

use crate::config::{OUTBOX_FOLDER, Problem, Settings};

/// What the settings say: a mail server, or the outbox folder.
///
/// # Errors
/// `upstream.ca_file` cannot be used.
pub(crate) fn mailer(settings: &Settings) -> Result<Arc<dyn Mailer>, Problem> {
    let (mail, from) = (&settings.mail, settings.mail.sender());
    let Some(url) = &mail.smtp_url else {
        return Ok(Arc::new(OutboxFolder::new(settings.data.join(OUTBOX_FOLDER), from)));
    };
    let ca_file = settings.upstream.ca_file.as_deref();
    let roots = ca_file.map_or_else(|| Ok(Vec::new()), std::fs::read).map_err(|error| {
        Problem::new(format!("upstream.ca_file: the certificates cannot be read: {error}"))
    })?;
    let mailer = SmtpMailer::new(url, from, &roots).map_err(|error| {
        Problem::new(format!("upstream.ca_file: its certificates cannot be used: {error}"))
    })?;
    Ok(Arc::new(mailer))
}
