//! Unusable database files: the error names the file, and no data is lost.

use std::path::Path;

use anyhow::Result;
use tempfile::TempDir;

use super::harness::{ServerFixture, run, run_ok, sqlite, verbatim};

/// Starts a server that must fail to start; returns its error message.
fn start_error(data: &Path) -> Result<String> {
    let output = run(verbatim(data, &["serve", "--listen", "127.0.0.1:0"]), b"")?;
    let message = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(matches!(output.status.code(), Some(1 | 2)), "{:?}: {message}", output.status);
    assert!(output.stdout.is_empty(), "a server that failed to start wrote to standard output");
    assert!(!message.contains("panicked") && !message.contains("stack backtrace"), "{message}");
    Ok(message)
}

/// A data folder with both files in order.
fn new_data_folder() -> Result<TempDir> {
    let data = TempDir::new()?;
    run_ok(verbatim(data.path(), &["keys", "create"]), b"")?;
    Ok(data)
}

#[test]
fn storage_file_without_database_is_named_and_unchanged() -> Result<()> {
    for name in ["verbatim.db", "archive.db"] {
        let data = new_data_folder()?;
        let file = data.path().join(name);
        for suffix in ["-wal", "-shm"] {
            let _ = std::fs::remove_file(data.path().join(format!("{name}{suffix}")));
        }
        let junk = b"This is text of another program, not a database.\n".repeat(500);
        std::fs::write(&file, &junk)?;
        let message = start_error(data.path())?;
        assert!(message.contains(name), "{message}");
        assert_eq!(std::fs::read(&file)?, junk, "{name} was changed");
    }
    Ok(())
}

#[test]
fn storage_file_of_newer_version_is_rejected() -> Result<()> {
    for name in ["verbatim.db", "archive.db"] {
        let data = new_data_folder()?;
        let file = data.path().join(name);
        sqlite(&file, "UPDATE schema_version SET version = version + 1000;")?;
        let message = start_error(data.path())?;
        assert!(message.contains(name) && message.contains("newer"), "{message}");
    }
    Ok(())
}

/// Reading transcripts does not need the file of keys and ledger.
#[test]
fn archive_is_readable_with_unusable_ledger() -> Result<()> {
    use std::{os::unix::fs::PermissionsExt, process::Stdio};
    let data = new_data_folder()?;
    let file = data.path().join("verbatim.db");
    let import = ["import", "-", "--video", "dyke-walk-0", "--lang", "en"];
    let words = b"1\n00:00:01,000 --> 00:00:02,000\nThe sheep keep the grass short.\n";
    let stdout_of = |arguments: &[&str], input: &[u8]| run_ok(verbatim(data.path(), arguments), input);
    let check_transcript = |why: &str| -> Result<()> {
        assert!(stdout_of(&import, words)?.contains("segments read"), "{why}");
        assert!(stdout_of(&["get", "dyke-walk-0"], b"")?.contains("sheep"), "{why}");
        assert!(stdout_of(&["archive", "show", "dyke-walk-0"], b"")?.contains("revision 1"), "{why}");
        Ok(())
    };
    check_transcript("sound")?;

    let mut locking = std::process::Command::new("sqlite3");
    let mut holder = locking.arg(&file).stdin(Stdio::piped()).stdout(Stdio::piped()).spawn()?;
    let mut statements = holder.stdin.take().expect("it is piped");
    std::io::Write::write_all(
        &mut statements,
        b"PRAGMA locking_mode = EXCLUSIVE; BEGIN EXCLUSIVE; SELECT 'it is locked';\n",
    )?;
    let mut answer = std::io::BufReader::new(holder.stdout.take().expect("it is piped"));
    let mut line = String::new();
    while !line.contains("it is locked") {
        line.clear();
        anyhow::ensure!(std::io::BufRead::read_line(&mut answer, &mut line)? > 0, "sqlite3 ended");
    }
    check_transcript("locked")?;
    assert!(!run(verbatim(data.path(), &["keys", "list"]), b"")?.status.success(), "it is not locked");
    drop(statements);
    holder.wait()?;

    std::fs::set_permissions(&file, std::fs::Permissions::from_mode(0o400))?;
    check_transcript("read-only")?;
    std::fs::set_permissions(&file, std::fs::Permissions::from_mode(0o600))?;
    std::fs::write(&file, "text of another program")?;
    check_transcript("no database")?;
    Ok(())
}

#[test]
fn storage_folder_and_file_swapped_is_named() -> Result<()> {
    let data = TempDir::new()?;
    std::fs::create_dir(data.path().join("archive.db"))?;
    assert!(start_error(data.path())?.contains("archive.db"));
    let file = data.path().join("not-a-folder");
    std::fs::write(&file, "x")?;
    assert!(start_error(&file)?.contains("not-a-folder"));
    Ok(())
}

#[test]
fn storage_empty_file_is_initialized() -> Result<()> {
    let data = TempDir::new()?;
    std::fs::write(data.path().join("verbatim.db"), "")?;
    run_ok(verbatim(data.path(), &["keys", "create"]), b"")?;
    Ok(())
}

/// An empty file of keys and accounts beside transcripts is a lost one; a missing one is made.
#[test]
fn storage_empty_ledger_beside_transcripts_is_rejected() -> Result<()> {
    let data = TempDir::new()?;
    let import = ["import", "-", "--video", "dyke-walk-0", "--lang", "en"];
    let words = b"1\n00:00:01,000 --> 00:00:02,000\nThe sheep keep the grass short.\n";
    run_ok(verbatim(data.path(), &import), words)?;
    let file = data.path().join("verbatim.db");
    assert!(!file.exists(), "an import makes the archive only");
    std::fs::write(&file, "")?;
    let message = start_error(data.path())?;
    assert!(message.contains("verbatim.db is empty") && message.contains("from a backup"), "{message}");
    assert_eq!(std::fs::metadata(&file)?.len(), 0, "the file was changed");
    std::fs::remove_file(&file)?;
    run_ok(verbatim(data.path(), &["keys", "create"]), b"")?;
    Ok(())
}

/// An empty archive beside charges or credits is a lost one; a missing one is made, with a warning.
#[test]
fn storage_empty_archive_beside_credits_is_rejected() -> Result<()> {
    let data = TempDir::new()?;
    run_ok(verbatim(data.path(), &["accounts", "create", "example-ltd", "--credits", "5"]), b"")?;
    let file = data.path().join("archive.db");
    let remove = || {
        for suffix in ["", "-wal", "-shm"] {
            let _ = std::fs::remove_file(data.path().join(format!("archive.db{suffix}")));
        }
    };
    remove();
    std::fs::write(&file, "")?;
    let message = start_error(data.path())?;
    assert!(message.contains("archive.db is empty") && message.contains("from a backup"), "{message}");
    assert_eq!(std::fs::metadata(&file)?.len(), 0, "the file was changed");
    remove();
    let log = data.path().join("log");
    let mut server = ServerFixture::start_with_log(&data, &[], &log)?;
    assert!(server.stop()?.success());
    let log = std::fs::read_to_string(&log)?;
    assert!(log.contains("new archive made beside a ledger with charges"), "{log}");
    Ok(())
}
