//! The course of a copy: begun or gone on with, copied, compared, ended.

use std::collections::HashSet;

use serde::{Deserialize, Serialize};
use transcript_core::{Error, Result};

use super::{
    Copied, CopyStep, PARTS, check,
    row::{Column, Kind, Value},
    side::{Batch, Note, Side, conflict, place},
    table::{LEDGER_ENTRIES, Part, Table, VIDEO_TABLES, VIDEOS},
    videos::{Shapes, Videos},
};

/// The table in which a target notes how far the copy is.
pub(super) const NOTES: &str = "verbatim_copying";

/// How far the copy of a part is.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
enum Place {
    /// In the middle of it.
    At {
        /// How many of the part's tables are done; videos count as one.
        tables: usize,
        /// The key of the last row that was copied, or the last video.
        after: Option<Vec<Value>>,
        /// How many rows are done.
        rows: u64,
    },
    /// Both parts were compared: what is left is to say so.
    Compared,
}

impl Place {
    const BEGIN: Self = Self::At { tables: 0, after: None, rows: 0 };

    fn read(note: &Note) -> Result<Self> {
        serde_json::from_str(&note.place).map_err(|_| Error::unexpected("the note of a copy cannot be read"))
    }

    fn text(&self) -> Result<String> {
        crate::codec::json(self)
    }
}

/// What a part has to copy, in order.
#[derive(Debug)]
pub(super) enum Stuff {
    Videos(Box<Shapes>),
    Table(&'static Table, Vec<Column>),
}

impl Stuff {
    pub(super) fn name(&self) -> &'static str {
        match self {
            Self::Videos(_) => VIDEOS,
            Self::Table(table, _) => table.name,
        }
    }

    /// All of a part, as both sides have it.
    async fn of(part: &'static Part, source: &mut dyn Side, target: &mut dyn Side) -> Result<Vec<Self>> {
        let mut stuff = Vec::new();
        if part.has_videos() {
            let mut shapes = Shapes::default();
            for (table, shape) in VIDEO_TABLES.iter().zip(&mut shapes) {
                *shape = shape_of(table, source, target).await?;
            }
            stuff.push(Self::Videos(Box::new(shapes)));
        }
        for table in part.tables {
            stuff.push(Self::Table(table, shape_of(table, source, target).await?));
        }
        Ok(stuff)
    }
}

/// The columns of a table that are carried: the same on both sides, or nothing is copied. Kinds are the server's, which
/// knows flags.
async fn shape_of(
    table: &'static Table,
    source: &mut dyn Side,
    target: &mut dyn Side,
) -> Result<Vec<Column>> {
    let (here, there) = (source.columns(table).await?, target.columns(table).await?);
    let plain = |column: &Column| {
        let kind = if column.kind == Kind::Flag { Kind::Number } else { column.kind };
        (column.name.clone(), kind)
    };
    if here.iter().map(plain).ne(there.iter().map(plain)) {
        return Err(Error::unexpected(format!(
            "the tables {} of {} and {} have other columns",
            table.name,
            source.name(),
            target.name()
        )));
    }
    Ok(if source.is_files() { there } else { here })
}

/// A copy.
pub(super) struct Work<'a> {
    sources: &'a mut [Box<dyn Side>; 2],
    targets: &'a mut [Box<dyn Side>; 2],
    tell: &'a mut (dyn FnMut(CopyStep) + Send),
    done: u64,
    of: u64,
}

impl<'a> Work<'a> {
    pub(super) fn new(
        sources: &'a mut [Box<dyn Side>; 2],
        targets: &'a mut [Box<dyn Side>; 2],
        tell: &'a mut (dyn FnMut(CopyStep) + Send),
    ) -> Self {
        Self { sources, targets, tell, done: 0, of: 0 }
    }

    pub(super) async fn run(mut self) -> Result<Copied> {
        let (places, resumed) = self.begin().await?;
        let mut stuff = Vec::new();
        for (part, (source, target)) in PARTS.iter().zip(self.sources.iter_mut().zip(self.targets.iter_mut()))
        {
            stuff.push(Stuff::of(part, source.as_mut(), target.as_mut()).await?);
        }
        let rows = self.count().await?;
        if !places.contains(&Place::Compared) {
            for (part, (stuff, begun)) in stuff.iter().zip(places).enumerate() {
                self.copy(part, stuff, begun).await?;
            }
            self.compare(&stuff).await?;
            let compared = Place::Compared.text()?;
            for target in self.targets.iter_mut() {
                target.store(Vec::new(), &compared).await?;
            }
        }
        // Money last: without it no server starts.
        for target in self.targets.iter_mut().rev() {
            if target.note().await?.is_some() {
                target.end_copy().await?;
            }
        }
        Ok(Copied { rows, resumed })
    }

    /// Begins the copy, or goes on with it: how far each part is, and whether there was anything.
    async fn begin(&mut self) -> Result<([Place; 2], bool)> {
        let [main_source, archive_source] = &*self.sources;
        let source = format!("{} and {}", main_source.name(), archive_source.name());
        let begin = Note { source: source.clone(), place: Place::BEGIN.text()? };
        let [main, archive] = &mut *self.targets;
        let notes = (main.note().await?, archive.note().await?);
        for (note, target) in [(&notes.0, &*main), (&notes.1, &*archive)] {
            if let Some(note) = note.as_ref().filter(|note| note.source != source) {
                return Err(conflict(format!(
                    "{} is half copied from elsewhere, {}: go on with that copy, or remove what is there",
                    target.name(),
                    note.source
                )));
            }
        }
        if notes.0.is_none() {
            if notes.1.is_some() {
                return Err(conflict(format!("{} is half copied by another copy", archive.name())));
            }
            main.begin_copy(&begin).await?;
            if let Err(error) = archive.begin_copy(&begin).await {
                main.end_copy().await?;
                return Err(error);
            }
            return Ok(([Place::BEGIN, Place::BEGIN], false));
        }
        let at_main = Place::read(&main.take_over().await?)?;
        let at_archive = match (&notes.1, &at_main) {
            (Some(_), _) => Place::read(&archive.take_over().await?)?,
            // It has ended already.
            (None, Place::Compared) => Place::Compared,
            // The first copy was killed between its first two steps.
            (None, Place::At { .. }) => {
                archive.begin_copy(&begin).await?;
                Place::BEGIN
            }
        };
        Ok(([at_main, at_archive], true))
    }

    /// The rows that there are to copy.
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

    fn told(&mut self, table: &'static str, rows: u64) {
        self.done += rows;
        (self.tell)(CopyStep { table, compares: false, done: self.done, of: self.of });
    }

    async fn copy(&mut self, part: usize, stuff: &[Stuff], begun: Place) -> Result<()> {
        let Place::At { tables, mut after, mut rows } = begun else { return Ok(()) };
        self.done += rows;
        for (number, stuff) in stuff.iter().enumerate().skip(tables) {
            while let Some((copied, last)) = self.copy_some(part, number, stuff, after, rows).await? {
                rows += copied;
                after = Some(last);
                self.told(stuff.name(), copied);
            }
            after = None;
        }
        Ok(())
    }

    /// Copies the next rows: how many, and the key of the last. None where there are none.
    async fn copy_some(
        &mut self,
        part: usize,
        tables: usize,
        stuff: &Stuff,
        after: Option<Vec<Value>>,
        rows: u64,
    ) -> Result<Option<(u64, Vec<Value>)>> {
        let missing = || Error::unexpected("a copy has two parts");
        let source = self.sources.get_mut(part).ok_or_else(missing)?.as_mut();
        let target = self.targets.get_mut(part).ok_or_else(missing)?.as_mut();
        let (count, last, batches) = match stuff {
            Stuff::Videos(shapes) => {
                let after = after.as_ref().and_then(|after| after.first()).map(Value::text);
                let Some(videos) = Videos::next(source, shapes, after).await? else { return Ok(None) };
                let last =
                    videos.names.last().map(|name| vec![Value::Text(name.clone())]).unwrap_or_default();
                (videos.count(), last, videos.batches(target, shapes).await?)
            }
            Stuff::Table(table, columns) => {
                let mut found = source.page(table, columns, after.as_deref()).await?;
                let Some(row) = found.last() else { return Ok(None) };
                let last = key(table, columns, row)?;
                if target.is_files() {
                    renumber(target, table, columns, &mut found).await?;
                }
                let count = found.len() as u64;
                (count, last, vec![Batch { table, columns: columns.clone(), rows: found }])
            }
        };
        let place = Place::At { tables, after: Some(last.clone()), rows: rows + count };
        target.store(batches, &place.text()?).await?;
        Ok(Some((count, last)))
    }

    async fn compare(&mut self, stuff: &[Vec<Stuff>]) -> Result<()> {
        (self.done, self.of) = (0, 2 * self.of);
        let (done, of, tell) = (&mut self.done, self.of, &mut *self.tell);
        for (stuff, (source, target)) in
            stuff.iter().zip(self.sources.iter_mut().zip(self.targets.iter_mut()))
        {
            for stuff in stuff {
                let mut told = |rows: u64| {
                    *done += rows;
                    tell(CopyStep { table: stuff.name(), compares: true, done: *done, of });
                };
                let here = check::sum(source.as_mut(), stuff, &mut told).await?;
                let there = check::sum(target.as_mut(), stuff, &mut told).await?;
                if here != there {
                    return Err(conflict(format!(
                        "{} of {} and {} are not the same ({} rows and {}): something was written meanwhile; remove \
                         the copy and begin anew",
                        stuff.name(),
                        source.name(),
                        target.name(),
                        here.rows,
                        there.rows
                    )));
                }
            }
        }
        Ok(())
    }
}

/// The key of a row.
pub(super) fn key(table: &Table, columns: &[Column], row: &[Value]) -> Result<Vec<Value>> {
    let value = |name: &&str| Ok(row.get(place(columns, name)?).cloned().unwrap_or(Value::None));
    table.key.iter().map(value).collect()
}

/// Gives rows numbers that are free in files.
async fn renumber(
    target: &mut dyn Side,
    table: &'static Table,
    columns: &[Column],
    rows: &mut [Vec<Value>],
) -> Result<()> {
    let Some(number) = table.number else { return Ok(()) };
    let number = place(columns, number)?;
    // The entries of a wallet stay in their order.
    let wallet = if table.name == LEDGER_ENTRIES { Some(place(columns, "wallet")?) } else { None };
    let text = |row: &[Value], place: usize| row.get(place).map(Value::text).unwrap_or_default().to_owned();
    let newest = match (wallet, rows.first()) {
        (Some(wallet), Some(row)) => target.newest_entry(&text(row, wallet)).await?,
        _ => 0,
    };
    let groups: Vec<Option<String>> = rows.iter().map(|row| wallet.map(|wallet| text(row, wallet))).collect();
    let wanted: Vec<Wanted<'_>> = rows
        .iter()
        .zip(&groups)
        .map(|(row, group)| Wanted {
            group: group.as_deref(),
            number: row.get(number).map(Value::number).unwrap_or_default(),
        })
        .collect();
    let free = free_numbers(target, table, &wanted, newest).await?;
    for (row, free) in rows.iter_mut().zip(free) {
        if let Some(value) = row.get_mut(number) {
            *value = Value::Number(free);
        }
    }
    Ok(())
}

/// A number that a row has, and those among which its order matters.
#[derive(Clone, Copy, Debug)]
pub(super) struct Wanted<'a> {
    pub(super) group: Option<&'a str>,
    pub(super) number: i64,
}

/// The numbers themselves where nobody has them, else the next ones: a server numbers each wallet and video for itself,
/// so that two of them may have the same, though hardly ever. Within a group numbers grow; `newest` is the last one that
/// the first group has already.
pub(super) async fn free_numbers(
    target: &mut dyn Side,
    table: &'static Table,
    wanted: &[Wanted<'_>],
    newest: i64,
) -> Result<Vec<i64>> {
    let asked: Vec<i64> = wanted.iter().map(|wanted| wanted.number).collect();
    let taken: HashSet<i64> = target.taken(table, &asked).await?.into_iter().collect();
    let known: HashSet<i64> = asked.iter().copied().collect();
    let (mut used, mut free) = (HashSet::new(), Vec::with_capacity(wanted.len()));
    let mut before = wanted.first().map(|first| (first.group, newest));
    for Wanted { group, number } in wanted {
        let least = match before {
            Some((same, last)) if group.is_some() && same == *group => last.saturating_add(1),
            _ => i64::MIN,
        };
        let mut number = (*number).max(least);
        while used.contains(&number)
            || taken.contains(&number)
            || (!known.contains(&number) && !target.taken(table, &[number]).await?.is_empty())
        {
            number = number.saturating_add(1);
        }
        used.insert(number);
        before = Some((*group, number));
        free.push(number);
    }
    Ok(free)
}
