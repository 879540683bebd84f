//! `verbatim check-config`: the settings in effect.

use super::{Failure, print};
use crate::{config::Settings, mail, wiring};

/// Prints every setting and every warning.
pub(super) fn run(settings: &Settings) -> Result<(), Failure> {
    // What the parts cannot work with is as wrong as what the settings do not allow.
    wiring::options(settings, settings.server.base_url_at(settings.server.listen))?.check()?;
    mail::mailer(settings)?;
    let mut text = settings.report();
    for warning in settings.warnings() {
        text.push_str(&format!("# warning: {warning}\n"));
    }
    print(&text)
}
