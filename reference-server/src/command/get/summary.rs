//! Counts of a command with many links, its table and its exit status.

use std::collections::BTreeMap;

use super::{delivery::DeliveryOutcome, source::Failure};

/// Exit status if there is no transcript.
const NONE: u8 = 3;
/// Exit status if some of the transcripts are missing.
const SOME: u8 = 4;
/// Exit status after Ctrl-C, as shells have it: 128 and the number of the signal; also after SIGTERM.
pub(in crate::command) const INTERRUPTED: u8 = 130;

/// Number of links and videos by outcome.
#[derive(Debug, Default)]
pub(super) struct Summary {
    /// Whether the transcripts are printed.
    is_stdout: bool,
    written: u64,
    existing: u64,
    repeated: u64,
    failed: BTreeMap<String, u64>,
    may_pass: bool,
    /// Whether Ctrl-C ended the work.
    pub(super) is_interrupted: bool,
}

impl Summary {
    pub(super) fn new(is_stdout: bool) -> Self {
        Self { is_stdout, ..Self::default() }
    }

    pub(super) fn count(&mut self, outcome: DeliveryOutcome) {
        *match outcome {
            DeliveryOutcome::Written => &mut self.written,
            DeliveryOutcome::Exists => &mut self.existing,
            DeliveryOutcome::Repeated => &mut self.repeated,
        } += 1;
    }

    pub(super) fn count_failure(&mut self, failure: &Failure) {
        *self.failed.entry(failure.reason.clone()).or_default() += 1;
        self.may_pass |= failure.may_pass;
    }

    fn failures(&self) -> u64 {
        self.failed.values().sum()
    }

    /// The exit status; `None` if there is nothing to report.
    pub(super) fn exit_status(&self) -> Option<u8> {
        match (self.is_interrupted, self.failures(), self.written + self.existing) {
            (true, ..) => Some(INTERRUPTED),
            (false, 0, _) => None,
            (false, _, 0) => Some(NONE),
            (false, ..) => Some(SOME),
        }
    }

    /// The table, and what to do next.
    pub(super) fn table(&self) -> String {
        let failures = self.failures();
        let row = |name: &str, count: u64| format!("{name:22}{count:>8}\n");
        let mut text = row(if self.is_stdout { "printed" } else { "written" }, self.written);
        if self.existing > 0 {
            text.push_str(&row("skipped, file exists", self.existing));
        }
        if self.repeated > 0 {
            text.push_str(&row("named more than once", self.repeated));
        }
        text.push_str(&row("failed", failures));
        for (reason, count) in &self.failed {
            text.push_str(&row(&format!("  {reason}"), *count));
        }
        if self.is_interrupted {
            text.push_str("Stopped. The same command continues.\n");
        } else if self.may_pass {
            text.push_str("Some failures may pass: run the same command again later.\n");
        }
        text
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn failure(reason: &str) -> Failure {
        let may_pass = reason == "rate_limited";
        Failure { may_pass, ..Failure::lasting("x".to_owned(), reason, "x".to_owned()) }
    }

    #[test]
    fn exit_status_tells_all_some_or_none() {
        let summary = |written: u64, existing: u64, failed: &[&str]| {
            let mut summary = Summary { written, existing, ..Summary::default() };
            failed.iter().for_each(|reason| summary.count_failure(&failure(reason)));
            summary
        };
        for (found, expect) in [
            (summary(0, 0, &[]), None),
            (summary(2, 0, &[]), None),
            (summary(0, 2, &[]), None),
            (summary(0, 0, &["private"]), Some(3)),
            (summary(0, 1, &["private"]), Some(4)),
            (summary(1, 0, &["private"]), Some(4)),
            (Summary { is_interrupted: true, ..summary(1, 0, &[]) }, Some(130)),
        ] {
            assert_eq!(found.exit_status(), expect, "{found:?}");
        }
    }

    #[test]
    fn table_has_counts_and_reasons() {
        let mut summary = Summary::default();
        summary.count(DeliveryOutcome::Written);
        summary.count(DeliveryOutcome::Exists);
        for reason in ["private", "rate_limited", "private"] {
            summary.count_failure(&failure(reason));
        }
        let expect = "written                      1\n\
                      skipped, file exists         1\n\
                      failed                       3\n\
                      \x20 private                    2\n\
                      \x20 rate_limited               1\n\
                      Some failures may pass: run the same command again later.\n";
        assert_eq!(summary.table(), expect);
    }
}
