//! The search index: FTS5 in a separate file, or `tsvector` in the archive's database.
//!
//! Terms are made in the core, so both databases hold the same ones: FTS5 splits texts at spaces, and PostgreSQL
//! receives finished vectors.

mod expression;
mod merge;
mod put;

use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};

use async_trait::async_trait;
use transcript_core::{
    Page, PageRequest, Result, Timestamp,
    ids::Cursor,
    search::{
        ArchiveIndex, CANDIDATES_MAX, Candidate, CandidatePage, CandidateRequest, IndexedTrack, IndexedVideo,
        RebuildState, SearchSort, VOCABULARY_MAX, VocabularyWord,
    },
    transcript::{LanguageTag, TrackSelector},
};

use crate::{
    codec,
    error::{DbResult, corrupt},
    sql::{Database, Row, Statement, sql, values},
};

/// Rows that a query reads. One more than it ranks shows that there are more.
const MATCHES_MAX: i64 = CANDIDATES_MAX as i64 + 1;
/// Scores are numbers of the databases' integer type.
const SCORE_UNIT: f64 = 1e9;
/// Most ordered terms of a row. PostgreSQL stores 256 positions of a word: more would hide phrases with frequent words.
const FILE_ROW_TERMS: usize = 32_000;
const SERVER_ROW_TERMS: usize = 3_000;

const STATE: &str = "SELECT state FROM search_state WHERE only_row = 1";

/// The best transcript of each matching video, and the number of videos and of rows read.
///
/// Parameters: query, after, before, limit, rows to read. The last rows of a file are read first, so that the
/// ranking of a very common word is one of the transcripts that were indexed last; a server reads any.
macro_rules! candidates {
    ($order:literal) => {
        sql! {
            sqlite: concat!("WITH matched AS MATERIALIZED (
                    SELECT rowid AS id, CAST(bm25(terms, 1.0, 4.0, 2.0, 0.5, 0.0) * -1000000000 AS INTEGER) AS score
                    FROM terms WHERE terms MATCH $1 ORDER BY rowid DESC LIMIT $5
                ), found AS MATERIALIZED (
                    SELECT d.video, d.wish, max(m.score) AS score, d.date
                    FROM matched m CROSS JOIN search_documents d
                        ON d.id = (SELECT max(id) FROM search_documents WHERE id <= m.id)
                    WHERE d.date >= $2 AND d.date < $3 GROUP BY d.video
                )
                SELECT video, wish, score, (SELECT count(*) FROM found), read
                FROM (SELECT count(*) AS read FROM matched) r LEFT JOIN found ON TRUE
                ORDER BY ", $order, " LIMIT $4"),
            postgres: concat!("WITH matched AS MATERIALIZED (
                    SELECT video, wish,
                        (ts_rank('{0.3, 0.7, 0.5, 1.0}', terms, $1::TEXT::TSQUERY, 1) * 1000000000)::BIGINT AS score
                    FROM search_terms WHERE terms @@ $1::TEXT::TSQUERY LIMIT $5
                ), best AS MATERIALIZED (
                    SELECT video, wish, max(score) AS score FROM matched GROUP BY video, wish
                ), found AS MATERIALIZED (
                    SELECT DISTINCT ON (d.video) d.video, d.wish, m.score, d.date
                    FROM best m JOIN search_documents d ON d.video = m.video AND d.wish = m.wish
                    WHERE d.date >= $2 AND d.date < $3 ORDER BY d.video, m.score DESC, d.wish
                )
                SELECT video, wish, score, (SELECT count(*) FROM found), read
                FROM (SELECT count(*) AS read FROM matched) r LEFT JOIN found ON TRUE
                ORDER BY ", $order, " LIMIT $4"),
        }
    };
}
const BY_RELEVANCE: Statement = candidates!("score DESC, date DESC, video");
const BY_DATE: Statement = candidates!("date DESC, video");

/// In one row, which is read without a thread switch.
const LANGUAGES: &str = "SELECT coalesce(group_concat(language, ' '), '') FROM search_languages";

const LIST: Statement = sql! {
    // `+`: SQLite would build an index of all documents for each page.
    sqlite: "SELECT d.video, d.wish, d.language, d.date, d.digest
        FROM search_videos v CROSS JOIN search_documents d
            ON d.id BETWEEN v.first_document AND v.last_document AND +d.video = v.video
        WHERE v.video >= $1 AND (v.video, d.wish) > ($1, $2) ORDER BY v.video, d.wish LIMIT $3",
    postgres: "SELECT video, wish, language, date, digest FROM search_documents
        WHERE (video, wish) > ($1, $2) ORDER BY video, wish LIMIT $3",
};

/// Words with the same first letters. PostgreSQL has no list of its words, so a sample of rows is counted there.
const NEAR_WORDS: Statement = sql! {
    sqlite: "SELECT term, doc FROM vocabulary WHERE term >= $1 AND term < $2 LIMIT $3",
    postgres: "SELECT word, ndoc::BIGINT FROM ts_stat(
            'SELECT terms FROM search_terms ORDER BY video DESC LIMIT 500'
        ) WHERE word >= $1 COLLATE \"C\" AND word < $2 COLLATE \"C\" ORDER BY ndoc DESC, word LIMIT $3",
};

/// The search index, in one database. Its forms are `SqliteSearchIndex` and `PostgresSearchIndex`.
#[derive(Debug)]
pub struct SqlSearchIndex<D> {
    pub(crate) database: D,
    /// Videos that were put since parts of a file were last merged.
    unmerged: AtomicUsize,
}

impl<D> SqlSearchIndex<D> {
    pub(crate) fn new(database: D) -> Self {
        Self { database, unmerged: AtomicUsize::default() }
    }
}

/// The first candidates of a request, at most `limit`.
async fn read_candidates<D: Database>(
    database: &D,
    request: &CandidateRequest,
    limit: u32,
) -> Result<Vec<CandidateRow>> {
    let query = request.query.clone().with_months();
    let (after, before) = (query.after, query.before);
    let query = if D::IS_REMOTE { expression::tsquery(&query) } else { expression::fts5(&query) };
    let parameters = values![
        query,
        after.map_or(i64::MIN, Timestamp::as_millis),
        before.map_or(i64::MAX, Timestamp::as_millis),
        limit,
        MATCHES_MAX,
    ];
    let statement = match request.sort {
        SearchSort::Relevance => BY_RELEVANCE,
        SearchSort::Date => BY_DATE,
    };
    database.find(statement, &parameters, CandidateRow::decode).await
}

/// A row of [`BY_RELEVANCE`] or [`BY_DATE`].
struct CandidateRow {
    /// Without a candidate, one row has the numbers alone.
    candidate: Option<Candidate>,
    /// Whether the name of its video is malformed.
    is_left_out: bool,
    /// Number of videos.
    total: u64,
    /// Number of rows that were read.
    read: i64,
}

impl CandidateRow {
    fn decode(row: &mut Row) -> DbResult<Self> {
        let (total, read) = (row.take(3)?, row.take(4)?);
        let none = Self { candidate: None, is_left_out: false, total, read };
        let Some(name) = row.take::<Option<String>>(0)? else { return Ok(none) };
        let Some(video) = codec::listed_video(&name) else { return Ok(Self { is_left_out: true, ..none }) };
        let (selector, score): (String, i64) = (row.take(1)?, row.take(2)?);
        let (selector, score) = (TrackSelector::from_name(&selector), score as f64 / SCORE_UNIT);
        Ok(Self { candidate: Some(Candidate { video, selector, score }), ..none })
    }
}

/// The position of a track in the list, and the track: `None` for a malformed name of a video.
fn decode_track(row: &mut Row) -> DbResult<(String, Option<IndexedTrack>)> {
    let (name, selector): (String, String) = (row.take(0)?, row.take(1)?);
    let position = format!("{name} {selector}");
    let Some(video) = codec::listed_video(&name) else { return Ok((position, None)) };
    let track = IndexedTrack {
        video,
        selector: TrackSelector::from_name(&selector),
        language: LanguageTag::from_canonical(row.take::<String>(2)?),
        date: Timestamp::from_millis(row.take(3)?),
        digest: row.take(4)?,
    };
    Ok((position, Some(track)))
}

#[async_trait]
impl<D: Database> ArchiveIndex for SqlSearchIndex<D> {
    fn row_terms(&self) -> usize {
        if D::IS_REMOTE { SERVER_ROW_TERMS } else { FILE_ROW_TERMS }
    }

    async fn put(
        &self,
        videos: &[IndexedVideo],
        generation: u64,
        state: Option<&RebuildState>,
    ) -> Result<()> {
        let mut is_done = self.database.run(put::PutVideosTx::new(videos, generation, state)?).await?;
        while !is_done {
            is_done = self.database.run(put::PutVideosTx::new(&[], generation, state)?).await?;
        }
        self.unmerged.fetch_add(videos.len(), Relaxed);
        Ok(())
    }

    async fn rebuild_state(&self) -> Result<RebuildState> {
        let decode = |row: &mut Row| {
            let json: String = row.take(0)?;
            Ok(serde_json::from_str(&json).map_err(|_| corrupt("the state of the search index"))?)
        };
        Ok(self.database.find_first(STATE, &values![], decode).await?.unwrap_or_default())
    }

    async fn optimize(&self) -> Result<()> {
        if D::IS_REMOTE || self.unmerged.load(Relaxed) < merge::MERGE_VIDEOS {
            return Ok(());
        }
        let merged = self.database.run(merge::MergeTx).await;
        // After an error it is tried again when further videos were put, not with each call.
        if !matches!(merged, Ok(false)) {
            self.unmerged.store(0, Relaxed);
        }
        merged?;
        Ok(())
    }

    async fn languages(&self) -> Result<Option<Vec<String>>> {
        if D::IS_REMOTE {
            return Ok(None);
        }
        // Each form of a word is looked up in every part of the index.
        let languages = self.database.find_first(LANGUAGES, &values![], |row| row.take::<String>(0)).await?;
        Ok(languages.map(|all| all.split(' ').map(str::to_owned).collect()))
    }

    async fn candidates(&self, request: &CandidateRequest) -> Result<CandidatePage> {
        // From the first one: an offset does not count those that are left out.
        let mut found =
            read_candidates(&self.database, request, request.offset.saturating_add(request.limit)).await?;
        if found.iter().any(|row| row.is_left_out) {
            found = read_candidates(&self.database, request, u32::MAX).await?;
        }
        let left_out = found.iter().filter(|row| row.is_left_out).count() as u64;
        let (total, read) = found.first().map_or((0, 0), |row| (row.total, row.read));
        let items = found.into_iter().filter_map(|row| row.candidate);
        Ok(CandidatePage {
            items: items.skip(request.offset as usize).take(request.limit as usize).collect(),
            total: total.saturating_sub(left_out),
            is_exact: read < MATCHES_MAX,
        })
    }

    async fn list(&self, page: PageRequest) -> Result<Page<IndexedTrack>> {
        let after = page.after.as_ref().map_or("", Cursor::as_str);
        let (video, selector) = after.split_once(' ').unwrap_or((after, ""));
        let row = values![video, selector, codec::one_more(&page)];
        let found = self.database.find(LIST, &row, decode_track).await?;
        let Page { items, next } = Page::cut(found, &page, |(position, _)| position.clone());
        Ok(Page { items: items.into_iter().filter_map(|(_, track)| track).collect(), next })
    }

    async fn near_words(&self, word: &str) -> Result<Vec<VocabularyWord>> {
        let decode = |row: &mut Row| Ok(VocabularyWord { word: row.take(0)?, rows: row.take(1)? });
        let mut found = Vec::new();
        // In a large vocabulary the first two letters must be right. A server counts its sample once, and returns the
        // most frequent words.
        for letters in 1..=2 {
            let beginning: String = word.chars().take(letters).collect();
            let range = values![&beginning, format!("{beginning}{}", char::MAX), VOCABULARY_MAX];
            found = self.database.find(NEAR_WORDS, &range, decode).await?;
            if D::IS_REMOTE || found.len() < VOCABULARY_MAX as usize {
                break;
            }
        }
        Ok(found)
    }
}
