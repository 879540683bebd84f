//! Transcripts in the compact form, which are several rows each in a file and one row each on a server.

use sqlx::{QueryBuilder, Row as _, SqliteConnection};
use transcript_core::Result;

use super::{
    super::{
        row::{Column, Row, Value},
        side::{Batch, place},
    },
    Files, listed,
};
use crate::{error::Work, sqlite::put_cold};

/// Stores transcripts in the compact form, each in its parts.
pub(super) async fn insert(batch: &Batch, db: &mut SqliteConnection) -> Work<()> {
    let (transcript, body) = (place(&batch.columns, "transcript")?, place(&batch.columns, "body")?);
    for row in &batch.rows {
        if let (Some(transcript), Some(Value::Bytes(body))) = (row.get(transcript), row.get(body)) {
            put_cold(db, transcript.number(), body).await?;
        }
    }
    Ok(())
}

/// The compact forms of some videos' transcripts, the parts of each put together.
pub(super) async fn of_videos(side: &mut Files, columns: &[Column], videos: &[String]) -> Result<Vec<Row>> {
    let mut ask = QueryBuilder::new(
        "SELECT t.video, t.id, c.bytes FROM transcripts t
         JOIN cold c ON c.id BETWEEN t.id * 65536 AND t.id * 65536 + 65535 WHERE t.video IN",
    );
    listed(&mut ask, videos.iter().cloned().map(Value::Text));
    ask.push(" ORDER BY t.video, t.id, c.id");
    let fault = side.fault();
    let mut forms: Vec<(String, i64, Vec<u8>)> = Vec::new();
    for row in side.rows(ask).await? {
        let (video, transcript): (String, i64) =
            (row.try_get(0).map_err(&fault)?, row.try_get(1).map_err(&fault)?);
        let part: &[u8] = row.try_get(2).map_err(&fault)?;
        match forms.last_mut().filter(|(_, last, _)| *last == transcript) {
            Some((.., bytes)) => bytes.extend_from_slice(part),
            None => forms.push((video, transcript, part.to_vec())),
        }
    }
    let row = |(video, transcript, bytes): (String, i64, Vec<u8>)| -> Result<Row> {
        let mut row = vec![Value::None; columns.len()];
        for (name, value) in [
            ("video", Value::Text(video)),
            ("transcript", Value::Number(transcript)),
            ("body", Value::Bytes(bytes)),
        ] {
            let place = place(columns, name)?;
            if let Some(cell) = row.get_mut(place) {
                *cell = value;
            }
        }
        Ok(row)
    };
    forms.into_iter().map(row).collect()
}
