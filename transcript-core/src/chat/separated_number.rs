//! Numbers in digits with separators, such as `12,000` and, in India, `12,34,567`.

use std::ops::Range;

/// Most digits of the first group and all digits of the last one, and of the groups between them in India; and most
/// groups.
const GROUP_DIGITS: usize = 3;
const PAIR_DIGITS: usize = 2;
const GROUPS_MAX: usize = 10;

/// The groups of digits of a number so far.
#[derive(Debug, Default)]
pub(super) struct SeparatedNumber {
    digits: String,
    range: Range<usize>,
    groups: usize,
    /// How many groups of two digits follow the first one. A group of three ends such a number.
    pairs: usize,
    separator: Option<char>,
}

impl SeparatedNumber {
    /// Whether a word that starts here, with this separator before it, is the next group.
    pub(super) fn continues_with(&self, word: &str, start: usize, separator: Option<char>) -> bool {
        let Some(character) = separator.filter(|character| is_separator(*character)) else { return false };
        let is_adjacent = start == self.range.end + 1 && (1..GROUPS_MAX).contains(&self.groups);
        let is_same = self.groups == 1 || self.separator == separator;
        let fits = match word.len() {
            GROUP_DIGITS => self.pairs == 0 || self.has_pairs_only(),
            // The first group has no more digits than these.
            PAIR_DIGITS => {
                character == ',' && self.has_pairs_only() && self.digits.len() <= PAIR_DIGITS * self.groups
            }
            _ => false,
        };
        is_adjacent && is_same && fits && is_in_digits(word)
    }

    /// Adds a word that continues the number, or that begins one after [`SeparatedNumber::clear`].
    pub(super) fn add(&mut self, word: &str, range: &Range<usize>, separator: Option<char>) {
        if word.len() > GROUP_DIGITS || !is_in_digits(word) {
            return;
        }
        let is_first = self.groups == 0;
        let start = if is_first { range.start } else { self.range.start };
        self.range = start..range.end;
        self.digits.push_str(word);
        self.groups += 1;
        self.pairs += usize::from(!is_first && word.len() == PAIR_DIGITS);
        self.separator = separator;
    }

    /// The digits of all groups; `None` if they are no number with separators.
    pub(super) fn digits(&self) -> Option<&str> {
        (self.groups > 1 && !self.has_pairs_only()).then_some(self.digits.as_str())
    }

    /// The range of all groups in the texts.
    pub(super) fn range(&self) -> Range<usize> {
        self.range.clone()
    }

    /// Removes all groups.
    pub(super) fn clear(&mut self) {
        self.digits.clear();
        (self.groups, self.pairs) = (0, 0);
    }

    /// Whether each group behind the first one has two digits.
    fn has_pairs_only(&self) -> bool {
        self.groups == self.pairs + 1
    }
}

/// Whether a word has only digits of ASCII.
pub(super) fn is_in_digits(word: &str) -> bool {
    word.bytes().all(|byte| byte.is_ascii_digit())
}

/// Whether a character may stand between the thousands of a number. A plain space is between two numbers, too.
fn is_separator(c: char) -> bool {
    matches!(c, ',' | '.' | '\'' | '’' | '\u{A0}' | '\u{2009}' | '\u{202F}')
}
