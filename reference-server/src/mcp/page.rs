//! Transcript pages of a size that fits an assistant's context.

use transcript_core::{archive::StoredTranscript, chat::Passage, transcript::format_timestamp};

use super::cursor::PassageCursor;

#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct PassagePage {
    /// One line per passage, with a timestamp in front if requested.
    pub(super) text: String,
    /// Start of the first passage, in milliseconds from the start of the video.
    pub(super) start_ms: u64,
    /// End of the last passage, in milliseconds from the start of the video.
    pub(super) end_ms: u64,
    /// Start of the next page; `None` after the last one.
    pub(super) next: Option<PassageCursor>,
}

/// Returns the page at a cursor, or the first page.
///
/// A page has at most `max_chars` characters, timestamps included. All pages together contain every word once, in
/// order.
///
/// # Errors
/// A message if the cursor belongs to another transcript or another revision.
pub(super) fn page(
    stored: &StoredTranscript,
    passages: &[Passage],
    from: Option<PassageCursor>,
    max_chars: usize,
    timestamps: bool,
) -> Result<PassagePage, String> {
    let moved = || {
        "cursor: it belongs to another transcript or an older revision: repeat the call with the same video and lang, \
         or omit the cursor to start at the beginning"
            .to_owned()
    };
    let (mut at, mut offset) = match from {
        None => (0, 0),
        Some(cursor) if cursor.is_of(stored) => (cursor.passage as usize, cursor.offset as usize),
        Some(_) => return Err(moved()),
    };
    if from.is_some() && passages.get(at).and_then(|passage| passage.text.get(offset..)).is_none() {
        return Err(moved());
    }
    let mut page = PassagePage {
        text: String::new(),
        start_ms: passages.get(at).map_or(0, |p| p.start_ms),
        end_ms: 0,
        next: None,
    };
    let mut left = max_chars;
    while let Some(passage) = passages.get(at) {
        let rest = passage.text.get(offset..).ok_or_else(moved)?;
        let mark = match timestamps {
            true => format!("[{}] ", format_timestamp(passage.start_ms / 1_000)),
            false => String::new(),
        };
        // The timestamp and the line feed.
        let overhead = mark.chars().count() + 1;
        let is_whole = overhead + rest.chars().count() <= left;
        if !is_whole && !page.text.is_empty() {
            break;
        }
        // A passage longer than a page is split.
        let shown = if is_whole { rest } else { cut(rest, left.saturating_sub(overhead)) };
        page.text.push_str(&mark);
        page.text.push_str(shown.trim());
        page.text.push('\n');
        page.end_ms = passage.end_ms;
        left = left.saturating_sub(overhead + shown.chars().count());
        if is_whole {
            (at, offset) = (at + 1, 0);
        } else {
            offset += shown.len();
            break;
        }
    }
    page.next = (at < passages.len()).then(|| PassageCursor::new(stored, at, offset));
    Ok(page)
}

/// Returns at most the first `chars` characters of a text, cut at the last space; at least one.
fn cut(text: &str, chars: usize) -> &str {
    let end = text.char_indices().nth(chars.max(1)).map_or(text.len(), |(at, _)| at);
    let head = text.get(..end).unwrap_or(text);
    match head.trim_end().rfind(char::is_whitespace) {
        Some(space) => {
            let after = head.get(space..).and_then(|rest| rest.chars().next()).map_or(0, char::len_utf8);
            head.get(..space + after).unwrap_or(head)
        }
        None => head,
    }
}
