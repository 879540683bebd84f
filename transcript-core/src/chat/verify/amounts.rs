//! Numbers and words with digits: whether the transcript has those of a sentence.
//!
//! A number is compared by its value and not by its form: `1,000`, `1000` and "one thousand" are equal, and so are
//! `19th` and "nineteenth".

use std::collections::HashSet;

use super::{
    amount_tokens::{Token, tokens},
    number_words::{
        NumberBuilder, NumberWords, ideographs, is_clock_word, is_connector, is_ideograph, is_point,
    },
};

/// From this value on, a number in words must be spoken too; smaller ones are often articles and idioms.
const WORD_VALUE_MIN: u64 = 13;
/// From this value on, digits are not the begin of a number with a scale, such as "900 thousand".
const SCALED_MAX: u64 = 1_000;
/// Chinese words that consist of numerals and are none.
const ADVERBS: [&str; 4] = ["千万", "千萬", "万一", "萬一"];
/// Longest word before a number with which it forms a name, such as the "S" of `S23`.
const NAME_LETTERS_MAX: usize = 8;

/// Numbers and words with digits of a text that must be spoken, and the forms in which a text has them.
#[derive(Clone, Debug, Default)]
pub(in crate::chat) struct Amounts {
    /// Every form: values, values of neighbouring numbers together, words with digits.
    forms: HashSet<String>,
    /// Folded number words.
    words: HashSet<String>,
    mentions: Vec<Mention>,
    /// Numbers between which only words or signs of clock times stand. Only here are single Chinese numerals.
    pub(super) clocks: Vec<Vec<String>>,
}

/// A number of a text, as it is written.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(in crate::chat) struct WrittenNumber {
    /// Its value in digits.
    pub(in crate::chat) form: String,
    /// Its number words; none for digits.
    words: Vec<String>,
}

impl WrittenNumber {
    fn new(pieces: &[Piece]) -> Self {
        Self {
            form: pieces.iter().map(|piece| piece.form.as_str()).collect(),
            words: pieces.iter().flat_map(|piece| piece.words.iter().cloned()).collect(),
        }
    }

    /// Whether a folded word or n-gram of the same text is part of the number.
    pub(in crate::chat) fn has(&self, word: &str) -> bool {
        if self.words.is_empty() {
            // An ordinal or a unit: `19th`, `5kg`.
            let digits = word.trim_end_matches(char::is_alphabetic);
            let is_number = !digits.is_empty() && digits.bytes().all(|byte| byte.is_ascii_digit());
            return word == self.form || (is_number && self.form.contains(digits));
        }
        let is_part = |known: &String| known.contains(word) && known.chars().all(is_ideograph);
        self.words.iter().any(|known| known == word || is_part(known))
    }
}

/// Neighbouring numbers of a text.
#[derive(Clone, Debug, Default)]
struct Mention {
    pieces: Vec<Piece>,
}

#[derive(Clone, Debug)]
struct Piece {
    form: String,
    /// The name that it forms with the word before it.
    name: Option<String>,
    /// The number words; none for digits.
    words: Vec<String>,
}

impl Piece {
    /// Whether this and the next number are a year in words, "nineteen twelve", and neither stands for itself.
    fn is_century(&self, next: &Self) -> bool {
        let value = |piece: &Self| piece.form.parse::<u64>().ok().filter(|_| !piece.words.is_empty());
        value(self).is_some_and(|first| (13..=20).contains(&first))
            && value(next).is_some_and(|second| (10..=99).contains(&second))
    }

    fn append(&mut self, separator: &str, next: Self) {
        self.form = format!("{}{separator}{}", self.form, next.form);
        self.words.extend(next.words);
    }
}

impl Mention {
    /// The numbers as one: `1 000`, "nineteen sixty-three".
    fn joined(&self) -> String {
        self.pieces.iter().map(|piece| piece.form.as_str()).collect()
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
        let has = |form: &str| others.iter().any(|other| other.forms.contains(form));
        let has_word = |word: &String| others.iter().any(|other| other.words.contains(word));
        let is_known = |piece: &Piece| {
            has(&piece.form)
                || piece.name.as_deref().is_some_and(has)
                || (!piece.words.is_empty()
                    && (piece.words.iter().all(has_word)
                        || piece.form.parse::<u64>().is_ok_and(|value| value < WORD_VALUE_MIN)))
        };
        self.mentions.iter().all(|mention| has(&mention.joined()) || mention.pieces.iter().all(is_known))
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
    /// Whether a decimal point precedes.
    is_after_point: bool,
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
        let is_in_clock = std::mem::take(&mut self.state.is_in_clock);
        match token {
            Token::Word(word) => self.read_word(word),
            Token::Digits(form) => {
                self.end_number();
                // A scale may follow: "900 thousand".
                let value = form.parse().ok().filter(|value| *value < SCALED_MAX);
                self.push(form, Vec::new());
                if let Some(value) = value {
                    self.state.builder.add(value, self.words);
                    self.state.is_scaling = true;
                }
            }
            Token::Mixed(form) => {
                self.push(form, Vec::new());
                self.end_run();
            }
            Token::Ideographs(run) => {
                self.end_run();
                let form = ideographs(&run);
                self.amounts.forms.insert(form.clone());
                // Single characters, and some pairs, are parts of ordinary words.
                if run.chars().count() > 1 && !ADVERBS.contains(&run.as_str()) {
                    self.amounts.words.insert(run.clone());
                    self.push(form, vec![run]);
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
        }
    }

    fn read_word(&mut self, word: String) {
        let values = self.words.values(&word);
        if values.is_empty() {
            let is_open = self.state.builder.is_begun() || !self.state.run.is_empty();
            if is_open && is_point(&word) {
                self.end_number();
                self.state.is_after_point = true;
            } else if !is_open || !is_connector(&word) {
                self.end_run();
                self.state.is_in_clock = is_clock_word(&word) || is_connector(&word);
                if !self.state.is_in_clock {
                    self.end_clock();
                }
            }
            self.state.before = word;
            return;
        }
        for value in values {
            if let Some(finished) = self.state.builder.add(value, self.words) {
                self.finish_number(finished);
            }
            self.state.built.push(word.clone());
        }
        self.amounts.words.insert(word);
    }

    fn end_number(&mut self) {
        if let Some(value) = self.state.builder.finish() {
            self.finish_number(value);
        }
    }

    fn finish_number(&mut self, value: u64) {
        let words = std::mem::take(&mut self.state.built);
        let is_scaled = std::mem::take(&mut self.state.is_scaling);
        if words.is_empty() {
            // Digits without a scale, which were added already.
            return;
        }
        if is_scaled {
            self.state.run.pop();
        }
        self.push(value.to_string(), words);
    }

    fn push(&mut self, form: String, words: Vec<String>) {
        let before = std::mem::take(&mut self.state.before);
        let name = (1..=NAME_LETTERS_MAX).contains(&before.chars().count()).then(|| before + &form);
        let piece = Piece { form, name, words };
        let is_decimal = std::mem::take(&mut self.state.is_after_point);
        match self.state.run.last_mut() {
            Some(last) if is_decimal => last.append(".", piece),
            Some(last) if last.is_century(&piece) => last.append("", piece),
            _ => self.state.run.push(piece),
        }
    }

    fn end_run(&mut self) {
        self.end_number();
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
        self.amounts.forms.insert(mention.joined());
        self.amounts.mentions.push(mention);
    }

    fn end_clock(&mut self) {
        let clock = std::mem::take(&mut self.state.clock);
        self.amounts.clocks.extend((!clock.is_empty()).then_some(clock));
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn is_in(answer: &str, spoken: &str, language: &str) -> bool {
        let words = NumberWords::new(language);
        Amounts::new(answer, &words).are_in(&[&Amounts::new(spoken, &words)])
    }

    #[test]
    fn amounts_equal_in_any_form() {
        for (answer, spoken, language) in [
            ("900 dollars", "nine hundred dollars", "en"),
            ("nine hundred dollars", "$900", "en"),
            ("$1,000", "1000 dollars", "en"),
            ("1 000 Euro", "1.000 Euro", "de"),
            ("1’000 francs", "mille francs", "fr"),
            ("3.5 %", "3,5 percent", "en"),
            ("3.5", "three point five", "en"),
            ("$9.00", "9 dollars", "en"),
            ("1963", "nineteen sixty-three", "en"),
            ("1905", "nineteen oh five", "en"),
            ("the 19th", "the nineteenth", "en"),
            ("19th", "19", "en"),
            ("COVID-19", "covid nineteen", "en"),
            ("S23", "the s 23", "en"),
            ("900,000", "nine hundred thousand", "en"),
            ("900 thousand", "900,000", "en"),
            ("over two hundred steps", "two hundred and nine steps", "en"),
            ("more than two decades", "twenty-two years", "en"),
            ("1962", "neunzehnhundertzweiundsechzig", "de"),
            ("2000 œufs", "deux mille œufs", "fr"),
            ("1,200 metres", "一千二百米", "zh"),
            ("26年", "二十六年", "ja"),
            ("٩٠٠", "900", "ar"),
            ("９００", "900", "en"),
            ("5 m²", "5 square metres", "en"),
            ("no number at all", "", "en"),
        ] {
            assert!(is_in(answer, spoken, language), "{answer} <- {spoken}");
        }
    }

    #[test]
    fn amounts_unspoken_are_found() {
        for (answer, spoken, language) in [
            ("900 dollars", "nine dollars and a hundred boats", "en"),
            ("900", "9000", "en"),
            ("35", "3.5", "en"),
            ("3.5", "35", "en"),
            ("12", "1234", "en"),
            ("1,000,000", "1,000", "en"),
            ("DE89 3704 0044", "the bridge of 1912", "en"),
            ("DE89", "89", "en"),
            ("COVID-19", "covid", "en"),
            ("call +49 30 123456", "call me", "en"),
            ("nine hundred dollars", "the bridge was built", "en"),
            ("5G", "5", "en"),
            ("½", "1 2", "en"),
            ("一千二百", "一千", "zh"),
            ("1963", "nineteen sixty-four", "en"),
            ("٩٠٠", "", "ar"),
        ] {
            assert!(!is_in(answer, spoken, language), "{answer} <- {spoken}");
        }
    }

    #[test]
    fn amounts_written_numbers_have_their_words() {
        for (language, text, expect) in [
            ("en", "some 1,200 boats", &["1200: 1 200"][..]),
            ("en", "on the 19th", &["19: 19th"]),
            ("en", "in nineteen eighty four", &["1984: nineteen eighty four"]),
            ("en", "nineteen oh five", &["1905: nineteen oh five"]),
            ("en", "nine or one", &[]),
            ("es", "dos mil nueve", &["2009: dos mil nueve"]),
            ("ja", "靴が六十二足", &["62: 六十二"]),
        ] {
            let words: Vec<String> = match language {
                "ja" => vec!["靴".to_owned(), "六十二".to_owned()],
                _ => text.split([' ', ',']).map(str::to_owned).collect(),
            };
            let numbers = Amounts::new(text, &NumberWords::new(language)).numbers();
            let found: Vec<String> = numbers
                .iter()
                .map(|number| {
                    let of_number = words.iter().filter(|word| number.has(word)).map(String::as_str);
                    format!("{}: {}", number.form, of_number.collect::<Vec<_>>().join(" "))
                })
                .collect();
            assert_eq!(found, expect, "{text}");
        }
    }

    proptest! {
        #[test]
        fn amounts_of_text_are_in_text(text in "[a-z0-9,.' 十万½²-]{0,40}") {
            prop_assert!(is_in(&text, &text, "en"));
        }

        #[test]
        fn amounts_any_text_does_not_panic(text in "\\PC{0,60}", other in "\\PC{0,40}") {
            is_in(&text, &other, "de");
        }
    }
}
