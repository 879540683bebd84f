//! `verbatim check-config`: prints the effective settings, and what is in the stores.

use verbatim::{Options, inspect_storage};

use super::{
    CommandError, arguments::CheckConfigArgs, open::wait_for_connections, print, terminal::ignore_closed,
};
use crate::{config::Settings, mail};

/// Prints all settings and warnings; with `--connect` also reads the stores.
pub(super) async fn run(settings: &Settings, args: &CheckConfigArgs) -> Result<(), CommandError> {
    let mut options = check(settings)?;
    let mut text = settings.report();
    for warning in settings.warnings() {
        text.push_str(&format!("# warning: {warning}\n"));
    }
    ignore_closed(print(&text))?;
    if args.connect {
        wait_for_connections(&mut options.storage);
        for store in inspect_storage(&options.storage).await? {
            ignore_closed(print(&format!("# {}: {}\n", store.location, store.state)))?;
            if let Some(warning) = store.warning {
                ignore_closed(print(&format!("# warning: {warning}\n")))?;
            }
        }
    }
    Ok(())
}

/// Checks what the library and the mail client refuse at a start. Returns the options of the library.
pub(super) fn check(settings: &Settings) -> Result<Options, CommandError> {
    let options = settings.options(&settings.server.base_url_at(settings.server.listen.socket_address()))?;
    options.check().map_err(|error| settings.with_origin(error))?;
    mail::mailer(settings)?;
    Ok(options)
}
