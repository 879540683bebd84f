//! The forms of a phrase: between runs without spaces, a text may have a space, a break between segments, or neither.

use super::query::{PHRASE_WORDS_MAX, ordered_terms};
use crate::{chat::tokenizer::is_ngram, transcript::is_unspaced};

/// Most spaces between runs of which each is read in both ways. Further ones are read as the last of them.
const GAPS_MAX: usize = 3;
/// Stands between two n-grams of a phrase that are of two runs, if they could be of one. No index has it.
pub(super) const RUN_END: &str = "";

/// The terms of a phrase in each of its forms, with all spaces first. Of each form, an index has a limited number.
pub(super) fn phrase_forms(text: &str) -> Vec<Vec<String>> {
    // Each piece, and the number of the space before it if that is between runs.
    let mut pieces: Vec<(Option<usize>, &str)> = Vec::new();
    let mut gaps = 0;
    for piece in text.split_whitespace() {
        let is_gap = pieces.last().is_some_and(|(_, before)| {
            before.chars().next_back().is_some_and(is_of_run) && piece.chars().next().is_some_and(is_of_run)
        });
        pieces.push((is_gap.then_some(gaps.min(GAPS_MAX - 1)), piece));
        gaps += usize::from(is_gap);
    }
    let mut forms = Vec::new();
    for form in 0..1_u32 << gaps.min(GAPS_MAX) {
        let (mut words, mut part) = (Vec::new(), String::new());
        for (gap, piece) in &pieces {
            match gap {
                Some(gap) if (form >> gap) & 1 == 1 => {}
                Some(_) => add_terms(&mut words, &std::mem::take(&mut part)),
                None => part.push(' '),
            }
            part.push_str(piece);
        }
        add_terms(&mut words, &part);
        words.truncate(PHRASE_WORDS_MAX);
        if !words.is_empty() && !forms.contains(&words) {
            forms.push(words);
        }
    }
    forms
}

fn is_of_run(letter: char) -> bool {
    is_unspaced(letter) && is_ngram(letter.encode_utf8(&mut [0; 4]))
}

/// Adds the ordered terms of the part behind a space.
fn add_terms(words: &mut Vec<String>, part: &str) {
    let terms = ordered_terms(part);
    if let (Some(last), Some(first)) = (words.last(), terms.first())
        && may_overlap(last, first)
    {
        words.push(RUN_END.to_owned());
    }
    words.extend(terms);
}

/// Whether two n-grams may follow each other in one run, as those of `"東京 京都"` do in 東京都.
fn may_overlap(one: &str, next: &str) -> bool {
    let letters = one.chars().count();
    letters > 1 && letters == next.chars().count() && one.chars().skip(1).eq(next.chars().take(letters - 1))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(text: &str, expect: &[&str]) {
        let forms: Vec<String> = phrase_forms(text).iter().map(|words| words.join(" ")).collect();
        assert_eq!(forms, expect, "{text}");
    }

    #[test]
    fn phrase_space_between_runs_may_be_none() {
        check("tide tables", &["tide tables"]);
        check("東京 大学", &["東京 大学", "東京 京大 大学"]);
        check("ไม้ ไผ่", &["ไม้ ไผ่", "ไม้ ม้ไ ้ไผ ไผ่"]);
        check("the 東京\u{3000}大学 now", &["the 東京 大学 now", "the 東京 京大 大学 now"]);
        check("東京 京都", &["東京  京都", "東京 京京 京都"]);
        check("火山 AI 革命", &["火山 ai 革命"]);
        check("서울 대학", &["서울 대학"]);
        check("ＡＢ ＣＤ", &["ab cd"]);
        check("東京、 大学", &["東京 大学"]);
        check(" … ", &[]);
    }

    #[test]
    fn phrase_forms_are_few() {
        let forms = phrase_forms(&"東京 大学 ".repeat(100));
        assert_eq!(forms.len(), 8);
        assert!(forms.iter().all(|words| words.len() <= PHRASE_WORDS_MAX));
    }
}
