//! The parameters of a look-up.

use std::borrow::Cow;

use percent_encoding::percent_decode_str;
use transcript_core::lookup::{Reference, SourceTag};

use crate::http::Refusal;

/// The form in which a transcript is wanted.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) enum Format {
    /// `json`, also when nothing is said.
    Json,
    /// `text`: plain prose.
    Text,
    /// `md`: Markdown with times.
    Markdown,
    /// `srt`: SRT subtitles; our extension.
    Srt,
    /// `vtt`: WebVTT subtitles; our extension.
    WebVtt,
    /// The watch page: no name asks for it, it has an address of its own.
    Page,
}

impl Format {
    /// All that can be asked for, with their names.
    pub(crate) const ALL: [(&'static str, Self); 5] = [
        ("json", Self::Json),
        ("text", Self::Text),
        ("md", Self::Markdown),
        ("srt", Self::Srt),
        ("vtt", Self::WebVtt),
    ];

    /// The format with this name.
    pub(crate) fn from_name(name: &str) -> Option<Self> {
        Self::ALL.iter().find(|(known, _)| *known == name).map(|(_, format)| *format)
    }
}

/// What a look-up's query says.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct LookupQuery {
    /// The video.
    pub(crate) reference: Reference,
    /// The form of the answer.
    pub(crate) format: Format,
    /// The attribution tag.
    pub(crate) src: Option<SourceTag>,
}

impl LookupQuery {
    /// Reads a query; parameters that it does not know are ignored.
    ///
    /// # Errors
    /// 400, naming the parameter that is wrong.
    pub(crate) fn read(query: &str) -> Result<Self, Refusal> {
        let url = parameter(query, "url")?;
        let id = parameter(query, "v")?;
        let format = parameter(query, "format")?.map_or(Ok(Format::Json), |name| {
            Format::from_name(&name).ok_or_else(|| {
                Refusal::bad(
                    "format",
                    "it must be one of json, text, md, srt, vtt; without it the answer is JSON",
                )
            })
        })?;
        let src = parameter(query, "src")?.map_or(Ok(None), |name| {
            let allowed = || SourceTag::ALL.map(SourceTag::as_str).join(", ");
            let tag = SourceTag::from_wire(&name);
            tag.map(Some).ok_or_else(|| Refusal::bad("src", format!("it must be one of {}", allowed())))
        })?;
        let reference = match (url, id) {
            (Some(url), None) => Reference::Url(url.into_owned()),
            (None, Some(id)) => Reference::Id(id.into_owned()),
            (Some(_), Some(_)) => {
                return Err(Refusal::bad(
                    "url and v",
                    "give one of them, not both (a link that has a & in it must be percent-encoded)",
                ));
            }
            (None, None) => {
                return Err(Refusal::bad(
                    "url",
                    "it is missing: give the link of a video as url, or the id of a YouTube video as v",
                ));
            }
        };
        Ok(Self { reference, format, src })
    }
}

/// The value of a parameter, decoded.
///
/// # Errors
/// 400 when it is there twice, or is not percent-encoded UTF-8.
pub(super) fn parameter<'a>(query: &'a str, name: &'static str) -> Result<Option<Cow<'a, str>>, Refusal> {
    let pairs = query.split('&').map(|pair| pair.split_once('=').unwrap_or((pair, "")));
    let mut found = None;
    for (key, value) in pairs {
        if decode(key).as_deref() != Some(name) {
            continue;
        }
        if found.replace(value).is_some() {
            return Err(Refusal::bad(name, "it is there more than once"));
        }
    }
    found
        .map(|value| decode(value).ok_or_else(|| Refusal::bad(name, "it is not valid percent-encoded UTF-8")))
        .transpose()
}

/// A name or value decoded; none when an escape is incomplete or the bytes are no UTF-8.
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

    fn read(query: &str) -> Result<LookupQuery, Refusal> {
        LookupQuery::read(query)
    }

    #[test]
    fn the_known_parameters_are_read() {
        let url = |url: &str| Reference::Url(url.to_owned());
        for (query, reference, format, src) in [
            ("url=https%3A%2F%2Fyoutu.be%2Fx", url("https://youtu.be/x"), Format::Json, None),
            ("url=https://youtu.be/x?t=1&other=%ff", url("https://youtu.be/x?t=1"), Format::Json, None),
            ("v=a+b%2B&format=text", Reference::Id("a b+".to_owned()), Format::Text, None),
            (
                "&v=&format=md&src=mcp_other&",
                Reference::Id(String::new()),
                Format::Markdown,
                Some(SourceTag::McpOther),
            ),
            ("v=x&format=srt", Reference::Id("x".to_owned()), Format::Srt, None),
            ("v=x&format=vtt", Reference::Id("x".to_owned()), Format::WebVtt, None),
            ("u%72l=x&format=json", url("x"), Format::Json, None),
        ] {
            assert_eq!(read(query).unwrap(), LookupQuery { reference, format, src }, "{query}");
        }
    }

    #[test]
    fn what_is_wrong_is_named() {
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
        ] {
            let refusal = read(query).unwrap_err();
            assert!(format!("{refusal:?}").contains(&format!("detail: \"{name}")), "{query}: {refusal:?}");
            assert_eq!(refusal.into_response().status(), 400, "{query}");
        }
    }
}
