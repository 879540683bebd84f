//! Progress of long work, on standard error.

use std::io::{self, IsTerminal, Write};

use super::shown;

/// Steps per line if standard error is not a terminal.
const EVERY: u64 = 100;
/// The same for small steps.
const EVERY_MANY: u64 = 10_000;
/// Longest name on a live line, in characters.
const NAME_MAX: usize = 60;

/// Progress display: one changing line on a terminal, otherwise a line at intervals.
#[derive(Debug)]
pub(super) struct ProgressLine {
    /// Verb of a finished step, such as `imported`.
    verb: &'static str,
    /// Total number of steps, if known.
    of: Option<u64>,
    done: u64,
    is_live: bool,
}

impl ProgressLine {
    /// Starts the display. Fewer than two steps are not displayed on a terminal.
    pub(super) fn new(verb: &'static str, of: Option<u64>) -> Self {
        Self { verb, of, done: 0, is_live: io::stderr().is_terminal() && of.is_none_or(|of| of > 1) }
    }

    /// Adds a finished step with its name.
    pub(super) fn step(&mut self, name: &str) {
        self.done += 1;
        let of = self.of.map(|of| format!(" of {of}")).unwrap_or_default();
        let line = format!("{} {}{of}: {}", self.verb, self.done, shown(name, NAME_MAX));
        if self.is_live {
            self.write(&format!("\r\x1b[K{line}"));
        } else if self.done.is_multiple_of(EVERY) {
            self.write(&format!("{line}\n"));
        }
    }

    /// Sets the number of finished steps.
    pub(super) fn reach(&mut self, done: u64, what: &str) {
        let before = std::mem::replace(&mut self.done, done);
        let of = self.of.map(|of| format!(" of {of}")).unwrap_or_default();
        let line = format!("{} {done}{of}: {what}", self.verb);
        if self.is_live {
            self.write(&format!("\r\x1b[K{line}"));
        } else if done / EVERY_MANY > before / EVERY_MANY {
            self.write(&format!("{line}\n"));
        }
    }

    /// Prints a message on a separate line.
    pub(super) fn note(&self, text: &str) {
        let clear = if self.is_live { "\r\x1b[K" } else { "" };
        self.write(&format!("{clear}{}\n", shown(text, usize::MAX)));
    }

    /// Writes to standard error; a closed one is ignored.
    fn write(&self, text: &str) {
        let _ = io::stderr().lock().write_all(text.as_bytes());
    }
}

impl Drop for ProgressLine {
    fn drop(&mut self) {
        if self.is_live {
            self.write("\r\x1b[K");
        }
    }
}
