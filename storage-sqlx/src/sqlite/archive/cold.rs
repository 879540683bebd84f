//! The compact form in SQLite: in parts, each a row, so that pages fill.

use sqlx::{Row as _, SqliteConnection};
use transcript_core::{
    Error, Result,
    archive::{Compact, Compacted, StoredBody, Wish},
    ids::Cursor,
    video::VideoId,
};

use super::{SqliteArchive, names};
use crate::{
    body::Body,
    codec::{self, number},
    cold::{
        self,
        compaction::{self, Rows},
    },
    error::Work,
    sqlite::{Database, lookups::Row, writer::Change},
};

/// The compact form of the transcript `t` that has no body `b`, its parts put together.
macro_rules! compact {
    () => {
        "unhex((SELECT group_concat(hex(c.bytes), '' ORDER BY c.id) FROM cold c
            WHERE b.transcript IS NULL AND c.id BETWEEN t.id * 65536 AND t.id * 65536 + 65535))"
    };
}
pub(super) use compact;

/// How many parts a transcript may have.
const PARTS_MAX: i64 = 65_536;
/// How long a part is, in bytes: eight, with what a row costs, fill a page of 16 KiB.
const PART: usize = 2_016;

/// The compact form of the transcript that answers a wish.
const COLD: &str = concat!(
    "SELECT t.content_sha256, ",
    compact!(),
    " FROM wishes w JOIN transcripts t ON t.id = w.transcript LEFT JOIN bodies b ON b.transcript = t.id
    WHERE w.video = ?1 AND w.wish = ?2 AND NOT EXISTS (SELECT 1 FROM withdrawals WHERE video = ?1)"
);

/// The next bodies, and whether each is old enough.
const NEXT: &str = "SELECT some.transcript, t.video, t.revision, t.stored_at < ?2
    FROM (SELECT transcript FROM bodies WHERE transcript > ?1 ORDER BY transcript LIMIT ?3) some
    JOIN transcripts t ON t.id = some.transcript ORDER BY some.transcript";

const READ: &str = "SELECT b.content_sha256, b.source, b.length, b.about, b.segments
    FROM transcripts t JOIN bodies b ON b.transcript = t.id
    WHERE t.id = ?1 AND t.video = ?2 AND t.revision = ?3";

/// Takes a body away, while it is still this one: a number may have been given to another transcript since.
const TAKE: &str = "DELETE FROM bodies WHERE transcript = ?1 AND checksum = ?2 AND content_sha256 = ?3
    AND EXISTS (SELECT 1 FROM transcripts WHERE id = ?1 AND video = ?4 AND revision = ?5)";
const PUT: &str = "INSERT INTO cold (id, bytes) VALUES (?1, ?2)";
const SIZE: &str = "UPDATE transcripts SET body_bytes = ?2 WHERE id = ?1";

/// What must not grow with the archive, for the test of the plans.
#[cfg(test)]
pub(in crate::sqlite) const HOT: [&str; 6] = [COLD, NEXT, READ, TAKE, PUT, SIZE];

/// A transcript that may be compacted.
pub(in crate::sqlite) struct Key {
    transcript: i64,
    video: VideoId,
    revision: i64,
}

/// Puts the compact form in a body's place. Its outcome is whether the body was still there.
struct Replace {
    key: Key,
    checksum: u32,
    content_sha256: Vec<u8>,
    compact: Vec<u8>,
}

impl Change for Replace {
    type Outcome = bool;

    async fn make(&self, db: &mut SqliteConnection) -> Work<bool> {
        let Key { transcript, video, revision } = &self.key;
        let take = sqlx::query(TAKE).bind(*transcript).bind(self.checksum).bind(self.content_sha256.clone());
        let taken = take.bind(video.to_string()).bind(*revision).execute(&mut *db).await?;
        if taken.rows_affected() == 0 {
            return Ok(false);
        }
        put(db, *transcript, &self.compact).await?;
        let bytes = codec::column(self.compact.len() as u64)?;
        sqlx::query(SIZE).bind(*transcript).bind(bytes).execute(db).await?;
        Ok(true)
    }
}

/// Stores the compact form of a transcript, which has none.
pub(crate) async fn put(db: &mut SqliteConnection, transcript: i64, compact: &[u8]) -> Work<()> {
    let first = transcript.checked_mul(PARTS_MAX);
    let first = first.ok_or_else(|| Error::unexpected("a transcript has too large a number"))?;
    for (place, part) in (0..PARTS_MAX).zip(compact.chunks(PART)) {
        sqlx::query(PUT).bind(first + place).bind(part.to_vec()).execute(&mut *db).await?;
    }
    Ok(())
}

impl Rows for Database {
    type Key = Key;

    fn video(key: &Key) -> &VideoId {
        &key.video
    }

    async fn read(&self, key: &Key) -> Result<Option<Body>> {
        let ask = || sqlx::query(READ).bind(key.transcript).bind(key.video.to_string()).bind(key.revision);
        self.find_first(ask, |row| {
            Ok(Body {
                content_sha256: row.try_get(0)?,
                source: row.try_get(1)?,
                length: number(row.try_get(2)?)?,
                about: row.try_get(3)?,
                segments: row.try_get(4)?,
            })
        })
        .await
    }

    async fn replace(&self, key: Key, body: &Body, compact: Vec<u8>) -> Result<bool> {
        if compact.len().div_ceil(PART) as u64 > PARTS_MAX.unsigned_abs() {
            return Ok(false);
        }
        let (checksum, content_sha256) = (body.checksum(&key.video), body.content_sha256.clone());
        self.make(Replace { key, checksum, content_sha256, compact }).await
    }
}

impl SqliteArchive {
    /// The body that answers a wish, made of its compact form; none where it has none.
    pub(super) async fn thawed(&self, video: &VideoId, wish: &Wish) -> Result<Option<StoredBody>> {
        let form = |mut row: Row| Ok((row.take::<Vec<u8>>(0)?, row.take::<Option<Vec<u8>>>(1)?));
        match self.look_up(COLD, &names(video, wish), form).await? {
            Some((content_sha256, Some(compact))) => {
                cold::thawed(video.clone(), content_sha256, compact, &self.database.runtime).await.map(Some)
            }
            Some((_, None)) | None => Ok(None),
        }
    }

    pub(super) async fn compact_some(&self, ask: &Compact) -> Result<Compacted> {
        let after = codec::numbered(ask.page.after.as_ref())?;
        let limit = i64::try_from(ask.page.size()).unwrap_or(i64::MAX);
        let next = || sqlx::query(NEXT).bind(after).bind(ask.stored_before.as_millis()).bind(limit);
        let found = self.database.find(next, |row| {
            let key = Key {
                transcript: row.try_get(0)?,
                video: codec::video(row.try_get(1)?)?,
                revision: row.try_get(2)?,
            };
            Ok((key, row.try_get::<bool, _>(3)?))
        });
        let found = found.await?;
        let (looked_at, last) = (found.len(), found.last().map(|(key, _)| key.transcript));
        let old = found.into_iter().filter_map(|(key, is_old)| is_old.then_some(key)).collect();
        let compacted = compaction::compact(&self.database, old, &self.database.runtime).await?;
        // As many as were asked for: there may be more.
        let next = last.filter(|_| looked_at == ask.page.size()).map(|last| Cursor::new(last.to_string()));
        Ok(Compacted { looked_at: looked_at as u64, next, ..compacted })
    }
}
