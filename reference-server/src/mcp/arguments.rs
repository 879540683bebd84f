//! What the tools take. An argument that a tool does not know is refused: whoever writes it relies on it.

use serde::{Deserialize, de::DeserializeOwned};
use serde_json::{Map, Value};

use super::{
    cursor::Cursor,
    source::{No, Wanted},
};

/// How many characters of a transcript a page has where nothing is said: some five thousand tokens of English.
pub(super) const PAGE_CHARS: usize = 20_000;
/// The smallest page.
pub(super) const PAGE_CHARS_MIN: usize = 500;
/// The largest page.
pub(super) const PAGE_CHARS_MAX: usize = 100_000;
/// How many passages a search returns where nothing is said.
pub(super) const HITS: usize = 10;
/// The most that it returns.
pub(super) const HITS_MAX: usize = 50;
/// The longest query, in bytes.
const QUERY_MAX: usize = 1_000;
/// How much is said of arguments that cannot be read, in characters.
const TOLD_MAX: usize = 300;

/// Arguments as a tool's own.
pub(super) fn read<T: DeserializeOwned>(given: Map<String, Value>) -> Result<T, No> {
    serde_json::from_value(Value::Object(given)).map_err(|error| {
        let told: String = error.to_string().chars().take(TOLD_MAX).collect();
        No::bad(format!("arguments: {told}"))
    })
}

/// `get_transcript`
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct GetTranscript {
    video: String,
    lang: Option<String>,
    pub(super) timestamps: Option<bool>,
    cursor: Option<String>,
    max_chars: Option<u64>,
}

impl GetTranscript {
    /// The transcript that is wanted.
    pub(super) fn wanted(&self, may_fetch: bool) -> Result<Wanted, No> {
        Ok(Wanted { may_fetch, ..Wanted::of(&self.video, self.lang.as_deref())? })
    }

    /// Where the page begins; none: at the beginning.
    pub(super) fn cursor(&self) -> Result<Option<Cursor>, No> {
        let cursor = self.cursor.as_deref().map(str::trim).filter(|cursor| !cursor.is_empty());
        let bad = || No::bad("cursor: it is none that get_transcript gave: leave it out to begin anew");
        cursor.map(|text| Cursor::parse(text).ok_or_else(bad)).transpose()
    }

    /// The most characters of the page.
    pub(super) fn max_chars(&self) -> Result<usize, No> {
        within("max_chars", self.max_chars, PAGE_CHARS, PAGE_CHARS_MIN, PAGE_CHARS_MAX)
    }
}

/// `list_languages`
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct ListLanguages {
    pub(super) video: String,
}

/// `ask_video`
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct AskVideo {
    pub(super) video: String,
    pub(super) question: String,
}

/// `search_transcript`
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct SearchTranscript {
    pub(super) video: String,
    pub(super) query: String,
    pub(super) lang: Option<String>,
    limit: Option<u64>,
}

impl SearchTranscript {
    /// The most passages; also says when the query is too long.
    pub(super) fn limit(&self) -> Result<usize, No> {
        if self.query.len() > QUERY_MAX {
            return Err(No::bad(format!("query: it has more than {QUERY_MAX} bytes: give a few words")));
        }
        within("limit", self.limit, HITS, 1, HITS_MAX)
    }
}

fn within(name: &str, given: Option<u64>, usual: usize, least: usize, most: usize) -> Result<usize, No> {
    let Some(given) = given else { return Ok(usual) };
    let fits = usize::try_from(given).ok().filter(|given| (least..=most).contains(given));
    fits.ok_or_else(|| No::bad(format!("{name}: it must be from {least} to {most}")))
}
