//! Transcripts that are found and left unread: one statement, and its row as it came.

use std::sync::Arc;

use transcript_core::{
    Result, Timestamp,
    archive::{StoredTranscript, Unread, Wish},
    video::VideoId,
};

use super::{SqliteArchive, names};
use crate::{
    body::{Body, damaged, misplaced},
    codec::{number, small},
    error::Work,
    sqlite::lookups::Row,
};

/// A transcript in the form of [`crate::body`]. What is withdrawn, or stored in another form, is no row.
pub(super) const UNREAD: &str = "
SELECT c.count, t.revision, t.parser_version, t.stored_at, b.checksum, b.content_sha256, b.source, b.length, b.about,
    b.segments
FROM wishes w
JOIN transcripts t ON t.id = w.transcript
JOIN bodies b ON b.transcript = t.id
JOIN changes c ON c.only_row = 1
WHERE w.video = ?1 AND w.wish = ?2 AND NOT EXISTS (SELECT 1 FROM withdrawals WHERE video = ?1)";

/// What a row takes beside its values, about.
const ROW_BYTES: usize = 512;

/// A transcript whose checksum is right, as its row has it.
#[derive(Debug)]
struct UnreadRow {
    video: VideoId,
    changes: u64,
    revision: u32,
    parser_version: u32,
    stored_at: Timestamp,
    body: Body,
}

impl SqliteArchive {
    /// The transcript of a wish, unread.
    pub(super) async fn find_unread(&self, video: &VideoId, wish: &Wish) -> Result<Option<Arc<dyn Unread>>> {
        let found =
            self.look_up(UNREAD, &names(video, wish), |row| UnreadRow::of(video.clone(), row)).await?;
        Ok(found.map(|unread| Arc::new(unread) as _))
    }
}

impl UnreadRow {
    fn of(video: VideoId, mut row: Row) -> Work<Self> {
        let changes = number(row.take(0)?)?;
        let (revision, parser_version) = (small(row.take(1)?)?, small(row.take(2)?)?);
        let (stored_at, stored) = (Timestamp::from_millis(row.take(3)?), small(row.take(4)?)?);
        let body = Body {
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

impl Unread for UnreadRow {
    fn revision(&self) -> u32 {
        self.revision
    }

    fn changes(&self) -> u64 {
        self.changes
    }

    fn bytes(&self) -> u64 {
        self.body.bytes() + ROW_BYTES as u64
    }

    fn read(&self) -> Result<StoredTranscript> {
        let transcript = self.body.unpack()?;
        // The digest covers the video, but not where it lies.
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
