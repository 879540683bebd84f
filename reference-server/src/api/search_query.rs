//! Query parameters of a search of the archive.

use transcript_core::{
    search::{LIMIT_MAX, QUERY_CHARS_MAX, SearchParams, SearchSort},
    video::Platform,
};

use super::{ProblemResponse, check_spelling, language, number, parameter};

const NAMES: [&str; 6] = ["q", "lang", "platform", "limit", "cursor", "sort"];
/// Longest cursor, in bytes.
const CURSOR_BYTES_MAX: usize = 64;

/// Parses the parameters of a search; unknown ones are ignored, unless they are spelled almost as a known one.
///
/// `None` without `q`.
///
/// # Errors
/// 400 with the name of the invalid parameter.
pub(crate) fn search_params(query: &str) -> Result<Option<SearchParams>, ProblemResponse> {
    check_spelling(query, &NAMES)?;
    let words = parameter(query, "q")?;
    let defaults = SearchParams::default();
    let params = SearchParams {
        language: language(query)?,
        platform: parameter(query, "platform")?.map(|name| platform(&name)).transpose()?,
        sort: parameter(query, "sort")?.map_or(Ok(defaults.sort), |name| sort(&name))?,
        limit: parameter(query, "limit")?.map_or(Ok(defaults.limit), |text| limit(&text))?,
        cursor: parameter(query, "cursor")?.map(|cursor| cursor.into_owned()),
        query: words.as_deref().unwrap_or_default().to_owned(),
        with_segments: false,
        with_unfiltered: false,
    };
    if params.query.chars().count() > QUERY_CHARS_MAX {
        return Err(ProblemResponse::bad("q", format!("it has more than {QUERY_CHARS_MAX} characters")));
    }
    if params.cursor.as_ref().is_some_and(|cursor| cursor.len() > CURSOR_BYTES_MAX) {
        return Err(ProblemResponse::bad("cursor", "it is none of this server"));
    }
    Ok(words.map(|_| params))
}

/// The words of a search whose other parameters may be invalid; empty if they are invalid themselves.
pub(crate) fn search_words(query: &str) -> String {
    let words = parameter(query, "q").ok().flatten().unwrap_or_default();
    if words.chars().count() > QUERY_CHARS_MAX { String::new() } else { words.into_owned() }
}

fn platform(name: &str) -> Result<Platform, ProblemResponse> {
    let names = || Platform::input_names().join(", ");
    Platform::parse(name)
        .ok_or_else(|| ProblemResponse::bad("platform", format!("it must be one of {}", names())))
}

fn sort(name: &str) -> Result<SearchSort, ProblemResponse> {
    SearchSort::from_wire(name)
        .ok_or_else(|| ProblemResponse::bad("sort", "it must be relevance, the default, or date"))
}

fn limit(text: &str) -> Result<u32, ProblemResponse> {
    number(text, 1..=LIMIT_MAX)
        .ok_or_else(|| ProblemResponse::bad("limit", format!("it must be a number from 1 to {LIMIT_MAX}")))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn problem(query: &str) -> String {
        search_params(query).unwrap_err().detail().to_owned()
    }

    #[test]
    fn search_parameters_are_parsed() {
        let params = search_params("q=tide+tables&lang=de&platform=reels&limit=7&sort=date&other=1").unwrap();
        let params = params.unwrap();
        assert_eq!((params.query.as_str(), params.limit, params.sort), ("tide tables", 7, SearchSort::Date));
        assert_eq!(params.platform, Some(Platform::Instagram));
        assert_eq!(params.language.unwrap().as_str(), "de");
        assert_eq!(search_params("").unwrap(), None);
        let defaults = SearchParams { with_segments: false, ..SearchParams::default() };
        assert_eq!(search_params("q=").unwrap().unwrap(), defaults);
    }

    #[test]
    fn search_words_are_kept_beside_invalid_parameters() {
        assert_eq!(search_words("q=tide+tables&lang=english+please&limit=0"), "tide tables");
        for query in ["", "q=a&q=b", "q=%ff", &format!("q={}", "x".repeat(1_001))] {
            assert_eq!(search_words(query), "", "{query}");
        }
    }

    #[test]
    fn search_invalid_parameter_is_named() {
        assert!(problem("q=a&limit=0").contains("limit"));
        assert!(problem("q=a&limit=101").contains("limit"));
        assert!(problem("q=a&limit=%2B1").contains("limit"));
        assert!(problem("q=a&sort=size").contains("sort"));
        assert_eq!(
            problem("q=a&platform=radio"),
            "platform: it must be one of youtube, tiktok, instagram, x"
        );
        for name in Platform::input_names() {
            assert!(search_params(&format!("q=a&platform={name}")).is_ok(), "{name}");
        }
        assert!(problem("q=a&q=b").contains("q"));
        assert_eq!(problem("q=a&Sort=date"), "sort: its name is spelled like this");
        assert!(problem(&format!("q={}", "x".repeat(1_001))).contains("1000 characters"));
        assert!(problem(&format!("q=a&cursor={}", "x".repeat(65))).contains("cursor"));
    }
}
