//! Pages of a transcript, of a size that an assistant can take.

use transcript_core::{archive::StoredTranscript, chat::Passage, transcript::moment};

use super::cursor::Cursor;

/// One page.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Page {
    /// Its lines, each a passage, with its time in front where that is wanted.
    pub(super) text: String,
    /// When its first passage starts, in milliseconds from the video's beginning.
    pub(super) start_ms: u64,
    /// When its last passage ends, in milliseconds from the video's beginning.
    pub(super) end_ms: u64,
    /// Where the next page begins; none after the last one.
    pub(super) next: Option<Cursor>,
}

/// The page of a transcript with these passages that begins at a cursor, or with the transcript: at most `max_chars` characters, times included. All pages
/// together have every word once, in order.
///
/// # Errors
/// A sentence, when the cursor is of another transcript or another revision of it.
pub(super) fn page(
    stored: &StoredTranscript,
    passages: &[Passage],
    from: Option<Cursor>,
    max_chars: usize,
    timestamps: bool,
) -> Result<Page, String> {
    let moved = || {
        "cursor: it is of another transcript, or the transcript was replaced since: repeat the call with the same \
         video and lang, or leave the cursor out to begin anew"
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
    let mut page = Page {
        text: String::new(),
        start_ms: passages.get(at).map_or(0, |p| p.start_ms),
        end_ms: 0,
        next: None,
    };
    let mut left = max_chars;
    while let Some(passage) = passages.get(at) {
        let rest = passage.text.get(offset..).ok_or_else(moved)?;
        let mark = match timestamps {
            true => format!("[{}] ", moment(passage.start_ms / 1_000)),
            false => String::new(),
        };
        // With the line's end.
        let beside = mark.chars().count() + 1;
        let is_whole = beside + rest.chars().count() <= left;
        if !is_whole && !page.text.is_empty() {
            break;
        }
        // A passage that no page could hold whole is cut.
        let told = if is_whole { rest } else { cut(rest, left.saturating_sub(beside)) };
        page.text.push_str(&mark);
        page.text.push_str(told.trim());
        page.text.push('\n');
        page.end_ms = passage.end_ms;
        left = left.saturating_sub(beside + told.chars().count());
        if is_whole {
            (at, offset) = (at + 1, 0);
        } else {
            offset += told.len();
            break;
        }
    }
    page.next = (at < passages.len()).then(|| Cursor::new(stored, at, offset));
    Ok(page)
}

/// The beginning of a text of at most so many characters, and at least one: up to its last space where it has one.
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
