//! Opening: concurrent opens, newer versions, and databases that cannot be opened.

use std::{sync::Arc, time::Duration};

use sqlx::{ConnectOptions, Connection, Row, postgres::PgConnectOptions};
use storage_sqlx::{PostgresArchive, PostgresOptions, PostgresStore};
use transcript_core::{ErrorKind, Retry, archive::Archive, directory::SecretStore};
use verbatim_tests_postgres::{Cluster, TestDatabase};

use crate::{database, options};

/// A connection of another program.
pub(crate) async fn foreign_connection(database: &TestDatabase<'_>) -> sqlx::PgConnection {
    let options: PgConnectOptions = database.url.parse().unwrap();
    options.connect().await.unwrap()
}

/// The versions that an up-to-date database records for a part: one for each migration of the sources.
fn every_version(part: &str) -> Vec<(String, i64)> {
    let migrations = concat!(env!("CARGO_MANIFEST_DIR"), "/migrations");
    let count = std::fs::read_dir(format!("{migrations}/postgres-{part}")).unwrap().count();
    (1..).take(count).map(|version| (part.to_owned(), version)).collect()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn postgres_concurrent_open_migrates_once() {
    let database = Arc::new(database());
    let open = |number: u8| {
        let options = options(&database);
        tokio::spawn(async move {
            let (store, archive) =
                tokio::try_join!(PostgresStore::open(options.clone()), PostgresArchive::open(options))
                    .unwrap();
            assert_eq!(archive.stats().await.unwrap().transcripts, 0);
            store.get_or_create("cookies", vec![number; 32]).await.unwrap()
        })
    };
    let starting: Vec<_> = (0..8).map(open).collect();
    let mut secrets = Vec::new();
    for server in starting {
        secrets.push(server.await.unwrap());
    }
    assert!(secrets.windows(2).all(|pair| pair[0] == pair[1]), "all servers share one secret");
    let mut foreign_connection = foreign_connection(&database).await;
    let steps = sqlx::query("SELECT part, version FROM verbatim_schema ORDER BY part, version");
    let steps = steps.fetch_all(&mut foreign_connection).await.unwrap();
    let steps: Vec<(String, i64)> = steps.iter().map(|row| (row.get(0), row.get(1))).collect();
    let all: Vec<_> = ["archive", "main"].into_iter().flat_map(every_version).collect();
    assert_eq!(steps, all, "each migration ran once");
    let left = sqlx::query("SELECT count(*) FROM verbatim_migrating")
        .fetch_one(&mut foreign_connection)
        .await
        .unwrap();
    assert_eq!(left.get::<i64, _>(0), 0, "the lease is released");
}

/// How long a store waits for the migration lease of a dead server.
async fn open_with_migration_lease(lease: &'static str) -> Duration {
    let database = database();
    let mut foreign_connection = foreign_connection(&database).await;
    for statement in [
        "CREATE TABLE verbatim_schema (part TEXT, version BIGINT, name TEXT, applied_at BIGINT,
            PRIMARY KEY (part, version))",
        "CREATE TABLE verbatim_migrating (part TEXT PRIMARY KEY, holder BIGINT NOT NULL, until BIGINT NOT NULL)",
        lease,
    ] {
        sqlx::raw_sql(statement).execute(&mut foreign_connection).await.unwrap();
    }
    let started = std::time::Instant::now();
    let store = PostgresStore::open(options(&database)).await.unwrap();
    let waited = started.elapsed();
    store.get_or_create("cookies", vec![1; 32]).await.unwrap();
    waited
}

#[tokio::test]
async fn postgres_open_waits_for_migration_lease_of_dead_server() {
    let waited = open_with_migration_lease(
        "INSERT INTO verbatim_migrating VALUES
            ('main', 7, (extract(epoch FROM clock_timestamp()) * 1000)::BIGINT + 1500)",
    )
    .await;
    assert!(waited > Duration::from_secs(1), "the other server's lease is respected");
}

#[tokio::test]
async fn postgres_open_ignores_migration_lease_of_corrected_clock() {
    let waited = open_with_migration_lease(
        "INSERT INTO verbatim_migrating VALUES
            ('main', 7, (extract(epoch FROM clock_timestamp()) * 1000)::BIGINT + 86400000)",
    )
    .await;
    assert!(waited < Duration::from_secs(60), "{waited:?}");
}

#[tokio::test]
async fn postgres_open_newer_version_is_rejected_unchanged() {
    let database = database();
    PostgresStore::open(options(&database)).await.unwrap().close().await;
    let mut foreign_connection = foreign_connection(&database).await;
    let newer = "INSERT INTO verbatim_schema (part, version, name, applied_at) VALUES ('main', 1000, 'x', 0)";
    sqlx::raw_sql(newer).execute(&mut foreign_connection).await.unwrap();
    let error = PostgresStore::open(options(&database)).await.unwrap_err();
    assert_eq!((error.kind(), error.retry()), (ErrorKind::Unsupported, Retry::Never), "{error}");
    assert!(error.message().contains("newer version") && error.message().contains("1000"), "{error}");
    // The archive has its own version.
    PostgresArchive::open(options(&database)).await.unwrap();
    foreign_connection.close().await.unwrap();
}

#[tokio::test]
async fn postgres_open_failure_message_names_cause() {
    let cluster = Cluster::shared();
    let check = async |url: String, kind: ErrorKind, expected: &str| {
        let started = std::time::Instant::now();
        let error = PostgresStore::open(PostgresOptions::new(url)).await.unwrap_err();
        assert_eq!(error.kind(), kind, "{error}");
        assert!(error.message().contains(expected) && !error.message().contains("hush"), "{error}");
        assert!(started.elapsed() < Duration::from_secs(10), "{error}");
    };
    check(cluster.url("nowhere"), ErrorKind::Unsupported, "the database nowhere at").await;
    let unknown_user = format!("postgres://unknown:hush@127.0.0.1:{}/postgres", cluster.port());
    check(unknown_user, ErrorKind::Unsupported, "rejects this user").await;
    let closed = std::net::TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
    let unreachable = format!("postgres://me:hush@127.0.0.1:{closed}/words");
    check(unreachable, ErrorKind::Unavailable, "cannot be reached").await;
    let plain = format!("postgres://verbatim@127.0.0.1:{}/postgres?sslmode=require", cluster.port());
    check(plain, ErrorKind::Unsupported, "no encrypted connection").await;
    check("postgres://me:hush@[half/words".to_owned(), ErrorKind::Invalid, "is malformed").await;
}

#[tokio::test]
async fn postgres_store_debug_hides_password() {
    let database = database();
    let url = database.url.replacen("verbatim@", "verbatim:hush@", 1);
    assert_ne!(url, database.url);
    let store = PostgresStore::open(PostgresOptions::new(url)).await.unwrap();
    let shown = format!("{store:?}");
    assert!(shown.contains("case_") && !shown.contains("hush"), "{shown}");
}
