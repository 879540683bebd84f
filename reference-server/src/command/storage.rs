//! `verbatim storage copy`: everything from files to PostgreSQL, or back.

use std::{
    io::{self, IsTerminal, Write},
    path::PathBuf,
};

use clap::{Args, Subcommand};
use verbatim::{CopyStep, StorageOptions, copy_storage};

use super::{Failure, print};
use crate::{
    config::{Raw, Setting, Settings, Storage, StoreUrl},
    wiring,
};

/// The file of transcripts, where only that of money is named: beside it.
const ARCHIVE_FILE: &str = "archive.db";

#[derive(Debug, Subcommand)]
pub(super) enum StorageCommand {
    /// Copy everything from files to PostgreSQL, or back
    Copy(CopyStorage),
}

#[derive(Args, Debug)]
#[command(after_help = "Examples:
  verbatim storage copy --to postgres://verbatim@db.example.org/verbatim
  verbatim storage copy --from sqlite:///var/lib/verbatim/verbatim.db --to postgres://verbatim@db/verbatim
  verbatim storage copy --from postgres://verbatim@db/verbatim --to sqlite:///srv/verbatim/verbatim.db

Keys, accounts, credits, orders, limits and transcripts are copied, then both sides are compared to the last row.
The target must be empty; until the copy is over, no server starts on it. A copy that was ended in the middle is gone
on with by the same command. Stop every server first: what is in use is not copied, and the source stays as it is.

Transcripts lie beside the rest: in archive.db in the same folder, or in the same database, unless --from-archive and
--to-archive say otherwise. A password may stand in PGPASSWORD or ~/.pgpass rather than in the address.

Afterwards set storage.url to the target and start the servers. Exit status 1: it was not copied, and why.")]
pub(super) struct CopyStorage {
    /// Where everything is
    #[arg(
        long,
        value_name = "URL",
        help = "Where everything is: sqlite://PATH or postgres://USER@HOST/DATABASE [default: storage.url of the settings]"
    )]
    from: Option<String>,
    /// Where everything is to be
    #[arg(long, value_name = "URL")]
    to: String,
    /// Where the transcripts are
    #[arg(long, value_name = "URL", requires = "from")]
    from_archive: Option<String>,
    /// Where the transcripts are to be
    #[arg(long, value_name = "URL")]
    to_archive: Option<String>,
}

/// Copies.
pub(super) async fn run(settings: &Settings, command: StorageCommand) -> Result<(), Failure> {
    let StorageCommand::Copy(ask) = command;
    let from = match &ask.from {
        Some(from) => place(&settings.storage, "--from", from, ask.from_archive.as_deref())?,
        None => wiring::storage(&settings.storage)?,
    };
    let to = place(&settings.storage, "--to", &ask.to, ask.to_archive.as_deref())?;
    let mut line = Line::default();
    let copied = copy_storage(&from, &to, &mut |step| line.step(step)).await;
    line.end();
    let copied = copied?;
    let mut text = String::new();
    if copied.resumed {
        text.push_str("an earlier copy was gone on with\n");
    }
    for (table, rows) in copied.rows.iter().filter(|(_, rows)| *rows > 0) {
        text.push_str(&format!("{table}: {rows}\n"));
    }
    let rows: u64 = copied.rows.iter().map(|(_, rows)| rows).sum();
    text.push_str(&format!("copied and compared: {rows} rows\n"));
    print(&text)
}

/// Both stores at an address.
fn place(
    settings: &Storage,
    flag: &str,
    url: &str,
    archive: Option<&str>,
) -> Result<StorageOptions, Failure> {
    let read = |flag: &str, url: &str| {
        StoreUrl::read(&Raw::Text(url.to_owned())).map_err(|why| {
            let why = why.map(|why| format!(": {why}")).unwrap_or_default();
            Failure::Wrong(format!("{flag}: expected {}{why}", StoreUrl::ALLOWED))
        })
    };
    let url = read(flag, url)?;
    let archive_url = match (archive, &url) {
        (Some(archive), _) => read(&format!("{flag}-archive"), archive)?,
        (None, StoreUrl::Sqlite(main)) => StoreUrl::Sqlite(beside(main)),
        (None, StoreUrl::Postgres(_)) => url.clone(),
    };
    Ok(wiring::storage(&Storage { url, archive_url, ..settings.clone() })?)
}

fn beside(main: &std::path::Path) -> PathBuf {
    main.with_file_name(ARCHIVE_FILE)
}

/// How far the copy is, on standard error: a line that changes on a terminal, elsewhere one for each table.
#[derive(Debug, Default)]
struct Line {
    last: Option<(&'static str, bool)>,
    is_open: bool,
}

impl Line {
    fn step(&mut self, step: CopyStep) {
        let CopyStep { table, compares, done, of } = step;
        let verb = if compares { "compared" } else { "copied" };
        let percent = done.saturating_mul(100) / of.max(1);
        let line = format!("{verb} {done} of {of} rows ({percent} %): {table}");
        if io::stderr().is_terminal() {
            self.is_open = true;
            write(&format!("\r\x1b[K{line}"));
        } else if self.last != Some((table, compares)) {
            write(&format!("{line}\n"));
        }
        self.last = Some((table, compares));
    }

    fn end(&mut self) {
        if std::mem::take(&mut self.is_open) {
            write("\r\x1b[K");
        }
    }
}

/// Nobody need read it, so it is no failure when nobody can.
fn write(text: &str) {
    let _ = io::stderr().lock().write_all(text.as_bytes());
}
