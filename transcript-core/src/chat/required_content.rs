//! What the answer to a question must contain: a number, or an amount of money.
//!
//! A talk about a lighthouse has words of "What does the warden earn?", but no answer if money is not spoken of beside
//! them. The questions and the words of their answers are listed by language; any other question requires nothing.

use std::{collections::HashMap, sync::LazyLock};

use super::{
    Passage,
    bm25::{Bm25Query, score_all},
    common_words::CommonWords,
    content_words::{CONTENT_WORDS, CURRENCY_SIGNS, ContentWords},
    fold::fold,
    intent::has_word,
    search_index::{QueryWord, SearchIndex, query_words},
    verify::NumberWords,
};

/// Least coverage of a short question by a place that has what its answer must contain, if the transcript may not speak
/// of what is counted. Measured on the tuning half of the test questions.
const SHORT_COVERAGE_MIN: f32 = 0.4;
/// Most specific words of a short question.
const SHORT_WORDS_MAX: f32 = 3.0;
/// Factor on the score of a passage that has what the answer must contain.
const RAISED_FACTOR: f32 = 2.0;
/// Share of the best coverage that such a place must have.
const COVERAGE_SHARE_MIN: f32 = 0.75;
/// Articles that stand before a price without another word, folded.
const ARTICLES: &str = "the a der die das den le la l les el los lo il i o os de het";
/// Verbs of measure, which stand between a word that asks and what is measured, folded.
const MEASURE_VERBS: &str = "длится длился длилась длилось длились продолжается продолжался продолжалась продолжалось \
    продолжались весит весил весила весило dure durent durait pese pesent pesait mesure dura duran duraba duro pesa \
    pesan pesaba mide miden tarda pesava durava misura durou mede dauert dauerte wiegt";
/// What requests a price in Japanese, without another word.
const REQUESTS: [&str; 2] = ["教えてください", "教えて"];

static LANGUAGES: LazyLock<HashMap<&'static str, LanguageContent>> = LazyLock::new(|| {
    CONTENT_WORDS.iter().map(|words| (words.language, LanguageContent::new(words))).collect()
});

/// What the answer to a question must contain.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum RequiredContent {
    /// A quantity other than one, which is an article in many languages.
    Number,
    /// A currency, or a word about prices and wages.
    Money,
}

/// What a question requires of its answer.
pub(super) struct Requirement<'a> {
    index: &'a SearchIndex,
    passages: &'a [Passage],
    language: &'static LanguageContent,
    content: RequiredContent,
    /// Common words of the language of the question.
    common: CommonWords,
    /// The question without the words that ask, and its words.
    rest: String,
    words: Vec<QueryWord>,
}

impl<'a> Requirement<'a> {
    /// `None` if the question requires nothing.
    pub(super) fn of(message: &str, index: &'a SearchIndex, passages: &'a [Passage]) -> Option<Self> {
        let language = LANGUAGES.get(index.language())?;
        let common = index.common_words(message);
        // "The price?" and "Salary?" have no word that asks.
        let price_alone = || {
            let rest = language.without_price(message)?;
            let names_subject = query_words(&rest, common).iter().any(|word| index.is_of_subject(word));
            (!names_subject).then_some((RequiredContent::Money, rest))
        };
        let (content, rest) = language.required(message).or_else(price_alone)?;
        let words = query_words(&rest, common);
        Some(Self { index, passages, language, content, common, rest, words })
    }

    /// Whether a place with the words of the question also has what its answer must contain; `None` if no place is
    /// asked for.
    ///
    /// `has_subject`: a place has enough of all its words. Where words have no spaces between them, most n-grams of a
    /// short question are of those that ask, so enough of the others suffice. `coverage_min` is the least share of
    /// these.
    pub(super) fn is_met(&self, has_subject: bool, coverage_min: f32) -> Option<bool> {
        if !self.names_subject() {
            let asks_for_all = self.content == RequiredContent::Money;
            return asks_for_all.then(|| self.passages.iter().any(|passage| self.is_in(passage)));
        }
        let mut query = Bm25Query::new(self.common);
        query.add(&self.rest, 1.0);
        let found = score_all(self.index, self.passages, &query);
        let needs_more = found.specific <= SHORT_WORDS_MAX && self.is_counted_unknown();
        let least = if needs_more { SHORT_COVERAGE_MIN } else { coverage_min };
        let least = least.max(found.coverage() * COVERAGE_SHARE_MIN);
        let mut places = self.passages.iter().zip(&found.named).filter(|(_, named)| **named > least);
        let has_parts = matches!(self.language.what, Phrases::Parts(_));
        Some((has_subject || has_parts) && places.any(|(passage, _)| self.is_in(passage)))
    }

    /// Raises the scores of the passages that have what the answer must contain.
    ///
    /// Of a request for prices without another word, these passages are the answer.
    pub(super) fn raise(&self, scores: &mut [f32]) {
        let asks_for_all = self.content == RequiredContent::Money && !self.names_subject();
        let best = scores.iter().copied().fold(0.0, f32::max);
        let floor = if asks_for_all { if best > 0.0 { best / RAISED_FACTOR } else { 1.0 } } else { 0.0 };
        let can_be_best = |score: f32| asks_for_all || (score > 0.0 && score * RAISED_FACTOR * 2.0 >= best);
        for (score, passage) in scores.iter_mut().zip(self.passages).filter(|(score, _)| can_be_best(**score))
        {
            if self.is_in(passage) {
                *score = RAISED_FACTOR * score.max(floor);
            }
        }
    }

    fn is_in(&self, passage: &Passage) -> bool {
        self.language.has_content(&passage.text, self.content)
    }

    /// Whether the rest of the question has a word of a subject.
    fn names_subject(&self) -> bool {
        self.words.iter().any(|word| self.index.is_of_subject(word))
    }

    /// Whether the question may count what the transcript does not speak of.
    ///
    /// In most languages this is the first word behind the phrase that asks.
    fn is_counted_unknown(&self) -> bool {
        let index = self.index;
        match index.language() {
            _ if self.words.iter().any(|word| word.is_ngram) => false,
            // The noun comes first.
            "hi" | "tr" => true,
            _ if self.content == RequiredContent::Money => true,
            // After most numbers, the noun has another form, often with other letters than its stem.
            "ar" => false,
            _ => {
                let is_unknown =
                    |word: &QueryWord| !index.is_generic(word) && index.matches(word).words.is_empty();
                let mut words = self.words.iter().filter(|word| !word.is_common);
                match words.next() {
                    // In "How long did the fire last?" the verb is not what is counted.
                    Some(verb) if has_word(MEASURE_VERBS, &verb.folded) && is_unknown(verb) => {
                        words.next().is_none_or(is_unknown)
                    }
                    counted => counted.is_none_or(is_unknown),
                }
            }
        }
    }
}

/// The phrases of one language, parsed.
#[derive(Debug)]
struct LanguageContent {
    idioms: Phrases,
    number_questions: Phrases,
    price_questions: Phrases,
    what: Phrases,
    money: Phrases,
    amounts: Phrases,
    quantities: Phrases,
    numbers: NumberWords,
    is_korean: bool,
}

impl LanguageContent {
    fn new(words: &ContentWords) -> Self {
        let phrases = |listed| Phrases::new(listed, !matches!(words.language, "zh" | "ja" | "ko" | "th"));
        Self {
            idioms: phrases(words.idioms),
            number_questions: phrases(words.number_questions),
            price_questions: phrases(words.price_questions),
            what: phrases(words.what),
            money: phrases(words.money),
            amounts: phrases(words.amounts),
            quantities: phrases(words.quantities),
            numbers: NumberWords::new(words.language),
            is_korean: words.language == "ko",
        }
    }

    /// What the answer to a question must contain, and the question without the words that ask for it; `None` if that
    /// is unknown.
    fn required(&self, message: &str) -> Option<(RequiredContent, String)> {
        let text = self.idioms.remove_from(&ContentText::new(message));
        let has_money = self.money.are_in(&text);
        let is_number = self.number_questions.are_in(&text);
        let is_price =
            self.price_questions.are_in(&text) || (has_money && (is_number || self.what.are_in(&text)));
        let without_question = || self.number_questions.remove_from(&self.price_questions.remove_from(&text));
        match () {
            () if is_price => {
                let rest = self.money.remove_from(&without_question());
                // Where words have spaces between them, these are common words.
                let has_parts = matches!(self.what, Phrases::Parts(_));
                let rest = if has_parts { self.what.remove_from(&rest) } else { rest };
                Some((RequiredContent::Money, rest.lower))
            }
            // In Korean, the words that ask are common ones, and show what is a unit.
            () if is_number && self.is_korean => Some((RequiredContent::Number, text.lower)),
            () if is_number => Some((RequiredContent::Number, without_question().lower)),
            () => None,
        }
    }

    /// A message that begins with a word about prices, without such words; `None` for any other.
    fn without_price(&self, message: &str) -> Option<String> {
        let text = self.idioms.remove_from(&ContentText::new(message));
        self.money.begin(&text).then(|| {
            let rest = self.money.remove_from(&text).lower;
            REQUESTS.iter().fold(rest, |rest, request| rest.replace(request, " "))
        })
    }

    /// Whether a text of the transcript has it.
    fn has_content(&self, text: &str, required: RequiredContent) -> bool {
        let text = ContentText::new(text);
        match required {
            RequiredContent::Number => {
                let is_number = |word: &QueryWord| {
                    let values = self.numbers.values(&word.folded);
                    values.iter().any(|value| *value != 1)
                };
                text.lower.contains(char::is_numeric)
                    || text.words.iter().any(is_number)
                    || self.quantities.are_in(&text)
            }
            RequiredContent::Money => {
                text.lower.contains(CURRENCY_SIGNS) || self.amounts.are_in(&text) || self.money.are_in(&text)
            }
        }
    }
}

/// A text in lower case, and its words.
#[derive(Debug)]
struct ContentText {
    lower: String,
    words: Vec<QueryWord>,
}

impl ContentText {
    fn new(text: &str) -> Self {
        Self { lower: text.to_lowercase(), words: query_words(text, CommonWords::of("")) }
    }
}

/// Phrases of a language.
#[derive(Debug)]
enum Phrases {
    /// Of a language whose words have spaces between them.
    Words(Vec<Vec<WordPattern>>),
    /// Of any other, and of Korean, whose words have endings: parts of a text.
    Parts(Vec<&'static str>),
}

/// A word, folded: whole, its beginning, or its end.
#[derive(Debug)]
enum WordPattern {
    Whole(String),
    Beginning(String),
    End(String),
}

impl WordPattern {
    fn new(listed: &str) -> Self {
        match (listed.strip_prefix('*'), listed.strip_suffix('*')) {
            (Some(end), _) => Self::End(fold(end)),
            (None, Some(beginning)) => Self::Beginning(fold(beginning)),
            (None, None) => Self::Whole(fold(listed)),
        }
    }

    fn matches(&self, word: &QueryWord) -> bool {
        match self {
            Self::Whole(whole) => word.folded == *whole,
            Self::Beginning(beginning) => word.folded.starts_with(beginning.as_str()),
            Self::End(end) => word.folded.ends_with(end.as_str()),
        }
    }
}

impl Phrases {
    fn new(listed: &'static str, has_words: bool) -> Self {
        let listed = listed.split('|').filter(|phrase| !phrase.is_empty());
        match has_words {
            true => {
                Self::Words(listed.map(|phrase| phrase.split(' ').map(WordPattern::new).collect()).collect())
            }
            false => Self::Parts(listed.collect()),
        }
    }

    /// Whether a text has one of them.
    fn are_in(&self, text: &ContentText) -> bool {
        match self {
            Self::Words(phrases) => phrases
                .iter()
                .any(|phrase| text.words.windows(phrase.len()).any(|words| matches_words(phrase, words))),
            Self::Parts(parts) => parts.iter().any(|part| text.lower.contains(part)),
        }
    }

    /// Whether a text begins with one of them, perhaps behind an article.
    fn begin(&self, text: &ContentText) -> bool {
        match self {
            Self::Words(phrases) => {
                let articles = text.words.iter().take_while(|word| has_word(ARTICLES, &word.folded)).count();
                let words = text.words.get(articles..).unwrap_or_default();
                let begins =
                    |phrase: &Vec<WordPattern>| phrase.len() <= words.len() && matches_words(phrase, words);
                phrases.iter().any(begins)
            }
            Self::Parts(parts) => parts.iter().any(|part| text.lower.trim_start().starts_with(*part)),
        }
    }

    /// The text without them.
    fn remove_from(&self, text: &ContentText) -> ContentText {
        let rest = match self {
            Self::Words(phrases) => {
                let mut kept = vec![true; text.words.len()];
                for phrase in phrases {
                    for (at, words) in text.words.windows(phrase.len()).enumerate() {
                        if matches_words(phrase, words) {
                            kept.iter_mut().skip(at).take(phrase.len()).for_each(|kept| *kept = false);
                        }
                    }
                }
                let words = text.words.iter().zip(kept).filter(|(_, kept)| *kept);
                // In lower case with accents, as the question had them: stemmers read these.
                words.map(|(word, _)| word.lower.as_str()).collect::<Vec<_>>().join(" ")
            }
            Self::Parts(parts) => parts.iter().fold(text.lower.clone(), |rest, part| rest.replace(part, " ")),
        };
        ContentText::new(&rest)
    }
}

fn matches_words(phrase: &[WordPattern], words: &[QueryWord]) -> bool {
    phrase.iter().zip(words).all(|(pattern, word)| pattern.matches(word))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{chat::passages, transcript::Segment};

    #[test]
    fn required_content_of_questions() {
        for (language, message, expect) in [
            (
                "en",
                "How many eggs go into the dough?",
                Some((RequiredContent::Number, "eggs go into the dough")),
            ),
            ("en", "How tall is the lighthouse?", Some((RequiredContent::Number, "is the lighthouse"))),
            ("en", "What does the warden earn?", Some((RequiredContent::Money, "what does the warden"))),
            ("en", "How much did she pay for it?", Some((RequiredContent::Money, "did she for it"))),
            ("en", "How expensive is it?", Some((RequiredContent::Money, "is it"))),
            ("en", "Why did the price rise?", None),
            ("en", "Somehow many came, who were they?", None),
            ("en", "How farmers plough", None),
            ("en", "What is in the dough?", None),
            ("de", "Wie alt ist der Deich?", Some((RequiredContent::Number, "ist der deich"))),
            ("de", "Was kostet der Eintritt?", Some((RequiredContent::Money, "was der eintritt"))),
            ("de", "Welche Rede hat sie gehalten?", None),
            ("fr", "Combien de tuyaux a l'orgue ?", Some((RequiredContent::Number, "de tuyaux a l orgue"))),
            ("fr", "De quel pays vient-elle ?", None),
            ("es", "¿Cuánto cuesta una guitarra?", Some((RequiredContent::Money, "una guitarra"))),
            ("ru", "Сколько лет мосту?", Some((RequiredContent::Number, "лет мосту"))),
            ("tr", "Köyün nüfusu kaç?", Some((RequiredContent::Number, "köyün nüfusu"))),
            ("hi", "कमला की तनख्वाह क्या है?", Some((RequiredContent::Money, "कमला की क्या है"))),
            ("zh", "红茶多少钱一斤？", Some((RequiredContent::Money, "红茶 一斤？"))),
            ("ja", "棚の費用はいくら", Some((RequiredContent::Money, "棚の は "))),
            ("ja", "一日に何人来ますか？", Some((RequiredContent::Number, "一日に 来ますか？"))),
            (
                "ko",
                "물질을 몇 살에 시작했나요?",
                Some((RequiredContent::Number, "물질을 몇 살에 시작했나요?")),
            ),
            ("th", "ก๋วยเตี๋ยวชามละกี่บาท", Some((RequiredContent::Money, "ก๋วยเตี๋ยวชามละ "))),
            ("th", "วิดีโอนี้เกี่ยวกับอะไร", None),
        ] {
            let required = LANGUAGES[language].required(message);
            let required = required.as_ref().map(|(required, rest)| (*required, rest.as_str()));
            assert_eq!(required, expect, "{message}");
        }
    }

    #[test]
    fn required_content_of_answers() {
        for (language, required, text, expect) in [
            ("en", RequiredContent::Number, "The warden has to go on.", false),
            ("en", RequiredContent::Number, "It is one of the rooms, with a warden.", true),
            ("en", RequiredContent::Number, "It has twenty-two steps.", true),
            ("en", RequiredContent::Number, "There is only one warden.", true),
            ("en", RequiredContent::Number, "About half of them.", true),
            ("de", RequiredContent::Number, "Es sind dreihundert Stufen.", true),
            ("de", RequiredContent::Number, "Ich bin auf der Treppe.", false),
            ("tr", RequiredContent::Number, "Köyde dört yüz kişi var.", true),
            ("ko", RequiredContent::Number, "열여섯에 시작했어요", true),
            ("zh", RequiredContent::Number, "有十三级台阶", true),
            ("th", RequiredContent::Number, "เปิดหกโมงเช้า", true),
            ("ar", RequiredContent::Number, "عندنا خمسة جمال", true),
            ("hi", RequiredContent::Number, "उनकी उम्र पैंतालीस है", true),
            ("en", RequiredContent::Money, "The central market was close, for a century.", false),
            ("en", RequiredContent::Money, "It was £4.", true),
            ("en", RequiredContent::Money, "Admission is free.", true),
            ("de", RequiredContent::Money, "Sie nahm dreitausend dafür.", true),
            ("hi", RequiredContent::Money, "पाँच सौ रुपये मिलते थे", true),
        ] {
            assert_eq!(LANGUAGES[language].has_content(text, required), expect, "{text}");
        }
    }

    #[test]
    fn required_content_stands_beside_the_words() {
        let spoken = [
            "The lighthouse stands on the rock, and the warden paints it in the spring.",
            "It was built by people who had never seen one, and it is forty metres high.",
            "In the winter there was a fog that the village still remembers.",
            "The gulls sleep on the roof of the boathouse and wake with the tide.",
            "The boathouse was the last thing that they built out there on the rock.",
            "My sister paid nine hundred pounds for the old boat.",
        ];
        let segments: Vec<_> =
            (0..).zip(spoken).map(|(n, text)| Segment::new(text, n * 60_000, 5_000)).collect();
        let passages = passages(&segments);
        let index = SearchIndex::new(&passages);
        for (message, expect) in [
            ("How tall is the lighthouse?", true),
            ("What did the boat cost?", true),
            ("How many gulls are on the roof?", false),
            ("What does the warden earn?", false),
            ("What do the gulls do?", true),
        ] {
            let requirement = Requirement::of(message, &index, &passages);
            let is_met = requirement.and_then(|requirement| requirement.is_met(true, 0.28));
            assert_eq!(is_met.unwrap_or(true), expect, "{message}");
        }
    }

    #[test]
    fn required_number_of_measured_thing_ignores_verb() {
        let spoken = [
            "Пожар был ночью, и они тушили его четырнадцать минут.",
            "А потом все было так, как и до того, и никто об этом не говорил.",
        ];
        let segments: Vec<_> =
            (0..).zip(spoken).map(|(n, text)| Segment::new(text, n * 60_000, 5_000)).collect();
        let passages = passages(&segments);
        let index = SearchIndex::new(&passages);
        for (message, expect) in [
            ("Сколько был пожар?", true),
            ("Сколько длился пожар?", true),
            ("Сколько продолжался пожар?", true),
            ("Сколько длился полёт?", false),
        ] {
            let requirement = Requirement::of(message, &index, &passages).unwrap();
            assert_eq!(requirement.is_met(true, 0.28), Some(expect), "{message}");
        }
    }

    #[test]
    fn required_content_is_money_for_price_without_question() {
        let english = "The lighthouse stands on the rock, and it was three hundred pounds at the time.";
        let german = "Das Haus steht auf dem Berg, und ich habe dreihundert Euro gegeben.";
        let french = "La maison est sur la montagne, et elle est à trois cents euros pour nous.";
        let russian = "Дом стоит на горе, и это было за триста рублей.";
        let arabic = "هذا البيت على الجبل وهو بثلاثين دينارا في كل شهر.";
        let japanese = "ラーメンは九百五十円で、町の人が食べています。";
        for (spoken, message, expect) in [
            (english, "price?", Some(true)),
            (english, "the price", Some(true)),
            (english, "Cost", Some(true)),
            (english, "Why did the price rise?", None),
            (english, "Price controls in Argentina", None),
            (german, "Preis?", Some(true)),
            (german, "Die Kosten?", Some(true)),
            (french, "prix", Some(true)),
            (russian, "зарплата?", Some(true)),
            (russian, "Стоит ли покупать телескоп?", None),
            (arabic, "السعر؟", Some(true)),
            (japanese, "値段は？", Some(true)),
            (japanese, "価格を教えてください", Some(true)),
            ("We walked to the rock, and it was there.", "price?", Some(false)),
        ] {
            let passages = passages(&[Segment::new(spoken, 0, 5_000)]);
            let index = SearchIndex::new(&passages);
            let requirement = Requirement::of(message, &index, &passages);
            let is_met = requirement.and_then(|requirement| requirement.is_met(false, 0.28));
            assert_eq!(is_met, expect, "{message}");
        }
    }
}
