//! Whether a question and a passage share content words, by rules that know no dictionary.
//!
//! Two words are the same if one begins with the other, or if they share a beginning and differ in short endings. This
//! finds more than real stems do, so a paraphrase that passes shares none. The function words of each language are
//! listed in `tests/chat/function_words.toml`.

use std::{
    collections::{BTreeMap, HashSet},
    fs,
};

use anyhow::{Context as _, Result};

use super::{rankings::bm25_terms, talks::is_spaced};

/// The function words of each language.
const FUNCTION_WORDS: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/chat/function_words.toml");
/// Longest ending that two forms of a word differ in, in characters.
const ENDING_MAX: usize = 4;
/// Prefixes that Arabic writes together with a word: articles, conjunctions, prepositions.
const ARABIC_PREFIXES: [&str; 8] = ["وال", "بال", "فال", "كال", "لل", "ال", "و", "ب"];

fn function_words(language: &str) -> Result<HashSet<String>> {
    let text = fs::read_to_string(FUNCTION_WORDS)?;
    let all: BTreeMap<String, String> = toml::from_str(&text)?;
    let words = all.get(language).with_context(|| format!("no function words of {language}"))?;
    Ok(words.split_whitespace().map(str::to_owned).collect())
}

/// The content words of a text; in languages without spaces, pairs of Han or Katakana characters.
fn content_words(text: &str, language: &str, function_words: &HashSet<String>) -> Vec<String> {
    let is_content = |c: char| matches!(c, '\u{30A0}'..='\u{30FF}' | '\u{3400}'..='\u{9FFF}');
    let mut words = bm25_terms(text, language);
    if !is_spaced(language) {
        words.retain(|word| word.chars().count() == 2 && word.chars().all(is_content));
    }
    words.retain(|word| !function_words.contains(word));
    if language == "ar" {
        words = words.iter().map(|word| without_prefix(word).to_owned()).collect();
        words.retain(|word| !function_words.contains(word));
    }
    words
}

fn without_prefix(word: &str) -> &str {
    let stems = ARABIC_PREFIXES.iter().filter_map(|prefix| word.strip_prefix(prefix));
    stems.into_iter().find(|stem| stem.chars().count() >= 3).unwrap_or(word)
}

/// Least characters that two forms of a word share.
fn stem_chars(language: &str) -> usize {
    match language {
        "ko" => 2,
        "ar" | "hi" => 3,
        _ => 4,
    }
}

fn is_same_word(one: &str, other: &str, language: &str) -> bool {
    let common = one.chars().zip(other.chars()).take_while(|(one, other)| one == other).count();
    let (first, second) = (one.chars().count() - common, other.chars().count() - common);
    one == other
        || is_spaced(language)
            && common >= stem_chars(language)
            && (first == 0 || second == 0 || first.max(second) <= ENDING_MAX)
}

/// The content words of a question that a passage has too, with the passage's form.
///
/// # Errors
/// The function words of the language are not listed.
pub(super) fn shared_words(language: &str, question: &str, passage: &str) -> Result<Vec<(String, String)>> {
    let function_words = function_words(language)?;
    let spoken = content_words(passage, language, &function_words);
    let mut shared = Vec::new();
    for word in content_words(question, language, &function_words) {
        if let Some(other) = spoken.iter().find(|other| is_same_word(&word, other, language)) {
            shared.push((word, other.clone()));
        }
    }
    Ok(shared)
}

#[test]
fn shared_words_include_other_forms() -> Result<()> {
    let count = |language, question, passage| -> Result<usize> {
        Ok(shared_words(language, question, passage)?.len())
    };
    assert_eq!(count("en", "Who repaired the engine?", "They repair it, and engines are loud.")?, 2);
    assert_eq!(count("en", "Who mended the motor?", "They repair it, and engines are loud.")?, 0);
    assert_eq!(count("en", "What is the interval?", "The internationally known one.")?, 0);
    assert_eq!(count("ar", "أين الجسر؟", "بنى جسرا")?, 1);
    assert_eq!(count("ko", "다리는 어디에 있나요?", "다리가 무너졌습니다")?, 1);
    assert_eq!(count("zh", "茶园在哪里？", "我家的茶园")?, 1);
    assert_eq!(count("zh", "种茶的地方多高？", "海拔一千米的山坡")?, 0);
    assert!(shared_words("xx", "a", "b").is_err());
    Ok(())
}
