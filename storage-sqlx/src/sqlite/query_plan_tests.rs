//! Query plans of the hot statements: none scans a whole table.

use sqlx::{AssertSqlSafe, ConnectOptions, Row, SqliteConnection};

use super::{
    ARCHIVE, MAIN, SqliteArchive, SqliteOptions, SqliteStore, archive, charges, directory, idempotency,
    ledger, limits, outbox,
};

/// Permitted scans: the rows of a request's JSON or parameters, the rows found with them, and a page.
const SMALL: [&str; 9] = [
    "VIRTUAL TABLE",
    "CONSTANT ROW",
    "VALUES CLAUSE",
    "SCAN (subquery",
    "SCAN asked",
    "SCAN holds",
    "SCAN some",
    "SCAN transfers",
    "SCAN wanted",
];

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
INSERT INTO limits SELECT wallet, id, '[]' FROM ledger_pools;
INSERT INTO replies (key, fingerprint, holder, lease_until, keep_until)
    SELECT wallet, x'00', 'h', id, id FROM ledger_pools;
INSERT INTO outbox (id, kind, recipient, attempts, due_at) SELECT wallet, 'verify', 'x', 0, id FROM ledger_pools;";

const FILL_ARCHIVE: &str = "
WITH RECURSIVE n (x) AS (SELECT 1 UNION ALL SELECT x + 1 FROM n WHERE x < 1000)
INSERT INTO tracks SELECT x, 'youtube/' || x, 'en', 'human', NULL, 1 FROM n;
INSERT INTO transcripts SELECT id, video, id, 1, 1, 0, zeroblob(32), 1, 1, x'00' FROM tracks;
INSERT INTO bodies SELECT id, content_sha256, 'x', 1, 1, '', x'00' FROM transcripts;
INSERT INTO cold SELECT id * 65536, x'00' FROM tracks;
INSERT INTO wishes SELECT video, 'default', id FROM tracks;
INSERT INTO absences SELECT video, 'de', 'x', 'x', '[]', id FROM tracks;
INSERT INTO leases SELECT video, 'de', 'h', id FROM tracks;
INSERT INTO links SELECT video, video FROM tracks;";

/// The steps of a plan that scan a whole table.
async fn scans(db: &mut SqliteConnection, statement: &str) -> Vec<String> {
    let plan = sqlx::query(AssertSqlSafe(format!("EXPLAIN QUERY PLAN {statement}"))).fetch_all(db).await;
    let steps = plan.unwrap().into_iter().map(|row| row.get::<String, _>("detail"));
    let small = |step: &String| SMALL.iter().any(|small| step.contains(small));
    steps.filter(|step| step.starts_with("SCAN ") && !small(step)).collect()
}

async fn check(db: &mut SqliteConnection, texts: &[&str]) {
    for statement in texts.iter().flat_map(|text| text.split(';')) {
        let found = scans(db, statement).await;
        assert!(found.is_empty(), "{found:?} in {statement}");
    }
}

#[tokio::test]
async fn query_plan_hot_statements_scan_no_table() {
    let folder = tempfile::tempdir().unwrap();
    let options = SqliteOptions::new(folder.path().join("verbatim.db"));
    SqliteStore::open(options.clone()).await.unwrap().close().await;
    let mut main = MAIN.writer(&options.path, options.busy_timeout).connect().await.unwrap();
    sqlx::raw_sql(FILL_MAIN).execute(&mut main).await.unwrap();
    for texts in [
        &ledger::INDEXED_STATEMENTS[..],
        &limits::INDEXED_STATEMENTS[..],
        &outbox::INDEXED_STATEMENTS[..],
        &idempotency::INDEXED_STATEMENTS[..],
        &directory::INDEXED_STATEMENTS[..],
        &directory::keys::INDEXED_STATEMENTS[..],
        &directory::redeem::INDEXED_STATEMENTS[..],
    ] {
        check(&mut main, texts).await;
    }
    let groups = charges::statements::hot();
    check(&mut main, &groups.iter().map(String::as_str).collect::<Vec<_>>()).await;
    check(&mut main, &[charges::single_spend::hot()]).await;
    assert_eq!(scans(&mut main, "SELECT * FROM ledger_pools WHERE spent = 1").await, ["SCAN ledger_pools"]);

    let options = SqliteOptions::new(folder.path().join("archive.db"));
    SqliteArchive::open(options.clone()).await.unwrap().close().await;
    let mut transcripts = ARCHIVE.writer(&options.path, options.busy_timeout).connect().await.unwrap();
    sqlx::raw_sql(FILL_ARCHIVE).execute(&mut transcripts).await.unwrap();
    check(&mut transcripts, &archive::INDEXED_STATEMENTS).await;
    check(&mut transcripts, &archive::put::INDEXED_STATEMENTS).await;
    check(&mut transcripts, &archive::cold::INDEXED_STATEMENTS).await;
}

#[tokio::test]
async fn sqlite_writer_uses_fullfsync() {
    let folder = tempfile::tempdir().unwrap();
    let options = SqliteOptions::new(folder.path().join("verbatim.db"));
    let main = MAIN.writer(&options.path, options.busy_timeout).create_if_missing(true);
    let mut main = main.connect().await.unwrap();
    for pragma in ["PRAGMA fullfsync", "PRAGMA checkpoint_fullfsync"] {
        let row = sqlx::query(AssertSqlSafe(pragma)).fetch_one(&mut main).await.unwrap();
        assert_eq!(row.get::<i64, _>(0), 1, "{pragma}");
    }
}
