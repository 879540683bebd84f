//! Tokens of a text, as far as its numbers are concerned.

use super::{
    super::fold::{fold_char, is_mark},
    number_words::{ideograph, ideographs, is_ideograph},
    numbers::ascii_digit,
    sanitize::is_colon,
    units::{sign_unit, unit},
};
use crate::transcript::{
    is_unspaced,
    script::{Script, char_script},
};

/// Endings of a number that do not change its value, besides units: of ordinals, decades and times.
const ENDINGS: [&str; 15] =
    ["st", "nd", "rd", "th", "s", "er", "ere", "re", "e", "eme", "ieme", "ste", "te", "de", "h"];
/// Words directly before the digits of a negative number, where the minus sign is not used.
const NEGATIVE_SIGNS: [&str; 7] = ["负", "負", "零下", "マイナス", "氷点下", "영하", "마이너스"];
/// First characters of units of temperature, besides 摄 and 华, which are some only before 氏.
const TEMPERATURES: [char; 6] = ['度', '도', '°', '℃', '℉', 'º'];
/// Signs between the two numbers of a range.
const RANGE_SIGNS: [char; 8] = ['到', '至', '～', '~', '〜', '-', '–', '—'];
/// Longest number that a numeral behind it may multiply, in bytes.
const MULTIPLIED_BYTES_MAX: usize = 64;

/// A token of a text, as far as numbers are concerned.
pub(super) enum Token {
    /// A folded word without digits.
    Word(String),
    Digits(Digits),
    /// A folded word with letters and digits, and whether a minus sign precedes it.
    Mixed(String, bool),
    /// A run of Chinese numerals, and whether it is a negative number.
    Ideographs(String, bool),
    /// A sign between the numbers of a clock time.
    ClockSign,
    Comma,
    /// A sign of a currency, or of percent.
    UnitSign(&'static str),
    /// Other punctuation than a hyphen, or text of an unspaced script.
    Break,
}

/// A number in digits.
#[derive(Clone, Debug, Default)]
pub(super) struct Digits {
    /// The digits in their canonical form, with the numerals directly behind them: 50000 for `5万`.
    pub(super) form: String,
    pub(super) unit: Option<&'static str>,
    pub(super) is_negative: bool,
}

/// Calls `each` for every token of a text.
pub(super) fn tokens(text: &str, each: impl FnMut(Token)) {
    let letters: Vec<char> = text.chars().collect();
    let (word, run) = (String::new(), String::new());
    let mut reader = TokenReader {
        letters: &letters,
        at: 0,
        word,
        has_digit: false,
        has_letter: false,
        run,
        is_negative: false,
        each,
    };
    while let Some(&c) = letters.get(reader.at) {
        reader.at += 1;
        reader.read(c);
    }
    reader.end_run();
    reader.end_word();
}

struct TokenReader<'a, F> {
    letters: &'a [char],
    /// Index behind the character that is read.
    at: usize,
    /// Folded letters and digits, and the numerals behind digits.
    word: String,
    /// Whether the word has an ASCII digit, and whether it has a letter or numeral.
    has_digit: bool,
    has_letter: bool,
    /// Chinese numerals.
    run: String,
    /// Whether the digits with which the word begins, or the numerals, are a negative number.
    is_negative: bool,
    each: F,
}

impl<F: FnMut(Token)> TokenReader<'_, F> {
    fn read(&mut self, c: char) {
        if !is_ideograph(c) {
            self.end_run();
        }
        let (before, rest) =
            self.letters.split_at_checked(self.at.saturating_sub(1)).unwrap_or((self.letters, &[]));
        if let Some(digit) = ascii_digit(c) {
            if self.word.is_empty() {
                self.is_negative = is_negative(before, rest);
            }
            self.word.push(digit);
            self.has_digit = true;
        } else if let Some(numeral) = continued_by(&self.word, rest) {
            self.word.push(numeral);
            self.has_letter = true;
        } else if is_ideograph(c) || is_unspaced(c) {
            self.end_word();
            match () {
                () if is_ideograph(c) => {
                    if self.run.is_empty() {
                        self.is_negative = is_negative(before, rest);
                    }
                    self.run.push(c);
                }
                () if is_clock_sign(self.letters, self.at) => (self.each)(Token::ClockSign),
                () => (self.each)(Token::Break),
            }
        } else if c.is_numeric() {
            self.read_sign(c);
        } else if c.is_alphanumeric() {
            self.read_letter(c);
        } else {
            self.read_punctuation(c);
        }
    }

    /// Reads a digit above or below the line, or another sign such as ½, which is compared as it is.
    fn read_sign(&mut self, c: char) {
        match c {
            // A unit such as m².
            '²' | '³' if self.word.ends_with(char::is_alphabetic) => {}
            '₀'..='₉' if self.has_letter => {
                fold_char(c, |c| self.word.push(c));
                self.has_digit = true;
            }
            _ => self.word.push(c),
        }
    }

    fn read_letter(&mut self, c: char) {
        let is_behind_digits = |c: char| c.is_ascii_alphanumeric() || is_ideograph(c);
        if self.has_digit && !c.is_ascii() && self.word.ends_with(is_behind_digits) && is_hangul(c) {
            self.end_word();
            self.read_suffix(c);
            return;
        }
        // `5万km`
        if self.word.ends_with(is_ideograph) {
            self.end_word();
        }
        self.has_letter = true;
        fold_char(c, |letter| self.word.push(letter));
    }

    /// Reads the particles and counters behind a Korean number, of which `first` is the first letter: `1912년에`.
    fn read_suffix(&mut self, first: char) {
        match is_clock_sign(self.letters, self.at) {
            true => (self.each)(Token::ClockSign),
            false => fold_char(first, |letter| self.word.push(letter)),
        }
        while let Some(c) = self.letters.get(self.at).copied().filter(|c| is_hangul(*c)) {
            self.at += 1;
            fold_char(c, |letter| self.word.push(letter));
        }
        self.end_word();
    }

    fn read_punctuation(&mut self, c: char) {
        let follows_digit = || follows_digit(self.letters, self.at);
        if is_separator(c) && self.word.ends_with(|c: char| c.is_ascii_digit()) && follows_digit() {
            self.word.push(if matches!(c, ',' | '.' | '٫' | '٬') { c } else { '\'' });
        } else if !(is_mark(c) || self.is_inside(c)) {
            self.end_word();
            match c {
                c if c.is_whitespace() || matches!(c, '-' | '‐' | '‑' | '־' | '፡' | '\'' | '’') => {}
                ',' => (self.each)(Token::Comma),
                _ if is_clock_sign(self.letters, self.at) => (self.each)(Token::ClockSign),
                _ => (self.each)(sign_unit(c).map_or(Token::Break, Token::UnitSign)),
            }
        }
    }

    /// Whether a space or point is inside a number or its unit: `20 万`, `1억 2천만`, `5 p.m.`
    fn is_inside(&self, c: char) -> bool {
        let after = self.letters.get(self.at..).unwrap_or_default();
        match c {
            '.' => {
                let letters = self.word.trim_start_matches(|c: char| c.is_ascii_digit() || is_separator(c));
                matches!(letters, "a" | "p")
                    && matches!(after, ['m' | 'M', rest @ ..] if !rest.first().is_some_and(|c| c.is_alphabetic()))
            }
            ' ' | '\u{A0}' => {
                let is_scale = || continued_by(&self.word, after).is_some();
                after.first().is_some_and(|c| !is_hangul(*c) && is_scale())
                    || self.word.chars().next_back().is_some_and(|last| is_lower_group(after, last))
            }
            _ => false,
        }
    }

    fn end_run(&mut self) {
        if !self.run.is_empty() {
            (self.each)(Token::Ideographs(std::mem::take(&mut self.run), self.is_negative));
        }
    }

    fn end_word(&mut self) {
        let word = std::mem::take(&mut self.word);
        (self.has_digit, self.has_letter) = (false, false);
        if let Some(token) = token(word, self.is_negative) {
            (self.each)(token);
        }
    }
}

fn follows_digit(letters: &[char], at: usize) -> bool {
    letters.get(at).is_some_and(|c| ascii_digit(*c).is_some())
}

fn is_hangul(c: char) -> bool {
    char_script(c) == Script::Hangul
}

/// Whether the number with which `rest` begins, behind this text, is negative.
fn is_negative(before: &[char], rest: &[char]) -> bool {
    if let [before @ .., sign] = before
        && is_minus(*sign)
    {
        // Otherwise a hyphen or a range: `COVID-19`, `10-20`, `10 –20`.
        let is_apart = before.last().is_none_or(|c| c.is_whitespace() || matches!(c, '(' | '[' | '*' | '_'));
        let last = before.iter().rev().find(|c| !c.is_whitespace());
        return (is_apart && !last.is_some_and(|c| c.is_numeric())) || is_temperature(before, rest);
    }
    NEGATIVE_SIGNS.iter().any(|sign| {
        let mut letters = before.iter().rev().skip_while(|c| c.is_whitespace());
        sign.chars().rev().all(|expected| letters.next() == Some(&expected))
    })
}

fn is_minus(c: char) -> bool {
    matches!(c, '-' | '−' | '–' | '－' | '﹣')
}

/// Whether a number is a temperature directly behind a Chinese, Japanese or Korean word: `气温-5度`.
///
/// Behind the tilde of a range it may be one, too: `-10~-5度`. Elsewhere the sign before it is a hyphen, `歼-20`, and
/// behind another number or temperature that of a range: `１０-１５度`, `10度-15度`.
fn is_temperature(before: &[char], rest: &[char]) -> bool {
    let is_number = |c: char| c.is_numeric() || c.is_whitespace() || is_ideograph(c);
    let is_word = match before {
        [.., last, '度' | '도'] => !is_number(*last) && *last != '氏',
        [.., last] => (is_unspaced(*last) || is_hangul(*last) || *last == '~') && !is_number(*last),
        [] => false,
    };
    is_word && has_temperature(rest)
}

/// Whether a unit of temperature is behind the number or range with which a text begins: `5到3度`.
fn has_temperature(text: &[char]) -> bool {
    let behind = match behind_number(text) {
        ['에', '서', second @ ..] | ['か', 'ら', second @ ..] => behind_number(second),
        [sign, second @ ..] if RANGE_SIGNS.contains(sign) => behind_number(second),
        behind => behind,
    };
    match behind {
        ['摄' | '攝' | '华' | '華', next, ..] => *next == '氏',
        [unit, ..] => TEMPERATURES.contains(unit),
        [] => false,
    }
}

/// The text behind its first number, and behind the spaces that follow.
fn behind_number(text: &[char]) -> &[char] {
    let is_number = |c: char| ascii_digit(c).is_some() || is_separator(c) || is_ideograph(c);
    let number = without_first(text, |c| c.is_whitespace() || is_minus(c));
    without_first(without_first(number, is_number), char::is_whitespace)
}

/// A text without the first characters for which this is true.
fn without_first(text: &[char], is_part: impl Fn(char) -> bool) -> &[char] {
    let count = text.iter().take_while(|c| is_part(**c)).count();
    text.get(count..).unwrap_or_default()
}

/// The Chinese numeral with which `rest` continues the number that a word is; `None` if it does not.
///
/// Units such as 万 and the Korean 만 do, and the numerals of the next unit behind one: `3万五千`. The prefix of a unit
/// of measure does not: `10千米`, `5万千米`. Nor does a single numeral, which may be an article: `5万一平`.
fn continued_by(word: &str, rest: &[char]) -> Option<char> {
    let (c, after) = rest.split_first()?;
    let numeral = korean_unit(*c).unwrap_or(*c);
    let last = word.chars().next_back().and_then(ideograph);
    let continues = match ideograph(numeral)? {
        10.. => {
            let is_first = last.is_some_and(|last| last >= 10) || !word.contains(is_ideograph);
            !(is_first && is_prefix_of_unit(numeral, after))
        }
        _ => last.is_some_and(|last| last < 10 || after.first().is_some_and(|next| is_ideograph(*next))),
    };
    let is_part = |c: char| c.is_ascii_digit() || is_separator(c) || is_ideograph(c);
    let is_number = word.len() <= MULTIPLIED_BYTES_MAX
        && word.starts_with(|c: char| c.is_ascii_digit())
        && word.chars().all(is_part);
    (continues && is_number).then_some(numeral)
}

/// Whether a numeral begins a unit of measure: 千 of 千米, 兆 of 兆瓦.
fn is_prefix_of_unit(numeral: char, after: &[char]) -> bool {
    match numeral {
        '千' => {
            matches!(after, ['米' | '克' | '瓦' | '卡' | '赫' | '帕' | '伏' | '焦' | '牛', ..])
                || matches!(after, ['字', '节' | '節', ..])
        }
        '百' => matches!(after, ['帕', ..]),
        '兆' => matches!(after, ['瓦' | '赫' | '帕' | '焦' | '欧' | '歐' | '字' | '位' | '比', ..]),
        _ => false,
    }
}

fn korean_unit(c: char) -> Option<char> {
    Some(match c {
        '십' => '十',
        '백' => '百',
        '천' => '千',
        '만' => '万',
        '억' => '億',
        '조' => '兆',
        _ => return None,
    })
}

/// Whether a text continues the number that ends with `unit`: `2천만` behind `1억`, in Korean also `2000원` behind `1만`.
fn is_lower_group(after: &[char], unit: char) -> bool {
    let digits = after.iter().take_while(|c| ascii_digit(**c).is_some()).count();
    let behind = after.iter().skip(digits).find(|c| **c != ' ').copied();
    let value = |c: char| ideograph(korean_unit(c).unwrap_or(c));
    let Some(unit) = value(unit).filter(|_| digits > 0) else { return false };
    match behind.and_then(value) {
        Some(lower) => (10..unit).contains(&lower),
        // Not a year.
        None => {
            matches!(digits, 3 | 4) && unit >= 10_000 && behind.is_some_and(|c| is_hangul(c) && c != '년')
        }
    }
}

/// Whether the character before `end` is a Chinese or Korean sign of a clock time, or a colon between digits.
fn is_clock_sign(letters: &[char], end: usize) -> bool {
    let Some(at) = end.checked_sub(1) else { return false };
    match letters.get(at) {
        Some('点' | '點' | '时' | '時' | '分' | '시' | '분') => true,
        Some(c) if is_colon(*c) => {
            at.checked_sub(1).is_some_and(|before| follows_digit(letters, before))
                && follows_digit(letters, end)
        }
        _ => false,
    }
}

/// Whether a character separates thousands or decimals.
fn is_separator(c: char) -> bool {
    matches!(c, ',' | '.' | '\'' | '’' | '٫' | '٬')
}

fn token(word: String, is_negative: bool) -> Option<Token> {
    let digits = word.trim_end_matches(char::is_alphabetic);
    let (ending, is_mixed) =
        (word.get(digits.len()..).unwrap_or_default(), digits.contains(char::is_alphabetic));
    let is_plain = digits.chars().all(|c| c.is_ascii_digit() || is_separator(c));
    let unit = unit(ending);
    let with_form = |form| Token::Digits(Digits { form, unit, is_negative });
    match () {
        () if word.is_empty() => None,
        () if word.contains(is_ideograph) => Some(with_form(multiplied(&word))),
        () if !word.contains(char::is_numeric) => Some(Token::Word(word)),
        () if is_plain && !is_mixed && (ending.is_empty() || unit.is_some() || ENDINGS.contains(&ending)) => {
            Some(with_form(canonical(digits)))
        }
        () => Some(Token::Mixed(word, is_negative)),
    }
}

/// A number without separators of thousands, with a point before decimals and without zeros after them.
pub(super) fn canonical(digits: &str) -> String {
    let parts: Vec<&str> = digits.split(is_separator).collect();
    if parts.len() == 1 || are_thousands(&parts) || (are_lakhs(&parts) && !digits.contains('.')) {
        return parts.concat();
    }
    let (Some((decimals, whole)), separators) = (parts.split_last(), digits.matches(is_separator)) else {
        return digits.to_owned();
    };
    let mut kinds: Vec<&str> = separators.collect();
    let last = kinds.pop();
    // Several equal separators that are no thousands: a date or a version.
    if kinds.iter().any(|kind| Some(*kind) == last) {
        return parts.join(".");
    }
    match decimals.trim_end_matches('0') {
        "" => whole.concat(),
        decimals => format!("{}.{decimals}", whole.concat()),
    }
}

fn are_thousands(parts: &[&str]) -> bool {
    parts.split_first().is_some_and(|(first, others)| {
        (1..=3).contains(&first.len()) && others.iter().all(|part| part.len() == 3)
    })
}

/// Whether these are the parts of a number as in India: `1,00,000`.
fn are_lakhs(parts: &[&str]) -> bool {
    match parts {
        [first, others @ .., last] => {
            let are_pairs = !others.is_empty() && others.iter().all(|part| part.len() == 2);
            (1..=2).contains(&first.len()) && are_pairs && last.len() == 3
        }
        _ => false,
    }
}

/// The value of a number in digits and numerals: 35000 for `3.5万`.
fn multiplied(word: &str) -> String {
    let (mut number, mut digits) = (String::new(), String::new());
    for c in word.chars() {
        if is_ideograph(c) {
            number.push_str(&canonical(&std::mem::take(&mut digits)));
            number.push(c);
        } else {
            digits.push(c);
        }
    }
    ideographs(&(number + &canonical(&digits)))
}
