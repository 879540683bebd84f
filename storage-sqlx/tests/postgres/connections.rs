//! Connections: shared by both parts of a database, closed when unused, and what happens without room.

use std::time::Duration;

use sqlx::{Connection as _, PgConnection};
use storage_sqlx::{PostgresArchive, PostgresOptions, PostgresStore, inspect_database};
use transcript_core::{archive::Archive as _, directory::SecretStore as _};
use verbatim_tests_postgres::{Cluster, Durability};

const COUNT: &str = "SELECT count(*) FROM pg_stat_activity
    WHERE datname = current_database() AND application_name LIKE 'verbatim %'";

async fn connect(url: &str) -> PgConnection {
    PgConnection::connect(url).await.unwrap()
}

async fn count(connection: &mut PgConnection) -> i64 {
    sqlx::query_scalar(COUNT).fetch_one(connection).await.unwrap()
}

/// Calls both stores this many times at once.
async fn call(store: &PostgresStore, archive: &PostgresArchive, times: usize) {
    let calls = (0..times).map(|_| async {
        tokio::try_join!(store.get_or_create("a", vec![1]), archive.change_counter()).unwrap();
    });
    futures_util::future::join_all(calls).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn connections_are_shared_by_both_parts_and_closed_when_unused() {
    let database = Cluster::shared().database().unwrap();
    let mut observer = connect(&database.url).await;
    let options = PostgresOptions { connections: 5, ..crate::options(&database) };
    let store = PostgresStore::open(options).await.unwrap();
    let archive = PostgresArchive::open_beside(&store).await.unwrap();
    call(&store, &archive, 40).await;
    assert_eq!(count(&mut observer).await, 5, "both parts together use all connections, and no more");

    // One call a second uses the same connection each time.
    for second in 0.. {
        call(&store, &archive, 1).await;
        if count(&mut observer).await <= 2 {
            break;
        }
        assert!(second < 60, "unused connections are open");
        tokio::time::sleep(Duration::from_secs(1)).await;
    }
    store.close().await;
    assert!(archive.change_counter().await.is_err(), "a part is open after its connections were closed");
}

#[tokio::test(flavor = "multi_thread")]
async fn connection_limit_counts_programs_and_call_waits_for_room() {
    let cluster = Cluster::start(Durability::None).unwrap();
    cluster.add_setting("max_connections = 12").unwrap();
    cluster.add_setting("superuser_reserved_connections = 2").unwrap();
    cluster.stop().unwrap();
    cluster.restart().unwrap();
    let database = cluster.database().unwrap();
    let options = || PostgresOptions { connections: 4, ..crate::options(&database) };
    let mut stores = Vec::new();
    for programs in 1..=3 {
        let store = PostgresStore::open(options()).await.unwrap();
        let limit = store.connection_limit().await.unwrap();
        assert_eq!((limit.permitted, limit.programs, limit.own), (10, programs, 4));
        assert_eq!(limit.is_sufficient(), programs < 3);
        stores.push(store);
    }
    let report = inspect_database(options()).await.unwrap();
    assert_eq!(report.main_schema.0, report.main_schema.1, "{report:?}");
    assert_eq!(report.archive_schema.0, 0, "the report created tables: {report:?}");
    assert!(!report.connections.unwrap().is_sufficient(), "{report:?}");

    // Every connection is in use, until one ends.
    let mut others = Vec::new();
    while let Ok(other) = PgConnection::connect(&database.url).await {
        others.push(other);
    }
    let late = PostgresStore::open(options());
    let (late, ()) = tokio::join!(late, async {
        tokio::time::sleep(Duration::from_millis(500)).await;
        others.pop().unwrap().close().await.unwrap();
    });
    late.unwrap();
}
