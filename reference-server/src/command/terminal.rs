//! Output of commands, made safe for terminals.
//!
//! Titles, captions, labels and file names come from outside, and a terminal executes control characters in them: it
//! moves the cursor, changes its title or sends replies as keyboard input. No control character is written to a
//! terminal. Piped and redirected output is not changed.

use std::io::{self, IsTerminal, Write};

use transcript_core::{text::is_reordering, video::VideoId};

use super::CommandError;

/// Writes to standard output. On a terminal control characters are replaced by visible symbols.
pub(super) fn print(text: &str) -> Result<(), CommandError> {
    print_as(text, for_terminal)
}

/// Writes JSON to standard output.
///
/// On a terminal control characters are escaped, so that it stays valid JSON.
pub(super) fn print_json(json: &str) -> Result<(), CommandError> {
    print_as(json, json_for_terminal)
}

/// Ignores that the reader of standard output closed it, for commands whose work and exit status do not depend on it.
pub(super) fn ignore_closed(printed: Result<(), CommandError>) -> Result<(), CommandError> {
    match printed {
        Err(CommandError::OutputClosed) => Ok(()),
        printed => printed,
    }
}

/// Writes a message to standard error, without control characters.
pub(super) fn print_stderr(text: &str) {
    // A closed standard error is ignored.
    let _ = io::stderr().lock().write_all(for_terminal(&format!("{text}\n")).as_bytes());
}

fn print_as(text: &str, terminal_form: fn(&str) -> String) -> Result<(), CommandError> {
    let mut output = io::stdout().lock();
    let written = if output.is_terminal() {
        output.write_all(terminal_form(text).as_bytes())
    } else {
        output.write_all(text.as_bytes())
    };
    written.and_then(|()| output.flush()).map_err(|error| match error.kind() {
        io::ErrorKind::BrokenPipe => CommandError::OutputClosed,
        _ => CommandError::Fault(format!("standard output cannot be written: {error}")),
    })
}

/// Whether a character controls a terminal or reorders the text around it.
///
/// Directional marks (U+200E, U+200F, U+061C) are not hidden: they do not affect other text.
pub(super) fn is_hidden(c: char) -> bool {
    c.is_control() || is_reordering(c)
}

/// Replaces control characters by their symbols (ESC is `␛`) and removes reordering characters.
fn for_terminal(text: &str) -> String {
    let picture = |c: char| match u32::from(c) {
        code @ 0..0x20 => char::from_u32(0x2400 + code).unwrap_or(char::REPLACEMENT_CHARACTER),
        0x7F => '\u{2421}',
        _ => char::REPLACEMENT_CHARACTER,
    };
    let stays = |&c: &char| !is_reordering(c);
    text.chars()
        .filter(stays)
        .map(|c| if c.is_control() && !matches!(c, '\n' | '\t') { picture(c) } else { c })
        .collect()
}

/// Escapes hidden characters of JSON. Line ends occur between values only.
fn json_for_terminal(json: &str) -> String {
    let mut text = String::with_capacity(json.len());
    for c in json.chars() {
        if is_hidden(c) && c != '\n' {
            text.push_str(&format!("\\u{:04x}", u32::from(c)));
        } else {
            text.push(c);
        }
    }
    text
}

/// Returns external text as a single line without hidden characters, truncated to `max` characters.
pub(super) fn shown(text: &str, max: usize) -> String {
    let mut shown: String = text.chars().map(|c| if is_hidden(c) { ' ' } else { c }).take(max).collect();
    if text.chars().nth(max).is_some() {
        shown.push('…');
    }
    shown
}

/// Returns the platform and the id of a video, for people.
pub(super) fn video_name(video: &VideoId) -> String {
    format!("{} {}", video.platform().name(), video.id())
}

#[cfg(test)]
mod tests {
    use super::*;

    const HOSTILE: &str = "a\u{1b}[2J\u{9b}31m\r\u{7}b\u{7f}\u{202e}c\u{2066}\u{200f}\td\n";

    #[test]
    fn shown_text_has_no_control_characters() {
        assert_eq!(shown("a\u{1b}[2Jb\r\nc\u{202E}d", 99), "a [2Jb  c d");
        assert_eq!(shown("abcdef", 3), "abc…");
        assert_eq!(shown("abc", 3), "abc");
    }

    #[test]
    fn terminal_control_characters_become_symbols() {
        assert_eq!(for_terminal(HOSTILE), "a␛[2J\u{fffd}31m␍␇b␡c\u{200f}\td\n");
        assert_eq!(for_terminal("שלום 👩\u{200d}👧 é"), "שלום 👩\u{200d}👧 é");
    }

    #[test]
    fn terminal_json_escapes_keep_value() {
        let value = serde_json::json!({ "text": HOSTILE });
        let json = format!("{value:#}\n");
        let shown = json_for_terminal(&json);
        assert!(shown.chars().all(|c| c == '\n' || !is_hidden(c)), "{shown:?}");
        assert_eq!(serde_json::from_str::<serde_json::Value>(&shown).unwrap(), value);
    }
}
