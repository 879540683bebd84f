//! `verbatim storage copy`: a copy from files to PostgreSQL and back preserves every record, also when the copy is
//! killed repeatedly. A store in use or a target with data is rejected and stays unchanged.

mod dumping;
mod filling;
mod numbers;

use std::{
    collections::BTreeMap,
    io::{BufRead as _, BufReader},
    path::Path,
    process::{Command, Output, Stdio},
};

use anyhow::{Context as _, Result, ensure};
use tempfile::TempDir;
use verbatim_tests_postgres::{Cluster, TestDatabase};

use super::harness::{ServerFixture, psql, run, run_ok, sqlite, verbatim, verbatim_with};
use dumping::dump;
use filling::fill;

/// The number of tables after which a copy is killed, for each attempt.
const KILLS: [usize; 6] = [1, 3, 2, 1, 4, 2];

/// The address of the main database file in a folder.
fn main_file(data: &TempDir) -> String {
    format!("sqlite://{}", data.path().join("verbatim.db").display())
}

fn copy_command(from: &str, to: &str) -> Result<Command> {
    // An empty data folder: the command reads no settings from it.
    let empty_folder = TempDir::new()?;
    Ok(verbatim(empty_folder.path(), &["storage", "copy", "--from", from, "--to", to]))
}

/// Runs a copy with any result.
fn copy(from: &str, to: &str) -> Result<Output> {
    run(copy_command(from, to)?, b"")
}

/// Runs a copy that must succeed; returns its output.
fn copy_all(from: &str, to: &str) -> Result<String> {
    run_ok(copy_command(from, to)?, b"")
}

/// Runs a copy that must fail; returns its error message.
fn copy_error(from: &str, to: &str) -> Result<String> {
    let output = copy(from, to)?;
    let message = String::from_utf8_lossy(&output.stderr).into_owned();
    ensure!(matches!(output.status.code(), Some(1 | 2)), "the copy did not fail: {message}");
    ensure!(!message.contains("panicked"), "{message}");
    Ok(message)
}

fn new_database<'a>() -> Result<TestDatabase<'a>> {
    Cluster::shared().database()
}

/// Output of the operator's commands that describe everything stored.
fn describe(storage: &str) -> Result<Vec<String>> {
    let empty_folder = TempDir::new()?;
    let commands: [&[&str]; 5] = [
        &["ledger", "audit", "--json"],
        &["keys", "list", "--json"],
        &["accounts", "list", "--json"],
        &["archive", "stats", "--json"],
        &["accounts", "export", "ann@example.org"],
    ];
    let mut outputs = Vec::new();
    for arguments in commands {
        outputs.push(run_ok(command_on(storage, empty_folder.path(), arguments), b"")?);
    }
    Ok(outputs)
}

/// Checks that every table has the rows of the source. The commands of the test are new entries of the audit log.
fn check_rows(copied: &BTreeMap<String, String>, source: &BTreeMap<String, String>) {
    for (table, rows) in copied {
        if table == "audit_log" {
            assert!(
                !source[table].is_empty() && source[table].lines().all(|row| rows.contains(row)),
                "{rows}"
            );
        } else {
            assert_eq!(rows, &source[table], "{table}");
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn copy_to_postgres_and_back_preserves_every_record() -> Result<()> {
    let (data, back) = (TempDir::new()?, TempDir::new()?);
    fill(&data, 300).await?;
    let expected = describe(&main_file(&data))?;
    let before = dump(&data)?;
    let database = new_database()?;
    let text = copy_all(&main_file(&data), &database.url)?;
    for (table, rows) in &before {
        let is_copied =
            !["sqlite_sequence", "figures"].contains(&table.as_str()) && !table.starts_with("versions");
        ensure!(
            !is_copied || rows.is_empty() || text.contains(&format!("{table}: ")),
            "{table} is not reported: {text}"
        );
    }
    assert_eq!(describe(&database.url)?, expected, "PostgreSQL differs from the source");
    copy_all(&database.url, &main_file(&back))?;
    check_rows(&dump(&back)?, &before);
    assert_eq!(describe(&main_file(&back))?, expected, "the files differ from the source");
    assert_eq!(dump(&data)?, before, "the source was changed");
    // Both copies are usable: new records get new numbers.
    for storage in [main_file(&back), database.url.clone()] {
        let settings = [("VERBATIM_STORAGE__URL", storage.as_str())];
        let grant = ["accounts", "grant", "ann@example.org", "5"];
        run_ok(verbatim_with(back.path(), &settings, &grant), b"")?;
        describe(&storage)?;
    }
    Ok(())
}

/// Starts a copy and kills it after it has reported this many tables.
fn kill_copy(from: &str, to: &str, tables: usize) -> Result<()> {
    let mut child = copy_command(from, to)?.stdout(Stdio::null()).stderr(Stdio::piped()).spawn()?;
    let lines = BufReader::new(child.stderr.take().context("no standard error")?).lines();
    // Each line reports a table that is at least partly stored.
    let reported: Vec<String> = lines.take(tables).collect::<std::io::Result<_>>()?;
    child.kill()?;
    let status = child.wait()?;
    let is_copying = reported.len() == tables && reported.iter().all(|line| line.starts_with("copied "));
    ensure!(is_copying && !status.success(), "the copy was not killed while it ran: {reported:?}");
    Ok(())
}

/// Kills a copy repeatedly before it ends, without opening the target in between; then lets it finish.
fn copy_with_kills(from: &str, to: &str) -> Result<()> {
    for tables in KILLS {
        kill_copy(from, to, tables)?;
        ensure!(is_rejected(to)?, "an incomplete copy was opened");
    }
    let text = copy_all(from, to)?;
    ensure!(text.contains("was resumed"), "{text}");
    ensure!(!is_rejected(to)?, "a complete copy was rejected");
    Ok(())
}

/// Whether commands and servers reject the storage as an incomplete copy.
fn is_rejected(storage: &str) -> Result<bool> {
    let empty_folder = TempDir::new()?;
    let output = run(command_on(storage, empty_folder.path(), &["ledger", "audit"]), b"")?;
    if output.status.success() {
        return Ok(false);
    }
    let message = String::from_utf8_lossy(&output.stderr).into_owned();
    ensure!(message.contains("is incomplete") && message.contains("verbatim storage copy"), "{message}");
    let serve = command_on(storage, empty_folder.path(), &["serve", "--listen", "127.0.0.1:0"]);
    let serve = run(serve, b"")?;
    ensure!(!serve.status.success() && serve.stdout.is_empty(), "a server started on an incomplete copy");
    Ok(true)
}

fn command_on(storage: &str, data: &Path, arguments: &[&str]) -> Command {
    let mut command = verbatim(data, arguments);
    command.env("VERBATIM_STORAGE__URL", storage);
    if let Some(path) = storage.strip_prefix("sqlite://") {
        let archive = Path::new(path).with_file_name("archive.db");
        command.env("VERBATIM_STORAGE__ARCHIVE_URL", format!("sqlite://{}", archive.display()));
    }
    command
}

#[tokio::test(flavor = "multi_thread")]
async fn copy_killed_repeatedly_resumes() -> Result<()> {
    let (data, back) = (TempDir::new()?, TempDir::new()?);
    fill(&data, 6_000).await?;
    let before = dump(&data)?;
    let database = new_database()?;
    copy_with_kills(&main_file(&data), &database.url)?;
    copy_with_kills(&database.url, &main_file(&back))?;
    check_rows(&dump(&back)?, &before);
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn copy_of_store_in_use_is_rejected() -> Result<()> {
    let data = TempDir::new()?;
    fill(&data, 20).await?;
    let database = new_database()?;
    {
        let _server = ServerFixture::start(&data, &[])?;
        let message = copy_error(&main_file(&data), &database.url)?;
        ensure!(
            message.contains("verbatim.db is in use") && message.contains("stop every server"),
            "{message}"
        );
    }
    copy_all(&main_file(&data), &database.url)?;
    let another = TempDir::new()?;
    let settings = [("VERBATIM_STORAGE__URL", database.url.as_str())];
    let server = ServerFixture::start(&another, &settings)?;
    let back = TempDir::new()?;
    let message = copy_error(&database.url, &main_file(&back))?;
    ensure!(message.contains("is in use by verbatim") && message.contains("a pooler"), "{message}");
    // The server still serves and writes.
    assert_eq!(server.get("/health").await?.status, 200);
    drop(server);
    copy_all(&database.url, &main_file(&back)).map(drop)
}

#[tokio::test(flavor = "multi_thread")]
async fn copy_to_nonempty_target_is_rejected() -> Result<()> {
    let (data, other) = (TempDir::new()?, TempDir::new()?);
    fill(&data, 20).await?;
    fill(&other, 5).await?;
    let database = new_database()?;
    copy_all(&main_file(&other), &database.url)?;
    let expected = describe(&database.url)?;
    // The target is no incomplete copy, but other data.
    let message = copy_error(&main_file(&data), &database.url)?;
    ensure!(message.contains("already has rows"), "{message}");
    assert_eq!(describe(&database.url)?, expected, "the target was changed");
    let before = dump(&other)?;
    let source = new_database()?;
    copy_all(&main_file(&data), &source.url)?;
    let message = copy_error(&source.url, &main_file(&other))?;
    ensure!(message.contains("already has rows"), "{message}");
    assert_eq!(dump(&other)?, before, "the target was changed");

    // A file that is no database.
    let foreign = TempDir::new()?;
    std::fs::write(foreign.path().join("verbatim.db"), b"text of another program".repeat(100))?;
    let message = copy_error(&source.url, &main_file(&foreign))?;
    ensure!(message.contains("verbatim.db"), "{message}");
    assert_eq!(std::fs::read(foreign.path().join("verbatim.db"))?, b"text of another program".repeat(100));

    for (from, to, why) in [
        (main_file(&data), main_file(&foreign), "pg_dump"),
        (source.url.clone(), database.url.clone(), "pg_dump"),
        ("sqlite:///nowhere/verbatim.db".to_owned(), database.url.clone(), "does not exist"),
        ("verbatim.db".to_owned(), database.url.clone(), "--from: expected sqlite://"),
    ] {
        let message = copy_error(&from, &to)?;
        ensure!(message.contains(why), "{from} to {to}: {message}");
    }
    Ok(())
}

/// Servers of the version before must be able to start again.
#[tokio::test(flavor = "multi_thread")]
async fn copy_that_is_rejected_migrates_nothing() -> Result<()> {
    let (data, folder) = (TempDir::new()?, TempDir::new()?);
    fill(&data, 20).await?;
    let (older, newest) = (new_database()?, new_database()?);
    copy_all(&main_file(&data), &older.url)?;
    copy_all(&main_file(&data), &newest.url)?;
    let (half, bare) = (new_database()?, TempDir::new()?);
    copy_all(&main_file(&data), &half.url)?;
    mark_end_missing(&half.url, "another source", "main")?;
    std::fs::copy(data.path().join("verbatim.db"), bare.path().join("verbatim.db"))?;
    let server = ServerFixture::start(&folder, &[("VERBATIM_STORAGE__URL", older.url.as_str())])?;
    // As if this program had one more migration than the program that wrote them.
    let file = data.path().join("verbatim.db");
    sqlite(&file, "DELETE FROM schema_version WHERE version = (SELECT max(version) FROM schema_version)")?;
    psql(
        &older.url,
        "DELETE FROM verbatim_schema s USING (
            SELECT part, max(version) AS version FROM verbatim_schema GROUP BY part
        ) newest WHERE s.part = newest.part AND s.version = newest.version",
    )?;
    let versions = || -> Result<[String; 2]> {
        let on_server = "SELECT part, max(version) FROM verbatim_schema GROUP BY part ORDER BY part";
        let in_file = "SELECT max(version) FROM schema_version";
        Ok([psql(&older.url, on_server)?, sqlite(&file, in_file)?])
    };
    let before = versions()?;
    let message = copy_error(&older.url, &main_file(&TempDir::new()?))?;
    ensure!(message.contains("is in use"), "{message}");
    drop(server);
    for (from, to, why) in [
        (main_file(&data), older.url.clone(), "tables of an earlier version"),
        (newest.url.clone(), main_file(&data), "tables of an earlier version"),
        (main_file(&data), newest.url.clone(), "already has rows"),
        (main_file(&data), half.url.clone(), "is incomplete and has another source"),
        (newest.url.clone(), main_file(&bare), "already has rows"),
    ] {
        let message = copy_error(&from, &to)?;
        ensure!(message.contains(why), "{from} to {to}: {message}");
    }
    assert_eq!(versions()?, before);
    let tables = sqlite(&bare.path().join("archive.db"), "SELECT count(*) FROM sqlite_schema")?;
    assert_eq!(tables.trim(), "0", "the other part of the target was changed");
    Ok(())
}

/// A role or a database may end idle transactions: a source has one while the other part is copied.
#[tokio::test(flavor = "multi_thread")]
async fn copy_outlasts_time_limit_of_source() -> Result<()> {
    let (data, back) = (TempDir::new()?, TempDir::new()?);
    fill(&data, 6_000).await?;
    let database = new_database()?;
    copy_all(&main_file(&data), &database.url)?;
    let (_, name) = database.url.rsplit_once('/').context("no name")?;
    let limit = "idle_in_transaction_session_timeout = '50ms'";
    psql(&database.url, &format!("ALTER DATABASE {name} SET {limit}"))?;
    copy_all(&database.url, &main_file(&back)).map(drop)
}

#[tokio::test(flavor = "multi_thread")]
async fn copy_resumes_from_same_source_only() -> Result<()> {
    let (data, other) = (TempDir::new()?, TempDir::new()?);
    fill(&data, 6_000).await?;
    fill(&other, 5).await?;
    let database = new_database()?;
    kill_copy(&main_file(&data), &database.url, 1)?;
    let message = copy_error(&main_file(&other), &database.url)?;
    ensure!(message.contains("is incomplete and has another source"), "{message}");
    let message = copy_error(&database.url, &main_file(&TempDir::new()?))?;
    ensure!(message.contains("is incomplete"), "{message}");
    copy_all(&main_file(&data), &database.url)?;
    assert_eq!(describe(&database.url)?, describe(&main_file(&data))?);
    Ok(())
}

/// Marks a complete copy as one that was interrupted at its end, after the comparison.
fn mark_end_missing(target: &str, source: &str, part: &str) -> Result<String> {
    let create = "CREATE TABLE IF NOT EXISTS verbatim_copying
        (part TEXT PRIMARY KEY, source TEXT NOT NULL, place TEXT NOT NULL";
    let state = format!("INSERT INTO verbatim_copying VALUES ('{part}', '{source}', '\"Compared\"'");
    let Some(main) = target.strip_prefix("sqlite://") else {
        let mark = format!("INSERT INTO verbatim_schema VALUES ('{part}', 1000000000, 'half copied', 0)");
        return psql(target, &format!("{create}, holder BIGINT NOT NULL); {state}, 0); {mark}"));
    };
    let file = Path::new(main).with_file_name(if part == "main" { "verbatim.db" } else { "archive.db" });
    let mark = "INSERT INTO schema_version VALUES (1000000000, 'half copied', 0)";
    sqlite(&file, &format!("{create}) STRICT; {state}); {mark}"))
}

/// A copy that was interrupted after its comparison is compared again, and fails if the source was used since.
fn check_end_of_copy(from: &str, to: &str) -> Result<()> {
    kill_copy(from, to, 1)?;
    let query = "SELECT source FROM verbatim_copying WHERE part = 'main'";
    let source = match to.strip_prefix("sqlite://") {
        Some(file) => sqlite(Path::new(file), query)?,
        None => psql(to, query)?,
    };
    copy_all(from, to)?;
    for parts in [&["main"][..], &["main", "archive"]] {
        for part in parts {
            mark_end_missing(to, source.trim_end(), part)?;
        }
        ensure!(is_rejected(to)?, "an incomplete copy was opened");
        let text = copy_all(from, to)?;
        ensure!(text.contains("was resumed"), "{text}");
    }
    let folder = TempDir::new()?;
    run_ok(command_on(from, folder.path(), &["accounts", "grant", "ann@example.org", "5"]), b"")?;
    for part in ["main", "archive"] {
        mark_end_missing(to, source.trim_end(), part)?;
        let message = copy_error(from, to)?;
        ensure!(message.contains("are not the same"), "{message}");
        ensure!(is_rejected(to)?, "an outdated copy was opened");
    }
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn copy_interrupted_at_its_end_is_compared_again() -> Result<()> {
    let (data, back) = (TempDir::new()?, TempDir::new()?);
    fill(&data, 6_000).await?;
    let (database, source) = (new_database()?, new_database()?);
    check_end_of_copy(&main_file(&data), &database.url)?;
    copy_all(&main_file(&data), &source.url)?;
    check_end_of_copy(&source.url, &main_file(&back))
}

/// `get` and `import` create an archive only.
#[tokio::test(flavor = "multi_thread")]
async fn copy_of_archive_alone_has_its_transcripts() -> Result<()> {
    let data = TempDir::new()?;
    fill(&data, 20).await?;
    std::fs::remove_file(data.path().join("verbatim.db"))?;
    let audit = run(verbatim(data.path(), &["ledger", "audit"]), b"")?;
    ensure!(!audit.status.success(), "a lost ledger passes the audit");

    let database = new_database()?;
    let output = copy(&main_file(&data), &database.url)?;
    let message = String::from_utf8_lossy(&output.stderr).into_owned();
    ensure!(output.status.success(), "{message}");
    ensure!(message.contains("there are no keys, accounts and credits"), "{message}");
    ensure!(!data.path().join("verbatim.db").exists(), "the source was changed");
    let empty_folder = TempDir::new()?;
    let stats = ["archive", "stats", "--json"];
    let copied = run_ok(command_on(&database.url, empty_folder.path(), &stats), b"")?;
    assert_eq!(copied, run_ok(verbatim(data.path(), &stats), b"")?);
    ensure!(!copied.is_empty(), "no figures");
    Ok(())
}

/// The transcripts are in a database of their own.
#[tokio::test(flavor = "multi_thread")]
async fn copy_of_two_databases_finds_archive_of_settings() -> Result<()> {
    let (data, half, back) = (TempDir::new()?, TempDir::new()?, TempDir::new()?);
    fill(&data, 20).await?;
    let before = dump(&data)?;
    let (main, archive) = (new_database()?, new_database()?);
    let mut command = copy_command(&main_file(&data), &main.url)?;
    command.args(["--to-archive", archive.url.as_str()]);
    run_ok(command, b"")?;

    let output = copy(&main.url, &main_file(&half))?;
    let message = String::from_utf8_lossy(&output.stderr).into_owned();
    ensure!(output.status.success() && message.contains("the source has no transcripts"), "{message}");
    ensure!(!message.contains("no keys"), "{message}");

    let mut command = copy_command(&main.url, &main_file(&back))?;
    command.env("VERBATIM_STORAGE__URL", &main.url).env("VERBATIM_STORAGE__ARCHIVE_URL", &archive.url);
    let output = run(command, b"")?;
    let message = String::from_utf8_lossy(&output.stderr).into_owned();
    ensure!(output.status.success() && !message.contains("the source has no"), "{message}");
    check_rows(&dump(&back)?, &before);
    Ok(())
}
