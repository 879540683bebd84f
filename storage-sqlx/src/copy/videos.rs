//! The rows of a video: its tracks, its transcripts with their bodies, and its selectors.
//!
//! They are copied together because they reference each other by number: in a file numbers are unique, on a server only
//! within a video. So the copy may replace numbers, together with all references to them.

use std::collections::HashMap;

use transcript_core::{Error, Result};

use super::{
    copier::{NumberRequest, free_numbers},
    row::{ColumnKind, CopyColumn, CopyRow, CopyValue, RowChecksum, number_at, set, text_at},
    side::{CopyBatch, CopySide, column_index},
    table::{BODIES, COLD, SELECTORS, TRACKS, TRANSCRIPTS, VECTORS, VIDEO_TABLES, WORDS},
};
use crate::{
    body::EncodedBody,
    body_v1, codec, cold,
    sql::{Value, values},
};

const LEGACY_BODIES: &str = "SELECT id, content_sha256, body_length, body FROM transcripts t
    WHERE NOT EXISTS (SELECT 1 FROM bodies b WHERE b.transcript = t.id)
        AND NOT EXISTS (SELECT 1 FROM cold WHERE id = t.id * 65536)
        AND video IN (SELECT value FROM json_each($1))";
/// The largest number of a transcript in a file: the ids of its cold parts are derived from it.
const NUMBER_MAX: i64 = i64::MAX / 65_536 - 1;
/// Number of videos per batch.
pub(super) const BATCH: u32 = 32;

/// A body archived before the table of bodies existed, in the current form.
#[derive(Debug)]
pub(super) struct LegacyBody {
    transcript: i64,
    video: String,
    checksum: u32,
    body: EncodedBody,
}

impl LegacyBody {
    /// Bodies of these videos that a file does not yet have in its table of bodies.
    async fn load(side: &mut dyn CopySide, videos: &[String]) -> Result<Vec<Self>> {
        if !side.is_files() {
            return Ok(Vec::new());
        }
        let videos = values![videos.iter().map(String::as_str).collect::<Vec<_>>()];
        side.find(LEGACY_BODIES, &videos, |row| {
            Ok(Self::repack(row.take(0)?, row.take(1)?, row.take(2)?, row.take(3)?)?)
        })
        .await
    }

    /// Decodes an old body and encodes it in the current form.
    fn repack(transcript: i64, content_sha256: Vec<u8>, length: i64, bytes: Vec<u8>) -> Result<Self> {
        let old = body_v1::BodyV1 { content_sha256, length: codec::number(length)?, bytes };
        let transcript_v1 = old.unpack()?;
        let body = EncodedBody::pack(&transcript_v1)?;
        Ok(Self {
            transcript,
            video: transcript_v1.video.to_string(),
            checksum: body.checksum(&transcript_v1.video),
            body,
        })
    }

    fn row(&self, columns: &[CopyColumn]) -> Result<CopyRow> {
        let body = &self.body;
        let value = |column: &CopyColumn| {
            Ok(match column.name.as_str() {
                "video" => self.video.clone().into(),
                "transcript" => self.transcript.into(),
                "content_sha256" => Value::Bytes(body.content_sha256.clone().into()),
                "source" => body.source.clone().into(),
                "length" => codec::column(body.length)?.into(),
                "checksum" => self.checksum.into(),
                "about" => body.about.clone().into(),
                // Of an earlier version.
                "about_checksum" => Value::Null,
                "segments" => Value::Bytes(body.segments.to_vec().into()),
                other => return Err(Error::unexpected(format!("a body has no column {other}"))),
            })
        };
        columns.iter().map(value).collect()
    }
}

/// The copied columns of each table in [`VIDEO_TABLES`].
pub(super) type VideoColumns = [Vec<CopyColumn>; 7];

/// Some videos with all their rows.
#[derive(Debug)]
pub(super) struct VideoCopier {
    pub(super) names: Vec<String>,
    /// The rows of [`VIDEO_TABLES`], by video.
    rows: [Vec<CopyRow>; 7],
}

/// New numbers by video and old number.
type VideoNumbers = HashMap<(String, i64), i64>;

impl VideoCopier {
    /// The next videos. `None` at the end.
    pub(super) async fn next(
        side: &mut dyn CopySide,
        video_columns: &VideoColumns,
        after: Option<&str>,
    ) -> Result<Option<Self>> {
        let names = side.videos(after, BATCH).await?;
        if names.is_empty() {
            return Ok(None);
        }
        let mut rows: [Vec<CopyRow>; 7] = Default::default();
        for ((table, columns), rows) in VIDEO_TABLES.iter().zip(video_columns).zip(&mut rows) {
            *rows = side.rows_of_videos(table, columns, &names).await?;
        }
        let mut videos = Self { names, rows };
        let legacy = LegacyBody::load(side, &videos.names).await?;
        videos.add_legacy_bodies(&legacy, video_columns)?;
        Ok(Some(videos))
    }

    /// Number of rows.
    pub(super) fn count(&self) -> u64 {
        self.rows.iter().map(|rows| rows.len() as u64).sum()
    }

    fn add_legacy_bodies(&mut self, legacy: &[LegacyBody], video_columns: &VideoColumns) -> Result<()> {
        if legacy.is_empty() {
            return Ok(());
        }
        let [_, transcripts, bodies, ..] = &mut self.rows;
        let [_, columns, body_columns, ..] = video_columns;
        let (id, bytes) = (column_index(columns, "id")?, column_index(columns, "body_bytes")?);
        for body in legacy {
            bodies.push(body.row(body_columns)?);
            for row in transcripts.iter_mut().filter(|row| number_at(row, id) == body.transcript) {
                set(row, bytes, codec::column(body.body.bytes())?);
            }
        }
        let (video, transcript) =
            (column_index(body_columns, "video")?, column_index(body_columns, "transcript")?);
        bodies.sort_by(|a, b| (a.get(video), a.get(transcript)).cmp(&(b.get(video), b.get(transcript))));
        Ok(())
    }

    /// The rows in the form of the target.
    pub(super) async fn batches(
        mut self,
        target: &mut dyn CopySide,
        video_columns: &VideoColumns,
    ) -> Result<Vec<CopyBatch>> {
        let mut columns = video_columns.clone();
        if target.is_files() {
            let tracks = self.renumber(target, 0, video_columns).await?;
            let transcripts = self.renumber(target, 1, video_columns).await?;
            self.update_references(1, "track", &tracks, video_columns)?;
            for table in 2..VIDEO_TABLES.len() {
                self.update_references(table, "transcript", &transcripts, video_columns)?;
            }
            self.add_lengths(&mut columns)?;
        }
        let tables = VIDEO_TABLES.iter().zip(columns).zip(self.rows);
        Ok(tables.map(|((table, columns), rows)| CopyBatch { table, columns, rows }).collect())
    }

    /// Replaces used numbers of a table; returns the new numbers by video and old number.
    async fn renumber(
        &mut self,
        target: &mut dyn CopySide,
        table: usize,
        video_columns: &VideoColumns,
    ) -> Result<VideoNumbers> {
        let (Some(columns), Some(rows), Some(known)) =
            (video_columns.get(table), self.rows.get_mut(table), VIDEO_TABLES.get(table))
        else {
            return Ok(VideoNumbers::new());
        };
        let (id, video) = (column_index(columns, "id")?, column_index(columns, "video")?);
        let requests: Vec<NumberRequest<'_>> = rows
            .iter()
            .map(|row| NumberRequest { group: Some(text_at(row, video)), number: number_at(row, id) })
            .collect();
        let free = match requests.iter().any(|request| request.number > NUMBER_MAX) {
            false => free_numbers(target, known, &requests, 0).await?,
            // Rows are read in the order of their numbers, and the new numbers keep that order.
            true => (target.largest_number(known).await?.saturating_add(1)..).take(requests.len()).collect(),
        };
        let before: Vec<(String, i64)> =
            rows.iter().map(|row| (text_at(row, video).to_owned(), number_at(row, id))).collect();
        for (row, number) in rows.iter_mut().zip(&free) {
            set(row, id, *number);
        }
        Ok(before.into_iter().zip(free).collect())
    }

    /// Replaces the references to renumbered rows in a table.
    fn update_references(
        &mut self,
        table: usize,
        column: &str,
        numbers: &VideoNumbers,
        video_columns: &VideoColumns,
    ) -> Result<()> {
        let (Some(columns), Some(rows)) = (video_columns.get(table), self.rows.get_mut(table)) else {
            return Ok(());
        };
        let (names, video) = (column_index(columns, column)?, column_index(columns, "video")?);
        for row in rows {
            let new = numbers.get(&(text_at(row, video).to_owned(), number_at(row, names)));
            let new = new.ok_or_else(|| crate::error::corrupt("an archived row references a missing row"))?;
            set(row, names, *new);
        }
        Ok(())
    }

    /// Adds the columns of files.
    ///
    /// A transcript has the length of its body, and an empty body because the body has its own table.
    fn add_lengths(&mut self, columns: &mut VideoColumns) -> Result<()> {
        let [_, transcript_columns, body_columns, _, cold_columns, word_columns, _] = columns;
        let [_, transcripts, bodies, _, cold, words, _] = &mut self.rows;
        let (transcript, length) =
            (column_index(body_columns, "transcript")?, column_index(body_columns, "length")?);
        let lengths: HashMap<i64, i64> =
            bodies.iter().map(|row| (number_at(row, transcript), number_at(row, length))).collect();
        let (transcript, form) =
            (column_index(cold_columns, "transcript")?, column_index(cold_columns, "body")?);
        let forms: HashMap<i64, &CopyValue> =
            cold.iter().filter_map(|row| Some((number_at(row, transcript), row.get(form)?))).collect();
        let (transcript, bytes) =
            (column_index(word_columns, "transcript")?, column_index(word_columns, "bytes")?);
        let words: HashMap<i64, &CopyValue> =
            words.iter().filter_map(|row| Some((number_at(row, transcript), row.get(bytes)?))).collect();
        let (id, content) =
            (column_index(transcript_columns, "id")?, column_index(transcript_columns, "content_sha256")?);
        for (name, kind) in [("body_length", ColumnKind::Number), ("body", ColumnKind::Bytes)] {
            transcript_columns.push(CopyColumn { name: name.to_owned(), kind });
        }
        for row in transcripts {
            let length = match (lengths.get(&number_at(row, id)), forms.get(&number_at(row, id))) {
                (Some(length), _) => *length,
                (None, Some(Value::Bytes(form))) => {
                    cold_length(form, words.get(&number_at(row, id)).copied(), row.get(content))?
                }
                (None, _) => return Err(crate::error::corrupt("an archived transcript has no body")),
            };
            row.push(length.into());
            row.push(Value::Bytes(Vec::new().into()));
        }
        Ok(())
    }

    /// Adds the videos to a checksum, with row indexes in place of numbers, which differ between the sides.
    pub(super) fn add_to_checksum(
        &self,
        video_columns: &VideoColumns,
        checksum: &mut RowChecksum,
    ) -> Result<()> {
        let mut of_video: HashMap<&str, (u64, Vec<CopyValue>)> = HashMap::new();
        let mut indexes: [VideoPositions; 2] = Default::default();
        for (table, (rows, columns)) in self.rows.iter().zip(video_columns).enumerate() {
            let table_name = VIDEO_TABLES.get(table).map_or("", |table| table.name);
            let video = column_index(columns, "video")?;
            for row in rows {
                let name = text_at(row, video);
                let (count, values) = of_video.entry(name).or_default();
                *count += 1;
                values.push(table_name.into());
                for (index, (column, value)) in columns.iter().zip(row).enumerate() {
                    let number = number_at(row, index);
                    values.push(match (table_name, column.name.as_str()) {
                        (TRACKS, "id") => indexes[0].next(name, number),
                        (TRANSCRIPTS, "id") => indexes[1].next(name, number),
                        (TRANSCRIPTS, "track") => indexes[0].index(name, number),
                        (BODIES | SELECTORS | COLD | WORDS | VECTORS, "transcript") => {
                            indexes[1].index(name, number)
                        }
                        _ => value.clone(),
                    });
                }
            }
        }
        for (rows, values) in of_video.values() {
            checksum.add(*rows, values);
        }
        Ok(())
    }
}

/// The index of each row within its video. Rows are added in the order of their numbers.
#[derive(Debug, Default)]
struct VideoPositions {
    indexes: VideoNumbers,
    /// Number of rows by video.
    count: HashMap<String, i64>,
}

impl VideoPositions {
    fn next(&mut self, video: &str, number: i64) -> CopyValue {
        let count = self.count.entry(video.to_owned()).or_default();
        let index = *count;
        *count += 1;
        self.indexes.insert((video.to_owned(), number), index);
        index.into()
    }

    fn index(&self, video: &str, number: i64) -> CopyValue {
        self.indexes.get(&(video.to_owned(), number)).copied().into()
    }
}

/// Uncompressed length of a cold transcript's segments. Also checks that it decodes.
fn cold_length(form: &[u8], words: Option<&CopyValue>, content_sha256: Option<&CopyValue>) -> Result<i64> {
    let words = words.and_then(|words| if let Value::Bytes(words) = words { Some(&**words) } else { None });
    let Some(Value::Bytes(content_sha256)) = content_sha256 else {
        return Err(crate::error::corrupt("an archived transcript has no digest"));
    };
    codec::column(EncodedBody::pack(&cold::unpack(form, words, content_sha256)?)?.length)
}
