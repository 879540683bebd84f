//! Generic words of many languages, which say little about a subject, and the language that they show.
//!
//! The lists are those of stopwords-iso. They are longer than [`super::common_words`] and contain words that a question
//! may be about, so a generic word keeps part of its weight.

use std::{
    collections::{HashMap, HashSet},
    sync::LazyLock,
};

use super::tokenizer::{Term, terms};
use crate::transcript::script::{Script, char_script};

/// Languages with a list, by primary tag, each with its words in lines (`build.rs`); at most 32.
const LANGUAGES: &[(&str, &str)] = &include!(concat!(env!("OUT_DIR"), "/generic_words.rs"));
/// Share of the words of a text that are generic words of its language.
const GENERIC_SHARE_MIN: f32 = 0.15;

/// Each folded word with a bit for each language that has it.
static GENERIC_WORDS: LazyLock<HashMap<String, u32>> = LazyLock::new(|| {
    let mut words: HashMap<String, u32> = HashMap::new();
    for (bit, (_, list)) in LANGUAGES.iter().enumerate() {
        for word in list.lines() {
            terms(word, |term| match term {
                Term::Word(text, _) | Term::Ngram(text) => {
                    *words.entry(text.to_owned()).or_default() |= 1 << bit;
                }
                Term::Stem(_) => {}
            });
        }
    }
    words
});

/// Verbs of saying and thinking, by language, of which the lists have some forms only. "What does she say about
/// sharks?" is about sharks: any transcript may have the verb. In Chinese also words for names.
const SAYING_VERBS: [(&str, &str); 18] = [
    ("en", "speak speaks speaking spoke spoken advise advises advised recommends recommended"),
    (
        "de",
        "erzählt erzählte erzählen hält meint meinte denkt dachte empfiehlt empfahl empfehlen redet redete \
         spricht sprechen berichtet berichtete erwähnt erwähnte",
    ),
    (
        "fr",
        "dit disent disait raconte racontent raconté conseille conseillent conseillé parle parlent parlé \
         pense pensent mentionne mentionné recommande recommandé évoque",
    ),
    (
        "es",
        "dice dicen dijo cuentan contó habla hablan habló piensa piensan opina opinan recomienda \
         recomiendan recomendó aconseja aconsejan menciona mencionan mencionó",
    ),
    (
        "pt",
        "diz dizem disse fala falam falou falar contam contou pensa pensam acha acham opina \
         recomenda recomendou aconselha menciona mencionou",
    ),
    (
        "it",
        "dice dicono detto racconta raccontano raccontato parla parlano parlato pensa pensano consiglia \
         consigliano consigliato menziona",
    ),
    (
        "nl",
        "zegt zeggen gezegd vertelt vertellen verteld praat praten gepraat spreekt spreken denkt denken \
         vindt raadt noemt vermeldt",
    ),
    ("sv", "säger sade sagt berättar berättade pratar pratade talar tycker tänker nämner"),
    (
        "ru",
        "говорит говорят говорил говорила сказал сказала сказали рассказывает рассказывал рассказывала \
         рассказал рассказала рассказали думает думают думал думала советует советуют советовал \
         посоветовал упоминает упоминал упоминала упомянул упомянула считает",
    ),
    ("uk", "каже кажуть сказав сказала говорить говорив розповідає розповів розповіла думає радить згадує"),
    (
        "pl",
        "mówi mówią mówił mówiła powiedział powiedziała opowiada opowiadał opowiadała myśli sądzi uważa \
         radzi poleca wspomina",
    ),
    (
        "tr",
        "söylüyor söyledi söyler diyor dedi anlatıyor anlattı konuşuyor konuştu düşünüyor düşündü öneriyor \
         bahsediyor bahsetti",
    ),
    ("ar", "يقول تقول قال قالت يتحدث تتحدث تحدث تحدثت يذكر تذكر ذكر يحكي تحكي يعتقد تعتقد ينصح تنصح"),
    ("hi", "कहा कहते कहती कहता बताया बताते बताती बताता बोला बोले बोलते बोलती सोचते सोचती सोचता"),
    ("id", "bilang katanya bercerita berbicara bicara mengatakan berpendapat menyebut menyarankan"),
    ("ja", "言"),
    ("zh", "说 說 讲 講 谈 談 提到 叫 名字"),
    ("ko", "말했 말하 말씀 얘기 언급"),
];

/// Verbs for "happen", by language: "What happened to the barn?" is about the barn.
const HAPPENING_VERBS: [(&str, &str); 15] = [
    ("de", "passiert passierte passieren geschieht geschah geschehen"),
    ("fr", "passe passé arrive arrivé"),
    ("es", "pasa pasó pasaba sucede sucedió ocurre ocurrió"),
    ("pt", "acontece aconteceu"),
    ("it", "succede successo accade accadde"),
    ("nl", "gebeurt gebeurde gebeurd"),
    ("ru", "происходит произошло случилось"),
    ("uk", "сталося відбулося відбувається"),
    ("pl", "dzieje stało"),
    ("tr", "oluyor olur oldu"),
    ("ar", "يحدث حدث"),
    ("hi", "होता हुआ"),
    ("id", "terjadi"),
    ("sv", "händer hände"),
    ("da", "sker skete"),
];

/// Whether a word in lower case is such a verb in any language.
pub(super) fn is_happening_verb(word: &str) -> bool {
    HAPPENING_VERBS.iter().any(|(_, verbs)| verbs.split_whitespace().any(|verb| verb == word))
}

/// The words and n-grams of these verbs, folded.
static FOLDED_VERBS: LazyLock<HashMap<&'static str, HashSet<String>>> = LazyLock::new(|| {
    let folded = |verbs: &str| {
        let mut words = HashSet::new();
        terms(verbs, |term| {
            if !matches!(term, Term::Stem(_)) {
                words.insert(term.text().to_owned());
            }
        });
        words
    };
    let mut all: HashMap<&str, HashSet<String>> = HashMap::new();
    for (language, verbs) in SAYING_VERBS.into_iter().chain(HAPPENING_VERBS) {
        all.entry(language).or_default().extend(folded(verbs));
    }
    all
});

/// Whether a folded word or n-gram is a verb of saying, thinking or happening in a language.
pub(super) fn is_generic_verb(word: &str, language: &str) -> bool {
    FOLDED_VERBS.get(language).is_some_and(|verbs| verbs.contains(word))
}

/// Whether a folded word or n-gram is generic in a language. Both written forms of Norwegian have the list of `no`.
pub(super) fn is_generic_word(word: &str, language: &str) -> bool {
    let language = if matches!(language, "nb" | "nn") { "no" } else { language };
    let bit = LANGUAGES.iter().position(|(other, _)| *other == language);
    bit.is_some_and(|bit| GENERIC_WORDS.get(word).is_some_and(|languages| languages >> bit & 1 == 1))
}

/// The language of a text by its folded words and n-grams with their counts: a primary tag, empty if unknown.
pub(super) fn language_of_counts<'a>(counts: impl Iterator<Item = (&'a str, u32)>) -> &'static str {
    shown_language(counts).0
}

/// As [`language_of_counts`], and whether no other language has as many generic words in the text.
pub(super) fn shown_language<'a>(counts: impl Iterator<Item = (&'a str, u32)>) -> (&'static str, bool) {
    let mut hits = [0_u32; LANGUAGES.len()];
    let (mut all, mut unspaced, mut kana, mut hangul, mut thai) = (0, 0, 0, 0, 0);
    for (word, count) in counts {
        all += count;
        match word.chars().next().map(char_script) {
            Some(Script::Han) => unspaced += count,
            Some(Script::Hiragana | Script::Katakana) => kana += count,
            Some(Script::Hangul) => hangul += count,
            Some(Script::Thai) => thai += count,
            _ => {
                let languages = GENERIC_WORDS.get(word).copied().unwrap_or(0);
                for (bit, hits) in hits.iter_mut().enumerate() {
                    *hits += (languages >> bit & 1) * count;
                }
            }
        }
    }
    // Japanese mixes Kana with Chinese characters.
    let unspaced =
        [("ja", kana + if kana > 0 { unspaced } else { 0 }), ("zh", unspaced), ("ko", hangul), ("th", thai)];
    if let Some((language, _)) = unspaced.into_iter().find(|(_, count)| count * 2 > all) {
        return (language, true);
    }
    let most = hits.iter().copied().max().unwrap_or(0);
    let mut best = LANGUAGES.iter().zip(hits).filter(|(_, hits)| *hits == most);
    let first = best.next().filter(|_| most as f32 >= GENERIC_SHARE_MIN * all as f32 && most > 0);
    (first.map_or("", |((language, _), _)| *language), best.next().is_none())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn generic_words_are_lists_of_stopwords_iso() {
        assert_eq!(LANGUAGES.len(), 27);
        for (language, list) in LANGUAGES {
            assert!(list.lines().eq(stop_words::lookup(language).unwrap().iter().copied()), "{language}");
        }
    }

    #[test]
    fn generic_words_show_language() {
        for (text, expect) in [
            ("the bridge was built by people who had never seen one", "en"),
            ("die Brücke wurde von Leuten gebaut, die nie eine gesehen hatten", "de"),
            ("le pont a été construit par des gens qui n'en avaient jamais vu", "fr"),
            ("el puente fue construido por gente que nunca había visto uno", "es"),
            ("de brug werd gebouwd door mensen die er nog nooit een hadden gezien", "nl"),
            ("bron byggdes av människor som aldrig hade sett en bro", "sv"),
            ("most został zbudowany przez ludzi, którzy nigdy go nie widzieli", "pl"),
            ("мост построили люди, которые никогда его не видели", "ru"),
            ("橋は見たことのない人々によって造られました", "ja"),
            ("这座桥是由从未见过桥的人建造的", "zh"),
            ("다리를 본 적이 없는 사람들이 지었습니다", "ko"),
            ("สะพานสร้างโดยคนที่ไม่เคยเห็น", "th"),
            ("xyzzy plugh", ""),
            ("", ""),
        ] {
            let mut words: Vec<String> = Vec::new();
            terms(text, |term| {
                if !matches!(term, Term::Stem(_)) {
                    words.push(term.text().to_owned());
                }
            });
            assert_eq!(language_of_counts(words.iter().map(|word| (word.as_str(), 1))), expect, "{text}");
        }
        assert!(is_generic_word("best", "en") && !is_generic_word("bridge", "en"));
        assert!(
            is_generic_verb("halt", "de") && is_generic_verb("提到", "zh") && is_generic_verb("말했", "ko")
        );
        assert!(!is_generic_verb("halt", "en") && !is_generic_verb("", ""));
    }
}
