//! Cold storage in PostgreSQL.

use sqlx::{PgConnection, Row};
use transcript_core::{
    Result,
    archive::{CompactOutcome, CompactRequest, StoredBody},
    ids::Cursor,
    video::VideoId,
};

use super::{
    PostgresArchive,
    read::{StoredForm, read_cursor},
    stats::part,
};
use crate::{
    body::EncodedBody,
    codec::{self, number},
    cold::{
        self,
        compaction::{self, ColdRows},
    },
    error::DbResult,
    postgres::{
        database::{PgDatabase, ReadQuery, WriteTx},
        text::{encode, read},
    },
};

/// The next bodies, and whether each is old enough.
const NEXT_BODIES: &str = "SELECT n.video, n.transcript, t.revision, t.stored_at < $3
    FROM (SELECT video, transcript FROM bodies WHERE (video, transcript) > ($1, $2)
        ORDER BY video, transcript LIMIT $4) n
    JOIN transcripts t ON t.video = n.video AND t.id = n.transcript ORDER BY n.video, n.transcript";

const READ_BODY: &str = "SELECT b.content_sha256, b.source, b.length, b.about, b.segments
    FROM transcripts t JOIN bodies b ON b.video = t.video AND b.transcript = t.id
    WHERE t.video = $1 AND t.id = $2 AND t.revision = $3";

/// Replaces a body by its cold form, if it is unchanged.
const REPLACE_BODY: &str = "WITH taken AS (
        DELETE FROM bodies WHERE video = $1 AND transcript = $2 AND checksum = $3 AND content_sha256 = $4
            AND EXISTS (SELECT 1 FROM transcripts WHERE video = $1 AND id = $2 AND revision = $5)
        RETURNING transcript
    ), put AS (
        INSERT INTO cold (video, transcript, body) SELECT $1, transcript, $6 FROM taken
    ), sized AS (
        UPDATE transcripts SET body_bytes = $7
            WHERE video = $1 AND id = $2 AND EXISTS (SELECT 1 FROM taken)
    )
    UPDATE figures SET compact = compact + 1, bytes = bytes + $7 - $8
        WHERE part = $9 AND EXISTS (SELECT 1 FROM taken)";

/// A transcript that can be compacted.
pub(in crate::postgres) struct ColdKey {
    video: VideoId,
    transcript: i64,
    revision: i64,
}

/// Replaces a body by its cold form. The outcome is whether the body was still there.
struct ReplaceBodyTx {
    key: ColdKey,
    checksum: u32,
    content_sha256: Vec<u8>,
    compact: Vec<u8>,
    /// Size of the body in bytes.
    before: i64,
}

impl WriteTx for ReplaceBodyTx {
    type Outcome = bool;
    const IS_SINGLE_STATEMENT: bool = true;

    async fn run(&self, db: &mut PgConnection) -> DbResult<bool> {
        let replace = sqlx::query(REPLACE_BODY)
            .bind(encode(&self.key.video.to_string()))
            .bind(self.key.transcript)
            .bind(i64::from(self.checksum))
            .bind(self.content_sha256.clone())
            .bind(self.key.revision)
            .bind(self.compact.clone())
            .bind(codec::column(self.compact.len() as u64)?)
            .bind(self.before)
            .bind(part());
        Ok(replace.execute(db).await?.rows_affected() > 0)
    }
}

impl ColdRows for PgDatabase {
    type Key = ColdKey;

    fn video(key: &ColdKey) -> &VideoId {
        &key.video
    }

    async fn read(&self, key: &ColdKey) -> Result<Option<EncodedBody>> {
        let query = ReadQuery::new(READ_BODY)
            .text(&key.video.to_string())
            .number(key.transcript)
            .number(key.revision);
        self.find_first(query, |row| {
            Ok(EncodedBody {
                content_sha256: row.try_get(0)?,
                source: read(row, 1)?,
                length: number(row.try_get(2)?)?,
                about: row.try_get(3)?,
                segments: row.try_get(4)?,
            })
        })
        .await
    }

    async fn replace(&self, key: ColdKey, body: &EncodedBody, compact: Vec<u8>) -> Result<bool> {
        let (checksum, content_sha256) = (body.checksum(&key.video), body.content_sha256.clone());
        let before = codec::column(body.bytes())?;
        self.run(ReplaceBodyTx { key, checksum, content_sha256, compact, before }).await
    }
}

impl PostgresArchive {
    /// The stored body of a video, from either form.
    pub(super) async fn build_stored_body(&self, video: &VideoId, sent: StoredForm) -> Result<StoredBody> {
        match sent {
            StoredForm::Body(body) => Ok(body),
            StoredForm::Compact { content_sha256, compact } => {
                cold::rebuild_body(video.clone(), content_sha256, compact, self.database.runtime()).await
            }
        }
    }

    pub(super) async fn compact_page(&self, request: &CompactRequest) -> Result<CompactOutcome> {
        let (video, transcript) = request.page.after.as_ref().map_or(Ok((String::new(), 0)), read_cursor)?;
        let limit = i64::try_from(request.page.size()).unwrap_or(i64::MAX);
        let next = ReadQuery::new(NEXT_BODIES).text(&video).number(transcript);
        let next = next.number(request.stored_before.as_millis()).number(limit);
        let found = self.database.find(next, |row| {
            let key = ColdKey {
                video: codec::video(&read(row, 0)?)?,
                transcript: row.try_get(1)?,
                revision: row.try_get(2)?,
            };
            Ok((key, row.try_get::<bool, _>(3)?))
        });
        let found = found.await?;
        let scanned = found.len();
        let last = found.last().filter(|_| scanned == request.page.size());
        let next = last.map(|(key, _)| Cursor::new(format!("{}/{}", key.video, key.transcript)));
        let old = found.into_iter().filter_map(|(key, is_old)| is_old.then_some(key)).collect();
        let compacted = compaction::compact(&self.database, old, self.database.runtime()).await?;
        Ok(CompactOutcome { scanned: scanned as u64, next, ..compacted })
    }
}
