//! Programs that tests put in place of real ones.

use std::{
    io::{self, Write as _},
    path::Path,
    process::{Command, Stdio},
};

/// Writes a shell script that can be run at once.
///
/// Another program writes it: a file that this process has open for writing while a thread of its starts some
/// program is open in that program too until it runs, and a file that is open for writing cannot be run.
///
/// # Errors
///
/// Where it cannot be written.
pub fn write_script(path: &Path, text: &str) -> io::Result<()> {
    let mut install =
        Command::new("install").args(["-m", "700", "/dev/stdin"]).arg(path).stdin(Stdio::piped()).spawn()?;
    if let Some(mut input) = install.stdin.take() {
        write!(input, "#!/bin/sh\n{text}\n")?;
    }
    let status = install.wait()?;
    if status.success() { Ok(()) } else { Err(io::Error::other(format!("install ended with {status}"))) }
}
