//! Changes of videos: how many, and which videos a cache or the search index must read again.

use transcript_core::{Result, archive::ChangedVideo};

use crate::{
    codec,
    error::DbResult,
    sql::{Database, Row, Session, Statement, WriteTx, sql, values},
};

pub(super) const COUNT: &str = "SELECT count FROM changes";
pub(super) const INCREMENT_CHANGES: &str = "UPDATE changes SET count = count + $1 WHERE only_row = 1";
/// Records a video whose earlier responses are outdated. Triggers of SQLite do not record that details changed, nor
/// that a video got another transcript.
pub(super) const RECORD_CHANGED_VIDEO: &str = "INSERT INTO changed_videos (video, change)
    SELECT $1, count FROM changes WHERE only_row = 1
    ON CONFLICT (video) DO UPDATE SET change = excluded.change";
/// The newest change first: a withdrawal does not wait for the purges of all earlier changes.
pub(super) const CHANGED_VIDEOS: &str = "SELECT video, change FROM changed_videos
    WHERE (change, video) < ($1, $2) ORDER BY change DESC, video DESC LIMIT $3";
/// A video that changed again since it was listed stays.
pub(super) const DELETE_CHANGED_VIDEO: &str = "DELETE FROM changed_videos WHERE video = $1 AND change = $2";
/// Records a video that the search index must read again, with a new number.
pub(super) const RECORD_UNINDEXED_VIDEO: Statement = sql! {
    sqlite: "REPLACE INTO unindexed_videos (video) VALUES ($1)",
    postgres: "INSERT INTO unindexed_videos (video) VALUES ($1)
        ON CONFLICT (video) DO UPDATE SET change = DEFAULT",
};
pub(super) const UNINDEXED_VIDEOS: &str = "SELECT video, change FROM unindexed_videos
    WHERE (change, video) > ($1, $2) ORDER BY change LIMIT $3";
/// The highest number that a file has given to a change. Without a row, there was none.
pub(super) const NEWEST: &str = "SELECT seq FROM sqlite_sequence WHERE name = 'unindexed_videos'";
/// A video that changed again since it was listed stays.
pub(super) const DELETE_UNINDEXED_VIDEO: &str =
    "DELETE FROM unindexed_videos WHERE video = $1 AND change = $2";
/// Most changed videos in one list.
const LISTED_MAX: u32 = 1_000;

/// Deletes listed videos that did not change again, with a statement for one.
pub(super) struct DeleteListedVideosTx {
    pub(super) videos: Vec<ChangedVideo>,
    pub(super) statement: &'static str,
}

impl WriteTx for DeleteListedVideosTx {
    type Outcome = ();

    async fn run<S: Session>(&self, db: &mut S) -> DbResult<()> {
        for ChangedVideo { video, change } in &self.videos {
            let row = values![video.to_string(), codec::column(*change)?];
            db.execute(self.statement, &row).await?;
        }
        Ok(())
    }
}

/// Records a video that did not change, on SQLite too.
pub(super) struct RecordUnindexedVideoTx(pub(super) String);

impl WriteTx for RecordUnindexedVideoTx {
    type Outcome = ();

    async fn run<S: Session>(&self, db: &mut S) -> DbResult<()> {
        db.execute(RECORD_UNINDEXED_VIDEO, &values![&self.0]).await?;
        Ok(())
    }
}

/// The changed videos that a statement lists after this change, at most `limit`.
///
/// Those with a malformed name stay in the table for a later version, and the next ones are read instead.
pub(super) async fn list<D: Database>(
    database: &D,
    statement: &'static str,
    mut change: i64,
    limit: u32,
) -> Result<Vec<ChangedVideo>> {
    let limit = limit.min(LISTED_MAX);
    let (mut listed, mut video, mut rows_max) = (Vec::new(), String::new(), limit);
    loop {
        let rows = {
            let after = values![change, &video, rows_max];
            let decode = |row: &mut Row| Ok((row.take::<i64>(1)?, row.take::<String>(0)?));
            database.find(statement, &after, decode).await?
        };
        let is_end = rows.len() < rows_max as usize;
        for (number, name) in rows {
            (change, video) = (number, name);
            let known = codec::listed_video(&video);
            let number = codec::number(change)?;
            listed.extend(known.map(|video| ChangedVideo { video, change: number }));
        }
        listed.truncate(limit as usize);
        if is_end || listed.len() >= limit as usize {
            return Ok(listed);
        }
        rows_max = LISTED_MAX;
    }
}

/// Counts a change of what is known of a video with transcripts: earlier responses lack it.
pub(super) async fn count_changed_details<S: Session>(
    db: &mut S,
    video: &str,
    is_changed: bool,
) -> DbResult<()> {
    if is_changed {
        db.execute(INCREMENT_CHANGES, &values![1_i64]).await?;
        db.execute(RECORD_CHANGED_VIDEO, &values![video]).await?;
    }
    Ok(())
}
