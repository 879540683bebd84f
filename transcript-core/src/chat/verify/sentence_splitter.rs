//! Splits a stream of text into sentences with the citations after them.
//!
//! A sentence is returned only when its end is certain, because it cannot be retracted.

use super::{
    super::question::is_invisible,
    normalize::{common_mark, is_private},
};

/// Maximum of characters between the brackets of a citation.
const BRACKET_CHARS_MAX: usize = 80;

/// A piece of an answer: a sentence with its citations, or the text before the end of a line.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct AnswerPiece {
    /// Text of the piece.
    pub(super) text: String,
    /// Whether the piece starts its line.
    pub(super) starts_line: bool,
    /// Whether the piece ends its line.
    pub(super) ends_line: bool,
}

/// Possible split at the current position.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum SplitPoint {
    /// No split.
    None,
    /// End of a sentence in bytes, unless the following text continues it; `spaced` if a space followed.
    Sentence { end: usize, spaced: bool },
    /// As `Sentence`, with a bracket open at `open` that may be a citation of that sentence.
    Bracket { end: usize, open: usize },
}

/// Receives text in pieces of any size and returns sentences.
#[derive(Debug)]
pub(super) struct SentenceSplitter {
    buffer: String,
    /// End of the text that was scanned.
    scanned: usize,
    /// Mark that closes the open quotation.
    quote: Option<char>,
    before: Option<char>,
    ending: SplitPoint,
    starts_line: bool,
}

impl SentenceSplitter {
    pub(super) fn new() -> Self {
        Self {
            buffer: String::new(),
            scanned: 0,
            quote: None,
            before: None,
            ending: SplitPoint::None,
            starts_line: true,
        }
    }

    /// Appends text and calls `each` for every complete piece.
    pub(super) fn push(&mut self, text: &str, mut each: impl FnMut(AnswerPiece)) {
        // Private-use characters are placeholders of the sanitizer.
        self.buffer.extend(text.chars().filter(|c| !is_invisible(*c) && !is_private(*c)).map(common_mark));
        while let Some(c) = self.buffer.get(self.scanned..).and_then(|rest| rest.chars().next()) {
            if let Some(end) = self.scan(c) {
                self.split(end, &mut each);
            }
        }
    }

    /// Calls `each` for the remaining text.
    pub(super) fn finish(mut self, mut each: impl FnMut(AnswerPiece)) {
        if let SplitPoint::Sentence { end, .. } | SplitPoint::Bracket { end, .. } = self.ending {
            self.split(end, &mut each);
        }
        self.buffer.push('\n');
        let end = self.buffer.len();
        self.split(end, &mut each);
    }

    fn split(&mut self, end: usize, each: &mut impl FnMut(AnswerPiece)) {
        let rest = self.buffer.split_off(end.min(self.buffer.len()));
        let text = std::mem::replace(&mut self.buffer, rest);
        let ends_line = text.ends_with('\n');
        let starts_line = std::mem::replace(&mut self.starts_line, ends_line);
        // Text after the split is scanned again as the start of the next piece.
        (self.scanned, self.quote, self.before, self.ending) = (0, None, None, SplitPoint::None);
        each(AnswerPiece { text: text.trim_end_matches('\n').to_owned(), starts_line, ends_line });
    }

    /// Scans one character; returns the split position once it is certain.
    fn scan(&mut self, c: char) -> Option<usize> {
        let offset = self.scanned;
        self.scanned += c.len_utf8();
        let before = self.before.replace(c);
        if c == '\n' {
            return Some(match self.ending {
                SplitPoint::None => self.scanned,
                // The end of the line becomes a separate piece if any text stands before it.
                SplitPoint::Sentence { end, .. } | SplitPoint::Bracket { end, .. }
                    if self.has_more(end, offset) =>
                {
                    end
                }
                _ => self.scanned,
            });
        }
        match self.ending {
            SplitPoint::Bracket { end, open } => return self.scan_bracket(c, end, open),
            SplitPoint::Sentence { end, spaced } => {
                if let Some(decided) = self.scan_after_sentence(c, offset, end, spaced) {
                    return decided;
                }
            }
            SplitPoint::None => {}
        }
        self.scan_in_sentence(c, before);
        None
    }

    /// Whether there is text between two positions.
    fn has_more(&self, from: usize, to: usize) -> bool {
        self.buffer.get(from..to).is_some_and(|text| !text.trim().is_empty())
    }

    /// Scans a bracket after a sentence.
    fn scan_bracket(&mut self, c: char, end: usize, open: usize) -> Option<usize> {
        let inside = self.buffer.get(open..self.scanned).unwrap_or_default();
        let is_citation = matches!(c, ']' | '】' | '］' | ')') && inside.chars().any(|c| c.is_ascii_digit());
        if is_citation {
            self.ending = SplitPoint::Sentence { end: self.scanned, spaced: false };
            return None;
        }
        let continues =
            matches!(c, ' ' | ',' | ';' | '-' | '–' | '—' | '&' | '^' | '#' | ':') || c.is_alphanumeric();
        if continues && inside.chars().count() <= BRACKET_CHARS_MAX { None } else { Some(end) }
    }

    /// Scans a character after the last mark of a sentence.
    ///
    /// `Some(Some(…))` splits at that index, `Some(None)` waits for more, `None` continues the sentence.
    fn scan_after_sentence(
        &mut self,
        c: char,
        offset: usize,
        end: usize,
        spaced: bool,
    ) -> Option<Option<usize>> {
        if c.is_whitespace() {
            self.ending = SplitPoint::Sentence { end, spaced: true };
            return Some(None);
        }
        if matches!(c, '[' | '【' | '［' | '(') {
            self.ending = SplitPoint::Bracket { end, open: offset };
            return Some(None);
        }
        let closes =
            matches!(c, '"' | '”' | '“' | '’' | '\'' | '»' | '«' | '›' | '」' | '』' | ')' | ']' | '*' | '_');
        if !spaced && (closes || is_last_mark(c)) {
            self.ending = SplitPoint::Sentence { end: self.scanned, spaced: false };
            return Some(None);
        }
        let is_wide =
            self.buffer.get(..end).and_then(|text| text.chars().next_back()).is_some_and(|c| !c.is_ascii());
        if spaced || is_wide || self.buffer.get(..end).is_some_and(|text| text.ends_with([']', ')'])) {
            return Some(Some(end));
        }
        self.ending = SplitPoint::None;
        None
    }

    fn scan_in_sentence(&mut self, c: char, before: Option<char>) {
        if let Some(closing) = self.quote {
            let closes = c == closing || (closing == '”' && matches!(c, '"' | '“'));
            if closes {
                self.quote = None;
                if before.is_some_and(is_last_mark) {
                    self.ending = SplitPoint::Sentence { end: self.scanned, spaced: false };
                }
            }
            return;
        }
        self.quote = match c {
            '"' | '“' | '„' | '”' if !before.is_some_and(|c| c.is_ascii_digit()) => Some('”'),
            '«' => Some('»'),
            '»' => Some('«'),
            '「' => Some('」'),
            '『' => Some('』'),
            '《' => Some('》'),
            '〈' => Some('〉'),
            '>' if self.starts_line && before.is_none() => Some('\n'),
            _ => None,
        };
        if is_last_mark(c) {
            self.ending = SplitPoint::Sentence { end: self.scanned, spaced: false };
        }
    }
}

/// Whether a character ends sentences.
fn is_last_mark(c: char) -> bool {
    matches!(c, '.' | '!' | '?' | '…' | '。' | '！' | '？' | '｡' | '।' | '؟' | '۔' | '።' | '။' | '។')
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn split(text: &str, step: usize) -> Vec<String> {
        let (mut splitter, mut pieces) = (SentenceSplitter::new(), Vec::new());
        let letters: Vec<char> = text.chars().collect();
        for part in letters.chunks(step) {
            splitter.push(&part.iter().collect::<String>(), |piece| pieces.push(piece));
        }
        splitter.finish(|piece| pieces.push(piece));
        let end = |piece: &AnswerPiece| if piece.ends_line { "|" } else { "" };
        pieces.iter().map(|piece| format!("{}{}", piece.text.trim(), end(piece))).collect()
    }

    fn check(text: &str, expect: &[&str]) {
        for step in [1, 3, 1_000] {
            let found: Vec<_> = split(text, step).into_iter().filter(|piece| piece != "|").collect();
            assert_eq!(found, expect, "{text} by {step}");
        }
    }

    #[test]
    fn splitter_sentence_includes_following_citations() {
        check("One. [s1] Two [s2]. Three [s3][s4]\n", &["One. [s1]", "Two [s2].", "Three [s3][s4]|"]);
        check("One.[s1][s2] (s3) Two.", &["One.[s1][s2] (s3)", "Two."]);
        check("It grew 3.5 percent. Really?! Yes", &["It grew 3.5 percent.", "Really?!", "Yes|"]);
        check(
            "See example.com/a?b now. (Not this.) End",
            &["See example.com/a?b now.", "(Not this.)", "End|"],
        );
        check("他说了。[s1]然后走了！[s2]", &["他说了。[s1]", "然后走了！[s2]"]);
        check("- a. [s1]\n- b [s2]\n\nc", &["- a. [s1]|", "- b [s2]|", "c|"]);
    }

    #[test]
    fn splitter_quotation_stays_in_one_piece() {
        check("\"One. Two.\" [s1] Three.", &["\"One. Two.\" [s1]", "Three."]);
        check("He says “One! Two” twice. Then", &["He says “One! Two” twice.", "Then|"]);
        check("> One. Two. [s1]\nThree. Four", &["> One. Two. [s1]|", "Three.", "Four|"]);
        check("He said «A. B.» C", &["He said «A. B.»", "C|"]);
        check("Never “closed. At all.\nNext. One", &["Never “closed. At all.|", "Next.", "One|"]);
    }

    proptest! {
        #[test]
        fn splitter_any_piece_size_gives_same_sentences(text in "[ab .!?\"“”\\[\\]()s1。\n>']{0,60}", step in 1..9_usize) {
            let whole = split(&text, 10_000);
            prop_assert_eq!(&split(&text, step), &whole);
            let dense = |text: &str| -> String { text.chars().filter(|c| !c.is_whitespace() && *c != '|').collect() };
            prop_assert_eq!(dense(&whole.concat()), dense(&text));
        }
    }
}
