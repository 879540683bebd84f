//! Everything that a body of captions tells, beside its segments.

use crate::transcript::{LanguageTag, Segment};

/// How many lines are told of what occurs more often.
pub const LINES_MAX: usize = 5;

/// How often something occurs in a body, and where first.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Occurrences {
    /// How often.
    pub count: u64,
    /// The numbers of the first [`LINES_MAX`] lines in which it does, from 1, each once. Empty in the formats
    /// that are not made of lines.
    pub lines: Vec<u64>,
}

impl Occurrences {
    /// Once more, in this line where lines mean something.
    pub(super) fn add(&mut self, line: Option<u64>) {
        self.count = self.count.saturating_add(1);
        if let Some(line) = line
            && self.lines.last() != Some(&line)
            && self.lines.len() < LINES_MAX
        {
            self.lines.push(line);
        }
    }
}

/// A body of captions, read.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Reading {
    /// The segments, ordered by start; at least one, and none without text.
    pub segments: Vec<Segment>,
    /// Characters of the body that cannot be read: each one is U+FFFD, be it that it was before.
    pub unreadable: Occurrences,
    /// Words that are in no segment: cues whose times cannot be read or lie beyond [`super::TIME_MAX_MS`], and
    /// blocks of lines without any times.
    pub left_out: Occurrences,
    /// The language that the body names: `Language:` in the header of WebVTT, `xml:lang` in TTML.
    pub language: Option<LanguageTag>,
    /// The kind of text that the body says it is: `Kind:` in the header of WebVTT, in small letters, as
    /// `captions`, `subtitles`, `descriptions`, `chapters` or `metadata`.
    pub kind: Option<String>,
}

/// The unreadable characters of a body, with their lines.
pub(super) fn unreadable<'a>(lines: impl Iterator<Item = &'a str>) -> Occurrences {
    let mut found = Occurrences::default();
    for (line, number) in lines.zip(1..) {
        for _ in line.chars().filter(|&c| is_unreadable(c)) {
            found.add(Some(number));
        }
    }
    found
}

/// Whether a character stands for one that could not be read: it shows that something is missing, and no
/// words.
pub(super) fn is_unreadable(c: char) -> bool {
    matches!(c, char::REPLACEMENT_CHARACTER | '\0')
}
