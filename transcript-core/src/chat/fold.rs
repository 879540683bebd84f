//! Text reduced to the letters and digits in which a quotation must agree with what was said.
//!
//! Case, Unicode form, accents, punctuation and white space are folded away. That is safe because a quotation is
//! never sent as the model wrote it: what leaves is the transcript's own text at the place that was found.

use std::{iter::once, ops::Range};

use icu_normalizer::DecomposingNormalizerBorrowed;
use unicode_script::{Script, UnicodeScript};

use crate::transcript::is_unspaced;

const NFKD: DecomposingNormalizerBorrowed<'static> = DecomposingNormalizerBorrowed::new_nfkd();

/// How many places of a quotation are looked at before one inside of words is taken.
const PLACES_MAX: usize = 32;
/// The most letters by which a range is widened at either end to be whole words.
const WIDENED_MAX: usize = 64;
/// A range is taken to hold too little of what is looked for when it is so many times as long, and these bytes more.
const LONGER_MAX: usize = 8;
const LONGER_BYTES: usize = 256;

/// Hands over each letter and digit of a character's folded form; none for marks, punctuation and white space.
pub(super) fn fold_char(c: char, mut each: impl FnMut(char)) {
    if c.is_ascii() {
        if c.is_ascii_alphanumeric() {
            each(c.to_ascii_lowercase());
        }
        return;
    }
    for part in NFKD.normalize_iter(once(c)).filter(|part| part.is_alphanumeric()) {
        for letter in part.to_lowercase() {
            match letter {
                'ς' => each('σ'),
                'ß' => {
                    each('s');
                    each('s');
                }
                // The dot of a Turkish capital letter is a mark of its own in lower case.
                letter if letter.is_alphanumeric() => each(letter),
                _ => {}
            }
        }
    }
}

/// A text's letters and digits, folded.
pub(super) fn fold(text: &str) -> String {
    let mut folded = String::with_capacity(text.len());
    for c in text.chars() {
        fold_char(c, |letter| folded.push(letter));
    }
    folded
}

/// Where the words stand in `text` that fold to `wanted`, as a range of its bytes that begins and ends with whole
/// words. `folded` is the text, folded. A place between words comes before one that begins or ends inside of one.
pub(super) fn find(text: &str, folded: &str, wanted: &str) -> Option<Range<usize>> {
    if wanted.is_empty() {
        return None;
    }
    let mut walk = Walk { text, at: 0, end: 0, reached: 0 };
    let (mut first, longest) = (None, wanted.len() * LONGER_MAX + LONGER_BYTES);
    for (place, _) in folded.match_indices(wanted).take(PLACES_MAX) {
        let Some(exact) = walk.source(place..place + wanted.len()) else { break };
        let Some(whole) = whole_words(text, exact.clone()).filter(|whole| whole.len() <= longest) else {
            continue;
        };
        if whole == exact {
            return Some(whole);
        }
        first.get_or_insert(whole);
    }
    first
}

/// A walk through a text along its folded form, once from its beginning to its end.
struct Walk<'a> {
    text: &'a str,
    /// The last character that was passed, and its end.
    at: usize,
    end: usize,
    /// How many bytes of the folded form end with it.
    reached: usize,
}

impl Walk<'_> {
    /// The bytes whose folded form has these bytes, which are not before those of the last call.
    fn source(&mut self, folded: Range<usize>) -> Option<Range<usize>> {
        self.reach(folded.start + 1)?;
        let start = self.at;
        self.reach(folded.end)?;
        let marks = self.text.get(self.end..).unwrap_or_default().chars().take_while(|c| is_mark(*c));
        let marks: usize = marks.take(WIDENED_MAX).map(char::len_utf8).sum();
        Some(start..self.end + marks)
    }

    fn reach(&mut self, folded: usize) -> Option<()> {
        while self.reached < folded {
            let c = self.text.get(self.end..)?.chars().next()?;
            self.at = self.end;
            self.end += c.len_utf8();
            fold_char(c, |letter| self.reached += letter.len_utf8());
        }
        Some(())
    }
}

/// The range, widened to the words in which it begins and ends; none where these have no end near by.
fn whole_words(text: &str, range: Range<usize>) -> Option<Range<usize>> {
    let inside = |c: &char| (c.is_alphanumeric() || is_mark(*c)) && !is_unspaced(*c);
    let piece = text.get(range.clone()).unwrap_or_default();
    let (mut start, mut end) = (range.start, range.end);
    if piece.chars().next().is_some_and(|c| inside(&c)) {
        let before = text.get(..range.start).unwrap_or_default().chars().rev();
        start -= length(before.take_while(inside))?;
    }
    if piece.chars().next_back().is_some_and(|c| inside(&c)) {
        let after = text.get(range.end..).unwrap_or_default().chars();
        end += length(after.take_while(inside))?;
    }
    Some(start..end)
}

/// The bytes of letters, where these are not too many.
fn length(letters: impl Iterator<Item = char>) -> Option<usize> {
    let (mut bytes, mut count) = (0, 0);
    for c in letters.take(WIDENED_MAX + 1) {
        bytes += c.len_utf8();
        count += 1;
    }
    (count <= WIDENED_MAX).then_some(bytes)
}

/// Whether a character only changes the letter before it.
pub(super) fn is_mark(c: char) -> bool {
    !c.is_ascii() && !c.is_alphanumeric() && !c.is_whitespace() && c.script() != Script::Common
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn found<'a>(text: &'a str, quoted: &str) -> Option<&'a str> {
        find(text, &fold(text), &fold(quoted)).and_then(|range| text.get(range))
    }

    #[test]
    fn one_text_in_many_forms_is_one() {
        for (one, other) in [
            ("Don’t — stop!", "don't stop"),
            ("ＦＵＬＬ　ｗｉｄｔｈ", "full width"),
            ("caf\u{e9}", "cafe\u{301}"),
            ("ΟΔΟΣ", "οδός"),
            ("Straße", "STRASSE"),
            ("İstanbul", "istanbul"),
            ("한국어", "\u{1112}\u{1161}\u{11ab}\u{1100}\u{116e}\u{11a8}\u{110b}\u{1165}"),
            ("你好，世界。", "你好 世界"),
            ("ﬁne", "fine"),
        ] {
            assert_eq!(fold(one), fold(other), "{one} {other}");
        }
        assert_ne!(fold("strict rules"), fold("relaxed rules"));
        assert_ne!(fold("3.5 percent"), fold("3.6 percent"));
        assert_eq!(fold("…—“”[]()"), "");
    }

    #[test]
    fn what_is_found_is_the_texts_own_and_whole_words() {
        check(
            "So, it's *really* simple: 3.5 percent.",
            "its really simple 35 percent",
            "it's *really* simple: 3.5 percent",
        );
        check("all fifteen million people", "teen million peop", "fifteen million people");
        // Between words comes first.
        check("party of warning. The art of war.", "art of war", "art of war");
        check("他说：“今天天气很好”，然后走了", "今天天气很好", "今天天气很好");
        check("le caf\u{301}e\u{301}", "cafe", "caf\u{301}e\u{301}");
        check("หลังจากนั้นน้ำก็ท่วม", "น้ำก็ท่วม", "น้ำก็ท่วม");
        // A word without end is none, and so is a text with hardly a letter.
        let endless = "z".repeat(5_000);
        assert_eq!(found(&endless, "zzzzzzzzzzzz"), None);
        assert_eq!(found(&format!("a{}b", ".".repeat(5_000)), "ab"), None);
        assert_eq!(found("the rules are strict", "the rules are relaxed"), None);
        assert_eq!(found("anything", "?!"), None);
        assert_eq!(found("", "a"), None);
    }

    fn check(text: &str, quoted: &str, expect: &str) {
        assert_eq!(found(text, quoted), Some(expect));
    }

    proptest! {
        #[test]
        fn every_piece_of_a_text_is_found_in_it(text in "[a-z çéÄß.,'你好ก้ำ한ς½-]{1,40}", from in 0..40_usize, count in 1..40_usize) {
            let piece: String = text.chars().skip(from).take(count).collect();
            let wanted = fold(&piece);
            let range = find(&text, &fold(&text), &wanted);
            prop_assert_eq!(range.is_some(), !wanted.is_empty());
            if let Some(range) = range {
                let folded = fold(text.get(range).unwrap());
                prop_assert!(folded.contains(&wanted), "{} {}", folded, wanted);
            }
        }

        #[test]
        fn any_text_folds_and_is_searched(text in "\\PC{0,60}", quoted in "\\PC{0,20}") {
            if let Some(range) = find(&text, &fold(&text), &fold(&quoted)) {
                prop_assert!(text.get(range).is_some());
            }
        }
    }
}
