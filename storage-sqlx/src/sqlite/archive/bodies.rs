//! Reading what is sent as it is stored.

use transcript_core::{
    Result,
    archive::{StoredBody, Wish},
    video::VideoId,
};

use super::{SqliteArchive, names};
use crate::{
    body::sent,
    codec::{number, small},
    error::Work,
    sqlite::lookups::Row,
};

/// The body that answers a wish; of what is stored in another form, nulls. What is withdrawn is no row.
pub(super) const BODY: &str = "
SELECT b.content_sha256, b.checksum, b.length, b.source, b.segments
FROM wishes w LEFT JOIN bodies b ON b.transcript = w.transcript
WHERE w.video = ?1 AND w.wish = ?2 AND NOT EXISTS (SELECT 1 FROM withdrawals WHERE video = ?1)";

/// What is known of a body.
pub(super) enum Read {
    /// Here it is, and its checksum is right.
    Body(StoredBody),
    /// It is in another form.
    Elsewhere,
    /// There is none.
    Nothing,
}

impl SqliteArchive {
    /// The body that answers a wish.
    pub(super) async fn read_body(&self, video: &VideoId, wish: &Wish) -> Result<Read> {
        self.look_up(BODY, &names(video, wish), |row| Read::of(video, row))
            .await
            .map(|found| found.unwrap_or(Read::Nothing))
    }
}

impl Read {
    fn of(video: &VideoId, mut row: Row) -> Work<Self> {
        let Some(content_sha256) = row.take::<Option<Vec<u8>>>(0)? else { return Ok(Self::Elsewhere) };
        let (stored, length) = (small(row.take(1)?)?, number(row.take(2)?)?);
        Ok(Self::Body(sent(video, row.take(3)?, content_sha256, length, row.take(4)?, stored.into())?))
    }
}
