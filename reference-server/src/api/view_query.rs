//! Query parameters of both APIs for a language and for views of a transcript: words, chunks and pages (extensions).

use std::{ops::RangeInclusive, str::FromStr};

use transcript_core::{
    archive::view::{PAGE_CHARS, PAGE_CHARS_MAX, SegmentCursor, SegmentPageRequest, TranscriptView},
    transcript::{ChunkOptions, ChunkUnit, LanguageTag},
};

use super::{ProblemResponse, parameter};

/// Limits of the size of chunks.
const CHUNK_SECONDS: RangeInclusive<u64> = 1..=86_400;
/// As [`CHUNK_SECONDS`], in tokens.
const CHUNK_TOKENS: RangeInclusive<u64> = 1..=100_000;

/// Parses `words`, `description`, `chunk`, `cursor` and the parameter of the page size, whose name differs between the
/// APIs.
///
/// # Errors
/// 400 with the name of the invalid parameter.
pub(crate) fn view(query: &str, max_chars: &'static str) -> Result<TranscriptView, ProblemResponse> {
    Ok(TranscriptView {
        words: flag(query, "words")?,
        description: flag(query, "description")?,
        chunk: parameter(query, "chunk")?.map(|size| chunk(&size)).transpose()?,
        page: page(query, max_chars)?,
    })
}

/// Parses `lang`.
///
/// # Errors
/// 400 if it is not a language tag.
pub(crate) fn language(query: &str) -> Result<Option<LanguageTag>, ProblemResponse> {
    let parse =
        |tag: &str| LanguageTag::parse(tag).map_err(|error| ProblemResponse::bad("lang", error.to_string()));
    parameter(query, "lang")?.map(|tag| parse(&tag)).transpose()
}

/// Parses a parameter that is `true` or `false`, the default.
///
/// # Errors
/// 400 for other values.
pub(crate) fn flag(query: &str, name: &'static str) -> Result<bool, ProblemResponse> {
    match parameter(query, name)?.as_deref() {
        None | Some("false") => Ok(false),
        Some("true") => Ok(true),
        Some(_) => Err(ProblemResponse::bad(name, "it must be true or false")),
    }
}

/// Rejects parameters that are spelled almost as one of these: ignoring them would change the response.
///
/// # Errors
/// 400 with the right name.
pub(crate) fn check_spelling(query: &str, names: &[&'static str]) -> Result<(), ProblemResponse> {
    let plain = |name: &str| -> String {
        name.chars().filter(|c| c.is_alphanumeric()).map(|c| c.to_ascii_lowercase()).collect()
    };
    let keys = query.split('&').map(|pair| pair.split_once('=').map_or(pair, |(key, _)| key));
    for key in keys.filter(|key| !names.contains(key)) {
        let written = plain(key);
        if let Some(name) = names.iter().find(|name| plain(name) == written) {
            return Err(ProblemResponse::bad(name, "its name is spelled like this"));
        }
    }
    Ok(())
}

fn chunk(size: &str) -> Result<ChunkOptions, ProblemResponse> {
    let by_time = size.strip_suffix('s').and_then(|text| number(text, CHUNK_SECONDS));
    let by_tokens = size.strip_suffix('t').and_then(|text| number(text, CHUNK_TOKENS));
    let (unit, size) = match (by_time, by_tokens) {
        (Some(seconds), _) => (ChunkUnit::Milliseconds, seconds * 1_000),
        (None, Some(tokens)) => (ChunkUnit::Tokens, tokens),
        (None, None) => {
            return Err(ProblemResponse::bad(
                "chunk",
                "it must be seconds from 1s to 86400s, such as 60s, or tokens from 1t to 100000t, such as 200t",
            ));
        }
    };
    Ok(ChunkOptions { unit, size, overlap: 0 })
}

fn page(query: &str, max_chars: &'static str) -> Result<Option<SegmentPageRequest>, ProblemResponse> {
    let cursor = parameter(query, "cursor")?;
    let cursor = cursor.map(|text| SegmentCursor::parse(&text).ok_or_else(not_a_cursor)).transpose()?;
    let size = parameter(query, max_chars)?.map(|text| {
        number(&text, 1..=PAGE_CHARS_MAX).ok_or_else(|| {
            ProblemResponse::bad(max_chars, format!("it must be a number from 1 to {PAGE_CHARS_MAX}"))
        })
    });
    Ok(match (cursor, size.transpose()?) {
        (None, None) => None,
        (cursor, size) => Some(SegmentPageRequest { cursor, chars_max: size.unwrap_or(PAGE_CHARS) }),
    })
}

/// A number without a sign, in this range.
pub(crate) fn number<T: FromStr + PartialOrd>(text: &str, range: RangeInclusive<T>) -> Option<T> {
    let is_plain = text.bytes().all(|byte| byte.is_ascii_digit());
    text.parse().ok().filter(|number| is_plain && range.contains(number))
}

fn not_a_cursor() -> ProblemResponse {
    ProblemResponse::bad(
        "cursor",
        "it must be the cursor of the next page from an earlier response; omit it to start at the beginning",
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(query: &str) -> Result<TranscriptView, ProblemResponse> {
        view(query, "maxChars")
    }

    #[test]
    fn view_parameters_are_parsed() {
        let chunk = |unit, size| Some(ChunkOptions { unit, size, overlap: 0 });
        let page = |cursor: Option<&str>, chars_max| {
            let cursor = cursor.map(|cursor| SegmentCursor::parse(cursor).unwrap());
            Some(SegmentPageRequest { cursor, chars_max })
        };
        let view = TranscriptView::default();
        for (query, expect) in [
            ("", view),
            ("v=x&words=false", view),
            ("words=true", TranscriptView { words: true, ..view }),
            ("description=true", TranscriptView { description: true, ..view }),
            ("chunk=60s", TranscriptView { chunk: chunk(ChunkUnit::Milliseconds, 60_000), ..view }),
            ("chunk=200t", TranscriptView { chunk: chunk(ChunkUnit::Tokens, 200), ..view }),
            ("maxChars=500", TranscriptView { page: page(None, 500), ..view }),
            ("cursor=0a1b2c3d-7", TranscriptView { page: page(Some("0a1b2c3d-7"), PAGE_CHARS), ..view }),
        ] {
            assert_eq!(read(query).unwrap(), expect, "{query}");
        }
    }

    #[test]
    fn view_invalid_parameter_is_named() {
        for (query, name) in [
            ("words=1", "words: "),
            ("words=true&words=true", "words: it is there more"),
            ("chunk=60", "chunk: "),
            ("chunk=0s", "chunk: "),
            ("chunk=%2B5s", "chunk: "),
            ("chunk=86401s", "chunk: "),
            ("chunk=s", "chunk: "),
            ("chunk=5é", "chunk: "),
            ("maxChars=0", "maxChars: "),
            ("maxChars=", "maxChars: "),
            ("maxChars=%2B5", "maxChars: "),
            ("maxChars=99999999999999999999", "maxChars: "),
            ("cursor=", "cursor: "),
            ("cursor=1-1", "cursor: "),
        ] {
            let refusal = read(query).unwrap_err();
            assert!(refusal.detail().starts_with(name), "{query}: {refusal:?}");
        }
        for (query, good) in [("maxChars=1&t=5", true), ("max_chars=1", false), ("Lang=de", false)] {
            assert_eq!(check_spelling(query, &["maxChars", "lang"]).is_ok(), good, "{query}");
        }
    }
}
