//! Forms of verbs, and irregular plurals, that stemmers keep apart: a speaker says "I drank", and a question asks what
//! she drinks.

use std::{borrow::Cow, collections::HashMap, sync::LazyLock};

use super::generic_words::is_generic_word;

/// English verbs and nouns with irregular forms, each with its forms.
const ENGLISH: &str = "beat beaten|become became|begin began begun|bend bent|bind bound|bite bitten|blow blew blown|\
    break broke broken|breed bred|bring brought|build built|burn burnt|buy bought|catch caught|choose chose chosen|\
    cling clung|creep crept|deal dealt|dig dug|draw drew drawn|dream dreamt|drink drank drunk|drive drove driven|\
    eat ate eaten|fall fell fallen|feed fed|fight fought|find found|flee fled|fly flew flown|\
    forget forgot forgotten|forgive forgave forgiven|freeze froze frozen|grow grew grown|hang hung|\
    hide hid hidden|hold held|keep kept|kneel knelt|lay laid|lead led|lean leant|leap leapt|learn learnt|\
    lend lent|light lit|lose lost|meet met|pay paid|ride rode ridden|ring rang rung|rise risen|\
    run ran|sell sold|send sent|sew sewn|shake shook shaken|shine shone|shoot shot|shrink shrank shrunk|\
    sing sang sung|sink sank sunk|sit sat|sleep slept|slide slid|smell smelt|sow sown|speak spoke spoken|\
    spell spelt|spend spent|spin spun|spring sprang sprung|stand stood|steal stole stolen|stick stuck|sting stung|\
    strike struck|swear swore sworn|sweep swept|swim swam swum|swing swung|teach taught|tear tore torn|think thought|\
    throw threw thrown|understand understood|wake woke woken|wear wore worn|weave wove woven|weep wept|win won|\
    write wrote written|child children|woman women|man men|foot feet|tooth teeth|mouse mice|goose geese|\
    calf calves|half halves|knife knives|leaf leaves|life lives|loaf loaves|thief thieves|wife wives|\
    wolf wolves|analysis analyses|crisis crises|criterion criteria|phenomenon phenomena";

/// Each form with its verb or noun.
static ENGLISH_FORMS: LazyLock<HashMap<&'static str, &'static str>> = LazyLock::new(|| {
    let mut verbs = HashMap::new();
    for forms in ENGLISH.split('|') {
        let mut forms = forms.split(' ');
        let Some(verb) = forms.next() else { continue };
        verbs.insert(verb, verb);
        verbs.extend(forms.map(|form| (form, verb)));
    }
    verbs
});

/// Persons of Arabic verbs: I, we, you or she, he.
const ARABIC_PERSONS: [char; 5] = ['\u{627}', 'أ', 'ن', 'ت', 'ي'];
const ARABIC_PLURALS: [&str; 2] = ["ون", "ين"];
/// Letters that an Arabic verb keeps without its person.
const ARABIC_LETTERS_MIN: usize = 3;
/// Letters that any other verb keeps without its ending.
const LETTERS_MIN: usize = 3;
const RUSSIAN_LETTERS_MIN: usize = 2;
const RUSSIAN_OTHERS: [&str; 4] = ["ет", "ит", "ят", "ют"];

/// Endings of Portuguese plurals, each with that of the singular, and the letters that are before it.
const PORTUGUESE_PLURALS: [(&str, &str, usize); 4] =
    [("oes", "ao", 2), ("aes", "ao", 3), ("ais", "al", 2), ("eis", "el", 2)];

/// Whether two different folded words are forms of one verb of a language: "drank" and "drink", `kocht` and `koche`.
pub(super) fn are_one_verb(language: &str, one: &str, other: &str) -> bool {
    match language {
        "ar" => arabic_verb(one).is_some_and(|verb| arabic_verb(other) == Some(verb)),
        "de" => german_verb(one, other) || german_verb(other, one),
        "en" => english_verb(one).is_some_and(|verb| english_verb(other) == Some(verb)),
        "fr" => french_verb(one, other) || french_verb(other, one),
        "ru" => russian_verb(one, other) || russian_verb(other, one),
        _ => false,
    }
}

/// The verb or noun of an irregular form, or of itself: "steal" for the folded word "stole"; `None` for other words.
///
/// In Portuguese, the singular of a plural whose stem the rules keep apart: `nacao` for `nacoes`.
pub(crate) fn irregular_base(language: &str, word: &str) -> Option<Cow<'static, str>> {
    match language {
        "en" => ENGLISH_FORMS.get(word).copied().map(Cow::Borrowed),
        "pt" => portuguese_singular(word).map(Cow::Owned),
        _ => None,
    }
}

fn portuguese_singular(word: &str) -> Option<String> {
    let singular = |(plural, ending, letters): &(&str, &str, usize)| {
        let rest = word.strip_suffix(plural).filter(|rest| has_letters(rest, *letters))?;
        Some(format!("{rest}{ending}"))
    };
    let singular = PORTUGUESE_PLURALS.iter().find_map(singular)?;
    // `quais` and `jamais` are no plurals.
    (word != "jamais" && !is_generic_word(word, "pt")).then_some(singular)
}

fn english_verb(word: &str) -> Option<&'static str> {
    let known = |word: &str| ENGLISH_FORMS.get(word).copied();
    known(word).or_else(|| known(word.strip_suffix('s')?)).or_else(|| known(word.strip_suffix("ing")?))
}

/// `kocht` and `koche`; folded words have no umlauts, so `lauft` is of `laufe` too.
fn german_verb(third: &str, first: &str) -> bool {
    let verb = third.strip_suffix("et").or_else(|| third.strip_suffix('t'));
    verb.is_some_and(|verb| has_letters(verb, LETTERS_MIN) && first.strip_prefix(verb) == Some("e"))
}

/// `boit` and `bois`.
fn french_verb(third: &str, first: &str) -> bool {
    let verb = third.strip_suffix('t');
    verb.is_some_and(|verb| has_letters(verb, 2) && first.strip_prefix(verb) == Some("s"))
}

/// `живет` and `живу`.
fn russian_verb(third: &str, first: &str) -> bool {
    let verb = RUSSIAN_OTHERS.iter().find_map(|ending| third.strip_suffix(ending));
    verb.is_some_and(|verb| {
        has_letters(verb, RUSSIAN_LETTERS_MIN)
            && first.strip_prefix(verb).is_some_and(|end| matches!(end, "у" | "ю"))
    })
}

/// An Arabic verb without its person, and without the ending of the plural.
fn arabic_verb(word: &str) -> Option<&str> {
    let verb = word.strip_prefix(ARABIC_PERSONS)?;
    let verb = ARABIC_PLURALS.iter().find_map(|plural| verb.strip_suffix(plural)).unwrap_or(verb);
    has_letters(verb, ARABIC_LETTERS_MIN).then_some(verb)
}

/// Whether a word has at least this many letters.
pub(super) fn has_letters(word: &str, count: usize) -> bool {
    word.chars().nth(count.saturating_sub(1)).is_some()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::chat::fold::fold;

    #[test]
    fn verb_forms_are_of_one_verb() {
        for (language, one, other, expect) in [
            ("ar", "أسكن", "يسكن", true),
            ("ar", "ندفن", "تدفنون", true),
            ("ar", "نبيع", "يشرب", false),
            ("de", "koche", "kocht", true),
            ("de", "läuft", "laufe", true),
            ("de", "Mark", "Markt", false),
            ("de", "Haut", "hauen", false),
            ("en", "drank", "drink", true),
            ("en", "sells", "sold", true),
            ("en", "children", "child", true),
            ("en", "men", "women", false),
            ("en", "ran", "rang", false),
            ("en", "wound", "wind", false),
            ("fr", "bois", "boit", true),
            ("ru", "живу", "живёт", true),
            ("ru", "вода", "водит", false),
            ("es", "vivo", "vive", false),
        ] {
            assert_eq!(are_one_verb(language, &fold(one), &fold(other)), expect, "{one} {other}");
        }
        for (language, word, expect) in [
            ("en", "stole", Some("steal")),
            ("en", "wolves", Some("wolf")),
            ("en", "crises", Some("crisis")),
            ("en", "harbour", None),
            ("de", "fed", None),
            ("pt", "nações", Some("nacao")),
            ("pt", "limões", Some("limao")),
            ("pt", "animais", Some("animal")),
            ("pt", "hotéis", Some("hotel")),
            ("pt", "reais", Some("real")),
            ("pt", "quais", None),
            ("pt", "jamais", None),
            ("pt", "mães", None),
            ("es", "animais", None),
        ] {
            assert_eq!(irregular_base(language, &fold(word)).as_deref(), expect, "{language} {word}");
        }
    }
}
