//! Statements that read and store the rows of a table.

use transcript_core::{
    Result,
    ledger::rules::{LegRow, ShareRow},
};

use super::{
    row::{ColumnKind, CopyColumn, CopyRow, CopyValue, number_at, text_at},
    side::{CopyBatch, CopySide, column_index},
    table::{self, CopyTable},
};
use crate::{
    codec::{column, number},
    error::corrupt,
    postgres,
    sql::{Row, Value, values},
    store::archive::compaction::parts,
};

/// Most parameters of a statement; SQLite permits 32,766 and the protocol of PostgreSQL 65,535.
const VALUES_MAX: usize = 20_000;

const FILE_COLUMNS: &str = "SELECT name, type FROM pragma_table_info($1)";
const SERVER_COLUMNS: &str = "SELECT column_name::TEXT, data_type::TEXT FROM information_schema.columns
    WHERE table_schema = current_schema() AND table_name = $1";
const COLD_OF_VIDEOS: &str = "SELECT t.video, t.id, c.bytes FROM transcripts t
    JOIN cold c ON c.id BETWEEN t.id * 65536 AND t.id * 65536 + 65535
    WHERE t.video IN (SELECT value FROM json_each($1)) ORDER BY t.video, t.id, c.id";

/// A column of a table that has the alias `h`.
fn column_of(table: &CopyTable, name: &str, is_files: bool) -> String {
    match name {
        "video" if table.lacks_video(is_files) => "t.video".to_owned(),
        _ => format!("h.\"{}\"", table.stored_name(name, is_files)),
    }
}

/// The begin of a statement that reads a table, which has the alias `h`.
fn select(table: &CopyTable, columns: &[CopyColumn], is_files: bool) -> String {
    let names: Vec<String> = columns.iter().map(|column| column_of(table, &column.name, is_files)).collect();
    let names = match table.name {
        table::LEDGER_HOLDS if !is_files => postgres::HOLD_COLUMNS.to_owned(),
        _ => names.join(", "),
    };
    let join = if table.lacks_video(is_files) { " JOIN transcripts t ON t.id = h.transcript" } else { "" };
    format!("SELECT {names} FROM {} h{join}", table.name)
}

impl dyn CopySide + '_ {
    /// The copied columns of a table, by name.
    pub(super) async fn columns(&mut self, table: &'static CopyTable) -> Result<Vec<CopyColumn>> {
        let is_files = self.is_files();
        let column = |name: &str, kind| CopyColumn { name: name.to_owned(), kind };
        if is_files && table.name == table::COLD {
            return Ok(vec![
                column("body", ColumnKind::Bytes),
                column("transcript", ColumnKind::Number),
                column("video", ColumnKind::Text),
            ]);
        }
        let (statement, left_out) = match is_files {
            true => (FILE_COLUMNS, table.only_files),
            false => (SERVER_COLUMNS, table.only_server),
        };
        let decode = |row: &mut Row| Ok((row.take(0)?, row.take(1)?));
        let found: Vec<(String, String)> = self.find(statement, &values![table.name], decode).await?;
        let mut columns = Vec::new();
        for (name, kind) in found {
            let kind = match kind.as_str() {
                "INTEGER" | "bigint" => ColumnKind::Number,
                "boolean" => ColumnKind::Flag,
                "BLOB" | "bytea" => ColumnKind::Bytes,
                _ => ColumnKind::Text,
            };
            let renamed = table.number.filter(|number| table.stored_name(number, is_files) == name);
            if !left_out.contains(&name.as_str()) {
                columns.push(column(renamed.unwrap_or(&name), kind));
            }
        }
        match table.name {
            _ if table.lacks_video(is_files) => columns.push(column("video", ColumnKind::Text)),
            table::LEDGER_HOLDS if !is_files => columns.push(column("legs", ColumnKind::Text)),
            _ => {}
        }
        columns.sort_by(|a, b| a.name.cmp(&b.name));
        Ok(columns)
    }

    /// The number of rows in a table.
    pub(super) async fn count(&mut self, table: &'static CopyTable) -> Result<u64> {
        let count = match table.name {
            // Transcripts without a row in the table of bodies count as one body each.
            table::BODIES if self.is_files() => {
                "SELECT (SELECT count(*) FROM transcripts) - (SELECT count(*) FROM cold WHERE id % 65536 = 0)"
            }
            table::COLD if self.is_files() => "SELECT count(*) FROM cold WHERE id % 65536 = 0",
            name => &format!("SELECT count(*) FROM {name}"),
        };
        number(self.find_number(count, &[]).await?)
    }

    async fn select(
        &mut self,
        table: &'static CopyTable,
        columns: &[CopyColumn],
        filter: &str,
        values: &[Value<'_>],
    ) -> Result<Vec<CopyRow>> {
        let statement = format!("{} {filter}", select(table, columns, self.is_files()));
        let rows = self.table_rows(table, columns, &statement, values).await;
        rows.map_err(|fault| self.error(fault))
    }

    /// The next rows in key order, after the row with this key.
    pub(super) async fn page(
        &mut self,
        table: &'static CopyTable,
        columns: &[CopyColumn],
        after: Option<&[CopyValue]>,
    ) -> Result<Vec<CopyRow>> {
        let key: Vec<String> = table.key.iter().map(|name| column_of(table, name, self.is_files())).collect();
        let (order, after) = (key.join(", "), after.unwrap_or_default());
        let mut rows = Vec::new();
        // First the remaining rows with the same first key column, then those after it: each is a range of an index.
        for within_first in [true, false] {
            let remaining = (table.batch as usize).saturating_sub(rows.len());
            let filter = match (after, key.as_slice()) {
                ([_, _], [one, two]) if within_first => format!("WHERE {one} = $1 AND {two} > $2"),
                ([_, ..], [one, ..]) if !within_first => format!("WHERE {one} > $1"),
                ([], _) if !within_first => String::new(),
                _ => continue,
            };
            let values = if within_first { after } else { after.get(..1).unwrap_or_default() };
            let filter = format!("{filter} ORDER BY {order} LIMIT {remaining}");
            rows.extend(self.select(table, columns, &filter, values).await?);
            if rows.len() >= table.batch as usize {
                break;
            }
        }
        Ok(rows)
    }

    /// The next videos with any stored rows, in order.
    pub(super) async fn videos(&mut self, after: Option<&str>, limit: u32) -> Result<Vec<String>> {
        let statement = "SELECT DISTINCT video FROM tracks WHERE video > $1 ORDER BY video LIMIT $2";
        self.find(statement, &values![after.unwrap_or_default(), limit], |row| row.take(0)).await
    }

    /// The rows of some videos, each video's in key order.
    pub(super) async fn rows_of_videos(
        &mut self,
        table: &'static CopyTable,
        columns: &[CopyColumn],
        videos: &[String],
    ) -> Result<Vec<CopyRow>> {
        let is_files = self.is_files();
        let names = [Value::Texts(videos.iter().map(Into::into).collect())];
        if is_files && table.name == table::COLD {
            return self.joined_cold_rows(&names).await;
        }
        let any = if is_files { "IN (SELECT value FROM json_each($1))" } else { "= ANY ($1)" };
        let video = column_of(table, "video", is_files);
        let last = table.key.last().copied().unwrap_or_default();
        let filter = format!("WHERE {video} {any} ORDER BY {video}, h.\"{last}\"");
        self.select(table, columns, &filter, &names).await
    }

    /// The cold transcripts of some videos in a file, each joined from its parts.
    async fn joined_cold_rows(&mut self, videos: &[Value<'_>]) -> Result<Vec<CopyRow>> {
        let decode = |row: &mut Row| Ok((row.take(0)?, row.take(1)?, row.take(2)?));
        let parts: Vec<(String, i64, Vec<u8>)> = self.find(COLD_OF_VIDEOS, videos, decode).await?;
        let mut forms: Vec<(String, i64, Vec<u8>)> = Vec::new();
        for (video, transcript, part) in parts {
            match forms.last_mut().filter(|(_, last, _)| *last == transcript) {
                Some((.., bytes)) => bytes.extend_from_slice(&part),
                None => forms.push((video, transcript, part)),
            }
        }
        // In the order of the columns.
        let row = |(video, transcript, bytes): (String, i64, Vec<u8>)| {
            vec![Value::Bytes(bytes.into()), transcript.into(), video.into()]
        };
        Ok(forms.into_iter().map(row).collect())
    }

    /// The numbers of a file's table that are already used.
    pub(super) async fn used_numbers(
        &mut self,
        table: &'static CopyTable,
        numbers: &[i64],
    ) -> Result<Vec<i64>> {
        let Some(number) = table.number else { return Ok(Vec::new()) };
        let column = column_of(table, number, true);
        let filter = format!("WHERE {column} IN (SELECT value FROM json_each($1))");
        let statement = format!("SELECT {column} FROM {} h {filter}", table.name);
        self.find(&statement, &values![numbers.to_vec()], |row| row.take(0)).await
    }

    /// The largest number of a file's table; 0 if there is none.
    pub(super) async fn largest_number(&mut self, table: &'static CopyTable) -> Result<i64> {
        let Some(number) = table.number else { return Ok(0) };
        let column = column_of(table, number, true);
        self.find_number(&format!("SELECT coalesce(max({column}), 0) FROM {} h", table.name), &[]).await
    }
}

/// Names of columns, and rows of their values.
type TableContent = (Vec<String>, Vec<CopyRow>);

/// The statements that store rows, with their values.
pub(super) fn insert(is_files: bool, batch: CopyBatch) -> Result<Vec<(String, Vec<CopyValue>)>> {
    let CopyBatch { table, columns, rows } = batch;
    if table.name == table::CHANGES {
        // The only row exists from the start.
        let count = column_index(&columns, "count")?;
        let count = rows.first().map_or(0, |row| number_at(row, count));
        return Ok(vec![("UPDATE changes SET count = $1".to_owned(), values![count].into())]);
    }
    let names = columns.iter().map(|column| table.stored_name(&column.name, is_files).to_owned()).collect();
    let (names, rows) = match table.name {
        _ if table.lacks_video(is_files) => without_video(&columns, (names, rows))?,
        table::COLD if is_files => cold_parts(&columns, &rows)?,
        table::LEDGER_HOLDS if !is_files => holds(table, &columns, (names, rows))?,
        _ => (names, rows),
    };
    let (more_names, more_values) = match table.name {
        table::LIMITS if !is_files => (", version", ", 1"),
        table::LEDGER_POOLS if !is_files => (", version, last_entry", ", 1, 0"),
        _ => ("", ""),
    };
    let width = names.len().max(1);
    let names = format!("\"{}\"{more_names}", names.join("\", \""));
    let mut statements = Vec::new();
    let mut rows = rows.into_iter().peekable();
    while rows.peek().is_some() {
        let values: Vec<CopyValue> = rows.by_ref().take((VALUES_MAX / width).max(1)).flatten().collect();
        // SQLite looks up each numbered parameter in a list.
        let parameter = |index| if is_files { "?".to_owned() } else { format!("${index}") };
        let tuple = |first| {
            let parameters: Vec<String> = (first..first + width).map(parameter).collect();
            format!("({}{more_values})", parameters.join(", "))
        };
        let tuples: Vec<String> = (1..=values.len()).step_by(width).map(tuple).collect();
        let statement = format!("INSERT INTO {} ({names}) VALUES {}", table.name, tuples.join(", "));
        statements.push((statement, values));
    }
    Ok(statements)
}

/// Bodies, words or vectors for a file: there the row of the transcript has the video, and these rows do not.
fn without_video(columns: &[CopyColumn], content: TableContent) -> Result<TableContent> {
    let (mut names, mut rows) = content;
    let video = column_index(columns, "video")?;
    names.remove(video);
    rows.iter_mut().for_each(|row| drop(row.remove(video)));
    Ok((names, rows))
}

/// Cold transcripts for a file, each in its parts.
fn cold_parts(columns: &[CopyColumn], rows: &[CopyRow]) -> Result<TableContent> {
    let (transcript, body) = (column_index(columns, "transcript")?, column_index(columns, "body")?);
    let mut stored = Vec::new();
    for row in rows {
        if let Some(Value::Bytes(body)) = row.get(body) {
            let parts = parts(number_at(row, transcript), body)?;
            stored.extend(parts.map(|(id, part)| vec![id.into(), Value::Bytes(part.to_vec().into())]));
        }
    }
    Ok((vec!["id".to_owned(), "bytes".to_owned()], stored))
}

/// Holds for a server, where their legs are parallel arrays.
fn holds(table: &CopyTable, columns: &[CopyColumn], content: TableContent) -> Result<TableContent> {
    let (mut names, mut rows) = content;
    let legs_at = column_index(columns, "legs")?;
    names.remove(legs_at);
    names.extend(table.only_server.iter().copied().map(str::to_owned));
    for row in &mut rows {
        let legs: Vec<LegRow> = legs(text_at(row, legs_at))?;
        row.remove(legs_at);
        let shares: Vec<(i64, &ShareRow)> = (1_i64..)
            .zip(&legs)
            .flat_map(|(index, leg)| leg.shares.iter().map(move |share| (index, share)))
            .collect();
        row.extend([
            texts(legs.iter().map(|leg| &leg.wallet)),
            numbers(legs.iter().map(|leg| leg.amount))?,
            numbers(legs.iter().map(|leg| leg.spent))?,
            Value::Numbers(shares.iter().map(|(index, _)| *index).collect()),
            texts(shares.iter().map(|(_, share)| &share.bucket)),
            numbers(shares.iter().map(|(_, share)| share.cap))?,
            numbers(shares.iter().map(|(_, share)| share.amount))?,
        ]);
    }
    Ok((names, rows))
}

/// The legs of a hold from their text in files.
pub(super) fn legs(text: &str) -> Result<Vec<LegRow>> {
    serde_json::from_str(text).map_err(|_| corrupt("a hold of the ledger is damaged"))
}

fn texts<'a>(texts: impl Iterator<Item = &'a String>) -> CopyValue {
    Value::Texts(texts.map(|text| text.clone().into()).collect())
}

fn numbers(numbers: impl Iterator<Item = u64>) -> Result<CopyValue> {
    Ok(Value::Numbers(numbers.map(column).collect::<Result<_>>()?))
}
