//! Scripts that tests use instead of real programs.

use std::{
    io::{self, Write as _},
    path::Path,
    process::{Command, Stdio},
};

/// Writes a shell script that can be executed at once.
///
/// Another program writes it. A file that this process has open for writing while one of its threads starts a program
/// is also open in the new process until its exec, and a file that is open for writing cannot be executed.
///
/// # Errors
///
/// The file cannot be written.
pub fn write_script(path: &Path, text: &str) -> io::Result<()> {
    let mut install =
        Command::new("install").args(["-m", "700", "/dev/stdin"]).arg(path).stdin(Stdio::piped()).spawn()?;
    if let Some(mut input) = install.stdin.take() {
        write!(input, "#!/bin/sh\n{text}\n")?;
    }
    let status = install.wait()?;
    if status.success() { Ok(()) } else { Err(io::Error::other(format!("install ended with {status}"))) }
}
