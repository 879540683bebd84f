//! The compact form in PostgreSQL.

use sqlx::{PgConnection, Row};
use transcript_core::{
    Result,
    archive::{Compact, Compacted, StoredBody},
    ids::Cursor,
    video::VideoId,
};

use super::{
    PostgresArchive,
    figures::part,
    read::{Sent, read_cursor},
};
use crate::{
    body::Body,
    codec::{self, number},
    cold::{
        self,
        compaction::{self, Rows},
    },
    error::Work,
    postgres::{
        database::{Change, Database, Read},
        text::{own, read},
    },
};

/// The next bodies, and whether each is old enough.
const NEXT: &str = "SELECT n.video, n.transcript, t.revision, t.stored_at < $3
    FROM (SELECT video, transcript FROM bodies WHERE (video, transcript) > ($1, $2)
        ORDER BY video, transcript LIMIT $4) n
    JOIN transcripts t ON t.video = n.video AND t.id = n.transcript ORDER BY n.video, n.transcript";

const READ: &str = "SELECT b.content_sha256, b.source, b.length, b.about, b.segments
    FROM transcripts t JOIN bodies b ON b.video = t.video AND b.transcript = t.id
    WHERE t.video = $1 AND t.id = $2 AND t.revision = $3";

/// Puts the compact form in the place of a body, while that is still this one.
const REPLACE: &str = "WITH taken AS (
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

/// A transcript that may be compacted.
pub(in crate::postgres) struct Key {
    video: VideoId,
    transcript: i64,
    revision: i64,
}

/// Its outcome is whether the body was still there.
struct Replace {
    key: Key,
    checksum: u32,
    content_sha256: Vec<u8>,
    compact: Vec<u8>,
    /// The bytes that the body takes.
    before: i64,
}

impl Change for Replace {
    type Outcome = bool;
    const IS_STEP: bool = true;

    async fn make(&self, db: &mut PgConnection) -> Work<bool> {
        let replace = sqlx::query(REPLACE)
            .bind(own(&self.key.video.to_string()))
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

impl Rows for Database {
    type Key = Key;

    fn video(key: &Key) -> &VideoId {
        &key.video
    }

    async fn read(&self, key: &Key) -> Result<Option<Body>> {
        let ask = Read::new(READ).text(&key.video.to_string()).number(key.transcript).number(key.revision);
        self.find_first(ask, |row| {
            Ok(Body {
                content_sha256: row.try_get(0)?,
                source: read(row, 1)?,
                length: number(row.try_get(2)?)?,
                about: row.try_get(3)?,
                segments: row.try_get(4)?,
            })
        })
        .await
    }

    async fn replace(&self, key: Key, body: &Body, compact: Vec<u8>) -> Result<bool> {
        let (checksum, content_sha256) = (body.checksum(&key.video), body.content_sha256.clone());
        let before = codec::column(body.bytes())?;
        self.make(Replace { key, checksum, content_sha256, compact, before }).await
    }
}

impl PostgresArchive {
    /// What is sent of a video, whichever form it has.
    pub(super) async fn ready(&self, video: &VideoId, sent: Sent) -> Result<StoredBody> {
        match sent {
            Sent::Body(body) => Ok(body),
            Sent::Compact { content_sha256, compact } => {
                cold::thawed(video.clone(), content_sha256, compact, self.database.runtime()).await
            }
        }
    }

    pub(super) async fn compact_some(&self, ask: &Compact) -> Result<Compacted> {
        let (video, transcript) = ask.page.after.as_ref().map_or(Ok((String::new(), 0)), read_cursor)?;
        let limit = i64::try_from(ask.page.size()).unwrap_or(i64::MAX);
        let next = Read::new(NEXT).text(&video).number(transcript);
        let next = next.number(ask.stored_before.as_millis()).number(limit);
        let found = self.database.find(next, |row| {
            let key = Key {
                video: codec::video(&read(row, 0)?)?,
                transcript: row.try_get(1)?,
                revision: row.try_get(2)?,
            };
            Ok((key, row.try_get::<bool, _>(3)?))
        });
        let found = found.await?;
        let looked_at = found.len();
        let last = found.last().filter(|_| looked_at == ask.page.size());
        let next = last.map(|(key, _)| Cursor::new(format!("{}/{}", key.video, key.transcript)));
        let old = found.into_iter().filter_map(|(key, is_old)| is_old.then_some(key)).collect();
        let compacted = compaction::compact(&self.database, old, self.database.runtime()).await?;
        Ok(Compacted { looked_at: looked_at as u64, next, ..compacted })
    }
}
