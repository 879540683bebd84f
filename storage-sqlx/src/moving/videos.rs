//! What belongs to a video: its tracks, its transcripts with their bodies, and which of them answers a wish.
//!
//! They are carried together, for they name each other by numbers: in a file no two rows have the same, on a server no
//! two of a video. So a number may have to become another one on the way, and those that name it with it.

use std::collections::HashMap;

use transcript_core::{Error, Result};

use super::{
    row::{Column, Row, Sum, Value},
    side::{Batch, Side, place},
    table::{BODIES, COLD, TRACKS, TRANSCRIPTS, VIDEO_TABLES, WISHES},
    work::{Wanted, free_numbers},
};
use crate::{body::Body, codec, cold, columns};

/// The largest number that a transcript may have in a file: those of its compact form are made of it.
const NUMBER_MAX: i64 = i64::MAX / 65_536 - 1;
/// How many videos are carried together.
pub(super) const BATCH: u32 = 32;

/// A body that was archived before bodies had a table, in the form of today.
#[derive(Debug)]
pub(super) struct OldBody {
    transcript: i64,
    video: String,
    checksum: u32,
    body: Body,
}

impl OldBody {
    /// Reads it and packs it anew.
    pub(super) fn packed_anew(
        transcript: i64,
        content_sha256: Vec<u8>,
        length: i64,
        bytes: Vec<u8>,
    ) -> Result<Self> {
        let old = columns::Columns { content_sha256, length: codec::number(length)?, bytes };
        let words = old.unpack()?;
        let body = Body::pack(&words)?;
        Ok(Self { transcript, video: words.video.to_string(), checksum: body.checksum(&words.video), body })
    }

    fn row(&self, columns: &[Column]) -> Result<Row> {
        let body = &self.body;
        let value = |column: &Column| {
            Ok(match column.name.as_str() {
                "video" => Value::Text(self.video.clone()),
                "transcript" => Value::Number(self.transcript),
                "content_sha256" => Value::Bytes(body.content_sha256.clone()),
                "source" => Value::Text(body.source.clone()),
                "length" => Value::Number(codec::column(body.length)?),
                "checksum" => Value::Number(self.checksum.into()),
                "about" => Value::Text(body.about.clone()),
                "segments" => Value::Bytes(body.segments.clone()),
                other => return Err(Error::unexpected(format!("a body has no {other}"))),
            })
        };
        columns.iter().map(value).collect()
    }
}

/// The carried columns of [`VIDEO_TABLES`].
pub(super) type Shapes = [Vec<Column>; 5];

/// Some videos with all that belongs to them.
#[derive(Debug)]
pub(super) struct Videos {
    pub(super) names: Vec<String>,
    /// The rows of [`VIDEO_TABLES`], by video.
    rows: [Vec<Row>; 5],
}

/// Numbers by video and what they were.
type Numbers = HashMap<(String, i64), i64>;

impl Videos {
    /// The next ones; none at the end.
    pub(super) async fn next(
        side: &mut dyn Side,
        shapes: &Shapes,
        after: Option<&str>,
    ) -> Result<Option<Self>> {
        let names = side.videos(after, BATCH).await?;
        if names.is_empty() {
            return Ok(None);
        }
        let mut rows: [Vec<Row>; 5] = Default::default();
        for ((table, columns), rows) in VIDEO_TABLES.iter().zip(shapes).zip(&mut rows) {
            *rows = side.of_videos(table, columns, &names).await?;
        }
        let mut videos = Self { names, rows };
        let old = side.old_bodies(&videos.names).await?;
        videos.take_in(&old, shapes)?;
        Ok(Some(videos))
    }

    /// How many rows there are.
    pub(super) fn count(&self) -> u64 {
        self.rows.iter().map(|rows| rows.len() as u64).sum()
    }

    fn take_in(&mut self, old: &[OldBody], shapes: &Shapes) -> Result<()> {
        if old.is_empty() {
            return Ok(());
        }
        let [_, transcripts, bodies, ..] = &mut self.rows;
        let [_, columns, body_columns, ..] = shapes;
        let (id, bytes) = (place(columns, "id")?, place(columns, "body_bytes")?);
        for body in old {
            bodies.push(body.row(body_columns)?);
            for row in transcripts.iter_mut().filter(|row| at(row, id) == body.transcript) {
                set(row, bytes, codec::column(body.body.bytes())?);
            }
        }
        let (video, transcript) = (place(body_columns, "video")?, place(body_columns, "transcript")?);
        bodies.sort_by(|a, b| (a.get(video), a.get(transcript)).cmp(&(b.get(video), b.get(transcript))));
        Ok(())
    }

    /// The rows as a target takes them.
    pub(super) async fn batches(mut self, target: &mut dyn Side, shapes: &Shapes) -> Result<Vec<Batch>> {
        let mut columns = shapes.clone();
        if target.is_files() {
            let tracks = self.renumbered(target, 0, shapes).await?;
            let transcripts = self.renumbered(target, 1, shapes).await?;
            self.follow(1, "track", &tracks, shapes)?;
            self.follow(2, "transcript", &transcripts, shapes)?;
            self.follow(3, "transcript", &transcripts, shapes)?;
            self.follow(4, "transcript", &transcripts, shapes)?;
            self.add_lengths(&mut columns)?;
        }
        let tables = VIDEO_TABLES.iter().zip(columns).zip(self.rows);
        Ok(tables.map(|((table, columns), rows)| Batch { table, columns, rows }).collect())
    }

    /// Gives the rows of a table numbers that are free; what each was, by video.
    async fn renumbered(&mut self, target: &mut dyn Side, table: usize, shapes: &Shapes) -> Result<Numbers> {
        let (Some(columns), Some(rows), Some(known)) =
            (shapes.get(table), self.rows.get_mut(table), VIDEO_TABLES.get(table))
        else {
            return Ok(Numbers::new());
        };
        let (id, video) = (place(columns, "id")?, place(columns, "video")?);
        let wanted: Vec<Wanted<'_>> =
            rows.iter().map(|row| Wanted { group: Some(text(row, video)), number: at(row, id) }).collect();
        let free = match wanted.iter().any(|wanted| wanted.number > NUMBER_MAX) {
            false => free_numbers(target, known, &wanted, 0).await?,
            // Rows come in the order of their numbers, and so they stay.
            true => (target.largest(known).await?.saturating_add(1)..).take(wanted.len()).collect(),
        };
        let before: Vec<(String, i64)> =
            rows.iter().map(|row| (text(row, video).to_owned(), at(row, id))).collect();
        for (row, number) in rows.iter_mut().zip(&free) {
            set(row, id, *number);
        }
        Ok(before.into_iter().zip(free).collect())
    }

    /// Has the rows of a table name others by their new numbers.
    fn follow(&mut self, table: usize, column: &str, numbers: &Numbers, shapes: &Shapes) -> Result<()> {
        let (Some(columns), Some(rows)) = (shapes.get(table), self.rows.get_mut(table)) else {
            return Ok(());
        };
        let (names, video) = (place(columns, column)?, place(columns, "video")?);
        for row in rows {
            let new = numbers.get(&(text(row, video).to_owned(), at(row, names)));
            let new =
                new.ok_or_else(|| crate::error::corrupt("an archived row names another that is not there"))?;
            set(row, names, *new);
        }
        Ok(())
    }

    /// In files a transcript says how long its body is, and has an empty one where it lies in its own table.
    fn add_lengths(&mut self, columns: &mut Shapes) -> Result<()> {
        let [_, transcript_columns, body_columns, _, cold_columns] = columns;
        let [_, transcripts, bodies, _, cold] = &mut self.rows;
        let (transcript, length) = (place(body_columns, "transcript")?, place(body_columns, "length")?);
        let lengths: HashMap<i64, i64> =
            bodies.iter().map(|row| (at(row, transcript), at(row, length))).collect();
        let (transcript, form) = (place(cold_columns, "transcript")?, place(cold_columns, "body")?);
        let forms: HashMap<i64, &Value> =
            cold.iter().filter_map(|row| Some((at(row, transcript), row.get(form)?))).collect();
        let (id, content) = (place(transcript_columns, "id")?, place(transcript_columns, "content_sha256")?);
        for (name, kind) in [("body_length", super::row::Kind::Number), ("body", super::row::Kind::Bytes)] {
            transcript_columns.push(Column { name: name.to_owned(), kind });
        }
        for row in transcripts {
            let length = match (lengths.get(&at(row, id)), forms.get(&at(row, id))) {
                (Some(length), _) => *length,
                (None, Some(Value::Bytes(form))) => length_of(form, row.get(content))?,
                (None, _) => return Err(crate::error::corrupt("an archived transcript has no body")),
            };
            row.push(Value::Number(length));
            row.push(Value::Bytes(Vec::new()));
        }
        Ok(())
    }

    /// Adds each video as one, with places instead of numbers.
    pub(super) fn sum(&self, shapes: &Shapes, sum: &mut Sum) -> Result<()> {
        let mut of_video: HashMap<&str, (u64, Vec<Value>)> = HashMap::new();
        let mut places: [Places; 2] = Default::default();
        for (table, (rows, columns)) in self.rows.iter().zip(shapes).enumerate() {
            let named = [TRACKS, TRANSCRIPTS, BODIES, WISHES, COLD].get(table).copied().unwrap_or_default();
            let video = place(columns, "video")?;
            for row in rows {
                let name = text(row, video);
                let (count, values) = of_video.entry(name).or_default();
                *count += 1;
                values.push(Value::Text(named.to_owned()));
                for (column, value) in columns.iter().zip(row) {
                    values.push(match (named, column.name.as_str()) {
                        (TRACKS, "id") => places[0].next(name, value.number()),
                        (TRANSCRIPTS, "id") => places[1].next(name, value.number()),
                        (TRANSCRIPTS, "track") => places[0].known(name, value.number()),
                        (BODIES | WISHES | COLD, "transcript") => places[1].known(name, value.number()),
                        _ => value.clone(),
                    });
                }
            }
        }
        for (rows, values) in of_video.values() {
            sum.add(*rows, values);
        }
        Ok(())
    }
}

/// The place of each row among those of its video: they come in the order of their numbers.
#[derive(Debug, Default)]
struct Places {
    known: Numbers,
    /// How many rows each video has.
    count: HashMap<String, i64>,
}

impl Places {
    fn next(&mut self, video: &str, number: i64) -> Value {
        let count = self.count.entry(video.to_owned()).or_default();
        let place = *count;
        *count += 1;
        self.known.insert((video.to_owned(), number), place);
        Value::Number(place)
    }

    fn known(&self, video: &str, number: i64) -> Value {
        self.known.get(&(video.to_owned(), number)).map_or(Value::None, |place| Value::Number(*place))
    }
}

/// How long the segments of a compact form are as they are sent, before compression. That it can be read is seen on the way.
fn length_of(form: &[u8], content_sha256: Option<&Value>) -> Result<i64> {
    let Some(Value::Bytes(content_sha256)) = content_sha256 else {
        return Err(crate::error::corrupt("an archived transcript has no digest"));
    };
    codec::column(Body::pack(&cold::unpack(form, content_sha256)?)?.length)
}

fn at(row: &Row, place: usize) -> i64 {
    row.get(place).map_or(0, Value::number)
}

fn text(row: &Row, place: usize) -> &str {
    row.get(place).map(Value::text).unwrap_or_default()
}

fn set(row: &mut Row, place: usize, number: i64) {
    if let Some(value) = row.get_mut(place) {
        *value = Value::Number(number);
    }
}
