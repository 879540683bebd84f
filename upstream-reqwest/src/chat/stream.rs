//! Server-Sent Events of a chat service: bytes in, the data of each event out.

use bytes::{Buf as _, BytesMut};

/// Maximum length of a line. A chunk of an answer is far shorter.
const LINE_MAX: usize = 1 << 20;

/// The bytes are not Server-Sent Events.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct MissingEvents;

/// Incremental parser of Server-Sent Events.
#[derive(Debug, Default)]
pub(super) struct SseParser {
    bytes: BytesMut,
    /// Offset below which there is no line end.
    scanned: usize,
}

impl SseParser {
    /// Adds bytes.
    pub(super) fn take(&mut self, bytes: &[u8]) {
        self.bytes.extend_from_slice(bytes);
    }

    /// The data of the next complete event: services send each on one line.
    ///
    /// # Errors
    /// A line is too long, or is not a field of an event stream.
    pub(super) fn next_event(&mut self) -> Result<Option<String>, MissingEvents> {
        loop {
            let finish = self.bytes.get(self.scanned..).unwrap_or_default();
            let Some(end) = finish.iter().position(|byte| *byte == b'\n').map(|end| self.scanned + end)
            else {
                self.scanned = self.bytes.len();
                return if self.bytes.len() > LINE_MAX { Err(MissingEvents) } else { Ok(None) };
            };
            let line = self.bytes.split_to(end);
            self.bytes.advance(1);
            self.scanned = 0;
            if let Some(data) = data(&line)? {
                return Ok(Some(data));
            }
        }
    }

    /// The data of a last line without a line end.
    pub(super) fn last(&mut self) -> Result<Option<String>, MissingEvents> {
        self.take(b"\n");
        self.next_event()
    }
}

/// The data of a line; `None` if it has none.
fn data(line: &[u8]) -> Result<Option<String>, MissingEvents> {
    let line = std::str::from_utf8(line).map_err(|_| MissingEvents)?.trim_end_matches('\r');
    if line.is_empty() || line.starts_with(':') {
        return Ok(None);
    }
    let (field, value) = line.split_once(':').unwrap_or((line, ""));
    match field {
        "data" => Ok(Some(value.trim_start().to_owned()).filter(|data| !data.is_empty())),
        "event" | "id" | "retry" => Ok(None),
        _ => Err(MissingEvents),
    }
}

/// Removes a model's reasoning before its answer, between `<think>` and `</think>`, or `<thinking>`.
#[derive(Debug, Default)]
pub(super) struct ThinkFilter {
    /// Text that may become one of the tags.
    pending: String,
    state: ThinkState,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum ThinkState {
    /// Only white space so far.
    #[default]
    MayBegin,
    /// Inside the reasoning, which this tag ends.
    Inside(&'static str),
    /// The answer has begun.
    Over,
}

impl ThinkFilter {
    /// Adds a part; returns the text that belongs to the answer.
    pub(super) fn filter(&mut self, piece: &str) -> String {
        const TAGS: [(&str, &str); 2] = [("<think>", "</think>"), ("<thinking>", "</thinking>")];
        if self.state == ThinkState::Over {
            return piece.to_owned();
        }
        self.pending.push_str(piece);
        if self.state == ThinkState::MayBegin {
            let text = self.pending.trim_start();
            if let Some((_, close)) = TAGS.iter().find(|(open, _)| text.starts_with(open)) {
                self.state = ThinkState::Inside(close);
            } else if TAGS.iter().any(|(open, _)| open.starts_with(text)) {
                return String::new();
            } else {
                self.state = ThinkState::Over;
                return std::mem::take(&mut self.pending);
            }
        }
        let ThinkState::Inside(close) = self.state else { return String::new() };
        match self.pending.split_once(close) {
            Some((_, answer)) => {
                self.state = ThinkState::Over;
                let answer = answer.to_owned();
                self.pending.clear();
                answer
            }
            None => {
                // Of the reasoning only a possible start of the closing tag is kept.
                let mut from = self.pending.len().saturating_sub(close.len());
                while !self.pending.is_char_boundary(from) {
                    from -= 1;
                }
                self.pending.drain(..from);
                String::new()
            }
        }
    }

    /// The remaining text at the end of the answer.
    pub(super) fn finish(self) -> String {
        if matches!(self.state, ThinkState::Inside(_)) { String::new() } else { self.pending }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn read(bytes: &[u8], step: usize) -> Result<Vec<String>, MissingEvents> {
        let (mut events, mut found) = (SseParser::default(), Vec::new());
        for part in bytes.chunks(step) {
            events.take(part);
            while let Some(data) = events.next_event()? {
                found.push(data);
            }
        }
        found.extend(events.last()?);
        Ok(found)
    }

    #[test]
    fn events_are_parsed_for_any_chunk_size() {
        let stream = ": hello\r\nevent: x\r\ndata: {\"ä\":1}\r\n\r\ndata:two\n\ndata: [DONE]".as_bytes();
        for step in [1, 2, 5, 1_000] {
            assert_eq!(
                read(stream, step),
                Ok(vec!["{\"ä\":1}".to_owned(), "two".to_owned(), "[DONE]".to_owned()])
            );
        }
        assert_eq!(read(b"data:\r\n\r\ndata: \n\ndata: a\n", 3), Ok(vec!["a".to_owned()]));
        for wrong in [&b"<!DOCTYPE html>\n"[..], b"data: \xff\n", b"{\"choices\":[]}\n"] {
            assert_eq!(read(wrong, 3), Err(MissingEvents));
        }
        assert_eq!(read(&vec![b'a'; LINE_MAX + 9], 4_096), Err(MissingEvents));
    }

    fn filter_in_steps(text: &str, step: usize) -> String {
        let (mut thoughts, mut answer) = (ThinkFilter::default(), String::new());
        let letters: Vec<char> = text.chars().collect();
        for part in letters.chunks(step) {
            answer.push_str(&thoughts.filter(&part.iter().collect::<String>()));
        }
        answer + &thoughts.finish()
    }

    #[test]
    fn think_block_is_removed() {
        for step in [1, 4, 1_000] {
            assert_eq!(filter_in_steps("<think>hm [s1] ä</think>Yes [s2].", step), "Yes [s2].");
            assert_eq!(filter_in_steps("<thinking>hm </think></thinking>Yes [s2].", step), "Yes [s2].");
            assert_eq!(filter_in_steps("\n<think>never ends", step), "");
            assert_eq!(filter_in_steps("Yes <think>no</think>", step), "Yes <think>no</think>");
            assert_eq!(filter_in_steps("<thin", step), "<thin");
        }
    }

    proptest! {
        #[test]
        fn events_any_bytes_parse_or_fail(bytes in proptest::collection::vec(any::<u8>(), 0..200), step in 1..50_usize) {
            prop_assert_eq!(read(&bytes, step).is_ok(), read(&bytes, 1_000).is_ok());
        }
    }
}
