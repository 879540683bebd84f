//! Asking the person at the terminal before something is gone for good.

use std::io::{self, BufRead, IsTerminal};

use super::Failure;

/// Whether they say yes to this question.
///
/// # Errors
/// There is no terminal to ask at, so that it must be said with `--yes`.
pub(super) fn confirmed(question: &str) -> Result<bool, Failure> {
    let mut input = io::stdin().lock();
    if !input.is_terminal() {
        return Err(Failure::Wrong(
            "deleting cannot be undone, and there is no terminal to ask at: say --yes".to_owned(),
        ));
    }
    eprint!("{question} [y/N] ");
    let mut answer = String::new();
    let read = input.read_line(&mut answer);
    read.map_err(|error| Failure::Fault(format!("standard input cannot be read: {error}")))?;
    Ok(matches!(answer.trim().to_ascii_lowercase().as_str(), "y" | "yes"))
}
