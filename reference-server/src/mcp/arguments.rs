//! Arguments of the tools. Unknown arguments are rejected, because the caller relies on them.

use serde::{Deserialize, Deserializer, de::DeserializeOwned};
use serde_json::{Map, Number, Value};
use transcript_core::{
    accounts::jobs::ResultsPage,
    archive::view,
    chat::WordQuery,
    search::{QUERY_CHARS_MAX, SearchQuery},
    video::{LinkError, VideoList},
    wire::v1::JobRequest,
};

use super::{cursor::PassageCursor, error::ToolError, transcript::TranscriptQuery};

/// Default size of a transcript page, in characters.
pub(super) const PAGE_CHARS: usize = view::PAGE_CHARS as usize;
/// Minimum size of a page.
pub(super) const PAGE_CHARS_MIN: usize = 500;
/// Maximum size of a page.
pub(super) const PAGE_CHARS_MAX: usize = 100_000;
/// Default number of passages that a search returns.
pub(super) const HITS: usize = 10;
/// Maximum number of passages that a search returns.
pub(super) const HITS_MAX: usize = 50;
/// Default number of videos of a list.
pub(super) const LISTED: usize = 100;
/// Maximum number of videos of a list.
pub(super) const LISTED_MAX: usize = 500;
/// Default number of items of a job in a result.
pub(super) const ITEMS: usize = 10;
/// Maximum number of items of a job in a result.
pub(super) const ITEMS_MAX: usize = 50;
/// Default size of the transcript of an item, in characters.
pub(super) const EXCERPT_CHARS: usize = 1_000;
/// Maximum size of the transcript of an item. All items of a result together are at most as large as a page.
pub(super) const EXCERPT_CHARS_MAX: usize = 10_000;
/// Limit of an argument error message, in characters.
const ERROR_CHARS_MAX: usize = 300;

/// Deserializes the arguments of a tool.
pub(super) fn read<T: DeserializeOwned>(value: Map<String, Value>) -> Result<T, ToolError> {
    serde_json::from_value(Value::Object(value)).map_err(|error| {
        let message: String = error.to_string().chars().take(ERROR_CHARS_MAX).collect();
        ToolError::invalid(format!("arguments: {message}"))
    })
}

/// Deserializes an optional text: models send empty strings for optional arguments.
fn optional_text<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<String>, D::Error> {
    let text = Option::<String>::deserialize(deserializer)?;
    Ok(text.map(|text| text.trim().to_owned()).filter(|text| !text.is_empty()))
}

/// Checks the types of arguments against the schema of a tool, so that the error names the argument.
///
/// What the schema does not describe is left to [`read`], and null counts as absent. A whole number becomes an integer.
pub(super) fn check_types(
    schema: &Map<String, Value>,
    arguments: &mut Map<String, Value>,
) -> Result<(), ToolError> {
    let properties = schema.get("properties").and_then(Value::as_object);
    for (name, value) in arguments {
        let described = properties.and_then(|all| all.get(name)?.get("type")?.as_str());
        if let Some(number) = value.as_number().and_then(whole).filter(|_| described == Some("integer")) {
            *value = number.into();
        }
        let (fits, expected) = match described {
            Some("string") => (value.is_string(), "a text"),
            Some("boolean") => (value.is_boolean(), "true or false"),
            Some("array") => (value.is_array(), "a list"),
            Some("integer") => (value.is_u64(), "a whole number that is not negative"),
            _ => continue,
        };
        if !fits && !value.is_null() {
            return Err(ToolError::invalid(format!("{name}: it must be {expected}")));
        }
    }
    Ok(())
}

/// The value of a whole number. JSON Schema counts `500.0` as one, and some models send it.
fn whole(number: &Number) -> Option<u64> {
    let whole = number.as_f64().filter(|value| *value >= 0.0 && value.fract() == 0.0);
    // The conversion cuts a larger value to the largest of the type, which no argument allows.
    number.as_u64().or_else(|| whole.map(|value| value as u64))
}

/// Arguments of `get_transcript`.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct GetTranscriptArgs {
    video: String,
    #[serde(default, deserialize_with = "optional_text")]
    lang: Option<String>,
    pub(super) timestamps: Option<bool>,
    #[serde(default, deserialize_with = "optional_text")]
    cursor: Option<String>,
    max_chars: Option<u64>,
}

impl GetTranscriptArgs {
    /// The requested transcript.
    pub(super) fn query(&self, may_fetch: bool) -> Result<TranscriptQuery, ToolError> {
        TranscriptQuery::new(&self.video, self.lang.as_deref(), may_fetch)
    }

    /// Start of the page; `None` for the start of the transcript.
    pub(super) fn cursor(&self) -> Result<Option<PassageCursor>, ToolError> {
        let bad = || {
            ToolError::invalid("cursor: not a cursor of get_transcript: omit it to start at the beginning")
        };
        self.cursor.as_deref().map(|text| PassageCursor::parse(text).ok_or_else(bad)).transpose()
    }

    /// Limit of the page, in characters.
    pub(super) fn max_chars(&self) -> Result<usize, ToolError> {
        within("max_chars", self.max_chars, PAGE_CHARS, PAGE_CHARS_MIN, PAGE_CHARS_MAX)
    }
}

/// Arguments of `list_languages`.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct ListLanguagesArgs {
    pub(super) video: String,
}

/// Arguments of `ask_video`.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct AskVideoArgs {
    pub(super) video: String,
    pub(super) question: String,
    #[serde(default, deserialize_with = "optional_text")]
    pub(super) idempotency_key: Option<String>,
}

/// Maximum number of hits of a search; an error if its query is too long.
fn search_limit(query: &str, limit: Option<u64>) -> Result<usize, ToolError> {
    if query.chars().count() > QUERY_CHARS_MAX {
        let message = format!("query: it has more than {QUERY_CHARS_MAX} characters: use a few words");
        return Err(ToolError::invalid(message));
    }
    within("limit", limit, HITS, 1, HITS_MAX)
}

fn no_word() -> ToolError {
    ToolError::invalid("query: it has no word: enter at least one word")
}

/// Arguments of `search_transcript`.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct SearchTranscriptArgs {
    pub(super) video: String,
    pub(super) query: String,
    #[serde(default, deserialize_with = "optional_text")]
    pub(super) lang: Option<String>,
    limit: Option<u64>,
}

impl SearchTranscriptArgs {
    /// Maximum number of passages; an error if the query is too long or has no word.
    pub(super) fn limit(&self) -> Result<usize, ToolError> {
        let limit = search_limit(&self.query, self.limit)?;
        // The search refuses it too, but after the transcript is paid for.
        match WordQuery::new(&self.query) {
            Some(_) => Ok(limit),
            None => Err(no_word()),
        }
    }
}

/// Arguments of `search_archive`.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct SearchArchiveArgs {
    pub(super) query: String,
    #[serde(default, deserialize_with = "optional_text")]
    pub(super) lang: Option<String>,
    #[serde(default, deserialize_with = "optional_text")]
    pub(super) cursor: Option<String>,
    limit: Option<u64>,
}

impl SearchArchiveArgs {
    /// Maximum number of videos; an error if the query is too long, or has neither a word nor a filter itself.
    pub(super) fn limit(&self) -> Result<usize, ToolError> {
        let limit = search_limit(&self.query, self.limit)?;
        match SearchQuery::parse(&self.query).is_empty() {
            false => Ok(limit),
            true => Err(no_word()),
        }
    }
}

/// Arguments of `list_videos`.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct ListVideosArgs {
    #[serde(default, deserialize_with = "optional_text")]
    list: Option<String>,
    #[serde(default, deserialize_with = "optional_text")]
    search: Option<String>,
    limit: Option<u64>,
}

impl ListVideosArgs {
    /// The list: that of a link, or a search.
    pub(super) fn list(&self) -> Result<VideoList, ToolError> {
        let invalid = |name: &str, error: LinkError| ToolError::invalid(format!("{name}: {error}"));
        match (&self.list, &self.search) {
            (Some(link), None) => VideoList::parse(link).map_err(|error| invalid("list", error)),
            (None, Some(words)) => VideoList::search(words).map_err(|error| invalid("search", error)),
            _ => Err(ToolError::invalid("list: name exactly one of list and search")),
        }
    }

    /// Maximum number of videos.
    pub(super) fn limit(&self) -> Result<usize, ToolError> {
        within("limit", self.limit, LISTED, 1, LISTED_MAX)
    }
}

/// Arguments of `start_job`.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct StartJobArgs {
    videos: Option<Vec<String>>,
    #[serde(default, deserialize_with = "optional_text")]
    playlist: Option<String>,
    #[serde(default, deserialize_with = "optional_text")]
    channel: Option<String>,
    #[serde(default, deserialize_with = "optional_text")]
    search: Option<String>,
    limit: Option<u64>,
    #[serde(default, deserialize_with = "optional_text")]
    since: Option<String>,
    #[serde(default, deserialize_with = "optional_text")]
    lang: Option<String>,
    #[serde(default, deserialize_with = "optional_text")]
    idempotency_key: Option<String>,
}

impl StartJobArgs {
    /// The job and its idempotency key; an error unless exactly one argument names its videos.
    pub(super) fn into_request(self) -> Result<(JobRequest, Option<String>), ToolError> {
        let Self { videos, playlist, channel, search, limit, since, lang, idempotency_key } = self;
        let urls = videos.filter(|videos| !videos.is_empty());
        let sources = [urls.is_some(), playlist.is_some(), channel.is_some(), search.is_some()];
        if sources.into_iter().filter(|is_named| *is_named).count() != 1 {
            let message = "videos: name exactly one of videos, playlist, channel and search";
            return Err(ToolError::invalid(message));
        }
        let request = JobRequest { urls, playlist, channel, search, limit, since, lang, callback_url: None };
        Ok((request, idempotency_key))
    }
}

/// Arguments of `job_status`.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct JobStatusArgs {
    pub(super) job: String,
}

/// Arguments of `job_results`.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct JobResultsArgs {
    pub(super) job: String,
    #[serde(default, deserialize_with = "optional_text")]
    cursor: Option<String>,
    limit: Option<u64>,
    max_chars: Option<u64>,
}

impl JobResultsArgs {
    /// Position of the first item.
    pub(super) fn cursor(&self) -> Result<u64, ToolError> {
        let bad =
            || ToolError::invalid("cursor: not a cursor of job_results: omit it to start at the beginning");
        self.cursor.as_deref().map_or(Ok(0), |cursor| ResultsPage::position(cursor).map_err(|_| bad()))
    }

    /// Maximum number of items.
    pub(super) fn limit(&self) -> Result<u32, ToolError> {
        let limit = within("limit", self.limit, ITEMS, 1, ITEMS_MAX)?;
        Ok(u32::try_from(limit).unwrap_or(u32::MAX))
    }

    /// Maximum number of characters of each transcript.
    pub(super) fn max_chars(&self) -> Result<usize, ToolError> {
        let items = within("limit", self.limit, ITEMS, 1, ITEMS_MAX)?;
        let max_chars = within("max_chars", self.max_chars, EXCERPT_CHARS, 0, EXCERPT_CHARS_MAX)?;
        if items.saturating_mul(max_chars) > PAGE_CHARS_MAX {
            let message =
                format!("max_chars: with limit {items} it must be at most {}", PAGE_CHARS_MAX / items);
            return Err(ToolError::invalid(message));
        }
        Ok(max_chars)
    }
}

fn within(
    name: &str,
    value: Option<u64>,
    usual: usize,
    least: usize,
    most: usize,
) -> Result<usize, ToolError> {
    let Some(value) = value else { return Ok(usual) };
    let fits = usize::try_from(value).ok().filter(|value| (least..=most).contains(value));
    fits.ok_or_else(|| ToolError::invalid(format!("{name}: it must be from {least} to {most}")))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn query_limit_counts_characters() {
        for (count, is_valid) in [(QUERY_CHARS_MAX, true), (QUERY_CHARS_MAX + 1, false)] {
            let query = "字".repeat(count);
            let archive = json!({ "query": query }).as_object().cloned().unwrap();
            let limit = read::<SearchArchiveArgs>(archive).unwrap().limit();
            assert_eq!(limit.is_ok(), is_valid, "{count}: {limit:?}");
            let transcript = json!({ "video": "a", "query": query }).as_object().cloned().unwrap();
            let limit = read::<SearchTranscriptArgs>(transcript).unwrap().limit();
            assert_eq!(limit.is_ok(), is_valid, "{count}: {limit:?}");
        }
    }

    #[test]
    fn archive_query_needs_word_or_filter() {
        for (query, is_valid) in
            [("sea", true), ("-sea", true), ("lang:de", true), ("😂", false), ("", false)]
        {
            for lang in [None, Some("de")] {
                let archive = json!({ "query": query, "lang": lang }).as_object().cloned().unwrap();
                let limit = read::<SearchArchiveArgs>(archive).unwrap().limit();
                assert_eq!(limit.is_ok(), is_valid, "{query:?} {lang:?}: {limit:?}");
            }
        }
    }
}
