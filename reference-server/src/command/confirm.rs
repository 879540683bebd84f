//! Confirmation on the terminal before data is deleted.

use std::io::{self, BufRead, IsTerminal};

use super::CommandError;

/// Prompts for a confirmation; returns whether the reply is yes.
///
/// # Errors
/// There is no terminal; `--yes` is required.
pub(super) fn confirm(question: &str) -> Result<bool, CommandError> {
    let mut input = io::stdin().lock();
    if !input.is_terminal() {
        return Err(CommandError::Wrong(
            "deleting cannot be undone and there is no terminal for the confirmation: pass --yes".to_owned(),
        ));
    }
    eprint!("{question} [y/N] ");
    let mut answer = String::new();
    let read = input.read_line(&mut answer);
    read.map_err(|error| CommandError::Fault(format!("standard input cannot be read: {error}")))?;
    Ok(matches!(answer.trim().to_ascii_lowercase().as_str(), "y" | "yes"))
}
