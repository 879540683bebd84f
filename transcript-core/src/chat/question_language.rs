//! Which archived transcript of a video answers a question: the one in the language of the question.

use super::{
    ChatRole, MESSAGE_CHARS_MAX, Question,
    common_words::certain_language,
    generic_words::is_generic_word,
    tokenizer::{Term, terms},
};
use crate::{
    archive::StoredTranscript,
    engine::Transcripts,
    text::head,
    transcript::{
        LanguageTag,
        script::{Script, char_script},
    },
};

/// Scripts that show a language among others, with their codes in tags.
const SCRIPTS: [(Script, &str); 10] = [
    (Script::Latin, "Latn"),
    (Script::Cyrillic, "Cyrl"),
    (Script::Greek, "Grek"),
    (Script::Arabic, "Arab"),
    (Script::Hebrew, "Hebr"),
    (Script::Devanagari, "Deva"),
    (Script::Bengali, "Beng"),
    (Script::Tamil, "Taml"),
    (Script::Georgian, "Geor"),
    (Script::Armenian, "Armn"),
];
/// Most languages that are compared.
const LANGUAGES_MAX: usize = 32;

impl Question {
    /// The archived transcript of the same video in the language of this question, if there is one; otherwise `stored`.
    ///
    /// If the message leaves its language open, that of the latest question before it decides. If the archive fails, it
    /// is `stored`.
    pub async fn best_transcript(
        &self,
        transcripts: &Transcripts,
        stored: StoredTranscript,
    ) -> StoredTranscript {
        let languages = transcripts.archived_languages(&stored).await;
        match self.language_among(&languages) {
            Some(language) => transcripts.in_language(stored, language.clone()).await,
            None => stored,
        }
    }

    /// The language of this question among some; the first is that of the transcript which answers otherwise.
    fn language_among<'a>(&self, languages: &'a [LanguageTag]) -> Option<&'a LanguageTag> {
        let languages = languages.get(..LANGUAGES_MAX).unwrap_or(languages);
        let earlier = self.history().iter().rev().filter(|turn| turn.role == ChatRole::User);
        let earlier = earlier.map(|turn| head(&turn.content, MESSAGE_CHARS_MAX));
        let mut texts = std::iter::once(self.message()).chain(earlier);
        texts.find_map(|text| text_language(text, languages))
    }
}

/// The language among these in which a text is written; `None` if it leaves that open.
fn text_language<'a>(text: &str, languages: &'a [LanguageTag]) -> Option<&'a LanguageTag> {
    let [default, _, ..] = languages else { return None };
    if let Some(certain) = certain_language(text) {
        return Some(languages.iter().find(|language| language.primary() == certain).unwrap_or(default));
    }
    let script = main_script(text)?;
    let candidates: Vec<&LanguageTag> =
        languages.iter().filter(|language| language.script().as_deref() == Some(script)).collect();
    if let ([only], true) = (candidates.as_slice(), script != "Latn") {
        return Some(only);
    }
    let mut words: Vec<String> = Vec::new();
    terms(text, |term| {
        if let Term::Word(word, _) = term {
            words.push(word.to_owned());
        }
    });
    let count = |language: &LanguageTag| {
        words.iter().filter(|word| is_generic_word(word, language.primary())).count()
    };
    let counts: Vec<_> = candidates.into_iter().map(|language| (count(language), language)).collect();
    let most = counts.iter().map(|(count, _)| *count).max().filter(|most| *most > 0)?;
    let mut best = counts.iter().filter(|(count, _)| *count == most).map(|(_, language)| *language);
    let first = best.next()?;
    // Variants of a language have the same words.
    best.all(|other| other.primary() == first.primary()).then_some(first)
}

/// The script of most letters of a text, as the code of a tag.
fn main_script(text: &str) -> Option<&'static str> {
    let letters: Vec<Script> = text.chars().filter(|c| c.is_alphabetic()).map(char_script).collect();
    let is_most =
        |script: Script| letters.iter().filter(|letter| **letter == script).count() * 2 > letters.len();
    SCRIPTS.into_iter().find(|(script, _)| is_most(*script)).map(|(_, code)| code)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn question_language_is_one_of_the_archived_ones() {
        let check = |text: &str, tags: &[&str], expect: Option<&str>| {
            let languages: Vec<_> = tags.iter().map(|tag| LanguageTag::parse(tag).unwrap()).collect();
            let found = text_language(text, &languages);
            assert_eq!(found.map(LanguageTag::as_str), expect, "{text} {tags:?}");
        };
        check("Сколько стоит омуль?", &["en", "ru"], Some("ru"));
        check("Какая глубина Байкала?", &["en", "ru", "uk", "de"], Some("ru"));
        check("Was kostet der Hochwasserschutz?", &["en", "de"], Some("de"));
        check("Woher kommt der Klei?", &["en", "de", "nl"], Some("de"));
        check("Quando fu l'ultima eruzione?", &["en", "it", "de"], Some("it"));
        check("Quanto custa o bilhete?", &["en", "pt-BR"], Some("pt-BR"));
        check("Dlaczego most się zawalił?", &["en", "pl"], Some("pl"));
        check("Πόσο κοστίζει;", &["en", "el"], Some("el"));
        check("How much is the ticket?", &["de", "en"], Some("en"));
        check("Hvorfor ble det ikke noe vann?", &["en", "nb"], Some("nb"));
        check("Hvorfor ble det ikke noe vann?", &["en", "nn"], Some("nn"));
        // A name may be in any language, and a certain language that is not archived is answered as before.
        check("Kubernetes?", &["en", "de"], None);
        check("Wer hat die Uhr gebaut?", &["en", "fr"], Some("en"));
        check("Wer hat die Uhr gebaut?", &["en"], None);
        check("Quem construiu?", &["en", "zh-Hans"], None);
    }
}
