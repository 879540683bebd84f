//! Searches the archive.

use std::{fmt, sync::Arc};

use sha2::{Digest, Sha256};

use super::{
    ArchiveIndex, Candidate, CandidateRequest, IndexQuery, SearchMoment, SearchQuery, SearchSort,
    expression::RunMode,
    moments::moments,
    newest,
    query::text_without_filters,
    suggestion::{suggest, written_words},
    text_match::{SpokenWords, match_text},
    tokens::IndexTokenizers,
};
use crate::{
    archive::{Archive, FindOutcome, StoredTranscript},
    chat::cpu_pool::{CpuPool, SEARCHES_MAX},
    error::{Error, Result},
    time::Clock,
    transcript::{LanguageTag, TrackSelector},
    video::Platform,
};

/// Most hits of a page.
pub const LIMIT_MAX: u32 = 100;
/// Hits of a page unless the request says otherwise.
const LIMIT_DEFAULT: u32 = 20;
/// Candidates that are read for each page beyond its hits: of withdrawn or changed videos.
const EXTRA_CANDIDATES: u32 = 200;
/// Most other tracks of a video that are read for a hit whose text lacks words of the query; and of all videos of a
/// page.
const OTHER_TRACKS_MAX: usize = 8;
const OTHER_TRACKS_OF_PAGE_MAX: usize = 32;
/// How often candidates are read for a page that has no hits yet, if an index checks all of the query.
const ROUNDS_MAX: usize = 4;

/// A search of the archive.
#[derive(Clone, Debug, PartialEq, Eq, smart_default::SmartDefault)]
pub struct SearchParams {
    /// The query, in the language of [`SearchQuery`].
    pub query: String,
    /// Only transcripts in this language, besides the filters of the query.
    pub language: Option<LanguageTag>,
    /// Only videos of this platform, besides the filters of the query.
    pub platform: Option<Platform>,
    /// Order of the hits.
    pub sort: SearchSort,
    /// Most hits: 1 to [`LIMIT_MAX`].
    #[default(LIMIT_DEFAULT)]
    pub limit: u32,
    /// Where the previous page ended.
    pub cursor: Option<String>,
    /// Whether the transcripts of the hits have their segments. Without them, a page takes little memory.
    #[default(true)]
    pub with_segments: bool,
    /// Whether a first page without hits has [`SearchPage::without_filters`], which takes up to two more searches.
    pub with_unfiltered: bool,
}

/// Number of matching videos.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct SearchTotal {
    /// The number.
    pub value: u64,
    /// Whether it is exact. Otherwise at least one of these holds:
    /// - There are more videos than an index ranks.
    /// - Videos of this page or an earlier one were withdrawn or changed after they were indexed. So may be others.
    /// - The index cannot check all of the query, such as a phrase with a single Chinese character.
    /// - The index lacks what was archived; see `verbatim::SearchService`.
    pub is_exact: bool,
}

impl fmt::Display for SearchTotal {
    /// Writes the number of videos in words.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let relation = if self.is_exact { "" } else { "at least " };
        let videos = if self.value == 1 { "video" } else { "videos" };
        write!(f, "{relation}{} {videos}", self.value)
    }
}

/// A page of results.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct SearchPage {
    /// Number of matching videos.
    pub total: SearchTotal,
    /// The hits, one for each video. There may be none before a next page.
    pub hits: Vec<SearchResult>,
    /// Where the next page begins; `None` at the end.
    pub next: Option<String>,
    /// The query with its typing errors corrected, if nothing was found and the corrected query finds a video.
    pub suggestion: Option<String>,
    /// What the query finds without its filters, if nothing was found with them; see
    /// [`SearchParams::with_unfiltered`].
    pub without_filters: Option<UnfilteredSearch>,
}

/// What a search without hits finds without its filters.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct UnfilteredSearch {
    /// The query without its filters.
    pub query: String,
    /// Number of matching videos, at least one.
    pub total: SearchTotal,
}

/// A video that matches.
#[derive(Clone, Debug, PartialEq)]
pub struct SearchResult {
    /// The transcript that matches best, with the metadata of the video; see [`SearchParams::with_segments`].
    pub stored: StoredTranscript,
    /// Selector of the transcript.
    pub selector: TrackSelector,
    /// Score: higher is better. Comparable within one search only.
    pub score: f64,
    /// The best moments, best first. None if only the title or the channel matches.
    pub moments: Vec<SearchMoment>,
}

/// Searches the archive through an index. A clone is a handle to the same parts.
#[derive(Clone, Debug)]
pub struct ArchiveSearch {
    archive: Arc<dyn Archive>,
    index: Arc<dyn ArchiveIndex>,
    clock: Arc<dyn Clock>,
    pool: CpuPool,
    tokenizers: IndexTokenizers,
}

/// Where a page ended, for its cursor.
#[derive(Clone, Copy, Debug)]
struct PageEnd {
    offset: u32,
    mode: RunMode,
    /// How many candidates before it did not match any more.
    dropped: u32,
}

impl PageEnd {
    /// The beginning of the first page.
    fn start(mode: RunMode) -> Self {
        Self { offset: 0, mode, dropped: 0 }
    }
}

impl ArchiveSearch {
    /// A search whose work on long transcripts runs on this runtime.
    pub fn new(
        archive: Arc<dyn Archive>,
        index: Arc<dyn ArchiveIndex>,
        clock: Arc<dyn Clock>,
        runtime: tokio::runtime::Handle,
    ) -> Self {
        let pool = CpuPool::new(runtime, SEARCHES_MAX);
        Self { archive, index, clock, pool, tokenizers: IndexTokenizers::default() }
    }

    /// Finds the videos of the archive whose transcripts match a query.
    ///
    /// Each hit is read from the archive and checked against the query. A query without words and filters has no hits.
    ///
    /// # Errors
    /// [`crate::ErrorKind::Invalid`] if the cursor is none of this search; otherwise errors of the archive and of the
    /// index.
    pub async fn search(&self, params: &SearchParams) -> Result<SearchPage> {
        let Some(mut query) = parse(&params.query, params) else {
            return Ok(SearchPage {
                total: SearchTotal { value: 0, is_exact: true },
                ..SearchPage::default()
            });
        };
        query.indexed_languages = self.index.languages().await?;
        if let Some(cursor) = &params.cursor {
            return self.page(&query, params, decode_cursor(cursor, params)?).await;
        }
        let mut page = self.first_page(&query, params).await?;
        if page.total.value == 0 {
            let suggestion = self.suggestion(&query, params).await;
            page.suggestion = suggestion.unwrap_or_else(|error| {
                tracing::warn!(%error, "search suggestion failed");
                None
            });
        }
        if page.total.value == 0 && params.with_unfiltered {
            page.without_filters = self.unfiltered(&query, params).await.unwrap_or_else(|error| {
                tracing::warn!(%error, "search without filters failed");
                None
            });
        }
        Ok(page)
    }

    /// Reads the first page: in the relaxed mode if the strict one finds nothing.
    async fn first_page(&self, query: &SearchQuery, params: &SearchParams) -> Result<SearchPage> {
        let page = self.page(query, params, PageEnd::start(RunMode::Strict)).await?;
        match page.total.value == 0 && query.has_runs() {
            true => self.page(query, params, PageEnd::start(RunMode::Relaxed)).await,
            false => Ok(page),
        }
    }

    /// The query with its typing errors corrected, if that finds a video.
    async fn suggestion(&self, query: &SearchQuery, params: &SearchParams) -> Result<Option<String>> {
        let found = suggest(self.index.as_ref(), &params.query, query).await?;
        let Some(suggestion) = found else { return Ok(None) };
        let Some(mut corrected) = parse(&suggestion.text, params) else { return Ok(None) };
        corrected.indexed_languages.clone_from(&query.indexed_languages);
        let page = self.first_page(&corrected, &SearchParams { limit: 1, ..params.clone() }).await?;
        let Some(hit) = page.hits.first() else { return Ok(None) };
        let title = hit.stored.transcript.title.as_deref().unwrap_or_default();
        Ok(Some(suggestion.as_written(&written_words(&hit.moments, title))))
    }

    /// What the words of a query find without its filters, if it has both.
    async fn unfiltered(
        &self,
        query: &SearchQuery,
        params: &SearchParams,
    ) -> Result<Option<UnfilteredSearch>> {
        if query.groups.is_empty() || !query.has_filters() {
            return Ok(None);
        }
        let params = SearchParams {
            query: text_without_filters(&params.query),
            sort: params.sort,
            limit: 1,
            with_segments: false,
            ..SearchParams::default()
        };
        let Some(mut words) = parse(&params.query, &params) else { return Ok(None) };
        words.indexed_languages.clone_from(&query.indexed_languages);
        let page = self.first_page(&words, &params).await?;
        let is_found = !page.hits.is_empty();
        Ok(is_found.then_some(UnfilteredSearch { query: params.query, total: page.total }))
    }

    /// Reads candidates until the page is full.
    async fn page(&self, query: &SearchQuery, params: &SearchParams, start: PageEnd) -> Result<SearchPage> {
        let Some(compiled) = query.compile(start.mode).map(Arc::new) else {
            return Ok(SearchPage::default());
        };
        let limit = params.limit.clamp(1, LIMIT_MAX);
        let mut request = CandidateRequest {
            query: compiled.for_index(),
            sort: params.sort,
            offset: start.offset,
            limit: limit.saturating_add(EXTRA_CANDIDATES),
        };
        let is_checked_by_index = request.query == *compiled;
        // Each candidate may be a long transcript that does not match: the caller decides whether to read on.
        let rounds = if is_checked_by_index { ROUNDS_MAX } else { 1 };
        let (mut page, mut dropped) = (SearchPage::default(), start.dropped);
        let mut other_tracks = OTHER_TRACKS_OF_PAGE_MAX;
        for _ in 0..rounds {
            let found = newest::candidates(self.index.as_ref(), &request, self.clock.now()).await?;
            let (count, mut read) = (found.items.len(), 0_usize);
            for candidate in found.items {
                if page.hits.len() >= limit as usize {
                    break;
                }
                read += 1;
                match self.check(&compiled, candidate, params.with_segments, &mut other_tracks).await? {
                    Some(hit) => page.hits.push(hit),
                    None => dropped = dropped.saturating_add(1),
                }
            }
            request.offset = request.offset.saturating_add(u32::try_from(read).unwrap_or(u32::MAX));
            let ranked = found.total.min(u64::from(super::CANDIDATES_MAX));
            let has_more = read > 0 && (read < count || u64::from(request.offset) < ranked);
            // What earlier pages dropped may have left the index since.
            let is_certain = if has_more { dropped == 0 && is_checked_by_index } else { start.dropped == 0 };
            page.total = SearchTotal {
                value: found.total.saturating_sub(u64::from(dropped)),
                is_exact: found.is_exact && is_certain,
            };
            let end = PageEnd { offset: request.offset, dropped, ..start };
            page.next = has_more.then(|| encode_cursor(end, params));
            if !page.hits.is_empty() || !has_more {
                break;
            }
        }
        Ok(page)
    }

    /// Reads a candidate from the archive; `None` if it does not match any more.
    ///
    /// The tracks of a video share its title, and an index may prefer one whose text lacks words of the title. A track
    /// with more words of the query in its text is shown instead, of as many as `other_tracks` allows.
    async fn check(
        &self,
        query: &Arc<IndexQuery>,
        candidate: Candidate,
        with_segments: bool,
        other_tracks: &mut usize,
    ) -> Result<Option<SearchResult>> {
        let found = self.check_track(query, candidate.clone(), with_segments).await?;
        let Some((mut best, spoken)) = found else { return Ok(None) };
        let is_only = best.stored.details.tracks.len() == 1;
        if spoken.groups >= query.word_groups || is_only || *other_tracks == 0 {
            return Ok(Some(best));
        }
        // Of others with as many words, the one that the index prefers remains.
        let mut most = SpokenWords { places: usize::MAX, ..spoken };
        for selector in self.other_selectors(&candidate, *other_tracks).await? {
            *other_tracks -= 1;
            let other = Candidate { selector, ..candidate.clone() };
            let Some((hit, spoken)) = self.check_track(query, other, with_segments).await? else { continue };
            if spoken > most {
                (best, most) = (hit, spoken);
            }
            if most.groups >= query.word_groups {
                break;
            }
        }
        Ok(Some(best))
    }

    /// The selectors of other tracks of a candidate's video.
    async fn other_selectors(&self, candidate: &Candidate, most: usize) -> Result<Vec<TrackSelector>> {
        let most = most.min(OTHER_TRACKS_MAX);
        let tracks = match self.archive.tracks(&candidate.video).await {
            Err(error) if error.is_unreadable() => Vec::new(),
            tracks => tracks?,
        };
        let others = tracks.into_iter().filter(|other| !other.selectors.contains(&candidate.selector));
        Ok(others.filter_map(|other| other.selectors.into_iter().next()).take(most).collect())
    }

    /// Reads a track from the archive, with the words of the query in its text; `None` if it does not match.
    async fn check_track(
        &self,
        query: &Arc<IndexQuery>,
        candidate: Candidate,
        with_segments: bool,
    ) -> Result<Option<(SearchResult, SpokenWords)>> {
        // Short transcripts are matched inline: a page of them takes as long as a long one.
        tokio::task::yield_now().await;
        let Candidate { video, selector, score } = candidate;
        let mut stored = match self.archive.find(&video, &selector, self.clock.now()).await {
            Ok(FindOutcome::Transcript(stored)) => stored,
            Ok(FindOutcome::Absence(_) | FindOutcome::Withdrawn | FindOutcome::NotFound) => return Ok(None),
            Err(error) if error.is_unreadable() => return Ok(None),
            Err(error) => return Err(error),
        };
        let bytes = stored.transcript.text_bytes();
        let (query, tokenizers) = (Arc::clone(query), self.tokenizers.clone());
        let work = move || {
            let found = match_text(&query, &stored, &tokenizers)?;
            let moments = moments(&stored.transcript.segments, &found);
            if !with_segments {
                stored.transcript = Arc::new(stored.transcript.without_segments());
            }
            Some((SearchResult { stored, selector, score, moments }, found.spoken()))
        };
        self.pool.work(bytes, work).await
    }
}

/// A query with the filters of its search; `None` if its text has no word and no filter.
fn parse(text: &str, params: &SearchParams) -> Option<SearchQuery> {
    let mut query = SearchQuery::parse_parts(text);
    if query.is_empty() && query.excluded.is_empty() {
        return None;
    }
    query.filters.languages.extend(params.language.clone());
    query.filters.platforms.extend(params.platform);
    query.search_excluded();
    Some(query)
}

/// A number that cursors of this search share.
fn search_number(params: &SearchParams) -> u32 {
    let mut hash = Sha256::new();
    let language = params.language.as_ref().map_or("", LanguageTag::as_str);
    let platform = params.platform.map_or("", Platform::as_str);
    for text in [params.query.as_str(), language, platform, params.sort.as_str()] {
        hash.update((text.len() as u64).to_be_bytes());
        hash.update(text);
    }
    hash.finalize().iter().take(4).fold(0, |number, byte| number << 8 | u32::from(*byte))
}

fn encode_cursor(end: PageEnd, params: &SearchParams) -> String {
    let mode = if end.mode == RunMode::Relaxed { 'r' } else { 's' };
    format!("{mode}{:08x}{:x}.{:x}", search_number(params), end.offset, end.dropped)
}

fn decode_cursor(cursor: &str, params: &SearchParams) -> Result<PageEnd> {
    let decoded = || {
        let mode = match cursor.get(..1)? {
            "s" => RunMode::Strict,
            "r" => RunMode::Relaxed,
            _ => return None,
        };
        let number = u32::from_str_radix(cursor.get(1..9)?, 16).ok()?;
        let (offset, dropped) = cursor.get(9..)?.split_once('.')?;
        let offset = u32::from_str_radix(offset, 16).ok()?;
        let dropped = u32::from_str_radix(dropped, 16).ok()?;
        (number == search_number(params)).then_some(PageEnd { offset, mode, dropped })
    };
    decoded().ok_or_else(|| {
        Error::invalid("cursor: it belongs to another search: use nextCursor of the previous page unchanged")
    })
}
