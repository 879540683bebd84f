//! Compaction: moves stored bodies to cold storage one by one.
//!
//! A body is read, packed, unpacked and compared before it is replaced, and it is replaced only if it did not
//! change since. Packing uses the CPU and no caller waits for it: it runs on half of the cores, on blocking
//! threads.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use futures_util::{StreamExt as _, TryStreamExt as _, stream};
use transcript_core::{
    Error, ErrorKind, Result,
    archive::{CompactOutcome, CompactRequest},
    body::segments,
    video::VideoId,
};

use super::{
    scan::{TranscriptKey, concurrency, next_cursor},
    stats_part,
    tracks::read_cursor,
};
use crate::{
    body::{EncodedBody, damaged},
    codec,
    cold::{Dictionary, Packer, unpack},
    error::DbResult,
    sql::{Database, Row, Session, Statement, WriteTx, sql, values},
};

/// Most parts of a cold form in a file, where each is a row, so that pages fill.
const PARTS_MAX: i64 = 65_536;
/// Length of a part in bytes: eight, with their row overhead, fill a page of 16 KiB.
const PART: usize = 2_016;

/// The next bodies, and whether each is old enough.
const NEXT_BODIES: Statement = sql! {
    sqlite: "SELECT t.video, some.transcript, t.revision, t.stored_at < $3
        FROM (SELECT transcript FROM bodies WHERE transcript > $2 ORDER BY transcript LIMIT $4) some
        JOIN transcripts t ON t.id = some.transcript ORDER BY some.transcript",
    postgres: "SELECT n.video, n.transcript, t.revision, t.stored_at < $3
        FROM (SELECT video, transcript FROM bodies WHERE (video, transcript) > ($1, $2)
            ORDER BY video, transcript LIMIT $4) n
        JOIN transcripts t ON t.video = n.video AND t.id = n.transcript ORDER BY n.video, n.transcript",
};

const READ_BODY: Statement = sql! {
    sqlite: "SELECT b.content_sha256, b.source, b.length, b.about, b.segments, o.bytes
        FROM transcripts t JOIN bodies b ON b.transcript = t.id LEFT JOIN words o ON o.transcript = t.id
        WHERE t.video = $1 AND t.id = $2 AND t.revision = $3",
    postgres: "SELECT b.content_sha256, b.source, b.length, b.about, b.segments, o.bytes
        FROM transcripts t JOIN bodies b ON b.video = t.video AND b.transcript = t.id
        LEFT JOIN words o ON o.video = t.video AND o.transcript = t.id
        WHERE t.video = $1 AND t.id = $2 AND t.revision = $3",
};

/// Deletes a body if it is unchanged, since another transcript may have reused its id; on PostgreSQL, also stores its
/// cold form and updates the statistics.
const REPLACE_BODY: Statement = sql! {
    sqlite: "DELETE FROM bodies WHERE transcript = $2 AND checksum = $3 AND content_sha256 = $4
        AND EXISTS (SELECT 1 FROM transcripts WHERE id = $2 AND video = $1 AND revision = $5)",
    postgres: "WITH taken AS (
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
            WHERE part = $9 AND EXISTS (SELECT 1 FROM taken)",
};
const PUT_COLD: &str = "INSERT INTO cold (id, bytes) VALUES ($1, $2)";
const UPDATE_SIZE: &str = "UPDATE transcripts SET body_bytes = $2 WHERE id = $1";

/// Statements that must not scan tables, for the test of the query plans.
#[cfg(all(test, feature = "sqlite"))]
pub(crate) const INDEXED_STATEMENTS: [&str; 5] =
    [NEXT_BODIES.sqlite, READ_BODY.sqlite, REPLACE_BODY.sqlite, PUT_COLD, UPDATE_SIZE];

/// Result for one row.
enum ColdRow {
    Compacted {
        before: u64,
        after: u64,
    },
    /// The cold form is not smaller, or the row is gone.
    Left,
    Damaged(VideoId),
}

/// Replaces a body by its cold form. The outcome is whether the body was still there.
struct ReplaceBodyTx {
    key: TranscriptKey,
    body: EncodedBody,
    compact: Vec<u8>,
}

impl ReplaceBodyTx {
    /// Stored size of the transcript afterwards: its words stay where they are.
    fn bytes(&self) -> u64 {
        self.compact.len() as u64 + self.body.words_bytes()
    }
}

impl WriteTx for ReplaceBodyTx {
    type Outcome = bool;
    const NEEDS_TRANSACTION: bool = false;

    async fn run<S: Session>(&self, db: &mut S) -> DbResult<bool> {
        let (TranscriptKey { video, transcript, revision }, body) = (&self.key, &self.body);
        let size = codec::column(self.bytes())?;
        let replace = values![
            video.to_string(),
            *transcript,
            body.checksum(video),
            &body.content_sha256,
            *revision,
            &self.compact,
            size,
            codec::column(body.bytes())?,
            stats_part(),
        ];
        let is_replaced = db.execute(REPLACE_BODY, &replace).await? > 0;
        if is_replaced && !S::IS_REMOTE {
            put_parts(db, *transcript, &self.compact).await?;
            db.execute(UPDATE_SIZE, &values![*transcript, size]).await?;
        }
        Ok(is_replaced)
    }
}

/// Stores the cold form of a transcript that has none, in a file.
async fn put_parts<S: Session>(db: &mut S, transcript: i64, compact: &[u8]) -> DbResult<()> {
    for (id, part) in parts(transcript, compact)? {
        db.execute(PUT_COLD, &values![id, part]).await?;
    }
    Ok(())
}

/// The rows of a file that hold the cold form of a transcript.
pub(crate) fn parts(transcript: i64, compact: &[u8]) -> Result<impl Iterator<Item = (i64, &[u8])>> {
    let first = transcript.checked_mul(PARTS_MAX);
    let first = first.ok_or_else(|| Error::unexpected("a transcript id is too large for cold storage"))?;
    Ok((0..PARTS_MAX).zip(compact.chunks(PART)).map(move |(index, part)| (first + index, part)))
}

/// Compacts some transcripts; see [`transcript_core::archive::Archive::compact`].
///
/// # Errors
/// A database error; rows compacted before it stay compacted.
pub(super) async fn compact_page<D: Database>(
    database: &D,
    request: &CompactRequest,
) -> Result<CompactOutcome> {
    let (video, transcript) = read_cursor(request.page.after.as_ref())?;
    let limit = i64::try_from(request.page.size()).unwrap_or(i64::MAX);
    let bounds = values![video, transcript, request.stored_before.as_millis(), limit];
    let found = database.find(NEXT_BODIES, &bounds, decode_next).await?;
    let scanned = found.len();
    let last = found.last().map(|(name, transcript, _)| (name, *transcript));
    let next = next_cursor(last, scanned, &request.page);
    let mut compacted = CompactOutcome { scanned: scanned as u64, next, ..CompactOutcome::default() };

    let packers = Arc::new(PackerCache::default());
    let old = found.into_iter().filter_map(|(.., key)| key);
    let mut results = stream::iter(old)
        .map(|key| compact_one(database, key, Arc::clone(&packers)))
        .buffer_unordered(concurrency());
    while let Some(row) = results.try_next().await? {
        match row {
            ColdRow::Compacted { before, after } => {
                compacted.compacted += 1;
                compacted.bytes_before += before;
                compacted.bytes_after += after;
            }
            ColdRow::Left => {}
            ColdRow::Damaged(video) => compacted.damaged.push(video),
        }
    }
    Ok(compacted)
}

/// Decodes a row of [`NEXT_BODIES`]: the name of its video, its transcript, and its key if it is old enough.
///
/// One with a malformed name stays as it is: it must not end the compaction of the others.
fn decode_next(row: &mut Row) -> DbResult<(String, i64, Option<TranscriptKey>)> {
    let (name, transcript, revision): (String, _, _) = (row.take(0)?, row.take(1)?, row.take(2)?);
    let is_old: bool = row.take(3)?;
    let video = if is_old { codec::listed_video(&name) } else { None };
    let key = video.map(|video| TranscriptKey { video, transcript, revision });
    Ok((name, transcript, key))
}

async fn compact_one<D: Database>(
    database: &D,
    key: TranscriptKey,
    packers: Arc<PackerCache>,
) -> Result<ColdRow> {
    let row = values![key.video.to_string(), key.transcript, key.revision];
    let found = database.find_first(READ_BODY, &row, |row| {
        Ok(EncodedBody {
            content_sha256: row.take(0)?,
            source: row.take(1)?,
            length: row.take(2)?,
            about: row.take(3)?,
            segments: row.take::<Vec<u8>>(4)?.into(),
            words: row.take(5)?,
        })
    });
    let Some(body) = found.await? else {
        return Ok(ColdRow::Left);
    };
    let video = key.video.clone();
    let packing = database.runtime().spawn_blocking(move || (packers.pack(&video, &body), body));
    let (packed, body) =
        packing.await.map_err(|error| Error::unexpected(format!("packing a transcript failed: {error}")))?;
    let compact = match packed {
        Ok(Some(compact)) => compact,
        Ok(None) => return Ok(ColdRow::Left),
        Err(error) if error.kind() == ErrorKind::Corrupt => return Ok(ColdRow::Damaged(key.video)),
        Err(error) => return Err(error),
    };
    let replace = ReplaceBodyTx { key, body, compact };
    let (before, after) = (replace.body.bytes(), replace.bytes());
    let is_replaced = database.run(replace).await?;
    Ok(if is_replaced { ColdRow::Compacted { before, after } } else { ColdRow::Left })
}

/// Idle packers, one for each parallel task: creating one takes longer than packing a short transcript.
#[derive(Debug, Default)]
struct PackerCache(Mutex<Vec<Packer>>);

impl PackerCache {
    fn free(&self) -> MutexGuard<'_, Vec<Packer>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The cold form of a body. `None` if it is not smaller, or does not rebuild the body exactly.
    ///
    /// # Errors
    /// [`ErrorKind::Corrupt`] if the body does not decode.
    fn pack(&self, video: &VideoId, body: &EncodedBody) -> Result<Option<Vec<u8>>> {
        let transcript = body.unpack()?;
        if transcript.video != *video {
            return Err(damaged());
        }
        let free = self.free().pop();
        let mut packer = free.map_or_else(|| Packer::new(Dictionary::NEWEST), Ok)?;
        let compact = packer.pack(&transcript)?;
        self.free().push(packer);
        if body.bytes() <= compact.len() as u64 + body.words_bytes() {
            return Ok(None);
        }
        // The digest covers all that a reader sees. The bytes that are sent must also be the same.
        let again = unpack(&compact, body.words.as_deref(), &body.content_sha256)
            .and_then(|again| segments::write(&again.segments));
        if again.is_ok_and(|again| body.json().is_ok_and(|json| again == json)) {
            return Ok(Some(compact));
        }
        tracing::error!("cold form did not rebuild the transcript, row left unchanged");
        Ok(None)
    }
}
