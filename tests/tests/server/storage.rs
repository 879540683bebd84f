//! Database files that cannot be used: a clear sentence that names the file, and nothing is lost.

use std::path::Path;

use anyhow::Result;
use tempfile::TempDir;

use super::harness::{run, verbatim};

/// Starts a server that cannot start; its message.
fn refused(data: &Path) -> Result<String> {
    let output = run(verbatim(data, &["serve", "--listen", "127.0.0.1:0"]), b"")?;
    let message = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(matches!(output.status.code(), Some(1 | 2)), "{:?}: {message}", output.status);
    assert!(output.stdout.is_empty(), "a server that cannot start says nothing on standard output");
    assert!(!message.contains("panicked") && !message.contains("stack backtrace"), "{message}");
    Ok(message)
}

/// A data folder in which both files are good.
fn good() -> Result<TempDir> {
    let data = TempDir::new()?;
    let made = run(verbatim(data.path(), &["keys", "create"]), b"")?;
    assert!(made.status.success(), "{}", String::from_utf8_lossy(&made.stderr));
    Ok(data)
}

#[test]
fn a_file_that_is_no_database_is_named_and_left_as_it_is() -> Result<()> {
    for name in ["verbatim.db", "archive.db"] {
        let data = good()?;
        let file = data.path().join(name);
        for suffix in ["-wal", "-shm"] {
            let _ = std::fs::remove_file(data.path().join(format!("{name}{suffix}")));
        }
        let junk = b"This is somebody's novel, not a database.\n".repeat(500);
        std::fs::write(&file, &junk)?;
        let message = refused(data.path())?;
        assert!(message.contains(name), "{message}");
        assert_eq!(std::fs::read(&file)?, junk, "{name} was changed");
    }
    Ok(())
}

#[test]
fn a_file_of_a_newer_version_is_refused_and_left_as_it_is() -> Result<()> {
    for name in ["verbatim.db", "archive.db"] {
        let data = good()?;
        let file = data.path().join(name);
        let bump = run(
            {
                let mut sqlite = std::process::Command::new("sqlite3");
                sqlite.arg(&file).arg("UPDATE schema_version SET version = version + 1000;");
                sqlite
            },
            b"",
        )?;
        assert!(bump.status.success(), "{}", String::from_utf8_lossy(&bump.stderr));
        let message = refused(data.path())?;
        assert!(message.contains(name) && message.contains("newer"), "{message}");
    }
    Ok(())
}

/// Who only wants a transcript does not need the file of keys and the ledger.
#[test]
fn what_is_archived_is_had_whatever_is_wrong_with_the_ledger() -> Result<()> {
    use std::{os::unix::fs::PermissionsExt, process::Stdio};
    let data = good()?;
    let file = data.path().join("verbatim.db");
    let import = ["import", "-", "--video", "dyke-walk-0", "--lang", "en"];
    let words = b"1\n00:00:01,000 --> 00:00:02,000\nThe sheep keep the grass short.\n";
    let told = |arguments: &[&str], input: &[u8]| -> Result<String> {
        let output = run(verbatim(data.path(), arguments), input)?;
        anyhow::ensure!(
            output.status.success(),
            "{arguments:?}: {}",
            String::from_utf8_lossy(&output.stderr)
        );
        Ok(String::from_utf8_lossy(&output.stdout).into_owned())
    };
    let works = |why: &str| -> Result<()> {
        assert!(told(&import, words)?.contains("segments read"), "{why}");
        assert!(told(&["get", "dyke-walk-0"], b"")?.contains("sheep"), "{why}");
        assert!(told(&["archive", "show", "dyke-walk-0"], b"")?.contains("revision 1"), "{why}");
        Ok(())
    };
    works("sound")?;

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
    works("locked")?;
    assert!(!run(verbatim(data.path(), &["keys", "list"]), b"")?.status.success(), "it is not locked");
    drop(statements);
    holder.wait()?;

    std::fs::set_permissions(&file, std::fs::Permissions::from_mode(0o400))?;
    works("read-only")?;
    std::fs::set_permissions(&file, std::fs::Permissions::from_mode(0o600))?;
    std::fs::write(&file, "somebody's novel")?;
    works("no database")?;
    Ok(())
}

#[test]
fn a_folder_in_place_of_a_file_and_a_file_in_place_of_the_folder() -> Result<()> {
    let data = TempDir::new()?;
    std::fs::create_dir(data.path().join("archive.db"))?;
    assert!(refused(data.path())?.contains("archive.db"));
    let file = data.path().join("not-a-folder");
    std::fs::write(&file, "x")?;
    assert!(refused(&file)?.contains("not-a-folder"));
    Ok(())
}

#[test]
fn an_empty_file_is_a_fresh_one() -> Result<()> {
    let data = TempDir::new()?;
    std::fs::write(data.path().join("verbatim.db"), "")?;
    let made = run(verbatim(data.path(), &["keys", "create"]), b"")?;
    assert!(made.status.success(), "{}", String::from_utf8_lossy(&made.stderr));
    Ok(())
}
