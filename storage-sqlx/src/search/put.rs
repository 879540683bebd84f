//! Writes documents.

use std::collections::BTreeMap;

use transcript_core::{
    Result,
    search::{IndexedVideo, RebuildState, SearchDocument, TermRow},
};

use super::expression::lexeme;
use crate::{
    codec,
    error::DbResult,
    sql::{Session, Statement, WriteTx, sql, values},
};

const LOCK_STATE: Statement = sql! {
    sqlite: "SELECT generation, state FROM search_state WHERE only_row = 1",
    postgres: "SELECT generation, state FROM search_state WHERE only_row = 1 FOR SHARE",
};
const PUT_STATE: &str = "INSERT INTO search_state (only_row, generation, state) VALUES (1, $1, $2)
    ON CONFLICT (only_row) DO UPDATE SET generation = excluded.generation, state = excluded.state
    WHERE search_state.generation <= excluded.generation";

/// Skips a video that the index has in this generation with a higher change.
const PUT_VIDEO: &str = "INSERT INTO search_videos (video, change, generation) VALUES ($1, $2, $3)
    ON CONFLICT (video) DO UPDATE SET change = excluded.change, generation = excluded.generation
    WHERE search_videos.generation <> excluded.generation OR search_videos.change <= excluded.change";
/// The documents of a video in a file. The ids in a damaged file may be those of another video.
const DOCUMENTS: &str = "SELECT d.id, d.term_rows FROM search_videos v CROSS JOIN search_documents d
        ON d.id BETWEEN v.first_document AND v.last_document
    WHERE v.video = $1 AND d.video = $1";
const DELETE_TERMS: &str = "DELETE FROM terms WHERE rowid = $1";
const DELETE_DOCUMENTS: Statement = sql! {
    sqlite: "DELETE FROM search_documents WHERE video = $1
        AND id BETWEEN (SELECT first_document FROM search_videos WHERE video = $1)
            AND (SELECT last_document FROM search_videos WHERE video = $1)",
    postgres: "DELETE FROM search_documents WHERE video = $1",
};
/// Stores which documents of a file a video has: their ids follow each other.
const SET_DOCUMENTS: &str =
    "UPDATE search_videos SET first_document = $2, last_document = $3 WHERE video = $1";
const PUT_DOCUMENT: Statement = sql! {
    sqlite: "INSERT INTO search_documents (id, video, wish, language, date, digest, term_rows)
        VALUES (coalesce(
                (SELECT id + min(max(term_rows, 1), 64) FROM search_documents ORDER BY id DESC LIMIT 1), 1),
            $1, $2, $3, $4, $5, $6)
        RETURNING id",
    postgres: "INSERT INTO search_documents (video, wish, language, date, digest)
        SELECT $1, $2, $3, $4, $5 WHERE $6 > 0 RETURNING 0::BIGINT",
};
const PUT_TERMS: Statement = sql! {
    sqlite: "INSERT INTO terms (rowid, words, title, channel, others, facets) VALUES ($1, $2, $3, $4, $5, $6)",
    postgres: "INSERT INTO search_terms (video, wish, number, terms) VALUES ($1, $2, $3, $4::TEXT::TSVECTOR)",
};
const PUT_LANGUAGE: &str =
    "INSERT INTO search_languages (language) VALUES ($1) ON CONFLICT (language) DO NOTHING";
/// Videos that a build did not find, a few at a time.
const STALE_VIDEOS: &str = "SELECT video FROM search_videos WHERE generation < $1 ORDER BY video LIMIT $2";
/// The documents of stale videos up to one; those of a file are deleted one by one, with their terms.
const DELETE_STALE_DOCUMENTS: &str = "DELETE FROM search_documents WHERE video IN
    (SELECT video FROM search_videos WHERE generation < $1 AND video <= $2)";
const DELETE_STALE_VIDEOS: &str = "DELETE FROM search_videos WHERE generation < $1 AND video <= $2";
/// Most stale videos that a transaction deletes: a server ends it after some seconds.
const STALE_MAX: i64 = 500;

/// Most rows of a document, also in `PUT_DOCUMENT`: the number in a damaged file may be any.
const ROWS_MAX: i64 = transcript_core::search::ROWS_MAX as i64;

/// Replaces the documents of some videos.
#[derive(Debug)]
pub(super) struct PutVideosTx {
    videos: Vec<(String, i64, Vec<SearchDocument>)>,
    generation: i64,
    state: Option<(String, bool)>,
}

impl PutVideosTx {
    pub(super) fn new(
        videos: &[IndexedVideo],
        generation: u64,
        state: Option<&RebuildState>,
    ) -> Result<Self> {
        let row = |video: &IndexedVideo| {
            Ok((video.video.to_string(), codec::column(video.change)?, video.documents.clone()))
        };
        let state =
            state.map(|state| Ok::<_, transcript_core::Error>((codec::json(state)?, state.is_complete)));
        let mut videos = videos.iter().map(row).collect::<Result<Vec<_>>>()?;
        // Two indexers must lock the rows in one order.
        videos.sort_by(|one, other| one.0.cmp(&other.0));
        Ok(Self { videos, generation: codec::column(generation)?, state: state.transpose()? })
    }

    /// Puts all videos but those of which the index has a higher change.
    async fn put_videos<S: Session>(&self, db: &mut S) -> DbResult<()> {
        let mut accepted = Vec::new();
        for (video, change, documents) in &self.videos {
            if db.execute(PUT_VIDEO, &values![video, *change, self.generation]).await? > 0 {
                accepted.push((video.as_str(), documents));
            }
        }
        let videos: Vec<&str> = accepted.iter().map(|(video, _)| *video).collect();
        delete_documents(db, &videos).await?;
        // The terms last: FTS5 writes a part of the index before a statement that SQLite may have to undo alone.
        let mut put = Vec::new();
        for (video, documents) in accepted {
            let mut ids = Vec::new();
            for document in documents {
                let id = put_document(db, video, document).await?;
                ids.push(id);
                put.push((video, id, document));
            }
            if !S::IS_REMOTE {
                let ids = values![video, ids.first().copied(), ids.last().copied()];
                db.execute(SET_DOCUMENTS, &ids).await?;
            }
        }
        for (video, id, document) in put {
            put_terms(db, video, id, document).await?;
        }
        Ok(())
    }

    /// Deletes some of what the build did not find; returns whether that was all.
    async fn delete_stale<S: Session>(&self, db: &mut S) -> DbResult<bool> {
        let stale = values![self.generation, STALE_MAX];
        let videos: Vec<String> = db.find(STALE_VIDEOS, &stale, |row| row.take(0)).await?;
        let is_all = (videos.len() as u64) < STALE_MAX.unsigned_abs();
        let Some(last) = videos.last() else { return Ok(is_all) };
        if !S::IS_REMOTE {
            let videos: Vec<&str> = videos.iter().map(String::as_str).collect();
            delete_documents(db, &videos).await?;
        }
        let stale = values![self.generation, last];
        if S::IS_REMOTE {
            db.execute(DELETE_STALE_DOCUMENTS, &stale).await?;
        }
        db.execute(DELETE_STALE_VIDEOS, &stale).await?;
        Ok(is_all)
    }
}

/// Puts a document without its terms; returns its id in a file.
async fn put_document<S: Session>(db: &mut S, video: &str, document: &SearchDocument) -> DbResult<i64> {
    let row = values![
        video,
        document.selector.as_str(),
        document.language.as_str(),
        document.date.as_millis(),
        &document.digest,
        codec::column(document.rows.len() as u64)?.min(ROWS_MAX),
    ];
    let id: i64 = db.only_row(PUT_DOCUMENT, &row).await?.take(0)?;
    if !S::IS_REMOTE {
        db.execute(PUT_LANGUAGE, &values![document.language.primary()]).await?;
    }
    Ok(id)
}

async fn put_terms<S: Session>(db: &mut S, video: &str, id: i64, document: &SearchDocument) -> DbResult<()> {
    for (number, row) in (0..ROWS_MAX).zip(&document.rows) {
        if S::IS_REMOTE {
            let selector = document.selector.as_str();
            db.execute(PUT_TERMS, &values![video, selector, number, tsvector(row)]).await?;
        } else {
            let TermRow { title, channel, words, extras, others, facets } = row;
            // The stems first: each has one position, of which the first 126 take one byte instead of two.
            let (rowid, words) = (id.saturating_add(number), format!("{extras} {words}"));
            db.execute(PUT_TERMS, &values![rowid, words, title, channel, others, facets]).await?;
        }
    }
    Ok(())
}

/// Deletes the documents of videos.
///
/// The rows of a file are deleted in order, and before any is put: FTS5 writes a part of the index before each change
/// of a lower row than the last one.
async fn delete_documents<S: Session>(db: &mut S, videos: &[&str]) -> DbResult<()> {
    let mut ids: Vec<i64> = Vec::new();
    for video in videos {
        if !S::IS_REMOTE {
            for mut row in db.rows(DOCUMENTS, &values![*video]).await? {
                let (id, rows): (i64, i64) = (row.take(0)?, row.take(1)?);
                ids.extend(id..id.saturating_add(rows.min(ROWS_MAX)));
            }
        }
        db.execute(DELETE_DOCUMENTS, &values![*video]).await?;
    }
    ids.sort_unstable();
    for id in ids {
        db.execute(DELETE_TERMS, &values![id]).await?;
    }
    Ok(())
}

impl WriteTx for PutVideosTx {
    /// Whether the put is done. Otherwise more is to be deleted before the state is stored.
    type Outcome = bool;

    async fn run<S: Session>(&self, db: &mut S) -> DbResult<bool> {
        let (generation, known_state): (i64, String) = match db.row(LOCK_STATE, &values![]).await? {
            Some(mut row) => (row.take(0)?, row.take(1)?),
            None => (0, String::new()),
        };
        if generation > self.generation {
            return Ok(true);
        }
        let was_complete = generation == self.generation
            && serde_json::from_str::<RebuildState>(&known_state).is_ok_and(|known| known.is_complete);
        self.put_videos(db).await?;
        if let Some((state, is_complete)) = &self.state {
            // Only the end of a build has something to delete.
            if *is_complete && !was_complete && !self.delete_stale(db).await? {
                return Ok(false);
            }
            db.execute(PUT_STATE, &values![self.generation, state]).await?;
        }
        Ok(true)
    }
}

/// The terms of a row as a `tsvector`. Title, channel and text are apart, so that no phrase spans them.
fn tsvector(row: &TermRow) -> String {
    let mut positions: BTreeMap<&str, Vec<String>> = BTreeMap::new();
    let mut position = 0_u32;
    for (text, weight) in [(&row.title, 'A'), (&row.channel, 'B'), (&row.words, 'C')] {
        for term in terms(text) {
            position += 1;
            let list = positions.entry(term).or_default();
            // Further positions would be dropped by the server.
            if position <= POSITION_MAX && list.len() < POSITIONS_MAX {
                list.push(format!("{position}{weight}"));
            }
        }
        position += 1;
    }
    for term in [&row.extras, &row.others, &row.facets].into_iter().flat_map(|text| terms(text)) {
        positions.entry(term).or_default();
    }
    let mut vector = String::new();
    for (term, list) in positions {
        if !vector.is_empty() {
            vector.push(' ');
        }
        vector.push_str(&lexeme(term));
        if !list.is_empty() {
            vector.push(':');
            vector.push_str(&list.join(","));
        }
    }
    vector
}

/// PostgreSQL's limits of positions.
const POSITION_MAX: u32 = 16_383;
const POSITIONS_MAX: usize = 255;

fn terms(text: &str) -> impl Iterator<Item = &str> {
    text.split(' ').filter(|term| !term.is_empty())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tsvector_has_positions_and_weights() {
        let text = |text: &str| text.to_owned();
        let row = TermRow {
            title: text("the sea"),
            channel: text("news"),
            words: text("the tide the"),
            extras: text("·entide"),
            others: text("ebb"),
            facets: text("··all"),
        };
        assert_eq!(tsvector(&row), "'ebb' 'news':4B 'sea':2A 'the':1A,6C,8C 'tide':7C '·entide' '··all'");
    }
}
