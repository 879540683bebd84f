//! Folds text to the letters and digits in which a quotation must match the transcript.
//!
//! Folding drops case, Unicode form, accents, punctuation and white space. That is safe because a quotation is never
//! sent as the model wrote it: the response contains the transcript's own text at the match.

use std::{iter::once, ops::Range};

use icu_normalizer::DecomposingNormalizerBorrowed;
use icu_properties::{
    CodePointMapData,
    props::{GeneralCategory, GeneralCategoryGroup},
};

use crate::transcript::is_unspaced;
use crate::transcript::script::{Script, char_script};

const NFKD: DecomposingNormalizerBorrowed<'static> = DecomposingNormalizerBorrowed::new_nfkd();

/// Maximum of matches that are checked for word boundaries before one inside words is used.
const MATCHES_MAX: usize = 32;
/// First code point of the Bengali script.
const BENGALI: u32 = 0x980;
/// Maximum of letters by which a match is widened at either end to whole words.
const WIDENED_MAX: usize = 64;
/// A match is rejected if it is longer than this factor times the quotation plus [`MATCH_EXTRA_BYTES`].
const MATCH_LENGTH_FACTOR: usize = 8;
const MATCH_EXTRA_BYTES: usize = 256;
/// Letters with which Hebrew joins "and", "the", "that", "in", "as", "to" and "from" to the next word.
pub(super) const HEBREW_PREFIXES: [char; 7] = ['ו', 'ה', 'ש', 'ב', 'כ', 'ל', 'מ'];

/// Calls `each` for every letter and digit of a character's folded form.
///
/// Marks, punctuation and white space have none.
pub(super) fn fold_char(c: char, mut each: impl FnMut(char)) {
    if c.is_ascii() {
        if c.is_ascii_alphanumeric() {
            each(c.to_ascii_lowercase());
        }
        return;
    }
    for part in NFKD.normalize_iter(once(c)).filter(|part| part.is_alphanumeric() && !is_point(*part)) {
        for letter in part.to_lowercase() {
            match letter {
                'ς' => each('σ'),
                'ß' => "ss".chars().for_each(&mut each),
                // Letters that Unicode does not decompose.
                'æ' => "ae".chars().for_each(&mut each),
                'œ' => "oe".chars().for_each(&mut each),
                'þ' => "th".chars().for_each(&mut each),
                'ø' => each('o'),
                'ł' => each('l'),
                'đ' | 'ð' => each('d'),
                'ħ' => each('h'),
                'ŧ' => each('t'),
                'ı' => each('i'),
                // Hindi writes the same nasal vowel with either sign.
                '\u{901}' => each('\u{902}'),
                // In lower case, the dot of a Turkish capital letter is a separate mark.
                letter if letter.is_alphanumeric() => each(letter),
                _ => {}
            }
        }
    }
}

/// Digits of zero, from which the digits of a script follow in order: Arabic, Persian, the scripts of India, Thai, Lao,
/// Tibetan, Burmese, Khmer, and those of full width.
const ZEROS: [char; 18] = [
    '\u{660}', '\u{6F0}', '\u{966}', '\u{9E6}', '\u{A66}', '\u{AE6}', '\u{B66}', '\u{BE6}', '\u{C66}',
    '\u{CE6}', '\u{D66}', '\u{DE6}', '\u{E50}', '\u{ED0}', '\u{F20}', '\u{1040}', '\u{17E0}', '\u{FF10}',
];

/// A decimal digit, or a separator of an Arabic number, as that of ASCII; any other character as it is.
pub(super) fn folded_digit(c: char) -> char {
    let value = |zero: char| u32::from(c).checked_sub(u32::from(zero)).filter(|value| *value < 10);
    match c {
        '\u{66B}' => '.',
        '\u{66C}' => ',',
        _ if c.is_ascii() || !c.is_numeric() => c,
        _ => ZEROS.into_iter().find_map(value).and_then(|value| char::from_digit(value, 10)).unwrap_or(c),
    }
}

/// The numbers of a fraction that is one character: `1/2` for `½`; `None` for any other.
pub(super) fn fraction_numbers(c: char) -> Option<String> {
    let ascii = |part: char| if part == '\u{2044}' { '/' } else { part };
    let is_fraction = matches!(c, '¼'..='¾' | '\u{2150}'..='\u{215F}' | '\u{2189}');
    is_fraction.then(|| NFKD.normalize_iter(once(c)).map(ascii).collect())
}

/// The sign that may be written for a nasal consonant and a virama before a consonant of its class: `हिन्दी` is हिंदी.
///
/// It is so in Devanagari and Gujarati. Bengali has the sign before the consonants of `ক` alone.
pub(super) fn nasal_sign(nasal: char, virama: char, next: char) -> Option<char> {
    // The scripts have one order of letters.
    let next = u32::from(next);
    let script = match next {
        0x900..=0x9FF | 0xA80..=0xAFF => next & !0x7F,
        _ => return None,
    };
    // From 0x58 on, some of the consonants with a dot.
    let class = match next - script {
        0x15..=0x18 | 0x58..=0x5A => 0x19,
        _ if script == BENGALI => return None,
        0x1A..=0x1D | 0x5B => 0x1E,
        0x1F..=0x22 | 0x5C..=0x5D => 0x23,
        0x24..=0x27 => 0x28,
        0x2A..=0x2D | 0x5E => 0x2E,
        _ => return None,
    };
    let is_nasal = u32::from(nasal) == script + class && u32::from(virama) == script + 0x4D;
    char::from_u32(script + 0x02).filter(|_| is_nasal)
}

/// What [`nasal_sign`] makes of a nasal consonant at the end of a prefix: the sign, and each letter behind it.
pub(crate) fn nasal_endings(nasal: char) -> impl Iterator<Item = [char; 2]> {
    let script = u32::from(nasal) & !0x7F;
    (0x15..=0x2D).filter_map(move |letter| {
        let (virama, next) = (char::from_u32(script + 0x4D)?, char::from_u32(script + letter)?);
        Some([nasal_sign(nasal, virama, next)?, next])
    })
}

/// Returns a text's letters and digits, folded.
pub(crate) fn fold(text: &str) -> String {
    let mut folded = String::with_capacity(text.len());
    for c in text.chars() {
        fold_char(c, |letter| folded.push(letter));
    }
    folded
}

/// Returns the byte range of `text` that folds to `wanted`, widened to whole words.
///
/// `folded` is `text`, folded. A match between words is preferred to a match that starts or ends inside a word.
pub(super) fn find(text: &str, folded: &str, wanted: &str) -> Option<Range<usize>> {
    if wanted.is_empty() {
        return None;
    }
    let mut iter = FoldIter { text, at: 0, end: 0, reached: 0 };
    let (mut first, longest) = (None, wanted.len() * MATCH_LENGTH_FACTOR + MATCH_EXTRA_BYTES);
    for (index, _) in folded.match_indices(wanted).take(MATCHES_MAX) {
        let Some(exact) = iter.source(index..index + wanted.len()) else { break };
        let Some(whole) = whole_words(text, exact.clone()).filter(|whole| whole.len() <= longest) else {
            continue;
        };
        if whole == exact {
            return Some(whole);
        }
        first.get_or_insert(whole);
    }
    first
}

/// Single pass over a text that maps offsets of its folded form to offsets of the text.
struct FoldIter<'a> {
    text: &'a str,
    /// Start of the last character that was passed; `end` is its end.
    at: usize,
    end: usize,
    /// Bytes of the folded form up to `end`.
    reached: usize,
}

impl FoldIter<'_> {
    /// Maps a range of the folded form to a range of the text. Ranges must be passed in ascending order.
    fn source(&mut self, folded: Range<usize>) -> Option<Range<usize>> {
        self.advance_to(folded.start + 1)?;
        let start = self.at;
        self.advance_to(folded.end)?;
        let marks = self.text.get(self.end..).unwrap_or_default().chars().take_while(|c| is_mark(*c));
        let marks: usize = marks.take(WIDENED_MAX).map(char::len_utf8).sum();
        Some(start..self.end + marks)
    }

    fn advance_to(&mut self, folded: usize) -> Option<()> {
        while self.reached < folded {
            let c = self.text.get(self.end..)?.chars().next()?;
            self.at = self.end;
            self.end += c.len_utf8();
            fold_char(c, |letter| self.reached += letter.len_utf8());
        }
        Some(())
    }
}

/// Widens a range to whole words; `None` if a word exceeds [`WIDENED_MAX`] letters at either end.
fn whole_words(text: &str, range: Range<usize>) -> Option<Range<usize>> {
    let inside = |c: &char| (c.is_alphanumeric() || is_mark(*c)) && !is_unspaced(*c);
    let piece = text.get(range.clone()).unwrap_or_default();
    let (mut start, mut end) = (range.start, range.end);
    if piece.chars().next().is_some_and(|c| inside(&c)) {
        let before = text.get(..range.start).unwrap_or_default().chars().rev();
        start -= byte_length(before.take_while(inside))?;
    }
    if piece.chars().next_back().is_some_and(|c| inside(&c)) {
        let after = text.get(range.end..).unwrap_or_default().chars();
        end += byte_length(after.take_while(inside))?;
    }
    Some(start..end)
}

/// Bytes of the letters; `None` if there are more than [`WIDENED_MAX`].
fn byte_length(letters: impl Iterator<Item = char>) -> Option<usize> {
    let (mut bytes, mut count) = (0, 0);
    for c in letters.take(WIDENED_MAX + 1) {
        bytes += c.len_utf8();
        count += 1;
    }
    (count <= WIDENED_MAX).then_some(bytes)
}

/// Whether a character is a vowel point or another sign that Arabic and Hebrew texts may leave out, a soft hyphen, or a
/// word joiner: these stand within a word.
pub(crate) fn is_point(c: char) -> bool {
    matches!(c,
        '\u{AD}' | '\u{2060}' | '\u{591}'..='\u{5BD}' | '\u{5BF}' | '\u{5C1}'..='\u{5C2}' | '\u{5C4}'..='\u{5C5}' | '\u{5C7}'
        | '\u{610}'..='\u{61A}' | '\u{640}' | '\u{64B}'..='\u{65F}' | '\u{670}'
        | '\u{6D6}'..='\u{6DC}' | '\u{6DF}'..='\u{6E4}' | '\u{6E7}'..='\u{6E8}' | '\u{6EA}'..='\u{6ED}')
}

/// Whether a character modifies the letter before it, or stands within a word.
///
/// Punctuation between words is none: a maqaf joins Hebrew words as a hyphen does, and Ethiopic has a sign for a space.
pub(crate) fn is_mark(c: char) -> bool {
    !c.is_ascii()
        && !c.is_alphanumeric()
        && !c.is_whitespace()
        && char_script(c) != Script::Common
        && (is_word_sign(c) || !is_punctuation(c))
}

fn is_punctuation(c: char) -> bool {
    GeneralCategoryGroup::Punctuation.contains(CodePointMapData::<GeneralCategory>::new().get(c))
}

/// Whether a character is punctuation that stands within a word: the stress and question marks of Armenian, geresh and
/// gershayim, the signs of Arabic numbers, the sign between Tibetan syllables, and hyphens of Mongolian.
fn is_word_sign(c: char) -> bool {
    matches!(c,
        '\u{55A}'..='\u{55C}' | '\u{55E}' | '\u{55F}' | '\u{5F3}' | '\u{5F4}' | '\u{66A}'..='\u{66C}'
        | '\u{F0B}' | '\u{F0C}' | '\u{1806}' | '\u{180A}')
}

/// The geresh or gershayim for which an apostrophe or a quotation mark between two Hebrew letters is written.
///
/// Behind prefixes alone and before several letters, a mark may open a quotation instead.
pub(crate) fn hebrew_sign(before: &str, mark: char, after: &str) -> Option<char> {
    let sign = match mark {
        '"' | '“' | '”' | '„' | '＂' => '\u{5F4}',
        '\'' | '‘' | '’' => '\u{5F3}',
        _ => return None,
    };
    let is_no_point = |c: &char| !is_point(*c);
    let is_letter = |c: &char| matches!(c, 'א'..='ת');
    let following = after.chars().filter(is_no_point).take(2).take_while(is_letter).count();
    let mut word = before.chars().rev().filter(is_no_point).take_while(is_letter).peekable();
    let is_joined = word.peek().is_some()
        && (following == 1 || (following > 1 && word.any(|letter| !HEBREW_PREFIXES.contains(&letter))));
    is_joined.then_some(sign)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn found<'a>(text: &'a str, quoted: &str) -> Option<&'a str> {
        find(text, &fold(text), &fold(quoted)).and_then(|range| text.get(range))
    }

    #[test]
    fn fold_variants_of_one_text_are_equal() {
        for (one, other) in [
            ("Don’t — stop!", "don't stop"),
            ("ＦＵＬＬ　ｗｉｄｔｈ", "full width"),
            ("caf\u{e9}", "cafe\u{301}"),
            ("ΟΔΟΣ", "οδός"),
            ("Straße", "STRASSE"),
            ("İstanbul", "istanbul"),
            ("ılık ILIK", "ilik ilik"),
            ("kâğıt HÂLÂ resmî sükûn", "kağıt hala resmi sukun"),
            ("ŁÓDŹ miłość", "lodz milosc"),
            ("Đà Nẵng, Đurđevac", "da nang durdevac"),
            ("KØBENHAVN ǿ", "kobenhavn o"),
            ("Œuvre, cœur, Ægir, æ", "oeuvre coeur aegir ae"),
            ("Þórður", "thordur"),
            ("Ðaħka Ħal Ŧŧ", "dahka hal tt"),
            ("한국어", "\u{1112}\u{1161}\u{11ab}\u{1100}\u{116e}\u{11a8}\u{110b}\u{1165}"),
            ("你好，世界。", "你好 世界"),
            ("ﬁne", "fine"),
            ("गाँव", "गांव"),
            ("كَتَبَ مُحَمَّد", "كتب محمد"),
            ("שָׁלוֹם", "שלום"),
        ] {
            assert_eq!(fold(one), fold(other), "{one} {other}");
        }
        assert_ne!(fold("strict rules"), fold("relaxed rules"));
        assert_ne!(fold("3.5 percent"), fold("3.6 percent"));
        assert_eq!(fold("…—“”[]()"), "");
    }

    #[test]
    fn find_returns_original_text_in_whole_words() {
        check(
            "So, it's *really* simple: 3.5 percent.",
            "its really simple 35 percent",
            "it's *really* simple: 3.5 percent",
        );
        check("all fifteen million people", "teen million peop", "fifteen million people");
        // A match between words comes first.
        check("party of warning. The art of war.", "art of war", "art of war");
        check("他说：“今天天气很好”，然后走了", "今天天气很好", "今天天气很好");
        check("le caf\u{301}e\u{301}", "cafe", "caf\u{301}e\u{301}");
        check("หลังจากนั้นน้ำก็ท่วม", "น้ำก็ท่วม", "น้ำก็ท่วม");
        // A word without an end is rejected, and so is a range that is mostly punctuation.
        let endless = "z".repeat(5_000);
        assert_eq!(found(&endless, "zzzzzzzzzzzz"), None);
        assert_eq!(found(&format!("a{}b", ".".repeat(5_000)), "ab"), None);
        assert_eq!(found("the rules are strict", "the rules are relaxed"), None);
        assert_eq!(found("anything", "?!"), None);
        assert_eq!(found("", "a"), None);
    }

    #[test]
    fn mark_stands_within_word() {
        for c in ['\u{301}', '\u{94D}', '\u{200C}', '՞', '׳', '״', '٫', '་'] {
            assert!(is_mark(c), "{c}");
        }
        for c in ['־', '׃', '׀', '֊', '։', '՝', '፡', '።', '۔', '။', '។', '།', '。', '-'] {
            assert!(!is_mark(c), "{c}");
        }
    }

    #[test]
    fn hebrew_sign_is_within_word() {
        for (before, mark, after, expect) in [
            ("עם ד", '"', "ר לוי", Some('״')),
            ("צה", '”', "ל\"", Some('״')),
            ("ב", '"', "כ", Some('״')),
            ("מנכ", '"', "לית", Some('״')),
            ("ד\u{5BC}", '"', "ר\u{5B0}", Some('״')),
            ("ג", '\'', "ירפה", Some('׳')),
            ("צ", '’', "יפס", Some('׳')),
            ("ב", '"', "הארץ\"", None),
            ("שב", '"', "ידיעות אחרונות\"", None),
            ("שלום", '"', " לך", None),
            ("", '"', "שלום", None),
            ("רח", '\'', " יפו", None),
            ("don", '\'', "t", None),
            ("ד", '-', "ר", None),
        ] {
            assert_eq!(hebrew_sign(before, mark, after), expect, "{before}{mark}{after}");
        }
    }

    fn check(text: &str, quoted: &str, expect: &str) {
        assert_eq!(found(text, quoted), Some(expect));
    }

    proptest! {
        #[test]
        fn find_every_substring_is_found(text in "[a-z çéÄßłŒþ.,'你好ก้ำ한ς½-]{1,40}", from in 0..40_usize, count in 1..40_usize) {
            let piece: String = text.chars().skip(from).take(count).collect();
            let wanted = fold(&piece);
            let range = find(&text, &fold(&text), &wanted);
            prop_assert_eq!(range.is_some(), !wanted.is_empty());
            if let Some(range) = range {
                let folded = fold(text.get(range).unwrap());
                prop_assert!(folded.contains(&wanted), "{} {}", folded, wanted);
            }
        }

        #[test]
        fn find_any_text_does_not_panic(text in "\\PC{0,60}", quoted in "\\PC{0,20}") {
            if let Some(range) = find(&text, &fold(&text), &fold(&quoted)) {
                prop_assert!(text.get(range).is_some());
            }
        }
    }
}
