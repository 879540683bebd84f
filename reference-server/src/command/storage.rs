//! `verbatim storage copy`: copies all data from files to PostgreSQL, or back.

use std::{
    io::{self, Write},
    path::PathBuf,
    time::Instant,
};

use clap::{Args, Subcommand};
use verbatim::{CopyProgress, StorageOptions, copy_storage};

use super::{
    CommandError, print,
    progress::{LINE_INTERVAL, can_redraw},
    report_missing_main_file,
};
use crate::config::{ParseSetting, RawSettings, Settings, StorageSettings, StoreUrl};

/// Archive file next to the main file, if only the latter is named.
const ARCHIVE_FILE: &str = "archive.db";

#[derive(Debug, Subcommand)]
pub(super) enum StorageCommand {
    /// Copy all data from files to PostgreSQL, or back
    Copy(CopyStorageArgs),
}

#[derive(Args, Debug)]
#[command(after_help = "Examples:
  verbatim storage copy --to postgres://verbatim@db.example.org/verbatim
  verbatim storage copy --from sqlite:///var/lib/verbatim/verbatim.db \\
      --to postgres://verbatim@db/verbatim
  verbatim storage copy --from postgres://verbatim@db/verbatim \\
      --to sqlite:///srv/verbatim/verbatim.db

Copies keys, accounts, credits, orders, limits and transcripts, then compares every row of both sides.
The target must be empty, and no server starts on it before the copy is complete. The same command resumes a \
copy that was interrupted. Stop every server first: data in use is not copied. The source keeps all its data, but \
servers of an earlier version cannot use it again.

Transcripts are in archive.db in the same folder, or in the same database, unless --from-archive and \
--to-archive name another location; those of storage.url are at storage.archive_url. \
Put a password into PGPASSWORD or ~/.pgpass rather than into the address.

Afterwards set storage.url to the target and start the servers. Exit status 1: not copied, with the reason.")]
pub(super) struct CopyStorageArgs {
    /// Source
    #[arg(
        long,
        value_name = "URL",
        help = "Source: sqlite://PATH or postgres://USER@HOST/DATABASE [default: storage.url of the settings]"
    )]
    from: Option<String>,
    /// Target
    #[arg(long, value_name = "URL")]
    to: String,
    /// Source of the transcripts
    #[arg(long, value_name = "URL", requires = "from")]
    from_archive: Option<String>,
    /// Target of the transcripts
    #[arg(long, value_name = "URL")]
    to_archive: Option<String>,
}

/// Copies all data.
pub(super) async fn run(settings: &Settings, command: StorageCommand) -> Result<(), CommandError> {
    let StorageCommand::Copy(args) = command;
    let from = match &args.from {
        Some(from) => store_options(&settings.storage, "--from", from, args.from_archive.as_deref())?,
        None => settings.storage.options()?,
    };
    let to = store_options(&settings.storage, "--to", &args.to, args.to_archive.as_deref())?;
    let mut line = CopyProgressLine::default();
    let copied = copy_storage(&from, &to, &mut |step| line.step(step)).await;
    line.end();
    let copied = copied?;
    report_missing_main_file(&from);
    report_missing_rows(&copied.rows);
    let mut text = String::new();
    if copied.resumed {
        text.push_str("an earlier copy was resumed\n");
    }
    for (table, rows) in copied.rows.iter().filter(|(_, rows)| *rows > 0) {
        text.push_str(&format!("{table}: {rows}\n"));
    }
    let rows: u64 = copied.rows.iter().map(|(_, rows)| rows).sum();
    text.push_str(&format!("copied and compared: {rows} rows\n"));
    print(&text)
}

/// Returns the options of both stores at an address.
fn store_options(
    settings: &StorageSettings,
    flag: &str,
    url: &str,
    archive: Option<&str>,
) -> Result<StorageOptions, CommandError> {
    let read = |flag: &str, url: &str| {
        StoreUrl::read(&RawSettings::Text(url.to_owned())).map_err(|why| {
            let why = why.map(|why| format!(": {why}")).unwrap_or_default();
            CommandError::Wrong(format!("{flag}: expected {}{why}", StoreUrl::ALLOWED))
        })
    };
    let url = read(flag, url)?;
    let archive_url = match (archive, &url) {
        (Some(archive), _) => read(&format!("{flag}-archive"), archive)?,
        (None, _) if url == settings.url => settings.archive_url.clone(),
        (None, StoreUrl::Sqlite(main)) => StoreUrl::Sqlite(archive_path(main)),
        (None, StoreUrl::Postgres(_)) => url.clone(),
    };
    Ok(StorageSettings { url, archive_url, ..settings.clone() }.options()?)
}

/// Reports on standard error what the source has none of: its address may be that of another database.
fn report_missing_rows(rows: &[(&str, u64)]) {
    let has = |wanted: &[&str]| rows.iter().any(|(table, count)| *count > 0 && wanted.contains(table));
    if !has(&["transcripts"]) {
        write(
            "verbatim: the source has no transcripts; --from-archive names another location for a new copy\n",
        );
    }
    if !has(&["keys", "accounts"]) {
        write(
            "verbatim: the source has no keys and no accounts; --from names another location for a new copy\n",
        );
    }
}

fn archive_path(main: &std::path::Path) -> PathBuf {
    main.with_file_name(ARCHIVE_FILE)
}

/// Progress of the copy on standard error.
///
/// One changing line on a terminal, otherwise one line for each table, and at an interval.
#[derive(Debug, Default)]
struct CopyProgressLine {
    /// Table of the last line, whether it was being compared, and the time.
    last: Option<(&'static str, bool, Instant)>,
    is_open: bool,
}

impl CopyProgressLine {
    fn step(&mut self, step: CopyProgress) {
        let CopyProgress { table, compares, done, of } = step;
        let verb = if compares { "compared" } else { "copied" };
        let percent = done.saturating_mul(100) / of.max(1);
        let line = format!("{verb} {done} of {of} rows ({percent} %): {table}");
        if can_redraw() {
            self.is_open = true;
            write(&format!("\r\x1b[K{line}"));
        } else if self.is_line_due(table, compares) {
            write(&format!("{line}\n"));
            self.last = Some((table, compares, Instant::now()));
        }
    }

    fn is_line_due(&self, table: &str, compares: bool) -> bool {
        self.last.is_none_or(|(last_table, compared, at)| {
            (last_table, compared) != (table, compares) || at.elapsed() >= LINE_INTERVAL
        })
    }

    fn end(&mut self) {
        if std::mem::take(&mut self.is_open) {
            write("\r\x1b[K");
        }
    }
}

/// Writes to standard error; a closed one is ignored.
fn write(text: &str) {
    let _ = io::stderr().lock().write_all(text.as_bytes());
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn line_is_due_for_each_part_and_after_seconds() {
        let mut line = CopyProgressLine::default();
        assert!(line.is_line_due("videos", false));
        line.last = Some(("videos", false, Instant::now()));
        assert!(!line.is_line_due("videos", false));
        assert!(line.is_line_due("videos", true) && line.is_line_due("transcripts", false));
        line.last = Some(("videos", false, Instant::now().checked_sub(LINE_INTERVAL).unwrap()));
        assert!(line.is_line_due("videos", false));
    }
}
