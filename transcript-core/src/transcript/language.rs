//! Language tags: canonical BCP 47, matched by language and likely script.

use std::str::FromStr;

use icu_locale::{LanguageIdentifier, Locale, LocaleCanonicalizer, LocaleExpander};
use serde::{Deserialize, Serialize};

use crate::error::Error;

/// Language tag in canonical form: `en`, `zh-Hant`, `pt-BR`, `he` (never `iw`).
///
/// ```
/// use transcript_core::transcript::LanguageTag;
///
/// let wanted = LanguageTag::parse("iw")?;
/// assert_eq!(wanted.as_str(), "he");
/// assert!(wanted.matches(&LanguageTag::parse("he-IL")?));
/// # Ok::<(), transcript_core::Error>(())
/// ```
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(transparent)]
pub struct LanguageTag(String);

crate::display::display!(LanguageTag, |this| this.0);

impl LanguageTag {
    /// Maximum length of a tag, in bytes.
    pub const LENGTH_MAX: usize = 64;
    /// Regular expression of the usual tags, for documents: language, script, region and variant.
    ///
    /// [`LanguageTag::parse`] accepts every text that matches, and others.
    pub const PATTERN: &'static str = "^[A-Za-z]{2,3}(-[A-Za-z]{4})?(-([A-Za-z]{2}|[0-9]{3}))?\
                                       (-([A-Za-z0-9]{5,8}|[0-9][A-Za-z0-9]{3}))?$";

    /// Parses a tag. Letter case and `_` for `-` do not matter; deprecated tags are replaced.
    ///
    /// # Errors
    /// [`crate::ErrorKind::Invalid`] if the text is not a well-formed language tag.
    pub fn parse(text: &str) -> Result<Self, Error> {
        let text = text.trim();
        if text.is_empty() || text.len() > Self::LENGTH_MAX {
            return Err(not_a_tag());
        }
        let mut locale = Locale::try_from_str(&text.replace('_', "-")).map_err(|_| not_a_tag())?;
        // Its data is compiled in: creating a canonicalizer costs a few pointers.
        LocaleCanonicalizer::new_extended().canonicalize(&mut locale);
        Ok(Self(locale.to_string()))
    }

    /// English.
    pub fn english() -> Self {
        Self("en".to_owned())
    }

    /// The tag of an unknown language: `und`.
    pub fn unknown() -> Self {
        Self("und".to_owned())
    }

    /// A tag that is already in canonical form, taken unchanged.
    pub fn from_canonical(text: impl Into<String>) -> Self {
        Self(text.into())
    }

    /// The tag's text.
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// Whether the primary language is English.
    pub fn is_english(&self) -> bool {
        self.primary() == "en"
    }

    /// Primary language: everything before the first `-`.
    pub fn primary(&self) -> &str {
        self.0.split('-').next().unwrap_or(&self.0)
    }

    /// Whether a track in `other` satisfies a request for this language.
    ///
    /// Both need the same primary language and the same likely script, so `zh-Hans` never satisfies `zh-Hant`. `nb` and
    /// `no` are the same language.
    pub fn matches(&self, other: &Self) -> bool {
        self == other || (self.compared() == other.compared() && self.script() == other.script())
    }

    /// The primary languages of tracks that may satisfy a request for this language, as in [`Self::matches`].
    #[cfg(feature = "search")]
    pub(crate) fn primaries(&self) -> impl Iterator<Item = &str> {
        let other = match self.primary() {
            "nb" => Some("no"),
            "no" => Some("nb"),
            _ => None,
        };
        [self.primary()].into_iter().chain(other)
    }

    /// Primary language for comparisons: YouTube lists `no` for the Norwegian that browsers request as `nb`.
    fn compared(&self) -> &str {
        match self.primary() {
            "nb" => "no",
            primary => primary,
        }
    }

    /// The tag without a region that its language implies: `en-US` is `en`, `pt-BR` is `pt`.
    ///
    /// After a script, any region is removed: `zh-Hant-CN` is `zh-Hant`. For platforms that add a region to every
    /// language.
    pub fn without_likely_region(&self) -> Self {
        let Ok(mut identifier) = LanguageIdentifier::try_from_str(&self.0) else { return self.clone() };
        let Some(region) = identifier.region.take() else { return self.clone() };
        let mut likely = identifier.clone();
        LocaleExpander::new_extended().maximize(&mut likely);
        if identifier.script.is_some() || likely.region == Some(region) {
            Self(identifier.to_string())
        } else {
            self.clone()
        }
    }

    /// Whether the language's likely script is written from right to left.
    ///
    /// ```
    /// use transcript_core::transcript::LanguageTag;
    ///
    /// let tag = |text| LanguageTag::parse(text).unwrap();
    /// assert!(tag("he").is_right_to_left() && tag("uz-Arab").is_right_to_left());
    /// assert!(!tag("en").is_right_to_left() && !tag("ar-Latn").is_right_to_left());
    /// ```
    pub fn is_right_to_left(&self) -> bool {
        const SCRIPTS: [&str; 11] =
            ["Adlm", "Arab", "Hebr", "Mand", "Mend", "Nkoo", "Rohg", "Samr", "Syrc", "Thaa", "Yezi"];
        self.script().is_some_and(|script| SCRIPTS.contains(&script.as_str()))
    }

    /// Script of the tag or, if it names none, the usual script of its language and region.
    pub(crate) fn script(&self) -> Option<String> {
        let mut identifier = LanguageIdentifier::try_from_str(&self.0)
            .or_else(|_| Locale::try_from_str(&self.0).map(|locale| locale.id))
            .ok()?;
        LocaleExpander::new_extended().maximize(&mut identifier);
        identifier.script.map(|script| script.to_string())
    }
}

/// As [`LanguageTag::parse`].
impl FromStr for LanguageTag {
    type Err = Error;

    fn from_str(text: &str) -> Result<Self, Error> {
        Self::parse(text)
    }
}

#[cold]
fn not_a_tag() -> Error {
    Error::invalid("not a language tag: give a BCP 47 tag such as en, pt-BR or zh-Hant")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn language_parse_canonicalizes_tag() {
        for (text, expect) in [
            ("en", "en"),
            ("EN_us", "en-US"),
            ("iw", "he"),
            ("zh-hant", "zh-Hant"),
            ("zh-tw", "zh-TW"),
            (" pt-BR ", "pt-BR"),
            ("fil", "fil"),
            ("bho", "bho"),
        ] {
            assert_eq!(LanguageTag::parse(text).unwrap().as_str(), expect, "{text}");
            assert_eq!(text.parse::<LanguageTag>().unwrap().as_str(), expect, "{text}");
        }
    }

    #[test]
    fn language_parse_rejects_other_text() {
        for text in ["", " ", "e", "english language", "en us", "123", "é", &"a-".repeat(40)] {
            assert!(LanguageTag::parse(text).is_err(), "{text:?}");
        }
    }

    /// Texts that have each part of [`LanguageTag::PATTERN`], in each of its forms.
    #[test]
    fn language_parse_accepts_each_combination_of_pattern() {
        for language in ["qx", "QXZ"] {
            for script in ["", "-Qxzw"] {
                for region in ["", "-qx", "-123"] {
                    for variant in ["", "-12345", "-abcdefgh", "-1abc", "-1234"] {
                        let text = format!("{language}{script}{region}{variant}");
                        assert!(LanguageTag::parse(&text).is_ok(), "{text}");
                    }
                }
            }
        }
        for text in ["zh-Hant", "es-419", "sr-Latn", "zh-Hant-TW", "de-1996", "ca-valencia"] {
            assert!(LanguageTag::parse(text).is_ok(), "{text}");
        }
    }

    #[test]
    fn language_redundant_region_is_removed() {
        for (text, expect) in [
            ("eng-US", "en"),
            ("vie-VN", "vi"),
            ("por-BR", "pt"),
            ("pt-PT", "pt-PT"),
            ("en-GB", "en-GB"),
            ("cmn-Hant-CN", "zh-Hant"),
            ("cmn-Hans-CN", "zh-Hans"),
            ("ind-ID", "id"),
            ("fil-PH", "fil"),
            ("jpn-JP", "ja"),
            ("ara-SA", "ar-SA"),
            ("de", "de"),
        ] {
            assert_eq!(LanguageTag::parse(text).unwrap().without_likely_region().as_str(), expect, "{text}");
        }
    }

    #[test]
    fn language_match_requires_same_script() {
        let matches =
            |a: &str, b: &str| LanguageTag::parse(a).unwrap().matches(&LanguageTag::parse(b).unwrap());
        assert!(matches("en", "en-GB"));
        assert!(matches("zh-TW", "zh-Hant"));
        assert!(matches("zh-CN", "zh-Hans"));
        assert!(matches("zh", "zh-Hans"));
        assert!(!matches("zh-Hans", "zh-Hant"));
        assert!(!matches("sr-Latn", "sr"));
        assert!(!matches("en", "de"));
        assert!(matches("und", "und"));
        assert!(matches("nb-NO", "no") && matches("no", "nb"));
        assert!(!matches("nn", "no"));
    }
}
