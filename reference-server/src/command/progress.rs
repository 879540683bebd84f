//! How far long work is, on standard error.

use std::io::{self, IsTerminal, Write};

use super::shown;

/// How many steps one line tells of, where there is no terminal.
const EVERY: u64 = 100;
/// The same for steps that are many and small.
const EVERY_MANY: u64 = 10_000;
/// The most characters of a name on a live line.
const NAME_MAX: usize = 60;

/// Tells how far the work is: a line that changes on a terminal, elsewhere a line now and then.
#[derive(Debug)]
pub(super) struct Progress {
    /// What is done, as `imported`.
    verb: &'static str,
    /// How many steps there are, where that is known.
    of: Option<u64>,
    done: u64,
    is_live: bool,
}

impl Progress {
    /// Begins work of this many steps. Fewer than two are nothing to tell of.
    pub(super) fn new(verb: &'static str, of: Option<u64>) -> Self {
        Self { verb, of, done: 0, is_live: io::stderr().is_terminal() && of.is_none_or(|of| of > 1) }
    }

    /// One more step is done, that of `name`.
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

    /// So many steps are done by now.
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

    /// Something that a person should read, on a line of its own.
    pub(super) fn note(&self, text: &str) {
        let clear = if self.is_live { "\r\x1b[K" } else { "" };
        self.write(&format!("{clear}{}\n", shown(text, usize::MAX)));
    }

    /// Nobody need read it, so it is no failure when nobody can.
    fn write(&self, text: &str) {
        let _ = io::stderr().lock().write_all(text.as_bytes());
    }
}

impl Drop for Progress {
    fn drop(&mut self) {
        if self.is_live {
            self.write("\r\x1b[K");
        }
    }
}
