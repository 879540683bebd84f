//! Clocks that are wrong.

use std::path::Path;

use anyhow::Result;

use crate::server::preload;

/// A clock that is right.
pub(super) const RIGHT: i64 = 0;

/// What the environment of a server needs whose clock is so many seconds ahead of the machine's; what sets it wrong is
/// compiled into this folder.
pub(super) fn settings(ahead: i64, folder: &Path) -> Result<Vec<(String, String)>> {
    if ahead == RIGHT {
        return Ok(Vec::new());
    }
    let library = preload::library("clock/wrong.c", folder)?;
    let settings = [("LD_PRELOAD", library.display().to_string()), ("WRONG_BY", ahead.to_string())];
    Ok(settings.map(|(name, value)| (name.to_owned(), value)).into())
}
