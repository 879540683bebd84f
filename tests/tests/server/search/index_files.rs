//! An index that is missing or damaged is built again while the server serves.

use anyhow::Result;
use tempfile::TempDir;

use super::{LIGHTHOUSE, command, import, wait_for};
use crate::server::harness::{ServerFixture, import_example, run, sqlite, verbatim};

#[tokio::test(flavor = "multi_thread")]
async fn search_lost_index_is_built_again() -> Result<()> {
    let data = TempDir::new()?;
    import_example(&data, LIGHTHOUSE)?;
    let log = data.path().join("server.log");
    let mut server = ServerFixture::start_with_log(&data, &[], &log)?;
    wait_for(&server, "lighthouse", &["L1ghth0use1"]).await?;
    // Deleted while the server runs.
    std::fs::remove_dir_all(data.path().join("search"))?;
    wait_for(&server, "lighthouse", &["L1ghth0use1"]).await?;
    // Afterwards the file has everything: the log of the database is empty.
    server.stop()?;
    // Damaged while no server runs: other contents, damaged pages.
    let file = data.path().join("search/index.db");
    let sound = std::fs::read(&file)?;
    let damaged_page = {
        let mut bytes = sound.clone();
        bytes[4_096..].fill(0x5a);
        bytes
    };
    for bytes in [b"no database".to_vec(), damaged_page] {
        for suffix in ["-wal", "-shm"] {
            let _ = std::fs::remove_file(data.path().join(format!("search/index.db{suffix}")));
        }
        std::fs::write(&file, bytes)?;
        let server = ServerFixture::start_with_log(&data, &[], &log)?;
        assert_eq!(server.get("/api/transcript?v=L1ghth0use1").await?.json()["available"], true);
        wait_for(&server, "lighthouse", &["L1ghth0use1"]).await?;
        let lines = std::fs::read_to_string(&log)?;
        assert!(lines.contains("search index unreadable; it is deleted and built again"), "{lines}");
    }
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn search_file_that_is_no_index_is_unchanged() -> Result<()> {
    let data = TempDir::new()?;
    import_example(&data, LIGHTHOUSE)?;
    let file = data.path().join("search/index.db");
    std::fs::create_dir_all(data.path().join("search"))?;
    let own = std::fs::read(data.path().join("archive.db"))?;
    sqlite(&file, "CREATE TABLE recipes (name TEXT); INSERT INTO recipes VALUES ('bread')")?;
    let foreign = std::fs::read(&file)?;
    for (before, why) in [(foreign, "another program"), (own, "two paths are swapped")] {
        std::fs::write(&file, &before)?;
        let output = run(verbatim(data.path(), &["search", "lighthouse"]), b"")?;
        let message = String::from_utf8_lossy(&output.stderr).into_owned();
        assert!(!output.status.success() && message.contains(why), "{message}");
        assert!(message.contains("index.db"), "{message}");
        let server = ServerFixture::start(&data, &[])?;
        assert_eq!(server.get("/api/transcript?v=L1ghth0use1").await?.json()["available"], true);
        drop(server);
        assert_eq!(std::fs::read(&file)?, before);
    }
    Ok(())
}

/// The archive is replaced by a backup, and the newer index stays.
#[tokio::test(flavor = "multi_thread")]
async fn search_finds_new_text_after_restore_of_archive() -> Result<()> {
    let data = TempDir::new()?;
    let (archive, backup) = (data.path().join("archive.db"), data.path().join("backup.db"));
    import(data.path(), &[], "aaaaaaaaaaa", "en", "An old pier")?;
    std::fs::copy(&archive, &backup)?;
    for id in ["ccccccccccc", "bbbbbbbbbbb"] {
        import(data.path(), &[], id, "en", "A new pier")?;
    }
    assert!(command(data.path(), &[], &["search", "pier"])?.starts_with("3 videos\n"));
    for suffix in ["-wal", "-shm"] {
        let _ = std::fs::remove_file(data.path().join(format!("archive.db{suffix}")));
    }
    std::fs::copy(&backup, &archive)?;
    // Its change has a lower number than the index knows for the video.
    import(data.path(), &[], "bbbbbbbbbbb", "en", "A new bridge")?;
    let server = ServerFixture::start(&data, &[])?;
    wait_for(&server, "bridge", &["bbbbbbbbbbb"]).await?;
    wait_for(&server, "pier", &["aaaaaaaaaaa"]).await
}
