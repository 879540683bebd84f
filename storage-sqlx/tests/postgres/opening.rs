//! Opening: by several at once, by an older program, and where there is nothing to open.

use std::sync::Arc;

use sqlx::{ConnectOptions, Connection, Row, postgres::PgConnectOptions};
use storage_sqlx::{PostgresArchive, PostgresOptions, PostgresStore};
use transcript_core::{ErrorKind, Retry, archive::Archive, directory::Secrets};
use verbatim_tests_postgres::{Cluster, Database};

use crate::{database, options};

/// A connection of somebody else's to a database.
pub(crate) async fn stranger(database: &Database<'_>) -> sqlx::PgConnection {
    let options: PgConnectOptions = database.url.parse().unwrap();
    options.connect().await.unwrap()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn eight_servers_start_at_once_and_one_migrates() {
    let database = Arc::new(database());
    let open = |number: u8| {
        let options = options(&database);
        tokio::spawn(async move {
            let (store, archive) =
                tokio::try_join!(PostgresStore::open(options.clone()), PostgresArchive::open(options))
                    .unwrap();
            assert_eq!(archive.stats().await.unwrap().transcripts, 0);
            store.secret("cookies", vec![number; 32]).await.unwrap()
        })
    };
    let starting: Vec<_> = (0..8).map(open).collect();
    let mut secrets = Vec::new();
    for server in starting {
        secrets.push(server.await.unwrap());
    }
    assert!(secrets.windows(2).all(|pair| pair[0] == pair[1]), "all servers share one secret");
    let mut stranger = stranger(&database).await;
    let steps = sqlx::query("SELECT part, version FROM verbatim_schema ORDER BY part, version");
    let steps = steps.fetch_all(&mut stranger).await.unwrap();
    let steps: Vec<(String, i64)> = steps.iter().map(|row| (row.get(0), row.get(1))).collect();
    let part = |name: &str, version| (name.to_owned(), version);
    let all = [part("archive", 1), part("archive", 2), part("main", 1), part("main", 2)];
    assert_eq!(steps, all, "each step ran once");
    let left = sqlx::query("SELECT count(*) FROM verbatim_migrating").fetch_one(&mut stranger).await.unwrap();
    assert_eq!(left.get::<i64, _>(0), 0, "nobody holds the lease any more");
}

#[tokio::test]
async fn a_server_that_died_while_it_migrated_is_waited_for_no_longer_than_its_lease() {
    let database = database();
    let mut stranger = stranger(&database).await;
    for statement in [
        "CREATE TABLE verbatim_schema (part TEXT, version BIGINT, name TEXT, applied_at BIGINT,
            PRIMARY KEY (part, version))",
        "CREATE TABLE verbatim_migrating (part TEXT PRIMARY KEY, holder BIGINT NOT NULL, until BIGINT NOT NULL)",
        "INSERT INTO verbatim_migrating VALUES
            ('main', 7, (extract(epoch FROM clock_timestamp()) * 1000)::BIGINT + 1500)",
    ] {
        sqlx::raw_sql(statement).execute(&mut stranger).await.unwrap();
    }
    let begun = std::time::Instant::now();
    let store = PostgresStore::open(options(&database)).await.unwrap();
    assert!(begun.elapsed() > std::time::Duration::from_secs(1), "the lease of another is respected");
    store.secret("cookies", vec![1; 32]).await.unwrap();
}

#[tokio::test]
async fn a_database_of_a_newer_version_is_refused_and_left_as_it_is() {
    let database = database();
    PostgresStore::open(options(&database)).await.unwrap().close().await;
    let mut stranger = stranger(&database).await;
    let newer = "INSERT INTO verbatim_schema (part, version, name, applied_at) VALUES ('main', 1000, 'x', 0)";
    sqlx::raw_sql(newer).execute(&mut stranger).await.unwrap();
    let error = PostgresStore::open(options(&database)).await.unwrap_err();
    assert_eq!((error.kind(), error.retry()), (ErrorKind::Unsupported, Retry::Never), "{error}");
    assert!(error.message().contains("newer version") && error.message().contains("1000"), "{error}");
    // The transcripts have versions of their own.
    PostgresArchive::open(options(&database)).await.unwrap();
    stranger.close().await.unwrap();
}

#[tokio::test]
async fn what_cannot_be_opened_says_why() {
    let cluster = Cluster::shared();
    let check = async |url: String, kind: ErrorKind, says: &str| {
        let begun = std::time::Instant::now();
        let error = PostgresStore::open(PostgresOptions::new(url)).await.unwrap_err();
        assert_eq!(error.kind(), kind, "{error}");
        assert!(error.message().contains(says) && !error.message().contains("hush"), "{error}");
        assert!(begun.elapsed() < std::time::Duration::from_secs(10), "{error}");
    };
    check(cluster.url("nowhere"), ErrorKind::Unsupported, "there is no database nowhere").await;
    let stranger = format!("postgres://nobody:hush@127.0.0.1:{}/postgres", cluster.port());
    check(stranger, ErrorKind::Unsupported, "refuses this user").await;
    let closed = std::net::TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
    let away = format!("postgres://me:hush@127.0.0.1:{closed}/words");
    check(away, ErrorKind::Unavailable, "cannot be reached").await;
    let plain = format!("postgres://verbatim@127.0.0.1:{}/postgres?sslmode=require", cluster.port());
    check(plain, ErrorKind::Unsupported, "no encrypted connection").await;
    check("postgres://me:hush@[half/words".to_owned(), ErrorKind::Invalid, "not well-formed").await;
}

#[tokio::test]
async fn a_store_that_is_printed_hides_its_password() {
    let database = database();
    let url = database.url.replacen("verbatim@", "verbatim:hush@", 1);
    assert_ne!(url, database.url);
    let store = PostgresStore::open(PostgresOptions::new(url)).await.unwrap();
    let shown = format!("{store:?}");
    assert!(shown.contains("case_") && !shown.contains("hush"), "{shown}");
}
