//! Parses a sentence into text, quotations and cited passages.

use super::{
    super::{common_words::is_common_word, fold::fold},
    normalize::{has_apostrophes, is_single_mark, normalize_sentence},
    numbers::{
        DIGITS_MAX, NUMBERS_MAX, ascii_digit, is_cut_citation, is_letter_s, is_like_number, is_named_passage,
        is_time, number, numbers,
    },
    passage_names::PassageNames,
    quotation_marks::closing_marks,
    sanitize::link_target_length,
};

/// Maximum of characters between the brackets of a citation.
const BRACKET_CHARS_MAX: usize = 80;
/// Maximum of characters of a word that are read.
const LEAD_CHARS_MAX: usize = 16;
/// Shortest word before a superscript footnote; after a shorter word, the number is a power.
const FOOTNOTE_WORD_MIN: usize = 4;

#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum SentencePart {
    /// Text of the model.
    Text(String),
    /// Text of a quotation, without its marks.
    Quote(String),
    /// A quotation without a closing mark.
    Unclosed,
    /// Numbers of cited passages.
    Cites(Vec<u32>),
}

/// Parses a sentence.
///
/// Text contains no square bracket and no link target. A word in `names` is text, even if it looks like a passage
/// number.
pub(super) fn parse_sentence(sentence: &str, names: &PassageNames) -> Vec<SentencePart> {
    let plain = normalize_sentence(sentence);
    match split_block_quotation(&plain) {
        Some((lead, quoted)) => parse_block_quotation(lead, quoted, names),
        None => parse_text(&plain, names),
    }
}

/// Splits a line that is a block quotation, also as a list item, into its prefix and its text.
fn split_block_quotation(plain: &str) -> Option<(&str, &str)> {
    let (lead, quoted) = plain.split_once('>')?;
    let mark = lead.trim();
    let number = mark.trim_end_matches(['.', ')']);
    let is_item = matches!(mark, "-" | "*" | "+" | "•")
        || (number.len() < mark.len() && number.chars().all(|c| c.is_ascii_digit()));
    let is_lead = mark.is_empty() || (is_item && lead.ends_with(char::is_whitespace));
    is_lead.then_some((lead, quoted))
}

/// Parses a line that is a block quotation.
fn parse_block_quotation(lead: &str, quoted: &str, names: &PassageNames) -> Vec<SentencePart> {
    let (mut text, mut cites) = (String::new(), Vec::new());
    for part in parse_text(quoted.trim_start_matches(|c: char| c == '>' || c.is_whitespace()), names) {
        match part {
            SentencePart::Text(more) | SentencePart::Quote(more) => text.push_str(&more),
            SentencePart::Cites(numbers) => cites.push(SentencePart::Cites(numbers)),
            SentencePart::Unclosed => {}
        }
    }
    let lead = (!lead.is_empty()).then(|| SentencePart::Text(lead.to_owned()));
    let quote = SentencePart::Quote(text.trim().to_owned());
    lead.into_iter().chain([quote]).chain(cites).collect()
}

fn parse_text(plain: &str, names: &PassageNames) -> Vec<SentencePart> {
    let letters = remove_links(&plain.chars().collect::<Vec<_>>());
    let mut parser = SentenceParser {
        letters: &letters,
        names,
        at: 0,
        text: String::new(),
        parts: Vec::new(),
        unclosed_marks: Vec::new(),
    };
    while parser.at < letters.len() {
        parser.parse_next();
    }
    parser.end_text();
    parser.parts
}

/// Replaces links and images by their text.
fn remove_links(letters: &[char]) -> Vec<char> {
    let (mut plain, mut at) = (Vec::with_capacity(letters.len()), 0);
    while let Some(c) = letters.get(at) {
        let link = (*c == '[').then(|| parse_link(letters, at)).flatten();
        match link {
            Some((words, end)) => {
                if plain.last() == Some(&'!') {
                    plain.pop();
                }
                plain.extend(words.iter().map(|c| if matches!(c, '[' | '【' | '［') { '(' } else { *c }));
                at = end;
            }
            None => {
                plain.push(*c);
                at += 1;
            }
        }
    }
    plain
}

/// Text and end of the link that starts at `at`; `None` if there is no link.
fn parse_link(letters: &[char], at: usize) -> Option<(&[char], usize)> {
    let rest = letters.get(at + 1..)?;
    let end = at + 1 + rest.iter().take(BRACKET_CHARS_MAX).position(|c| *c == ']')?;
    let target = letters.get(end + 1..).filter(|rest| rest.first() == Some(&'('))?;
    let words = letters.get(at + 1..end)?;
    let inside: String = words.iter().collect();
    if numbers(&inside, false).is_some() || is_time(&inside) {
        return None;
    }
    Some((words, end + 1 + link_target_length(target)))
}

struct SentenceParser<'a> {
    letters: &'a [char],
    names: &'a PassageNames,
    at: usize,
    text: String,
    parts: Vec<SentencePart>,
    /// Opening marks for which no closing mark follows.
    unclosed_marks: Vec<char>,
}

impl SentenceParser<'_> {
    fn peek(&self, ahead: usize) -> Option<char> {
        self.letters.get(self.at + ahead).copied()
    }

    fn before(&self) -> Option<char> {
        self.letters.get(self.at.checked_sub(1)?).copied()
    }

    fn end_text(&mut self) {
        if !self.text.is_empty() {
            self.parts.push(SentencePart::Text(std::mem::take(&mut self.text)));
        }
    }

    fn add(&mut self, part: SentencePart) {
        self.end_text();
        self.parts.push(part);
    }

    fn parse_next(&mut self) {
        let Some(c) = self.peek(0) else { return };
        match c {
            '[' | '【' | '［' | '{' | '〔' | '〖' | '⟦' | '❲' | '⦗' => self.parse_bracket(c),
            ']' | '】' | '］' => self.push_char(')'),
            '(' => self.parse_parenthesis(),
            '!' if self.peek(1) == Some('[') => self.at += 1,
            c if c.is_alphabetic() && !self.before().is_some_and(char::is_alphanumeric) => self.parse_word(c),
            '`' => self.at += 1,
            '⁰' | '¹' | '²' | '³' | '⁴'..='⁹' if self.is_footnote() => self.at += 1,
            _ => match closing_marks(c) {
                Some(marks) => self.parse_quotation(c, marks),
                None => self.push_char(c),
            },
        }
    }

    fn push_char(&mut self, c: char) {
        self.text.push(c);
        self.at += 1;
    }

    /// Index of the first character from `from` on that satisfies `ends`, within `limit` characters.
    fn find_end(&self, from: usize, limit: usize, ends: impl Fn(char) -> bool) -> Option<usize> {
        let rest = self.letters.get(from..)?;
        rest.iter().take(limit).position(|c| ends(*c)).map(|index| from + index)
    }

    fn span(&self, from: usize, to: usize) -> String {
        self.letters.get(from..to).unwrap_or_default().iter().collect()
    }

    fn parse_bracket(&mut self, open: char) {
        let from = self.at + 1;
        // Every bracket that Markdown reads is replaced, except those of the service's markers.
        let shown = if matches!(open, '[' | '【' | '［') { '(' } else { open };
        let closes = |c| matches!(c, ']' | '】' | '］' | '}' | '〕' | '〗' | '⟧' | '❳' | '⦘');
        let Some(end) = self.find_end(from, BRACKET_CHARS_MAX, closes) else {
            return self.parse_unclosed_bracket(shown);
        };
        let inside = self.span(from, end);
        if let Some(numbers) = numbers(&inside, shown == open) {
            self.add(SentencePart::Cites(numbers));
            self.at = end + 1;
        } else if is_time(&inside) {
            // A time written by the model.
            self.at = end + 1;
        } else if is_like_number(&inside) {
            self.add_unknown_citation(end);
        } else {
            self.push_char(shown);
        }
    }

    /// Parses a bracket that is never closed; the start of a citation may be that of a longer number, and is dropped.
    fn parse_unclosed_bracket(&mut self, shown: char) {
        let rest = self.letters.get(self.at + 1..).unwrap_or_default();
        match rest.len() <= BRACKET_CHARS_MAX && is_cut_citation(&rest.iter().collect::<String>()) {
            true => self.at = self.letters.len(),
            false => self.push_char(shown),
        }
    }

    /// Adds a citation of a passage that the model was not given.
    fn add_unknown_citation(&mut self, end: usize) {
        self.add(SentencePart::Cites(vec![u32::MAX]));
        self.at = end + 1;
    }

    /// Parses a citation in round brackets that contain nothing else.
    fn parse_parenthesis(&mut self) {
        let end = self.find_end(self.at + 1, BRACKET_CHARS_MAX, |c| c == ')');
        let inside = end.map(|end| self.span(self.at + 1, end)).unwrap_or_default();
        match (end, numbers(&inside, true)) {
            (Some(end), Some(numbers)) => {
                self.add(SentencePart::Cites(numbers));
                self.at = end + 1;
            }
            (Some(end), None) if is_time(&inside) => self.at = end + 1,
            (Some(end), None) if is_like_number(&inside) => self.add_unknown_citation(end),
            (None, _) if self.peek(1).is_some_and(is_letter_s) => self.parse_unclosed_bracket('('),
            _ => self.push_char('('),
        }
    }

    /// Parses a word, which may be a passage number without brackets: `s17`, `S17`, `passage 17`.
    fn parse_word(&mut self, first: char) {
        let lead: String = self
            .letters
            .iter()
            .skip(self.at)
            .take(LEAD_CHARS_MAX)
            .take_while(|c| c.is_alphabetic())
            .collect();
        let length = lead.chars().count();
        let is_named = is_named_passage(&lead) && matches!(self.peek(length), Some(' ' | '\u{A0}'));
        let skip = match () {
            () if length == 1 && is_letter_s(first) => length,
            () if is_named => length + 1,
            () => return self.push_char(first),
        };
        let digits = self.letters.iter().skip(self.at + skip).take(DIGITS_MAX + 1);
        let digits: String = digits.map_while(|c| ascii_digit(*c)).collect();
        let is_longer = self.peek(skip + digits.len()).is_some_and(char::is_alphanumeric);
        let is_name =
            self.names.has(&lead, &digits) || (!is_named && first.is_uppercase() && self.follows_name());
        match number(&digits, false) {
            Some(number) if !is_longer && !is_name => {
                self.at += skip + digits.len();
                let is_plural = is_named && lead.ends_with(['s', 'S']);
                let numbers = if is_plural { self.following_numbers(number) } else { vec![number] };
                self.add(SentencePart::Cites(numbers));
            }
            _ => self.push_char(first),
        }
    }

    /// Parses the numbers that follow a number: `4, 5 and 6`.
    fn following_numbers(&mut self, first: u32) -> Vec<u32> {
        let mut numbers = vec![first];
        while numbers.len() < NUMBERS_MAX {
            let rest: String = self.letters.iter().skip(self.at).take(5 + DIGITS_MAX).collect();
            let separators = [", and ", " and ", ", ", " & ", "-", "–"];
            let Some(separator) = separators.into_iter().find(|separator| rest.starts_with(separator)) else {
                break;
            };
            let following = rest.get(separator.len()..).unwrap_or_default();
            let digits: String = following.chars().map_while(ascii_digit).collect();
            let Some(next) = number(&digits, false) else { break };
            self.at += separator.chars().count() + digits.len();
            numbers.push(next);
        }
        numbers
    }

    /// Whether a name precedes, as in "Galaxy S23".
    fn follows_name(&self) -> bool {
        let mut before = self.letters.get(..self.at).unwrap_or_default().iter().rev().copied();
        if !before.next().is_some_and(|c| matches!(c, ' ' | '-' | '\u{A0}')) {
            return false;
        }
        let mut word: Vec<char> = before.take_while(|c| c.is_alphanumeric()).take(LEAD_CHARS_MAX).collect();
        word.reverse();
        let (first, word): (_, String) = (word.first().copied(), word.into_iter().collect());
        let is_number = word.strip_prefix(is_letter_s).is_some_and(|rest| rest.chars().all(char::is_numeric));
        first.is_some_and(char::is_uppercase)
            && !is_number
            && !is_named_passage(&word)
            && !is_common_word(&fold(&word))
    }

    /// Whether a superscript number is a footnote: after a word or a mark. After "10" or "(a + b)" it is a power.
    fn is_footnote(&self) -> bool {
        let before = self.letters.get(..self.at).unwrap_or_default().iter().rev().take(LEAD_CHARS_MAX);
        let mut before = before.copied().skip_while(|c| matches!(c, '¹' | '²' | '³' | '⁰'..='⁻'));
        let word = before.clone().take_while(|c| c.is_alphabetic()).count();
        let is_behind_mark = match (before.next(), before.next(), before.next()) {
            (Some(')'), Some(last), Some(next)) => !last.is_alphanumeric() || next.is_alphabetic(),
            (last, ..) => last.is_some_and(|c| !c.is_alphanumeric()),
        };
        word >= FOOTNOTE_WORD_MIN || is_behind_mark
    }

    fn parse_quotation(&mut self, open: char, marks: &[char]) {
        let from = self.at + 1;
        let is_single = is_single_mark(open);
        if is_single && !self.opens_single_quotation(open) {
            return self.push_char(open);
        }
        let is_closed = !self.unclosed_marks.contains(&open);
        match is_closed.then(|| self.closing_index(from, open, marks, is_single)).flatten() {
            Some(end) => {
                let inside = self.span(from, end);
                self.end_text();
                self.at = end + 1;
                self.parse_inside_quote(&inside);
            }
            None if is_single => {
                self.unclosed_marks.push(open);
                self.push_char(open);
            }
            // An inch sign, or a closing mark without an opening one.
            None if self.before().is_some_and(|c| c.is_alphanumeric() || c == '.') => self.at += 1,
            None => {
                self.unclosed_marks.push(open);
                self.add(SentencePart::Unclosed);
                self.at += 1;
            }
        }
    }

    /// Whether a single mark opens a quotation and is not an apostrophe.
    fn opens_single_quotation(&self, open: char) -> bool {
        let is_free = self.before().is_none_or(|c| !has_apostrophes(c));
        let is_sure = matches!(open, '‘' | '‚');
        let next = self.peek(1);
        is_free && next.is_some_and(|c| is_sure || !c.is_whitespace())
    }

    fn closing_index(&self, from: usize, open: char, marks: &[char], is_single: bool) -> Option<usize> {
        let rest = self.letters.get(from..)?;
        let closes = |index: usize, c: char| {
            let at = from + index;
            let (before, after) = (self.letters.get(at.wrapping_sub(1)), self.letters.get(at + 1));
            let is_letter = |c: Option<&char>| c.is_some_and(|c| has_apostrophes(*c));
            let opens =
                before.is_none_or(|c| c.is_whitespace()) && after.is_some_and(|c| c.is_alphanumeric());
            let is_apostrophe = is_letter(before) && is_letter(after);
            marks.contains(&c) && !(is_single && (is_apostrophe || opens))
        };
        let first = marks.first().copied();
        let matching = rest.iter().position(|c| first == Some(*c)).filter(|_| !is_single);
        let next_opening = rest.iter().position(|c| *c == open).unwrap_or(usize::MAX);
        let any_closing = || rest.iter().enumerate().position(|(index, c)| closes(index, *c));
        // The matching closing mark comes before others, unless another quotation starts first.
        matching
            .filter(|matching| *matching < next_opening || first == Some(open))
            .or_else(any_closing)
            .map(|index| from + index)
    }

    /// Parses the inside of a quotation: its words, and citations inside it.
    fn parse_inside_quote(&mut self, inside: &str) {
        if let Some(numbers) = numbers(inside, true) {
            return self.add(SentencePart::Cites(numbers));
        }
        let (mut words, mut cites) = (String::new(), Vec::new());
        let mut rest = inside;
        while let Some((before, after)) = rest.split_once('[') {
            words.push_str(&before.replace(']', ")"));
            let inner = after.split_once(']').filter(|(inner, _)| inner.len() <= BRACKET_CHARS_MAX);
            match inner.map(|(inner, after)| (numbers(inner, false), after)) {
                Some((Some(numbers), after)) => {
                    cites.push(SentencePart::Cites(numbers));
                    rest = after;
                }
                _ => {
                    words.push('(');
                    rest = after;
                }
            }
        }
        words.push_str(&rest.replace(']', ")"));
        // Code marks, as outside a quotation: a short one is written as it is.
        words.retain(|c| c != '`');
        self.parts.push(SentencePart::Quote(words.trim().to_owned()));
        self.parts.extend(cites);
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn render(sentence: &str) -> String {
        let shown = |part: SentencePart| match part {
            SentencePart::Text(text) => text,
            SentencePart::Quote(text) => format!("{{{text}}}"),
            SentencePart::Unclosed => "{!}".to_owned(),
            SentencePart::Cites(numbers) => format!("{numbers:?}"),
        };
        parse_sentence(sentence, &PassageNames::default()).into_iter().map(shown).collect()
    }

    #[test]
    fn parser_citations_in_all_model_forms_are_read() {
        for (sentence, expect) in [
            ("A [s1].", "A [1]."),
            ("A [s1, s2][S3]", "A [1, 2][3]"),
            ("A [s4-s6] [s7–9]", "A [4, 5, 6] [7, 8, 9]"),
            ("A [12] [^3] (s4) 【s5】", "A [12] [3] [4] [5]"),
            ("A [passage 4 and 5], as s6 says", "A [4, 5], as [6] says"),
            ("A [s1-s999]", "A [1, 999]"),
            ("As S99 says, S4 and s5", "As [99] says, [4] and [5]"),
            ("A (S4) [S5], see S6.", "A [4] [5], see [6]."),
            ("The Galaxy S23, an Audi-S4, S98 S99", "The Galaxy S23, an Audi-S4, [98] [99]"),
            ("In passage 12 and Segment 3 it is", "In [12] and [3] it is"),
            ("In passages 4, 5 and 6 it is", "In [4, 5, 6] it is"),
            ("A [s:4] (s-4) [s.4x] (S3 bucket)", "A [4294967295] [4294967295] [4294967295] ([3] bucket)"),
            ("A {s4} 〔s5〕 [s\u{200D}6] *s7* ⟨s8⟩ {12} {x}", "A [4] [5] [6] *[7]* [8] {12} {x}"),
            ("The pier¹² broke.² 5 m² and x³", "The pier broke. 5 m² and x³"),
            ("10⁸ m, 10⁻¹⁶ m⁻² (a + b)² (the old one)²", "10⁸ m, 10⁻¹⁶ m⁻² (a + b)² (the old one)"),
            ("A [s１７] [s٣]", "A [17] [3]"),
            ("A [s17a] (S2b) [s1234567890123456789]", "A [4294967295] [4294967295] [4294967295]"),
            ("the [Music] (2020) s3x [s99999999]", "the (Music) (2020) s3x [99999999]"),
            ("It is [1:23] or (0:01-0:05) or [１：２３]", "It is  or  or "),
            ("a [link](http://x.y) ![i](z) [j](k(1)) [l](m (n) o", "a link i j l o"),
            ("A [s4][s1", "A [4]"),
        ] {
            assert_eq!(render(sentence), expect, "{sentence}");
        }
    }

    #[test]
    fn parser_quotations_in_every_style_are_found() {
        for (sentence, expect) in [
            ("He says \"a b\" and “c d”.", "He says {a b} and {c d}."),
            ("„a“ «b» »c« 「d」 『e』", "{a} {b} {c} {d} {e}"),
            ("He says 'don't do it' [s1]", "He says {don't do it} [1]"),
            ("It's the dogs' bone", "It's the dogs' bone"),
            ("‘It’s here’ she said", "{It’s here} she said"),
            ("“a \"b\" c”", "{a \"b\" c}"),
            ("\"a [s3]\" b", "{a}[3] b"),
            ("a 5\" disk", "a 5 disk"),
            ("He says \"never closed", "He says {!}never closed"),
            ("&quot;a b&quot; ``c d''", "{a b} {c d}"),
            ("> a “b” c [s1]", "{a b c}[1]"),
            ("”svensk”", "{svensk}"),
            ("’svensk’ and ‘ a ’", "{svensk} and {a}"),
            ("'우리가 모든 배를 불태웠다'고", "{우리가 모든 배를 불태웠다}고"),
            ("他说‘我们烧了所有的船’了", "他说{我们烧了所有的船}了"),
            ("❛a b❜ ´c d´ ＇e f＇ ′g h′ ‛i j‛", "{a b} {c d} {e f} {g h} {i j}"),
            ("〝a〟 ﹁b﹂ ﹃c﹄ 《d》 ״e f״ ❮g❯ 🙶h🙷 ⹂i⹂", "{a} {b} {c} {d} {e f} {g} {h} {i}"),
            ("['a b'](x) [s3]", "{a b} [3]"),
            ("- > a b [s3]", "- {a b}[3]"),
            ("1. > a b [s3]", "1. {a b}[3]"),
            ("&#10;&gt; a b", " {a b}"),
            ("-> a > b", "-> a > b"),
        ] {
            assert_eq!(render(sentence), expect, "{sentence}");
        }
    }

    #[test]
    fn parser_repeated_marks_have_bounded_parts() {
        for mark in [">\u{A0}", "> ", "«", " 'a", "[", "\"[", "[a](", "&gt;"] {
            let count = 32_000 / mark.len();
            let found = parse_sentence(&format!("{}x", mark.repeat(count)), &PassageNames::default());
            assert!(found.len() <= count + 1, "{mark}");
        }
    }

    proptest! {
        #[test]
        fn parser_any_text_leaves_no_square_bracket(sentence in "[a \"'“”„«»\\[\\]()s1:>`!]{0,40}") {
            for part in parse_sentence(&sentence, &PassageNames::default()) {
                if let SentencePart::Text(text) | SentencePart::Quote(text) = part {
                    prop_assert!(!text.contains(['[', ']']), "{}", text);
                }
            }
        }
    }
}
