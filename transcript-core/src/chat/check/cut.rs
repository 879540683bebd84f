//! Cuts what a model writes, as it comes, into sentences with the citations behind them.
//!
//! A sentence is handed on only when it is certain that it ended: nothing that leaves is taken back.

use super::{
    super::question::is_unseen,
    plain::{is_private, plain_mark},
};

/// A citation has at most this many characters between its brackets.
const BRACKET_CHARS_MAX: usize = 80;

/// A part of an answer: a sentence with its citations, or what stands before the end of a line.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Piece {
    /// The text.
    pub(super) text: String,
    /// Whether its line begins with it.
    pub(super) starts_line: bool,
    /// Whether its line ends with it.
    pub(super) ends_line: bool,
}

/// What may end at a place that was reached.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Ending {
    /// Nothing.
    None,
    /// A sentence, if what follows is no part of it: its end in bytes, and whether a space came since.
    Sentence { end: usize, spaced: bool },
    /// As before, and a bracket is open since a place, which may be a citation of that sentence.
    Bracket { end: usize, open: usize },
}

/// Takes text in pieces of any size, and gives it back in sentences.
#[derive(Debug)]
pub(super) struct Cutter {
    buffer: String,
    /// Up to here everything was looked at.
    seen: usize,
    /// The mark that ends the quotation that is open.
    quote: Option<char>,
    before: Option<char>,
    ending: Ending,
    starts_line: bool,
}

impl Cutter {
    pub(super) fn new() -> Self {
        Self {
            buffer: String::new(),
            seen: 0,
            quote: None,
            before: None,
            ending: Ending::None,
            starts_line: true,
        }
    }

    /// Takes more text; hands over every piece that is complete.
    pub(super) fn push(&mut self, text: &str, mut each: impl FnMut(Piece)) {
        // Private letters mean something to us alone; see `clean`.
        self.buffer.extend(text.chars().filter(|c| !is_unseen(*c) && !is_private(*c)).map(plain_mark));
        while let Some(c) = self.buffer.get(self.seen..).and_then(|rest| rest.chars().next()) {
            if let Some(end) = self.step(c) {
                self.cut(end, &mut each);
            }
        }
    }

    /// Hands over what is left.
    pub(super) fn finish(mut self, mut each: impl FnMut(Piece)) {
        if let Ending::Sentence { end, .. } | Ending::Bracket { end, .. } = self.ending {
            self.cut(end, &mut each);
        }
        self.buffer.push('\n');
        let end = self.buffer.len();
        self.cut(end, &mut each);
    }

    fn cut(&mut self, end: usize, each: &mut impl FnMut(Piece)) {
        let rest = self.buffer.split_off(end.min(self.buffer.len()));
        let text = std::mem::replace(&mut self.buffer, rest);
        let ends_line = text.ends_with('\n');
        let starts_line = std::mem::replace(&mut self.starts_line, ends_line);
        // What was looked at beyond the cut is looked at again, as the beginning of the next piece.
        (self.seen, self.quote, self.before, self.ending) = (0, None, None, Ending::None);
        each(Piece { text: text.trim_end_matches('\n').to_owned(), starts_line, ends_line });
    }

    /// Looks at one character; returns where to cut, if it is certain now.
    fn step(&mut self, c: char) -> Option<usize> {
        let place = self.seen;
        self.seen += c.len_utf8();
        let before = self.before.replace(c);
        if c == '\n' {
            return Some(match self.ending {
                Ending::None => self.seen,
                // The line's end comes next, as a piece of its own where anything stands before it.
                Ending::Sentence { end, .. } | Ending::Bracket { end, .. } if self.has_more(end, place) => {
                    end
                }
                _ => self.seen,
            });
        }
        match self.ending {
            Ending::Bracket { end, open } => return self.in_bracket(c, end, open),
            Ending::Sentence { end, spaced } => {
                if let Some(decided) = self.after_sentence(c, place, end, spaced) {
                    return decided;
                }
            }
            Ending::None => {}
        }
        self.in_sentence(c, before);
        None
    }

    /// Whether there are words between two places.
    fn has_more(&self, from: usize, to: usize) -> bool {
        self.buffer.get(from..to).is_some_and(|text| !text.trim().is_empty())
    }

    /// Inside of a bracket behind a sentence.
    fn in_bracket(&mut self, c: char, end: usize, open: usize) -> Option<usize> {
        let inside = self.buffer.get(open..self.seen).unwrap_or_default();
        let is_citation = matches!(c, ']' | '】' | '］' | ')') && inside.chars().any(|c| c.is_ascii_digit());
        if is_citation {
            self.ending = Ending::Sentence { end: self.seen, spaced: false };
            return None;
        }
        let goes_on =
            matches!(c, ' ' | ',' | ';' | '-' | '–' | '—' | '&' | '^' | '#' | ':') || c.is_alphanumeric();
        if goes_on && inside.chars().count() <= BRACKET_CHARS_MAX { None } else { Some(end) }
    }

    /// Behind a sentence's last mark. `Some(Some(…))`: cut there. `Some(None)`: it goes on. None: it was none.
    fn after_sentence(&mut self, c: char, place: usize, end: usize, spaced: bool) -> Option<Option<usize>> {
        if c.is_whitespace() {
            self.ending = Ending::Sentence { end, spaced: true };
            return Some(None);
        }
        if matches!(c, '[' | '【' | '［' | '(') {
            self.ending = Ending::Bracket { end, open: place };
            return Some(None);
        }
        let closes =
            matches!(c, '"' | '”' | '“' | '’' | '\'' | '»' | '«' | '›' | '」' | '』' | ')' | ']' | '*' | '_');
        if !spaced && (closes || is_last_mark(c)) {
            self.ending = Ending::Sentence { end: self.seen, spaced: false };
            return Some(None);
        }
        let is_wide =
            self.buffer.get(..end).and_then(|text| text.chars().next_back()).is_some_and(|c| !c.is_ascii());
        if spaced || is_wide || self.buffer.get(..end).is_some_and(|text| text.ends_with([']', ')'])) {
            return Some(Some(end));
        }
        self.ending = Ending::None;
        None
    }

    fn in_sentence(&mut self, c: char, before: Option<char>) {
        if let Some(closing) = self.quote {
            let closes = c == closing || (closing == '”' && matches!(c, '"' | '“'));
            if closes {
                self.quote = None;
                if before.is_some_and(is_last_mark) {
                    self.ending = Ending::Sentence { end: self.seen, spaced: false };
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
            self.ending = Ending::Sentence { end: self.seen, spaced: false };
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

    fn cut(text: &str, step: usize) -> Vec<String> {
        let (mut cutter, mut pieces) = (Cutter::new(), Vec::new());
        let letters: Vec<char> = text.chars().collect();
        for part in letters.chunks(step) {
            cutter.push(&part.iter().collect::<String>(), |piece| pieces.push(piece));
        }
        cutter.finish(|piece| pieces.push(piece));
        let end = |piece: &Piece| if piece.ends_line { "|" } else { "" };
        pieces.iter().map(|piece| format!("{}{}", piece.text.trim(), end(piece))).collect()
    }

    fn check(text: &str, expect: &[&str]) {
        for step in [1, 3, 1_000] {
            let found: Vec<_> = cut(text, step).into_iter().filter(|piece| piece != "|").collect();
            assert_eq!(found, expect, "{text} by {step}");
        }
    }

    #[test]
    fn a_sentence_ends_with_the_citations_behind_it() {
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
    fn a_quotation_is_in_one_piece() {
        check("\"One. Two.\" [s1] Three.", &["\"One. Two.\" [s1]", "Three."]);
        check("He says “One! Two” twice. Then", &["He says “One! Two” twice.", "Then|"]);
        check("> One. Two. [s1]\nThree. Four", &["> One. Two. [s1]|", "Three.", "Four|"]);
        check("He said «A. B.» C", &["He said «A. B.»", "C|"]);
        check("Never “closed. At all.\nNext. One", &["Never “closed. At all.|", "Next.", "One|"]);
    }

    proptest! {
        #[test]
        fn nothing_is_lost_and_sizes_do_not_matter(text in "[ab .!?\"“”\\[\\]()s1。\n>']{0,60}", step in 1..9_usize) {
            let whole = cut(&text, 10_000);
            prop_assert_eq!(&cut(&text, step), &whole);
            let dense = |text: &str| -> String { text.chars().filter(|c| !c.is_whitespace() && *c != '|').collect() };
            prop_assert_eq!(dense(&whole.concat()), dense(&text));
        }
    }
}
