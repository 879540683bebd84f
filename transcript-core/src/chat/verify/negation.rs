//! Negation: whether a sentence denies what the cited passages state, or states what they deny.
//!
//! A negating word covers the next three informative words of its clause, or the last three before it if none follows.
//! [`Clauses`](super::clauses) end at punctuation and conjunctions. A sentence conflicts with the passages if
//!
//! - a negation covers words of the passages, of which they do not negate the first or negate less than half, or words
//!   that they do not have while they negate nothing; unless it covers a word of the question that they do not have;
//! - it denies that something is true, and neither do the passages nor say that anything is untrue, unless the question
//!   is about that;
//! - a clause has two negating words, which cancel each other in some languages, and the passages have no such clause;
//! - the sentence states the first word, or two words, of a negation in the passages that they state nowhere, unless it
//!   negates the first.
//!
//! Recognised speech without punctuation has no visible clauses: there a negation may cover words of the next one, and
//! only its first word is certain. It counts for a sentence that has this word, and for no other.
//!
//! Words of opposite sense contradict too: see [`opposites`](super::opposites).
//!
//! Words such as "forbidden" or "failed" negate too. In a clause of a passage with one of them, words count as stated
//! and as negated, because the passage may go either way.

use std::collections::HashSet;

use super::{
    super::common_words::language_of,
    clauses::{Clause, Item, clauses, is_boundary},
    negation_words::NegationWords,
    opposites::{self, OCCURRENCES_MAX, PairOccurrence, PairWords, SIDE_TERMS_MAX},
};
use crate::transcript::{LanguageTag, is_unspaced};

/// Maximum of informative words that a negating word covers.
const SCOPE_WORDS: usize = 3;
/// Items between a negating word and the word for truth that it negates.
const TRUTH_DISTANCE: usize = 2;
/// Maximum of informative words after a comma that belong to the clause before it.
const SUPPLEMENT_WORDS_MAX: usize = 2;
/// Informative words of an average clause, above which a text has no punctuation. Unspaced scripts are not counted.
const CLAUSE_WORDS_MAX: usize = 8;

/// What a text states and what it negates, as search terms.
#[derive(Clone, Debug, Default)]
pub(super) struct Polarity {
    /// Terms that each negation covers, nearest first.
    negations: Vec<Vec<String>>,
    stated: HashSet<String>,
    negated: HashSet<String>,
    /// Whether a clause has two negating words that cancel each other.
    has_double: bool,
    /// Terms of clauses with a word that denies without negating.
    doubtful: HashSet<String>,
    /// Whether the ends of clauses are unknown.
    is_unpunctuated: bool,
    /// Negated words for truth.
    denied_truths: HashSet<String>,
    /// Whether a word says that something is untrue.
    has_untruth: bool,
    /// Words that have an opposite.
    opposites: Vec<PairOccurrence>,
}

impl Polarity {
    /// Reads a text; `language` is that of the transcript.
    pub(super) fn new(text: &str, language: &LanguageTag) -> Self {
        let language = language_of(text, language.primary());
        let (words, pairs) = (NegationWords::new(language), PairWords::new(language));
        let mut polarity = Self::default();
        let clauses = clauses(text, words, &pairs);
        let spaced = |item: &&Item| matches!(item, Item::Term(term) if !term.starts_with(is_unspaced));
        let count = clauses.iter().flat_map(|clause| &clause.items).filter(spaced).count();
        polarity.is_unpunctuated = count > CLAUSE_WORDS_MAX * clauses.len();
        for (index, clause) in clauses.iter().enumerate() {
            let goes_on = matches!(clause.end, Some(',' | '，' | '、'));
            let next = clauses.get(index + 1).filter(|_| goes_on);
            let next = next.and_then(|next| next.items.split(is_boundary).next()).unwrap_or_default();
            let mut subject = subject_of(&clauses, index);
            let mut parts = clause.items.split(is_boundary).peekable();
            while let Some(items) = parts.next() {
                let negators = items.iter().filter(|item| **item == Item::Negator).count();
                polarity.has_double |= negators > 1 && words.cancel();
                polarity.add_clause(items);
                let next = if parts.peek().is_none() { next } else { &[] };
                polarity.add_opposites(items, next, std::mem::take(&mut subject));
            }
        }
        polarity
    }

    fn add_clause(&mut self, items: &[Item]) {
        let term = |item: &Item| if let Item::Term(term) = item { Some(term.clone()) } else { None };
        if items.contains(&Item::Doubt) {
            self.doubtful.extend(items.iter().filter_map(term));
        }
        self.has_untruth |= items.contains(&Item::Untruth);
        self.add_denied_truths(items);
        let mut covered: HashSet<usize> = HashSet::new();
        for (index, item) in items.iter().enumerate() {
            let is_term = |index: &usize| matches!(items.get(*index), Some(Item::Term(_)));
            let after = || (index + 1..items.len()).filter(is_term).take(SCOPE_WORDS).collect::<Vec<_>>();
            let before = || (0..index).rev().filter(is_term).take(SCOPE_WORDS).collect::<Vec<_>>();
            let scope = match item {
                Item::Negator | Item::Doubt => {
                    Some(after()).filter(|scope| !scope.is_empty()).unwrap_or_else(before)
                }
                Item::Suffix => before(),
                _ => continue,
            };
            if !scope.is_empty() {
                self.negations.push(scope.iter().filter_map(|index| term(items.get(*index)?)).collect());
            }
            covered.extend(scope);
        }
        for (index, item) in items.iter().enumerate() {
            let terms = if covered.contains(&index) { &mut self.negated } else { &mut self.stated };
            terms.extend(term(item));
        }
    }

    fn add_denied_truths(&mut self, items: &[Item]) {
        for (index, item) in items.iter().enumerate() {
            let Item::Truth(word) = item else { continue };
            let near =
                items.iter().take(index + 1 + TRUTH_DISTANCE).skip(index.saturating_sub(TRUTH_DISTANCE));
            if near.into_iter().any(|item| *item == Item::Negator) {
                self.denied_truths.insert(word.clone());
            }
        }
    }

    /// Adds the words of pairs of a clause.
    ///
    /// `next` is what follows its comma, and `subject` what is before a parenthesis.
    fn add_opposites(&mut self, items: &[Item], next: &[Item], subject: &[Item]) {
        let denies = |item: &Item| matches!(item, Item::Negator | Item::Suffix | Item::Doubt);
        // "Refused" is a word of a pair.
        let is_pair = |items: &&[Item]| matches!(items, [Item::Doubt, Item::Opposite(pair)] if pair.denies);
        let is_denied =
            items.iter().filter(|item| denies(item)).count() > items.windows(2).filter(is_pair).count();
        let term = |item: &Item| if let Item::Term(term) = item { Some(term.clone()) } else { None };
        let pair = |(index, item)| if let &Item::Opposite(pair) = item { Some((index, pair)) } else { None };
        let pairs = || items.iter().enumerate().filter_map(pair);
        let is_certain = pairs().nth(1).is_none() && !is_denied;
        // A few words after a comma, of which the last one is the noun: "cheap, even in winter".
        let supplement: Vec<_> = next.iter().rev().filter_map(term).take(SUPPLEMENT_WORDS_MAX + 1).collect();
        let is_short = supplement.len() <= SUPPLEMENT_WORDS_MAX && !next.iter().any(denies);
        let supplement = Some(supplement).filter(|_| is_short).unwrap_or_default();
        let room = OCCURRENCES_MAX.saturating_sub(self.opposites.len());
        for (index, pair) in pairs().take(room) {
            let own = items.get(index + 1).filter(|_| pair.has_term).and_then(term).unwrap_or_default();
            // Pairs of letters overlap.
            let (first, last) = (own.chars().next(), own.chars().last());
            let before = items.iter().take(index).rev().filter_map(term);
            let before = before.skip_while(|term| first.is_some() && term.chars().last() == first);
            let mut before: Vec<_> = before.take(SIDE_TERMS_MAX).collect();
            if before.is_empty() {
                before.extend(subject.iter().rev().filter_map(term));
            }
            let after = items.iter().skip(index + 1 + usize::from(pair.has_term)).filter_map(term);
            let after = after.skip_while(|term| last.is_some() && term.chars().next() == last);
            let mut after: Vec<_> = after.take(SIDE_TERMS_MAX).collect();
            if after.is_empty() {
                after.extend(supplement.iter().cloned());
            }
            self.opposites.push(PairOccurrence {
                word: pair.word,
                before,
                after,
                is_certain: is_certain && !pair.is_phrase,
            });
        }
    }

    /// Whether a sentence with this polarity contradicts the passages; `is_asked` are the terms of the question.
    pub(super) fn contradicts(&self, passages: &Self, is_asked: impl Fn(&str) -> bool) -> bool {
        let denies_nothing = passages.negations.is_empty() && passages.doubtful.is_empty();
        let counts = |scope: &&Vec<String>| {
            !passages.is_unpunctuated || scope.first().is_some_and(|first| self.has(first))
        };
        let negations: Vec<&Vec<String>> = passages.negations.iter().filter(counts).collect();
        let certain: HashSet<&String> = negations.iter().copied().flatten().collect();
        let says_untrue = passages.has_untruth || !passages.denied_truths.is_empty();
        let is_unfounded = |scope: &Vec<String>| {
            let negated = |term: &String| certain.contains(term) || passages.doubtful.contains(term);
            let is_untrue =
                says_untrue && scope.first().is_some_and(|first| self.denied_truths.contains(first));
            let shared: Vec<_> = scope.iter().filter(|term| passages.has(term)).collect();
            let denies_question = scope.iter().any(|term| is_asked(term) && !passages.has(term));
            let is_founded = match shared.first() {
                None => !denies_nothing,
                Some(first) => {
                    negated(first) && shared.iter().filter(|term| negated(term)).count() * 2 >= shared.len()
                }
            };
            !is_founded && !denies_question && !is_untrue
        };
        let is_reversed = |scope: &Vec<String>| {
            // "No queen in the second hive" is "The second hive has no queen".
            if scope.first().is_some_and(|first| self.negated.contains(first) && !self.stated.contains(first))
            {
                return false;
            }
            let reversed = |term: &String| {
                let is_stated = passages.stated.contains(term) || passages.doubtful.contains(term);
                self.stated.contains(term) && !self.negated.contains(term) && !is_stated
            };
            scope.first().is_some_and(reversed) || scope.iter().filter(|term| reversed(term)).count() > 1
        };
        let is_denied = !says_untrue && self.denied_truths.iter().any(|word| !is_asked(word));
        is_denied
            || (self.has_double && !passages.has_double)
            || self.negations.iter().any(is_unfounded)
            || negations.into_iter().any(is_reversed)
            || opposites::is_reversed(&self.opposites, &passages.opposites)
    }

    fn has(&self, term: &str) -> bool {
        self.stated.contains(term) || self.negated.contains(term) || self.doubtful.contains(term)
    }
}

/// The clause before a short parenthesis that ends before this clause: "The mayor, Ellen Whitcombe, refused".
fn subject_of(clauses: &[Clause], index: usize) -> &[Item] {
    let before = |distance: usize| {
        index.checked_sub(distance).and_then(|at| clauses.get(at)).filter(|clause| clause.end == Some(','))
    };
    let (Some(aside), Some(subject)) = (before(1), before(2)) else { return &[] };
    let is_name = |item: &Item| matches!(item, Item::Term(_));
    let is_short = aside.items.len() <= SUPPLEMENT_WORDS_MAX && aside.items.iter().all(is_name);
    if is_short && subject.items.iter().all(is_name) { &subject.items } else { &[] }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn contradicts(sentence: &str, spoken: &str, language: &str) -> bool {
        let language = LanguageTag::parse(language).unwrap();
        Polarity::new(sentence, &language).contradicts(&Polarity::new(spoken, &language), |_| false)
    }

    /// Language, passage, a sentence that agrees with it, and one that does not.
    const CASES: &[(&str, &str, &str, &str)] = &[
        (
            "en",
            "the bridge was built by hand",
            "The bridge was built by hand",
            "The bridge was never built by hand",
        ),
        (
            "en",
            "the bridge was built by hand",
            "They built the bridge by hand",
            "None of them built the bridge by hand",
        ),
        (
            "en",
            "the bridge was built by hand",
            "The bridge, built by hand",
            "The bridge wasn’t built by hand",
        ),
        (
            "en",
            "the bridge was built by hand",
            "By hand the bridge was built",
            "They refused to build it by hand",
        ),
        ("en", "we did not sell the boat", "They didn't sell the boat", "They sell the boat"),
        ("en", "never sail on a Friday", "One should not sail on a Friday", "One should sail on a Friday"),
        ("en", "there was no fire, but it was cold", "It was cold without fire", "There was fire"),
        ("en", "not only was it cold, the ice broke", "The ice broke", "The ice never broke"),
        (
            "en",
            "there is no queen in the second hive",
            "The second hive has no queen",
            "The second hive has a queen",
        ),
        (
            "en",
            "they did not visit the museum in Paris",
            "They did not visit the museum in Paris",
            "They visited the museum in Paris, but did not visit Rome",
        ),
        (
            "en",
            "his daughter has never been stung in six years",
            "For six years his daughter was never stung",
            "His daughter was stung in six years",
        ),
        ("de", "die Brücke wurde von Hand gebaut", "Von Hand gebaut", "Die Brücke wurde nie von Hand gebaut"),
        ("de", "er verkaufte das Haus nicht", "Das Haus verkaufte er nicht", "Er verkaufte das Haus"),
        (
            "fr",
            "le pont est construit à la main",
            "Un pont construit à la main",
            "Le pont n’est pas construit à la main",
        ),
        (
            "es",
            "el puente fue construido a mano",
            "Puente construido a mano",
            "El puente nunca fue construido a mano",
        ),
        ("it", "il ponte è costruito a mano", "Un ponte costruito a mano", "Il ponte non è costruito a mano"),
        (
            "pt",
            "a ponte foi construída à mão",
            "A ponte no rio, construída à mão",
            "A ponte não foi construída à mão",
        ),
        (
            "nl",
            "de brug is met de hand gebouwd",
            "Met de hand gebouwd",
            "De brug is niet met de hand gebouwd",
        ),
        ("ru", "мост построили вручную", "Мост построили вручную", "Мост никогда не построили вручную"),
        ("pl", "most zbudowano ręcznie", "Ręcznie zbudowano most", "Mostu nie zbudowano ręcznie"),
        ("tr", "köprü elle yapıldı", "Köprü elle yapıldı", "Köprü elle yapılmadı"),
        ("tr", "köprü eski değil", "Köprü eski değil", "Köprü eski"),
        ("he", "הגשר נבנה ביד", "הגשר נבנה ביד", "הגשר לא נבנה ביד"),
        ("ar", "بني الجسر باليد", "بني الجسر باليد", "لم بني الجسر باليد"),
        ("zh", "这座桥是手工建造的", "桥是手工建造的", "这座桥不是手工建造的"),
        ("zh", "水温不要超过八十度", "水温不宜超过八十度", "水温可以超过八十度"),
        ("zh", "下雨的时候别打开这个阀门", "下雨时别打开阀门", "下雨的时候要打开这个阀门"),
        ("zh", "这座桥特别重要", "这座桥特别重要", "这座桥不重要"),
        ("zh", "专家鉴别真假", "专家分辨真假", "专家不分辨真假"),
        ("zh", "他在车站送别朋友", "他在车站送朋友", "他没在车站送朋友"),
        ("zh", "大家别打开这个阀门", "别打开阀门", "打开这个阀门"),
        ("zh", "开车别喝酒", "开车时别喝酒", "开车可以喝酒"),
        ("zh", "小孩别碰电源", "孩子别碰电源", "小孩可以碰电源"),
        ("zh", "这个别乱动", "别乱动这个", "这个可以乱动"),
        ("zh", "里面很危险别过去", "危险别过去", "可以过去"),
        ("zh", "我們說話別太大聲", "說話別太大聲", "說話可以太大聲"),
        ("zh", "里面有个别房间漏水", "个别房间漏水", "个别房间没有漏水"),
        ("zh", "按性别统计人数", "统计性别", "没有统计性别"),
        ("zh", "在泰国别喝自来水", "别喝自来水", "可以喝自来水"),
        ("zh", "在中國別喝自來水", "別喝自來水", "可以喝自來水"),
        ("zh", "还有别打开阀门", "别打开阀门", "打开阀门"),
        ("zh", "下雨別出門", "下雨時別出門", "下雨可以出門"),
        ("zh", "这座桥别有风味", "这座桥有风味", "这座桥没有风味"),
        ("zh", "这件展品别出心裁", "展品出心裁", "展品不出心裁"),
        ("zh", "这里有别样风情", "这里有风情", "这里没有风情"),
        ("zh", "除了这座桥别无选择", "这座桥别无选择", "这座桥有选择"),
        ("zh", "这座桥有别于其他桥", "这座桥有其他桥", "这座桥没有其他桥"),
        ("zh", "今晚演出霸王別姬這齣戲", "演出這齣戲", "今晚没演出這齣戲"),
        ("ar", "هذا الماء مش نضيف", "هذا الماء مش نضيف", "هذا الماء نضيف"),
        (
            "en",
            "never, under any circumstances, pour water into the acid",
            "Never pour water into the acid",
            "Pour water into the acid",
        ),
        (
            "en",
            "the bridge is safe to cross",
            "The bridge is safe, however, to cross",
            "It is not, however, safe to cross",
        ),
        ("en", "it is not \"safe\" to touch", "It is not ‘safe’ to touch", "It is safe to touch"),
        ("en", "it is not... safe to touch", "It is not safe to touch", "It is safe to touch"),
        (
            "en",
            "it is not, as many say, the oldest bridge",
            "It is not the oldest bridge",
            "It is the oldest bridge",
        ),
        ("en", "it must not (at least now) be opened", "It mustn't be opened", "It must be opened"),
        (
            "en",
            "the captain did not – as many claim – murder the king",
            "The captain did not murder the king",
            "The captain murdered the king",
        ),
        ("en", "don't, whatever you do, open the valve", "Don’t open the valve", "Open the valve"),
        (
            "es",
            "no hay que, bajo ninguna circunstancia, abrir la válvula",
            "No hay que abrir la válvula",
            "Hay que abrir la válvula",
        ),
        ("ja", "橋は手で作りました", "橋を手で作りました", "橋は手で作りませんでした"),
        ("ko", "다리를 손으로 만들었습니다", "손으로 만들었습니다", "다리를 손으로 만들지 않았습니다"),
    ];

    #[test]
    fn polarity_reversed_statement_contradicts() {
        let mut failed = Vec::new();
        for (language, spoken, agreeing, reversed) in CASES {
            if contradicts(agreeing, spoken, language) {
                failed.push(format!("agrees: {agreeing} <- {spoken}"));
            }
            if !contradicts(reversed, spoken, language) {
                failed.push(format!("contradicts: {reversed} <- {spoken}"));
            }
        }
        assert!(failed.is_empty(), "{}", failed.join("\n"));
    }

    #[test]
    fn polarity_answer_or_tag_negates_nothing() {
        for (sentence, spoken) in [
            ("The ice broke the pier", "no, as you know, the ice broke the pier"),
            ("The ice broke the pier", "it wasn't, the ice broke the pier"),
            ("No, the captain says, the ice broke it", "the ice broke the pier"),
            ("The boats, however, sailed", "she said no – the boats, however, sailed"),
            ("The pier was old", "the ice broke the bridge, didn't it, and the pier was old"),
            ("The pier sank", "they did not, because of ice, and the pier sank"),
            ("The bridge was built in 1912", "like it or not, the old bridge, built in 1912, still stands"),
            ("In winter the boats sink", "more often than not, in winter, the boats sink"),
            ("Add water and knead the dough", "if not, add water, knead the dough, and wait"),
            ("Add water and knead the dough", "if it's not, add water, knead the dough, and wait"),
            ("I worked on my book", "but I didn't, I stayed home, I worked on my book"),
            ("The boats were new", "it wasn't, the bridge was old, the boats were new"),
            ("The boats were red", "it does not, which is the reason, the boats were red"),
            ("The bridge is in Paris", "she said \"I never lied\" about the bridge in Paris"),
            ("The bridge is in Paris", "she said “no, I never lied” about the bridge in Paris"),
        ] {
            assert!(!contradicts(sentence, spoken, "en"), "{sentence} <- {spoken}");
        }
    }

    #[test]
    fn polarity_without_punctuation_is_that_of_the_next_word() {
        let spoken = "they worked all winter on the river the old ferry did not float the bridge was built by hand in one \
                      summer by forty men from the valley";
        assert!(contradicts("It is not true that the bridge was built by hand", spoken, "en"));
        assert!(!contradicts("The bridge was built by hand in one summer", spoken, "en"));
        assert!(!contradicts("The ferry did not float", spoken, "en"));
        assert!(contradicts("The ferry did float", spoken, "en"));
    }

    #[test]
    fn polarity_opposites_are_bounded_and_then_uncertain() {
        let (reversed, spoken) = ("The fare is expensive in winter", "the fare is cheap in winter.");
        assert!(contradicts(reversed, spoken, "en"));
        let crowded = spoken.repeat(OCCURRENCES_MAX + 1);
        assert_eq!(Polarity::new(&crowded, &LanguageTag::english()).opposites.len(), OCCURRENCES_MAX);
        assert!(!contradicts(reversed, &crowded, "en"));
    }

    #[test]
    fn polarity_negation_of_unspoken_words_needs_a_negation() {
        assert!(contradicts("The bridge was never inspected", "the bridge was built by hand", "en"));
        assert!(contradicts("Die Brücke ist nicht von Hand gebaut", "the bridge was built by hand", "en"));
        assert!(!contradicts("It's the dogs' pier, isn't it?", "the ice broke the pier", "en"));
        assert!(!contradicts("Open flames are forbidden", "no open flames near the boats", "en"));
        assert!(contradicts("It is not true that they never sail", "they never sail on a Friday", "en"));
        assert!(contradicts(
            "It is not true that dough rests",
            "the dough is tight, never add it before it rests",
            "en"
        ));
        assert!(!contradicts("Restore rather than back up", "test the restore, not the backup", "en"));
        assert!(!contradicts("Elles vivent longtemps", "elles ne vivent que six semaines", "fr"));
        assert!(contradicts("Elles ne vivent pas six semaines", "elles ne vivent que six semaines", "fr"));
        assert!(!contradicts("八か月間運転できませんでした", "八か月運休しました", "ja"));
        assert!(!contradicts("They did not finish", "they failed to finish in time", "en"));
        let language = LanguageTag::english();
        let (sentence, spoken) = ("Nothing on elephants, only ice", "the ice broke the pier");
        let (sentence, spoken) = (Polarity::new(sentence, &language), Polarity::new(spoken, &language));
        assert!(sentence.contradicts(&spoken, |_| false) && !sentence.contradicts(&spoken, |_| true));
    }
}
