//! A real speech-to-text service in its own process: `recogniser.py`.

use std::{
    io::{BufRead, BufReader, Lines},
    process::{Child, ChildStdout, Command, Stdio},
};

use anyhow::{Context as _, Result};
use serde_json::Value;

use crate::install::installed;

/// A running service; drop stops it.
pub(super) struct SpeechRecognizer {
    child: Child,
    lines: Lines<BufReader<ChildStdout>>,
    pub(super) base_url: String,
}

impl SpeechRecognizer {
    pub(super) fn start() -> Result<Self> {
        let script = concat!(env!("CARGO_MANIFEST_DIR"), "/speech/recogniser.py");
        let mut command = Command::new(installed("speech")?);
        let mut child = command.arg(script).stdin(Stdio::piped()).stdout(Stdio::piped()).spawn()?;
        let lines = BufReader::new(child.stdout.take().context("no pipe")?).lines();
        let mut recognizer = Self { child, lines, base_url: String::new() };
        recognizer.base_url = format!("http://127.0.0.1:{}/v1", recognizer.next_line()?["port"]);
        Ok(recognizer)
    }

    /// Its next line of output: one for each transcribed chunk.
    pub(super) fn next_line(&mut self) -> Result<Value> {
        let line = self.lines.next().context("the recognizer has ended")??;
        Ok(serde_json::from_str(&line)?)
    }
}

impl Drop for SpeechRecognizer {
    fn drop(&mut self) {
        // The process may have ended already.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
