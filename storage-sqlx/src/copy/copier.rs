//! Steps of a copy: begin or continue, copy, compare, end.

use std::collections::HashSet;

use serde::{Deserialize, Serialize};
use transcript_core::{Error, Result};

use super::{
    CopyProgress, CopySummary, PARTS, check,
    row::{ColumnKind, CopyColumn, CopyValue, number_at, set, text_at},
    side::{CopyBatch, CopySide, CopyState, column_index},
    table::{CopyTable, LEDGER_ENTRIES, TablePart, VIDEO_TABLES, VIDEOS},
    videos::{VideoColumns, VideoCopier},
};
use crate::sql::values;

/// The newest copied entry of a wallet in a file.
const NEWEST_ENTRY: &str = "SELECT coalesce(max(seq), 0) FROM ledger_entries WHERE wallet = $1";
/// The table in which a target stores the position of the copy.
pub(super) const STATE_TABLE: &str = "verbatim_copying";

/// Position of the copy within a part.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
enum CopyPosition {
    /// Rows are left to copy.
    At {
        /// Number of finished tables of the part; videos count as one.
        tables: usize,
        /// The key of the last copied row, or the last video.
        after: Option<Vec<CopyValue>>,
        /// Number of finished rows.
        rows: u64,
    },
    /// Both parts were compared: no rows are left to copy.
    Compared,
}

impl CopyPosition {
    const BEGIN: Self = Self::At { tables: 0, after: None, rows: 0 };

    fn read(state: &CopyState) -> Result<Self> {
        serde_json::from_str(&state.position)
            .map_err(|_| Error::unexpected("the stored position of the copy is damaged"))
    }

    fn text(&self) -> Result<String> {
        crate::codec::json(self)
    }
}

/// A unit of work in a part; units are copied in order.
#[derive(Debug)]
pub(super) enum CopyUnit {
    Videos(Box<VideoColumns>),
    Table(&'static CopyTable, Vec<CopyColumn>),
}

impl CopyUnit {
    pub(super) fn name(&self) -> &'static str {
        match self {
            Self::Videos(_) => VIDEOS,
            Self::Table(table, _) => table.name,
        }
    }

    /// The units of a part, with the columns of both sides.
    async fn list(
        part: &'static TablePart,
        source: &mut dyn CopySide,
        target: &mut dyn CopySide,
    ) -> Result<Vec<Self>> {
        let mut units = Vec::new();
        if part.has_videos() {
            let mut video_columns = VideoColumns::default();
            for (table, shape) in VIDEO_TABLES.iter().zip(&mut video_columns) {
                *shape = columns_of(table, source, target).await?;
            }
            units.push(Self::Videos(Box::new(video_columns)));
        }
        for table in part.tables {
            units.push(Self::Table(table, columns_of(table, source, target).await?));
        }
        Ok(units)
    }
}

/// The copied columns of a table, which must be equal on both sides.
///
/// The kinds are the server's, because only a server has flags.
async fn columns_of(
    table: &'static CopyTable,
    source: &mut dyn CopySide,
    target: &mut dyn CopySide,
) -> Result<Vec<CopyColumn>> {
    let (source_columns, target_columns) = (source.columns(table).await?, target.columns(table).await?);
    let normalized = |column: &CopyColumn| {
        let kind = if column.kind == ColumnKind::Flag { ColumnKind::Number } else { column.kind };
        (column.name.clone(), kind)
    };
    if source_columns.iter().map(normalized).ne(target_columns.iter().map(normalized)) {
        return Err(Error::unexpected(format!(
            "the table {} has different columns in {} and {}",
            table.name,
            source.name(),
            target.name()
        )));
    }
    Ok(if source.is_files() { target_columns } else { source_columns })
}

/// Describes the source in the state of a copy.
pub(super) fn describe([main, archive]: &[Box<dyn CopySide>; 2]) -> String {
    format!("{} and {}", main.name(), archive.name())
}

/// The state of an unfinished copy in each target.
///
/// # Errors
/// [`transcript_core::ErrorKind::Conflict`] if it has another source.
pub(super) async fn read_states(
    source: &str,
    [main, archive]: &mut [Box<dyn CopySide>; 2],
) -> Result<(Option<CopyState>, Option<CopyState>)> {
    let states = (main.copy_state().await?, archive.copy_state().await?);
    for (state, target) in [(&states.0, &*main), (&states.1, &*archive)] {
        if let Some(state) = state.as_ref().filter(|state| state.source != source) {
            return Err(Error::conflict(format!(
                "the copy to {} is incomplete and has another source, {}: continue that copy, or delete the target",
                target.name(),
                state.source
            )));
        }
    }
    if states.0.is_none() && states.1.is_some() {
        return Err(Error::conflict(format!("{} belongs to another incomplete copy", archive.name())));
    }
    Ok(states)
}

/// Runs a copy.
pub(super) struct Copier<'a> {
    sources: &'a mut [Box<dyn CopySide>; 2],
    targets: &'a mut [Box<dyn CopySide>; 2],
    on_progress: &'a mut (dyn FnMut(CopyProgress) + Send),
    done: u64,
    of: u64,
}

impl<'a> Copier<'a> {
    pub(super) fn new(
        sources: &'a mut [Box<dyn CopySide>; 2],
        targets: &'a mut [Box<dyn CopySide>; 2],
        on_progress: &'a mut (dyn FnMut(CopyProgress) + Send),
    ) -> Self {
        Self { sources, targets, on_progress, done: 0, of: 0 }
    }

    pub(super) async fn run(mut self) -> Result<CopySummary> {
        let (positions, resumed) = self.initial().await?;
        let mut units = Vec::new();
        for (part, (source, target)) in PARTS.iter().zip(self.sources.iter_mut().zip(self.targets.iter_mut()))
        {
            units.push(CopyUnit::list(part, source.as_mut(), target.as_mut()).await?);
        }
        let rows = self.count().await?;
        for (part, (units, position)) in units.iter().zip(positions).enumerate() {
            self.copy(part, units, position).await?;
        }
        for target in self.targets.iter_mut() {
            target.count_archive().await?;
        }
        // Each run compares, also after one that has compared: the source may have changed since then.
        self.compare(&units).await?;
        let compared = CopyPosition::Compared.text()?;
        for target in self.targets.iter_mut() {
            if target.copy_state().await?.is_some() {
                target.store(Vec::new(), &compared).await?;
            }
        }
        // The main part last: without it no server starts.
        for target in self.targets.iter_mut().rev() {
            if target.copy_state().await?.is_some() {
                target.end_copy().await?;
            }
        }
        Ok(CopySummary { rows, resumed })
    }

    /// Begins the copy or continues it. Returns the position of each part, and whether a copy existed.
    async fn initial(&mut self) -> Result<([CopyPosition; 2], bool)> {
        let source = describe(self.sources);
        let states = read_states(&source, self.targets).await?;
        let initial = CopyState { source, position: CopyPosition::BEGIN.text()? };
        let [main, archive] = &mut *self.targets;
        if states.0.is_none() {
            main.begin_copy(&initial).await?;
            if let Err(error) = archive.begin_copy(&initial).await {
                main.end_copy().await?;
                return Err(error);
            }
            return Ok(([CopyPosition::BEGIN, CopyPosition::BEGIN], false));
        }
        let at_main = CopyPosition::read(&main.take_over().await?)?;
        let at_archive = match (&states.1, &at_main) {
            (Some(_), _) => CopyPosition::read(&archive.take_over().await?)?,
            // The copy of this part has already ended.
            (None, CopyPosition::Compared) => CopyPosition::Compared,
            // The first run was killed between the two `begin_copy` calls.
            (None, CopyPosition::At { .. }) => {
                archive.begin_copy(&initial).await?;
                CopyPosition::BEGIN
            }
        };
        Ok(([at_main, at_archive], true))
    }

    /// Counts the rows to copy, by table.
    async fn count(&mut self) -> Result<Vec<(&'static str, u64)>> {
        let mut rows = Vec::new();
        for (part, source) in PARTS.iter().zip(self.sources.iter_mut()) {
            for table in part.all() {
                rows.push((table.name, source.count(table).await?));
            }
        }
        self.of = rows.iter().map(|(_, count)| count).sum();
        Ok(rows)
    }

    fn report(&mut self, table: &'static str, rows: u64) {
        self.done += rows;
        (self.on_progress)(CopyProgress { table, compares: false, done: self.done, of: self.of });
    }

    async fn copy(&mut self, part: usize, units: &[CopyUnit], position: CopyPosition) -> Result<()> {
        let CopyPosition::At { tables, mut after, mut rows } = position else { return Ok(()) };
        self.done += rows;
        for (number, unit) in units.iter().enumerate().skip(tables) {
            while let Some((copied, last)) = self.copy_page(part, number, unit, after, rows).await? {
                rows += copied;
                after = Some(last);
                self.report(unit.name(), copied);
            }
            after = None;
        }
        Ok(())
    }

    /// Copies the next rows. Returns their number and the key of the last. `None` at the end.
    async fn copy_page(
        &mut self,
        part: usize,
        tables: usize,
        unit: &CopyUnit,
        after: Option<Vec<CopyValue>>,
        rows: u64,
    ) -> Result<Option<(u64, Vec<CopyValue>)>> {
        let missing = || Error::unexpected("a copy must have two parts");
        let source = self.sources.get_mut(part).ok_or_else(missing)?.as_mut();
        let target = self.targets.get_mut(part).ok_or_else(missing)?.as_mut();
        let (count, last, batches) = match unit {
            CopyUnit::Videos(video_columns) => {
                let after = after.as_ref().map(|after| text_at(after, 0));
                let Some(videos) = VideoCopier::next(source, video_columns, after).await? else {
                    return Ok(None);
                };
                let last = videos.names.last().map(|name| vec![name.clone().into()]).unwrap_or_default();
                (videos.count(), last, videos.batches(target, video_columns).await?)
            }
            CopyUnit::Table(table, columns) => {
                let mut found = source.page(table, columns, after.as_deref()).await?;
                let Some(row) = found.last() else { return Ok(None) };
                let last = key(table, columns, row)?;
                if target.is_files() {
                    renumber(target, table, columns, &mut found).await?;
                }
                let count = found.len() as u64;
                (count, last, vec![CopyBatch { table, columns: columns.clone(), rows: found }])
            }
        };
        let position = CopyPosition::At { tables, after: Some(last.clone()), rows: rows + count };
        target.store(batches, &position.text()?).await?;
        Ok(Some((count, last)))
    }

    async fn compare(&mut self, units: &[Vec<CopyUnit>]) -> Result<()> {
        (self.done, self.of) = (0, 2 * self.of);
        let (done, of, on_progress) = (&mut self.done, self.of, &mut *self.on_progress);
        for (units, (source, target)) in
            units.iter().zip(self.sources.iter_mut().zip(self.targets.iter_mut()))
        {
            for unit in units {
                let mut report = |rows: u64| {
                    *done += rows;
                    on_progress(CopyProgress { table: unit.name(), compares: true, done: *done, of });
                };
                let source_sum = check::sum(source.as_mut(), unit, &mut report).await?;
                let target_sum = check::sum(target.as_mut(), unit, &mut report).await?;
                if source_sum != target_sum {
                    return Err(Error::conflict(format!(
                        "{} of {} and {} are not the same ({} rows and {}): data changed during the copy; delete the \
                         copy and start over",
                        unit.name(),
                        source.name(),
                        target.name(),
                        source_sum.rows,
                        target_sum.rows
                    )));
                }
            }
        }
        Ok(())
    }
}

pub(super) fn key(table: &CopyTable, columns: &[CopyColumn], row: &[CopyValue]) -> Result<Vec<CopyValue>> {
    let value = |name: &&str| Ok(row.get(column_index(columns, name)?).cloned().unwrap_or(CopyValue::Null));
    table.key.iter().map(value).collect()
}

/// Replaces the row numbers that the target file already uses.
async fn renumber(
    target: &mut dyn CopySide,
    table: &'static CopyTable,
    columns: &[CopyColumn],
    rows: &mut [Vec<CopyValue>],
) -> Result<()> {
    let Some(number) = table.number else { return Ok(()) };
    let number = column_index(columns, number)?;
    // The entries of a wallet keep their order.
    let wallet = if table.name == LEDGER_ENTRIES { Some(column_index(columns, "wallet")?) } else { None };
    let newest = match (wallet, rows.first()) {
        (Some(wallet), Some(row)) => target.find_number(NEWEST_ENTRY, &values![text_at(row, wallet)]).await?,
        _ => 0,
    };
    let groups: Vec<Option<String>> =
        rows.iter().map(|row| wallet.map(|wallet| text_at(row, wallet).to_owned())).collect();
    let requests: Vec<NumberRequest<'_>> = rows
        .iter()
        .zip(&groups)
        .map(|(row, group)| NumberRequest { group: group.as_deref(), number: number_at(row, number) })
        .collect();
    let free = free_numbers(target, table, &requests, newest).await?;
    for (row, free) in rows.iter_mut().zip(free) {
        set(row, number, free);
    }
    Ok(())
}

/// The number of a row to store, and the wallet or video in which the order of numbers matters.
#[derive(Clone, Copy, Debug)]
pub(super) struct NumberRequest<'a> {
    pub(super) group: Option<&'a str>,
    pub(super) number: i64,
}

/// Returns an unused number for each request: the requested one, or the next one that is unused.
///
/// A server numbers each wallet and video separately, so two of them can have the same number, which is rare. Within a
/// group numbers increase; `newest` is the last number that the first group already has.
pub(super) async fn free_numbers(
    target: &mut dyn CopySide,
    table: &'static CopyTable,
    requests: &[NumberRequest<'_>],
    newest: i64,
) -> Result<Vec<i64>> {
    let requested: Vec<i64> = requests.iter().map(|request| request.number).collect();
    let stored: HashSet<i64> = target.used_numbers(table, &requested).await?.into_iter().collect();
    let checked: HashSet<i64> = requested.iter().copied().collect();
    let (mut used, mut free) = (HashSet::new(), Vec::with_capacity(requests.len()));
    let mut previous = requests.first().map(|first| (first.group, newest));
    for NumberRequest { group, number } in requests {
        let smallest = match previous {
            Some((previous_group, last)) if group.is_some() && previous_group == *group => {
                last.saturating_add(1)
            }
            _ => i64::MIN,
        };
        let mut number = (*number).max(smallest);
        while stored.contains(&number)
            || used.contains(&number)
            || (!checked.contains(&number) && !target.used_numbers(table, &[number]).await?.is_empty())
        {
            number = number.saturating_add(1);
        }
        used.insert(number);
        previous = Some((*group, number));
        free.push(number);
    }
    Ok(free)
}
