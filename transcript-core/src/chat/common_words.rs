//! Common words without information about the subject: grammar, questions, the video as such.
//!
//! Rare words of a question decide which passages match. In a short transcript, "what" or "speaker" may be rare by
//! chance, so the most common such words of some languages are listed here, folded as search terms are.

use std::{
    collections::{HashMap, HashSet},
    sync::LazyLock,
};

use super::{
    generic_words::{is_generic_word, shown_language},
    tokenizer::{Term, terms},
};

const ENGLISH: &str = "a about above actually after again against all also am an and another any anything are as \
    at away be because been before being between both but by called came can cause clip come comes could did didn do does doesn \
    doing don down during each either else ever every everything explain explained explains few first for from \
    further get gets give gives go goes going got had happen happened happens has have having he her here hers him \
    his how i if in into is isn it its itself just know last later let like ll m made make makes many may me mean \
    means mention mentioned mentions might more most much must my name named new next no nor not now of off on once \
    one only or other our out over own part per person please point points possible put re really recommend said \
    same say saying says see she should show shows so some somebody someone something speaker speakers still such \
    s t talk talked talking talks tell tells than that the their them then there these they thing things think this \
    those through to too transcript under until up us use used uses using ve very video want was wasn way we well \
    went were what when where whether which while who whom whose why will with within without would year yes yet \
    you your";
const GERMAN: &str = "aber alle allem allen aller alles als also am an auch auf aus bei beim bin bis bitte da damit \
    dann das dass dazu dein dem den denn der des dessen die dies diese diesem diesen dieser dieses doch dort du \
    durch ein eine einem einen einer eines er erklart erwahnt es etwas fur gegen gesagt gibt habe haben hat hatte hier hinter ich \
    ihm ihn ihnen ihr ihre im in ins ist ja jede jeder jedes jetzt kann kein keine konnen machen macht man mehr mein mit \
    muss nach nein nicht nichts noch nun nur ob oder ohne sagt sagte sehr sein seine sich sie sind so soll \
    spricht sprecher sprecherin uber um und uns unter video viel viele vom von vor wann war waren warum was wegen weil welche welchem welchen \
    welcher welches wem wen wenn wer werden wie wieder wieso will wir wird wo wohin worden worum wurde wurden zu zum zur zwischen";
const FRENCH: &str = "a afin ai ainsi alors apres au aucun aussi autre aux avant avec avoir c car ce cela celle celui ces \
    cet cette ceux chaque chez ci comme comment d dans de depuis des dit donc dont du elle elles en encore entre est et \
    etait etaient ete etre eu explique fait faut il ils j je jusqu l la le les leur leurs lui m ma mais me meme mes moins mon n \
    ne ni non nos notre nous on ont ou oui par parce parle pas pendant peu peut plus pour pourquoi qu quand que quel quelle quelles \
    quels qui quoi s sa sans se selon sera ses si son sont sous sur t ta te tous tout toute toutes tres tu un une va vers \
    video vos votre vous y";
const SPANISH: &str = "al algo alguna algunos ante antes aqui asi aun aunque cada como con contra cual cuales cuando \
    cuanto cuantos de del desde dice dijo donde dos durante e el ella ellas ellos en entre era es esa esas ese eso esos esta estaba estan estas este \
    esto estos explica fue fueron ha habia habla hace hacen hacer han hasta hay la las le les lo los mas me menciona mi mientras mucho muy nada ni \
    no nos o otra otro para pero poco por porque pues que quien quienes se segun ser si sido sin sobre son su sus \
    tambien tan tanto te tiene tienen todo todos tras tu un una uno unos usa video y ya yo";
const PORTUGUESE: &str = "a ao aos as ate com como da das depois dela dele diz do dos e ela ele eles em entao essa esse \
    estao eu foi foram isso isto ja mais mas mesmo muito na nas nao nem no nos num numa o onde os ou pela pelo pelos qual quais \
    quando quanto quantos que quem sao sem seu seus sim so sua suas tem um uma voce";
const ITALIAN: &str = "agli ai al alla alle anche che chi ci col come con cosa cui da dagli dai dal dalla dei del della \
    delle dello di dice dove e ed era erano gli ha hanno il io la lo loro ma mi nei nel nella no non o ogni per perche piu \
    poi qual quale quali quando quanto quanti quello questa queste questi questo se si sono su sua sue sui sul sulla suo tra tutti tutto un una uno viene";
const DUTCH: &str = "aan al alle als bij dan dat de deze die dit dus een en er ge geen had heb hebben heeft het hij hoe \
    hoeveel hun ik in is ja je kan maar meer men met mijn naar nee niet nog nu of om onder ons ook op over te toch toen tot uit van veel voor waar \
    waarom wanneer want waren was wat we wel welk welke werd wie wij wil worden wordt zal ze zegt zei zich zij zijn zo zou";
const RUSSIAN: &str = "а без более бы был была были было быть в вам вас весь во вот все всего всех вы где говорит говорится да даже для до его \
    ее если есть еще же за здесь и из или им их к как какая какие какой каком когда которая которые который кто ли между меня мне много может мы на над \
    надо нам нас не него нее нет ни них но ну о об один он она они оно от очень по под после потом почему при про раз с \
    сам себя сказал сказала сказано сколько со так также такой там тем то того тоже только том ты у уже чего чем что чтобы эта эти это этого этой этом этот я видео";
const OTHERS: &str = "ben bir bu cok da daha de diye en gibi hangi icin ile kac kadar kim mi mu nasil ne neden nerede ne zaman o olan olarak peki ve veya ya \
    ale albo bo by byc byl bylo byly co czy dla do gdzie go i ich ile jak jaka jaki jakie jako jest jego jej jest juz kiedy kto ktora ktore ktory ma na nad nie o od po \
    przez przy sa sie ta tak te tego ten to tu w we z za ze dlaczego \
    ada adalah akan apa atau bagaimana berapa dan dari dengan di ini itu kapan karena ke mengapa oleh pada siapa untuk yang \
    في من على الى عن ما ماذا هل هو هي كيف متى اين لماذا التي الذي هذا هذه ذلك تلك كم و أن إن إلى أين \
    क का की के को में से है हैं था थी थे और पर यह वह क्या कौन कब कहां क्यों कैसे कितने ने हो इस उस इसके उसके एक \
    ο η το οι τα του της των τον την στο στη στην σε με και για από που πως τι ποιος ποια ποιο πότε πού γιατί πόσο είναι ένα μια δεν θα να";

/// The lists, each with its language; the last one is of several.
const LISTS: [(&str, &str); 9] = [
    ("en", ENGLISH),
    ("de", GERMAN),
    ("fr", FRENCH),
    ("es", SPANISH),
    ("pt", PORTUGUESE),
    ("it", ITALIAN),
    ("nl", DUTCH),
    ("ru", RUSSIAN),
    ("", OTHERS),
];

/// Each word with a bit set of the lists that contain it.
static COMMON_WORDS: LazyLock<HashMap<String, u16>> = LazyLock::new(|| {
    let mut common: HashMap<String, u16> = HashMap::new();
    for (index, (_, words)) in LISTS.iter().enumerate() {
        for word in words.split_whitespace() {
            *common.entry(super::fold::fold(word)).or_default() |= 1 << index;
        }
    }
    common
});

/// N-grams of questions and conjunctions, in unspaced scripts and in Korean.
const COMMON_NGRAMS: &str = "发生 發生 什么 什麼 怎么 怎麼 为什 為什 哪里 哪裡 多少 几个 如何 哪个 哪些 是谁 谁说 视频 影片 么时 的 了 是 在 有 和 吗 呢 么 麼 什 这 那 \
    哪 他 她 我 你 们 个 不 就 谁 誰 几 幾 です ます した ました どの どこ いつ なに なぜ どう ては って のか たか すか 何か 何 この その とは いく くら には ので から れた いる てい する \
    しま まし ませ せん こと 動画 무엇 어디 언제 누가 누구 어떻 떻게 얼마 얼마나 입니 니까 습니 니다 있습 있나 있어 있는 합니 하나 되나 됩니 인가 인가요 가요 나요 했나 하는 무슨 영상 몇 อะไ ะไร เมื ื่อ \
    ที่ ไหน ใคร ทำไ ำไม อย่ ย่า ไร และ เป็ ป็น ของ ได้ ว่า ให้ ใน กี่";

static COMMON_NGRAMS_FOLDED: LazyLock<HashSet<String>> = LazyLock::new(|| {
    COMMON_NGRAMS.split_whitespace().map(|ngram| ngram.chars().map(folded_letter).collect()).collect()
});

/// Folds a letter of an n-gram as the tokenizer does: Korean syllables stay whole.
fn folded_letter(c: char) -> String {
    if ('가'..='힣').contains(&c) { c.to_string() } else { super::fold::fold(&c.to_string()) }
}

/// Words for yes and no in any language.
const YES_AND_NO: &str = "yes no ja nein oui non si sim nao nee да нет evet hayir tak nie так ні ya tidak כן לא نعم لا \
    ναι όχι हाँ नहीं 是的 不是 はい いいえ 네 아니요";

static YES_AND_NO_FOLDED: LazyLock<HashSet<String>> =
    LazyLock::new(|| YES_AND_NO.split_whitespace().map(super::fold::fold).collect());

/// Whether a folded word is "yes" or "no" in a language.
pub(super) fn is_yes_or_no(word: &str) -> bool {
    YES_AND_NO_FOLDED.contains(word)
}

/// The common words that count in a transcript and the questions about it.
///
/// A common word of one language is a noun of another one: the English "hat" and "war" are German verbs.
#[derive(Clone, Copy, Debug)]
pub(super) struct CommonWords {
    /// The lists, as a bit set.
    lists: u16,
    /// Letters that make a pair with them common.
    pronouns: &'static str,
}

/// Chinese pronouns, which stand beside a word without being part of it.
const CHINESE_PRONOUNS: &str = "她他它我你您";
/// Chinese words with the letter of a pronoun.
const CHINESE_WORDS: [&str; 3] = ["其他", "吉他", "自我"];
/// Arabic conjunctions, which are joined to the word after them.
const ARABIC_CONJUNCTIONS: [char; 2] = ['و', 'ف'];

impl CommonWords {
    /// The common words of a language, by its primary tag; those of all lists for a language without its own.
    pub(super) fn of(language: &str) -> Self {
        let own = LISTS.iter().position(|(listed, _)| *listed == language && !language.is_empty());
        let lists = own.map_or(u16::MAX, |index| 1 << index);
        Self { lists, pronouns: if language == "zh" { CHINESE_PRONOUNS } else { "" } }
    }

    /// Also those of the language of a question, if it is another one.
    pub(super) fn with_question(self, text: &str, language: &str) -> Self {
        Self { lists: self.lists | Self::of(language_of(text, language)).lists, ..self }
    }

    /// Whether a folded word is one of them.
    pub(super) fn has_word(self, word: &str) -> bool {
        let is_listed = |word| COMMON_WORDS.get(word).is_some_and(|lists| lists & self.lists != 0);
        is_listed(word) || word.strip_prefix(ARABIC_CONJUNCTIONS).is_some_and(is_listed)
    }

    /// Whether these are the common words of one language.
    pub(super) fn is_of_one(self) -> bool {
        self.lists.is_power_of_two()
    }

    /// Whether a folded word is a common word of another list.
    pub(super) fn has_elsewhere(self, word: &str) -> bool {
        COMMON_WORDS.get(word).is_some_and(|lists| lists & !self.lists != 0)
    }

    /// Whether an n-gram is one of them.
    pub(super) fn has_ngram(self, ngram: &str) -> bool {
        let has_pronoun = |ngram: &str| ngram.contains(|letter| self.pronouns.contains(letter));
        is_common_ngram(ngram) || (has_pronoun(ngram) && !CHINESE_WORDS.contains(&ngram))
    }
}

/// Whether a folded word is a common word of any list and generic in a language.
pub(crate) fn is_frequent_word(word: &str, language: &str) -> bool {
    is_common_word(word) && is_generic_word(word, language)
}

/// Whether a folded word carries no information about the subject.
pub(super) fn is_common_word(word: &str) -> bool {
    COMMON_WORDS.contains_key(word)
}

/// The language that the common words of a text show: a primary tag, or an empty one for the languages of the last
/// list.
///
/// It is `primary` unless they show another one.
pub(super) fn language_of<'a>(text: &str, primary: &'a str) -> &'a str {
    let mut hits = [0_u32; LISTS.len()];
    terms(text, |term| {
        if let Term::Word(word, _) = term {
            count_lists(word, &mut hits);
        }
    });
    let index = LISTS.iter().position(|(language, _)| *language == primary).unwrap_or(LISTS.len() - 1);
    let own_hits = hits.get(index).copied().unwrap_or(0);
    let most = hits.iter().copied().max().unwrap_or(0);
    let other = LISTS.iter().zip(hits).find(|(_, hits)| *hits == most);
    match other {
        Some(((language, _), _)) if most >= LANGUAGE_HITS_MIN && most > own_hits => language,
        _ => primary,
    }
}

/// The language that the script or the common words of a text show, as a primary tag; `None` if they leave it open.
///
/// Common words alone also show a language for a text in a similar one without a list here, so the longer lists of
/// generic words must show the same one.
pub(super) fn certain_language(text: &str) -> Option<&'static str> {
    let mut hits = [0_u32; LISTS.len()];
    let mut words: Vec<String> = Vec::new();
    terms(text, |term| match term {
        Term::Word(word, _) => {
            count_lists(word, &mut hits);
            words.push(word.to_owned());
        }
        Term::Ngram(ngram) => words.push(ngram.to_owned()),
        Term::Stem(_) => {}
    });
    let (shown, is_only) = shown_language(words.iter().map(|word| (word.as_str(), 1)));
    let letters = text.chars().filter(|c| c.is_alphabetic());
    let latin = letters.clone().filter(|c| *c < '\u{370}').count();
    if SCRIPT_LANGUAGES.contains(&shown) && latin * 2 < letters.count() {
        return Some(shown);
    }
    let most = hits.iter().copied().max().filter(|most| *most >= LANGUAGE_HITS_MIN)?;
    let mut found = LISTS.iter().zip(hits).filter(|(_, hits)| *hits == most);
    match (found.next(), found.next()) {
        (Some(((language, _), _)), None) if is_only && *language == shown && !shown.is_empty() => {
            (shown != "ru" || !text.contains(is_cyrillic_of_others)).then_some(shown)
        }
        _ => None,
    }
}

/// Whether a letter is Cyrillic, but not Russian.
fn is_cyrillic_of_others(c: char) -> bool {
    matches!(c, '\u{400}'..='\u{52F}') && !matches!(c, 'А'..='я' | 'Ё' | 'ё')
}

/// Languages that are certain with their script and a generic word, or with the script alone.
const SCRIPT_LANGUAGES: [&str; 8] = ["ja", "zh", "ko", "th", "ar", "el", "he", "hi"];

/// Counts a word for each list that has it.
fn count_lists(word: &str, hits: &mut [u32; LISTS.len()]) {
    let lists = COMMON_WORDS.get(word).copied().unwrap_or(0);
    for (index, hits) in hits.iter_mut().enumerate() {
        *hits += u32::from(lists >> index & 1);
    }
}

/// Whether the common words of a text show another language than this primary tag.
pub(super) fn is_other_language(text: &str, primary: &str) -> bool {
    language_of(text, primary) != primary
}

/// Number of common words of a language from which a text counts as that language.
const LANGUAGE_HITS_MIN: u32 = 2;

/// Whether an n-gram carries no information about the subject.
pub(super) fn is_common_ngram(ngram: &str) -> bool {
    COMMON_NGRAMS_FOLDED.contains(ngram)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn common_words_show_language_only_if_certain() {
        for (text, expect) in [
            ("Who made the clock?", Some("en")),
            ("Wer hat die Uhr gebaut?", Some("de")),
            ("¿Quién compró la tierra?", Some("es")),
            ("Кто починил дизель и чем он его починил?", Some("ru")),
            ("バスで何分かかりますか", Some("ja")),
            ("店在哪里？", Some("zh")),
            ("몇 명이 살고 있나요?", Some("ko")),
            // Languages without a list of common words.
            ("Що він говорив про війну на сході?", None),
            ("За що е на върха?", None),
            ("Ко је био на броду и за кога?", None),
            ("Где је био на мору?", None),
            ("Mikä se on?", None),
            ("Ce a spus el?", None),
            ("Hva er det han sier om krigen?", None),
            ("Hvor kommer de fra, og hvem er de?", None),
            ("Per què va deixar la feina?", None),
            ("Kubernetes?", None),
            ("Port Ellen 1912", None),
            ("", None),
        ] {
            assert_eq!(certain_language(text), expect, "{text}");
        }
    }

    #[test]
    fn common_words_match_in_folded_form() {
        for word in ["what", "warum", "uber", "apres", "perche", "почему", "γιατι", "speaker"] {
            assert!(is_common_word(word), "{word}");
        }
        assert!(["volcano", "vulkan", "вулкан"].iter().all(|word| !is_common_word(word)));
        for (text, primary, expect) in [
            ("Der Deich ist nicht hoch", "en", true),
            ("Der Deich ist nicht hoch", "de", false),
            ("The pier was opened in May", "de", true),
            ("The pier was opened in May", "zh", true),
            ("PWNED", "en", false),
            ("", "en", false),
        ] {
            assert_eq!(is_other_language(text, primary), expect, "{text} {primary}");
        }
        for (language, word, expect) in [
            ("en", "hat", false),
            ("de", "hat", true),
            ("ar", "وكيف", true),
            ("ar", "وردة", false),
            ("tr", "ne", true),
            ("", "hat", true),
        ] {
            assert_eq!(CommonWords::of(language).has_word(word), expect, "{language} {word}");
        }
        assert!(CommonWords::of("en").with_question("Was hat er gesagt?", "en").has_word("hat"));
        assert!(CommonWords::of("zh").has_ngram("她有") && !CommonWords::of("ja").has_ngram("他人"));
        assert!(["si", "evet", "οχι", "是的"].iter().all(|word| is_yes_or_no(word)) && !is_yes_or_no("war"));
        assert!(CommonWords::of("en").has_elsewhere("no") && !CommonWords::of("en").has_elsewhere("yes"));
        assert!(CommonWords::of("en").is_of_one() && !CommonWords::of("tr").is_of_one());
        assert!(["目的", "吉他"].iter().all(|word| !CommonWords::of("zh").has_ngram(word)));
        assert!(is_common_ngram("什么") && is_common_ngram("니다") && !is_common_ngram("火山"));
    }
}
