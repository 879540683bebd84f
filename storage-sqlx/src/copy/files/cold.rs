//! Cold transcripts, which are several rows each in a file and one row each on a server.

use sqlx::{QueryBuilder, Row as _, SqliteConnection};
use transcript_core::Result;

use super::{
    super::{
        row::{CopyColumn, CopyRow, CopyValue},
        side::{CopyBatch, column_index},
    },
    SqliteSide, push_list,
};
use crate::{error::DbResult, sqlite::put_cold};

/// Stores cold transcripts, each in its parts.
pub(super) async fn insert(batch: &CopyBatch, db: &mut SqliteConnection) -> DbResult<()> {
    let (transcript, body) =
        (column_index(&batch.columns, "transcript")?, column_index(&batch.columns, "body")?);
    for row in &batch.rows {
        if let (Some(transcript), Some(CopyValue::Bytes(body))) = (row.get(transcript), row.get(body)) {
            put_cold(db, transcript.number(), body).await?;
        }
    }
    Ok(())
}

/// Loads the cold transcripts of some videos and joins their parts.
pub(super) async fn rows_of_videos(
    side: &mut SqliteSide,
    columns: &[CopyColumn],
    videos: &[String],
) -> Result<Vec<CopyRow>> {
    let mut query = QueryBuilder::new(
        "SELECT t.video, t.id, c.bytes FROM transcripts t
         JOIN cold c ON c.id BETWEEN t.id * 65536 AND t.id * 65536 + 65535 WHERE t.video IN",
    );
    push_list(&mut query, videos.iter().cloned().map(CopyValue::Text));
    query.push(" ORDER BY t.video, t.id, c.id");
    let fault = side.fault();
    let mut forms: Vec<(String, i64, Vec<u8>)> = Vec::new();
    for row in side.rows(query).await? {
        let (video, transcript): (String, i64) =
            (row.try_get(0).map_err(&fault)?, row.try_get(1).map_err(&fault)?);
        let part: &[u8] = row.try_get(2).map_err(&fault)?;
        match forms.last_mut().filter(|(_, last, _)| *last == transcript) {
            Some((.., bytes)) => bytes.extend_from_slice(part),
            None => forms.push((video, transcript, part.to_vec())),
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
