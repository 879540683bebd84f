//! Parses the language in a response: some services return a tag, some an English name. No I/O.

use transcript_core::transcript::LanguageTag;

/// Language names of the Whisper family that are not tags.
const NAMES: &[(&str, &str)] = &[
    ("afrikaans", "af"),
    ("albanian", "sq"),
    ("amharic", "am"),
    ("arabic", "ar"),
    ("armenian", "hy"),
    ("assamese", "as"),
    ("azerbaijani", "az"),
    ("bashkir", "ba"),
    ("basque", "eu"),
    ("belarusian", "be"),
    ("bengali", "bn"),
    ("bosnian", "bs"),
    ("breton", "br"),
    ("bulgarian", "bg"),
    ("burmese", "my"),
    ("cantonese", "yue"),
    ("castilian", "es"),
    ("catalan", "ca"),
    ("chinese", "zh"),
    ("croatian", "hr"),
    ("czech", "cs"),
    ("danish", "da"),
    ("dutch", "nl"),
    ("english", "en"),
    ("estonian", "et"),
    ("faroese", "fo"),
    ("filipino", "fil"),
    ("finnish", "fi"),
    ("flemish", "nl"),
    ("french", "fr"),
    ("galician", "gl"),
    ("georgian", "ka"),
    ("german", "de"),
    ("greek", "el"),
    ("gujarati", "gu"),
    ("haitian", "ht"),
    ("haitian creole", "ht"),
    ("hausa", "ha"),
    ("hawaiian", "haw"),
    ("hebrew", "he"),
    ("hindi", "hi"),
    ("hungarian", "hu"),
    ("icelandic", "is"),
    ("indonesian", "id"),
    ("irish", "ga"),
    ("italian", "it"),
    ("japanese", "ja"),
    ("javanese", "jv"),
    ("kannada", "kn"),
    ("kazakh", "kk"),
    ("khmer", "km"),
    ("korean", "ko"),
    ("kurdish", "ku"),
    ("lao", "lo"),
    ("latin", "la"),
    ("latvian", "lv"),
    ("letzeburgesch", "lb"),
    ("lingala", "ln"),
    ("lithuanian", "lt"),
    ("luxembourgish", "lb"),
    ("macedonian", "mk"),
    ("malagasy", "mg"),
    ("malay", "ms"),
    ("malayalam", "ml"),
    ("maltese", "mt"),
    ("mandarin", "zh"),
    ("maori", "mi"),
    ("marathi", "mr"),
    ("moldavian", "ro"),
    ("moldovan", "ro"),
    ("mongolian", "mn"),
    ("myanmar", "my"),
    ("nepali", "ne"),
    ("norwegian", "no"),
    ("nynorsk", "nn"),
    ("occitan", "oc"),
    ("panjabi", "pa"),
    ("pashto", "ps"),
    ("persian", "fa"),
    ("polish", "pl"),
    ("portuguese", "pt"),
    ("punjabi", "pa"),
    ("pushto", "ps"),
    ("romanian", "ro"),
    ("russian", "ru"),
    ("sanskrit", "sa"),
    ("serbian", "sr"),
    ("shona", "sn"),
    ("sindhi", "sd"),
    ("sinhala", "si"),
    ("sinhalese", "si"),
    ("slovak", "sk"),
    ("slovenian", "sl"),
    ("somali", "so"),
    ("spanish", "es"),
    ("sundanese", "su"),
    ("swahili", "sw"),
    ("swedish", "sv"),
    ("tagalog", "tl"),
    ("tajik", "tg"),
    ("tamil", "ta"),
    ("tatar", "tt"),
    ("telugu", "te"),
    ("thai", "th"),
    ("tibetan", "bo"),
    ("turkish", "tr"),
    ("turkmen", "tk"),
    ("ukrainian", "uk"),
    ("urdu", "ur"),
    ("uzbek", "uz"),
    ("valencian", "ca"),
    ("vietnamese", "vi"),
    ("welsh", "cy"),
    ("yiddish", "yi"),
    ("yoruba", "yo"),
];

/// The language that a service named; `None` if the word is unknown.
pub(super) fn named(word: &str) -> Option<LanguageTag> {
    let word = word.trim().to_lowercase();
    if let Some((_, tag)) = NAMES.iter().find(|(name, _)| *name == word) {
        return LanguageTag::parse(tag).ok();
    }
    // A longer first part is a name that happens to look like a tag.
    let first = word.split(['-', '_']).next().unwrap_or_default();
    let is_tag = (2..=3).contains(&first.len()) && first != "und";
    LanguageTag::parse(&word).ok().filter(|_| is_tag)
}

/// The language of most of the text; `None` if no chunk has one. Of equals the earlier one wins.
pub(super) fn most_spoken<'a>(
    parts: impl IntoIterator<Item = (Option<&'a LanguageTag>, usize)>,
) -> Option<LanguageTag> {
    let mut totals: Vec<(&LanguageTag, usize)> = Vec::new();
    for (language, length) in parts {
        let Some(language) = language.filter(|_| length > 0) else { continue };
        match totals.iter_mut().find(|(known, _)| *known == language) {
            Some((_, total)) => *total += length,
            None => totals.push((language, length)),
        }
    }
    let most = totals.iter().map(|(_, total)| *total).max()?;
    totals.into_iter().find(|(_, total)| *total == most).map(|(language, _)| language.clone())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn language_name_or_tag_is_parsed() {
        for (word, expect) in [
            ("english", Some("en")),
            (" English ", Some("en")),
            ("en", Some("en")),
            ("en-US", Some("en-US")),
            ("iw", Some("he")),
            ("cantonese", Some("yue")),
            ("haitian creole", Some("ht")),
            ("jw", Some("jv")),
            ("auto", None),
            ("unknown", None),
            ("und", None),
            ("", None),
            ("klingon", None),
        ] {
            assert_eq!(named(word).as_ref().map(LanguageTag::as_str), expect, "{word}");
        }
    }

    #[test]
    fn language_table_every_tag_is_valid() {
        for (name, _) in NAMES {
            assert!(named(name).is_some(), "{name}");
        }
    }

    #[test]
    fn language_of_longest_text_wins() {
        let tag = |text: &str| LanguageTag::parse(text).unwrap();
        let (en, fr) = (tag("en"), tag("fr"));
        let most = |parts: &[(Option<&LanguageTag>, usize)]| most_spoken(parts.iter().copied());
        assert_eq!(most(&[(Some(&fr), 5), (Some(&en), 3), (None, 90), (Some(&en), 3)]), Some(en.clone()));
        assert_eq!(most(&[(Some(&fr), 5), (Some(&en), 5)]), Some(fr.clone()));
        assert_eq!(most(&[(None, 5), (Some(&en), 0)]), None);
    }
}
