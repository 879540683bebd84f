//! Clocks that are wrong.

use std::{path::Path, process::Command};

use anyhow::{Context as _, Result, ensure};

/// A clock that is right.
pub(super) const RIGHT: i64 = 0;

const SOURCE: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/clock/wrong.c");

/// What the environment of a server needs whose clock is so many seconds ahead of the machine's; what sets it wrong is
/// compiled into this folder.
pub(super) fn settings(ahead: i64, folder: &Path) -> Result<Vec<(String, String)>> {
    if ahead == RIGHT {
        return Ok(Vec::new());
    }
    let library = folder.join("wrong.so");
    if !library.exists() {
        let compiler =
            Command::new("cc").args(["-shared", "-fPIC", "-O1", SOURCE, "-o"]).arg(&library).status();
        ensure!(compiler.context("cc cannot be run")?.success(), "cc does not compile {SOURCE}");
    }
    let settings = [("LD_PRELOAD", library.display().to_string()), ("WRONG_BY", ahead.to_string())];
    Ok(settings.map(|(name, value)| (name.to_owned(), value)).into())
}
