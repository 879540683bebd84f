//! `verbatim storage copy`: from files to PostgreSQL and back nothing is lost and nothing is other than it was, also
//! when the copy is killed again and again; and what is in use, or not empty, is left alone.

mod dumping;
mod filling;
mod numbers;

use std::{
    io::{BufRead as _, BufReader},
    path::Path,
    process::{Command, Output, Stdio},
};

use anyhow::{Context as _, Result, ensure};
use tempfile::TempDir;
use verbatim_tests_postgres::{Cluster, Database};

use super::harness::{Server, run, verbatim};
use dumping::dump;
use filling::fill;

/// After how many tables a copy is killed, each time that it is gone on with.
const KILLS: [usize; 6] = [1, 3, 2, 1, 4, 2];

/// The address of the file of money in a folder.
fn file(data: &TempDir) -> String {
    format!("sqlite://{}", data.path().join("verbatim.db").display())
}

fn copying(from: &str, to: &str) -> Result<Command> {
    // The folder of the settings is nobody's: nothing is to be found there.
    let nowhere = TempDir::new()?;
    Ok(verbatim(nowhere.path(), &["storage", "copy", "--from", from, "--to", to]))
}

/// Copies, whatever becomes of it.
fn copy(from: &str, to: &str) -> Result<Output> {
    run(copying(from, to)?, b"")
}

/// Copies, and says what was copied.
fn copied(from: &str, to: &str) -> Result<String> {
    let output = copy(from, to)?;
    ensure!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    Ok(String::from_utf8(output.stdout)?)
}

/// Fails to copy; the sentence.
fn refused(from: &str, to: &str) -> Result<String> {
    let output = copy(from, to)?;
    let message = String::from_utf8_lossy(&output.stderr).into_owned();
    ensure!(matches!(output.status.code(), Some(1 | 2)), "it was copied: {message}");
    ensure!(!message.contains("panicked"), "{message}");
    Ok(message)
}

fn empty<'a>() -> Result<Database<'a>> {
    Cluster::shared().database()
}

/// What an operator's commands say of everything that is kept.
fn told(storage: &str) -> Result<Vec<String>> {
    let nowhere = TempDir::new()?;
    let commands: [&[&str]; 5] = [
        &["ledger", "audit", "--json"],
        &["keys", "list", "--json"],
        &["accounts", "list", "--json"],
        &["archive", "stats", "--json"],
        &["accounts", "export", "ann@example.org"],
    ];
    let mut told = Vec::new();
    for arguments in commands {
        let mut command = verbatim(nowhere.path(), arguments);
        command.env("VERBATIM_STORAGE__URL", storage);
        if let Some(path) = storage.strip_prefix("sqlite://") {
            let archive = Path::new(path).with_file_name("archive.db");
            command.env("VERBATIM_STORAGE__ARCHIVE_URL", format!("sqlite://{}", archive.display()));
        }
        let output = run(command, b"")?;
        ensure!(output.status.success(), "{arguments:?}: {}", String::from_utf8_lossy(&output.stderr));
        told.push(String::from_utf8(output.stdout)?);
    }
    Ok(told)
}

#[tokio::test(flavor = "multi_thread")]
async fn from_files_to_postgres_and_back_every_record_is_the_same() -> Result<()> {
    let (data, back) = (TempDir::new()?, TempDir::new()?);
    fill(&data, 300).await?;
    let before = dump(&data)?;
    let said = told(&file(&data))?;
    let database = empty()?;
    let text = copied(&file(&data), &database.url)?;
    for (table, rows) in &before {
        let is_ours =
            !["sqlite_sequence", "figures"].contains(&table.as_str()) && !table.starts_with("versions");
        ensure!(
            !is_ours || rows.is_empty() || text.contains(&format!("{table}: ")),
            "not a word of {table}: {text}"
        );
    }
    assert_eq!(told(&database.url)?, said, "PostgreSQL says something else");
    copied(&database.url, &file(&back))?;
    for (table, rows) in dump(&back)? {
        assert_eq!(rows, before[&table], "{table}");
    }
    assert_eq!(told(&file(&back))?, said, "the files say something else");
    assert_eq!(dump(&data)?, before, "the source was changed");
    // Both are live: what is new gets new numbers.
    for storage in [file(&back), database.url.clone()] {
        let mut grant = verbatim(back.path(), &["accounts", "grant", "ann@example.org", "5"]);
        grant.env("VERBATIM_STORAGE__URL", &storage);
        let output = run(grant, b"")?;
        ensure!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        told(&storage)?;
    }
    Ok(())
}

/// Starts a copy and kills it once it has told of so many tables.
fn killed(from: &str, to: &str, tables: usize) -> Result<()> {
    let mut child = copying(from, to)?.stdout(Stdio::null()).stderr(Stdio::piped()).spawn()?;
    let lines = BufReader::new(child.stderr.take().context("no standard error")?).lines();
    // Each line is of a table some of which is stored by then.
    let told: Vec<String> = lines.take(tables).collect::<std::io::Result<_>>()?;
    child.kill()?;
    let status = child.wait()?;
    let is_copying = told.len() == tables && told.iter().all(|line| line.starts_with("copied "));
    ensure!(is_copying && !status.success(), "it was not killed in its middle: {told:?}");
    Ok(())
}

/// Kills a copy again and again before it ends; in between nobody opens the target. Then lets it end.
fn copied_by_fits_and_starts(from: &str, to: &str) -> Result<()> {
    for tables in KILLS {
        killed(from, to, tables)?;
        ensure!(refuses_to_start(to)?, "half a copy was opened");
    }
    let text = copied(from, to)?;
    ensure!(text.contains("gone on with"), "{text}");
    ensure!(!refuses_to_start(to)?, "it is whole");
    Ok(())
}

/// Whether commands and servers say that the storage is half copied.
fn refuses_to_start(storage: &str) -> Result<bool> {
    let nowhere = TempDir::new()?;
    let mut command = verbatim(nowhere.path(), &["ledger", "audit"]);
    command.env("VERBATIM_STORAGE__URL", storage);
    if let Some(path) = storage.strip_prefix("sqlite://") {
        let archive = Path::new(path).with_file_name("archive.db");
        command.env("VERBATIM_STORAGE__ARCHIVE_URL", format!("sqlite://{}", archive.display()));
    }
    let output = run(command, b"")?;
    if output.status.success() {
        return Ok(false);
    }
    let message = String::from_utf8_lossy(&output.stderr).into_owned();
    ensure!(message.contains("is half copied") && message.contains("verbatim storage copy"), "{message}");
    let serve = run(serving(nowhere.path(), storage), b"")?;
    ensure!(!serve.status.success() && serve.stdout.is_empty(), "a server started on half a copy");
    Ok(true)
}

fn serving(data: &Path, storage: &str) -> Command {
    let mut command = verbatim(data, &["serve", "--listen", "127.0.0.1:0"]);
    command.env("VERBATIM_STORAGE__URL", storage);
    if let Some(path) = storage.strip_prefix("sqlite://") {
        let archive = Path::new(path).with_file_name("archive.db");
        command.env("VERBATIM_STORAGE__ARCHIVE_URL", format!("sqlite://{}", archive.display()));
    }
    command
}

#[tokio::test(flavor = "multi_thread")]
async fn a_copy_that_is_killed_goes_on_where_it_stopped() -> Result<()> {
    let (data, back) = (TempDir::new()?, TempDir::new()?);
    fill(&data, 6_000).await?;
    let before = dump(&data)?;
    let database = empty()?;
    copied_by_fits_and_starts(&file(&data), &database.url)?;
    copied_by_fits_and_starts(&database.url, &file(&back))?;
    for (table, rows) in dump(&back)? {
        assert_eq!(rows, before[&table], "{table}");
    }
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn what_is_in_use_is_not_copied() -> Result<()> {
    let data = TempDir::new()?;
    fill(&data, 20).await?;
    let database = empty()?;
    {
        let _server = Server::start(&data, &[])?;
        let message = refused(&file(&data), &database.url)?;
        ensure!(
            message.contains("verbatim.db is in use") && message.contains("stop every server"),
            "{message}"
        );
    }
    copied(&file(&data), &database.url)?;
    let another = TempDir::new()?;
    let settings = [("VERBATIM_STORAGE__URL", database.url.as_str())];
    let server = Server::start(&another, &settings)?;
    let back = TempDir::new()?;
    let message = refused(&database.url, &file(&back))?;
    ensure!(message.contains("is in use"), "{message}");
    // It still serves, and still writes.
    assert_eq!(server.get("/health").await?.status, 200);
    drop(server);
    copied(&database.url, &file(&back)).map(drop)
}

#[tokio::test(flavor = "multi_thread")]
async fn a_target_with_something_in_it_is_left_as_it_is() -> Result<()> {
    let (data, other) = (TempDir::new()?, TempDir::new()?);
    fill(&data, 20).await?;
    fill(&other, 5).await?;
    let database = empty()?;
    copied(&file(&other), &database.url)?;
    let said = told(&database.url)?;
    // It is no half copy, but somebody's data.
    let message = refused(&file(&data), &database.url)?;
    ensure!(message.contains("holds something already"), "{message}");
    assert_eq!(told(&database.url)?, said, "it was changed");
    let before = dump(&other)?;
    let source = empty()?;
    copied(&file(&data), &source.url)?;
    let message = refused(&source.url, &file(&other))?;
    ensure!(message.contains("holds something already"), "{message}");
    assert_eq!(dump(&other)?, before, "it was changed");

    // A file of somebody else's, too.
    let novel = TempDir::new()?;
    std::fs::write(novel.path().join("verbatim.db"), b"somebody's novel".repeat(100))?;
    let message = refused(&source.url, &file(&novel))?;
    ensure!(message.contains("verbatim.db"), "{message}");
    assert_eq!(std::fs::read(novel.path().join("verbatim.db"))?, b"somebody's novel".repeat(100));

    for (from, to, why) in [
        (file(&data), file(&novel), "pg_dump"),
        (source.url.clone(), database.url.clone(), "pg_dump"),
        ("sqlite:///nowhere/verbatim.db".to_owned(), database.url.clone(), "there is no file"),
        ("verbatim.db".to_owned(), database.url.clone(), "--from: expected sqlite://"),
    ] {
        let message = refused(&from, &to)?;
        ensure!(message.contains(why), "{from} to {to}: {message}");
    }
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn half_a_copy_is_gone_on_with_from_the_same_source_only() -> Result<()> {
    let (data, other) = (TempDir::new()?, TempDir::new()?);
    fill(&data, 6_000).await?;
    fill(&other, 5).await?;
    let database = empty()?;
    killed(&file(&data), &database.url, 1)?;
    let message = refused(&file(&other), &database.url)?;
    ensure!(message.contains("half copied from elsewhere"), "{message}");
    let message = refused(&database.url, &file(&TempDir::new()?))?;
    ensure!(message.contains("half copied"), "{message}");
    copied(&file(&data), &database.url)?;
    assert_eq!(told(&database.url)?, told(&file(&data))?);
    Ok(())
}
