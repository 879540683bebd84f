//! Search in the whole archive.

use std::sync::Arc;

use transcript_core::{
    search::{LIMIT_MAX, SearchMoment, SearchPage, SearchParams, SearchResult, SearchSort},
    transcript::LanguageTag,
    video::{Platform, VideoId},
};

use crate::{
    call::{CallOptions, run},
    error::{Failure, VerbatimError, count},
    transcript::Transcript,
    transcripts::Transcripts,
};

/// Order of the hits of a search.
#[uniffi::remote(Enum)]
pub enum SearchSort {
    /// Best first.
    Relevance,
    /// Newest video first.
    Date,
}

/// Part of a text that matches: a half-open range of Unicode code points.
#[derive(Clone, Copy, Debug, PartialEq, Eq, uniffi::Record)]
pub struct MatchRange {
    /// Number of code points before it.
    pub start: u32,
    /// Number of code points before its end.
    pub end: u32,
}

/// Moment of a video in which words of a query are spoken.
#[derive(Clone, Debug, PartialEq, Eq, uniffi::Record)]
pub struct VideoMoment {
    /// Start in milliseconds.
    pub start_ms: i64,
    /// End in milliseconds.
    pub end_ms: i64,
    /// Text of the transcript at this time, on one line.
    pub text: String,
    /// The matches in the text.
    pub matches: Vec<MatchRange>,
    /// URL of the video at the start of the moment.
    pub url: String,
}

/// Video whose transcript matches.
#[derive(Clone, Debug, PartialEq, uniffi::Record)]
pub struct VideoHit {
    /// The transcript that matches best.
    pub transcript: Transcript,
    /// Score: higher is better. Comparable within one search only.
    pub score: f64,
    /// Up to five moments, best first. Empty if only the title or the channel matches.
    pub moments: Vec<VideoMoment>,
}

/// A page of a search.
#[derive(Clone, Debug, PartialEq, uniffi::Record)]
pub struct VideoSearchPage {
    /// The hits, one for each video.
    pub hits: Vec<VideoHit>,
    /// Number of matching videos.
    pub total: i64,
    /// Whether the total is exact; if not, there are at least as many.
    pub is_total_exact: bool,
    /// The query with its typing errors corrected, if nothing was found and the archive has similar words.
    pub suggestion: Option<String>,
    /// Cursor of the next page; `None` at the end.
    pub next: Option<String>,
}

#[uniffi::export]
impl Transcripts {
    /// Reads a page of a search in the whole archive: the first one, or that at a cursor of the page before.
    ///
    /// All words must occur, in any order and form. `"exact phrase"`, `-not`, `OR`, `prefix*`, `lang:`, `platform:`,
    /// `channel:`, `before:` and `after:` narrow the search; anything malformed is searched as words. A page has at
    /// most `limit` hits, by default 20. The first search of an archive builds its index, which later ones update.
    ///
    /// # Errors
    /// `InvalidInput` if the language is malformed, `limit` is not from 1 to 100, or the cursor is none of this search;
    /// failures of a store.
    #[uniffi::method(default(language = None, platform = None, sort = None, limit = None, cursor = None, call = None))]
    #[expect(clippy::too_many_arguments, reason = "they have names in Kotlin and Swift")]
    pub async fn search_videos_page(
        &self,
        query: String,
        language: Option<String>,
        platform: Option<Platform>,
        sort: Option<SearchSort>,
        limit: Option<u32>,
        cursor: Option<String>,
        call: Option<CallOptions>,
    ) -> Result<VideoSearchPage, VerbatimError> {
        let language = language.as_deref().map(LanguageTag::parse).transpose()?;
        let sort = sort.unwrap_or_default();
        let params = SearchParams { query, language, platform, sort, cursor, ..SearchParams::default() };
        let limit = limit.unwrap_or(params.limit);
        if !(1..=LIMIT_MAX).contains(&limit) {
            return Err(Failure::invalid_input(format!("limit must be from 1 to {LIMIT_MAX}, not {limit}")));
        }
        let (lazy, params) = (Arc::clone(&self.lazy), SearchParams { limit, ..params });
        run(call, async move { Ok(lazy.open().await?.search().search(&params).await?.into()) }).await
    }
}

impl From<SearchPage> for VideoSearchPage {
    fn from(page: SearchPage) -> Self {
        Self {
            hits: page.hits.into_iter().map(VideoHit::from).collect(),
            total: count(page.total.value),
            is_total_exact: page.total.is_exact,
            suggestion: page.suggestion,
            next: page.next,
        }
    }
}

impl From<SearchResult> for VideoHit {
    fn from(hit: SearchResult) -> Self {
        let video = &hit.stored.transcript.video;
        Self {
            moments: hit.moments.into_iter().map(|moment| VideoMoment::new(video, moment)).collect(),
            transcript: Transcript::from_stored(&hit.stored, true),
            score: hit.score,
        }
    }
}

impl VideoMoment {
    fn new(video: &VideoId, moment: SearchMoment) -> Self {
        Self {
            start_ms: count(moment.start_ms),
            end_ms: count(moment.end_ms),
            text: moment.text,
            matches: moment.matches.into_iter().map(|(start, end)| MatchRange { start, end }).collect(),
            url: video.address_at(moment.start_ms / 1_000),
        }
    }
}
