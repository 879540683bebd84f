//! Wrong clocks of servers.

use std::path::Path;

use anyhow::Result;

use crate::server::preload;

/// The offset of a correct clock.
pub(super) const CORRECT: i64 = 0;

/// The environment of a server whose clock is `ahead` seconds ahead of the machine's; the preloaded library is compiled
/// into this folder.
pub(super) fn settings(ahead_s: i64, folder: &Path) -> Result<Vec<(String, String)>> {
    if ahead_s == CORRECT {
        return Ok(Vec::new());
    }
    let library = preload::compile_library("clock/wrong.c", folder)?;
    let settings = [("LD_PRELOAD", library.display().to_string()), ("WRONG_BY", ahead_s.to_string())];
    Ok(settings.map(|(name, value)| (name.to_owned(), value)).into())
}
