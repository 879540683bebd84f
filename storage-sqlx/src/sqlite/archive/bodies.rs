//! Reads of stored bodies, which are sent without decoding.

use transcript_core::{
    Result,
    archive::{StoredBody, TrackSelector},
    video::VideoId,
};

use super::{SqliteArchive, names};
use crate::{
    body::check_stored,
    codec::{number, small},
    error::DbResult,
    sql::Row,
};

/// The body of a selector; nulls if the transcript is stored in another form.
///
/// A withdrawn video has no row.
pub(super) const BODY: &str = "
SELECT b.content_sha256, b.checksum, b.length, b.source, b.segments
FROM wishes w LEFT JOIN bodies b ON b.transcript = w.transcript
WHERE w.video = ?1 AND w.wish = ?2 AND NOT EXISTS (SELECT 1 FROM withdrawals WHERE video = ?1)";

/// Result of reading a body.
pub(super) enum BodyRead {
    /// The body, with a valid checksum.
    Body(StoredBody),
    /// The transcript is stored in another form.
    OtherForm,
    /// There is no transcript.
    Absent,
}

impl SqliteArchive {
    /// Reads the body of a selector.
    pub(super) async fn read_body(&self, video: &VideoId, selector: &TrackSelector) -> Result<BodyRead> {
        let keys = names(video, selector);
        let found = self.database.find_first(BODY, &keys, |row| BodyRead::decode(video, row));
        found.await.map(|found| found.unwrap_or(BodyRead::Absent))
    }
}

impl BodyRead {
    fn decode(video: &VideoId, row: &mut Row) -> DbResult<Self> {
        let Some(content_sha256) = row.take::<Option<Vec<u8>>>(0)? else { return Ok(Self::OtherForm) };
        let (stored, length) = (small(row.take(1)?)?, number(row.take(2)?)?);
        Ok(Self::Body(check_stored(
            video,
            row.take(3)?,
            content_sha256,
            length,
            row.take(4)?,
            stored.into(),
        )?))
    }
}
