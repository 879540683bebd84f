//! Lazy transcripts: one statement loads the row, which is decoded on first access.

use std::sync::Arc;

use transcript_core::{
    Result, Timestamp,
    archive::{LazyTranscript, StoredTranscript, TrackSelector},
    video::VideoId,
};

use super::{SqliteArchive, names};
use crate::{
    body::{EncodedBody, damaged, misplaced},
    codec::{number, small},
    error::DbResult,
    sql::Row,
};

/// A transcript in the form of [`crate::body`]. Withdrawn ones and other stored forms have no row.
pub(super) const UNREAD: &str = "
SELECT c.count, t.revision, t.parser_version, t.stored_at, b.checksum, b.content_sha256, b.source, b.length, b.about,
    b.segments
FROM wishes w
JOIN transcripts t ON t.id = w.transcript
JOIN bodies b ON b.transcript = t.id
JOIN changes c ON c.only_row = 1
WHERE w.video = ?1 AND w.wish = ?2 AND NOT EXISTS (SELECT 1 FROM withdrawals WHERE video = ?1)";

/// Approximate memory of a row in addition to its values.
const ROW_BYTES: usize = 512;

/// The row of a transcript with a valid checksum.
#[derive(Debug)]
struct LazyRow {
    video: VideoId,
    changes: u64,
    revision: u32,
    parser_version: u32,
    stored_at: Timestamp,
    body: EncodedBody,
}

impl SqliteArchive {
    /// Finds the transcript of a selector, not decoded.
    pub(super) async fn find_unread(
        &self,
        video: &VideoId,
        selector: &TrackSelector,
    ) -> Result<Option<Arc<dyn LazyTranscript>>> {
        let keys = names(video, selector);
        let found = self.database.find_first(UNREAD, &keys, |row| LazyRow::decode(video.clone(), row));
        Ok(found.await?.map(|unread| Arc::new(unread) as _))
    }
}

impl LazyRow {
    fn decode(video: VideoId, row: &mut Row) -> DbResult<Self> {
        let changes = number(row.take(0)?)?;
        let (revision, parser_version) = (small(row.take(1)?)?, small(row.take(2)?)?);
        let (stored_at, stored) = (Timestamp::from_millis(row.take(3)?), small(row.take(4)?)?);
        let body = EncodedBody {
            content_sha256: row.take(5)?,
            source: row.take(6)?,
            length: number(row.take(7)?)?,
            about: row.take(8)?,
            segments: row.take(9)?,
        };
        if body.checksum(&video) != stored {
            return Err(damaged().into());
        }
        Ok(Self { video, changes, revision, parser_version, stored_at, body })
    }
}

impl LazyTranscript for LazyRow {
    fn revision(&self) -> u32 {
        self.revision
    }

    fn change_counter(&self) -> u64 {
        self.changes
    }

    fn memory_bytes(&self) -> u64 {
        self.body.bytes() + ROW_BYTES as u64
    }

    fn load(&self) -> Result<StoredTranscript> {
        let transcript = self.body.unpack()?;
        // The digest covers the video, but not the row in which it is stored.
        if transcript.video != self.video {
            return Err(misplaced());
        }
        Ok(StoredTranscript {
            transcript: Arc::new(transcript),
            revision: self.revision,
            content_sha256: self.body.content_sha256.clone(),
            parser_version: self.parser_version,
            stored_at: self.stored_at,
        })
    }
}
