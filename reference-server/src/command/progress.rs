//! Progress of long work, on standard error.

use std::{
    io::{self, Write},
    time::{Duration, Instant},
};

use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};

use super::shown;

/// Steps per line if standard error is not a terminal.
const EVERY: u64 = 100;
/// The same for small steps.
const EVERY_MANY: u64 = 10_000;
/// Longest time between two lines while steps end, so that slow work differs from work that hangs.
pub(super) const LINE_INTERVAL: Duration = Duration::from_secs(30);
/// Longest name on a line, in characters.
const NAME_MAX: usize = 60;
/// How often a bar is drawn without a step: its times change while a platform lets the work wait.
const TICK: Duration = Duration::from_secs(1);
/// A bar with a known total. The number in `per_sec` is its decimals.
const KNOWN: &str = "{prefix} {pos} of {len} [{bar:20}] {per_sec:1}, {eta} left: {wide_msg}";
/// A bar whose total grows while a list is read.
const GROWING: &str = "{prefix} {pos} of {len} so far, {per_sec:1}: {wide_msg}";
/// A bar without a total.
const UNKNOWN: &str = "{prefix} {pos}, {per_sec:1}: {wide_msg}";

/// Whether standard error is a terminal on which a line can be drawn again: not one whose `TERM` is unset or `dumb`.
pub(super) fn can_redraw() -> bool {
    !ProgressDrawTarget::stderr().is_hidden()
}

/// Progress display: a bar with rate and remaining time where [`can_redraw`], otherwise a line at intervals.
#[derive(Debug)]
pub(super) struct ProgressLine {
    /// Verb of a finished step, such as `imported`.
    verb: &'static str,
    /// Total number of steps, if known.
    of: Option<u64>,
    done: u64,
    failed: u64,
    /// `None` if lines are printed.
    bar: Option<ProgressBar>,
    /// Time of the last line.
    printed_at: Instant,
}

impl ProgressLine {
    /// Starts the display. Fewer than two steps are not displayed on a terminal.
    pub(super) fn new(verb: &'static str, of: Option<u64>) -> Self {
        let is_live = of.is_none_or(|of| of > 1) && can_redraw();
        let bar = is_live.then(|| {
            let bar = ProgressBar::with_draw_target(of, ProgressDrawTarget::stderr())
                .with_prefix(verb)
                .with_style(style(if of.is_some() { KNOWN } else { UNKNOWN }));
            bar.enable_steady_tick(TICK);
            bar
        });
        Self { verb, of, done: 0, failed: 0, bar, printed_at: Instant::now() }
    }

    /// Shows lines instead of the bar.
    pub(super) fn remove_bar(&mut self) {
        if let Some(bar) = self.bar.take() {
            bar.finish_and_clear();
        }
    }

    /// Sets the total number of steps; unless `is_final`, it may still grow.
    pub(super) fn set_total(&mut self, of: u64, is_final: bool) {
        self.of = Some(of);
        if let Some(bar) = &self.bar {
            bar.set_length(of);
            bar.set_style(style(if is_final { KNOWN } else { GROWING }));
        }
    }

    /// Adds a finished step with its name.
    pub(super) fn step(&mut self, name: &str) {
        self.advance(self.done + 1, EVERY, &shown(name, NAME_MAX));
    }

    /// Adds a failed step with its name. The message is a [`ProgressLine::note`].
    pub(super) fn fail(&mut self, name: &str) {
        self.failed += 1;
        self.step(name);
    }

    /// Sets the number of finished steps.
    pub(super) fn reach(&mut self, done: u64, what: &str) {
        self.advance(done, EVERY_MANY, what);
    }

    /// Prints a message on a separate line.
    pub(super) fn note(&self, text: &str) {
        self.suspend(|| self.write(&format!("{}\n", shown(text, usize::MAX))));
    }

    /// Runs work that prints, with the bar out of its way.
    pub(super) fn suspend<T>(&self, work: impl FnOnce() -> T) -> T {
        match &self.bar {
            Some(bar) => bar.suspend(work),
            None => work(),
        }
    }

    fn advance(&mut self, done: u64, every: u64, name: &str) {
        let is_due = self.is_line_due(done, every);
        self.done = done;
        self.draw(name);
        if self.bar.is_none() && is_due {
            self.write(&self.line(name));
            self.printed_at = Instant::now();
        }
    }

    fn is_line_due(&self, done: u64, every: u64) -> bool {
        done / every > self.done / every || self.printed_at.elapsed() >= LINE_INTERVAL
    }

    fn line(&self, name: &str) -> String {
        let of = self.of.map(|of| format!(" of {of}")).unwrap_or_default();
        format!("{} {}{of}: {}\n", self.verb, self.done, self.with_failures(name))
    }

    fn draw(&self, name: &str) {
        if let Some(bar) = &self.bar {
            bar.set_position(self.done);
            bar.set_message(self.with_failures(name));
        }
    }

    fn with_failures(&self, name: &str) -> String {
        match self.failed {
            0 => name.to_owned(),
            failed => format!("{failed} failed; {name}"),
        }
    }

    /// Writes to standard error; a closed one is ignored.
    fn write(&self, text: &str) {
        let _ = io::stderr().lock().write_all(text.as_bytes());
    }
}

impl Drop for ProgressLine {
    fn drop(&mut self) {
        self.remove_bar();
    }
}

fn style(template: &str) -> ProgressStyle {
    // All templates are valid, as the test proves.
    let style = ProgressStyle::with_template(template).unwrap_or_else(|_| ProgressStyle::default_bar());
    style.progress_chars("=> ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bar_templates_are_valid() {
        for template in [KNOWN, GROWING, UNKNOWN] {
            ProgressStyle::with_template(template).unwrap();
        }
    }

    fn without_bar() -> ProgressLine {
        let printed_at = Instant::now();
        ProgressLine { verb: "done", of: None, done: 0, failed: 0, bar: None, printed_at }
    }

    #[test]
    fn line_is_due_after_steps_or_seconds() {
        let mut progress = without_bar();
        assert!(!progress.is_line_due(EVERY_MANY - 1, EVERY_MANY));
        assert!(progress.is_line_due(EVERY_MANY, EVERY_MANY));
        progress.printed_at = Instant::now().checked_sub(LINE_INTERVAL).unwrap();
        assert!(progress.is_line_due(200, EVERY_MANY));
        progress.reach(200, "a");
        assert!(!progress.is_line_due(400, EVERY_MANY));
    }

    #[test]
    fn line_has_total_failures_and_name() {
        let mut progress = without_bar();
        progress.step("a");
        assert_eq!(progress.line("a"), "done 1: a\n");
        progress.set_total(9, false);
        progress.fail("b");
        assert_eq!(progress.line("b"), "done 2 of 9: 1 failed; b\n");
    }
}
