//! Query plans of the hot statements: none scans a whole table.

use super::{
    ARCHIVE, FileLocking, MAIN, SqliteArchive, SqliteOptions, SqliteStore, charges, ledger,
    session::SqliteSession,
};
use crate::store::{admin, archive, directory, idempotency, jobs, limits, outbox, sessions};

/// Permitted scans: the rows of a request's JSON or parameters, the rows found with them, and a page.
const SMALL: [&str; 5] = ["VIRTUAL TABLE", "CONSTANT ROW", "SCAN (subquery", "SCAN some", "SCAN waiting"];

/// A thousand rows in the tables that grow fastest.
const FILL_MAIN: &str = "
WITH RECURSIVE n (x) AS (SELECT 1 UNION ALL SELECT x + 1 FROM n WHERE x < 1000)
INSERT INTO ledger_pools (wallet, bucket, cap, spent, held, granted) SELECT 'w' || x, '', 0, 0, 0, 5 FROM n;
INSERT INTO ledger_holds SELECT 'h' || wallet, 'open', id, '', '[]' FROM ledger_pools;
INSERT INTO ledger_open SELECT 'h' || wallet, wallet, id FROM ledger_pools;
INSERT INTO ledger_transfers SELECT 'g' || wallet, 'grant', wallet, 'g' || wallet, 5, 0, 0 FROM ledger_pools;
INSERT INTO accounts (seq, id, version, email, wallet, plan, anchor, customer, blocked)
    SELECT id, 'a' || id, 1, id || '@example.org', wallet, 'free', 0, 'c' || id, 0 FROM ledger_pools;
INSERT INTO keys (id, digest, hint, created_at, account) SELECT 'k' || seq, CAST(id AS BLOB), '', 0, id FROM accounts;
INSERT INTO tokens (digest, email, expires_at) SELECT CAST(id AS BLOB), email, seq FROM accounts;
INSERT INTO sessions SELECT CAST(id AS BLOB), 's' || seq, id, '', 0, seq, seq FROM accounts;
INSERT INTO sign_in_links SELECT CAST(id AS BLOB), id, seq, NULL FROM accounts;
INSERT INTO limits SELECT wallet, id, '[]' FROM ledger_pools;
INSERT INTO replies (key, fingerprint, holder, lease_until, keep_until)
    SELECT wallet, x'00', 'h', id, id FROM ledger_pools;
INSERT INTO outbox (id, kind, recipient, attempts, due_at) SELECT wallet, 'verify', 'x', 0, id FROM ledger_pools;
INSERT INTO jobs SELECT wallet, wallet, 'running', NULL, NULL, 1, 0, 0, 0, 0, 0, id, NULL, id, id, NULL, NULL, NULL, NULL, NULL, NULL, NULL FROM ledger_pools;
INSERT INTO job_items SELECT wallet, 0, 'queued', 'x', 'x', id, 0, 0, NULL, NULL, 0, NULL, 0 FROM ledger_pools;
INSERT INTO job_lists SELECT wallet, 'x', 1, 0, NULL, 0 FROM ledger_pools;
INSERT INTO job_events SELECT wallet, 1, wallet, 'job.completed', id, 0, 0, id FROM ledger_pools;
INSERT INTO job_event_attempts SELECT wallet || '/1', 1, id, 200, NULL, NULL FROM ledger_pools;
INSERT INTO webhook_secrets SELECT wallet, 2, id FROM ledger_pools;";

const FILL_ARCHIVE: &str = "
WITH RECURSIVE n (x) AS (SELECT 1 UNION ALL SELECT x + 1 FROM n WHERE x < 1000)
INSERT INTO tracks SELECT x, 'youtube/' || x, 'en', 'human', NULL, 1 FROM n;
INSERT INTO transcripts SELECT id, video, id, 1, 1, 0, zeroblob(32), 1, 1, x'00' FROM tracks;
INSERT INTO bodies SELECT id, content_sha256, 'x', 1, 1, '', x'00', 1 FROM transcripts;
INSERT INTO words SELECT id, x'00' FROM transcripts;
INSERT INTO vectors SELECT id, x'00', x'00' FROM transcripts;
INSERT INTO details (video, metadata) SELECT video, '{}' FROM tracks;
INSERT INTO cold SELECT id * 65536, x'00' FROM tracks;
INSERT INTO wishes SELECT video, 'default', id FROM tracks;
INSERT INTO absences SELECT video, 'de', 'x', 'x', '[]', id FROM tracks;
INSERT INTO leases SELECT video, 'de', 'h', id FROM tracks;
INSERT INTO links SELECT video, video FROM tracks;";

/// The steps of a statement's plan.
fn plan(db: &SqliteSession, statement: &str) -> Vec<String> {
    const PARAMETERS: [crate::sql::Value<'_>; 16] = [const { crate::sql::Value::Null }; 16];
    let plan = db.query(&format!("EXPLAIN QUERY PLAN {statement}"), &PARAMETERS).unwrap();
    plan.into_iter().map(|mut row| row.take::<String>(3).unwrap()).collect()
}

/// The steps of a plan that scan a whole table.
fn scans(db: &SqliteSession, statement: &str) -> Vec<String> {
    let small = |step: &String| SMALL.iter().any(|small| step.contains(small));
    plan(db, statement).into_iter().filter(|step| step.starts_with("SCAN ") && !small(step)).collect()
}

fn check(db: &SqliteSession, statements: &[&str]) {
    for statement in statements {
        let found = scans(db, statement);
        assert!(found.is_empty(), "{found:?} in {statement}");
    }
}

#[tokio::test]
async fn query_plan_hot_statements_scan_no_table() {
    let folder = tempfile::tempdir().unwrap();
    let options = SqliteOptions::new(folder.path().join("verbatim.db"));
    SqliteStore::open(options.clone()).await.unwrap().close().await;
    let main = MAIN.open_writer(&options.path, options.busy_timeout, FileLocking::Normal).unwrap();
    main.batch(FILL_MAIN).unwrap();
    for statements in [
        &ledger::INDEXED_STATEMENTS[..],
        &admin::INDEXED_STATEMENTS[..],
        &sessions::INDEXED_STATEMENTS[..],
        &charges::INDEXED_STATEMENTS[..],
        &limits::INDEXED_STATEMENTS[..],
        &outbox::INDEXED_STATEMENTS[..],
        &idempotency::INDEXED_STATEMENTS[..],
        jobs::INDEXED_STATEMENTS[0],
        jobs::INDEXED_STATEMENTS[1],
        jobs::INDEXED_STATEMENTS[2],
        jobs::INDEXED_STATEMENTS[3],
        &directory::INDEXED_STATEMENTS[..],
        &directory::keys::INDEXED_STATEMENTS[..],
        &directory::key_access::INDEXED_STATEMENTS[..],
        &directory::redeem::INDEXED_STATEMENTS[..],
    ] {
        check(&main, statements);
    }
    assert_eq!(scans(&main, "SELECT * FROM ledger_pools WHERE spent = 1"), ["SCAN ledger_pools"]);
    for (statement, index) in jobs::ORDERED_STATEMENTS {
        let steps = plan(&main, statement.sqlite);
        assert!(steps[0].contains(&format!(" USING INDEX {index}")), "{steps:?} in {statement:?}");
        assert_eq!(sorting_steps(&main, statement.sqlite), 0, "{statement:?}");
    }

    let options = SqliteOptions::new(folder.path().join("archive.db"));
    SqliteArchive::open(options.clone()).await.unwrap().close().await;
    let transcripts = ARCHIVE.open_writer(&options.path, options.busy_timeout, FileLocking::Normal).unwrap();
    transcripts.batch(FILL_ARCHIVE).unwrap();
    check(&transcripts, &archive::INDEXED_STATEMENTS);
    check(&transcripts, &archive::details::INDEXED_STATEMENTS);
    check(&transcripts, &archive::put::INDEXED_STATEMENTS);
    check(&transcripts, &archive::compaction::INDEXED_STATEMENTS);
    check(&transcripts, &archive::vectors::INDEXED_STATEMENTS);
    check(&transcripts, &archive::verification::INDEXED_STATEMENTS);
    // A table in memory takes as long as all else of a read: only the rows of a cold transcript are sorted in one.
    assert_eq!(sorting_steps(&transcripts, archive::find::BODY.sqlite), 0);
    assert_eq!(sorting_steps(&transcripts, archive::find::LAZY.sqlite), 0);
    assert_eq!(sorting_steps(&transcripts, archive::find::FIND.sqlite), 1);
}

/// How many steps of a plan sort rows in a table in memory.
fn sorting_steps(db: &SqliteSession, statement: &str) -> usize {
    plan(db, statement).iter().filter(|step| step.contains("TEMP B-TREE")).count()
}

#[tokio::test]
async fn sqlite_writer_syncs_log_separately_and_fully() {
    let folder = tempfile::tempdir().unwrap();
    let options = SqliteOptions::new(folder.path().join("verbatim.db"));
    SqliteStore::open(options.clone()).await.unwrap().close().await;
    let main = MAIN.open_writer(&options.path, options.busy_timeout, FileLocking::Normal).unwrap();
    // 1 is NORMAL: the commit leaves the sync of the log to the write queue.
    for (pragma, value) in [
        ("synchronous", 1),
        ("fullfsync", 1),
        ("checkpoint_fullfsync", 1),
        ("foreign_keys", 1),
        ("secure_delete", 1),
        ("wal_autocheckpoint", 12_288),
    ] {
        let row = main.query_row(&format!("PRAGMA {pragma}"), &[]).unwrap().unwrap();
        assert_eq!(row.get::<i64>(0).unwrap(), value, "{pragma}");
    }
}
