//! Cold transcripts, which are several rows each in a file and one row each on a server.

use futures_util::FutureExt;
use transcript_core::{Error, Result};

use super::{
    super::{
        row::{CopyColumn, CopyRow, CopyValue},
        side::{CopyBatch, column_index},
    },
    SqliteSide, bind_all, placeholders,
};
use crate::{error::DbResult, sqlite::session::SqliteSession, store::archive::compaction::put_parts};

/// Stores cold transcripts, each in its parts.
pub(super) fn insert(batch: &CopyBatch, db: &mut SqliteSession) -> DbResult<()> {
    let (transcript, body) =
        (column_index(&batch.columns, "transcript")?, column_index(&batch.columns, "body")?);
    let waits = || Error::unexpected("a write to a SQLite database waited for something else");
    for row in &batch.rows {
        if let (Some(transcript), Some(CopyValue::Bytes(body))) = (row.get(transcript), row.get(body)) {
            put_parts(db, transcript.number(), body).now_or_never().ok_or_else(waits)??;
        }
    }
    Ok(())
}

/// Loads the cold transcripts of some videos and joins their parts.
pub(super) fn rows_of_videos(
    side: &SqliteSide,
    columns: &[CopyColumn],
    videos: &[String],
) -> Result<Vec<CopyRow>> {
    let statement = format!(
        "SELECT t.video, t.id, c.bytes FROM transcripts t
         JOIN cold c ON c.id BETWEEN t.id * 65536 AND t.id * 65536 + 65535
         WHERE t.video IN {} ORDER BY t.video, t.id, c.id",
        placeholders(videos.len())
    );
    let parts = side.find(&statement, &bind_all(videos), |row| {
        Ok((row.take::<String>(0)?, row.take::<i64>(1)?, row.take::<Vec<u8>>(2)?))
    })?;
    let mut forms: Vec<(String, i64, Vec<u8>)> = Vec::new();
    for (video, transcript, part) in parts {
        match forms.last_mut().filter(|(_, last, _)| *last == transcript) {
            Some((.., bytes)) => bytes.extend_from_slice(&part),
            None => forms.push((video, transcript, part)),
        }
    }
    let row = |(video, transcript, bytes): (String, i64, Vec<u8>)| -> Result<CopyRow> {
        let mut row = vec![CopyValue::None; columns.len()];
        for (name, value) in [
            ("video", CopyValue::Text(video)),
            ("transcript", CopyValue::Number(transcript)),
            ("body", CopyValue::Bytes(bytes)),
        ] {
            let index = column_index(columns, name)?;
            if let Some(cell) = row.get_mut(index) {
                *cell = value;
            }
        }
        Ok(row)
    };
    forms.into_iter().map(row).collect()
}
