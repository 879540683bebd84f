//! Damaged stored transcripts: one flipped bit, in every store and form.

mod commands;
mod compaction;
mod http;
mod selectors;
mod verifying;

use std::{process::Output, time::Duration};

use anyhow::{Context as _, Result, ensure};
use tempfile::TempDir;
use verbatim_tests::replay::ReplayProxy;
use verbatim_tests_postgres::{Cluster, TestDatabase};

use super::{
    super::{
        harness::{psql, run, sqlite, verbatim},
        platform::{platform_settings, start_platform},
    },
    text,
};

/// Videos of the platform, with captions.
const VIDEOS: [&str; 5] = ["dyke-walk-0", "dyke-walk-1", "dyke-walk-2", "dyke-walk-3", "dyke-walk-4"];

/// Where and how transcripts are stored.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum StoredAs {
    File,
    ColdFile,
    Postgres,
    ColdPostgres,
}

const ALL_FORMS: [StoredAs; 4] =
    [StoredAs::File, StoredAs::ColdFile, StoredAs::Postgres, StoredAs::ColdPostgres];

impl StoredAs {
    fn is_cold(self) -> bool {
        matches!(self, Self::ColdFile | Self::ColdPostgres)
    }
}

/// An archive of some fetched videos, with commands on it.
struct DamageFixture {
    form: StoredAs,
    data: TempDir,
    database: Option<TestDatabase<'static>>,
    proxy: ReplayProxy,
}

impl DamageFixture {
    fn new(form: StoredAs, videos: &[&str]) -> Result<Self> {
        let database = match form {
            StoredAs::File | StoredAs::ColdFile => None,
            StoredAs::Postgres | StoredAs::ColdPostgres => Some(Cluster::shared().database()?),
        };
        let proxy = start_platform(&VIDEOS, Duration::ZERO)?;
        let fixture = Self { form, data: TempDir::new()?, database, proxy };
        for video in videos {
            fixture.expect(&["get", video], "", 0)?;
        }
        fixture.compact()?;
        Ok(fixture)
    }

    /// Settings of the store and the platform.
    fn settings(&self) -> Vec<(String, String)> {
        let mut settings = platform_settings(&self.proxy);
        if let Some(database) = &self.database {
            settings.push(("VERBATIM_STORAGE__URL".to_owned(), database.url.clone()));
        }
        settings
    }

    fn run(&self, arguments: &[&str], input: &str) -> Result<Output> {
        let mut command = verbatim(self.data.path(), arguments);
        command.envs(self.settings());
        run(command, input.as_bytes())
    }

    /// Runs a command and checks its exit status; returns both outputs.
    fn expect(&self, arguments: &[&str], input: &str, code: i32) -> Result<(String, String)> {
        let output = self.run(arguments, input)?;
        let (stdout, stderr) = (text(&output.stdout), text(&output.stderr));
        let form = self.form;
        assert_eq!(output.status.code(), Some(code), "{form:?} {arguments:?}: {stdout} {stderr}");
        assert!(!stderr.contains("panicked"), "{stderr}");
        Ok((stdout, stderr))
    }

    /// Moves everything to cold storage, if this form is cold.
    fn compact(&self) -> Result<()> {
        if self.form.is_cold() {
            self.expect(&["archive", "compact", "--older-than", "0s"], "", 0)?;
        }
        Ok(())
    }

    /// Flips one bit in the middle of the stored text of a video, in every revision.
    fn flip(&self, video: &str) -> Result<()> {
        self.compact()?;
        let id = format!("video_site/{video}");
        let Some(database) = &self.database else {
            return self.flip_in_file(&id);
        };
        let (table, column) = if self.form.is_cold() { ("cold", "body") } else { ("bodies", "segments") };
        let bit = format!("length({column}) * 4");
        let done = psql(
            &database.url,
            &format!(
                "UPDATE {table} SET {column} = set_bit({column}, {bit}, 1 - get_bit({column}, {bit}))
                    WHERE video = '{id}' RETURNING 1"
            ),
        )?;
        ensure!(!done.trim().is_empty(), "nothing is stored of {id}");
        Ok(())
    }

    fn flip_in_file(&self, id: &str) -> Result<()> {
        let ids = format!("SELECT id FROM transcripts WHERE video = '{id}'");
        let (table, column, rows) = match self.form.is_cold() {
            true => ("cold", "bytes", format!("id IN (SELECT id * 65536 FROM ({ids}))")),
            false => ("bodies", "segments", format!("transcript IN ({ids})")),
        };
        let stored = self.sqlite(&format!("SELECT rowid, hex({column}) FROM {table} WHERE {rows}"))?;
        ensure!(!stored.trim().is_empty(), "nothing is stored of {id}");
        for line in stored.lines() {
            let (row, hex) = line.split_once('|').context("two columns")?;
            let at = hex.len() / 4 * 2;
            let flipped = u8::from_str_radix(&hex[at..at + 2], 16)? ^ 1;
            let hex = format!("{}{flipped:02X}{}", &hex[..at], &hex[at + 2..]);
            self.sqlite(&format!("UPDATE {table} SET {column} = x'{hex}' WHERE rowid = {row}"))?;
        }
        Ok(())
    }

    fn sqlite(&self, statement: &str) -> Result<String> {
        sqlite(&self.data.path().join("archive.db"), statement)
    }

    /// Runs a statement on the archive, whichever database it is in.
    fn query(&self, statement: &str) -> Result<String> {
        match &self.database {
            Some(database) => psql(&database.url, statement),
            None => self.sqlite(statement),
        }
    }
}

/// Checks that a message names a damaged video, its language, and what to do.
#[track_caller]
fn check_names(message: &str, video: &str) {
    for part in [
        &format!("video_site/{video}"),
        "(en)",
        "verbatim archive verify --repair refetch",
        "verbatim archive refresh",
        "verbatim import",
        "verbatim archive delete",
    ] {
        assert!(message.contains(part), "{part}: {message}");
    }
}
