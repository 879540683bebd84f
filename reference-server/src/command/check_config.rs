//! `verbatim check-config`: prints the effective settings.

use super::{CommandError, print};
use crate::{config::Settings, mail};

/// Prints all settings and warnings.
pub(super) fn run(settings: &Settings) -> Result<(), CommandError> {
    // Options that the library refuses are errors too.
    settings.options(&settings.server.base_url_at(settings.server.listen))?.check()?;
    mail::mailer(settings)?;
    let mut text = settings.report();
    for warning in settings.warnings() {
        text.push_str(&format!("# warning: {warning}\n"));
    }
    print(&text)
}
