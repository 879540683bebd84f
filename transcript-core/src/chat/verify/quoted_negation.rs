//! Quotations whose words a negation directly outside of them reverses: “safe to drink” of "not safe to drink".
//!
//! Only a negation next to the quoted words counts, with nothing but articles, forms of "to be", adverbs of degree and
//! the like between. Whatever is unsure, such as a question, a condition or two negations, leaves the quotation as it
//! is.

use super::{
    super::{
        common_words::language_of,
        fold::{fold, is_mark},
    },
    clauses::{ALTERNATIVES, CONDITIONS, DETERMINERS, PRONOUNS, has},
    negation_words::{NegationWords, is_denying_word, is_ideographic_suffix},
    normalize::is_single_mark,
    quotation_marks::is_quotation_mark,
    transcript_index::{head, tail},
};

/// Bytes before and behind a quotation that are read.
const AROUND_BYTES_MAX: usize = 160;
/// Words before a quotation that are read, and those of them that may stand between it and a negation.
const WORDS_MAX: usize = 10;
const BETWEEN_MAX: usize = 3;
/// A row for each language, with four columns: its tags, words that may stand between a negation and what it negates,
/// words that begin another clause or limit the negation, and negating words that are unsure.
const LANGUAGES: &str = "\
en|a an the any very so too really quite particularly especially entirely completely totally to for be been \
being one longer|why how when where what who which whose whether if that because although till until unless than \
nor so then there fewer less more better far long later sooner other|hardly barely scarcely
de|sehr so zu ganz besonders wirklich allzu mehr ein eine einen einem einer eines der die das den dem des für \
sein gewesen worden zum zur|warum wie wann wo was wer ob dass weil obwohl bis als wenn damit denn oder zuletzt \
allein weit lange weniger besser anders umhin selten|nein kaum
fr|très trop aussi tellement bien vraiment été être un une des le la les l de d du pour à au aux|pourquoi ce \
comment quand où que qu qui quoi si parce car mieux moins loin|ne n non ni guère
es|es está están son era eran fue fueron ser estar hay había muy tan un una el la los las lo de del para al|por \
porque como cuando donde que quien si pues sino mejor menos más lejos otro otra obstante|apenas nada
pt|é está estão são era eram foi foram ser há havia muito tão um uma o a os as de do da para ao|por porque como \
quando onde que quem se pois senão só melhor menos mais longe outro outra obstante|apenas nada
it|è sono era erano fu essere c ci molto così tanto troppo un una uno il la lo l gli le di da per|perché come \
quando dove che chi se meglio meno più lontano altro altra|no
nl|erg heel zo te echt meer een de het voor van zijn|waarom hoe wanneer waar wat wie of dat omdat als tot minder \
beter ver lang zozeer|nee nauwelijks
pl|jest są był była było były będzie być ma bardzo tak zbyt dla|dlaczego jak kiedy gdzie co kto czy że bo tylko \
mniej lepiej daleko|
ru uk|очень так слишком совсем вполне был была было были будет будут быть для дуже занадто був була було були \
буде є|почему как когда где что кто ли чтобы если потому раз менее более лучше далеко случайно зря иначе чому як \
коли де що хто чи щоб якщо тільки менше більше краще|
el|είναι ήταν υπάρχει υπάρχουν πολύ τόσο ένα ένας μια ο η το τον την τα οι για να θα|γιατί πώς πότε πού ότι πως \
αν όπως μόνο|όχι
ar|يوجد توجد يكون تكون يمكن أي هناك|لماذا كيف متى أين أن إن إذا إلا يزال تزال بد بأس سيما شك ريب أحد|
he|כל כך מאוד היה הייתה היו יהיה|למה איך מתי איפה מה מי אם כי רק|";
/// Words before a negating word with which it reverses nothing, beside those of clauses.
/// The French "pas" is also a step.
const BEFORE_NEGATOR: &str = "deux trois quatre dix cent quelques premier \
    чуть едва пока если ли или почти ледь чи або أو أم إن لو czy lub";
/// Conditions beside those of clauses, and words for "forget".
const OTHER_CONDITIONS: &str = "si se als indien если якщо إذا لو jeśli gdyby אם αν oublie oublier oubliez hésitez \
    vergiss vergessen vergesst vergeet vergeten";
/// Words before "not" and an article: behind other ones, as in "did not", an article begins another clause.
const FORMS_OF_BE: &str = "is was are were be been isn wasn aren weren s re m ain";
/// With these, words before "no" where it is no answer in speech without punctuation.
const FORMS_OF_HAVE: &str = "has have had got";
/// Words behind the English "no" that it does not negate.
const BEHIND_NO: &str = "the a an to for in on at of by with from my your his her our their this these those";
/// Chinese words between a negation and what it negates; letters and words beside it with which it reverses nothing.
const CHINESE_BETWEEN: &str = "可以 应该 應該 能够 能夠 允许 允許 需要 能 会 會 可 要 想 敢 准 许 許 该 該 \
    应 應 是 有 太 很 再 让 讓 曾";
const CHINESE_NEGATORS: [char; 11] = ['不', '没', '沒', '未', '无', '無', '非', '勿', '别', '別', '莫'];
const BEFORE_CHINESE_NEGATOR: &str = "差忍对對了恨要好岂豈何怎除若舍捨淹沉埋吞湮隐隱辱覆出";
const BEHIND_CHINESE_NEGATOR: &str = "少论論禁断斷久时時得至及足如由愧料堪妨";
const CHINESE_CONDITIONS: &str = "如果 要是 假如 只要 差点 差點";
/// Japanese negating endings and negated copulas, and what makes them unsure behind them.
const JAPANESE_ENDINGS: &str = "ない なかった ません ではない ではなく ではなかった ではありません じゃない \
    じゃなく じゃなかった じゃありません くない";
const BEHIND_JAPANESE_ENDING: &str = "と うち 限 わけ 訳 こと か し";
/// Parts of Japanese words and phrases with such an ending that negate nothing, and of quotations that it only limits.
const BEFORE_JAPANESE_ENDING: &str = "しれ 違い ちがい つまら すみ 済み くだら たまら とんでも もったい 少 \
    危 仕方が しかたが しょうが だけ ばかり のみ しか";
/// Words of the model, beside negating ones, with which a quotation may be what a speaker denies.
const DENIALS: &str = "against reject rejects rejected dismiss dismisses dismissed dispute disputes disputed \
    contradicts contrary opposite unlikely doubt doubts gegen bestreitet contre contra contro против";

/// Whether a text of the model denies something, in any language.
pub(super) fn denies(text: &str) -> bool {
    let mut last = String::new();
    let mut denies = |word: &str| {
        let word = fold(word);
        let denies = is_denying_word(&word) || has(DENIALS, &word) || (word == "t" && last.ends_with('n'));
        last = word;
        denies
    };
    let letters: Vec<char> = text.chars().collect();
    let is_suffix = |pair: &[char]| is_ideographic_suffix(&pair.iter().collect::<String>());
    text.contains(CHINESE_NEGATORS)
        || text
            .split(|c: char| !is_of_word(c))
            .any(|word| denies(word) || word.starts_with(['안', '않', '없', '못']))
        || letters.windows(2).any(is_suffix)
}

/// Whether a negation in the text directly before quoted words or behind them reverses them.
///
/// `primary` is the primary tag of the transcript's language.
pub(super) fn is_negated(before: &str, quoted: &str, after: &str, primary: &str) -> bool {
    let is_punctuated =
        [before, quoted, after].iter().any(|text| text.contains(['.', ',', '!', '?', ';', ':']));
    let (before, after) = (tail(before, AROUND_BYTES_MAX), head(after, AROUND_BYTES_MAX));
    let ends_sentence = |c: &char| matches!(c, '.' | '!' | '?' | '…' | '。' | '！' | '？' | '؟');
    if after.chars().find(ends_sentence).is_some_and(|c| matches!(c, '?' | '？' | '؟')) {
        return false;
    }
    let text = [before, " ", head(quoted, AROUND_BYTES_MAX), " ", after].concat();
    match language_of(&text, primary) {
        "zh" => is_negated_in_chinese(before, quoted),
        "ja" => is_negated_in_japanese(quoted, after.trim_start()),
        "ko" => is_negated_in_korean(before, quoted, after),
        "tr" => is_negated_in_turkish(before, quoted, after),
        language => is_negated_before(&words_before(before), quoted, language, is_punctuated),
    }
}

fn is_of_word(c: char) -> bool {
    c.is_alphanumeric() || is_mark(c)
}

/// The folded words at the end of a text, nearest first, up to the end of a clause.
fn words_before(text: &str) -> Vec<String> {
    let is_between = |c: char| {
        is_of_word(c)
            || c.is_whitespace()
            || is_single_mark(c)
            || is_quotation_mark(c)
            || matches!(c, '-' | '־' | '֊' | '፡' | '*' | '_')
    };
    let start = text
        .rfind(|c: char| !is_between(c))
        .and_then(|at| Some(at + text.get(at..)?.chars().next()?.len_utf8()));
    let clause = text.get(start.unwrap_or(0)..).unwrap_or_default();
    clause
        .rsplit(|c: char| !is_of_word(c))
        .filter(|word| !word.is_empty())
        .take(WORDS_MAX)
        .map(fold)
        .collect()
}

fn first_word(text: &str) -> String {
    text.split(|c: char| !is_of_word(c)).find(|word| !word.is_empty()).map(fold).unwrap_or_default()
}

/// Whether a list has a folded word.
fn lists(list: &str, word: &str) -> bool {
    list.split_whitespace().any(|known| fold(known) == word)
}

/// Whether the words before a quotation, nearest first, end with a negation of it.
fn is_negated_before(before: &[String], quoted: &str, language: &str, is_punctuated: bool) -> bool {
    let row = LANGUAGES.lines().find(|row| has(row.split('|').next().unwrap_or_default(), language));
    let column = |index: usize| row.and_then(|row| row.split('|').nth(index)).unwrap_or_default();
    let (between, openers, unsure) = (column(1), column(2), column(3));
    let word = |index: usize| before.get(index).map_or("", String::as_str);
    let first = first_word(quoted);
    let Some(at) = (0..=BETWEEN_MAX).find(|index| !lists(between, word(*index))) else { return false };
    let words = NegationWords::new(language);
    let is_contracted = word(at) == "t" && word(at + 1).ends_with('n');
    let negator = word(at);
    if lists(unsure, negator) || !(is_contracted || words.is_negator(negator)) {
        return false;
    }
    let is_compared =
        quoted.split_whitespace().nth(1).is_some_and(|word| matches!(word, "than" | "als" | "dan"));
    let is_opened =
        is_compared || lists(openers, &first) || has(PRONOUNS, &first) || words.is_limiter(&first);
    if is_opened || words.is_boundary(&first) || words.is_negator(&first) {
        return false;
    }
    let is_condition = |word: &String| has(CONDITIONS, word) || lists(OTHER_CONDITIONS, word);
    let is_alternative = has(ALTERNATIVES, word(at + 1)) || lists(BEFORE_NEGATOR, word(at + 1));
    // "More than ever": a "que" alone may begin a clause, as in "dijo que nunca".
    let is_comparison =
        word(at + 1) == "que" && (at + 2..at + 4).any(|index| matches!(word(index), "mas" | "plus" | "mais"));
    if is_alternative || is_comparison || before.iter().skip(at + 1).any(is_condition) {
        return false;
    }
    let is_double = match negator {
        "не" => (at + 1..at + 3).any(|index| matches!(word(index), "не" | "нельзя")),
        _ => words.cancel() && words.is_negator(word(at + 1)),
    };
    let next = if at > 0 { word(at - 1) } else { &first };
    let begins_clause = match (language, negator) {
        ("en", "no") => {
            let is_answer =
                !is_punctuated && !has(FORMS_OF_BE, word(at + 1)) && !has(FORMS_OF_HAVE, word(at + 1));
            is_answer || has(BEHIND_NO, next) || next.starts_with(char::is_numeric)
        }
        ("en", "not" | "never" | "cannot" | "t") => {
            let is_of_be = has(FORMS_OF_BE, word(at + 1));
            // "Isn't the harbour beautiful!" is a question without its mark.
            let is_question = negator == "t" && is_of_be && word(at + 2).is_empty();
            has(DETERMINERS, next) && !word(at + 1).is_empty() && (!is_of_be || is_question)
        }
        ("ar", "لا") => next.starts_with("ال"),
        ("ru" | "uk", "нет" | "ні") => !is_punctuated,
        // "Как бы то ни было".
        ("ru" | "uk", "ни") => at > 0,
        _ => has(DETERMINERS, next) && !is_punctuated,
    };
    !is_double && !begins_clause
}

fn is_negated_in_chinese(before: &str, quoted: &str) -> bool {
    let ends_clause = |c: char| !is_of_word(c) && !c.is_whitespace() && !is_quotation_mark(c);
    let clause = before.rsplit(ends_clause).next().unwrap_or_default();
    let clause: String = clause.chars().filter(|c| is_of_word(*c)).collect();
    let mut rest = clause.as_str();
    for _ in 0..BETWEEN_MAX {
        let shorter = CHINESE_BETWEEN.split(' ').find_map(|word| rest.strip_suffix(word));
        rest = shorter.unwrap_or(rest);
    }
    let letters: Vec<char> = rest.chars().rev().take(5).collect();
    let letter = |index: usize| letters.get(index).copied().unwrap_or('\0');
    let negator = letter(0);
    let behind = clause.strip_prefix(rest).and_then(|between| between.chars().next());
    let Some(next) = behind.or_else(|| quoted.chars().next()) else { return false };
    let pair = |one: char, other: char| [one, other].iter().collect::<String>();
    let (earlier, last) = (pair(letter(2), letter(1)), pair(letter(1), negator));
    let is_negator = NegationWords::new("zh").is_ideographic_negator(&pair(negator, next), [&earlier, &last]);
    let is_part = BEFORE_CHINESE_NEGATOR.contains(letter(1))
        || (behind.is_none() && BEHIND_CHINESE_NEGATOR.contains(next))
        || (negator == '非' && !"并並绝絕决決".contains(letter(1)));
    // "是不是", and the two negations of "不得不".
    let is_doubled =
        letter(1) == next || letters.iter().skip(1).take(3).any(|c| CHINESE_NEGATORS.contains(c));
    is_negator && !is_part && !is_doubled && !CHINESE_CONDITIONS.split(' ').any(|word| rest.contains(word))
}

fn is_negated_in_japanese(quoted: &str, after: &str) -> bool {
    let behind = JAPANESE_ENDINGS.split(' ').find_map(|ending| after.strip_prefix(ending));
    let is_unsure = |behind: &str| {
        let is_question = behind.chars().take_while(|c| is_of_word(*c)).take(8).any(|c| c == 'か');
        is_question || BEHIND_JAPANESE_ENDING.split(' ').any(|word| behind.starts_with(word))
    };
    let is_part =
        BEFORE_JAPANESE_ENDING.split(' ').any(|part| quoted.ends_with(part)) || quoted.contains("しか");
    behind.is_some_and(|behind| !is_unsure(behind)) && !is_part
}

fn is_negated_in_korean(before: &str, quoted: &str, after: &str) -> bool {
    let is_negator = |word: &String| ["안", "못"].map(fold).contains(word);
    let ends_stem = ["지", "지는", "지도", "지를"].iter().any(|ending| quoted.ends_with(ending));
    let is_behind = ends_stem && after.trim_start().starts_with(['않', '못', '말', '마']);
    let is_unsure =
        ["않으면 안", "수 없", "않나", "않을까", "않습니까"].iter().any(|phrase| after.contains(phrase));
    // Before a noun the same letters mean "inside".
    let is_noun = quoted.split_whitespace().next().is_some_and(|word| {
        ["가", "이", "을", "를", "의", "에", "에서", "도", "들"]
            .iter()
            .any(|particle| word.ends_with(particle))
    });
    (is_behind || (!is_noun && words_before(before).first().is_some_and(is_negator))) && !is_unsure
}

fn is_negated_in_turkish(before: &str, quoted: &str, after: &str) -> bool {
    let is_next =
        after.starts_with(char::is_whitespace) && after.trim_start().starts_with(char::is_alphabetic);
    let mut behind = after.split_whitespace().map(fold);
    let is_negator = behind.next().is_some_and(|word| lists("değil yok yoktu yoktur", &word));
    let is_asked = behind.next().is_some_and(|word| matches!(word.as_str(), "mi" | "mu"));
    let limits = |word: &str| lists("sadece yalnız yalnızca", word);
    let is_limited =
        limits(&first_word(quoted)) || words_before(before).first().is_some_and(|word| limits(word));
    is_next && is_negator && !is_asked && !is_limited
}
