//! Numbers and words with digits: whether the transcript has those of a sentence.
//!
//! A number is compared by its value and not by its form: `1,000`, `1000` and "one thousand" are equal, and so are
//! `19th` and "nineteenth".

mod marks;
mod written_number;

use std::collections::HashSet;

use marks::Marks;
pub(in crate::chat) use written_number::WrittenNumber;

use super::{
    amount_tokens::{Digits, Token, canonical, tokens},
    number_words::{
        NumberBuilder, NumberWords, ideographs, is_below, is_clock_word, is_connector, is_ideograph,
        is_minus_phrase, is_point, product,
    },
    units::unit_of_number,
};

/// From this value on, a number in words must be spoken too; smaller ones are often articles and idioms.
const WORD_VALUE_MIN: u64 = 13;
/// From this value on, digits are not the begin of a number with a scale, such as "900 thousand".
const SCALED_MAX: u64 = 1_000;
/// Smallest number that multiplies a decimal: "3.5 million".
const SCALE_MIN: u64 = 1_000;
/// Chinese words that consist of numerals and are none.
const ADVERBS: [&str; 6] = ["千万", "千萬", "万一", "萬一", "千兆", "百兆"];
/// Numbers before "below zero" that it may be about: "between five and ten degrees below zero".
const BELOW_ZERO_MAX: usize = 2;
/// Longest word before a number with which it forms a name, such as the "S" of `S23`.
const NAME_LETTERS_MAX: usize = 8;

/// Numbers and words with digits of a text that must be spoken, and the forms in which a text has them.
#[derive(Clone, Debug, Default)]
pub(in crate::chat) struct Amounts {
    /// Every form: values, values of neighbouring numbers together, words with digits.
    forms: HashSet<String>,
    /// Folded words of each number in words, and its value.
    spelled: Vec<(Vec<String>, u64)>,
    mentions: Vec<Mention>,
    marks: Marks,
    /// Numbers between which only words or signs of clock times stand. Only here are single Chinese numerals.
    pub(super) clocks: Vec<Vec<String>>,
}

/// Neighbouring numbers of a text.
#[derive(Clone, Debug, Default)]
struct Mention {
    pieces: Vec<Piece>,
}

#[derive(Clone, Debug)]
struct Piece {
    form: String,
    /// The decimal that a word multiplies: 3.5 of "3.5 million". An answer in another language has it.
    decimal: Option<String>,
    /// The name that it forms with the word before it.
    name: Option<String>,
    /// The number words, and digits before them; none for digits only.
    words: Vec<String>,
    unit: Option<&'static str>,
    is_negative: bool,
}

impl Piece {
    /// Whether this and the next number are a year in words, "nineteen twelve", and neither stands for itself.
    fn is_century(&self, next: &Self) -> bool {
        let value = |piece: &Self| piece.form.parse::<u64>().ok().filter(|_| !piece.words.is_empty());
        value(self).is_some_and(|first| (13..=20).contains(&first))
            && value(next).is_some_and(|second| (10..=99).contains(&second))
    }

    /// Multiplies a decimal by the word behind it: "3.5 million". Returns whether it is one.
    fn multiply(&mut self, scale: u64, word: &str) -> bool {
        let product = product(&self.form, scale).filter(|_| self.form.contains('.'));
        let Some(product) = product else { return false };
        let form = std::mem::replace(&mut self.form, product);
        if let Some(name) = &mut self.name {
            *name = format!("{}{}", name.trim_end_matches(form.as_str()), self.form);
        }
        self.decimal = Some(form.clone());
        if self.words.is_empty() {
            self.words.push(form);
        }
        self.words.push(word.to_owned());
        true
    }

    fn append(&mut self, separator: &str, next: Self) {
        let end = separator.to_owned() + &next.form;
        self.form.push_str(&end);
        if let Some(name) = &mut self.name {
            name.push_str(&end);
        }
        self.words.extend(next.words);
    }

    /// Whether the first words of a number of these texts are this number: "two hundred" of "two hundred and nine".
    fn is_rounded(&self, texts: &[&Amounts]) -> bool {
        let Ok(value) = self.form.parse::<u64>() else { return false };
        // Not "two hundred" of "two hundred thousand".
        let is_near = |spelled: u64| spelled.checked_sub(value).is_some_and(|rest| rest < value);
        let mut spelled = texts.iter().flat_map(|text| &text.spelled);
        spelled.any(|(words, spelled)| is_near(*spelled) && words.starts_with(&self.words))
    }
}

impl Mention {
    /// The numbers as one: `1 000`, "nineteen sixty-three".
    fn joined(&self) -> String {
        self.pieces.iter().map(|piece| piece.form.as_str()).collect()
    }

    /// The unit and the sign of the numbers as one.
    fn unit_and_sign(&self) -> (Option<&'static str>, bool) {
        let is_negative = self.pieces.first().is_some_and(|piece| piece.is_negative);
        (self.pieces.last().and_then(|piece| piece.unit), is_negative)
    }
}

impl Amounts {
    /// Extracts the numbers of a text with the number words of a language.
    pub(in crate::chat) fn new(text: &str, words: &NumberWords) -> Self {
        let mut reader = AmountReader { words, amounts: Self::default(), state: ReaderState::default() };
        tokens(text, |token| reader.read(token));
        reader.end_run();
        reader.end_clock();
        reader.amounts
    }

    /// The numbers of this text, and those beside each other as one, without the numbers that are one word left out by
    /// `is_left_out`.
    pub(in crate::chat) fn spoken(&self, is_left_out: impl Fn(&str) -> bool) -> HashSet<String> {
        let mut spoken = HashSet::new();
        for mention in &self.mentions {
            let is_counted = |piece: &&Piece| !matches!(&piece.words[..], [word] if is_left_out(word));
            spoken.extend(mention.pieces.iter().filter(is_counted).map(|piece| piece.form.clone()));
            spoken.extend(mention.pieces.windows(2).map(|pair| WrittenNumber::new(pair).form));
            spoken.extend((mention.pieces.len() > 2).then(|| mention.joined()));
        }
        spoken
    }

    /// The numbers of this text that are in digits or have several words, also with the numbers beside them as one.
    ///
    /// Those below 2 are often articles.
    pub(in crate::chat) fn numbers(&self) -> Vec<WrittenNumber> {
        let mut numbers = Vec::new();
        for Mention { pieces } in &self.mentions {
            let all = (pieces.len() > 1).then_some(pieces.as_slice());
            numbers.extend(pieces.chunks(1).chain(all).map(WrittenNumber::new));
        }
        numbers.retain(|number| {
            let is_run = |word: &String| word.chars().all(is_ideograph);
            let is_word = number.words.len() == 1 && !number.words.iter().all(is_run);
            !is_word && !matches!(number.form.as_str(), "0" | "1")
        });
        numbers
    }

    /// Whether every number of this text is in one of the others.
    pub(super) fn are_in(&self, others: &[&Self]) -> bool {
        let marks: Vec<&Marks> = others.iter().map(|other| &other.marks).collect();
        let has = |form: &str| others.iter().any(|other| other.forms.contains(form));
        let is_small = |piece: &Piece| piece.form.parse::<u64>().is_ok_and(|value| value < WORD_VALUE_MIN);
        let is_known = |piece: &Piece| {
            has(&piece.form)
                || piece.name.as_deref().is_some_and(has)
                || (!piece.words.is_empty() && (is_small(piece) || piece.is_rounded(others)))
        };
        self.mentions.iter().all(|mention| {
            let (joined, (unit, is_negative)) = (mention.joined(), mention.unit_and_sign());
            let is_one = has(&joined) && Marks::agree_on(&marks, &joined, unit, is_negative);
            let agrees = |piece: &Piece| Marks::agree_on(&marks, &piece.form, piece.unit, piece.is_negative);
            is_one || mention.pieces.iter().all(|piece| is_known(piece) && agrees(piece))
        })
    }

    /// Whether "am" and "pm" in this text are as in another one.
    pub(super) fn has_halves_of(&self, other: &Self) -> bool {
        let pieces = self.mentions.iter().flat_map(|mention| &mention.pieces);
        let mut halves = pieces.filter(|piece| matches!(piece.unit, Some("am" | "pm")));
        halves.all(|piece| Marks::agree_on(&[&other.marks], &piece.form, piece.unit, false))
    }

    /// Marks the numbers before "below zero" as negative.
    fn add_below_zero(&mut self) {
        let mentions = self.mentions.iter().rev().take(BELOW_ZERO_MAX);
        for piece in mentions.flat_map(|mention| &mention.pieces) {
            self.marks.add_sign(piece);
        }
    }
}

#[derive(Debug, Default)]
struct ReaderState {
    run: Vec<Piece>,
    builder: NumberBuilder,
    /// Words of the number under construction.
    built: Vec<String>,
    /// Whether the number under construction began with digits.
    is_scaling: bool,
    /// Whether a connector precedes: "eighteen and".
    is_connected: bool,
    /// Whether a decimal point precedes.
    is_after_point: bool,
    /// The currency whose sign precedes.
    sign: Option<&'static str>,
    /// The last word, which may form a name with a number.
    before: String,
    /// Numbers of a clock time.
    clock: Vec<String>,
    /// Whether a word or sign of a clock time precedes.
    is_in_clock: bool,
}

struct AmountReader<'a> {
    words: &'a NumberWords,
    amounts: Amounts,
    state: ReaderState,
}

impl AmountReader<'_> {
    fn read(&mut self, token: Token) {
        let is_behind_sign = matches!(token, Token::Digits(_) | Token::Mixed(..));
        self.state.sign = self.state.sign.take().filter(|_| is_behind_sign);
        let is_in_clock = std::mem::take(&mut self.state.is_in_clock);
        match token {
            Token::Word(word) => self.read_word(word),
            Token::Digits(digits) => self.read_digits(digits),
            Token::Mixed(form, is_negative) => self.read_mixed(form, is_negative),
            Token::Ideographs(run, is_negative) => {
                self.end_run();
                let form = ideographs(&run);
                self.amounts.forms.insert(form.clone());
                // Single characters, and some pairs, are parts of ordinary words.
                if is_negative || (run.chars().count() > 1 && !ADVERBS.contains(&run.as_str())) {
                    self.push(form, vec![run]);
                    self.state.run.iter_mut().for_each(|piece| piece.is_negative |= is_negative);
                    self.end_run();
                } else {
                    self.state.clock.push(form);
                }
            }
            Token::ClockSign => {
                self.end_run();
                self.state.is_in_clock = true;
            }
            // "One hour, five minutes"
            Token::Comma if is_in_clock => self.end_run(),
            Token::Comma | Token::Break => {
                self.end_run();
                self.end_clock();
            }
            Token::UnitSign(unit) => self.read_unit_sign(unit),
        }
    }

    /// Reads a sign behind a number, or else before one.
    fn read_unit_sign(&mut self, unit: &'static str) {
        self.end_number();
        let last = self.state.run.last_mut();
        let is_behind = last.is_some();
        if let Some(last) = last {
            last.unit.get_or_insert(unit);
        }
        self.end_run();
        self.end_clock();
        self.state.sign = Some(unit).filter(|unit| !is_behind && *unit != "percent");
    }

    fn read_digits(&mut self, digits: Digits) {
        self.end_number();
        self.end_connected();
        let Digits { form, unit, is_negative } = digits;
        // A scale may follow: "900 thousand".
        let is_whole = !self.state.is_after_point;
        let value = form.parse().ok().filter(|value| is_whole && *value < SCALED_MAX);
        self.push(form, Vec::new());
        if let Some(last) = self.state.run.last_mut() {
            last.unit = unit.or(last.unit);
            last.is_negative |= is_negative;
        }
        if let Some(value) = value {
            self.state.builder.add(value, self.words);
            self.state.is_scaling = true;
        }
    }

    fn read_mixed(&mut self, form: String, is_negative: bool) {
        let digits = form.trim_end_matches(char::is_alphabetic);
        let word = form.get(digits.len()..).unwrap_or_default();
        // "5bn"
        if matches!(self.words.values(word)[..], [value] if value >= SCALE_MIN)
            && !digits.contains(char::is_alphabetic)
        {
            self.read_digits(Digits { form: canonical(digits), unit: None, is_negative });
            self.read_word(word.to_owned());
            return;
        }
        self.end_number();
        self.end_connected();
        self.push(form, Vec::new());
        self.end_run();
    }

    fn read_word(&mut self, word: String) {
        let values = self.words.values(&word);
        if values.is_empty() {
            self.read_other(word);
            return;
        }
        if matches!(values[..], [scale] if self.multiply(scale, &word)) {
            return;
        }
        for value in values {
            // Digits are multiplied only: "20 two-bedroom flats".
            if self.state.is_scaling && self.state.built.is_empty() && value < 100 {
                self.end_number();
            }
            let is_open = self.state.builder.is_begun();
            let finished = self.state.builder.add(value, self.words);
            let is_next = !is_open || finished.is_some();
            finished.into_iter().for_each(|finished| self.finish_number(finished));
            if is_next {
                self.end_connected();
            }
            self.state.is_connected = false;
            self.state.built.push(word.clone());
        }
    }

    /// Reads a word that is no number.
    fn read_other(&mut self, word: String) {
        let is_open = self.state.builder.is_begun() || !self.state.run.is_empty();
        if is_open && is_point(&word) {
            self.end_number();
            self.state.is_after_point = true;
        } else if is_open && is_connector(&word) {
            if self.state.built.is_empty() {
                self.end_number();
            }
            self.state.is_connected = true;
        } else {
            self.end_number();
            if let Some(last) = self.state.run.last_mut() {
                last.unit = unit_of_number(&word, &last.form).or(last.unit);
            }
            let before = std::mem::take(&mut self.state.before);
            self.end_run();
            self.state.is_in_clock = is_clock_word(&word) || is_connector(&word);
            if !self.state.is_in_clock {
                self.end_clock();
            }
            self.state.before = match word.as_str() {
                // "10 minus 5", "au moins 5"
                sign if self.words.is_minus(sign) && (is_open || is_minus_phrase(&before)) => String::new(),
                // "En dessous de zéro"
                "de" | "lo" if is_below(&before) => before,
                _ => word,
            };
            return;
        }
        self.state.before = word;
    }

    /// Multiplies a decimal before a word; returns whether there is one.
    fn multiply(&mut self, scale: u64, word: &str) -> bool {
        if scale < SCALE_MIN || self.state.is_connected {
            return false;
        }
        if self.state.is_after_point {
            self.end_number();
        }
        !self.state.builder.is_begun()
            && self.state.run.last_mut().is_some_and(|last| last.multiply(scale, word))
    }

    fn end_number(&mut self) {
        if let Some(value) = self.state.builder.finish() {
            self.finish_number(value);
        }
    }

    fn finish_number(&mut self, value: u64) {
        let mut words = std::mem::take(&mut self.state.built);
        let is_scaled = std::mem::take(&mut self.state.is_scaling);
        if words.is_empty() {
            // Digits without a scale, which were added already.
            return;
        }
        let digits = if is_scaled { self.state.run.pop() } else { None };
        let is_negative = digits.as_ref().is_some_and(|digits| digits.is_negative);
        let unit = digits.as_ref().and_then(|digits| digits.unit);
        if let Some(Piece { form, name, .. }) = digits {
            self.state.before = name.map(|name| name.trim_end_matches(&form).to_owned()).unwrap_or_default();
            words.insert(0, form);
        }
        self.amounts.spelled.push((words.clone(), value));
        self.push(value.to_string(), words);
        if let Some(last) = self.state.run.last_mut() {
            last.unit = last.unit.or(unit);
            last.is_negative |= is_negative;
        }
    }

    fn push(&mut self, form: String, words: Vec<String>) {
        let before = std::mem::take(&mut self.state.before);
        let is_negative = self.words.is_minus(&before);
        if form == "0" && is_below(&before) {
            self.amounts.add_below_zero();
        }
        let name = (1..=NAME_LETTERS_MAX).contains(&before.chars().count()).then(|| before + &form);
        let piece = Piece { form, decimal: None, name, words, unit: self.state.sign.take(), is_negative };
        let is_decimal = std::mem::take(&mut self.state.is_after_point);
        match self.state.run.last_mut() {
            Some(last) if is_decimal => last.append(".", piece),
            Some(last) if last.is_century(&piece) => last.append("", piece),
            _ => self.state.run.push(piece),
        }
    }

    /// Ends the numbers before a connector: those of "eighteen and sixty-five" are no year.
    fn end_connected(&mut self) {
        if self.state.is_connected {
            self.end_mention();
        }
    }

    fn end_run(&mut self) {
        self.end_number();
        self.end_mention();
    }

    fn end_mention(&mut self) {
        self.state.is_connected = false;
        self.state.is_after_point = false;
        self.state.is_scaling = false;
        self.state.before.clear();
        let mention = Mention { pieces: std::mem::take(&mut self.state.run) };
        if mention.pieces.is_empty() {
            return;
        }
        for piece in &mention.pieces {
            self.amounts.forms.insert(piece.form.clone());
            self.amounts.forms.extend(piece.name.clone());
            self.amounts.marks.add(&piece.form, piece.unit, piece.is_negative);
            if let Some(decimal) = &piece.decimal {
                self.amounts.forms.insert(decimal.clone());
                self.amounts.marks.add(decimal, piece.unit, piece.is_negative);
            }
            // "Ten point five" is no time, nor is 1945.
            let is_time = match piece.words.is_empty() {
                true => piece.form.len() <= 2 || !piece.form.bytes().all(|byte| byte.is_ascii_digit()),
                false => !piece.form.contains('.'),
            };
            if is_time {
                self.state.clock.extend(piece.form.split('h').map(str::to_owned));
            }
        }
        for pair in mention.pieces.windows(2) {
            self.amounts.forms.insert(pair.iter().map(|piece| piece.form.as_str()).collect());
        }
        if mention.pieces.len() > 1 {
            let (unit, is_negative) = mention.unit_and_sign();
            self.amounts.marks.add(&mention.joined(), unit, is_negative);
        }
        self.amounts.forms.insert(mention.joined());
        self.amounts.mentions.push(mention);
    }

    fn end_clock(&mut self) {
        let clock = std::mem::take(&mut self.state.clock);
        self.amounts.clocks.extend((!clock.is_empty()).then_some(clock));
    }
}

#[cfg(test)]
mod tests;
