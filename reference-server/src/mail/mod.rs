//! Mail delivery: to a mail server, or to the outbox folder if none is set.

mod file_mailer;
mod message;
mod smtp;
mod texts;

use std::sync::Arc;

use transcript_core::accounts::mail::Mailer;

pub(crate) use file_mailer::{FileMailer, delete_mails};
pub(crate) use smtp::SmtpMailer;
pub(crate) use texts::mail_texts;

use crate::config::{ConfigErrors, OUTBOX_FOLDER, Settings};

/// Returns the mailer for the settings: a mail server, or the outbox folder.
///
/// # Errors
/// `upstream.ca_file` is not usable.
pub(crate) fn mailer(settings: &Settings) -> Result<Arc<dyn Mailer>, ConfigErrors> {
    let (mail, from) = (&settings.mail, settings.mail.sender());
    let Some(url) = &mail.smtp_url else {
        return Ok(Arc::new(FileMailer::new(settings.data.join(OUTBOX_FOLDER), from)));
    };
    let ca_file = settings.options.upstream.ca_file.as_deref();
    let roots = ca_file.map_or_else(|| Ok(Vec::new()), std::fs::read).map_err(|error| {
        ConfigErrors::new(format!("upstream.ca_file: cannot read the certificates: {error}"))
    })?;
    let mailer = SmtpMailer::new(url, from, &roots).map_err(|error| {
        ConfigErrors::new(format!("upstream.ca_file: the certificates are not usable: {error}"))
    })?;
    Ok(Arc::new(mailer))
}
