//! Outages: a database that stops and restarts, lost connections, and a pooler in between.

use std::{
    sync::atomic::{AtomicU64, Ordering::Relaxed},
    time::{Duration, Instant},
};

use sqlx::{AssertSqlSafe, ConnectOptions, postgres::PgConnectOptions};
use storage_sqlx::{PostgresOptions, PostgresStore};
use transcript_core::{
    ErrorKind, PageRequest, Retry, Timestamp,
    archive::Archive as _,
    ids::{GrantId, HoldId, WalletId},
    ledger::{GrantOutcome, GrantRequest, HoldOutcome, HoldRequest, Ledger, Leg, Pool, Terms},
};
use verbatim_tests_postgres::{Cluster, Durability, TestDatabase};

use crate::{common, opening::foreign_connection};

const NOW: i64 = 1_795_132_800_000;

fn purchased() -> Terms {
    Terms { pools: vec![Pool::Purchased], resets_at: None }
}

fn grant(id: &str, amount: u64) -> GrantRequest {
    GrantRequest {
        id: GrantId::new(id),
        wallet: WalletId::new("w"),
        amount,
        now: Timestamp::from_millis(NOW),
        memo: String::new(),
    }
}

fn spend(id: String) -> HoldRequest {
    HoldRequest {
        id: HoldId::new(id),
        legs: vec![Leg { wallet: WalletId::new("w"), terms: purchased(), amount: 1 }],
        now: Timestamp::from_millis(NOW),
        expires_at: Timestamp::from_millis(NOW + 60_000),
        memo: "test".to_owned(),
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn outage_server_restart_resumes_work() {
    let cluster = Cluster::start(Durability::Full).unwrap();
    let database = cluster.database().unwrap();
    let store = PostgresStore::open(crate::options(&database)).await.unwrap();
    let _ = store.grant(grant("bought", 100)).await.unwrap();
    for round in 0..3 {
        // Stopped normally, or killed with all its processes.
        if round == 1 { cluster.kill() } else { cluster.stop() }.unwrap();
        let started = Instant::now();
        let error = store.spend(spend(format!("away-{round}"))).await.unwrap_err();
        assert_eq!((error.kind(), error.retry()), (ErrorKind::Unavailable, Retry::Backoff), "{error}");
        // Well before the timeouts of the options.
        assert!(started.elapsed() < Duration::from_secs(15), "a stopped server is detected at once");
        cluster.restart().unwrap();
        // The idle connections are dead, which no caller notices.
        let spent = store.spend(spend(format!("back-{round}"))).await.unwrap();
        assert!(matches!(spent, HoldOutcome::Held { .. }), "{spent:?}");
    }
    let balance = store.balance(&WalletId::new("w"), &purchased()).await.unwrap();
    assert_eq!((balance.pools[0].spent, balance.available()), (3, 97));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn outage_repeated_kills_spend_once_per_id() {
    let cluster = Cluster::start(Durability::Full).unwrap();
    let database = cluster.database().unwrap();
    let store = std::sync::Arc::new(PostgresStore::open(crate::options(&database)).await.unwrap());
    let _ = store.grant(grant("bought", 1_000_000)).await.unwrap();
    let (stop, stopped) = tokio::sync::watch::channel(false);
    let acknowledged = std::sync::Arc::new(AtomicU64::new(0));
    let spenders: Vec<_> = (0..8)
        .map(|spender| {
            let (store, stopped) = (std::sync::Arc::clone(&store), stopped.clone());
            let acknowledged = std::sync::Arc::clone(&acknowledged);
            tokio::spawn(async move {
                for n in 0.. {
                    if *stopped.borrow() {
                        return;
                    }
                    // A caller without a reply retries with the same id until it succeeds.
                    let outcome = loop {
                        match store.spend(spend(format!("{spender}-{n}"))).await {
                            Ok(outcome) => break outcome,
                            Err(error) => assert_eq!(error.retry(), Retry::Backoff, "{error}"),
                        }
                        tokio::time::sleep(Duration::from_millis(5)).await;
                    };
                    let done = matches!(outcome, HoldOutcome::Held { .. } | HoldOutcome::Exists { .. });
                    assert!(done, "{outcome:?}");
                    acknowledged.fetch_add(1, Relaxed);
                }
            })
        })
        .collect();
    for _ in 0..5 {
        let before = acknowledged.load(Relaxed);
        while acknowledged.load(Relaxed) < before + 16 {
            assert!(!spenders.iter().any(|spender| spender.is_finished()), "a spender failed");
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
        cluster.kill().unwrap();
        cluster.restart().unwrap();
    }
    stop.send(true).unwrap();
    for spender in spenders {
        spender.await.unwrap();
    }
    let acknowledged = acknowledged.load(Relaxed);
    let balance = store.balance(&WalletId::new("w"), &purchased()).await.unwrap();
    assert_eq!(
        (balance.pools[0].spent, balance.pools[0].held),
        (acknowledged, 0),
        "acknowledged spends equal the stored balance"
    );
    let mut page = PageRequest { after: None, limit: 1_000 };
    let mut sum = 0;
    loop {
        let entries = store.entries(&WalletId::new("w"), page.clone()).await.unwrap();
        let spent = entries.items.iter().filter(|entry| entry.kind.is_spent());
        sum += spent.map(|entry| entry.amount).sum::<u64>();
        let Some(next) = entries.next else { break };
        page.after = Some(next);
    }
    assert_eq!(sum, acknowledged, "and the sum of the entries");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn outage_silent_server_times_out() {
    // It accepts connections and never responds.
    let silent = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let url = format!("postgres://me@127.0.0.1:{}/words", silent.local_addr().unwrap().port());
    let connect_timeout = Duration::from_millis(300);
    let started = Instant::now();
    let error = PostgresStore::open(PostgresOptions { connect_timeout, ..crate::options_at(&url) }).await;
    let error = error.unwrap_err();
    assert_eq!((error.kind(), error.retry()), (ErrorKind::Unavailable, Retry::Backoff), "{error}");
    assert!(started.elapsed() < Duration::from_secs(15), "{:?}", started.elapsed());
}

/// Makes the server accept or reject (code 55000) new connections to a database.
async fn allow_connections(database: &TestDatabase<'_>, is_allowed: bool) {
    let name = database.url.rsplit('/').next().unwrap();
    let options: PgConnectOptions = Cluster::shared().url("postgres").parse().unwrap();
    let statement = format!("ALTER DATABASE {name} WITH ALLOW_CONNECTIONS {is_allowed}");
    sqlx::raw_sql(AssertSqlSafe(statement)).execute(&mut options.connect().await.unwrap()).await.unwrap();
}

#[tokio::test]
async fn outage_full_disk_open_connections_still_read() {
    let database = crate::database();
    let store = PostgresStore::open(PostgresOptions::new(&database.url)).await.unwrap();
    let _ = store.grant(grant("bought", 5)).await.unwrap();
    let full = "CREATE FUNCTION refuse() RETURNS trigger LANGUAGE plpgsql
            AS $$ BEGIN RAISE EXCEPTION 'full' USING ERRCODE = '53100'; END $$;
        CREATE TRIGGER full_disk BEFORE INSERT OR UPDATE ON ledger_pools
            FOR EACH STATEMENT EXECUTE FUNCTION refuse()";
    sqlx::raw_sql(full).execute(&mut foreign_connection(&database).await).await.unwrap();
    // A server that cannot write its files may open no connection either.
    allow_connections(&database, false).await;
    let error = store.spend(spend("refused".to_owned())).await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Unavailable, "{error}");
    assert!(error.message().contains("is full"), "{error}");
    let errors = store.monitor().errors();
    assert!(errors.iter().all(|(kind, count)| (*kind == "full") == (*count > 0)), "{errors:?}");
    let balance = store.balance(&WalletId::new("w"), &purchased()).await.unwrap();
    assert_eq!((balance.pools[0].spent, balance.available()), (0, 5));
}

#[tokio::test]
async fn outage_rejected_connection_may_be_retried() {
    let database = crate::database();
    let store = PostgresStore::open(PostgresOptions::new(&database.url)).await.unwrap();
    let _ = store.grant(grant("bought", 5)).await.unwrap();
    let mut other = foreign_connection(&database).await;
    allow_connections(&database, false).await;
    let end = "SELECT pg_terminate_backend(pid, 10000) FROM pg_stat_activity
        WHERE datname = current_database() AND pid <> pg_backend_pid()";
    sqlx::raw_sql(end).execute(&mut other).await.unwrap();
    let error = store.balance(&WalletId::new("w"), &purchased()).await.unwrap_err();
    assert_eq!((error.kind(), error.retry()), (ErrorKind::Unavailable, Retry::Backoff), "{error}");
    assert!(error.message().contains("no connection can be opened"), "{error}");
    assert!(error.message().contains("55000"), "{error}");
    allow_connections(&database, true).await;
    assert_eq!(store.balance(&WalletId::new("w"), &purchased()).await.unwrap().available(), 5);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn connections_fewer_than_calls_serve_all() {
    let database = crate::database();
    let options = PostgresOptions { connections: 2, ..crate::options(&database) };
    let store = std::sync::Arc::new(PostgresStore::open(options).await.unwrap());
    let _ = store.grant(grant("bought", 1_000)).await.unwrap();
    let spending: Vec<_> = (0..200)
        .map(|n| {
            let store = std::sync::Arc::clone(&store);
            tokio::spawn(async move { store.spend(spend(format!("s{n}"))).await.unwrap() })
        })
        .collect();
    for spent in spending {
        assert!(matches!(spent.await.unwrap(), HoldOutcome::Held { .. }));
    }
    let balance = store.balance(&WalletId::new("w"), &purchased()).await.unwrap();
    assert_eq!(balance.pools[0].spent, 200);
}

#[tokio::test]
async fn pooler_prepared_statements_are_deallocated() {
    let database = crate::database();
    let options = PostgresOptions { pooler: true, connections: 1, ..crate::options(&database) };
    let store = PostgresStore::open(options).await.unwrap();
    for n in 0..8 {
        assert!(matches!(
            store.grant(grant(&format!("g{n}"), 5)).await.unwrap(),
            GrantOutcome::Granted { .. }
        ));
        assert!(matches!(store.spend(spend(format!("s{n}"))).await.unwrap(), HoldOutcome::Held { .. }));
    }
    assert_eq!(store.balance(&WalletId::new("w"), &purchased()).await.unwrap().available(), 32);
}

/// A conflict that is found at the commit has ended the transaction: a rollback after it would leave a warning.
#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn conflicts_leave_no_warning_in_log_of_server() {
    let cluster = Cluster::start(Durability::None).unwrap();
    cluster.add_setting("log_min_messages = warning").unwrap();
    cluster.stop().unwrap();
    cluster.restart().unwrap();
    let database = cluster.database().unwrap();
    let (one, two) = (crate::archive_in(&database).await, crate::archive_in(&database).await);
    let mut puts = tokio::task::JoinSet::new();
    for n in 0..400 {
        let archive = std::sync::Arc::clone(if n % 2 == 0 { &one } else { &two });
        let request = common::put_request(&format!("video-{:05}", n % 3), &format!("words {n}"));
        puts.spawn(async move { archive.put(request).await.unwrap() });
    }
    while let Some(put) = puts.join_next().await {
        put.unwrap();
    }
    let log = std::fs::read_to_string(cluster.socket_folder().join("log")).unwrap();
    assert!(log.contains("could not serialize access"), "no conflict");
    assert!(!log.contains("no transaction in progress"), "{log}");
}
