//! Takes a sentence apart: its text, its quotations, and the passages that it cites.

use super::{
    super::{common_words::is_common_word, fold::fold},
    names::Names,
    numbers::{
        DIGITS_MAX, NUMBERS_MAX, ascii_digit, is_like_number, is_moment, is_named_passage, is_s, number,
        numbers,
    },
    plain::{has_apostrophes, is_single_mark, plain},
};

/// A citation has at most this many characters between its brackets.
const BRACKET_CHARS_MAX: usize = 80;
/// How much of a word is looked at, in characters.
const LEAD_CHARS_MAX: usize = 16;
/// Behind a word of so many letters a raised number is a footnote's; behind a shorter one it is a power.
const NOTED_WORD_MIN: usize = 4;

/// A part of a sentence.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Part {
    /// Words of the model's own.
    Text(String),
    /// What it says somebody said, without the marks around it.
    Quote(String),
    /// A quotation that is never closed.
    Unclosed,
    /// The numbers of passages that it names.
    Cites(Vec<u32>),
}

/// Takes a sentence apart. No part's text has a square bracket in it, nor a link's target. What looks like a passage's
/// number and is one of `names` is a word like any other.
pub(super) fn parts(sentence: &str, names: &Names) -> Vec<Part> {
    let plain = plain(sentence);
    match block(&plain) {
        Some((lead, quoted)) => block_parts(lead, quoted, names),
        None => read(&plain, names),
    }
}

/// What stands before and in a line that is a quotation as a whole, also as an item of a list.
fn block(plain: &str) -> Option<(&str, &str)> {
    let (lead, quoted) = plain.split_once('>')?;
    let mark = lead.trim();
    let number = mark.trim_end_matches(['.', ')']);
    let is_item = matches!(mark, "-" | "*" | "+" | "•")
        || (number.len() < mark.len() && number.chars().all(|c| c.is_ascii_digit()));
    let is_lead = mark.is_empty() || (is_item && lead.ends_with(char::is_whitespace));
    is_lead.then_some((lead, quoted))
}

/// The parts of a line that is a quotation as a whole.
fn block_parts(lead: &str, quoted: &str, names: &Names) -> Vec<Part> {
    let (mut text, mut cites) = (String::new(), Vec::new());
    for part in read(quoted.trim_start_matches(|c: char| c == '>' || c.is_whitespace()), names) {
        match part {
            Part::Text(more) | Part::Quote(more) => text.push_str(&more),
            Part::Cites(numbers) => cites.push(Part::Cites(numbers)),
            Part::Unclosed => {}
        }
    }
    let lead = (!lead.is_empty()).then(|| Part::Text(lead.to_owned()));
    let quote = Part::Quote(text.trim().to_owned());
    lead.into_iter().chain([quote]).chain(cites).collect()
}

fn read(plain: &str, names: &Names) -> Vec<Part> {
    let letters = without_links(&plain.chars().collect::<Vec<_>>());
    let never_closed = Vec::new();
    let mut reader =
        Reader { letters: &letters, names, at: 0, text: String::new(), parts: Vec::new(), never_closed };
    while reader.at < letters.len() {
        reader.step();
    }
    reader.end_text();
    reader.parts
}

/// The words of links and images, without their targets.
fn without_links(letters: &[char]) -> Vec<char> {
    let (mut plain, mut at) = (Vec::with_capacity(letters.len()), 0);
    while let Some(c) = letters.get(at) {
        let link = (*c == '[').then(|| link(letters, at)).flatten();
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

/// The words of the link that begins at a place, and where it ends.
fn link(letters: &[char], at: usize) -> Option<(&[char], usize)> {
    let rest = letters.get(at + 1..)?;
    let end = at + 1 + rest.iter().take(BRACKET_CHARS_MAX).position(|c| *c == ']')?;
    let target = letters.get(end + 1..).filter(|rest| rest.first() == Some(&'('))?;
    let words = letters.get(at + 1..end)?;
    let inside: String = words.iter().collect();
    if numbers(&inside, false).is_some() || is_moment(&inside) {
        return None;
    }
    let close = target.iter().position(|c| *c == ')').map_or(target.len(), |close| close + 1);
    Some((words, end + 1 + close))
}

struct Reader<'a> {
    letters: &'a [char],
    names: &'a Names,
    at: usize,
    text: String,
    parts: Vec<Part>,
    /// Marks that open quotations which nothing closes any more.
    never_closed: Vec<char>,
}

impl Reader<'_> {
    fn peek(&self, ahead: usize) -> Option<char> {
        self.letters.get(self.at + ahead).copied()
    }

    fn before(&self) -> Option<char> {
        self.letters.get(self.at.checked_sub(1)?).copied()
    }

    fn end_text(&mut self) {
        if !self.text.is_empty() {
            self.parts.push(Part::Text(std::mem::take(&mut self.text)));
        }
    }

    fn add(&mut self, part: Part) {
        self.end_text();
        self.parts.push(part);
    }

    fn step(&mut self) {
        let Some(c) = self.peek(0) else { return };
        match c {
            '[' | '【' | '［' | '{' | '〔' | '〖' | '⟦' | '❲' | '⦗' => self.bracket(c),
            ']' | '】' | '］' => self.put(')'),
            '(' => self.parenthesis(),
            '!' if self.peek(1) == Some('[') => self.at += 1,
            c if c.is_alphabetic() && !self.before().is_some_and(char::is_alphanumeric) => self.word(c),
            '`' => self.at += 1,
            '⁰' | '¹' | '²' | '³' | '⁴'..='⁹' if self.is_note() => self.at += 1,
            _ => match closing(c) {
                Some(marks) => self.quotation(c, marks),
                None => self.put(c),
            },
        }
    }

    fn put(&mut self, c: char) {
        self.text.push(c);
        self.at += 1;
    }

    /// The text up to a closing mark, and where that mark stands.
    fn until(&self, from: usize, limit: usize, ends: impl Fn(char) -> bool) -> Option<usize> {
        let rest = self.letters.get(from..)?;
        rest.iter().take(limit).position(|c| ends(*c)).map(|place| from + place)
    }

    fn span(&self, from: usize, to: usize) -> String {
        self.letters.get(from..to).unwrap_or_default().iter().collect()
    }

    fn bracket(&mut self, open: char) {
        let from = self.at + 1;
        // No bracket that Markdown reads is left but our own.
        let shown = if matches!(open, '[' | '【' | '［') { '(' } else { open };
        let closes = |c| matches!(c, ']' | '】' | '］' | '}' | '〕' | '〗' | '⟧' | '❳' | '⦘');
        let Some(end) = self.until(from, BRACKET_CHARS_MAX, closes) else { return self.put(shown) };
        let inside = self.span(from, end);
        if let Some(numbers) = numbers(&inside, shown == open) {
            self.add(Part::Cites(numbers));
            self.at = end + 1;
        } else if is_moment(&inside) {
            // A time of the model's own making.
            self.at = end + 1;
        } else if is_like_number(&inside) {
            self.unknown(end);
        } else {
            self.put(shown);
        }
    }

    /// A citation of what was not given, whatever it means.
    fn unknown(&mut self, end: usize) {
        self.add(Part::Cites(vec![u32::MAX]));
        self.at = end + 1;
    }

    /// A citation in round brackets, where these hold nothing else.
    fn parenthesis(&mut self) {
        let end = self.until(self.at + 1, BRACKET_CHARS_MAX, |c| c == ')');
        let inside = end.map(|end| self.span(self.at + 1, end)).unwrap_or_default();
        match (end, numbers(&inside, true)) {
            (Some(end), Some(numbers)) => {
                self.add(Part::Cites(numbers));
                self.at = end + 1;
            }
            (Some(end), None) if is_moment(&inside) => self.at = end + 1,
            (Some(end), None) if is_like_number(&inside) => self.unknown(end),
            _ => self.put('('),
        }
    }

    /// A word, which may be a passage's number without brackets: `s17`, `S17`, `passage 17`.
    fn word(&mut self, first: char) {
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
            () if length == 1 && is_s(first) => length,
            () if is_named => length + 1,
            () => return self.put(first),
        };
        let digits: String = self
            .letters
            .iter()
            .skip(self.at + skip)
            .take(DIGITS_MAX + 1)
            .map_while(|c| ascii_digit(*c))
            .collect();
        let is_longer = self.peek(skip + digits.len()).is_some_and(char::is_alphanumeric);
        let is_name =
            self.names.has(&lead, &digits) || (!is_named && first.is_uppercase() && self.follows_name());
        match number(&digits, false) {
            Some(number) if !is_longer && !is_name => {
                self.at += skip + digits.len();
                let is_plural = is_named && lead.ends_with(['s', 'S']);
                let numbers = if is_plural { self.numbers_behind(number) } else { vec![number] };
                self.add(Part::Cites(numbers));
            }
            _ => self.put(first),
        }
    }

    /// A number with those that follow it: `4, 5 and 6`.
    fn numbers_behind(&mut self, first: u32) -> Vec<u32> {
        let mut numbers = vec![first];
        while numbers.len() < NUMBERS_MAX {
            let rest: String = self.letters.iter().skip(self.at).take(5 + DIGITS_MAX).collect();
            let joints = [", and ", " and ", ", ", " & ", "-", "–"];
            let Some(joint) = joints.into_iter().find(|joint| rest.starts_with(joint)) else { break };
            let behind = rest.get(joint.len()..).unwrap_or_default();
            let digits: String = behind.chars().map_while(ascii_digit).collect();
            let Some(next) = number(&digits, false) else { break };
            self.at += joint.chars().count() + digits.len();
            numbers.push(next);
        }
        numbers
    }

    /// Whether a name stands right before, as in "Galaxy S23".
    fn follows_name(&self) -> bool {
        let mut before = self.letters.get(..self.at).unwrap_or_default().iter().rev().copied();
        if !before.next().is_some_and(|c| matches!(c, ' ' | '-' | '\u{A0}')) {
            return false;
        }
        let mut word: Vec<char> = before.take_while(|c| c.is_alphanumeric()).take(LEAD_CHARS_MAX).collect();
        word.reverse();
        let (first, word): (_, String) = (word.first().copied(), word.into_iter().collect());
        let is_number = word.strip_prefix(is_s).is_some_and(|rest| rest.chars().all(char::is_numeric));
        first.is_some_and(char::is_uppercase)
            && !is_number
            && !is_named_passage(&word)
            && !is_common_word(&fold(&word))
    }

    /// Whether a small number above the line is a footnote's: behind a word, or the end of a sentence.
    fn is_note(&self) -> bool {
        let before = self.letters.get(..self.at).unwrap_or_default().iter().rev();
        let word = before.clone().take_while(|c| c.is_alphabetic()).count();
        let is_behind_mark = before.copied().find(|c| !c.is_numeric()).is_some_and(|c| !c.is_alphabetic());
        word >= NOTED_WORD_MIN || is_behind_mark
    }

    fn quotation(&mut self, open: char, marks: &[char]) {
        let from = self.at + 1;
        let is_single = is_single_mark(open);
        if is_single && !self.opens_single(open) {
            return self.put(open);
        }
        let is_closed = !self.never_closed.contains(&open);
        match is_closed.then(|| self.closing_place(from, open, marks, is_single)).flatten() {
            Some(end) => {
                let inside = self.span(from, end);
                self.end_text();
                self.at = end + 1;
                self.quoted(&inside);
            }
            None if is_single => {
                self.never_closed.push(open);
                self.put(open);
            }
            // Inches, or a mark that closes nothing.
            None if self.before().is_some_and(|c| c.is_alphanumeric() || c == '.') => self.at += 1,
            None => {
                self.never_closed.push(open);
                self.add(Part::Unclosed);
                self.at += 1;
            }
        }
    }

    /// Whether a single mark opens a quotation rather than being an apostrophe.
    fn opens_single(&self, open: char) -> bool {
        let is_free = self.before().is_none_or(|c| !has_apostrophes(c));
        let is_sure = matches!(open, '‘' | '‚');
        let next = self.peek(1);
        is_free && next.is_some_and(|c| is_sure || !c.is_whitespace())
    }

    fn closing_place(&self, from: usize, open: char, marks: &[char], is_single: bool) -> Option<usize> {
        let rest = self.letters.get(from..)?;
        let closes = |place: usize, c: char| {
            let at = from + place;
            let (before, after) = (self.letters.get(at.wrapping_sub(1)), self.letters.get(at + 1));
            let is_letter = |c: Option<&char>| c.is_some_and(|c| has_apostrophes(*c));
            let opens =
                before.is_none_or(|c| c.is_whitespace()) && after.is_some_and(|c| c.is_alphanumeric());
            let is_apostrophe = is_letter(before) && is_letter(after);
            marks.contains(&c) && !(is_single && (is_apostrophe || opens))
        };
        let first = marks.first().copied();
        let own = rest.iter().position(|c| first == Some(*c)).filter(|_| !is_single);
        let again = rest.iter().position(|c| *c == open).unwrap_or(usize::MAX);
        let any = || rest.iter().enumerate().position(|(place, c)| closes(place, *c));
        // Its own closing mark comes before others, unless another quotation begins first.
        own.filter(|own| *own < again || first == Some(open)).or_else(any).map(|place| from + place)
    }

    /// What stands in a quotation: its words, and citations that were put inside.
    fn quoted(&mut self, inside: &str) {
        if let Some(numbers) = numbers(inside, true) {
            return self.add(Part::Cites(numbers));
        }
        let (mut words, mut cites) = (String::new(), Vec::new());
        let mut rest = inside;
        while let Some((before, after)) = rest.split_once('[') {
            words.push_str(&before.replace(']', ")"));
            let inner = after.split_once(']').filter(|(inner, _)| inner.len() <= BRACKET_CHARS_MAX);
            match inner.map(|(inner, after)| (numbers(inner, false), after)) {
                Some((Some(numbers), after)) => {
                    cites.push(Part::Cites(numbers));
                    rest = after;
                }
                _ => {
                    words.push('(');
                    rest = after;
                }
            }
        }
        words.push_str(&rest.replace(']', ")"));
        self.parts.push(Part::Quote(words.trim().to_owned()));
        self.parts.extend(cites);
    }
}

/// The marks that may close what a mark opens, the likeliest first; none where it opens nothing.
fn closing(open: char) -> Option<&'static [char]> {
    Some(match open {
        '"' => &['"', '”', '“'],
        '“' => &['”', '"', '“'],
        '”' => &['”', '"'],
        '„' => &['“', '”', '"'],
        '«' => &['»'],
        '»' => &['«', '»'],
        '‹' => &['›'],
        '›' => &['‹'],
        '「' => &['」'],
        '『' => &['』'],
        '《' => &['》'],
        '〈' => &['〉'],
        '\'' | '‘' | '’' => &['\'', '’'],
        '‚' => &['‘', '’', '\''],
        '」' | '』' | '》' | '〉' => &[],
        _ => return None,
    })
}

/// Whether a character is a mark around quotations, other than an apostrophe.
pub(super) fn is_quotation_mark(c: char) -> bool {
    !is_single_mark(c) && closing(c).is_some()
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn show(sentence: &str) -> String {
        let shown = |part: Part| match part {
            Part::Text(text) => text,
            Part::Quote(text) => format!("{{{text}}}"),
            Part::Unclosed => "{!}".to_owned(),
            Part::Cites(numbers) => format!("{numbers:?}"),
        };
        parts(sentence, &Names::default()).into_iter().map(shown).collect()
    }

    #[test]
    fn citations_are_read_in_the_forms_that_models_write() {
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
            ("The pier¹ broke.² 5 m² and x³", "The pier broke. 5 m² and x³"),
            ("A [s１７] [s٣]", "A [17] [3]"),
            ("A [s17a] (S2b) [s1234567890123456789]", "A [4294967295] [4294967295] [4294967295]"),
            ("the [Music] (2020) s3x [s99999999]", "the (Music) (2020) s3x [99999999]"),
            ("It is [1:23] or (0:01-0:05) or [１：２３]", "It is  or  or "),
            ("a [link](http://x.y) ![i](z) b", "a link i b"),
        ] {
            assert_eq!(show(sentence), expect, "{sentence}");
        }
    }

    #[test]
    fn quotations_are_found_in_every_style() {
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
            assert_eq!(show(sentence), expect, "{sentence}");
        }
    }

    #[test]
    fn many_marks_of_one_kind_take_no_room() {
        for mark in [">\u{A0}", "> ", "«", " 'a", "[", "\"[", "[a](", "&gt;"] {
            let count = 32_000 / mark.len();
            let found = parts(&format!("{}x", mark.repeat(count)), &Names::default());
            assert!(found.len() <= count + 1, "{mark}");
        }
    }

    proptest! {
        #[test]
        fn any_text_is_taken_apart(sentence in "[a \"'“”„«»\\[\\]()s1:>`!]{0,40}") {
            for part in parts(&sentence, &Names::default()) {
                if let Part::Text(text) | Part::Quote(text) = part {
                    prop_assert!(!text.contains(['[', ']']), "{}", text);
                }
            }
        }
    }
}
