//! A real speech-to-text service in a process of its own: `recogniser.py`.

use std::{
    io::{BufRead, BufReader, Lines},
    process::{Child, ChildStdout, Command, Stdio},
};

use anyhow::{Context as _, Result};
use serde_json::Value;

use super::sounds::python;

/// A running service. Dropping it ends it.
pub(super) struct Recogniser {
    child: Child,
    lines: Lines<BufReader<ChildStdout>>,
    pub(super) base_url: String,
}

impl Recogniser {
    pub(super) fn start() -> Result<Self> {
        let script = concat!(env!("CARGO_MANIFEST_DIR"), "/speech/recogniser.py");
        let mut command = Command::new(python()?);
        let mut child = command.arg(script).stdin(Stdio::piped()).stdout(Stdio::piped()).spawn()?;
        let lines = BufReader::new(child.stdout.take().context("no pipe")?).lines();
        let mut recogniser = Self { child, lines, base_url: String::new() };
        recogniser.base_url = format!("http://127.0.0.1:{}/v1", recogniser.line()?["port"]);
        Ok(recogniser)
    }

    /// What it tells next: one line for each part that it heard.
    pub(super) fn line(&mut self) -> Result<Value> {
        let line = self.lines.next().context("the recogniser has ended")??;
        Ok(serde_json::from_str(&line)?)
    }
}

impl Drop for Recogniser {
    fn drop(&mut self) {
        // It may have ended already.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
