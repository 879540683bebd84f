//! Cold storage in SQLite: in parts, each a row, so that pages fill.

use transcript_core::{
    Error, Result,
    archive::{CompactOutcome, CompactRequest, StoredBody, TrackSelector},
    ids::Cursor,
    video::VideoId,
};

use super::{SqliteArchive, names};
use crate::{
    body::EncodedBody,
    codec::{self, number},
    cold::{
        self,
        compaction::{self, ColdRows},
    },
    error::DbResult,
    sql::{Session, WriteTx, values},
    sqlite::SqliteDatabase,
};

/// The joined cold parts of the transcript `t` that has no body `b`.
macro_rules! compact {
    () => {
        "unhex((SELECT group_concat(hex(c.bytes), '' ORDER BY c.id) FROM cold c
            WHERE b.transcript IS NULL AND c.id BETWEEN t.id * 65536 AND t.id * 65536 + 65535))"
    };
}
pub(super) use compact;

/// Most parts of a transcript.
const PARTS_MAX: i64 = 65_536;
/// Length of a part in bytes: eight, with their row overhead, fill a page of 16 KiB.
const PART: usize = 2_016;

/// The cold transcript of a selector.
const READ_COLD: &str = concat!(
    "SELECT t.content_sha256, ",
    compact!(),
    " FROM wishes w JOIN transcripts t ON t.id = w.transcript LEFT JOIN bodies b ON b.transcript = t.id
    WHERE w.video = ?1 AND w.wish = ?2 AND NOT EXISTS (SELECT 1 FROM withdrawals WHERE video = ?1)"
);

/// The next bodies, and whether each is old enough.
const NEXT_BODIES: &str = "SELECT some.transcript, t.video, t.revision, t.stored_at < ?2
    FROM (SELECT transcript FROM bodies WHERE transcript > ?1 ORDER BY transcript LIMIT ?3) some
    JOIN transcripts t ON t.id = some.transcript ORDER BY some.transcript";

const READ_BODY: &str = "SELECT b.content_sha256, b.source, b.length, b.about, b.segments
    FROM transcripts t JOIN bodies b ON b.transcript = t.id
    WHERE t.id = ?1 AND t.video = ?2 AND t.revision = ?3";

/// Deletes a body if it is unchanged: another transcript may have reused its id since.
const DELETE_BODY: &str = "DELETE FROM bodies WHERE transcript = ?1 AND checksum = ?2 AND content_sha256 = ?3
    AND EXISTS (SELECT 1 FROM transcripts WHERE id = ?1 AND video = ?4 AND revision = ?5)";
const PUT_COLD: &str = "INSERT INTO cold (id, bytes) VALUES (?1, ?2)";
const UPDATE_SIZE: &str = "UPDATE transcripts SET body_bytes = ?2 WHERE id = ?1";

/// Statements that must not scan tables, for the test of the query plans.
#[cfg(test)]
pub(in crate::sqlite) const INDEXED_STATEMENTS: [&str; 6] =
    [READ_COLD, NEXT_BODIES, READ_BODY, DELETE_BODY, PUT_COLD, UPDATE_SIZE];

/// A transcript that can be compacted.
pub(in crate::sqlite) struct ColdKey {
    transcript: i64,
    video: VideoId,
    revision: i64,
}

/// Replaces a body by its cold form. The outcome is whether the body was still there.
struct ReplaceBodyTx {
    key: ColdKey,
    checksum: u32,
    content_sha256: Vec<u8>,
    compact: Vec<u8>,
}

impl WriteTx for ReplaceBodyTx {
    type Outcome = bool;

    async fn run<S: Session>(&self, db: &mut S) -> DbResult<bool> {
        let ColdKey { transcript, video, revision } = &self.key;
        let body = values![*transcript, self.checksum, &self.content_sha256, video.to_string(), *revision];
        if db.execute(DELETE_BODY, &body).await? == 0 {
            return Ok(false);
        }
        put(db, *transcript, &self.compact).await?;
        let bytes = codec::column(self.compact.len() as u64)?;
        db.execute(UPDATE_SIZE, &values![*transcript, bytes]).await?;
        Ok(true)
    }
}

/// Stores the cold form of a transcript that has none.
pub(crate) async fn put<S: Session>(db: &mut S, transcript: i64, compact: &[u8]) -> DbResult<()> {
    let first = transcript.checked_mul(PARTS_MAX);
    let first = first.ok_or_else(|| Error::unexpected("a transcript id is too large for cold storage"))?;
    for (index, part) in (0..PARTS_MAX).zip(compact.chunks(PART)) {
        db.execute(PUT_COLD, &values![first + index, part]).await?;
    }
    Ok(())
}

impl ColdRows for SqliteDatabase {
    type Key = ColdKey;

    fn video(key: &ColdKey) -> &VideoId {
        &key.video
    }

    async fn read(&self, key: &ColdKey) -> Result<Option<EncodedBody>> {
        let keys = values![key.transcript, key.video.to_string(), key.revision];
        self.find_first(READ_BODY, &keys, |row| {
            Ok(EncodedBody {
                content_sha256: row.take(0)?,
                source: row.take(1)?,
                length: number(row.take(2)?)?,
                about: row.take(3)?,
                segments: row.take(4)?,
            })
        })
        .await
    }

    async fn replace(&self, key: ColdKey, body: &EncodedBody, compact: Vec<u8>) -> Result<bool> {
        if compact.len().div_ceil(PART) as u64 > PARTS_MAX.unsigned_abs() {
            return Ok(false);
        }
        let (checksum, content_sha256) = (body.checksum(&key.video), body.content_sha256.clone());
        self.run(ReplaceBodyTx { key, checksum, content_sha256, compact }).await
    }
}

impl SqliteArchive {
    /// The body of a selector, rebuilt from cold storage. `None` if it has no cold form.
    pub(super) async fn rebuild_body(
        &self,
        video: &VideoId,
        selector: &TrackSelector,
    ) -> Result<Option<StoredBody>> {
        let keys = names(video, selector);
        let found = self.database.find_first(READ_COLD, &keys, |row| {
            Ok((row.take::<Vec<u8>>(0)?, row.take::<Option<Vec<u8>>>(1)?))
        });
        match found.await? {
            Some((content_sha256, Some(compact))) => {
                cold::rebuild_body(video.clone(), content_sha256, compact, &self.database.runtime)
                    .await
                    .map(Some)
            }
            Some((_, None)) | None => Ok(None),
        }
    }

    pub(super) async fn compact_page(&self, request: &CompactRequest) -> Result<CompactOutcome> {
        let after = codec::numbered(request.page.after.as_ref())?;
        let limit = i64::try_from(request.page.size()).unwrap_or(i64::MAX);
        let bounds = values![after, request.stored_before.as_millis(), limit];
        let found = self.database.find(NEXT_BODIES, &bounds, |row| {
            let key = ColdKey {
                transcript: row.take(0)?,
                video: codec::video(row.get(1)?)?,
                revision: row.take(2)?,
            };
            Ok((key, row.take::<bool>(3)?))
        });
        let found = found.await?;
        let (scanned, last) = (found.len(), found.last().map(|(key, _)| key.transcript));
        let old = found.into_iter().filter_map(|(key, is_old)| is_old.then_some(key)).collect();
        let compacted = compaction::compact(&self.database, old, &self.database.runtime).await?;
        // A full page: there may be more.
        let next = last.filter(|_| scanned == request.page.size()).map(|last| Cursor::new(last.to_string()));
        Ok(CompactOutcome { scanned: scanned as u64, next, ..compacted })
    }
}
