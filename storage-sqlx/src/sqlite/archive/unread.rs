//! Transcripts that are found and left unread: one statement, and its row as it came.

use std::sync::Arc;

use sqlx::{Row, sqlite::SqliteRow};
use transcript_core::{
    Result, Timestamp,
    archive::{StoredTranscript, Unread, Wish},
    video::VideoId,
};

use super::{SqliteArchive, bodies::DIGEST_BYTES};
use crate::{
    body::{Body, checksum, damaged, misplaced},
    error::Work,
};

/// A transcript in the form of [`crate::body`], in two columns: each is copied for the reader, in memory of its own.
/// What is withdrawn, or stored in another form, is no row.
pub(in crate::sqlite) const UNREAD: &str = "
SELECT CAST(b.content_sha256 || c.count || ' ' || t.revision || ' ' || t.parser_version || ' ' || t.stored_at || ' '
        || b.checksum || ' ' || b.length || ' ' || octet_length(b.source) || ' ' || b.source || b.about AS BLOB),
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
    head: Head,
    row: SqliteRow,
}

/// What a row says beside the segments.
#[derive(Debug)]
struct Head {
    content_sha256: Vec<u8>,
    changes: u64,
    revision: u32,
    parser_version: u32,
    stored_at: Timestamp,
    checksum: u32,
    length: u64,
    source: String,
    about: String,
}

impl SqliteArchive {
    /// The transcript of a wish, unread.
    pub(super) async fn find_unread(&self, video: &VideoId, wish: &Wish) -> Result<Option<Arc<dyn Unread>>> {
        let names = (video.to_string(), wish.to_string());
        let ask = || sqlx::query(UNREAD).bind(names.0.clone()).bind(names.1.clone());
        let found = async {
            let Some(row) = self.database.readers.row(ask).await? else { return Ok(None) };
            UnreadRow::of(video.clone(), row).map(Some)
        };
        let found: Work<_> = found.await;
        let found = found.map_err(|fault| fault.into_error(&self.database.file))?;
        Ok(found.map(|unread| Arc::new(unread) as _))
    }
}

impl UnreadRow {
    fn of(video: VideoId, row: SqliteRow) -> Work<Self> {
        let head = Head::read(row.try_get(0)?).ok_or_else(damaged)?;
        let sum = checksum(&video, &head.source, &head.content_sha256, head.length, row.try_get(1)?);
        if sum == head.checksum { Ok(Self { video, head, row }) } else { Err(damaged().into()) }
    }

    fn segments(&self) -> &[u8] {
        // They were read before.
        self.row.try_get(1).unwrap_or_default()
    }
}

impl Head {
    /// Reads what [`UNREAD`] has put together; none where that cannot be.
    fn read(head: &[u8]) -> Option<Self> {
        let (content_sha256, rest) = head.split_at_checked(DIGEST_BYTES)?;
        let mut fields = std::str::from_utf8(rest).ok()?.splitn(8, ' ');
        let changes = fields.next()?.parse().ok()?;
        let revision = fields.next()?.parse().ok()?;
        let parser_version = fields.next()?.parse().ok()?;
        let stored_at = Timestamp::from_millis(fields.next()?.parse().ok()?);
        let (checksum, length) = (fields.next()?.parse().ok()?, fields.next()?.parse().ok()?);
        let source_bytes = fields.next()?.parse().ok()?;
        let (source, about) = fields.next()?.split_at_checked(source_bytes)?;
        Some(Self {
            content_sha256: content_sha256.to_vec(),
            changes,
            revision,
            parser_version,
            stored_at,
            checksum,
            length,
            source: source.to_owned(),
            about: about.to_owned(),
        })
    }
}

impl Unread for UnreadRow {
    fn revision(&self) -> u32 {
        self.head.revision
    }

    fn changes(&self) -> u64 {
        self.head.changes
    }

    fn bytes(&self) -> u64 {
        (self.segments().len() + self.head.about.len() + ROW_BYTES) as u64
    }

    fn read(&self) -> Result<StoredTranscript> {
        let head = &self.head;
        let body = Body {
            content_sha256: head.content_sha256.clone(),
            source: head.source.clone(),
            length: head.length,
            about: head.about.clone(),
            segments: self.segments().to_vec(),
        };
        let transcript = body.unpack()?;
        // The digest covers the video, but not where it lies.
        if transcript.video != self.video {
            return Err(misplaced());
        }
        Ok(StoredTranscript {
            transcript: Arc::new(transcript),
            revision: head.revision,
            content_sha256: body.content_sha256,
            parser_version: head.parser_version,
            stored_at: head.stored_at,
        })
    }
}
