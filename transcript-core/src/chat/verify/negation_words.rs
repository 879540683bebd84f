//! Negating words of the languages that the verifier knows.

use std::{
    collections::{HashMap, HashSet},
    sync::LazyLock,
};

use super::super::fold::fold;

/// Negating words by language. Words of other scripts than Latin are read in every text.
const NEGATORS: [(&str, &str); 11] = [
    (
        "en",
        "no not never neither nor none nobody nothing nowhere without cannot hardly barely scarcely dont doesnt didnt \
         isnt arent wasnt werent havent hasnt hadnt cant couldnt wouldnt shouldnt wont aint",
    ),
    (
        "de",
        "nicht nichts nie niemals niemand niemandem niemanden kein keine keinem keinen keiner keines keinerlei ohne \
         weder nirgends kaum nein",
    ),
    ("fr", "ne n pas jamais rien aucun aucune sans ni guère nul nulle non"),
    ("es", "no nunca jamás nadie nada ningún ninguno ninguna sin ni tampoco apenas"),
    ("pt", "não nunca jamais ninguém nada nenhum nenhuma sem nem tampouco"),
    ("it", "non mai nessuno nessuna nessun niente nulla senza neanche nemmeno neppure no"),
    ("nl", "niet niets nooit niemand geen zonder nergens nauwelijks nee"),
    ("pl", "nie nigdy nikt nikogo nic niczego bez ani żaden żadna żadne nigdzie"),
    ("ar", "مش مو مب"),
    ("tr", "değil hiç hiçbir asla yok yoktu yoktur kimse olmadan hayır"),
    (
        "",
        "не нет ни никогда никто никого ничего ничто нигде без нельзя никакой никакая никакие никаких ні немає ніколи \
         לא אין אינו אינה אינם בלי ללא מעולם שום ולא ואין שלא שאין לאו \
         لا لم لن ليس ليست ليسوا بدون دون غير أبدا ولا ولم ولن وليس فلا فلم \
         नहीं मत बिना कभी δεν μην χωρίς ποτέ όχι",
    ),
];
/// Words after which a negating word negates nothing: "not only".
const LIMITERS: &str = "only just merely nur bloß seulement uniquement solo solamente sólo apenas somente soltanto alleen \
    только лишь";
/// Words that begin another clause where a text has no punctuation.
const BOUNDARIES: &str = "and but because although though while whereas und aber sondern weil während et mais pero sino \
    porque perché maar omdat ale fakat и но а потому אבל כי ولكن لكن لأن";
/// Words that deny without a negating word. In a passage their clause is neither stated nor negated for certain.
const DOUBTS: &str = "forbid forbids forbidden forbade prohibit prohibits prohibited ban bans banned avoid avoids avoided \
    refuse refuses refused fail fails failed lack lacks lacked unable impossible prevent prevents prevented deny denies \
    denied verboten verbietet verweigert unmöglich vermeiden vermeidet verhindert interdit interdite interdits refuse \
    éviter évite empêche prohibido prohibida imposible evitar evita proibido proibida impossível vietato vietata \
    impossibile evitare verboden onmogelijk vermijden запрещено запрещен невозможно zabronione zakazane niemożliwe \
    yasak imkansız אסור ممنوع مستحيل";
/// Words for truth: a negation of one denies a whole statement.
const TRUTHS: &str = "true truth wahr vrai vraie cierto cierta verdad vero verdade prawda правда";
/// Words that say that something is untrue.
const UNTRUTHS: &str = "myth myths false wrong untrue falsch falsche falscher mythos irrtum faux fausse mythe mito falso falsa mentira";
/// Endings of negated Turkish verbs, folded.
const TURKISH_PARTS: [&str; 11] =
    ["madi", "medi", "miyor", "muyor", "mamis", "memis", "mayan", "meyen", "mayacak", "meyecek", "mamasi"];
const TURKISH_ENDINGS: [&str; 2] = ["maz", "mez"];
/// Letter pairs that begin with a negating character and negate nothing.
const HARMLESS: [&str; 54] = [
    "不过", "不過", "不仅", "不僅", "不但", "不只", "不管", "不同", "非常", "非洲", "无论", "無論", "未来",
    "未來", "别人", "別人", "别的", "別的", "别墅", "別墅", "别名", "別名", "别处", "別處", "别是", "別是",
    "别说", "別說", "别克", "別克", "别致", "別緻", "别扭", "別扭", "别称", "別稱", "别具", "別具", "别国",
    "別國", "别类", "別類", "别字", "別字", "别姬", "別姬", "别有", "別有", "别样", "別樣", "别无", "別無",
    "别于", "別於",
];
/// Characters behind which the Chinese "别" is a part of a word: 特别, 性别, 鉴别. Behind others it negates.
const BEFORE_PART: &str = "特性鉴鑑鑒区區分级級个個类類识識辨告离離送差判甄永惜道阔闊久临臨诀訣辞辭派组組职職科无無各党黨\
    族省县縣届屆税稅险險币幣握赠贈饯餞拜吻挥揮泣死暂暫之型当當";
/// Words that end with such a character, behind which it negates too: 这个别碰, 危险别过去.
const BEFORE_PROHIBITION: &str = "这个 這個 那个 那個 每个 每個 整个 整個 模特 女性 男性 景区 景區 小区 小區 山区 山區 \
    部分 认识 認識 广告 廣告 报告 報告 距离 距離 出差 知道 街道 车道 車道 通道 味道 太久 多久 保险 保險 危险 危險 \
    风险 風險 总之 總之";
/// Characters that negate what follows.
const IDEOGRAPHS: [char; 8] = ['不', '没', '沒', '未', '无', '無', '非', '勿'];
/// Japanese and Korean endings that negate what precedes, folded as search terms.
const SUFFIXES: [&str; 4] = ["ない", "なか", "ませ", "なく"];

static ALL: LazyLock<HashMap<&'static str, HashSet<String>>> =
    LazyLock::new(|| NEGATORS.iter().map(|(language, words)| (*language, folded(words))).collect());
static LIMITING: LazyLock<HashSet<String>> = LazyLock::new(|| folded(LIMITERS));
static BOUNDING: LazyLock<HashSet<String>> = LazyLock::new(|| folded(BOUNDARIES));
static TRUE: LazyLock<HashSet<String>> = LazyLock::new(|| folded(TRUTHS));
static UNTRUE: LazyLock<HashSet<String>> = LazyLock::new(|| folded(UNTRUTHS));
static DENYING: LazyLock<HashSet<String>> = LazyLock::new(|| folded(DOUBTS));

pub(super) fn folded(list: &str) -> HashSet<String> {
    list.split_whitespace().map(fold).collect()
}

/// Whether a folded word negates, denies or says that something is untrue, in any language.
pub(super) fn is_denying_word(word: &str) -> bool {
    ALL.values().any(|words| words.contains(word)) || DENYING.contains(word) || UNTRUE.contains(word)
}

/// The negating words for a text in one language.
#[derive(Clone, Copy, Debug)]
pub(super) struct NegationWords<'a> {
    language: &'a str,
}

impl<'a> NegationWords<'a> {
    /// The words of a language by its primary tag. A language without a list has those of the other scripts.
    pub(super) fn new(language: &'a str) -> Self {
        Self { language }
    }

    /// Whether a folded word negates.
    pub(super) fn is_negator(self, word: &str) -> bool {
        let has = |list: &str| ALL.get(list).is_some_and(|words| words.contains(word));
        // The common words of Polish and Turkish are in one list with those of other languages.
        has(self.language) || has("") || (self.language.is_empty() && (has("pl") || has("tr")))
    }

    /// Whether a negating word may limit instead, as the French "ne" before "que".
    pub(super) fn may_limit(self, word: &str) -> bool {
        self.language == "fr" && matches!(word, "ne" | "n")
    }

    /// Whether two negating words of a clause cancel each other, as in English.
    pub(super) fn cancel(self) -> bool {
        matches!(self.language, "en" | "de" | "nl")
    }

    /// Whether a folded word has a negating ending.
    pub(super) fn has_negating_ending(self, word: &str) -> bool {
        self.language == "tr"
            && (TURKISH_PARTS.iter().any(|part| word.contains(part))
                || TURKISH_ENDINGS.iter().any(|ending| word.ends_with(ending)))
    }

    /// Whether a pair of letters begins with a Chinese negation, or is the Korean one before a verb.
    ///
    /// `before` are the two pairs before it, the nearest last. In Japanese, "別" is "other".
    pub(super) fn is_ideographic_negator(self, ngram: &str, before: [&str; 2]) -> bool {
        let is_pair = ngram.chars().count() > 1;
        let forbids = self.language == "zh" && ngram.starts_with(['别', '別']) && !ends_word(before);
        (is_pair && (forbids || ngram.starts_with(IDEOGRAPHS)) && !HARMLESS.contains(&ngram)) || ngram == "안"
    }

    /// Whether a folded word limits the negation before it: "not only".
    pub(super) fn is_limiter(self, word: &str) -> bool {
        LIMITING.contains(word)
    }

    /// Whether a folded word begins another clause.
    pub(super) fn is_boundary(self, word: &str) -> bool {
        BOUNDING.contains(word)
    }

    /// Whether a folded word is one for truth.
    pub(super) fn is_truth(self, word: &str) -> bool {
        TRUE.contains(word)
    }

    /// Whether a folded word says that something is untrue.
    pub(super) fn is_untruth(self, word: &str) -> bool {
        UNTRUE.contains(word)
    }

    /// Whether a folded word denies without negating.
    pub(super) fn is_doubt(self, word: &str) -> bool {
        DENYING.contains(word)
    }
}

/// Whether the Chinese "别" behind two pairs of letters ends a word; the nearest one, which is last, ends with it.
fn ends_word([earlier, last]: [&str; 2]) -> bool {
    let mut letters = last.chars();
    // Otherwise it begins a text.
    let (Some(letter), Some('别' | '別')) = (letters.next(), letters.next()) else { return false };
    let is_other_word = BEFORE_PROHIBITION.split_whitespace().any(|word| word == earlier);
    BEFORE_PART.contains(letter) && !(is_other_word && earlier.ends_with(letter))
}

/// Whether a pair of letters shows that the negation before it is part of a phrase: 别出心裁, "original".
pub(super) fn is_ideographic_limiter(ngram: &str, [_, last]: [&str; 2]) -> bool {
    ngram == "出心" && matches!(last, "别出" | "別出")
}

/// Whether a pair of letters denies without negating.
pub(super) fn is_ideographic_doubt(ngram: &str) -> bool {
    matches!(ngram, "禁止" | "停止" | "中止" | "運休")
}

/// Whether a pair of letters is a Japanese or Korean negation of what precedes.
pub(super) fn is_ideographic_suffix(ngram: &str) -> bool {
    SUFFIXES.contains(&ngram) || ngram.starts_with(['않', '없', '못'])
}
