//! Stores transcripts: existing rows decide whether one is added, and for which selectors.

use std::sync::Arc;

use transcript_core::{
    Error, Result, Timestamp,
    archive::{PutRequest, StoredTranscript, TrackSelector},
    ids::Holder,
    transcript::VideoDetails,
};

use super::{
    RECORD_CHANGED_VIDEO, RECORD_UNINDEXED_VIDEO, RELEASE_LEASE, count_changed_details, count_changes,
    details,
    find::{FIND, decode_stored, name_unreadable},
    stats_part, vectors,
};
use crate::{
    body::EncodedBody,
    codec,
    error::{DbError, DbResult},
    sql::{Row, Session, Statement, Value, WriteTx, sql, values},
};

/// Whether the video is withdrawn, its newest transcript of the same content, whether it has any, and its metadata.
const LOAD_VIDEO: &str = "SELECT EXISTS (SELECT 1 FROM withdrawals WHERE video = $1),
    (SELECT max(id) FROM transcripts WHERE video = $1 AND content_sha256 = $2),
    EXISTS (SELECT 1 FROM transcripts WHERE video = $1),
    (SELECT metadata FROM details WHERE video = $1)";
/// The transcript of each selector of the video, and whether its content equals the new one.
const SELECTOR_STATES: &str = "SELECT w.wish, t.revision, t.content_sha256 = $2, t.id
    FROM wishes w JOIN transcripts t ON t.video = w.video AND t.id = w.transcript WHERE w.video = $1";
const DELETE_ABSENCES: Statement = sql! {
    sqlite: "DELETE FROM absences WHERE video = $1 AND wish IN (SELECT value FROM json_each($2))",
    postgres: "DELETE FROM absences WHERE video = $1 AND wish = ANY ($2)",
};

/// Adds a transcript, on PostgreSQL with its body and its share of the statistics.
const ADD_TRANSCRIPT: Statement = sql! {
    sqlite: "INSERT INTO transcripts (video, track, revision, parser_version, stored_at, content_sha256,
            body_bytes, body_length, body)
        VALUES ($1, $3, $4, $5, $6, $7, $8, $10, x'') RETURNING id",
    postgres: "WITH added AS (
            INSERT INTO transcripts (video, id, track, revision, parser_version, stored_at, content_sha256,
                body_bytes)
            VALUES ($1, $2, $3, $4, $5, $6, $7, $8) RETURNING id
        ), with_body AS (
            INSERT INTO bodies (video, transcript, content_sha256, source, length, checksum, about, segments)
            VALUES ($1, $2, $7, $9, $10, $11, $12, $13)
        ), with_words AS (
            INSERT INTO words (video, transcript, bytes) SELECT $1, $2, $16::BYTEA WHERE $16 IS NOT NULL
        ), counted AS (
            UPDATE figures SET videos = videos + $14, transcripts = transcripts + 1, bytes = bytes + $8
            WHERE part = $15
        )
        SELECT id FROM added",
};
const ADD_BODY: &str = "INSERT INTO bodies
    (transcript, content_sha256, source, length, checksum, about, segments)
    VALUES ($2, $7, $9, $10, $11, $12, $13)";
/// In a file; on PostgreSQL the statements for bodies write the words too.
const PUT_WORDS: &str = "INSERT INTO words (transcript, bytes) VALUES ($1, $2)
    ON CONFLICT (transcript) DO UPDATE SET bytes = excluded.bytes";
const DELETE_WORDS: &str = "DELETE FROM words WHERE transcript = $1";

/// Locks a transcript, so that the next statement sees what a concurrent compaction has done.
const LOCK_TRANSCRIPT: &str = "SELECT id FROM transcripts WHERE video = $1 AND id = $2 FOR UPDATE";
/// Writes the body of a stored transcript again, on PostgreSQL with its share of the statistics. Reads no old body.
const REWRITE_BODY: Statement = sql! {
    sqlite: "INSERT INTO bodies
            (transcript, content_sha256, source, length, checksum, about, segments)
        VALUES ($2, $3, $4, $5, $6, $7, $8)
        ON CONFLICT (transcript) DO UPDATE SET content_sha256 = excluded.content_sha256,
            source = excluded.source, length = excluded.length, checksum = excluded.checksum,
            about = excluded.about, segments = excluded.segments",
    postgres: "WITH taken AS (
            DELETE FROM cold WHERE video = $1 AND transcript = $2 RETURNING transcript
        ), put AS (
            INSERT INTO bodies (video, transcript, content_sha256, source, length, checksum, about, segments)
            VALUES ($1, $2, $3, $4, $5, $6, $7, $8)
            ON CONFLICT (video, transcript) DO UPDATE SET content_sha256 = excluded.content_sha256,
                source = excluded.source, length = excluded.length, checksum = excluded.checksum,
                about = excluded.about, segments = excluded.segments
        ), put_words AS (
            INSERT INTO words (video, transcript, bytes) SELECT $1, $2, $11::BYTEA WHERE $11 IS NOT NULL
            ON CONFLICT (video, transcript) DO UPDATE SET bytes = excluded.bytes
        ), without_words AS (
            DELETE FROM words WHERE video = $1 AND transcript = $2 AND $11 IS NULL
        ), sized AS (
            UPDATE transcripts SET body_bytes = $9 WHERE video = $1 AND id = $2
        )
        UPDATE figures SET compact = compact - (SELECT count(*) FROM taken), bytes = bytes + $9
                - (SELECT body_bytes FROM transcripts WHERE video = $1 AND id = $2)
            WHERE part = $10",
};
/// The same for the cold and the first form in a file. Triggers update the statistics.
const DELETE_COLD: &str = "DELETE FROM cold WHERE id BETWEEN $1 * 65536 AND $1 * 65536 + 65535";
const UPDATE_SIZE: &str =
    "UPDATE transcripts SET body_bytes = $2, body_length = $3, body = x'' WHERE id = $1";

/// Points selectors to a transcript: all of them, or only those without one of this video.
pub(super) const PUT_SELECTORS: Statement = sql! {
    sqlite: "INSERT INTO wishes (video, wish, transcript)
        SELECT $1, value, $3 FROM json_each($2) WHERE true
        ON CONFLICT (video, wish) DO UPDATE SET transcript = excluded.transcript
        WHERE $4 OR NOT EXISTS (SELECT 1 FROM transcripts t WHERE t.video = $1 AND t.id = wishes.transcript)",
    postgres: "INSERT INTO wishes (video, wish, transcript)
        SELECT DISTINCT $1, wish, $3::BIGINT FROM unnest($2::TEXT[]) wish
        ON CONFLICT (video, wish) DO UPDATE SET transcript = excluded.transcript
        WHERE $4 OR NOT EXISTS (SELECT 1 FROM transcripts t WHERE t.video = $1 AND t.id = wishes.transcript)",
};

/// The transcript of a selector, without its text.
const STORED_TRANSCRIPT: &str = "SELECT t.revision, t.parser_version, t.stored_at, t.content_sha256
    FROM wishes w JOIN transcripts t ON t.video = w.video AND t.id = w.transcript
    WHERE w.video = $1 AND w.wish = $2";

/// Statements that must not scan tables, for the test of the query plans.
#[cfg(all(test, feature = "sqlite"))]
pub(crate) const INDEXED_STATEMENTS: [&str; 12] = [
    LOAD_VIDEO,
    SELECTOR_STATES,
    PUT_WORDS,
    DELETE_WORDS,
    DELETE_ABSENCES.sqlite,
    ADD_TRANSCRIPT.sqlite,
    ADD_BODY,
    PUT_SELECTORS.sqlite,
    STORED_TRANSCRIPT,
    REWRITE_BODY.sqlite,
    DELETE_COLD,
    UPDATE_SIZE,
];

/// A transcript to store, with its encoded body.
pub(super) struct PutTranscriptTx {
    request: PutRequest,
    body: EncodedBody,
    /// Holder whose lease of the first selector is released.
    lease_holder: Option<Holder>,
}

/// The transcript of a selector before the write.
struct SelectorState {
    selector: String,
    revision: u32,
    /// Whether it has the same content.
    is_same: bool,
    transcript: i64,
}

impl SelectorState {
    fn decode(row: &mut Row) -> DbResult<Self> {
        let (selector, revision) = (row.take(0)?, row.take(1)?);
        Ok(Self { selector, revision, is_same: row.take(2)?, transcript: row.take(3)? })
    }
}

/// What a put changes.
#[derive(Clone, Copy)]
enum PutDecision {
    /// Every selector keeps its transcript.
    Keep,
    /// Selectors without a transcript get the newest one with the same content, or a first revision.
    Fill,
    /// Every selector gets a new transcript of this revision.
    Replace { revision: u32 },
}

impl PutTranscriptTx {
    /// Encodes the transcript; see [`EncodedBody::pack`].
    pub(super) fn pack(request: PutRequest, lease_holder: Option<Holder>) -> Result<Self> {
        let body = EncodedBody::pack(&request.transcript)?;
        Ok(Self { request, body, lease_holder })
    }

    fn first_selector(&self) -> &str {
        self.request.selectors.first().map_or("", TrackSelector::as_str)
    }

    /// Decides as [`transcript_core::archive::Archive::put`] says.
    fn decide(&self, states: &[SelectorState]) -> PutDecision {
        let selectors = &self.request.selectors;
        let stored = states.iter().filter(|stored| self.is_requested(stored));
        if self.request.replace && stored.clone().any(|stored| !stored.is_same) {
            let highest = stored.map(|stored| stored.revision).max().unwrap_or(0);
            return PutDecision::Replace { revision: highest.saturating_add(1) };
        }
        let is_missing =
            |selector: &TrackSelector| states.iter().all(|stored| stored.selector != selector.as_str());
        if selectors.iter().any(is_missing) { PutDecision::Fill } else { PutDecision::Keep }
    }

    fn is_requested(&self, stored: &SelectorState) -> bool {
        self.request.selectors.iter().any(|selector| selector.as_str() == stored.selector)
    }

    /// Writes the bodies of stored transcripts with the same content again: one of them may be damaged.
    async fn rewrite_bodies<S: Session>(
        &self,
        db: &mut S,
        video: &str,
        states: &[SelectorState],
        filled: Option<i64>,
    ) -> DbResult<()> {
        let requested = states.iter().filter(|stored| self.request.replace && self.is_requested(stored));
        let mut transcripts: Vec<i64> = requested.map(|stored| stored.transcript).chain(filled).collect();
        transcripts.sort_unstable();
        transcripts.dedup();
        for transcript in transcripts {
            self.rewrite_body(db, video, transcript).await?;
        }
        Ok(())
    }

    async fn rewrite_body<S: Session>(&self, db: &mut S, video: &str, transcript: i64) -> DbResult<()> {
        let body = &self.body;
        let (size, length) = (codec::column(body.bytes())?, codec::column(body.length)?);
        if S::IS_REMOTE {
            db.row(LOCK_TRANSCRIPT, &values![video, transcript]).await?;
        } else {
            db.execute(DELETE_COLD, &values![transcript]).await?;
            db.execute(UPDATE_SIZE, &values![transcript, size, length]).await?;
            match &body.words {
                Some(words) => db.execute(PUT_WORDS, &values![transcript, words]).await?,
                None => db.execute(DELETE_WORDS, &values![transcript]).await?,
            };
        }
        let row = values![
            video,
            transcript,
            &body.content_sha256,
            &body.source,
            length,
            body.checksum(&self.request.video),
            &body.about,
            &*body.segments,
            size,
            stats_part(),
            body.words.as_ref(),
        ];
        db.execute(REWRITE_BODY, &row).await?;
        Ok(())
    }

    async fn add_transcript<S: Session>(
        &self,
        db: &mut S,
        video: &str,
        track: i64,
        revision: u32,
        is_first: bool,
    ) -> DbResult<i64> {
        let (PutRequest { parser_version, now, .. }, body) = (&self.request, &self.body);
        let mut row = values![
            video,
            db.next_number(*now),
            track,
            revision,
            *parser_version,
            now.as_millis(),
            &body.content_sha256,
            codec::column(body.bytes())?,
            &body.source,
            codec::column(body.length)?,
            body.checksum(&self.request.video),
            &body.about,
            &*body.segments,
            i64::from(is_first),
            stats_part(),
            body.words.as_ref(),
        ];
        let id: i64 = db.only_row(ADD_TRANSCRIPT, &row).await?.take(0)?;
        if !S::IS_REMOTE {
            row[1] = id.into();
            db.execute(ADD_BODY, &row).await?;
            if let Some(words) = &body.words {
                db.execute(PUT_WORDS, &values![id, words]).await?;
            }
        }
        Ok(id)
    }

    /// The first transcript of a video, as stored.
    fn first_result(&self, details: Arc<VideoDetails>) -> StoredTranscript {
        StoredTranscript {
            transcript: Arc::clone(&self.request.transcript),
            revision: 1,
            content_sha256: self.body.content_sha256.clone(),
            parser_version: self.request.parser_version,
            stored_at: self.request.now,
            details,
        }
    }

    /// The transcript of the first selector after the write, as stored.
    ///
    /// If its digest equals that of the written transcript, the text is not read again; otherwise it is read.
    async fn stored_result<S: Session>(
        &self,
        db: &mut S,
        video: &str,
        details: Arc<VideoDetails>,
    ) -> DbResult<StoredTranscript> {
        let PutRequest { transcript, now, .. } = &self.request;
        let first = self.first_selector();
        let mut row = db.only_row(STORED_TRANSCRIPT, &values![video, first]).await?;
        let content_sha256: Vec<u8> = row.take(3)?;
        if content_sha256 == self.body.content_sha256 {
            return Ok(StoredTranscript {
                transcript: Arc::clone(transcript),
                revision: row.take(0)?,
                content_sha256,
                parser_version: row.take(1)?,
                stored_at: Timestamp::from_millis(row.take(2)?),
                details,
            });
        }
        let mut row = db.only_row(FIND, &values![video, first, now.as_millis()]).await?;
        let missing = || Error::unexpected("a selector has no transcript after one was stored for it");
        let stored = decode_stored(&self.request.video, &mut row).map_err(|error| match error {
            DbError::Rejected(error) => name_unreadable(&self.request.video, first, &error).into(),
            error => error,
        });
        Ok(stored?.ok_or_else(missing)?)
    }
}

impl WriteTx for PutTranscriptTx {
    type Outcome = StoredTranscript;

    async fn run<S: Session>(&self, db: &mut S) -> DbResult<StoredTranscript> {
        let video = self.request.video.to_string();
        let content = values![&video, &self.body.content_sha256];
        let mut before = db.only_row(LOAD_VIDEO, &content).await?;
        if before.take(0)? {
            return Err(Error::conflict("the video is withdrawn").into());
        }
        let (same, is_first): (Option<i64>, _) = (before.take(1)?, !before.take::<bool>(2)?);
        // Without a transcript of the video no selector has one.
        let states = match is_first {
            true => Vec::new(),
            false => db.find(SELECTOR_STATES, &content, SelectorState::decode).await?,
        };
        let metadata: Value<'static> = before.take(3)?;
        let details::UpdatedDetails { track, details, is_changed } =
            details::update(db, &video, &self.request, &metadata).await?;
        count_changed_details(db, &video, is_changed && !states.is_empty()).await?;
        if let Some(holder) = &self.lease_holder {
            let lease = values![&video, self.first_selector(), holder.as_str()];
            db.execute(RELEASE_LEASE, &lease).await?;
        }
        let selectors: Vec<_> = self.request.selectors.iter().map(TrackSelector::as_str).collect();
        db.execute(DELETE_ABSENCES, &values![&video, selectors.clone()]).await?;

        let decision = self.decide(&states);
        let is_kept = matches!(decision, PutDecision::Keep);
        // The index may have found the body unreadable that is written again. No trigger of SQLite records that.
        if is_kept && self.request.replace || S::IS_REMOTE && (is_changed || !is_kept) {
            db.execute(RECORD_UNINDEXED_VIDEO, &values![&video]).await?;
        }
        if let PutDecision::Keep | PutDecision::Fill = decision {
            let filled = same.filter(|_| matches!(decision, PutDecision::Fill));
            self.rewrite_bodies(db, &video, &states, filled).await?;
        }
        let (transcript, replaces) = match (decision, same) {
            (PutDecision::Keep, _) => return self.stored_result(db, &video, details).await,
            (PutDecision::Fill, Some(same)) => (same, false),
            (PutDecision::Fill, None) => (self.add_transcript(db, &video, track, 1, is_first).await?, false),
            (PutDecision::Replace { revision }, _) => {
                (self.add_transcript(db, &video, track, revision, is_first).await?, true)
            }
        };
        db.execute(PUT_SELECTORS, &values![&video, selectors, transcript, replaces]).await?;
        if is_first {
            return Ok(self.first_result(details));
        }
        let has_another = states.iter().any(|stored| stored.transcript != transcript);
        count_changes(db, has_another.into()).await?;
        if has_another {
            // Earlier responses may have the other transcript in place of this one.
            db.execute(RECORD_CHANGED_VIDEO, &values![&video]).await?;
            if replaces {
                db.execute(vectors::DELETE_UNUSED, &values![&video]).await?;
            }
        }
        self.stored_result(db, &video, details).await
    }
}
