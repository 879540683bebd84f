//! A stream of events, as they come from a chat service: bytes in, the data of each event out.

use bytes::{Buf as _, BytesMut};

/// The longest line. A piece of an answer is far shorter.
const LINE_MAX: usize = 1 << 20;

/// A stream that is no stream of events.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct NoEvents;

/// Takes bytes as they come.
#[derive(Debug, Default)]
pub(super) struct Events {
    bytes: BytesMut,
    /// Up to here there is no line's end.
    looked_at: usize,
}

impl Events {
    /// Takes bytes.
    pub(super) fn take(&mut self, bytes: &[u8]) {
        self.bytes.extend_from_slice(bytes);
    }

    /// The data of the next event that is complete: services send each on one line.
    ///
    /// # Errors
    /// A line is longer than any event, or is neither data nor anything else that streams have.
    pub(super) fn next(&mut self) -> Result<Option<String>, NoEvents> {
        loop {
            let rest = self.bytes.get(self.looked_at..).unwrap_or_default();
            let Some(end) = rest.iter().position(|byte| *byte == b'\n').map(|end| self.looked_at + end)
            else {
                self.looked_at = self.bytes.len();
                return if self.bytes.len() > LINE_MAX { Err(NoEvents) } else { Ok(None) };
            };
            let line = self.bytes.split_to(end);
            self.bytes.advance(1);
            self.looked_at = 0;
            if let Some(data) = data(&line)? {
                return Ok(Some(data));
            }
        }
    }

    /// What is left when the stream ended without a line's end.
    pub(super) fn last(&mut self) -> Result<Option<String>, NoEvents> {
        self.take(b"\n");
        self.next()
    }
}

/// The data of a line; none where it has none.
fn data(line: &[u8]) -> Result<Option<String>, NoEvents> {
    let line = std::str::from_utf8(line).map_err(|_| NoEvents)?.trim_end_matches('\r');
    if line.is_empty() || line.starts_with(':') {
        return Ok(None);
    }
    let (field, value) = line.split_once(':').unwrap_or((line, ""));
    match field {
        "data" => Ok(Some(value.trim_start().to_owned())),
        "event" | "id" | "retry" => Ok(None),
        _ => Err(NoEvents),
    }
}

/// Leaves out what a model thinks aloud before its answer, between `<think>` and `</think>`.
#[derive(Debug, Default)]
pub(super) struct Thoughts {
    /// What may yet become one of the marks.
    held: String,
    state: Thinking,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum Thinking {
    /// Nothing came yet but white space.
    #[default]
    MayBegin,
    /// It thinks.
    Inside,
    /// The answer has begun.
    Over,
}

impl Thoughts {
    /// Takes a piece; returns what of it belongs to the answer.
    pub(super) fn without(&mut self, piece: &str) -> String {
        const OPEN: &str = "<think>";
        const CLOSE: &str = "</think>";
        if self.state == Thinking::Over {
            return piece.to_owned();
        }
        self.held.push_str(piece);
        if self.state == Thinking::MayBegin {
            let begun = self.held.trim_start();
            if begun.starts_with(OPEN) {
                self.state = Thinking::Inside;
            } else if OPEN.starts_with(begun) {
                return String::new();
            } else {
                self.state = Thinking::Over;
                return std::mem::take(&mut self.held);
            }
        }
        match self.held.split_once(CLOSE) {
            Some((_, answer)) => {
                self.state = Thinking::Over;
                let answer = answer.to_owned();
                self.held.clear();
                answer
            }
            None => {
                // Of the thoughts only so much is kept as may be the beginning of the mark that ends them.
                let mut from = self.held.len().saturating_sub(CLOSE.len());
                while !self.held.is_char_boundary(from) {
                    from -= 1;
                }
                self.held.drain(..from);
                String::new()
            }
        }
    }

    /// What is left when the answer ended.
    pub(super) fn rest(self) -> String {
        if self.state == Thinking::Inside { String::new() } else { self.held }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn read(bytes: &[u8], step: usize) -> Result<Vec<String>, NoEvents> {
        let (mut events, mut found) = (Events::default(), Vec::new());
        for part in bytes.chunks(step) {
            events.take(part);
            while let Some(data) = events.next()? {
                found.push(data);
            }
        }
        found.extend(events.last()?);
        Ok(found)
    }

    #[test]
    fn events_are_read_however_they_are_cut() {
        let stream = ": hello\r\nevent: x\r\ndata: {\"ä\":1}\r\n\r\ndata:two\n\ndata: [DONE]".as_bytes();
        for step in [1, 2, 5, 1_000] {
            assert_eq!(
                read(stream, step),
                Ok(vec!["{\"ä\":1}".to_owned(), "two".to_owned(), "[DONE]".to_owned()])
            );
        }
        for wrong in [&b"<!DOCTYPE html>\n"[..], b"data: \xff\n", b"{\"choices\":[]}\n"] {
            assert_eq!(read(wrong, 3), Err(NoEvents));
        }
        assert_eq!(read(&vec![b'a'; LINE_MAX + 9], 4_096), Err(NoEvents));
    }

    fn thought(text: &str, step: usize) -> String {
        let (mut thoughts, mut answer) = (Thoughts::default(), String::new());
        let letters: Vec<char> = text.chars().collect();
        for part in letters.chunks(step) {
            answer.push_str(&thoughts.without(&part.iter().collect::<String>()));
        }
        answer + &thoughts.rest()
    }

    #[test]
    fn thoughts_are_no_answer() {
        for step in [1, 4, 1_000] {
            assert_eq!(thought("<think>hm [s1] ä</think>Yes [s2].", step), "Yes [s2].");
            assert_eq!(thought("\n<think>never ends", step), "");
            assert_eq!(thought("Yes <think>no</think>", step), "Yes <think>no</think>");
            assert_eq!(thought("<thin", step), "<thin");
        }
    }

    proptest! {
        #[test]
        fn any_bytes_are_read_or_refused(bytes in proptest::collection::vec(any::<u8>(), 0..200), step in 1..50_usize) {
            prop_assert_eq!(read(&bytes, step).is_ok(), read(&bytes, 1_000).is_ok());
        }
    }
}
