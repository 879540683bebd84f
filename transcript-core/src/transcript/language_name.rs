//! English names of languages.

use super::LanguageTag;

/// The most common languages of videos; others are shown by their tag.
const NAMES: &[(&str, &str)] = &[
    ("af", "Afrikaans"),
    ("am", "Amharic"),
    ("ar", "Arabic"),
    ("az", "Azerbaijani"),
    ("bg", "Bulgarian"),
    ("bn", "Bengali"),
    ("ca", "Catalan"),
    ("cs", "Czech"),
    ("da", "Danish"),
    ("de", "German"),
    ("el", "Greek"),
    ("en", "English"),
    ("es", "Spanish"),
    ("et", "Estonian"),
    ("eu", "Basque"),
    ("fa", "Persian"),
    ("fi", "Finnish"),
    ("fil", "Filipino"),
    ("fr", "French"),
    ("gl", "Galician"),
    ("gu", "Gujarati"),
    ("he", "Hebrew"),
    ("hi", "Hindi"),
    ("hr", "Croatian"),
    ("hu", "Hungarian"),
    ("hy", "Armenian"),
    ("id", "Indonesian"),
    ("is", "Icelandic"),
    ("it", "Italian"),
    ("ja", "Japanese"),
    ("ka", "Georgian"),
    ("kk", "Kazakh"),
    ("km", "Khmer"),
    ("kn", "Kannada"),
    ("ko", "Korean"),
    ("lt", "Lithuanian"),
    ("lv", "Latvian"),
    ("ml", "Malayalam"),
    ("mr", "Marathi"),
    ("ms", "Malay"),
    ("my", "Burmese"),
    ("nb", "Norwegian Bokmål"),
    ("ne", "Nepali"),
    ("nl", "Dutch"),
    ("nn", "Norwegian Nynorsk"),
    ("no", "Norwegian"),
    ("pa", "Punjabi"),
    ("pl", "Polish"),
    ("ps", "Pashto"),
    ("pt", "Portuguese"),
    ("ro", "Romanian"),
    ("ru", "Russian"),
    ("si", "Sinhala"),
    ("sk", "Slovak"),
    ("sl", "Slovenian"),
    ("sq", "Albanian"),
    ("sr", "Serbian"),
    ("sv", "Swedish"),
    ("sw", "Swahili"),
    ("ta", "Tamil"),
    ("te", "Telugu"),
    ("th", "Thai"),
    ("tr", "Turkish"),
    ("uk", "Ukrainian"),
    ("ur", "Urdu"),
    ("uz", "Uzbek"),
    ("vi", "Vietnamese"),
    ("yi", "Yiddish"),
    ("zh", "Chinese"),
    ("zu", "Zulu"),
];

impl LanguageTag {
    /// English name of the language, with its tag if it has subtags; the tag alone if the name is unknown.
    pub fn english_name(&self) -> String {
        let tag = self.as_str();
        let known = NAMES.binary_search_by_key(&self.primary(), |(primary, _)| primary).ok();
        match known.and_then(|index| NAMES.get(index)) {
            Some((primary, name)) if *primary == tag => (*name).to_owned(),
            Some((_, name)) => format!("{name} ({tag})"),
            None => tag.to_owned(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn language_name_known_tag_is_english_name() {
        assert!(NAMES.is_sorted_by_key(|(primary, _)| primary));
        for (tag, expect) in [
            ("en", "English"),
            ("pt-BR", "Portuguese (pt-BR)"),
            ("zh-Hant", "Chinese (zh-Hant)"),
            ("tlh", "tlh"),
        ] {
            assert_eq!(LanguageTag::from_canonical(tag).english_name(), expect);
        }
    }
}
