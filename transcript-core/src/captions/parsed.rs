//! Result of a caption parser: segments, metadata, and counts of what could not be read.

use crate::transcript::{LanguageTag, Segment};

/// Maximum number of lines listed in [`Occurrences`].
pub const LINES_MAX: usize = 5;

/// How often something occurs in a body, and in which lines first.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Occurrences {
    /// Number of occurrences.
    pub count: u64,
    /// Numbers of the first [`LINES_MAX`] lines with an occurrence, from 1, each once.
    ///
    /// Empty in formats without lines.
    pub lines: Vec<u64>,
}

impl Occurrences {
    /// Counts one occurrence, with its line in line-based formats.
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

/// Parsed captions.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ParsedCaptions {
    /// The segments, ordered by start; at least one, and none without text.
    pub segments: Vec<Segment>,
    /// Unreadable characters. Each one is U+FFFD, including those that the body already had as U+FFFD.
    pub unreadable: Occurrences,
    /// Text that is in no segment.
    ///
    /// That is cues whose times are unreadable or beyond [`super::TIME_MAX_MS`], cues of which a part is unreadable,
    /// blocks of lines without times, and in TTML the cues of translations beside the main language.
    pub left_out: Occurrences,
    /// Language named by the body: `Language:` in the WebVTT header, `xml:lang` in TTML, of the root or of a `div`.
    pub language: Option<LanguageTag>,
    /// Kind of text named by the body: `Kind:` in the WebVTT header, in lower case, such as `captions`,
    /// `subtitles`, `descriptions`, `chapters` or `metadata`.
    pub kind: Option<String>,
}

/// Counts the unreadable characters of a body, with their lines.
pub(super) fn unreadable<'a>(lines: impl Iterator<Item = &'a str>) -> Occurrences {
    let mut found = Occurrences::default();
    for (line, number) in lines.zip(1..) {
        for _ in line.chars().filter(|&c| is_unreadable(c)) {
            found.add(Some(number));
        }
    }
    found
}

/// Whether a character replaces one that could not be read: it marks a gap and is not text.
pub(super) fn is_unreadable(c: char) -> bool {
    matches!(c, char::REPLACEMENT_CHARACTER | '\0')
}
