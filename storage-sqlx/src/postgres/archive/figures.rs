//! How much the archive holds, without counting it: see the table `figures`.

use sqlx::{PgConnection, Row, postgres::PgRow};
use transcript_core::archive::Stats;

use crate::{codec::number, error::Work, postgres::database::chance};

/// How many parts a figure has.
const PARTS: u64 = 64;

/// What has ended is forgotten, and operators withdraw by hand: those are few, and counted.
pub(super) const STATS: &str = "SELECT sum(videos)::BIGINT, sum(transcripts)::BIGINT,
        (SELECT count(*) FROM absences), (SELECT count(*) FROM withdrawals),
        sum(links)::BIGINT, sum(bytes)::BIGINT, sum(compact)::BIGINT
    FROM figures";

const ADD: &str =
    "UPDATE figures SET videos = videos + $2, transcripts = transcripts + $3, bytes = bytes + $4,
    compact = compact + $5 WHERE part = $1";

/// What a video adds to the figures.
pub(super) const OF_VIDEO: &str = "SELECT count(*), coalesce(sum(body_bytes), 0)::BIGINT,
    (SELECT count(*) FROM cold WHERE video = $1) FROM transcripts WHERE video = $1";

/// What a change adds to the figures.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Difference {
    pub(super) videos: i64,
    pub(super) transcripts: i64,
    pub(super) bytes: i64,
    pub(super) compact: i64,
}

impl Difference {
    /// What it is that a video goes, of a row of [`OF_VIDEO`].
    pub(super) fn without(row: &PgRow) -> Work<Self> {
        let (transcripts, bytes, compact): (i64, i64, i64) =
            (row.try_get(0)?, row.try_get(1)?, row.try_get(2)?);
        Ok(Self { videos: -transcripts.min(1), transcripts: -transcripts, bytes: -bytes, compact: -compact })
    }

    /// Adds it.
    pub(super) async fn add(self, db: &mut PgConnection) -> Work<()> {
        let add = sqlx::query(ADD).bind(part()).bind(self.videos).bind(self.transcripts);
        add.bind(self.bytes).bind(self.compact).execute(db).await?;
        Ok(())
    }
}

/// One of the parts, by chance.
pub(super) fn part() -> i64 {
    i64::try_from(chance(PARTS)).unwrap_or_default()
}

/// The figures in a row of [`STATS`].
pub(super) fn stats(row: &PgRow) -> Work<Stats> {
    Ok(Stats {
        videos: number(row.try_get(0)?)?,
        transcripts: number(row.try_get(1)?)?,
        absences: number(row.try_get(2)?)?,
        withdrawn: number(row.try_get(3)?)?,
        links: number(row.try_get(4)?)?,
        bytes: number(row.try_get(5)?)?,
        compact: number(row.try_get(6)?)?,
    })
}
