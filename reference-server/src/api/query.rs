//! Query parameters of a lookup.

use std::borrow::Cow;

use percent_encoding::percent_decode_str;
use transcript_core::{
    archive::view::TranscriptView,
    captions::TextFormat,
    lookup::{AttributionTag, VideoReference},
    transcript::LanguageTag,
};

use super::{ProblemResponse, check_spelling, flag, language, view};

/// Form of a transcript response.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) enum ResponseFormat {
    /// `json`, the default.
    Json,
    /// `text`: prose, `md`: Markdown with timestamps, or subtitles, an extension.
    Text(TextFormat),
    /// The watch page, which has its own path and no name here.
    Page,
}

impl ResponseFormat {
    /// Names of the formats that can be requested.
    pub(crate) fn names() -> impl Iterator<Item = &'static str> {
        std::iter::once("json").chain(TextFormat::ALL.map(TextFormat::as_str))
    }

    /// Returns the format with this name.
    pub(crate) fn from_name(name: &str) -> Option<Self> {
        if name == "json" { Some(Self::Json) } else { TextFormat::from_wire(name).map(Self::Text) }
    }
}

/// Parsed query of a lookup.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct LookupQuery {
    pub(crate) reference: VideoReference,
    /// Form of the response.
    pub(crate) format: ResponseFormat,
    pub(crate) src: Option<AttributionTag>,
    /// Language; `None`: English if there is English, else the spoken language.
    pub(crate) language: Option<LanguageTag>,
    /// Whether a machine translation into the language is accepted.
    pub(crate) translated: bool,
    /// What the response contains of the transcript.
    pub(crate) view: TranscriptView,
    /// Whether Markdown begins with front matter.
    pub(crate) frontmatter: bool,
}

/// Parameters of a lookup.
const NAMES: [&str; 12] = [
    "url",
    "v",
    "format",
    "src",
    "lang",
    "translated",
    "words",
    "description",
    "chunk",
    "cursor",
    "maxChars",
    "frontmatter",
];

impl LookupQuery {
    /// Whether the response has the whole default transcript and nothing besides it.
    pub(crate) fn is_plain(&self) -> bool {
        self.language.is_none() && self.view == TranscriptView::default() && !self.frontmatter
    }

    /// Rejects views that the format cannot have.
    fn check_format(&self) -> Result<(), ProblemResponse> {
        let is = |format| self.format == ResponseFormat::Text(format);
        let is_json = self.format == ResponseFormat::Json;
        if self.view.words && !is_json && !is(TextFormat::WebVtt) {
            return Err(ProblemResponse::bad("words", "only format=json and format=vtt have times of words"));
        }
        if self.view.description && !is_json {
            return Err(ProblemResponse::bad("description", "only format=json has the description"));
        }
        if self.view.chunk.is_some() && !is_json {
            return Err(ProblemResponse::bad("chunk", "only format=json has chunks"));
        }
        let has_front_matter =
            matches!(self.format, ResponseFormat::Text(format) if format.has_front_matter());
        if self.frontmatter && !has_front_matter {
            let what = "only format=md, format=text and format=vtt have front matter";
            return Err(ProblemResponse::bad("frontmatter", what));
        }
        if self.translated && self.language.is_none() {
            return Err(ProblemResponse::bad("translated", "name the language as lang, such as lang=en"));
        }
        Ok(())
    }

    /// Parses a query; unknown parameters are ignored, unless they are spelled almost as a known one.
    ///
    /// # Errors
    /// 400 with the name of the invalid parameter.
    pub(crate) fn parse(query: &str) -> Result<Self, ProblemResponse> {
        check_spelling(query, &NAMES)?;
        let url = parameter(query, "url")?;
        let id = parameter(query, "v")?;
        let format = parameter(query, "format")?.map_or(Ok(ResponseFormat::Json), |name| {
            ResponseFormat::from_name(&name).ok_or_else(|| {
                ProblemResponse::bad(
                    "format",
                    "it must be one of json, text, md, srt, vtt; without it the answer is JSON",
                )
            })
        })?;
        let src = parameter(query, "src")?.map_or(Ok(None), |name| {
            let allowed = || AttributionTag::ALL.map(AttributionTag::as_str).join(", ");
            let tag = AttributionTag::from_wire(&name);
            tag.map(Some)
                .ok_or_else(|| ProblemResponse::bad("src", format!("it must be one of {}", allowed())))
        })?;
        let reference = match (url, id) {
            (Some(url), None) => VideoReference::Url(url.into_owned()),
            (None, Some(id)) => VideoReference::Id(id.into_owned()),
            (Some(_), Some(_)) => {
                return Err(ProblemResponse::bad(
                    "url and v",
                    "give one of them, not both (a link that has a & in it must be percent-encoded)",
                ));
            }
            (None, None) => {
                return Err(ProblemResponse::bad(
                    "url",
                    "it is missing: give the link of a video as url, or the id of a YouTube video as v",
                ));
            }
        };
        let query = Self {
            reference,
            format,
            src,
            language: language(query)?,
            translated: flag(query, "translated")?,
            view: view(query, "maxChars")?,
            frontmatter: flag(query, "frontmatter")?,
        };
        query.check_format()?;
        Ok(query)
    }
}

/// Returns the decoded value of a parameter.
///
/// # Errors
/// 400 if the parameter is repeated or is not percent-encoded UTF-8.
pub(crate) fn parameter<'a>(
    query: &'a str,
    name: &'static str,
) -> Result<Option<Cow<'a, str>>, ProblemResponse> {
    let pairs = query.split('&').map(|pair| pair.split_once('=').unwrap_or((pair, "")));
    let mut found = None;
    for (key, value) in pairs {
        if decode(key).as_deref() != Some(name) {
            continue;
        }
        if found.replace(value).is_some() {
            return Err(ProblemResponse::bad(name, "it is there more than once"));
        }
    }
    found
        .map(|value| {
            decode(value).ok_or_else(|| ProblemResponse::bad(name, "it is not valid percent-encoded UTF-8"))
        })
        .transpose()
}

/// Decodes a name or value; `None` for an incomplete escape or invalid UTF-8.
fn decode(text: &str) -> Option<Cow<'_, str>> {
    if !text.contains(['%', '+']) {
        return Some(Cow::Borrowed(text));
    }
    let hex = |at: usize| text.as_bytes().get(at).is_some_and(u8::is_ascii_hexdigit);
    let escapes_complete = text.match_indices('%').all(|(at, _)| hex(at + 1) && hex(at + 2));
    if !escapes_complete {
        return None;
    }
    let spaced = text.replace('+', " ");
    percent_decode_str(&spaced).decode_utf8().ok().map(|text| Cow::Owned(text.into_owned()))
}

#[cfg(test)]
mod tests {
    use axum::response::IntoResponse;

    use super::*;

    fn read(query: &str) -> Result<LookupQuery, ProblemResponse> {
        LookupQuery::parse(query)
    }

    #[test]
    fn lookup_query_known_parameters_are_parsed() {
        let url = |url: &str| VideoReference::Url(url.to_owned());
        for (query, reference, format, src) in [
            ("url=https%3A%2F%2Fyoutu.be%2Fx", url("https://youtu.be/x"), ResponseFormat::Json, None),
            (
                "url=https://youtu.be/x?t=1&other=%ff",
                url("https://youtu.be/x?t=1"),
                ResponseFormat::Json,
                None,
            ),
            (
                "v=a+b%2B&format=text",
                VideoReference::Id("a b+".to_owned()),
                ResponseFormat::Text(TextFormat::Text),
                None,
            ),
            (
                "&v=&format=md&src=mcp_other&",
                VideoReference::Id(String::new()),
                ResponseFormat::Text(TextFormat::Markdown),
                Some(AttributionTag::McpOther),
            ),
            (
                "v=x&format=srt",
                VideoReference::Id("x".to_owned()),
                ResponseFormat::Text(TextFormat::Srt),
                None,
            ),
            (
                "v=x&format=vtt",
                VideoReference::Id("x".to_owned()),
                ResponseFormat::Text(TextFormat::WebVtt),
                None,
            ),
            ("u%72l=x&format=json", url("x"), ResponseFormat::Json, None),
        ] {
            let found = read(query).unwrap();
            assert!(found.is_plain(), "{query}");
            assert_eq!((found.reference, found.format, found.src), (reference, format, src), "{query}");
        }
    }

    #[test]
    fn lookup_query_invalid_parameter_is_named() {
        for (query, name) in [
            ("", "url: it is missing"),
            ("x=1", "url: it is missing"),
            ("url=a&v=b", "url and v: "),
            ("url=a&url=a", "url: it is there more"),
            ("v=a&v=b", "v: it is there more"),
            ("v=a&format=xml", "format: it must be one of json, text, md, srt, vtt"),
            ("v=a&format=", "format: "),
            ("v=a&format=json&format=json", "format: it is there more"),
            ("v=a&src=me", "src: it must be one of custom_assistant, assistant_plugin, mcp_other"),
            ("v=%", "v: it is not valid"),
            ("url=%f", "url: it is not valid"),
            ("url=%ff", "url: it is not valid"),
            ("v=a&src=%zz", "src: it is not valid"),
            ("v=a&lang=", "lang: "),
            ("v=a&lang=no_language_at_all", "lang: "),
            ("v=a&lang=de&lang=en", "lang: it is there more"),
            ("v=a&LANG=de", "lang: its name is spelled"),
            ("v=a&max_chars=5", "maxChars: its name is spelled"),
            ("v=a&translated=true", "translated: name the language"),
            ("v=a&lang=de&translated=yes", "translated: it must be true or false"),
            ("v=a&format=srt&words=true", "words: only format=json"),
            ("v=a&format=text&description=true", "description: only format=json"),
            ("v=a&format=md&chunk=60s", "chunk: only format=json"),
            ("v=a&frontmatter=true", "frontmatter: only format=md"),
            ("v=a&words=maybe", "words: "),
            ("v=a&cursor=x", "cursor: "),
        ] {
            let refusal = read(query).unwrap_err();
            assert!(format!("{refusal:?}").contains(&format!("detail: \"{name}")), "{query}: {refusal:?}");
            assert_eq!(refusal.into_response().status(), 400, "{query}");
        }
    }
}
