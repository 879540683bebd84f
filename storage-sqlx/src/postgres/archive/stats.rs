//! Archive statistics, which are updated with each write: see the table `figures`.

use sqlx::{PgConnection, Row, postgres::PgRow};
use transcript_core::archive::ArchiveStats;

use crate::{codec::number, error::DbResult, postgres::database::random_below};

/// Number of rows over which the statistics are spread.
const PARTS: u64 = 64;

/// Absences and withdrawals are few, because they expire or are made by operators: they are counted.
pub(super) const STATS: &str = "SELECT sum(videos)::BIGINT, sum(transcripts)::BIGINT,
        (SELECT count(*) FROM absences), (SELECT count(*) FROM withdrawals),
        sum(links)::BIGINT, sum(bytes)::BIGINT, sum(compact)::BIGINT
    FROM figures";

const ADD_DELTA: &str =
    "UPDATE figures SET videos = videos + $2, transcripts = transcripts + $3, bytes = bytes + $4,
    compact = compact + $5 WHERE part = $1";

/// The share of a video in the statistics.
pub(super) const OF_VIDEO: &str = "SELECT count(*), coalesce(sum(body_bytes), 0)::BIGINT,
    (SELECT count(*) FROM cold WHERE video = $1) FROM transcripts WHERE video = $1";

/// Change of the statistics by a write.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct StatsDelta {
    pub(super) videos: i64,
    pub(super) transcripts: i64,
    pub(super) bytes: i64,
    pub(super) compact: i64,
}

impl StatsDelta {
    /// The change when a video is deleted, from a row of [`OF_VIDEO`].
    pub(super) fn for_deletion(row: &PgRow) -> DbResult<Self> {
        let (transcripts, bytes, compact): (i64, i64, i64) =
            (row.try_get(0)?, row.try_get(1)?, row.try_get(2)?);
        Ok(Self { videos: -transcripts.min(1), transcripts: -transcripts, bytes: -bytes, compact: -compact })
    }

    /// Applies the change.
    pub(super) async fn add(self, db: &mut PgConnection) -> DbResult<()> {
        let add = sqlx::query(ADD_DELTA).bind(part()).bind(self.videos).bind(self.transcripts);
        add.bind(self.bytes).bind(self.compact).execute(db).await?;
        Ok(())
    }
}

/// A random row of the statistics.
pub(super) fn part() -> i64 {
    i64::try_from(random_below(PARTS)).unwrap_or_default()
}

/// Decodes a row of [`STATS`].
pub(super) fn stats(row: &PgRow) -> DbResult<ArchiveStats> {
    Ok(ArchiveStats {
        videos: number(row.try_get(0)?)?,
        transcripts: number(row.try_get(1)?)?,
        absences: number(row.try_get(2)?)?,
        withdrawn: number(row.try_get(3)?)?,
        links: number(row.try_get(4)?)?,
        bytes: number(row.try_get(5)?)?,
        compact: number(row.try_get(6)?)?,
    })
}
