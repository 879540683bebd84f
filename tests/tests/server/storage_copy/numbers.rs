//! Each PostgreSQL server numbers entries per wallet and tracks per video; in a file all numbers are unique.

use anyhow::{Result, ensure};
use tempfile::TempDir;

use super::{copy_all, describe, fill, main_file, new_database};
use crate::server::harness::{psql, sqlite};

#[tokio::test(flavor = "multi_thread")]
async fn copy_duplicate_numbers_become_unique_and_keep_order() -> Result<()> {
    let (data, back) = (TempDir::new()?, TempDir::new()?);
    fill(&data, 400).await?;
    let database = new_database()?;
    copy_all(&main_file(&data), &database.url)?;
    // As if all wallets and videos had started with the same numbers.
    psql(
        &database.url,
        "CREATE TABLE fresh AS SELECT wallet, seq, row_number() OVER (PARTITION BY wallet ORDER BY seq) + 7 AS number
            FROM ledger_entries;
        UPDATE ledger_entries e SET seq = -f.number FROM fresh f WHERE f.wallet = e.wallet AND f.seq = e.seq;
        UPDATE ledger_entries SET seq = -seq;
        UPDATE ledger_pools SET number = 5, last_entry = 1000000;
        UPDATE keys SET seq = 9 WHERE account IS NOT NULL;
        DROP TABLE fresh;
        CREATE TABLE fresh AS SELECT video, id, row_number() OVER (PARTITION BY video ORDER BY id) + 3 AS number
            FROM tracks;
        INSERT INTO tracks SELECT t.video, f.number + 1000000, t.language, t.kind, t.name, t.original
            FROM tracks t JOIN fresh f ON f.video = t.video AND f.id = t.id;
        UPDATE transcripts t SET track = f.number + 1000000 FROM fresh f WHERE f.video = t.video AND f.id = t.track;
        DELETE FROM tracks WHERE id <= 1000000;
        DROP TABLE fresh",
    )?;
    ensure!(psql(&database.url, "SELECT count(*) - count(DISTINCT seq) FROM ledger_entries")?.trim() != "0");
    ensure!(psql(&database.url, "SELECT count(*) - count(DISTINCT id) FROM tracks")?.trim() != "0");
    let expected = describe(&database.url)?;
    copy_all(&database.url, &main_file(&back))?;
    assert_eq!(describe(&main_file(&back))?, expected);
    let order = "SELECT wallet || ' ' || cause || ' ' || kind || ' ' || amount FROM ledger_entries ORDER BY wallet, seq";
    let (before, after) = (data.path().join("verbatim.db"), back.path().join("verbatim.db"));
    assert_eq!(sqlite(&before, order)?, sqlite(&after, order)?, "the order of a wallet's entries");
    let tracks = "SELECT video, language, kind, original FROM tracks ORDER BY video, id";
    let (before, after) = (data.path().join("archive.db"), back.path().join("archive.db"));
    assert_eq!(sqlite(&before, tracks)?, sqlite(&after, tracks)?, "the order of a video's tracks");
    ensure!(sqlite(&after, "PRAGMA integrity_check")?.trim() == "ok");
    Ok(())
}
