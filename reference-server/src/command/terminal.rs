//! What the commands write, and what of it may reach a terminal.
//!
//! Titles, captions, labels and file names come from others, and a terminal obeys what is in them: it moves its
//! cursor, changes its title, answers as if somebody had typed. So no control character reaches one. What is
//! piped or redirected is given as it is, since a program wants the words and not a picture of them.

use std::io::{self, IsTerminal, Write};

use super::Failure;

/// Writes to standard output. A terminal is shown control characters rather than given them.
pub(super) fn print(text: &str) -> Result<(), Failure> {
    print_as(text, for_terminal)
}

/// Writes JSON to standard output. For a terminal control characters are escaped, so that it stays JSON.
pub(super) fn print_json(json: &str) -> Result<(), Failure> {
    print_as(json, json_for_terminal)
}

/// Tells somebody something on standard error, which is read by people: without control characters.
pub(super) fn tell(text: &str) {
    // Nobody is left to tell when it cannot be written.
    let _ = io::stderr().lock().write_all(for_terminal(&format!("{text}\n")).as_bytes());
}

fn print_as(text: &str, terminal_form: fn(&str) -> String) -> Result<(), Failure> {
    let mut output = io::stdout().lock();
    let written = if output.is_terminal() {
        output.write_all(terminal_form(text).as_bytes())
    } else {
        output.write_all(text.as_bytes())
    };
    written.and_then(|()| output.flush()).map_err(|error| match error.kind() {
        io::ErrorKind::BrokenPipe => Failure::Unread,
        _ => Failure::Fault(format!("standard output cannot be written: {error}")),
    })
}

/// Whether a character does something to a terminal, or to the order of what stands around it there. The marks
/// of direction (U+200E, U+200F, U+061C) stay: they move nothing but themselves.
fn is_hidden(c: char) -> bool {
    c.is_control() || is_reordering(c)
}

fn is_reordering(c: char) -> bool {
    matches!(c, '\u{202A}'..='\u{202E}' | '\u{2066}'..='\u{2069}')
}

/// The text with the picture of each control character in its place (ESC is `␛`), and without what reorders.
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

/// The same JSON with every hidden character escaped. Line ends stand between values only.
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

/// Text from outside for a place in a line of our own: one line without hidden characters, cut to `max`
/// characters.
pub(super) fn shown(text: &str, max: usize) -> String {
    let mut shown: String = text.chars().map(|c| if is_hidden(c) { ' ' } else { c }).take(max).collect();
    if text.chars().nth(max).is_some() {
        shown.push('…');
    }
    shown
}

#[cfg(test)]
mod tests {
    use super::*;

    const HOSTILE: &str = "a\u{1b}[2J\u{9b}31m\r\u{7}b\u{7f}\u{202e}c\u{2066}\u{200f}\td\n";

    #[test]
    fn what_is_shown_cannot_move_the_cursor() {
        assert_eq!(shown("a\u{1b}[2Jb\r\nc\u{202E}d", 99), "a [2Jb  c d");
        assert_eq!(shown("abcdef", 3), "abc…");
        assert_eq!(shown("abc", 3), "abc");
    }

    #[test]
    fn a_terminal_is_shown_pictures() {
        assert_eq!(for_terminal(HOSTILE), "a␛[2J\u{fffd}31m␍␇b␡c\u{200f}\td\n");
        assert_eq!(for_terminal("שלום 👩\u{200d}👧 é"), "שלום 👩\u{200d}👧 é");
    }

    #[test]
    fn json_stays_the_same_json() {
        let value = serde_json::json!({ "text": HOSTILE });
        let json = format!("{value:#}\n");
        let shown = json_for_terminal(&json);
        assert!(shown.chars().all(|c| c == '\n' || !is_hidden(c)), "{shown:?}");
        assert_eq!(serde_json::from_str::<serde_json::Value>(&shown).unwrap(), value);
    }
}
