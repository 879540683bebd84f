//! Takes a sentence apart: its text, its quotations, and the passages that it cites.

use super::clean::is_colon;
use super::plain::{has_apostrophes, is_single_mark, plain};

/// The most passages that one citation names.
const NUMBERS_MAX: usize = 12;
/// A citation has at most this many characters between its brackets.
const BRACKET_CHARS_MAX: usize = 80;
/// The most digits of a passage's number.
const DIGITS_MAX: usize = 18;

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

/// Takes a sentence apart. No part's text has a square bracket in it, nor a link's target.
pub(super) fn parts(sentence: &str) -> Vec<Part> {
    let plain = plain(sentence);
    match block(&plain) {
        Some((lead, quoted)) => block_parts(lead, quoted),
        None => read(&plain),
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
fn block_parts(lead: &str, quoted: &str) -> Vec<Part> {
    let (mut text, mut cites) = (String::new(), Vec::new());
    for part in read(quoted.trim_start_matches(|c: char| c == '>' || c.is_whitespace())) {
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

fn read(plain: &str) -> Vec<Part> {
    let letters = without_links(&plain.chars().collect::<Vec<_>>());
    let never_closed = Vec::new();
    let mut reader =
        Reader { letters: &letters, at: 0, text: String::new(), parts: Vec::new(), never_closed };
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
            '[' | '【' | '［' => self.bracket(),
            ']' | '】' | '］' => self.put(')'),
            '(' => self.parenthesis(),
            '!' if self.peek(1) == Some('[') => self.at += 1,
            's' if !self.before().is_some_and(char::is_alphanumeric) => self.bare(),
            '`' => self.at += 1,
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

    fn bracket(&mut self) {
        let from = self.at + 1;
        let end = self.until(from, BRACKET_CHARS_MAX, |c| matches!(c, ']' | '】' | '］'));
        let Some(end) = end else { return self.put('(') };
        let inside = self.span(from, end);
        if let Some(numbers) = numbers(&inside, false) {
            self.add(Part::Cites(numbers));
            self.at = end + 1;
        } else if is_moment(&inside) {
            // A time of the model's own making.
            self.at = end + 1;
        } else if is_like_number(&inside) {
            self.unknown(end);
        } else {
            self.put('(');
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

    /// A passage's number without brackets.
    fn bare(&mut self) {
        let digits: String = self
            .letters
            .iter()
            .skip(self.at + 1)
            .take(DIGITS_MAX + 1)
            .map_while(|c| ascii_digit(*c))
            .collect();
        let is_word = self.peek(1 + digits.len()).is_some_and(char::is_alphanumeric);
        match number(&digits, false) {
            Some(number) if !is_word => {
                self.at += 1 + digits.len();
                self.add(Part::Cites(vec![number]));
            }
            _ => self.put('s'),
        }
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

/// The numbers between the brackets of a citation; none when it is no citation. In square brackets the letter
/// may be missing.
fn numbers(inside: &str, needs_letter: bool) -> Option<Vec<u32>> {
    let mut found: Vec<u32> = Vec::new();
    for token in inside.split([',', ';', ' ', '&', '、', '，']).filter(|token| !token.is_empty()) {
        let lower = token.to_lowercase();
        if matches!(lower.as_str(), "passage" | "passages" | "segment" | "segments" | "and" | "s") {
            continue;
        }
        let (first, last) = match lower.split_once(['-', '–', '—', '~']) {
            Some((first, last)) => (number(first, needs_letter)?, number(last, false)?),
            None => {
                let only = number(&lower, needs_letter)?;
                (only, only)
            }
        };
        if last.saturating_sub(first) as usize >= NUMBERS_MAX {
            found.extend([first, last]);
        } else {
            found.extend(first..=last.max(first));
        }
    }
    found.truncate(NUMBERS_MAX);
    (!found.is_empty()).then_some(found)
}

fn number(token: &str, needs_letter: bool) -> Option<u32> {
    let bare = token.trim_start_matches(['s', 'p', '^', '#', '§', '.']);
    let digits: String = bare.chars().map(|c| ascii_digit(c).unwrap_or(c)).collect();
    let is_number =
        (1..=DIGITS_MAX).contains(&digits.len()) && digits.bytes().all(|byte| byte.is_ascii_digit());
    let has_letter = bare.len() < token.len();
    let is_one = is_number && (has_letter || !needs_letter);
    // A number beyond all is one that was not given, like any other.
    digits.parse::<u64>().ok().filter(|_| is_one).map(|number| u32::try_from(number).unwrap_or(u32::MAX))
}

/// A digit of any of the scripts in which models write numbers, as an ASCII one.
fn ascii_digit(c: char) -> Option<char> {
    const ZEROS: [char; 8] = ['0', '０', '٠', '۰', '०', '০', '๐', '𝟎'];
    let value = |zero: char| u32::from(c).checked_sub(u32::from(zero)).filter(|value| *value < 10);
    char::from_digit(ZEROS.into_iter().find_map(value)?, 10)
}

/// Whether what stands between brackets begins like a passage's number without being one.
fn is_like_number(inside: &str) -> bool {
    let mut letters = inside.trim_start().chars();
    matches!(letters.next(), Some('s' | 'S')) && letters.next().is_some_and(char::is_numeric)
}

/// Whether a text is a time, or several, and nothing else.
fn is_moment(text: &str) -> bool {
    let is_part =
        |c: char| c.is_numeric() || is_colon(c) || matches!(c, '.' | ',' | '-' | '–' | '—' | ' ' | '~');
    text.contains(is_colon) && text.chars().any(char::is_numeric) && text.chars().all(is_part)
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
        parts(sentence).into_iter().map(shown).collect()
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
            let found = parts(&format!("{}x", mark.repeat(count)));
            assert!(found.len() <= count + 1, "{mark}");
        }
    }

    proptest! {
        #[test]
        fn any_text_is_taken_apart(sentence in "[a \"'“”„«»\\[\\]()s1:>`!]{0,40}") {
            for part in parts(&sentence) {
                if let Part::Text(text) | Part::Quote(text) = part {
                    prop_assert!(!text.contains(['[', ']']), "{}", text);
                }
            }
        }
    }
}
